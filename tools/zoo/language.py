"""Language models: encoders, and decoders at their prefill and at a token after it."""

import numpy as np
from onnx import helper

from graph import FLOAT, INT64
from network import TO_END
from registry import architecture

VOCABULARY = 8192
HEAD_WIDTH = 64
FLOAT_LOWEST = -3.4028234663852886e38

# What inputs are between, if they are made up.
IDS = (0, 8000)
POSITIONS = (0, 255)


def _causal_mask(net, count, past):
    """Of `count` rows to what stands before them."""
    return net.constant(np.triu(np.full((1, 1, count, count + past), -3e38, np.float32), past + 1))


def _with_past(net, layer, keys, values, heads, past):
    """Keys and values behind those of the inputs, if there are any; both are outputs."""
    if past:
        shape = [1, heads, past, HEAD_WIDTH]
        keys = net.Concat(net.input(f"past_k{layer}", shape), keys, axis=2)
        values = net.Concat(net.input(f"past_v{layer}", shape), values, axis=2)
    net.output(keys, values)
    return keys, values


def _gpt2(net, count, past):
    width = 384
    heads = 6

    def product(x, columns, outputs):
        """Conv1D of Hugging Face's GPT-2: a Gemm of rows."""
        y = net.Gemm(net.reshape(x, -1, columns), net.weights(columns, outputs, fan=columns), net.bias(outputs))
        return net.reshape(y, 1, count, outputs)

    ids = net.input("input_ids", [1, count], INT64, between=IDS)
    x = net.Gather(net.weights(VOCABULARY, width), ids)
    positions = net.weights(1024, width)
    x = net.Add(x, net.Gather(positions, net.ints([range(past, past + count)])))
    mask = _causal_mask(net, count, past)
    for layer in range(6):
        y = product(net.layer_norm(x, width), width, 3 * width)
        queries, keys, values = [net.split_heads(part, count, heads, HEAD_WIDTH)
                                 for part in net.split(y, [width] * 3, axis=2)]
        keys, values = _with_past(net, layer, keys, values, heads, past)
        scores = net.Div(net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2)), net.constant(8.0))
        if count > 1:
            scores = net.Add(scores, mask)
        y = net.transpose(net.attend(scores, values), 0, 2, 1, 3)
        x = net.Add(x, product(y, width, width))
        y = net.gelu_tanh(product(net.layer_norm(x, width), width, 4 * width))
        x = net.Add(x, product(y, 4 * width, width))
    net.output(net.linear(net.layer_norm(x, width), width, VOCABULARY, bias=False))


@architecture
def gpt2_64(net):
    """GPT-2 (Radford et al. 2019), 6 layers of 384: prefill of 64 tokens, whose keys and values are outputs."""
    _gpt2(net, 64, 0)


@architecture
def gpt2_decode(net):
    """GPT-2 (Radford et al. 2019), 6 layers of 384: a token after 128."""
    _gpt2(net, 1, 128)


@architecture
def t5_encoder(net):
    """T5 v1.1's encoder (Raffel et al. 2020), 6 layers of 384: RMS norms, positions as a bias; 64 tokens."""
    count = 64
    width = 384
    ids = net.input("input_ids", [1, count], INT64, between=IDS)
    x = net.Gather(net.weights(VOCABULARY, width), ids)
    bias = net.weights(1, 6, count, count)
    for _ in range(6):
        y = net.rms_norm(x, width)
        queries, keys, values = [
            net.transpose(net.reshape(net.linear(y, width, width, bias=False), 1, count, 6, HEAD_WIDTH), 0, 2, *order)
            for order in ((1, 3), (3, 1), (1, 3))]
        mixed = net.attend(net.Add(net.MatMul(queries, keys), bias), values)
        x = net.Add(x, net.linear(net.join_heads(mixed, 1, count, width), width, width, bias=False))
        x = net.Add(x, net.gated_feed_forward(net.rms_norm(x, width), width, 1024, net.gelu_tanh))
    net.output(net.rms_norm(x, width))


def _rotary_frequencies(net):
    exponents = -np.arange(0, HEAD_WIDTH, 2) / HEAD_WIDTH
    return net.constant((10000.0**exponents).reshape(1, HEAD_WIDTH // 2, 1))


def _rotary(net, frequencies, positions):
    """What _rotate needs: cosines and sines, [batch, 1, count, HEAD_WIDTH]."""
    angles = net.MatMul(frequencies, net.Cast(net.Unsqueeze(positions, net.ints([1])), to=FLOAT))
    angles = net.swap_last(angles)
    angles = net.Concat(angles, angles, axis=-1)
    cosines = net.Unsqueeze(net.Cos(angles), net.ints([1]))
    return cosines, net.Unsqueeze(net.Sin(angles), net.ints([1]))


def _rotate(net, x, cosines, sines):
    half = HEAD_WIDTH // 2
    straight = net.Mul(x, cosines)
    crossed = net.Concat(net.Neg(net.slice(x, half, TO_END, 3)), net.slice(x, 0, half, 3), axis=-1)
    return net.Add(straight, net.Mul(crossed, sines))


def _llama(net, count, past):
    width = 384
    heads = 6
    groups = 2

    def project(x, parts):
        y = net.linear(x, width, parts * HEAD_WIDTH, bias=False)
        return net.split_heads(y, count, parts, HEAD_WIDTH)

    def repeat(x):
        """Each group's head for all heads that share it."""
        y = net.Unsqueeze(x, net.ints([2]))
        y = net.Expand(y, net.ints([1, groups, heads // groups, count + past, HEAD_WIDTH]))
        return net.reshape(y, 1, heads, count + past, HEAD_WIDTH)

    ids = net.input("input_ids", [1, count], INT64, between=IDS)
    positions = net.input("position_ids", [1, count], INT64, between=POSITIONS)
    x = net.Gather(net.weights(VOCABULARY, width), ids)
    cosines, sines = _rotary(net, _rotary_frequencies(net), positions)
    mask = _causal_mask(net, count, past)
    for layer in range(6):
        y = net.rms_norm(x, width)
        queries = project(y, heads)
        keys = project(y, groups)
        values = project(y, groups)
        queries = _rotate(net, queries, cosines, sines)
        keys = _rotate(net, keys, cosines, sines)
        keys, values = _with_past(net, layer, keys, values, groups, past)
        scores = net.MatMul(queries, net.transpose(repeat(keys), 0, 1, 3, 2))
        scores = net.Mul(scores, net.constant(0.125))
        weights = net.Softmax(net.Add(scores, mask), axis=-1)
        mixed = net.MatMul(weights, repeat(values))
        y = net.join_heads(mixed, 1, count, width)
        x = net.Add(x, net.linear(y, width, width, bias=False))
        x = net.Add(x, net.gated_feed_forward(net.rms_norm(x, width), width, 1024, net.silu))
    net.output(net.linear(net.rms_norm(x, width), width, VOCABULARY, bias=False))


@architecture
def llama_64(net):
    """Llama (Touvron et al. 2023), 6 layers of 384, 6 heads of 2 groups, fixed shapes: prefill of 64 tokens."""
    _llama(net, 64, 0)


@architecture
def llama_decode(net):
    """Llama (Touvron et al. 2023), 6 layers of 384, 6 heads of 2 groups, fixed shapes: a token after 128."""
    _llama(net, 1, 128)


class FreeShapes:
    """Shapes that are computed while the model runs, one dim at a time, as torch.onnx.export (TorchScript) does it."""

    def __init__(self, net):
        self.net = net

    def number(self, x, index):
        """The dim as a scalar."""
        return self.net.pick(self.net.Shape(x), index)

    def dim(self, x, index):
        """The dim as a list of one."""
        return self.net.Unsqueeze(self.number(x, index), self.net.ints([0]))

    def shape(self, *dims):
        """From lists of one, and integers."""
        return self.net.Concat(*[self.net.ints([d]) if isinstance(d, int) else d for d in dims], axis=0)

    def repeat_heads(self, x, times):
        """Each head `times` times, as repeat_kv() of Hugging Face: Expand, whose -1 would keep a dim."""
        net = self.net
        batch, heads, count, width = [self.dim(x, i) for i in range(4)]
        y = net.Unsqueeze(x, net.ints([2]))
        target = self.shape(batch, heads, times, count, width)
        ones = net.ConstantOfShape(net.ints([5]), value=helper.make_tensor("v", INT64, [1], [1]))
        keeps = net.Equal(target, net.Mul(ones, net.ints(-1)))
        y = net.Expand(y, net.Where(keeps, ones, target))
        all_heads = net.Unsqueeze(net.Mul(self.number(x, 1), net.ints(times)), net.ints([0]))
        return net.Reshape(y, self.shape(batch, all_heads, count, width))


def _free_causal_mask(net, shapes, ids, past_keys, attention_mask):
    """[batch, 1, seq, total]: rows past to past + seq, columns 0 to total, and what attention_mask leaves out."""
    past = shapes.number(past_keys, 2)
    total = net.Add(past, shapes.number(ids, 1))
    columns = net.Range(net.ints(0), total, net.ints(1))
    rows = net.Range(past, total, net.ints(1))
    is_later = net.Greater(net.Unsqueeze(columns, net.ints([0])), net.Unsqueeze(rows, net.ints([1])))
    mask = net.Where(is_later, net.constant(FLOAT_LOWEST), net.constant(0.0))
    padding = net.Cast(net.Sub(net.ints(1), attention_mask), to=FLOAT)
    padding = net.Mul(padding, net.constant(-3.4e38))
    mask = net.Unsqueeze(mask, net.ints([0, 1]))
    mask = net.Add(mask, net.Unsqueeze(padding, net.ints([1, 2])))
    return net.Max(mask, net.constant(FLOAT_LOWEST))


def _free_attention(net, shapes, x, past, rotary, mask):
    """Heads of x, 8 of 2 groups, behind the keys and values in `past`."""
    width = 512
    heads = 8
    groups = 2
    batch = shapes.dim(x, 0)
    count = shapes.dim(x, 1)

    def project(parts):
        y = net.linear(x, width, parts * HEAD_WIDTH)
        return net.transpose(net.Reshape(y, shapes.shape(batch, count, -1, HEAD_WIDTH)), 0, 2, 1, 3)

    queries = project(heads)
    keys = project(groups)
    values = project(groups)
    queries = _rotate(net, queries, *rotary)
    keys = _rotate(net, keys, *rotary)
    keys = net.Concat(past[0], keys, axis=-2)
    values = net.Concat(past[1], values, axis=-2)
    net.output(keys, values)
    scores = net.MatMul(queries, net.transpose(shapes.repeat_heads(keys, heads // groups), 0, 1, 3, 2))
    scores = net.Div(scores, net.constant(8.0))
    scores = net.Add(scores, net.Slice(mask, net.ints([0]), shapes.dim(keys, 2), net.ints([3]), net.ints([1])))
    weights = net.Softmax(scores, axis=-1)
    mixed = net.MatMul(weights, shapes.repeat_heads(values, heads // groups))
    y = net.Reshape(net.transpose(mixed, 0, 2, 1, 3), shapes.shape(batch, count, heads * HEAD_WIDTH))
    return net.linear(y, heads * HEAD_WIDTH, width, bias=False)


@architecture
def hf_llama(net):
    """Hugging Face's Llama and Qwen2, exported by TorchScript, 4 layers of 512: free batch, sequence and past."""
    layers = 4
    width = 512
    groups = 2
    shapes = FreeShapes(net)
    ids = net.input("input_ids", ["batch", "seq"], INT64, between=IDS)
    attention_mask = net.input("attention_mask", ["batch", "total"], INT64, between=(1, 1))
    positions = net.input("position_ids", ["batch", "seq"], INT64, between=POSITIONS)
    net.dims = {"batch": 1, "seq": 1, "past": 255, "total": 256}
    past_shape = ["batch", groups, "past", HEAD_WIDTH]
    pasts = [[net.input(f"past_key_values.{i}.{part}", past_shape) for part in ("key", "value")]
             for i in range(layers)]
    x = net.Gather(net.weights(VOCABULARY, width, fan=1), ids)
    frequencies = _rotary_frequencies(net)
    frequencies = net.Expand(frequencies, shapes.shape(shapes.dim(positions, 0), HEAD_WIDTH // 2, 1))
    rotary = _rotary(net, frequencies, positions)
    mask = _free_causal_mask(net, shapes, ids, pasts[0][0], attention_mask)
    for past in pasts:
        y = net.rms_norm(x, width)
        x = net.Add(x, _free_attention(net, shapes, y, past, rotary, mask))
        x = net.Add(x, net.gated_feed_forward(net.rms_norm(x, width), width, 1408, net.silu))
    net.output(net.linear(net.rms_norm(x, width), width, VOCABULARY, bias=False))
