"""Voices: who speaks, what is to be said, words of command, whether anybody speaks."""

import math

import numpy as np

from graph import FLOAT, INT64
from network import BRANCH_GAIN, TO_END
from registry import architecture

PHONEMES = (1, 120)
SPEECH_RATE = (16000, 16000)


def _deviation(net, x):
    """torch.var(), unbiased, and its root: of time, whose length is free."""
    mean = net.ReduceMean(x, axes=[2], keepdims=1)
    centered = net.Sub(x, mean)
    variance = net.ReduceMean(net.Mul(centered, centered), axes=[2], keepdims=1)
    count = net.Cast(net.ReduceProd(net.Gather(net.Shape(x), net.ints([2]), axis=0), keepdims=0), to=FLOAT)
    variance = net.Div(net.Mul(variance, count), net.Sub(count, net.constant(1.0)))
    return mean, net.Sqrt(net.Add(variance, net.constant(1e-7)))


def _conv_relu_norm(net, x, channels, filters, kernel, dilation=1):
    y = net.conv_relu(x, channels, filters, kernel, dilation=dilation, dims=1)
    return net.batch_norm(y, filters)


def _res2net_block(net, x, channels, dilation):
    """Eight slices, each convolved with what the one before became; gates of channels by means over time."""
    slice_width = channels // 8
    y = _conv_relu_norm(net, x, channels, channels, 1)
    slices = net.split(y, [slice_width] * 8, axis=1)
    parts = []
    for part in slices[:-1]:
        part = net.Add(parts[-1], part) if parts else part
        parts.append(_conv_relu_norm(net, part, slice_width, slice_width, 3, dilation))
    y = _conv_relu_norm(net, net.Concat(*parts, slices[-1], axis=1), channels, channels, 1)
    gates = net.Relu(net.gemm(net.ReduceMean(y, axes=[2], keepdims=0), channels, 128))
    gates = net.Sigmoid(net.gemm(gates, 128, channels))
    return net.Add(x, net.Mul(y, net.Unsqueeze(gates, net.ints([2]))))


@architecture
def ecapa_tdnn(net):
    """ECAPA-TDNN (Desplanques et al. 2020), 512 wide: statistics of time, weighted; free batch, frames (200)."""
    net.dims = {"batch": 1, "frames": 200}
    channels = 512
    x = net.swap_last(net.input("feats", ["batch", "frames", 80]))
    x = _conv_relu_norm(net, x, 80, channels, 5)
    blocks = []
    for dilation in (2, 3, 4):
        x = _res2net_block(net, x, channels, dilation)
        blocks.append(x)
    channels *= 3
    x = net.conv_relu(net.Concat(*blocks, axis=1), channels, channels, 1, dims=1)
    shape = net.Shape(x)
    statistics = [net.Expand(of_time, shape) for of_time in _deviation(net, x)]
    y = net.conv(net.Concat(x, *statistics, axis=1), 3 * channels, 128, 1, dims=1)
    weights = net.Softmax(net.conv(net.Tanh(y), 128, channels, 1, dims=1), axis=2)
    mean = net.ReduceSum(net.Mul(weights, x), net.ints([2]), keepdims=0)
    square = net.ReduceSum(net.Mul(weights, net.Pow(x, net.constant(2.0))), net.ints([2]), keepdims=0)
    variance = net.Sub(square, net.Pow(mean, net.constant(2.0)))
    deviation = net.Sqrt(net.Clip(variance, net.constant(1e-7)))
    x = net.batch_norm(net.Concat(mean, deviation, axis=1), 2 * channels)
    net.output(net.gemm(x, 2 * channels, 192))


# Voices ------------------------------------------------------------------------------------------------------------


def _sequence_mask(net, lengths, count):
    """[batch, 1, count]: what stands before each length."""
    places = net.Range(net.ints(0), count, net.ints(1))
    inside = net.Less(net.Unsqueeze(places, net.ints([0])), net.Unsqueeze(lengths, net.ints([1])))
    return net.Unsqueeze(net.Cast(inside, to=FLOAT), net.ints([1]))


def _pad(net, x, dims, before, after):
    """Zeros before and behind the last dim."""
    zeros = net.ints([0] * (dims - 1))
    one = net.ints([1])
    pads = [net.Unsqueeze(n, net.ints([0])) if isinstance(n, str) else net.Mul(net.ints([n]), one)
            for n in (before, after)]
    return net.Pad(x, net.Concat(zeros, pads[0], zeros, pads[1], axis=0), mode="constant")


def _relative_scores(net, queries, count, width):
    """Of 4 places to either side: places relative to a row become places of the row by padding and reshaping."""
    window = 4
    zero = net.ints([0])
    one = net.ints(1)
    twice = net.Mul(count, net.ints(2))
    length = net.Sub(twice, one)
    missing = net.Sub(count, net.ints(window + 1))
    pads = net.Concat(zero, net.Unsqueeze(missing, zero), zero, zero, net.Unsqueeze(missing, zero), zero, axis=0)
    keys = net.Pad(net.weights(1, 2 * window + 1, width, fan=width), pads, mode="constant")
    scores = net.MatMul(queries, net.Transpose(net.Unsqueeze(keys, zero), perm=[0, 1, 3, 2]))
    rows = net.Unsqueeze(count, zero)
    flat = net.Concat(net.ints([1, 2]), net.Unsqueeze(net.Mul(count, twice), zero), axis=0)
    scores = net.Reshape(_pad(net, scores, 4, 0, 1), flat)
    scores = _pad(net, scores, 3, 0, net.Sub(count, one))
    skewed = net.Concat(net.ints([1, 2]), net.Unsqueeze(net.Add(count, one), zero), net.Unsqueeze(length, zero), axis=0)
    scores = net.Slice(net.Reshape(scores, skewed), zero, rows, net.ints([2]), net.ints([1]))
    return net.Slice(scores, net.Unsqueeze(net.Sub(count, one), zero), net.ints([TO_END]), net.ints([3]), net.ints([1]))


def _voice_attention(net, x, mask, count, width):
    """Two heads of channels first; every product is a convolution of 1."""
    head_width = width // 2

    def heads():
        shape = net.Concat(net.ints([1, 2, head_width]), net.Unsqueeze(count, net.ints([0])), axis=0)
        return net.transpose(net.Reshape(net.conv(x, width, width, 1, dims=1, gain=1), shape), 0, 1, 3, 2)

    queries, keys, values = heads(), heads(), heads()
    queries = net.Div(queries, net.constant(math.sqrt(head_width)))
    scores = net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2))
    scores = net.Add(scores, _relative_scores(net, queries, count, head_width))
    pairs = net.Mul(net.Unsqueeze(mask, net.ints([2])), net.Unsqueeze(mask, net.ints([3])))
    scores = net.Where(net.Equal(pairs, net.constant(0.0)), net.constant(-10000.0), scores)
    y = net.transpose(net.attend(scores, values), 0, 1, 3, 2)
    y = net.Reshape(y, net.Concat(net.ints([1, width]), net.Unsqueeze(count, net.ints([0])), axis=0))
    return net.conv(y, width, width, 1, dims=1, gain=1)


def _channel_norm(net, x, width):
    return net.swap_last(net.layer_norm(net.swap_last(x), width))


def _wavenet(net, x, mask, width):
    """Gated convolutions; half of what each gives goes on, half is summed up."""
    total = None
    for layer in range(4):
        y = net.conv(x, width, 2 * width, 5, dims=1, gain=1)
        gated = net.Mul(net.Tanh(net.slice(y, 0, width, 1)), net.Sigmoid(net.slice(y, width, TO_END, 1)))
        last = layer == 3
        y = net.conv(gated, width, width if last else 2 * width, 1, dims=1, gain=1)
        if not last:
            x = net.Mul(net.Add(x, net.slice(y, 0, width, 1)), mask)
            y = net.slice(y, width, TO_END, 1)
        total = net.Add(total, y) if total else y
    return net.Mul(total, mask)


def _flow(net, x, mask, width):
    """The couplings, backwards: channels in reverse order, one half moved by what the other says."""
    half = width // 2
    for _ in range(4):
        x = net.slice(x, -1, -TO_END, 1, step=-1)
        first, second = net.split(x, [half, half], axis=1)
        y = net.Mul(net.conv(first, half, width, 1, dims=1, gain=1), mask)
        mean = net.Mul(net.conv(_wavenet(net, y, mask, width), width, half, 1, dims=1, gain=BRANCH_GAIN), mask)
        logs = net.Mul(net.Sub(mean, mean), net.constant(-1.0))
        second = net.Mul(net.Mul(net.Sub(second, mean), net.Exp(logs)), mask)
        x = net.Concat(first, second, axis=1)
    return x


@architecture
def vits(net):
    """VITS (Kim et al. 2021) as Piper exports it, small, no noise: a path by CumSum of durations; 60 phonemes."""
    width = 96
    net.dims = {"phonemes": 60}
    ids = net.input("input", [1, "phonemes"], INT64, between=PHONEMES)
    count = net.pick(net.Shape(ids), 1)
    mask = _sequence_mask(net, net.Unsqueeze(count, net.ints([0])), count)
    x = net.Mul(net.Gather(net.weights(256, width, fan=width), ids), net.constant(math.sqrt(width)))
    x = net.Mul(net.swap_last(x), mask)
    for _ in range(3):
        x = _channel_norm(net, net.Add(x, _voice_attention(net, x, mask, count, width)), width)
        y = net.Relu(net.conv(net.Mul(x, mask), width, 4 * width, 3, dims=1))
        x = _channel_norm(net, net.Add(x, net.conv(net.Mul(y, mask), 4 * width, width, 3, dims=1, gain=1)), width)
    statistics = net.Mul(net.conv(net.Mul(x, mask), width, 2 * width, 1, dims=1, gain=0.5), mask)
    means, logs = net.split(statistics, [width, width], axis=1)
    y = _channel_norm(net, net.Relu(net.conv(net.Mul(x, mask), width, width, 3, dims=1)), width)
    log_durations = net.Add(net.conv(net.Mul(y, mask), width, 1, 1, dims=1, gain=0.3), net.constant(0.7))
    durations = net.Ceil(net.Mul(net.Exp(log_durations), mask))

    lengths = net.Cast(net.Clip(net.ReduceSum(durations, net.ints([1, 2]), keepdims=0), net.constant(1.0)), to=INT64)
    frames = net.ReduceMax(lengths, keepdims=0)
    frame_mask = _sequence_mask(net, lengths, frames)
    ends = net.reshape(net.CumSum(durations, net.ints(-1)), -1)
    places = net.Cast(net.Range(net.ints(0), frames, net.ints(1)), to=FLOAT)
    before = net.Less(net.Unsqueeze(places, net.ints([0])), net.Unsqueeze(ends, net.ints([1])))
    before = net.Unsqueeze(net.Cast(before, to=FLOAT), net.ints([0]))
    shifted = net.slice(net.Pad(before, net.ints([0, 1, 0, 0, 0, 0]), mode="constant"), 0, -1, 1)
    path = net.Mul(net.Sub(before, shifted), frame_mask)
    means = net.MatMul(means, path)
    logs = net.MatMul(logs, path)
    x = net.Add(means, net.Mul(net.Exp(logs), net.constant(0.1)))
    x = net.Mul(_flow(net, x, frame_mask, width), frame_mask)

    channels = 128
    x = net.conv(x, width, channels, 7, dims=1, gain=1)
    for rate, kernel in ((8, 16), (8, 16), (4, 8)):
        x = net.conv_transpose(net.LeakyRelu(x, alpha=0.1), channels, channels // 2, kernel, rate, (kernel - rate) // 2,
                               dims=1)
        channels //= 2
        branches = []
        for branch_kernel, dilations in ((3, (1, 2)), (5, (2, 6)), (7, (3, 12))):
            y = x
            for dilation in dilations:
                z = net.LeakyRelu(y, alpha=0.1)
                y = net.Add(net.conv(z, channels, channels, branch_kernel, dilation=dilation, dims=1, gain=0.7), y)
            branches.append(y)
        x = net.Div(net.Add(net.Add(branches[0], branches[1]), branches[2]), net.constant(3.0))
    net.output(net.Tanh(net.conv(net.LeakyRelu(x), channels, 1, 7, dims=1, gain=0.1)))


# Words of command, and whether anybody speaks ----------------------------------------------------------------------


@architecture
def ds_cnn(net):
    """DS-CNN (Zhang et al. 2017) from Keras by tf2onnx: words of command, 49 x 10 coefficients, channels last."""
    x = net.channels_first(net.input("input", [1, 49, 10, 1]))
    x = net.Conv(x, net.weights(64, 1, 10, 4, gain=1.4), net.bias(64), kernel_shape=[10, 4], strides=[2, 2],
                 pads=[4, 1, 5, 1])
    x = net.Relu(x)
    for _ in range(4):
        x = net.conv_relu(x, 64, 64, 3, groups=64)
        x = net.conv_relu(x, 64, 64, 1)
    x = net.ReduceMean(x, axes=[2, 3], keepdims=0)
    x = net.Add(net.MatMul(x, net.weights(64, 12, fan=64)), net.bias(12))
    net.output(net.Softmax(x, axis=-1))


def _voice_activity(net, samples, states, fourier):
    """The branch of one sample rate: a spectrum by convolution, an encoder, one step of an LSTM."""
    bins = fourier // 2 + 1
    x = net.Pad(samples, net.ints([0, 0, 0, fourier // 4]), mode="reflect")
    x = net.Conv(net.Unsqueeze(x, net.ints([1])), net.weights(2 * bins, 1, fourier, fan=fourier),
                 strides=[fourier // 2], kernel_shape=[fourier])
    parts = [net.Pow(net.slice(x, *ends, 1), net.constant(2.0)) for ends in ((0, bins), (bins, TO_END))]
    x = net.Sqrt(net.Add(*parts))
    for channels, filters, stride in ((bins, 128, 1), (128, 64, 2), (64, 64, 2), (64, 128, 1)):
        x = net.conv_relu(x, channels, filters, 3, stride, dims=1)
    x = net.transpose(x, 2, 0, 1)
    hidden, cell = [net.Unsqueeze(net.pick(states, i), net.ints([0])) for i in range(2)]
    weights = net.weights(1, 512, 128, fan=128), net.weights(1, 512, 128, fan=128), net.weights(1, 1024, fan=100)
    y, hidden, cell = net.LSTM(x, *weights, "", hidden, cell, hidden_size=128, output_count=3)
    y = net.Relu(net.transpose(net.Squeeze(y, net.ints([1])), 1, 2, 0))
    y = net.ReduceMean(net.Sigmoid(net.conv(y, 128, 1, 1, dims=1, gain=1)), axes=[2], keepdims=0)
    return {y: FLOAT, net.Concat(hidden, cell, axis=0): FLOAT}


@architecture
def silero_vad(net):
    """Silero VAD v5: whether 32 ms have speech, a state goes in and out; If has a branch for each sample rate."""
    net.dims = {"batch": 1}
    samples = net.input("input", ["batch", 576])
    states = net.input("state", [2, "batch", 128])
    rate = net.input("sr", [], INT64, between=SPEECH_RATE)
    branches = {"then_branch": net.body(lambda: _voice_activity(net, samples, states, 256)),
                "else_branch": net.body(lambda: _voice_activity(net, samples, states, 128))}
    net.output(*net.If(net.Equal(rate, net.ints(16000)), output_count=2, **branches))
