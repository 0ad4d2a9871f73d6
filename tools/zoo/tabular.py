"""Columns, baskets, series and graphs: forecasts, recommendations, attention along edges."""

import math

import numpy as np

from graph import FLOAT, INT64
from network import TO_END
from registry import architecture

ITEMS = (1, 4999)
NODES = 1000


# Forecasts ---------------------------------------------------------------------------------------------------------


def _gated_norm(net, x, shortcut, width):
    """Half of a product gates the other half; then the shortcut and a norm."""
    value, gate = net.split(net.linear(x, width, 2 * width), [width, width], axis=-1)
    return net.layer_norm(net.Add(net.Mul(value, net.Sigmoid(gate)), shortcut), width)


def _gated_residual(net, x, inputs, outputs, context=None):
    """The gated residual network of the temporal fusion transformer."""
    shortcut = x if inputs == outputs else net.linear(x, inputs, outputs)
    y = net.linear(x, inputs, outputs)
    if context:
        y = net.Add(y, net.linear(context, outputs, outputs, bias=False))
    return _gated_norm(net, net.linear(net.Elu(y), outputs, outputs), shortcut, outputs)


def _select_variables(net, x, count, width, context):
    """Of [batch, steps, count], each number to a vector, these weighted by what a context makes of all."""
    columns = [net.linear(net.slice(x, i, i + 1, 2), 1, width) for i in range(count)]
    weights = _gated_residual(net, net.Concat(*columns, axis=-1), count * width, count)
    weights = net.Unsqueeze(net.Softmax(net.Add(weights, net.linear(context, width, count)), axis=-1), net.ints([2]))
    vectors = [net.Unsqueeze(_gated_residual(net, column, width, width), net.ints([-1])) for column in columns]
    return net.ReduceSum(net.Mul(weights, net.Concat(*vectors, axis=-1)), net.ints([-1]), keepdims=0)


@architecture
def temporal_fusion(net):
    """Temporal fusion transformer (Lim et al. 2021), 32 wide: 48 past and 24 future steps; free batch (16)."""
    width = 32
    net.dims = {"batch": 16}
    past = net.input("past", ["batch", 48, 8])
    future = net.input("future", ["batch", 24, 4])
    categories = net.input("categories", ["batch", 2], INT64, between=(0, 99))
    kinds = [net.Gather(net.weights(100, width, fan=4), net.pick(categories, i, axis=1)) for i in range(2)]
    static = _gated_residual(net, net.Add(*kinds), width, width)
    context = net.Unsqueeze(static, net.ints([1]))
    past = _select_variables(net, past, 8, width, context)
    future = _select_variables(net, future, 4, width, context)
    states = [net.Unsqueeze(_gated_residual(net, static, width, width), net.ints([0])) for _ in range(2)]
    parts = []
    for part in (past, future):
        weights = [net.weights(1, 4 * width, width, fan=width) for _ in range(2)] + [net.weights(1, 8 * width, fan=100)]
        y, *states = net.LSTM(net.transpose(part, 1, 0, 2), *weights, "", *states, hidden_size=width, output_count=3)
        parts.append(net.transpose(net.Squeeze(y, net.ints([1])), 1, 0, 2))
    x = _gated_norm(net, net.Concat(*parts, axis=1), net.Concat(past, future, axis=1), width)
    enriched = _gated_residual(net, x, width, width, context)
    mask = net.constant(np.triu(np.ones((72, 72), bool), 1))
    values = net.linear(enriched, width, width // 4)
    heads = []
    for _ in range(4):
        queries, keys = [net.linear(enriched, width, width // 4) for _ in range(2)]
        scores = net.Div(net.MatMul(queries, net.swap_last(keys)), net.constant(math.sqrt(width / 4)))
        heads.append(net.attend(net.Where(mask, net.constant(-1e9), scores), values))
    y = net.ReduceMean(net.Concat(*[net.Unsqueeze(head, net.ints([0])) for head in heads], axis=0), axes=[0],
                       keepdims=0)
    y = _gated_norm(net, net.linear(net.linear(y, width // 4, width), width, width), enriched, width)
    y = _gated_norm(net, _gated_residual(net, y, width, width), x, width)
    net.output(net.linear(net.slice(y, 48, TO_END, 1), width, 3))


def _trend(net, x):
    """Means of 25 steps, the ends repeated; [batch, steps, width]."""
    ends = [net.Tile(net.slice(x, *of, 1), net.ints([1, 12, 1])) for of in ((0, 1), (-1, TO_END))]
    y = net.swap_last(net.Concat(ends[0], x, ends[1], axis=1))
    return net.swap_last(net.AveragePool(y, kernel_shape=[25], strides=[1]))


def _auto_correlation(net, x, steps, width, heads):
    """Attention to delays: a product of spectra finds the best four, values are rolled by these and summed up."""

    def project():
        y = net.reshape(net.linear(x, width, width), -1, steps, heads, width // heads)
        return net.transpose(y, 0, 2, 3, 1)

    def spectrum(y):
        y = net.DFT(net.Unsqueeze(y, net.ints([4])), axis=3)
        return [net.slice(y, i, i + 1, 4) for i in range(2)]

    (real, imaginary), (key_real, key_imaginary) = spectrum(project()), spectrum(project())
    product = net.Concat(net.Add(net.Mul(real, key_real), net.Mul(imaginary, key_imaginary)),
                         net.Sub(net.Mul(imaginary, key_real), net.Mul(real, key_imaginary)), axis=4)
    match = net.Squeeze(net.slice(net.DFT(product, axis=3, inverse=1), 0, 1, 4), net.ints([4]))
    match = net.ReduceMean(net.ReduceMean(match, axes=[1], keepdims=0), axes=[1], keepdims=0)
    best, delays = net.TopK(match, net.ints([4]), axis=-1, output_count=2)
    weights = net.Softmax(best, axis=-1)
    values = project()
    twice = net.Tile(values, net.ints([1, 1, 1, 2]))
    places = net.Expand(net.ints(np.arange(steps).reshape(1, 1, 1, steps)), net.Shape(values))
    total = None
    for i in range(4):
        delay, weight = [net.reshape(net.pick(y, i, axis=1), -1, 1, 1, 1) for y in (delays, weights)]
        rolled = net.GatherElements(twice, net.Add(places, delay), axis=3)
        part = net.Mul(rolled, weight)
        total = net.Add(total, part) if total else part
    return net.linear(net.reshape(net.transpose(total, 0, 3, 1, 2), -1, steps, width), width, width)


@architecture
def autoformer(net):
    """Autoformer (Wu et al. 2021), 2 layers of 64: correlations by DFT, trends by means; 96 steps, free batch (4)."""
    steps = 96
    width = 64
    net.dims = {"batch": 4}
    x = net.swap_last(net.input("series", ["batch", steps, 7]))
    x = net.Concat(net.slice(x, -1, TO_END, 2), x, net.slice(x, 0, 1, 2), axis=2)
    x = net.swap_last(net.conv(x, 7, width, 3, padding=0, dims=1, bias=False, gain=1))
    trends = None
    for _ in range(2):
        x = net.Add(x, _auto_correlation(net, x, steps, width, 4))
        trend = _trend(net, x)
        x = net.Sub(x, trend)
        y = net.swap_last(x)
        y = net.conv(net.gelu(net.conv(y, width, 4 * width, 1, dims=1, bias=False)), 4 * width, width, 1, dims=1,
                     bias=False)
        x = net.Add(x, net.swap_last(y))
        second = _trend(net, x)
        x = net.Sub(x, second)
        trend = net.Add(trend, second)
        trends = net.Add(trends, trend) if trends else trend
    x = net.layer_norm(x, width)
    bias = net.ReduceMean(x, axes=[1], keepdims=1)
    x = net.Sub(x, net.Tile(bias, net.ints([1, steps, 1])))
    net.output(net.Add(net.linear(x, width, 7), net.linear(trends, width, 7)))


def _sparse_attention(net, x, steps, width, heads, top):
    """Only of the queries that differ most among their scores of sampled keys; the others get the mean of values."""
    head_width = width // heads
    queries, keys, values = [net.split_heads(net.linear(x, width, width), steps, heads, head_width) for _ in range(3)]
    sample = net.ints(net.rng.integers(steps, size=(steps, top)))
    sampled = net.Gather(keys, sample, axis=2)
    scores = net.MatMul(net.Unsqueeze(queries, net.ints([-2])), net.transpose(sampled, 0, 1, 2, 4, 3))
    scores = net.Squeeze(scores, net.ints([-2]))
    mean = net.Div(net.ReduceSum(scores, net.ints([-1]), keepdims=0), net.constant(float(steps)))
    spread = net.Sub(net.ReduceMax(scores, axes=[-1], keepdims=0), mean)
    chosen = net.TopK(spread, net.ints([top]), axis=-1, sorted=0, output_count=2)[1]
    shape = net.ints([1, heads, top, 1])
    numbers = net.ints(np.arange(heads).reshape(1, heads, 1, 1))
    places = net.Concat(net.Expand(net.ints([[[[0]]]]), shape), net.Expand(numbers, shape),
                        net.reshape(chosen, 1, heads, top, 1), axis=-1)
    scores = net.MatMul(net.GatherND(queries, places), net.transpose(keys, 0, 1, 3, 2))
    mixed = net.attend(net.Mul(scores, net.constant(head_width**-0.5)), values)
    context = net.Unsqueeze(net.ReduceMean(values, axes=[2], keepdims=0), net.ints([-2]))
    context = net.Expand(context, net.ints([1, heads, steps, head_width]))
    context = net.ScatterND(context, places, mixed)
    return net.linear(net.join_heads(context, 1, steps, width), width, width)


@architecture
def informer(net):
    """Informer's encoder (Zhou et al. 2021), 3 layers of 256: few queries by TopK, halved by pools; 192 steps."""
    steps = 192
    width = 256
    x = net.swap_last(net.input("series", [1, steps, 7]))
    x = net.Concat(net.slice(x, -1, TO_END, 2), x, net.slice(x, 0, 1, 2), axis=2)
    x = net.swap_last(net.conv(x, 7, width, 3, padding=0, dims=1, gain=1))
    for layer in range(3):
        x = net.layer_norm(net.Add(x, _sparse_attention(net, x, steps, width, 8, 25)), width)
        y = net.gelu(net.conv(net.swap_last(x), width, 1024, 1, dims=1))
        x = net.layer_norm(net.Add(x, net.swap_last(net.conv(y, 1024, width, 1, dims=1, gain=1))), width)
        if layer < 2:
            y = net.swap_last(x)
            y = net.Concat(net.slice(y, -1, TO_END, 2), y, net.slice(y, 0, 1, 2), axis=2)
            y = net.Elu(net.batch_norm(net.conv(y, width, width, 3, padding=0, dims=1, gain=1), width))
            x = net.swap_last(net.MaxPool(y, kernel_shape=[3], strides=[2], pads=[1, 1]))
            steps //= 2
    net.output(net.linear(net.layer_norm(x, width), width, 7))


# Recommendations ---------------------------------------------------------------------------------------------------


@architecture
def deepfm(net):
    """DeepFM (Guo et al. 2017) as DeepCTR-Torch writes it: a column for each feature, 26 of ids; free batch (64)."""
    net.dims = {"batch": 64}
    x = net.input("x", ["batch", 39], between=(0, 999))
    ids = [net.Cast(net.slice(x, i, i + 1, 1), to=INT64) for i in range(26)]
    numbers = [net.slice(x, i, i + 1, 1) for i in range(26, 39)]
    dense = net.Mul(net.Concat(*numbers, axis=-1), net.constant(1e-3))
    vectors = [net.Gather(net.weights(1000, 8, fan=8), column) for column in ids]
    first = net.Concat(*[net.Gather(net.weights(1000, 1, fan=4), column) for column in ids], axis=-1)
    linear = net.ReduceSum(first, net.ints([-1]), keepdims=0)
    linear = net.Add(linear, net.MatMul(dense, net.weights(13, 1, fan=13)))
    rows = net.Concat(*vectors, axis=1)
    square = net.Pow(net.ReduceSum(rows, net.ints([1]), keepdims=1), net.constant(2.0))
    squares = net.ReduceSum(net.Mul(rows, rows), net.ints([1]), keepdims=1)
    pairs = net.ReduceSum(net.Sub(square, squares), net.ints([2]), keepdims=0)
    logit = net.Add(linear, net.Mul(pairs, net.constant(0.5)))
    y = net.Concat(net.Flatten(rows), dense, axis=-1)
    for width, outputs in ((221, 256), (256, 128)):
        y = net.Relu(net.gemm(y, width, outputs))
    logit = net.Add(logit, net.MatMul(y, net.weights(128, 1, fan=128)))
    net.output(net.Sigmoid(net.Add(logit, net.bias(1))))


def _dice(net, x, width):
    """DIN's activation: a sigmoid of the normalized number says how much of its slope it keeps."""
    share = net.Sigmoid(net.batch_norm(x, width))
    slope = net.Mul(net.Mul(net.bias(width), net.Sub(net.constant(1.0), share)), x)
    return net.Add(slope, net.Mul(share, x))


@architecture
def din(net):
    """Deep interest network (Zhou et al. 2018): 50 items of the past, weighted by a candidate; free batch (32)."""
    width = 36
    net.dims = {"batch": 32}
    history = net.input("history", ["batch", 50], INT64, between=ITEMS)
    length = net.input("length", ["batch", 1], INT64, between=(1, 50))
    candidate = net.input("candidate", ["batch", 1], INT64, between=ITEMS)
    table = net.weights(5000, width, fan=4)
    past = net.Gather(table, history)
    wanted = net.Gather(table, candidate)
    repeated = net.Expand(wanted, net.Shape(past))
    x = net.Concat(repeated, past, net.Sub(repeated, past), net.Mul(repeated, past), axis=-1)
    x = net.reshape(x, -1, 4 * width)
    for inputs, outputs in ((4 * width, 64), (64, 16)):
        x = _dice(net, net.gemm(x, inputs, outputs), outputs)
    scores = net.reshape(net.gemm(x, 16, 1), -1, 1, 50)
    inside = net.Unsqueeze(net.Less(net.ints([range(50)]), length), net.ints([1]))
    weights = net.Softmax(net.Where(inside, scores, net.constant(-2.0**32 + 1)), axis=-1)
    interest = net.Squeeze(net.MatMul(weights, past), net.ints([1]))
    wanted = net.Squeeze(wanted, net.ints([1]))
    x = net.Concat(interest, wanted, net.Mul(interest, wanted), axis=-1)
    for inputs, outputs in ((3 * width, 200), (200, 80)):
        x = _dice(net, net.gemm(x, inputs, outputs), outputs)
    net.output(net.Sigmoid(net.gemm(x, 80, 1)))


@architecture
def two_towers(net):
    """Retrieval by two towers (Covington et al. 2016): bags of ids, the best 100 of 20000 items; free batch (4)."""
    width = 64
    net.dims = {"batch": 4}
    bags = []
    for name, count in (("watched", 50), ("searched", 20)):
        ids = net.input(name, ["batch", count], INT64, between=(0, ITEMS[1]))
        filled = net.Cast(net.Not(net.Equal(ids, net.ints(0))), to=FLOAT)
        vectors = net.Mul(net.Gather(net.weights(5000, width, fan=4), ids), net.Unsqueeze(filled, net.ints([2])))
        count = net.Max(net.ReduceSum(filled, net.ints([1]), keepdims=1), net.constant(1.0))
        bags.append(net.Div(net.ReduceSum(vectors, net.ints([1]), keepdims=0), count))
    country = net.input("country", ["batch"], INT64, between=(0, 199))
    x = net.Concat(*bags, net.Gather(net.weights(200, width, fan=4), country), axis=1)
    for inputs, outputs in ((3 * width, 256), (256, 128)):
        x = net.Relu(net.gemm(x, inputs, outputs))
    x = net.gemm(x, 128, width)
    x = net.Div(x, net.Expand(net.Clip(net.ReduceL2(x, axes=[1], keepdims=1), net.constant(1e-12)), net.Shape(x)))
    scores = net.MatMul(x, net.weights(width, 20000, fan=width))
    best, items = net.TopK(net.Div(scores, net.constant(0.05)), net.ints([100]), axis=1, output_count=2)
    net.output(net.Softmax(best, axis=1))
    net.output(items, element_type=INT64)


# Graphs ------------------------------------------------------------------------------------------------------------


@architecture
def graph_attention(net):
    """GAT (Velickovic et al. 2018), 3 layers: softmax along edges by scattered maxima; 1000 nodes, 5000 edges."""
    net.opsets[""] = 18  # ScatterElements has max since
    edges = 5000
    x = net.input("x", [NODES, 64])
    ends = net.input("edges", [2, edges], INT64, between=(0, NODES - 1))
    source, target = [net.pick(ends, i) for i in range(2)]
    width = 64
    for heads, outputs in ((4, 16), (4, 16), (1, 7)):
        x = net.reshape(net.MatMul(x, net.weights(width, heads * outputs, fan=width)), -1, heads, outputs)
        ratings = [net.ReduceSum(net.Mul(x, net.weights(1, heads, outputs, fan=outputs)), net.ints([-1]), keepdims=0)
                   for _ in range(2)]
        scores = net.LeakyRelu(net.Add(net.Gather(ratings[0], source), net.Gather(ratings[1], target)), alpha=0.2)
        rows = net.Expand(net.Unsqueeze(target, net.ints([1])), net.Shape(scores))
        lowest = net.constant(np.full((NODES, heads), -1e30, np.float32))
        top = net.ScatterElements(lowest, rows, scores, axis=0, reduction="max")
        scores = net.Exp(net.Sub(scores, net.Gather(top, target)))
        zeros = net.constant(np.zeros((NODES, heads), np.float32))
        sums = net.ScatterElements(zeros, rows, scores, axis=0, reduction="add")
        weights = net.Div(scores, net.Add(net.Gather(sums, target), net.constant(1e-16)))
        messages = net.Mul(net.Gather(x, source), net.Unsqueeze(weights, net.ints([-1])))
        rows = net.Expand(net.reshape(target, -1, 1, 1), net.Shape(messages))
        zeros = net.constant(np.zeros((NODES, heads, outputs), np.float32))
        y = net.ScatterElements(zeros, rows, messages, axis=0, reduction="add")
        x = net.Elu(net.Add(net.reshape(y, -1, heads * outputs), net.bias(heads * outputs)))
        width = heads * outputs
    net.output(net.LogSoftmax(x, axis=1))
