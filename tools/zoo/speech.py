"""Speech, from samples to words and back: spectra, codes, steps that feed themselves, caches of a stream."""

import math

import numpy as np

from graph import BOOL, FLOAT, INT64
from network import TO_END
from registry import architecture


@architecture
def log_mel(net):
    """Whisper's features (Radford et al. 2023) from samples by STFT: 80 logarithms of 400 samples; 3 s of 16 kHz."""
    x = net.reshape(net.input("samples", [1, 48000]), 1, 1, -1)
    x = net.Squeeze(net.Pad(x, net.ints([0, 0, 200, 0, 0, 200]), mode="reflect"), net.ints([1]))
    window = net.constant(np.hanning(400))
    x = net.STFT(net.Unsqueeze(x, net.ints([-1])), net.ints(160), window, net.ints(400), onesided=1)
    x = net.slice(net.transpose(x, 0, 2, 1, 3), 0, -1, 2)
    real, imaginary = [net.Gather(x, net.ints(i), axis=3) for i in range(2)]
    power = net.Add(net.Mul(real, real), net.Mul(imaginary, imaginary))
    filters = np.maximum(0, 1 - np.abs(np.arange(201) / 2.5 - np.arange(80).reshape(-1, 1)) / 2)
    x = net.Clip(net.MatMul(net.constant(filters), power), net.constant(1e-10))
    x = net.Div(net.Log(x), net.constant(math.log(10)))
    x = net.Max(x, net.Sub(net.ReduceMax(x, keepdims=0), net.constant(8.0)))
    net.output(net.Div(net.Add(x, net.constant(4.0)), net.constant(4.0)))


# Codes -------------------------------------------------------------------------------------------------------------


def _padded_conv(net, x, channels, filters, kernel, stride=1, dilation=1):
    before = (kernel - 1) * dilation - (stride - 1)
    x = net.Pad(x, net.ints([0, 0, before, 0, 0, 0]), mode="reflect") if before else x
    return net.conv(x, channels, filters, kernel, stride, padding=0, dilation=dilation, dims=1, gain=1.2)


def _residual_unit(net, x, channels):
    y = _padded_conv(net, net.Elu(x), channels, channels // 2, 3)
    y = _padded_conv(net, net.Elu(y), channels // 2, channels, 1)
    return net.Add(_padded_conv(net, x, channels, channels, 1), y)


def _two_lstms(net, x, width):
    y = net.transpose(x, 2, 0, 1)
    steps = y
    for _ in range(2):
        y = net.Squeeze(net.lstm(y, width, width), net.ints([1]))
    return net.transpose(net.Add(y, steps), 1, 2, 0)


def _quantize(net, x, width, books):
    """Codes of 1024, each book's of what the ones before left; and the sum of the codes' vectors."""
    total = None
    codes = []
    for _ in range(books):
        table = net.weights(1024, width, fan=width)
        rows = net.reshape(net.transpose(x, 0, 2, 1), -1, width)
        turned = net.Transpose(table, perm=[1, 0])
        squares = [net.ReduceSum(net.Pow(y, net.constant(2.0)), net.ints([axis]), keepdims=1)
                   for y, axis in ((rows, 1), (turned, 0))]
        doubled = net.MatMul(net.Mul(rows, net.constant(2.0)), turned)
        code = net.ArgMax(net.Neg(net.Add(net.Sub(squares[0], doubled), squares[1])), axis=-1, keepdims=0)
        code = net.reshape(code, 1, -1)
        found = net.transpose(net.Gather(table, code), 0, 2, 1)
        x = net.Sub(x, found)
        total = net.Add(total, found) if total else found
        codes.append(net.Unsqueeze(code, net.ints([0])))
    return net.Concat(*codes, axis=0), total


@architecture
def encodec(net):
    """EnCodec (Defossez et al. 2023), 16 to 128 wide: samples to codes of 4 books and back; 6400 samples."""
    channels = 16
    x = _padded_conv(net, net.input("samples", [1, 1, 6400]), 1, channels, 7)
    for ratio in (2, 4, 5):
        x = net.Elu(_residual_unit(net, x, channels))
        x = _padded_conv(net, x, channels, 2 * channels, 2 * ratio, ratio)
        channels *= 2
    x = _padded_conv(net, net.Elu(_two_lstms(net, x, channels)), channels, 64, 7)
    codes, x = _quantize(net, x, 64, 4)
    net.output(codes, element_type=INT64)
    x = _two_lstms(net, _padded_conv(net, x, 64, channels, 7), channels)
    for ratio in (5, 4, 2):
        x = net.conv_transpose(net.Elu(x), channels, channels // 2, 2 * ratio, ratio, dims=1)
        channels //= 2
        x = _residual_unit(net, net.slice(x, 0, -ratio, 2), channels)
    net.output(_padded_conv(net, net.Elu(x), channels, 1, 7))


# Steps that feed themselves ----------------------------------------------------------------------------------------


def _lstm_cell(net, x, hidden, cell, width, outputs):
    """nn.LSTMCell, as it is scripted."""
    gates = net.Add(net.gemm(x, width, 4 * outputs), net.gemm(hidden, outputs, 4 * outputs))
    into, forget, new, out = net.split(gates, [outputs] * 4, axis=1)
    cell = net.Add(net.Mul(net.Sigmoid(forget), cell), net.Mul(net.Sigmoid(into), net.Tanh(new)))
    return net.Mul(net.Sigmoid(out), net.Tanh(cell)), cell


@architecture
def tacotron2(net):
    """Tacotron 2's decoder (Shen et al. 2018), 256 wide: a Loop that attends by place; 60 letters, 80 frames."""
    count = 60
    memory = net.input("memory", [1, count, 256])
    keys = net.linear(memory, 256, 128, bias=False)

    def step(index, going_on, frame, hidden, cell, second, second_cell, context, weights, sums):
        x = frame
        for width in (80, 128):
            x = net.Relu(net.MatMul(x, net.weights(width, 128, fan=width)))
        hidden, cell = _lstm_cell(net, net.Concat(x, context, axis=1), hidden, cell, 384, 256)
        places = net.Concat(net.Unsqueeze(weights, net.ints([1])), net.Unsqueeze(sums, net.ints([1])), axis=1)
        places = net.linear(net.swap_last(net.conv(places, 2, 32, 31, dims=1, bias=False)), 32, 128, bias=False)
        query = net.linear(net.Unsqueeze(hidden, net.ints([1])), 256, 128, bias=False)
        energy = net.linear(net.Tanh(net.Add(net.Add(query, places), keys)), 128, 1, bias=False)
        weights = net.Softmax(net.Squeeze(energy, net.ints([-1])), axis=1)
        context = net.Squeeze(net.MatMul(net.Unsqueeze(weights, net.ints([1])), memory), net.ints([1]))
        second, second_cell = _lstm_cell(net, net.Concat(hidden, context, axis=1), second, second_cell, 512, 256)
        both = net.Concat(second, context, axis=1)
        frame = net.gemm(both, 512, 80)
        stop = net.Sigmoid(net.gemm(both, 512, 1))
        not_yet = net.And(net.Less(net.Squeeze(stop), net.constant(2.0)), going_on)
        states = [frame, hidden, cell, second, second_cell, context, weights, net.Add(sums, weights)]
        return {not_yet: BOOL, **dict.fromkeys(states, FLOAT), net.Identity(frame): FLOAT, stop: FLOAT}

    shapes = [[1, width] for width in (80, 256, 256, 256, 256, 256, count, count)]
    body = net.body(step, (INT64, []), (BOOL, []), *[(FLOAT, shape) for shape in shapes])
    starts = [net.constant(np.zeros(shape, np.float32)) for shape in shapes]
    *_, frames, stops = net.Loop(net.ints(80), net.constant(np.array(True)), *starts, body=body, output_count=10)
    x = net.transpose(net.Squeeze(frames, net.ints([1])), 1, 0)
    x = net.Unsqueeze(x, net.ints([0]))
    y = x
    for channels, filters in ((80, 128), (128, 128), (128, 80)):
        y = net.Tanh(net.batch_norm(net.conv(y, channels, filters, 5, dims=1, gain=1), filters))
    net.output(net.Add(x, y), stops)


@architecture
def transducer(net):
    """RNN-T's greedy search (Graves 2012), scripted: a Loop along 50 frames, If a word is found an LSTM steps on."""
    words = 500
    width = 256
    sound = net.linear(net.input("sound", [50, 1, 128]), 128, width)
    table = net.weights(words, width, fan=1)
    cell_weights = net.weights(1, 4 * width, width, fan=width), net.weights(1, 4 * width, width, fan=width)
    cell_bias = net.weights(1, 8 * width, fan=100)

    def search(index, going_on, spoken, hidden, cell):
        joint = net.Tanh(net.Add(net.Gather(sound, index, axis=0), spoken))
        logits = net.LogSoftmax(net.Add(net.gemm(joint, width, words), blank_bias), axis=1)
        best = net.ArgMax(logits, axis=1, keepdims=0)

        def found():
            x = net.Unsqueeze(net.Gather(table, best), net.ints([0]))
            _, new_hidden, new_cell = net.LSTM(x, *cell_weights, cell_bias, "", hidden, cell, hidden_size=width,
                                               output_count=3)
            y = net.linear(net.Squeeze(new_hidden, net.ints([0])), width, width)
            return dict.fromkeys([y, net.Identity(new_hidden), net.Identity(new_cell)], FLOAT)

        def blank():
            return dict.fromkeys([net.Identity(x) for x in (spoken, hidden, cell)], FLOAT)

        is_blank = net.Squeeze(net.Equal(best, net.ints([0])))
        states = net.If(is_blank, then_branch=net.body(blank), else_branch=net.body(found), output_count=3)
        score = net.ReduceMax(logits, axes=[1], keepdims=0)
        return {net.Identity(going_on): BOOL, **dict.fromkeys(states, FLOAT), best: INT64, score: FLOAT}

    blank_bias = net.constant(np.eye(1, words) * 2.5)
    state = FLOAT, [1, 1, width]
    body = net.body(search, (INT64, []), (BOOL, []), (FLOAT, [1, width]), state, state)
    zeros = [net.constant(np.zeros(shape, np.float32)) for shape in ([1, width], [1, 1, width], [1, 1, width])]
    *_, found, scores = net.Loop(net.ints(50), net.constant(np.array(True)), *zeros, body=body, output_count=5)
    found = net.reshape(found, -1)
    net.output(net.Compress(found, net.Greater(found, net.ints(0)), axis=0), element_type=INT64)
    net.output(scores)


# A stream ----------------------------------------------------------------------------------------------------------


def _swoosh(net, x, offset, shift):
    """log(1 + exp(x - offset)) - 0.08 x - shift, by parts that cannot overflow."""
    moved = net.Sub(x, net.constant(offset))
    top = net.Max(net.constant(0.0), moved)
    rest = net.Log(net.Add(net.Exp(net.Neg(net.Abs(net.Sub(net.constant(0.0), moved)))), net.constant(1.0)))
    y = net.Sub(net.Add(top, rest), net.Mul(net.constant(0.08), x))
    return net.Sub(y, net.constant(shift))


def _stream_attention(net, x, cached, count, left, width):
    """Weights of four heads, [heads, 1, count, left + count]: keys behind cached ones, places by GatherElements."""
    heads, query_width, place_width = 4, 32, 4
    total = left + count
    y = net.linear(x, width, heads * (2 * query_width + place_width))
    queries, keys, places = net.split(y, [heads * query_width] * 2 + [heads * place_width], axis=2)
    keys = net.Concat(cached, keys, axis=0)
    net.output(net.slice(keys, -left, TO_END, 0))
    queries = net.transpose(net.reshape(queries, count, 1, heads, query_width), 2, 1, 0, 3)
    keys = net.transpose(net.reshape(keys, total, 1, heads, query_width), 2, 1, 3, 0)
    places = net.transpose(net.reshape(places, count, 1, heads, place_width), 2, 1, 0, 3)
    table = net.weights(heads, 1, place_width, total + count - 1, fan=place_width)
    rows = np.arange(count - 1, -1, -1).reshape(-1, 1) + np.arange(total)
    index = net.ints(np.tile(rows, (heads, 1)))
    of_places = net.reshape(net.MatMul(places, table), -1, total + count - 1)
    of_places = net.reshape(net.GatherElements(of_places, index, axis=1), heads, 1, count, total)
    return net.Softmax(net.Add(net.MatMul(queries, keys), of_places), axis=-1)


@architecture
def zipformer(net):
    """Zipformer (Yao et al. 2024) as sherpa streams it, 4 layers of 192: shared weights; 16 frames behind 64."""
    count, left, width = 16, 64, 192
    x = net.transpose(net.input("x", [1, count, width]), 1, 0, 2)

    def forward(x, hidden):
        y = _swoosh(net, net.linear(x, width, hidden), 4.0, 0.035)
        return net.linear(y, hidden, width)

    for layer in range(4):
        origin = x
        keys = net.input(f"cached_key_{layer}", [left, 1, 128])
        weights = _stream_attention(net, x, keys, count, left, width)
        x = net.Add(x, forward(x, 384))
        values = net.Concat(net.input(f"cached_val_{layer}", [left, 1, 48]), net.linear(x, width, 48), axis=0)
        net.output(net.slice(values, -left, TO_END, 0))
        y = net.MatMul(weights, net.transpose(net.reshape(values, left + count, 1, 4, 12), 2, 1, 0, 3))
        y = net.reshape(net.transpose(y, 2, 1, 0, 3), count, 1, 48)
        x = net.Add(x, net.linear(y, 48, width))
        y, gate = net.split(net.linear(x, width, 2 * width), [width] * 2, axis=2)
        y = net.transpose(net.Mul(y, net.Sigmoid(gate)), 1, 2, 0)
        y = net.Concat(net.input(f"cached_conv_{layer}", [1, width, 15]), y, axis=2)
        net.output(net.slice(y, -15, TO_END, 2))
        causal = net.conv(y, width, width, 16, groups=width, padding=0, dims=1)
        chunk = net.conv(net.slice(y, 15, TO_END, 2), width, width, 31, groups=width, dims=1)
        y = net.Add(net.Mul(chunk, net.constant(1 + 0.1 * net.rng.standard_normal((width, count)))), causal)
        y = _swoosh(net, net.transpose(y, 2, 0, 1), 1.0, 0.313261687)
        x = net.Add(x, net.linear(y, width, width))
        x = net.Add(x, forward(x, 512))
        centered = net.Sub(x, net.bias(width))
        scale = net.Pow(net.ReduceMean(net.Pow(centered, net.constant(2.0)), axes=[2], keepdims=1), net.constant(-0.5))
        x = net.Mul(x, net.Mul(scale, net.Exp(net.constant(0.1))))
        x = net.Add(origin, net.Mul(net.Sub(x, origin), net.scale(width)))
    net.output(net.transpose(x, 1, 0, 2))
