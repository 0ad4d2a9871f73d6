"""Classifiers of images and of video.

Batch normalization is folded into the convolution before it, where there is one, as exporters do it.
"""

import numpy as np

from network import BRANCH_GAIN, TO_END
from registry import architecture


def _stem(net):
    """The first layers of ResNet and its kin: [1, 64, 56, 56]."""
    x = net.conv_relu(net.input("x", [1, 3, 224, 224]), 3, 64, 7, 2)
    return net.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


@architecture
def efficientnet_b0(net):
    """EfficientNet-B0 (Tan, Le 2019): inverted bottlenecks with squeeze and excitation, SiLU; 224 x 224."""
    x = net.conv_silu(net.input("x", [1, 3, 224, 224]), 3, 32, 3, 2)
    channels = 32
    stages = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
              (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]
    for expansion, width, count, first_stride, kernel in stages:
        for i in range(count):
            hidden = channels * expansion
            y = x
            if expansion > 1:
                y = net.conv_silu(y, channels, hidden, 1)
            y = net.conv_silu(y, hidden, hidden, kernel, first_stride if i == 0 else 1, groups=hidden)
            y = net.squeeze_excite(y, hidden, channels // 4, activation=net.silu)
            y = net.conv(y, hidden, width, 1)
            x = net.Add(y, x) if i > 0 else y
            channels = width
    x = net.conv_silu(x, channels, 1280, 1)
    net.output(net.classifier(x, 1280))


@architecture
def mobilenet_v3(net):
    """MobileNetV3-Large (Howard et al. 2019): inverted bottlenecks with HardSwish and HardSigmoid; 224 x 224."""

    def hard_sigmoid(x):
        return net.HardSigmoid(x, alpha=1 / 6)

    x = net.HardSwish(net.conv(net.input("x", [1, 3, 224, 224]), 3, 16, 3, 2))
    channels = 16
    relu = net.Relu
    swish = net.HardSwish
    blocks = [(3, 16, 16, False, relu, 1), (3, 64, 24, False, relu, 2), (3, 72, 24, False, relu, 1),
              (5, 72, 40, True, relu, 2), (5, 120, 40, True, relu, 1), (5, 120, 40, True, relu, 1),
              (3, 240, 80, False, swish, 2), (3, 200, 80, False, swish, 1), (3, 184, 80, False, swish, 1),
              (3, 184, 80, False, swish, 1), (3, 480, 112, True, swish, 1), (3, 672, 112, True, swish, 1),
              (5, 672, 160, True, swish, 2), (5, 960, 160, True, swish, 1), (5, 960, 160, True, swish, 1)]
    for kernel, hidden, width, has_gate, activation, stride in blocks:
        y = x
        if hidden != channels:
            y = activation(net.conv(y, channels, hidden, 1))
        y = activation(net.conv(y, hidden, hidden, kernel, stride, groups=hidden))
        if has_gate:
            y = net.squeeze_excite(y, hidden, hidden // 4, gate=hard_sigmoid)
        y = net.conv(y, hidden, width, 1)
        x = net.Add(y, x) if stride == 1 and width == channels else y
        channels = width
    x = net.Flatten(net.GlobalAveragePool(net.HardSwish(net.conv(x, channels, 960, 1))))
    x = net.HardSwish(net.gemm(x, 960, 1280))
    net.output(net.gemm(x, 1280, 1000))


@architecture
def densenet121(net):
    """DenseNet-121 (Huang et al. 2017): blocks whose layers read all before them; 224 x 224."""
    x = _stem(net)
    channels = 64
    for block, count in enumerate((6, 12, 24, 16)):
        features = [x]
        for i in range(count):
            y = net.Concat(*features, axis=1) if i > 0 else x
            y = net.Relu(net.batch_norm(y, channels))
            y = net.conv_relu(y, channels, 128, 1)
            features.append(net.conv(y, 128, 32, 3, bias=False))
            channels += 32
        x = net.Concat(*features, axis=1)
        if block < 3:
            x = net.Relu(net.batch_norm(x, channels))
            x = net.conv(x, channels, channels // 2, 1, bias=False)
            x = net.AveragePool(x, kernel_shape=[2, 2], strides=[2, 2])
            channels //= 2
    x = net.Relu(net.batch_norm(x, channels))
    net.output(net.classifier(x, channels))


@architecture
def resnext50(net):
    """ResNeXt-50 32x4d (Xie et al. 2017): ResNet with convolutions in 32 groups; 224 x 224."""
    x = _stem(net)
    channels = 64
    for count, width, first_stride in ((3, 128, 1), (4, 256, 2), (6, 512, 2), (3, 1024, 2)):
        for i in range(count):
            stride = first_stride if i == 0 else 1
            y = net.conv_relu(x, channels, width, 1)
            y = net.conv_relu(y, width, width, 3, stride, groups=32)
            y = net.conv(y, width, 2 * width, 1, gain=BRANCH_GAIN)
            shortcut = net.conv(x, channels, 2 * width, 1, stride) if i == 0 else x
            x = net.Relu(net.Add(y, shortcut))
            channels = 2 * width
    net.output(net.classifier(x, channels))


@architecture
def regnet_y(net):
    """RegNetY-400MF (Radosavovic et al. 2020), its last stage one block: groups of 8, gates; 224 x 224."""
    x = net.conv_relu(net.input("x", [1, 3, 224, 224]), 3, 32, 3, 2)
    channels = 32
    for count, width in ((1, 48), (3, 104), (6, 208), (1, 440)):
        for i in range(count):
            stride = 2 if i == 0 else 1
            y = net.conv_relu(x, channels, width, 1)
            y = net.conv_relu(y, width, width, 3, stride, groups=width // 8)
            y = net.squeeze_excite(y, width, channels // 4)
            y = net.conv(y, width, width, 1)
            shortcut = net.conv(x, channels, width, 1, stride) if i == 0 else x
            x = net.Relu(net.Add(y, shortcut))
            channels = width
    net.output(net.classifier(x, channels))


@architecture
def convnext_tiny(net):
    """ConvNeXt-T (Liu et al. 2022): 7 x 7 depthwise, LayerNormalization, GELU, layer scale; 224 x 224."""

    def image_norm(x, channels):
        return net.channels_first(net.layer_norm(net.channels_last(x), channels))

    x = net.conv(net.input("x", [1, 3, 224, 224]), 3, 96, 4, 4, padding=0)
    x = image_norm(x, 96)
    channels = 96
    for stage, (count, width) in enumerate(((3, 96), (3, 192), (9, 384), (3, 768))):
        if stage > 0:
            x = net.conv(image_norm(x, channels), channels, width, 2, 2, padding=0)
            channels = width
        for _ in range(count):
            y = net.channels_last(net.conv(x, channels, channels, 7, groups=channels))
            y = net.feed_forward(net.layer_norm(y, channels), channels, 4 * channels)
            y = net.channels_first(net.Mul(net.bias(channels), y))
            x = net.Add(x, y)
    x = net.Flatten(net.GlobalAveragePool(x))
    net.output(net.gemm(net.layer_norm(x, channels), channels, 1000))


@architecture
def vit_small(net):
    """ViT-S/16 (Dosovitskiy et al. 2021; Touvron et al. 2021): 12 layers of 384, 197 tokens; 224 x 224."""
    width = 384
    x = net.conv(net.input("x", [1, 3, 224, 224]), 3, width, 16, 16, padding=0)
    x = net.image_to_tokens(x, width, 196)
    x = net.Concat(net.weights(1, 1, width), x, axis=1)
    x = net.Add(x, net.weights(1, 197, width))
    for _ in range(12):
        queries, keys, values = net.packed_heads(net.layer_norm(x, width), 1, 197, width, 6)
        keys = net.transpose(keys, 0, 1, 3, 2)
        queries = net.Mul(queries, net.constant(64**-0.5))
        y = net.attend(net.MatMul(queries, keys), values)
        x = net.Add(x, net.linear(net.join_heads(y, 1, 197, width), width, width))
        x = net.Add(x, net.feed_forward(net.layer_norm(x, width), width, 4 * width))
    x = net.pick(net.layer_norm(x, width), 0, axis=1)
    net.output(net.gemm(x, width, 1000))


def _roll(net, x, shift, side):
    """torch.roll over height and width, by -shift."""
    for axis in (1, 2):
        x = net.Concat(net.slice(x, shift % side, TO_END, axis), net.slice(x, 0, shift % side, axis), axis=axis)
    return x


def _swin_attention(net, x, channels, windows, shift):
    """Of each of the windows^2 windows of 7 x 7 to itself, with positions, and with a mask where they are shifted."""
    count = windows * windows
    heads = channels // 32
    y = net.reshape(x, 1, windows, 7, windows, 7, channels)
    y = net.reshape(net.transpose(y, 0, 1, 3, 2, 4, 5), count, 49, channels)
    queries, keys, values = net.packed_heads(y, count, 49, channels, heads)
    queries = net.Mul(queries, net.constant(32**-0.5))
    scores = net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2))
    scores = net.Add(scores, net.weights(1, heads, 49, 49))
    if shift:
        scores = net.reshape(scores, 1, count, heads, 49, 49)
        is_masked = net.rng.random((1, count, 1, 49, 49)) < 0.2
        scores = net.Add(scores, net.constant(np.where(is_masked, -100, 0).astype(np.float32)))
        scores = net.reshape(scores, count, heads, 49, 49)
    y = net.join_heads(net.attend(scores, values), count, 49, channels)
    y = net.linear(y, channels, channels)
    y = net.reshape(y, 1, windows, windows, 7, 7, channels)
    return net.reshape(net.transpose(y, 0, 1, 3, 2, 4, 5), 1, 7 * windows, 7 * windows, channels)


@architecture
def swin_tiny(net):
    """Swin-T (Liu et al. 2021): attention in windows of 7 x 7, shifted in every second layer; 224 x 224."""
    channels = 96
    side = 56
    x = net.conv(net.input("x", [1, 3, 224, 224]), 3, channels, 4, 4, padding=0)
    x = net.layer_norm(net.channels_last(x), channels)
    for stage, count in enumerate((2, 2, 6, 2)):
        for i in range(count):
            shift = 3 if i % 2 == 1 and side > 7 else 0
            y = net.layer_norm(x, channels)
            if shift:
                y = _roll(net, y, shift, side)
            y = _swin_attention(net, y, channels, side // 7, shift)
            if shift:
                y = _roll(net, y, side - shift, side)
            x = net.Add(x, y)
            x = net.Add(x, net.feed_forward(net.layer_norm(x, channels), channels, 4 * channels))
        if stage < 3:
            corners = [net.slice(net.slice(x, row, TO_END, 1, 2), column, TO_END, 2, 2)
                       for column in (0, 1) for row in (0, 1)]
            x = net.layer_norm(net.Concat(*corners, axis=-1), 4 * channels)
            x = net.linear(x, 4 * channels, 2 * channels, bias=False)
            channels *= 2
            side //= 2
    x = net.ReduceMean(net.layer_norm(x, channels), axes=[1, 2], keepdims=0)
    net.output(net.gemm(x, channels, 1000))


@architecture
def mlp_mixer(net):
    """MLP-Mixer (Tolstikhin et al. 2021), 6 layers of 256: products over tokens and over channels; 224 x 224."""
    width = 256
    tokens = 196
    x = net.conv(net.input("x", [1, 3, 224, 224]), 3, width, 16, 16, padding=0)
    x = net.image_to_tokens(x, width, tokens)
    for _ in range(6):
        y = net.swap_last(net.layer_norm(x, width))
        y = net.feed_forward(y, tokens, 128)
        x = net.Add(x, net.swap_last(y))
        x = net.Add(x, net.feed_forward(net.layer_norm(x, width), width, 1024))
    x = net.ReduceMean(net.layer_norm(x, width), axes=[1], keepdims=0)
    net.output(net.gemm(x, width, 1000))


def _inverted_residual(net, x, channels, width, stride):
    hidden = 4 * channels
    y = net.conv_silu(x, channels, hidden, 1)
    y = net.conv_silu(y, hidden, hidden, 3, stride, groups=hidden)
    y = net.conv(y, hidden, width, 1)
    return net.Add(x, y) if stride == 1 and channels == width else y


def _mobilevit_block(net, x, channels, width, side, layers):
    """A transformer over the patches of 2 x 2 pixels: pixels of the same place in their patches see each other."""
    half = side // 2
    patches = half * half
    y = net.conv(net.conv_silu(x, channels, channels, 3), channels, width, 1)
    y = net.transpose(net.reshape(y, width * half, 2, half, 2), 0, 2, 1, 3)
    y = net.transpose(net.reshape(y, 1, width, patches, 4), 0, 3, 2, 1)
    y = net.reshape(y, 4, patches, width)
    for _ in range(layers):
        queries, keys, values = net.packed_heads(net.layer_norm(y, width), 4, patches, width, 4)
        queries = net.Mul(queries, net.constant((width // 4) ** -0.5))
        scores = net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2))
        mixed = net.join_heads(net.attend(scores, values), 4, patches, width)
        y = net.Add(y, net.linear(mixed, width, width))
        hidden = net.silu(net.linear(net.layer_norm(y, width), width, 2 * width))
        y = net.Add(y, net.linear(hidden, 2 * width, width))
    y = net.transpose(net.reshape(net.layer_norm(y, width), 1, 4, patches, width), 0, 3, 2, 1)
    y = net.transpose(net.reshape(y, width * half, half, 2, 2), 0, 2, 1, 3)
    y = net.conv_silu(net.reshape(y, 1, width, side, side), width, channels, 1)
    return net.conv_silu(net.Concat(x, y, axis=1), 2 * channels, channels, 3)


@architecture
def mobilevit(net):
    """MobileViT-S (Mehta, Rastegari 2022), one block fewer: transformers between convolutions; 256 x 256."""
    x = net.conv_silu(net.input("x", [1, 3, 256, 256]), 3, 16, 3, 2)
    x = _inverted_residual(net, x, 16, 32, 1)
    x = _inverted_residual(net, x, 32, 64, 2)
    x = _inverted_residual(net, x, 64, 64, 1)
    x = _mobilevit_block(net, _inverted_residual(net, x, 64, 96, 2), 96, 144, 32, 2)
    x = _mobilevit_block(net, _inverted_residual(net, x, 96, 128, 2), 128, 192, 16, 4)
    x = _mobilevit_block(net, _inverted_residual(net, x, 128, 160, 2), 160, 240, 8, 3)
    net.output(net.classifier(net.conv_silu(x, 160, 640, 1), 640))


@architecture
def efficientvit_linear_attention(net):
    """EfficientViT's linear attention (Cai et al. 2023): Relu instead of Softmax; 4 layers, 1024 tokens of 128."""
    count = 1024
    width = 128
    heads = 8
    x = net.input("x", [1, count, width])
    for _ in range(4):
        queries, keys, values = [net.split_heads(net.linear(x, width, width), count, heads, width // heads)
                                 for _ in range(3)]
        queries = net.Relu(queries)
        keys = net.Relu(keys)
        values = net.Pad(values, net.ints([0] * 7 + [1]), net.constant(1.0))  # a column of ones: its product sums rows
        y = net.MatMul(queries, net.MatMul(net.transpose(keys, 0, 1, 3, 2), values))
        y = net.Div(net.slice(y, 0, -1, 3), net.Add(net.slice(y, -1, TO_END, 3), net.constant(1e-5)))
        x = net.Add(x, net.linear(net.join_heads(y, 1, count, width), width, width))
    net.output(x)


@architecture
def r3d_18(net):
    """R3D-18 (Tran et al. 2018): ResNet-18 of convolutions in three dims; 8 frames of 64 x 64."""
    x = net.input("x", [1, 3, 8, 64, 64])
    x = net.conv_relu(x, 3, 64, (3, 7, 7), (1, 2, 2), dims=3)
    channels = 64
    for width, first_stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for i in range(2):
            stride = first_stride if i == 0 else 1
            y = net.conv_relu(x, channels, width, 3, stride, dims=3)
            y = net.conv(y, width, width, 3, dims=3, gain=BRANCH_GAIN)
            shortcut = net.conv(x, channels, width, 1, stride, dims=3) if channels != width else x
            x = net.Relu(net.Add(y, shortcut))
            channels = width
    net.output(net.classifier(x, channels, 400))
