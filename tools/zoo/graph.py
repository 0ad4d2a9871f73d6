"""A graph as it is built: operators, constants with their random numbers, inputs and outputs, and the model they make.

Values are named after their operator and counted, and numbers are drawn as constants are made: both follow the order of
the calls, so that the same calls with the same seed give the same file, byte for byte.
"""

import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

BOOL = TensorProto.BOOL
FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
STRING = TensorProto.STRING

OPSET = 17  # the first with LayerNormalization
ML_OPSET = 3  # of ai.onnx.ml, for trees
IR_VERSION = 8  # that of ONNX 1.12, whichever is installed

# Larger constants are weights, which are never shared, even if they should be equal.
SHARED_ELEMENTS_MAX = 63


class Graph:
    """One graph. Operators are methods: see __getattr__."""

    def __init__(self, name, seed):
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.nodes = []
        self._initializers = []
        self._inputs = []
        self._outputs = []
        self._value_count = 0
        self._shared = {}  # (type, shape, bytes) -> name
        self.ranges = {}  # input -> (lowest, highest), where it cannot be anything
        self.dims = {}  # free dim -> what it usually is
        self.opsets = {"": OPSET, "ai.onnx.ml": ML_OPSET}

    def __getattr__(self, operator):
        """graph.Add(a, b) adds that node and returns its output's name; with output_count=2, a list of names.

        Inputs are names, "" where one is left out. All other keywords are attributes.
        """
        if not operator[0].isupper():
            raise AttributeError(f"{operator} is neither an attribute nor an operator")

        def add(*inputs, output_count=1, domain="", **attributes):
            outputs = [self._new_name(operator) for _ in range(output_count)]
            self.nodes.append(helper.make_node(operator, inputs, outputs, outputs[0], domain=domain, **attributes))
            return outputs[0] if output_count == 1 else outputs

        return add

    def _new_name(self, base):
        self._value_count += 1
        return f"{base}_{self._value_count}"

    def input(self, name, shape, element_type=FLOAT, between=None):
        """A dim that is a string is a free one of that name. `between` are its lowest and highest number."""
        if between:
            self.ranges[name] = between
        self._inputs.append(helper.make_tensor_value_info(name, element_type, shape))
        return name

    def output(self, *names, element_type=FLOAT):
        for name in names:
            self._outputs.append(helper.make_tensor_value_info(name, element_type, None))

    def body(self, build, *inputs):
        """A graph for an attribute of Loop, Scan or If, which reads this one's values too.

        `inputs` are pairs of type and shape; `build` takes their names, and returns {output: type}. What only passes
        needs an Identity to be an output.
        """
        outer, self.nodes = self.nodes, []
        values = [helper.make_tensor_value_info(self._new_name("in"), *of) for of in inputs]
        outputs = build(*[value.name for value in values])
        nodes, self.nodes = self.nodes, outer
        return helper.make_graph(nodes, self._new_name("body"), values,
                                 [helper.make_tensor_value_info(name, of, None) for name, of in outputs.items()])

    def constant(self, value):
        """Doubles become floats; equal small ones are one."""
        array = np.array(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= SHARED_ELEMENTS_MAX else None
        if key in self._shared:
            return self._shared[key]
        name = self._new_name("c")
        self._initializers.append(numpy_helper.from_array(array, name))
        if key:
            self._shared[key] = name
        return name

    def ints(self, values):
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape, fan=None, gain=1.0):
        """Normally distributed, scaled for sums of `fan` terms: by default all dims but the first."""
        if fan is None:
            fan = math.prod(shape[1:])
        return self.constant(self._normal(shape) * (gain / math.sqrt(fan)))

    def bias(self, count):
        return self.constant(self._normal(count) * 0.1)

    def scale(self, count):
        return self.constant(1 + self._normal(count) * 0.1)

    def variance(self, count):
        return self.constant(np.abs(self._normal(count)) + 0.5)

    def _normal(self, shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self._inputs, self._outputs, self._initializers)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = IR_VERSION
        return model
