"""float16, as onnxconverter-common and ONNX Runtime's float16.py convert it with keep_io_types.

Inputs and outputs stay float32, and so do the operators of BLOCKED: Cast stands around all these.
"""

import numpy as np
from onnx import TensorProto, numpy_helper

from forms.rewrite import Rewrite

# Those of the converters' list that architectures have, and CDist, which ONNX Runtime has no float16 of.
BLOCKED = ("CDist", "CumSum", "Max", "Min", "NonMaxSuppression", "Range", "Resize", "RoiAlign", "TopK",
           "TreeEnsembleClassifier", "TreeEnsembleRegressor", "Upsample")

HALF_MAX = 65504.0


def _half_tensor(tensor):
    values = np.clip(numpy_helper.to_array(tensor), -HALF_MAX, HALF_MAX)  # masks have -3e38
    return numpy_helper.from_array(values.astype(np.float16), tensor.name)


class _Halves:
    """A value keeps its name as float16, unless it is an input or an output: then it is NAME_half."""

    def __init__(self, rewrite):
        self.rewrite = rewrite
        self.names = {info.name: f"{info.name}_half" for info in (*rewrite.graph.input, *rewrite.graph.output)
                      if rewrite.is_float(info.name)}
        self.halved = {name for node in rewrite.graph.node if node.op_type not in BLOCKED for name in node.input
                       if rewrite.is_weight(name)}
        self.restored = {}  # float16 -> what it is as float32

    def half(self, name):
        return self.names.get(name, name)

    def single(self, name):
        """What an operator that stays float32 reads."""
        rewrite = self.rewrite
        if not rewrite.is_float(name) or (name in rewrite.constants and name not in self.halved):
            return name
        if name not in self.restored:
            self.restored[name] = rewrite.add("Cast", [self.half(name)], [f"{name}_single"], to=TensorProto.FLOAT)
        return self.restored[name]

    def blocked_node(self, node):
        node.input[:] = [self.single(name) for name in node.input]
        written = [name for name in node.output if self.rewrite.is_float(name)]
        node.output[:] = [f"{name}_float" if name in written else name for name in node.output]
        self.rewrite.nodes.append(node)
        for name in written:
            self.rewrite.add("Cast", [f"{name}_float"], [self.half(name)], to=TensorProto.FLOAT16)

    def half_node(self, node):
        node.input[:] = [self.half(name) for name in node.input]
        node.output[:] = [self.half(name) for name in node.output]
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
            if attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(_half_tensor(attribute.t))
        self.rewrite.nodes.append(node)


def fp16(model, _measure):
    rewrite = Rewrite(model)
    halves = _Halves(rewrite)
    if not halves.halved:
        return None
    for info in rewrite.graph.input:
        if info.name in halves.names:
            rewrite.add("Cast", [info.name], [halves.half(info.name)], to=TensorProto.FLOAT16)
    for node in rewrite.graph.node:
        if node.op_type in BLOCKED:
            halves.blocked_node(node)
        else:
            halves.half_node(node)
    for name in rewrite.output_names:
        if name in halves.names:
            rewrite.add("Cast", [halves.half(name)], [name], to=TensorProto.FLOAT)
    for tensor in rewrite.graph.initializer:
        if tensor.name in halves.halved:
            tensor.CopyFrom(_half_tensor(tensor))
    return rewrite.finish()
