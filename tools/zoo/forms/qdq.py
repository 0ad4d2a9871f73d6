"""Static quantization by QuantizeLinear and DequantizeLinear, as ONNX Runtime's quantize_static writes it with
per_channel, activations of either type and weights of int8.

First a plan says which values are quantized, by the rule of each node's operator, in their order; then their ranges are
measured; then the nodes are written. As with that tool, operators without a rule stay float32 between quantized ones,
and Relu and Clip behind what is quantized disappear: codes end at what they let through.
"""

from collections import Counter

import numpy as np

from forms.integer import quantized
from forms.rewrite import Rewrite, attributes_of

# The axis of weights that have a scale for each of their channels.
CHANNEL_AXES = {"Conv": 0, "ConvTranspose": 1, "MatMul": 1}

PROBABILITIES = (0.0, 1.0)  # the range of what Softmax returns


class _Plan:
    def __init__(self, rewrite):
        self.rewrite = rewrite
        self.activations = {}  # value, which may be a constant -> the one whose scale and zero point it has
        self.weights = {}  # constant -> axis of its scales, None for one
        self.biases = set()  # names of nodes whose third input is one
        self.removed = set()  # names of nodes
        self.known_ranges = {}
        nodes = rewrite.graph.node
        self.readers = Counter(name for node in nodes for name in node.input)
        self.writers = {name: node for node in nodes for name in node.output}
        for node in nodes:
            rule = RULES.get(node.op_type)
            if rule:
                rule(self, node)

    def activation(self, name, like=None):
        if self.rewrite.is_float(name) and name not in self.weights:
            self.activations.setdefault(name, self.activations[like] if like else name)

    def weight(self, name, axis):
        if not self.rewrite.is_weight(name):
            self.activation(name)
        elif name not in self.activations:
            rank = len(self.rewrite.constants[name].dims)
            self.weights.setdefault(name, axis if axis is not None and axis < rank and rank > 1 else None)

    def bias(self, node):
        if len(node.input) > 2 and self.rewrite.is_weight(node.input[2]):
            self.biases.add(node.name)

    def measured(self):
        """Values whose ranges a run has to tell."""
        owners = dict.fromkeys(self.activations.values())
        return [name for name in owners if name not in self.rewrite.constants and name not in self.known_ranges]


# Rules: what a node adds to the plan --------------------------------------------------------------------------------


def _all_values(plan, node):
    for name in (*node.input, *node.output):
        plan.activation(name)


def _softmax(plan, node):
    _all_values(plan, node)
    plan.known_ranges[node.output[0]] = PROBABILITIES


def _weighted(plan, node):
    """Of Conv, ConvTranspose, MatMul."""
    plan.activation(node.input[0])
    plan.weight(node.input[1], CHANNEL_AXES[node.op_type])
    plan.bias(node)
    plan.activation(node.output[0])


def _gemm(plan, node):
    attributes = attributes_of(node)
    plan.activation(node.input[0])
    plan.weight(node.input[1], 0 if attributes.get("transB", 0) else 1)
    if all(attributes.get(key, 1.0) == 1.0 for key in ("alpha", "beta")):
        plan.bias(node)
    plan.activation(node.output[0])


def _normalization(plan, node):
    plan.activation(node.input[0])
    plan.weight(node.input[1], None)
    plan.bias(node)
    plan.activation(node.output[0])


def _moved(plan, node):
    """Codes stay what they are, if there are any."""
    if node.input[0] in plan.activations:
        for name in node.output:
            plan.activation(name, like=node.input[0])


def _split(plan, node):
    plan.activation(node.input[0])
    _moved(plan, node)


def _gather(plan, node):
    if node.input[0] in plan.rewrite.constants:
        plan.activation(node.input[0])
    _moved(plan, node)


def _removable(plan, node):
    """Of Relu and Clip: what comes before writes their output, if only they read it."""
    x = node.input[0]
    output = node.output[0]
    if x not in plan.activations:
        return
    writer = plan.writers.get(x)
    if writer is not None and plan.readers[x] == 1 and x not in plan.rewrite.output_names:
        writer.output[:] = [output if name == x else name for name in writer.output]
        plan.writers[output] = writer
        plan.removed.add(node.name)
        del plan.activations[x]
    plan.activation(output)


RULES = {
    **dict.fromkeys(("Add", "Concat", "GlobalAveragePool", "LeakyRelu", "Mul", "Sigmoid", "Where"), _all_values),
    **dict.fromkeys(("AveragePool", "MaxPool", "Pad", "Reshape", "Resize", "Slice", "Squeeze", "Transpose",
                     "Unsqueeze"), _moved),
    **dict.fromkeys(CHANNEL_AXES, _weighted),
    **dict.fromkeys(("InstanceNormalization", "LayerNormalization"), _normalization),
    **dict.fromkeys(("Clip", "Relu"), _removable),
    "Gather": _gather,
    "Gemm": _gemm,
    "Softmax": _softmax,
    "Split": _split,
}


# Writing ------------------------------------------------------------------------------------------------------------


def activation_parameters(low, high, signed):
    """Scale and zero point; zero is in the range always."""
    low = min(low, 0.0)
    scale = np.float32((max(high, 0.0) - low) / 255)
    if scale < np.finfo(np.float32).tiny:
        scale = np.float32(1)
        low = 0.0
    zero = int(np.rint(-low / scale))
    return scale, np.int8(zero - 128) if signed else np.uint8(zero)


def channel_codes(array, axis):
    """Of int8, with scales along an axis."""
    others = tuple(i for i in range(array.ndim) if i != axis)
    scales = (np.abs(array).max(others) / 127).astype(np.float32)
    scales[scales == 0] = 1
    along = scales.reshape([-1 if i == axis else 1 for i in range(array.ndim)])
    return np.clip(np.rint(array / along), -127, 127).astype(np.int8), scales, np.zeros(len(scales), np.int8)


class _Writer:
    def __init__(self, plan, ranges, signed):
        self.plan = plan
        self.rewrite = plan.rewrite
        self.ranges = {**ranges, **plan.known_ranges}
        self.signed = signed
        self.parameters = {}  # value or weight -> scale, zero point
        self.dequantized = {}  # value, weight -> what reads its codes as floats

    def activation_scale(self, name):
        """Arrays of the scale and the zero point of a value that is quantized."""
        owner = self.plan.activations[name]
        if owner not in self.parameters:
            if owner in self.rewrite.constants:
                array = self.rewrite.array(owner)
                limits = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
            else:
                limits = self.ranges[owner]
            self.parameters[owner] = activation_parameters(*limits, self.signed)
        return self.parameters[owner]

    def scale_names(self, name):
        owner = self.plan.activations[name]
        scale, zero = self.activation_scale(name)
        return [self.rewrite.constant(scale, f"{owner}_scale"), self.rewrite.constant(zero, f"{owner}_zero_point")]

    def pair(self, source, name, result):
        """`source` as codes and floats again."""
        scale_names = self.scale_names(name)
        codes = self.rewrite.add("QuantizeLinear", [source, *scale_names], [f"{name}_quantized"])
        self.dequantized[name] = self.rewrite.add("DequantizeLinear", [codes, *scale_names], [result])

    def codes(self, name, codes, scale, zero, axis=None):
        """Constants, and the node that makes them floats again."""
        inputs = [self.rewrite.constant(array, f"{name}_{part}")
                  for array, part in ((codes, "quantized"), (scale, "scale"), (zero, "zero_point"))]
        attributes = {} if axis is None else {"axis": axis}
        return self.rewrite.add("DequantizeLinear", inputs, [f"{name}_dequantized"], **attributes)

    def constant(self, name):
        array = self.rewrite.array(name)
        if name in self.plan.activations:
            scale, zero = self.activation_scale(name)
            limits = np.iinfo(zero.dtype)
            values = np.clip(np.rint(array / scale) + zero, limits.min, limits.max).astype(zero.dtype)
            return self.codes(name, values, scale, zero)
        axis = self.plan.weights[name]
        values, scale, zero = quantized(array, signed=True) if axis is None else channel_codes(array, axis)
        self.parameters[name] = (scale, zero)
        return self.codes(name, values, scale, zero, axis)

    def read(self, name):
        """What a node reads instead of a value."""
        if name in self.dequantized:
            return self.dequantized[name]
        is_planned = name in self.plan.weights or name in self.plan.activations
        if not is_planned or name not in self.rewrite.constants:
            return name
        self.dequantized[name] = self.constant(name)
        return self.dequantized[name]

    def bias(self, node):
        """int32 with the scale of what it is added to; for each node its own, as their inputs differ."""
        x, weight, name = node.input
        weight_scale = self.parameters[self.plan.activations.get(weight, weight)][0]
        scale = np.asarray(self.activation_scale(x)[0] * weight_scale, np.float32)
        values = np.rint(self.rewrite.array(name).astype(np.float64) / scale)
        limits = np.iinfo(np.int32)
        values = np.clip(values, limits.min, limits.max).astype(np.int32)
        axis = 0 if scale.ndim else None
        return self.codes(f"{node.name}_bias", values, scale, np.zeros(scale.shape, np.int32), axis)

    def node(self, node):
        inputs = [self.read(name) for name in node.input[:2]]
        inputs += [self.bias(node)] if node.name in self.plan.biases else [self.read(name) for name in node.input[2:]]
        planned = [name for name in node.output if name in self.plan.activations]
        node.input[:] = inputs
        node.output[:] = [self.written(name) if name in planned else name for name in node.output]
        self.rewrite.nodes.append(node)
        for name in planned:
            is_output = name in self.rewrite.output_names
            self.pair(self.written(name), name, name if is_output else f"{name}_dequantized")

    def written(self, name):
        """An output of the model keeps its name, behind its codes."""
        return f"{name}_float" if name in self.rewrite.output_names else name


def _static(model, measure, signed):
    rewrite = Rewrite(model)
    unplanned = type(model)()
    unplanned.CopyFrom(model)  # the plan changes nodes
    plan = _Plan(rewrite)
    if not plan.weights:
        return None
    writer = _Writer(plan, measure(unplanned, plan.measured()), signed)
    for info in rewrite.graph.input:
        if info.name in plan.activations:
            writer.pair(info.name, info.name, f"{info.name}_dequantized")
    for node in rewrite.graph.node:
        if node.name not in plan.removed:
            writer.node(node)
    return rewrite.finish()


def qdq_u8(model, measure):
    return _static(model, measure, signed=False)


def qdq_s8(model, measure):
    return _static(model, measure, signed=True)
