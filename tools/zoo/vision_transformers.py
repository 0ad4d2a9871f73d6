"""Transformers of images that people build upon: for segments, depth, features, and words that belong to images."""

import math

import numpy as np

from graph import INT64
from network import TO_END
from registry import architecture

HEAD_WIDTH = 64


def _normalized(net, x):
    """Rows of length 1, as x / x.norm(dim=-1, keepdim=True) is exported."""
    return net.Div(x, net.ReduceL2(x, axes=[-1], keepdims=1))


def _to_patches(net, x, width, size):
    """[batch, count, width], the count being what fits."""
    x = net.conv(x, 3, width, size, size, padding=0)
    return net.swap_last(net.reshape(x, 0, width, -1))


def _free_heads(net, x, heads, width):
    return net.transpose(net.reshape(x, 0, -1, heads, width // heads), 0, 2, 1, 3)


def _join_free_heads(net, x, width):
    return net.reshape(net.transpose(x, 0, 2, 1, 3), 0, -1, width)


# Segment Anything ---------------------------------------------------------------------------------------------------


def _axis_positions(net, size, width):
    """[size, size, width]: rows of a table by the distance of two places on an axis."""
    places = np.arange(size)[:, None] - np.arange(size) + size - 1
    return net.pick(net.weights(2 * size - 1, width, fan=width), places)


def _decomposed_positions(net, scores, queries, batch, size, width):
    """Adds to scores what queries say of the distance by rows and of that by columns."""
    places = net.reshape(queries, batch, size, size, width)
    rows = net.Einsum(places, _axis_positions(net, size, width), equation="bhwc,hkc->bhwk")
    columns = net.Einsum(places, _axis_positions(net, size, width), equation="bhwc,wkc->bhwk")
    scores = net.reshape(scores, batch, size, size, size, size)
    scores = net.Add(scores, net.Unsqueeze(rows, net.ints([-1])))
    scores = net.Add(scores, net.Unsqueeze(columns, net.ints([-2])))
    return net.reshape(scores, batch, size * size, size * size)


def _sam_attention(net, x, windows, size, width):
    count = size * size
    heads = width // HEAD_WIDTH
    y = net.reshape(net.linear(x, width, 3 * width), windows, count, 3, heads, HEAD_WIDTH)
    y = net.reshape(net.transpose(y, 2, 0, 3, 1, 4), 3, windows * heads, count, HEAD_WIDTH)
    queries, keys, values = [net.Squeeze(part, net.ints([0])) for part in net.split(y, [1, 1, 1], axis=0)]
    scores = net.MatMul(net.Mul(queries, net.constant(HEAD_WIDTH**-0.5)), net.swap_last(keys))
    scores = _decomposed_positions(net, scores, queries, windows * heads, size, HEAD_WIDTH)
    y = net.reshape(net.attend(scores, values), windows, heads, size, size, HEAD_WIDTH)
    y = net.reshape(net.transpose(y, 0, 2, 3, 1, 4), windows, size, size, width)
    return net.linear(y, width, width)


def _channel_norm(net, x, channels):
    """LayerNorm2d, written out."""
    mean = net.ReduceMean(x, axes=[1], keepdims=1)
    variance = net.ReduceMean(net.Pow(net.Sub(x, mean), net.constant(2.0)), axes=[1], keepdims=1)
    y = net.Div(net.Sub(x, mean), net.Sqrt(net.Add(variance, net.constant(1e-6))))
    factors, terms = [net.Unsqueeze(values, net.ints([1, 2])) for values in (net.scale(channels), net.bias(channels))]
    return net.Add(net.Mul(factors, y), terms)


@architecture
def sam_encoder(net):
    """Segment Anything's encoder (Kirillov et al. 2023), 4 layers of 192: windows, then all; 320 x 320."""
    width, side, size = 192, 20, 7
    padded = 21
    parts = padded // size
    x = net.channels_last(net.conv(net.input("x", [1, 3, 320, 320]), 3, width, 16, 16, padding=0))
    x = net.Add(x, net.weights(1, side, side, width))
    for layer in range(4):
        y = net.layer_norm(x, width)
        if layer == 3:
            y = _sam_attention(net, y, 1, side, width)
        else:
            y = net.Pad(y, net.ints([0] * 5 + [padded - side] * 2 + [0]), net.constant(0.0))
            y = net.transpose(net.reshape(y, 1, parts, size, parts, size, width), 0, 1, 3, 2, 4, 5)
            y = _sam_attention(net, net.reshape(y, -1, size, size, width), parts * parts, size, width)
            y = net.transpose(net.reshape(y, 1, parts, parts, size, size, width), 0, 1, 3, 2, 4, 5)
            y = net.slice(net.slice(net.reshape(y, 1, padded, padded, width), 0, side, 1), 0, side, 2)
        x = net.Add(x, y)
        x = net.Add(x, net.feed_forward(net.layer_norm(x, width), width, 4 * width))
    x = _channel_norm(net, net.conv(net.channels_first(x), width, 128, 1, bias=False), 128)
    net.output(_channel_norm(net, net.conv(x, 128, 128, 3, bias=False), 128))


# Depth --------------------------------------------------------------------------------------------------------------


def _readout_image(net, tokens, width, side):
    """What the class token knows is joined to each patch: an image."""
    patches = net.slice(tokens, 1, TO_END, 1)
    first = net.Expand(net.slice(tokens, 0, 1, 1), net.Shape(patches))
    y = net.gelu(net.linear(net.Concat(patches, first, axis=-1), 2 * width, width))
    return net.tokens_to_image(y, width, side)


def _aligned_resize(net, x, scale):
    return net.Resize(x, "", net.constant(np.array([1, 1, scale, scale], np.float32)), mode="linear",
                      coordinate_transformation_mode="align_corners")


def _fusion(net, x, finer, channels):
    """RefineNet's: residual units around a sum, then twice the size."""

    def unit(x):
        y = net.conv(net.Relu(x), channels, channels, 3)
        return net.Add(net.conv(net.Relu(y), channels, channels, 3, gain=0.5), x)

    if finer:
        x = net.Add(x, unit(finer))
    return net.conv(_aligned_resize(net, unit(x), 2), channels, channels, 1)


@architecture
def dpt_depth(net):
    """DPT (Ranftl et al. 2021), 4 layers of 192: depth from tokens of all layers, corners aligned; 224 x 224."""
    width, side, channels = 192, 14, 64
    x = net.Concat(net.weights(1, 1, width), _to_patches(net, net.input("x", [1, 3, 224, 224]), width, 16), axis=1)
    x = net.Add(x, net.weights(1, side * side + 1, width))
    levels = []
    for level in range(4):
        x = net.Add(x, net.attention(net.layer_norm(x, width), side * side + 1, width, 3))
        x = net.Add(x, net.feed_forward(net.layer_norm(x, width), width, 4 * width))
        hidden = (48, 96, 192, 384)[level]
        y = net.conv(_readout_image(net, x, width, side), width, hidden, 1)
        if level < 2:
            y = net.conv_transpose(y, hidden, hidden, 4 >> level, 4 >> level)
        if level == 3:
            y = net.conv(y, hidden, hidden, 3, 2)
        levels.append(net.conv(y, hidden, channels, 3, bias=False))
    x = _fusion(net, levels.pop(), None, channels)
    while levels:
        x = _fusion(net, x, levels.pop(), channels)
    x = _aligned_resize(net, net.conv(x, channels, 32, 3), 2)
    x = net.conv_relu(net.conv_relu(x, 32, 32, 3), 32, 1, 1)
    net.output(net.Squeeze(x, net.ints([1])))


# Features -----------------------------------------------------------------------------------------------------------


def _rotary_tables(side):
    """Cosines and sines of each patch's place, half of the width for each axis: [side^2, HEAD_WIDTH]."""
    places = (np.arange(side) + 0.5) / side * 2 - 1
    periods = 100.0 ** (np.arange(HEAD_WIDTH // 4) / (HEAD_WIDTH // 4))
    places = np.stack(np.meshgrid(places, places, indexing="ij"), -1).reshape(-1, 2)
    angles = 2 * math.pi * places[:, :, None] / periods
    angles = np.tile(angles.reshape(side * side, HEAD_WIDTH // 2), 2)
    return np.cos(angles), np.sin(angles)


def _rotate_patches(net, x, prefix_count, cosines, sines):
    """All tokens but the first few, whose place has no meaning."""
    prefix = net.slice(x, 0, prefix_count, 2)
    patches = net.slice(x, prefix_count, TO_END, 2)
    half = HEAD_WIDTH // 2
    turned = net.Concat(net.Neg(net.slice(patches, half, TO_END, 3)), net.slice(patches, 0, half, 3), axis=-1)
    patches = net.Add(net.Mul(patches, cosines), net.Mul(turned, sines))
    return net.Concat(prefix, patches, axis=2)


@architecture
def dinov3(net):
    """DINOv3 (Simeoni et al. 2025), 6 layers of 256: places as rotations, registers; 224 x 224, free batch."""
    width, side = 256, 14
    heads = width // HEAD_WIDTH
    x = _to_patches(net, net.input("pixel_values", ["batch", 3, 224, 224]), width, 16)
    net.dims = {"batch": 1}
    batch = net.Unsqueeze(net.pick(net.Shape(x), 0), net.ints([0]))
    prefixes = []
    for count in (1, 4):
        shape = net.Concat(batch, net.ints([count, width]), axis=0)
        prefixes.append(net.Expand(net.weights(1, count, width, fan=1), shape))
    x = net.Concat(*prefixes, x, axis=1)
    cosines, sines = [net.constant(table.astype(np.float32)) for table in _rotary_tables(side)]
    root = net.constant(HEAD_WIDTH**-0.25)  # of the scale, of both sides, as scaled_dot_product_attention is exported
    for _ in range(6):
        y = net.layer_norm(x, width)
        queries, keys, values = [_free_heads(net, net.linear(y, width, width, bias=part != 1), heads, width)
                                 for part in range(3)]
        queries, keys = [_rotate_patches(net, part, 5, cosines, sines) for part in (queries, keys)]
        scores = net.MatMul(net.Mul(queries, root), net.Mul(net.transpose(keys, 0, 1, 3, 2), root))
        y = net.linear(_join_free_heads(net, net.attend(scores, values), width), width, width)
        x = net.Add(x, net.Mul(y, net.bias(width)))
        y = net.layer_norm(x, width)
        hidden = net.Mul(net.silu(net.linear(y, width, 3 * width)), net.linear(y, width, 3 * width))
        x = net.Add(x, net.Mul(net.linear(hidden, 3 * width, width), net.bias(width)))
    x = net.layer_norm(x, width)
    net.output(x, net.pick(x, 0, axis=1))


# Images and words ---------------------------------------------------------------------------------------------------


def _clip_layer(net, x, width, mask=None):
    """With x * sigmoid(1.702 * x) for GELU."""
    heads = width // HEAD_WIDTH
    y = net.layer_norm(x, width)
    queries = net.Mul(net.linear(y, width, width), net.constant(HEAD_WIDTH**-0.5))
    keys, values = [net.linear(y, width, width) for _ in range(2)]
    queries, keys, values = [_free_heads(net, part, heads, width) for part in (queries, keys, values)]
    scores = net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2))
    scores = net.Add(scores, mask) if mask else scores
    x = net.Add(x, net.linear(_join_free_heads(net, net.attend(scores, values), width), width, width))
    y = net.linear(net.layer_norm(x, width), width, 4 * width)
    y = net.Mul(y, net.Sigmoid(net.Mul(y, net.constant(1.702))))
    return net.Add(x, net.linear(y, 4 * width, width))


def _clip_image(net, pixels, width):
    x = _to_patches(net, pixels, width, 32)
    batch = net.Unsqueeze(net.pick(net.Shape(pixels), 0), net.ints([0]))
    first = net.Expand(net.weights(1, 1, width), net.Concat(batch, net.ints([1, width]), axis=0))
    x = net.Add(net.Concat(first, x, axis=1), net.weights(1, 50, width))
    x = net.layer_norm(x, width)
    for _ in range(4):
        x = _clip_layer(net, x, width)
    x = net.layer_norm(net.pick(x, 0, axis=1), width)
    return _normalized(net, net.linear(x, width, 256, bias=False))


def _clip_text(net, ids, width):
    """Of each text the state at its end, which has the largest id."""
    x = net.Add(net.Gather(net.weights(4000, width, fan=1), ids), net.weights(1, 77, width, fan=1))
    mask = net.constant(np.triu(np.full((1, 1, 77, 77), np.finfo(np.float32).min, np.float32), 1))
    for _ in range(4):
        x = _clip_layer(net, x, width, mask)
    x = net.layer_norm(x, width)
    count = net.pick(net.Shape(ids), 0)
    rows = net.Range(net.ints(0), count, net.ints(1))
    ends = net.ArgMax(ids, axis=-1, keepdims=0)
    places = net.Concat(*[net.Unsqueeze(part, net.ints([-1])) for part in (rows, ends)], axis=-1)
    return _normalized(net, net.linear(net.GatherND(x, places), width, 256, bias=False))


@architecture
def clip(net):
    """CLIP (Radford et al. 2021), 4 layers of 256 and of 192: images of 224 x 224, texts of 77; free batches."""
    ids = net.input("input_ids", ["texts", 77], INT64, between=(0, 3999))
    pixels = net.input("pixel_values", ["images", 3, 224, 224])
    net.dims = {"texts": 4, "images": 1}
    image = _clip_image(net, pixels, 256)
    text = _clip_text(net, ids, 192)
    logits = net.Mul(net.MatMul(text, net.Transpose(image, perm=[1, 0])), net.Exp(net.constant(math.log(100))))
    net.output(net.Softmax(net.Transpose(logits, perm=[1, 0]), axis=-1), text, image)
