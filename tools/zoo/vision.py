"""Backbones and embeddings of images since 2020: other mixers of tokens, other normalizations, gates and positions.

Those whose batch is free are shaped by -1 and 0, as exporters write what they know of a shape.
"""

import math

import numpy as np

from network import BRANCH_GAIN, RELU_GAIN, TO_END
from registry import architecture

SMALLEST_NORM = 1e-12  # what torch.nn.functional.normalize divides by at least


def _normalize(net, x):
    """Rows of length 1, as torch.nn.functional.normalize is exported."""
    norm = net.ReduceL2(x, axes=[-1], keepdims=1)
    norm = net.Clip(norm, net.constant(SMALLEST_NORM))
    return net.Div(x, net.Expand(norm, net.Shape(x)))


def _relu6_gate(net, x):
    """hard_sigmoid, where it is written out."""
    y = net.Clip(net.Add(x, net.constant(3.0)), net.constant(0.0), net.constant(6.0))
    return net.Div(y, net.constant(6.0))


# Convolutions -------------------------------------------------------------------------------------------------------


def _prelu(net, x, channels):
    return net.PRelu(x, net.constant(0.25 + 0.05 * net.rng.standard_normal((channels, 1, 1))))


@architecture
def arcface(net):
    """ArcFace (Deng et al. 2019), IResNet-18 half as wide: PRelu, a row of length 1; 112 x 112, free batch."""
    x = net.input("input.1", ["n", 3, 112, 112])
    net.dims = {"n": 1}
    x = _prelu(net, net.conv(x, 3, 32, 3), 32)
    channels = 32
    for width in (32, 64, 128, 256):
        for i in range(2):
            stride = 2 if i == 0 else 1
            y = _prelu(net, net.conv(net.batch_norm(x, channels), channels, width, 3), width)
            y = net.conv(y, width, width, 3, stride, gain=BRANCH_GAIN)
            shortcut = net.conv(x, channels, width, 1, stride) if i == 0 else x
            x = net.Add(y, shortcut)
            channels = width
    x = net.Flatten(net.batch_norm(x, channels))
    x = net.batch_norm(net.gemm(x, 49 * channels, 256), 256)
    net.output(_normalize(net, x))


def _ghost_module(net, x, channels, width, has_relu):
    """Half of the channels by a product, half from these by a depthwise convolution."""
    half = (width + 1) // 2
    gain = RELU_GAIN if has_relu else BRANCH_GAIN
    primary = net.conv(x, channels, half, 1, gain=gain)
    primary = net.Relu(primary) if has_relu else primary
    cheap = net.conv(primary, half, half, 3, groups=half, gain=gain)
    cheap = net.Relu(cheap) if has_relu else cheap
    return net.slice(net.Concat(primary, cheap, axis=1), 0, width, 1)


def _ghost_gate(net, x, channels):
    squeezed = (channels // 4 + 3) // 4 * 4
    y = net.ReduceMean(x, axes=[2, 3], keepdims=1)
    y = net.conv(net.Relu(net.conv(y, channels, squeezed, 1)), squeezed, channels, 1)
    return net.Mul(x, _relu6_gate(net, y))


@architecture
def ghostnet(net):
    """GhostNet (Han et al. 2020): half of the features computed from the other half; 224 x 224."""
    x = net.conv_relu(net.input("x", [1, 3, 224, 224]), 3, 16, 3, 2)
    channels = 16
    blocks = [(3, 16, 16, False, 1), (3, 48, 24, False, 2), (3, 72, 24, False, 1), (5, 72, 40, True, 2),
              (5, 120, 40, True, 1), (3, 240, 80, False, 2), (3, 200, 80, False, 1), (3, 184, 80, False, 1),
              (3, 184, 80, False, 1), (3, 480, 112, True, 1), (3, 672, 112, True, 1), (5, 672, 160, True, 2),
              (5, 960, 160, False, 1), (5, 960, 160, True, 1), (5, 960, 160, False, 1), (5, 960, 160, True, 1)]
    for kernel, hidden, width, has_gate, stride in blocks:
        y = _ghost_module(net, x, channels, hidden, has_relu=True)
        if stride > 1:
            y = net.conv(y, hidden, hidden, kernel, stride, groups=hidden, gain=1.0)
        if has_gate:
            y = _ghost_gate(net, y, hidden)
        y = _ghost_module(net, y, hidden, width, has_relu=False)
        if stride > 1 or channels != width:
            x = net.conv(x, channels, channels, kernel, stride, groups=channels, gain=1.0)
            x = net.conv(x, channels, width, 1, gain=1.0)
        x = net.Add(y, x)
        channels = width
    x = net.GlobalAveragePool(net.conv_relu(x, channels, 960, 1))
    x = net.Flatten(net.conv_relu(x, 960, 1280, 1))
    net.output(net.gemm(x, 1280, 1000))


@architecture
def mobileone_training(net):
    """MobileOne (Vasu et al. 2023), shallow, not fused: sums of BatchNormalization; 224 x 224."""

    def branches(x, channels, width, kernel, stride, groups):
        """One of the size, one of 1 x 1, and the input where it fits, each normalized."""
        parts = []
        if stride == 1 and channels == width:
            parts.append(net.batch_norm(x, channels))
        for size in sorted({1, kernel}):
            y = net.conv(x, channels, width, size, stride, groups=groups, bias=False)
            parts.append(net.batch_norm(y, width))
        total = parts[0]
        for part in parts[1:]:
            total = net.Add(total, part)
        return net.Relu(net.Mul(total, net.constant(1 / math.sqrt(len(parts)))))

    x = net.input("x", [1, 3, 224, 224])
    x = branches(x, 3, 48, 3, 2, 1)
    channels = 48
    for width, count in ((48, 1), (128, 3), (256, 4), (512, 1)):
        for i in range(count):
            x = branches(x, channels, channels, 3, 2 if i == 0 else 1, channels)
            x = branches(x, channels, width, 1, 1, 1)
            channels = width
    net.output(net.classifier(x, channels))


@architecture
def convnext_v2(net):
    """ConvNeXt V2 Atto (Woo et al. 2023): responses divided by their mean over channels (GRN); 224 x 224."""

    def image_norm(x, channels):
        """Written out, over the channels of an image."""
        centered = net.Sub(x, net.ReduceMean(x, axes=[1], keepdims=1))
        variance = net.ReduceMean(net.Pow(centered, net.constant(2.0)), axes=[1], keepdims=1)
        y = net.Div(centered, net.Sqrt(net.Add(variance, net.constant(1e-6))))
        factors, terms = [net.reshape(values, channels, 1, 1) for values in (net.scale(channels), net.bias(channels))]
        return net.Add(net.Mul(factors, y), terms)

    def response_norm(x, width):
        norm = net.ReduceL2(x, axes=[1, 2], keepdims=1)
        mean = net.ReduceMean(norm, axes=[-1], keepdims=1)
        y = net.Mul(x, net.Div(norm, net.Add(mean, net.constant(1e-6))))
        return net.Add(net.Add(net.Mul(net.bias(width), y), net.bias(width)), x)

    x = image_norm(net.conv(net.input("x", [1, 3, 224, 224]), 3, 40, 4, 4, padding=0), 40)
    channels = 40
    for count, width in ((2, 40), (2, 80), (6, 160), (2, 320)):
        if width != channels:
            x = net.conv(image_norm(x, channels), channels, width, 2, 2, padding=0)
            channels = width
        for _ in range(count):
            y = net.channels_last(net.conv(x, channels, channels, 7, groups=channels))
            y = net.gelu(net.linear(net.layer_norm(y, channels), channels, 4 * channels))
            y = net.linear(response_norm(y, 4 * channels), 4 * channels, channels)
            x = net.Add(x, net.channels_first(y))
    x = net.layer_norm(net.ReduceMean(x, axes=[-2, -1], keepdims=0), channels)
    net.output(net.gemm(x, channels, 1000))


@architecture
def efficientformer(net):
    """EfficientFormer-L1 (Li et al. 2022): pooling minus the input, then attention with biases; 224 x 224."""

    def scaled(x, channels):
        return net.Mul(net.reshape(net.bias(channels), channels, 1, 1), x)

    def pooling_block(x, channels):
        pooled = net.AveragePool(x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4, count_include_pad=0)
        x = net.Add(x, scaled(net.Sub(pooled, x), channels))
        y = net.conv(net.gelu(net.conv(x, channels, 4 * channels, 1)), 4 * channels, channels, 1)
        return net.Add(x, scaled(y, channels))

    def attention_block(x, width):
        heads, key_width, value_width = 8, 32, 128
        y = net.linear(net.layer_norm(x, width), width, heads * (2 * key_width + value_width))
        y = net.reshape(y, 1, 49, heads, 2 * key_width + value_width)
        queries, keys, values = net.split(y, [key_width, key_width, value_width], axis=3)
        scores = net.MatMul(net.transpose(queries, 0, 2, 1, 3), net.transpose(keys, 0, 2, 3, 1))
        row, column = np.divmod(np.arange(49), 7)
        places = np.abs(row[:, None] - row) * 7 + np.abs(column[:, None] - column)
        biases = net.pick(net.weights(heads, 49, fan=49), places, axis=1)
        scores = net.Add(net.Mul(scores, net.constant(key_width**-0.5)), biases)
        y = net.attend(scores, net.transpose(values, 0, 2, 1, 3))
        y = net.linear(net.join_heads(y, 1, 49, heads * value_width), heads * value_width, width)
        x = net.Add(x, net.Mul(net.bias(width), y))
        return net.Add(x, net.Mul(net.bias(width), net.feed_forward(net.layer_norm(x, width), width, 4 * width)))

    x = net.conv_relu(net.conv_relu(net.input("x", [1, 3, 224, 224]), 3, 24, 3, 2), 24, 48, 3, 2)
    channels = 48
    for count, width in ((3, 48), (2, 96), (6, 224), (3, 448)):
        if width != channels:
            x = net.conv(x, channels, width, 3, 2)
            channels = width
        for _ in range(count):
            x = pooling_block(x, channels)
    x = net.image_to_tokens(x, channels, 49)
    x = attention_block(x, channels)
    x = net.ReduceMean(net.layer_norm(x, channels), axes=[1], keepdims=0)
    net.output(net.gemm(x, channels, 1000))


# Attention ----------------------------------------------------------------------------------------------------------


def _relative_places(side):
    """Of pairs of pixels of a square, where their distance is in a table of (2 * side - 1)^2."""
    places = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij")).reshape(2, -1)
    distance = places[:, :, None] - places[:, None, :] + side - 1
    return distance[0] * (2 * side - 1) + distance[1]


def _table_bias(net, table, side, heads):
    """[heads, side^2, side^2], gathered as it runs: exporters keep that."""
    rows = net.pick(table, _relative_places(side).reshape(-1))
    return net.transpose(net.reshape(rows, side * side, side * side, heads), 2, 0, 1)


def _maxvit_attention(net, x, width, side, is_grid):
    """Of windows of 7 x 7, or of grids of 7 x 7 pixels from all over the image."""
    parts = side // 7
    heads = width // 32
    y = net.layer_norm(x, width)
    if is_grid:
        y = net.transpose(net.reshape(y, 1, 7, parts, 7, parts, width), 0, 2, 4, 1, 3, 5)
    else:
        y = net.transpose(net.reshape(y, 1, parts, 7, parts, 7, width), 0, 1, 3, 2, 4, 5)
    y = net.reshape(y, -1, 49, width)
    y = net.reshape(net.linear(y, width, 3 * width), parts * parts, 49, heads, 96)
    queries, keys, values = net.split(net.transpose(y, 0, 2, 1, 3), [32, 32, 32], axis=3)
    scores = net.MatMul(net.Mul(queries, net.constant(32**-0.5)), net.transpose(keys, 0, 1, 3, 2))
    bias = _table_bias(net, net.weights(169, heads, fan=4), 7, heads)
    y = net.attend(net.Add(scores, net.Unsqueeze(bias, net.ints([0]))), values)
    y = net.linear(net.join_heads(y, -1, 7, 7, width), width, width)
    y = net.reshape(y, 1, parts, parts, 7, 7, width)
    y = net.transpose(y, *((0, 3, 1, 4, 2, 5) if is_grid else (0, 1, 3, 2, 4, 5)))
    x = net.Add(x, net.reshape(y, 1, side, side, width))
    hidden = net.gelu_tanh(net.linear(net.layer_norm(x, width), width, 4 * width))
    return net.Add(x, net.linear(hidden, 4 * width, width))


@architecture
def maxvit(net):
    """MaxViT-T (Tu et al. 2022), half as wide, a block a stage: attention in windows, then in grids; 224 x 224."""
    x = net.gelu_tanh(net.conv(net.input("x", [1, 3, 224, 224]), 3, 32, 3, 2))
    x = net.conv(x, 32, 32, 3)
    channels = 32
    side = 112
    for width in (32, 64, 128, 256):
        side //= 2
        hidden = 4 * width
        shortcut = net.AveragePool(x, kernel_shape=[2, 2], strides=[2, 2])
        if channels != width:
            shortcut = net.conv(shortcut, channels, width, 1)
        y = net.gelu_tanh(net.conv(net.batch_norm(x, channels), channels, hidden, 1))
        y = net.gelu_tanh(net.conv(y, hidden, hidden, 3, 2, groups=hidden))
        y = net.squeeze_excite(y, hidden, width // 4, activation=net.silu)
        x = net.channels_last(net.Add(net.conv(y, hidden, width, 1, gain=BRANCH_GAIN), shortcut))
        x = _maxvit_attention(net, x, width, side, is_grid=False)
        x = net.channels_first(_maxvit_attention(net, x, width, side, is_grid=True))
        channels = width
    x = net.Flatten(net.GlobalAveragePool(x))
    x = net.Tanh(net.gemm(net.layer_norm(x, channels), channels, channels))
    net.output(net.gemm(x, channels, 1000))


def _roll(net, x, shift, side):
    """torch.roll over height and width, by -shift."""
    for axis in (1, 2):
        x = net.Concat(net.slice(x, shift, TO_END, axis), net.slice(x, 0, shift, axis), axis=axis)
    return x


def _logarithmic_places(side):
    """Of a table of distances, their sign and logarithm: [1, 2 * side - 1, 2 * side - 1, 2]."""
    steps = np.arange(1 - side, side) / (side - 1) * 8
    table = np.stack(np.meshgrid(steps, steps, indexing="ij"), -1)[None]
    return (np.sign(table) * np.log2(np.abs(table) + 1) / 3).astype(np.float32)


def _cosine_attention(net, x, width, count):
    """Of windows of 8 x 8: products of rows of length 1, and a bias that a small network makes of distances."""
    heads = width // 32
    bias = net.Concat(net.bias(width), net.constant(np.zeros(width, np.float32)), net.bias(width), axis=0)
    y = net.Add(net.linear(x, width, 3 * width, bias=False), bias)
    y = net.transpose(net.reshape(y, -1, 64, 3, heads, 32), 2, 0, 3, 1, 4)
    queries, keys, values = [net.pick(y, i) for i in range(3)]
    scores = net.MatMul(_normalize(net, queries), net.transpose(_normalize(net, keys), 0, 1, 3, 2))
    scale = net.constant(np.full((heads, 1, 1), math.log(10), np.float32))
    scores = net.Mul(scores, net.Exp(net.Clip(scale, "", net.constant(math.log(100)))))
    table = net.Relu(net.linear(net.constant(_logarithmic_places(8)), 2, 512))
    table = net.reshape(net.linear(table, 512, heads, bias=False), -1, heads)
    bias = net.Mul(net.Sigmoid(_table_bias(net, table, 8, heads)), net.constant(16.0))
    scores = net.Add(scores, net.Unsqueeze(bias, net.ints([0])))
    if count > 1:
        is_masked = net.rng.random((1, count, 1, 64, 64)) < 0.2
        mask = net.constant(np.where(is_masked, -100, 0).astype(np.float32))
        scores = net.Add(net.reshape(scores, -1, count, heads, 64, 64), mask)
        scores = net.reshape(scores, -1, heads, 64, 64)
    y = net.join_heads(net.attend(scores, values), -1, 64, width)
    return net.linear(y, width, width)


@architecture
def swin_v2(net):
    """Swin V2-T (Liu et al. 2022), 64 wide, 2 layers a stage: attention by cosines, biases computed; 256 x 256."""
    width = 64
    side = 64
    x = net.conv(net.input("x", [1, 3, 256, 256]), 3, width, 4, 4, padding=0)
    x = net.layer_norm(net.channels_last(x), width)
    for stage in range(4):
        for i in range(2):
            windows = side // 8
            is_shifted = i == 1 and windows > 1
            y = _roll(net, x, 4, side) if is_shifted else x
            y = net.transpose(net.reshape(y, -1, windows, 8, windows, 8, width), 0, 1, 3, 2, 4, 5)
            y = net.reshape(y, -1, 64, width)
            y = _cosine_attention(net, y, width, windows * windows if is_shifted else 1)
            y = net.transpose(net.reshape(y, -1, windows, windows, 8, 8, width), 0, 1, 3, 2, 4, 5)
            y = net.reshape(y, -1, side, side, width)
            y = _roll(net, y, side - 4, side) if is_shifted else y
            x = net.Add(x, net.layer_norm(y, width))
            x = net.Add(x, net.layer_norm(net.feed_forward(x, width, 4 * width), width))
        if stage < 3:
            side //= 2
            x = net.reshape(net.transpose(net.reshape(x, -1, side, 2, side, 2, width), 0, 1, 3, 4, 2, 5),
                            -1, side, side, 4 * width)
            x = net.layer_norm(net.linear(x, 4 * width, 2 * width, bias=False), 2 * width)
            width *= 2
    x = net.ReduceMean(net.layer_norm(x, width), axes=[1, 2], keepdims=0)
    net.output(net.gemm(x, width, 1000))
