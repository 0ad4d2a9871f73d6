"""The forms in which people download models, by name; each is made from a plain model by one function or two.

A step is "module.function": it takes a model, which it may change, and a function that measures ranges
(forms.ranges.Sample.measure), and returns the model, or None if there is nothing of it that the form changes. Names are
those of transformers.js and of ONNX Runtime's tools where these have one. Nothing here needs a package.
"""

import importlib
from typing import NamedTuple

PLAIN = "plain"


class FormError(Exception):
    """A model cannot be written in this form."""


class Form(NamedTuple):
    steps: tuple
    description: str


FORMS = {
    PLAIN: Form((), "float32, as PyTorch exports it"),
    "fp16": Form(("half.fp16",), "float16 but for inputs, outputs and operators that converters leave alone"),
    "int8": Form(("integer.int8",), "products and tables with int8 weights, activations quantized as it runs"),
    "uint8": Form(("integer.uint8",), "the same with uint8 weights, convolutions too"),
    "q4": Form(("blocks.q4",), "products with weights of 4 bits in blocks of 32 (MatMulNBits)"),
    "q4f16": Form(("blocks.q4", "half.fp16"), "the same, what is left in float16"),
    "bnb4": Form(("blocks.bnb4",), "products with weights of 4 bits, NF4 in blocks of 64 (MatMulBnb4)"),
    "qdq_u8": Form(("qdq.qdq_u8",), "static: QuantizeLinear and DequantizeLinear, uint8 and weights of int8"),
    "qdq_s8": Form(("qdq.qdq_s8",), "the same, int8 and weights of int8"),
}


def _is_left_alone(model):
    """Pipelines of ai.onnx.ml have no forms, and steps do not go into bodies."""
    return any(node.domain == "ai.onnx.ml" or any(attribute.HasField("g") for attribute in node.attribute)
               for node in model.graph.node)


def convert(form, model, measure):
    """The model in that form, or None if it would be what it is."""
    if _is_left_alone(model):
        return None
    for step in FORMS[form].steps:
        module, function = step.split(".")
        model = getattr(importlib.import_module(f"forms.{module}"), function)(model, measure)
        if model is None:
            return None
    return model
