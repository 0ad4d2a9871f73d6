"""Weights of 8 bits with activations quantized while the model runs, as ONNX Runtime's quantize_dynamic writes it.

One scale for each weight; int8 ones have no zero point. Products become MatMulInteger, tables of Gather are
dequantized behind it, and with uint8 weights Conv becomes ConvInteger, for which ONNX Runtime has no int8.
"""

import numpy as np
from onnx import TensorProto

from forms.rewrite import Rewrite, rewrite_product


def quantized(array, signed):
    """Codes, scale, zero point."""
    if signed:
        scale = np.float32(np.abs(array).max() / 127) or np.float32(1)
        return np.clip(np.rint(array / scale), -127, 127).astype(np.int8), scale, np.int8(0)
    low = min(array.min(), 0)
    scale = np.float32((max(array.max(), 0) - low) / 255) or np.float32(1)
    zero = np.uint8(np.rint(-low / scale))
    return np.clip(np.rint(array / scale) + zero, 0, 255).astype(np.uint8), scale, zero


class _Integers:
    def __init__(self, rewrite, signed):
        self.rewrite = rewrite
        self.signed = signed
        self.activations = {}  # float value -> codes, scale, zero point

    def activation(self, x):
        if x not in self.activations:
            self.activations[x] = [f"{x}_quantized", f"{x}_scale", f"{x}_zero_point"]
            self.rewrite.add("DynamicQuantizeLinear", [x], self.activations[x])
        return self.activations[x]

    def weight(self, name, array):
        """Names of codes, scale and zero point."""
        parts = zip(quantized(array, self.signed), ("quantized", "scale", "zero_point"))
        return [self.rewrite.constant(value, f"{name}_{part}") for value, part in parts]

    def scaled_sums(self, operator, x, weight, output, like=None):
        """An operator of integers, and its sums as floats."""
        add = self.rewrite.add
        x_codes, x_scale, x_zero = self.activation(x)
        codes, scale, zero = weight
        sums = add(operator, [x_codes, codes, x_zero, zero], [f"{output}_sums"], like=like)
        sums = add("Cast", [sums], [f"{output}_sums_float"], to=TensorProto.FLOAT)
        scales = add("Mul", [x_scale, scale], [f"{output}_scales"])
        add("Mul", [sums, scales], [output])

    def product(self, product, output):
        self.scaled_sums("MatMulInteger", product.x, self.weight(product.weights_name, product.weights), output)

    def table(self, node):
        name = node.input[0]
        codes, scale, zero = self.weight(name, self.rewrite.array(name))
        output = node.output[0]
        rows = self.rewrite.add("Gather", [codes, node.input[1]], [f"{output}_rows"], like=node)
        self.rewrite.add("DequantizeLinear", [rows, scale, zero], [output])

    def convolution(self, node):
        rewrite = self.rewrite
        x, name, *bias = node.input
        array = rewrite.array(name)
        weight = self.weight(name, array)
        output = node.output[0]
        if not bias:
            self.scaled_sums("ConvInteger", x, weight, output, node)
            return
        self.scaled_sums("ConvInteger", x, weight, f"{output}_product", node)
        dims = array.ndim
        shape = rewrite.constant(np.array([1, -1] + [1] * (dims - 2), np.int64), f"bias_shape_{dims}")
        column = rewrite.add("Reshape", [bias[0], shape], [f"{output}_bias"])
        rewrite.add("Add", [f"{output}_product", column], [output])

    def write(self, node):
        """False if the node stays as it is."""
        if node.op_type == "Gather" and self.rewrite.is_weight(node.input[0]):
            self.table(node)
            return True
        if node.op_type == "Conv" and not self.signed and self.rewrite.is_weight(node.input[1]):
            self.convolution(node)
            return True
        return rewrite_product(self.rewrite, node, self.product)


def _dynamic(model, signed):
    rewrite = Rewrite(model)
    integers = _Integers(rewrite, signed)
    count = 0
    for node in rewrite.graph.node:
        if integers.write(node):
            count += 1
        else:
            rewrite.nodes.append(node)
    return rewrite.finish() if count else None


def int8(model, _measure):
    return _dynamic(model, signed=True)


def uint8(model, _measure):
    return _dynamic(model, signed=False)
