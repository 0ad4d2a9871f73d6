"""Speech and sound: recognition, synthesis, separation, noise suppression."""

import numpy as np

from network import BRANCH_GAIN
from registry import architecture


@architecture
def wav2vec2(net):
    """wav2vec 2.0 (Baevski et al. 2020), 4 layers of 384: samples by convolutions, then attention; 1 s of 16 kHz."""
    count = 16000
    width = 384
    x = net.Unsqueeze(net.input("audio", [1, count]), net.ints([1]))
    channels = 1
    for i, (kernel, stride) in enumerate(((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))):
        x = net.conv(x, channels, 256, kernel, stride, padding=0, dims=1, bias=False)
        channels = 256
        count = (count - kernel) // stride + 1
        if i == 0:
            x = net.group_norm(x, channels, [1, channels, count])
        x = net.gelu(x)
    x = net.linear(net.layer_norm(net.swap_last(x), channels), channels, width)
    positions = net.Conv(net.swap_last(x), net.weights(width, width // 16, 128), net.bias(width), kernel_shape=[128],
                         pads=[64, 64], group=16)
    positions = net.gelu(net.slice(positions, 0, -1, 2))
    x = net.layer_norm(net.Add(x, net.swap_last(positions)), width)
    for _ in range(4):
        x = net.layer_norm(net.Add(x, net.attention(x, count, width, 6)), width)
        x = net.layer_norm(net.Add(x, net.feed_forward(x, width, 4 * width)), width)
    net.output(net.linear(x, width, 32))


def _half_feed_forward(net, x, width):
    y = net.silu(net.linear(net.layer_norm(x, width), width, 4 * width))
    return net.Mul(net.linear(y, 4 * width, width), net.constant(0.5))


def _convolution_module(net, x, width):
    """Of Conformer: gated, 31 steps of each channel, back to tokens."""
    y = net.conv(net.swap_last(net.layer_norm(x, width)), width, 2 * width, 1, dims=1)
    y, gate = net.split(y, [width, width], axis=1)
    y = net.Mul(y, net.Sigmoid(gate))
    y = net.silu(net.batch_norm(net.conv(y, width, width, 31, groups=width, dims=1), width))
    return net.swap_last(net.conv(y, width, width, 1, dims=1))


@architecture
def conformer(net):
    """Conformer (Gulati et al. 2020), 4 blocks of 256: attention and depthwise convolutions of 31; 200 frames."""
    count = 200
    width = 256
    x = net.input("x", [1, count, width])
    for _ in range(4):
        x = net.Add(x, _half_feed_forward(net, x, width))
        x = net.Add(x, net.attention(net.layer_norm(x, width), count, width, 4))
        x = net.Add(x, _convolution_module(net, x, width))
        x = net.layer_norm(net.Add(x, _half_feed_forward(net, x, width)), width)
    net.output(x)


def _hifigan_branch(net, x, channels, kernel):
    """Residual convolutions of growing dilation."""
    for dilation in (1, 3, 5):
        y = net.conv(net.LeakyRelu(x, alpha=0.1), channels, channels, kernel, dilation=dilation, dims=1)
        y = net.conv(net.LeakyRelu(y, alpha=0.1), channels, channels, kernel, dims=1, gain=BRANCH_GAIN)
        x = net.Add(y, x)
    return x


@architecture
def hifigan(net):
    """HiFi-GAN's generator (Kong et al. 2020), 256 channels: 60 frames of a mel spectrogram to 15360 samples."""
    channels = 256
    x = net.conv(net.input("mel", [1, 80, 60]), 80, channels, 7, dims=1)
    for rate, kernel in ((8, 16), (8, 16), (2, 4), (2, 4)):
        x = net.LeakyRelu(x, alpha=0.1)
        x = net.conv_transpose(x, channels, channels // 2, kernel, rate, (kernel - rate) // 2, dims=1)
        channels //= 2
        total = _hifigan_branch(net, x, channels, 3)
        for branch_kernel in (7, 11):
            total = net.Add(total, _hifigan_branch(net, x, channels, branch_kernel))
        x = net.Div(total, net.constant(3.0))
    net.output(net.Tanh(net.conv(net.LeakyRelu(x), channels, 1, 7, dims=1, gain=0.1)))


@architecture
def conv_tasnet(net):
    """Conv-TasNet (Luo, Mesgarani 2019), 2 repeats of 6 blocks: two voices from one signal of 8000 samples."""

    def prelu(x):
        return net.PRelu(x, net.constant(np.full((1, 1), 0.25, np.float32)))

    def norm(x):
        return net.group_norm(x, 1, [1, 256, count])

    count = (8000 - 16) // 8 + 1
    encoded = net.conv_relu(net.input("mix", [1, 1, 8000]), 1, 256, 16, 8, padding=0, dims=1, bias=False)
    x = net.conv(norm(encoded), 256, 128, 1, dims=1)
    for _ in range(2):
        for i in range(6):
            y = norm(prelu(net.conv(x, 128, 256, 1, dims=1)))
            y = norm(prelu(net.conv(y, 256, 256, 3, groups=256, dilation=2**i, dims=1)))
            x = net.Add(x, net.conv(y, 256, 128, 1, dims=1))
    masks = net.Sigmoid(net.conv(prelu(x), 128, 512, 1, dims=1))
    y = net.Mul(net.reshape(masks, 1, 2, 256, count), net.Unsqueeze(encoded, net.ints([1])))
    y = net.reshape(y, 2, 256, count)
    net.output(net.ConvTranspose(y, net.weights(256, 1, 16), kernel_shape=[16], strides=[8]))


@architecture
def gru_denoise(net):
    """Noise suppression by a factor for each band, as in RNNoise (Valin 2018): two GRUs; 200 frames of 64 bands."""
    x = net.transpose(net.input("x", [1, 200, 64]), 1, 0, 2)
    for width in (64, 128):
        x = net.Squeeze(net.gru(x, width, 128), net.ints([1]))
    net.output(net.Sigmoid(net.linear(net.transpose(x, 1, 0, 2), 128, 64)))
