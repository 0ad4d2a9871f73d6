"""What all forms need: the nodes of a model written anew, one after the other, with constants that are added."""

from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from forms import FormError

CONTRIB = "com.microsoft"


def _inferred(model):
    """The graph with all types, and with the shapes that are known."""
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for node in model.graph.node:
        if node.domain == CONTRIB:  # ONNX does not know these; the forms add none that return anything but floats
            typed.graph.value_info.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None))
    return onnx.shape_inference.infer_shapes(typed, data_prop=True).graph  # with shapes that the graph computes


def _element_types(graph):
    """{value: type}, of constants too."""
    types = {info.name: info.type.tensor_type.elem_type for info in (*graph.value_info, *graph.input, *graph.output)}
    types.update({tensor.name: tensor.data_type for tensor in graph.initializer})
    for node in graph.node:
        for name in node.output:
            if name and not types.get(name):
                raise FormError(f"the type of {name} is unknown")
    return types


def attributes_of(node):
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


class Rewrite:
    """One model: what it was, and the nodes and constants it gets. finish() puts these into it."""

    def __init__(self, model):
        self._model = model
        self._added = {}
        self.nodes = []
        self.graph = model.graph
        inferred = _inferred(model)
        self.types = _element_types(inferred)
        for info, found in zip(self.graph.output, inferred.output):
            info.CopyFrom(found)  # a plain model's have no shape, which onnx.checker wants
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.output_names = [info.name for info in model.graph.output]

    def is_float(self, name):
        return self.types.get(name) == TensorProto.FLOAT

    def is_weight(self, name):
        """A constant of floats."""
        return name in self.constants and self.is_float(name)

    def array(self, name):
        return numpy_helper.to_array(self.constants[name])

    def constant(self, array, name):
        """Adds it once, whoever asks for that name again."""
        if name not in self._added:
            self._added[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def add(self, operator, inputs, outputs, *, like=None, domain="", **attributes):
        """Adds a node; with `like`, it also has all attributes of that one. Returns its first output."""
        node = helper.make_node(operator, inputs, outputs, f"{operator}_{outputs[0]}", domain=domain, **attributes)
        if like:
            node.attribute.extend(like.attribute)
        self.nodes.append(node)
        return outputs[0]

    def finish(self):
        """The model with the new nodes, without constants that none of them reads."""
        read = {name for node in self.nodes for name in node.input} | set(self.output_names)
        kept = [tensor for tensor in self.graph.initializer if tensor.name in read]
        kept += self._added.values()
        nodes = self.nodes
        for field, values in (("node", nodes), ("initializer", kept)):
            self.graph.ClearField(field)
            getattr(self.graph, field).extend(values)
        self.graph.ClearField("value_info")
        domains = {opset.domain for opset in self._model.opset_import}
        if CONTRIB not in domains and any(node.domain == CONTRIB for node in nodes):
            self._model.opset_import.append(helper.make_opsetid(CONTRIB, 1))
        return self._model


class Product(NamedTuple):
    """A matrix product with a constant: x times `weights`, which are [columns of x, columns of the result]."""

    x: str
    weights: np.ndarray
    weights_name: str
    bias: str  # "" if none
    output: str


def product_of(rewrite, node):
    """Of a MatMul, or of a Gemm that is a MatMul and an Add; None for other nodes."""
    if node.op_type not in ("MatMul", "Gemm") or not rewrite.is_weight(node.input[1]):
        return None
    attributes = attributes_of(node)
    if attributes.get("transA", 0) or any(attributes.get(key, 1.0) != 1.0 for key in ("alpha", "beta")):
        return None
    name = node.input[1]
    weights = rewrite.array(name)
    if weights.ndim != 2:
        return None
    if attributes.get("transB", 0):
        name = f"{name}_transposed"
        weights = np.ascontiguousarray(weights.T)
    bias = node.input[2] if len(node.input) > 2 else ""
    return Product(node.input[0], weights, name, bias, node.output[0])


def rewrite_product(rewrite, node, write):
    """write(product, output) adds what takes the product's place; the bias is added to that. False if it is none."""
    product = product_of(rewrite, node)
    if product is None:
        return False
    if product.bias:
        output = f"{product.output}_product"
        write(product, output)
        rewrite.add("Add", [output, product.bias], [product.output])
    else:
        write(product, product.output)
    return True
