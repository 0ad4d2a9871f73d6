"""Objects by queries: transformers whose tokens become boxes.

The images are small, so that what is behind the convolutions shows.
"""

import numpy as np

from graph import INT64
from network import BRANCH_GAIN
from registry import architecture


def _perceptron(net, x, width, outputs, gain=1.0):
    """Three products, Relu between them; the last one's weights are small, so that boxes stay where they are."""
    x = net.Relu(net.linear(net.Relu(net.linear(x, width, width)), width, width))
    return net.Add(net.bias(outputs), net.MatMul(x, net.weights(width, outputs, fan=width, gain=gain)))


# A transformer over convolutions ------------------------------------------------------------------------------------


def _frozen_norm(net, x, channels):
    """FrozenBatchNorm2d, which nothing folds."""
    factors, terms = [net.constant(part.reshape(1, channels, 1, 1)) for part in
                      (1 + 0.1 * net.rng.standard_normal(channels), 0.1 * net.rng.standard_normal(channels))]
    return net.Add(net.Mul(x, factors), terms)


def _frozen_resnet(net, x):
    """ResNet-18, half as wide, to a sixteenth: [1, 128, height / 16, width / 16]."""

    def layer(x, channels, width, kernel, stride=1, gain=1.4):
        return _frozen_norm(net, net.conv(x, channels, width, kernel, stride, bias=False, gain=gain), width)

    x = net.Relu(layer(x, 3, 32, 7, 2))
    x = net.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 32
    for width, first_stride in ((32, 1), (64, 2), (128, 2)):
        for i in range(2):
            stride = first_stride if i == 0 else 1
            y = layer(net.Relu(layer(x, channels, width, 3, stride)), width, width, 3, gain=BRANCH_GAIN)
            x = net.Relu(net.Add(y, layer(x, channels, width, 1, stride) if channels != width else x))
            channels = width
    return x


def _sequence_attention(net, queries, keys, values, counts, width, heads=8):
    """nn.MultiheadAttention, whose first dim is the sequence: heads are rows of a batch, its last product a Gemm."""
    query_count, key_count = counts
    head_width = width // heads
    parts = []
    for x, count in ((queries, query_count), (keys, key_count), (values, key_count)):
        y = net.reshape(net.linear(x, width, width), count, heads, head_width)
        parts.append(net.transpose(y, 1, 0, 2))
    queries, keys, values = parts
    queries = net.Mul(queries, net.constant(head_width**-0.5))
    y = net.attend(net.MatMul(queries, net.swap_last(keys)), values)
    y = net.reshape(net.transpose(y, 1, 0, 2), query_count, width)
    return net.reshape(net.gemm(y, width, width), query_count, 1, width)


def _relu_feed_forward(net, x, width):
    return net.linear(net.Relu(net.linear(x, width, 8 * width)), 8 * width, width)


@architecture
def detr(net):
    """DETR (Carion et al. 2020), ResNet-18 half as wide and 3 + 3 layers of 128: 50 queries; 256 x 320."""
    width, count, query_count = 128, 16 * 20, 50
    x = net.conv(_frozen_resnet(net, net.input("x", [1, 3, 256, 320])), 128, width, 1)
    memory = net.transpose(net.reshape(x, 1, width, count), 2, 0, 1)
    positions = net.weights(count, 1, width, fan=1)
    for _ in range(3):
        placed = net.Add(memory, positions)
        y = _sequence_attention(net, placed, placed, memory, (count, count), width)
        memory = net.layer_norm(net.Add(memory, y), width)
        memory = net.layer_norm(net.Add(memory, _relu_feed_forward(net, memory, width)), width)
    queries = net.weights(query_count, 1, width, fan=1)
    x = net.constant(np.zeros((query_count, 1, width), np.float32))
    states = []
    for _ in range(3):
        placed = net.Add(x, queries)
        y = _sequence_attention(net, placed, placed, x, (query_count, query_count), width)
        x = net.layer_norm(net.Add(x, y), width)
        counts = (query_count, count)
        y = _sequence_attention(net, net.Add(x, queries), net.Add(memory, positions), memory, counts, width)
        x = net.layer_norm(net.Add(x, y), width)
        x = net.layer_norm(net.Add(x, _relu_feed_forward(net, x, width)), width)
        states.append(net.Unsqueeze(net.layer_norm(x, width), net.ints([0])))
    states = net.transpose(net.Concat(*states, axis=0), 0, 2, 1, 3)  # of all layers, of which the last is told
    net.output(net.pick(net.linear(states, width, 92), -1))
    net.output(net.pick(net.Sigmoid(_perceptron(net, states, width, 4)), -1))


# Deformable attention -----------------------------------------------------------------------------------------------

SIDES = (32, 16, 8)
PIXELS = sum(side * side for side in SIDES)
HEADS = 8
POINTS = 4
CHOSEN = 100


def _anchors():
    """Logits of a box around each pixel of each level: [1, PIXELS, 4]."""
    rows = []
    for level, side in enumerate(SIDES):
        line = (np.arange(side) + 0.5) / side
        x, y = np.meshgrid(line, line)
        size = np.full_like(x, 0.05 * 2**level)
        rows.append(np.stack([x, y, size, size], -1).reshape(-1, 4))
    boxes = np.concatenate(rows)[None]
    return np.log(boxes / (1 - boxes)).astype(np.float32)


def _inverse_sigmoid(net, x):
    zero, one = net.constant(0.0), net.constant(1.0)
    x = net.Clip(x, zero, one)
    smallest = net.constant(1e-5)
    return net.Log(net.Div(net.Clip(x, smallest, ""), net.Clip(net.Sub(one, x), smallest, "")))


def _take_rows(net, x, rows, width):
    """torch.gather of whole rows."""
    places = net.Expand(net.Unsqueeze(rows, net.ints([-1])), net.ints([1, CHOSEN, width]))
    return net.GatherElements(x, places, axis=1)


def _deformable_attention(net, x, boxes, memory, width):
    """Each head of each query reads POINTS places of each level, near its box, and mixes them."""
    head_width = width // HEADS
    levels = len(SIDES)
    values = net.transpose(net.reshape(net.linear(memory, width, width), 1, PIXELS, HEADS, head_width), 0, 2, 3, 1)
    values = net.split(net.reshape(values, HEADS, head_width, PIXELS), [side * side for side in SIDES], axis=2)
    offsets = net.reshape(net.linear(x, width, HEADS * levels * POINTS * 2), 1, CHOSEN, HEADS, levels, POINTS, 2)
    shares = net.linear(x, width, HEADS * levels * POINTS)
    shares = net.Softmax(net.reshape(shares, 1, CHOSEN, HEADS, levels * POINTS), axis=-1)
    boxes = net.reshape(boxes, 1, CHOSEN, 1, 1, 1, 4)
    middle, extent = net.split(boxes, [2, 2], axis=5)
    offsets = net.Mul(net.Mul(net.Div(offsets, net.constant(float(POINTS))), extent), net.constant(0.5))
    places = net.Sub(net.Mul(net.Add(middle, offsets), net.constant(2.0)), net.constant(1.0))
    read = []
    for level, side in enumerate(SIDES):
        grid = net.transpose(net.pick(places, level, axis=3), 0, 2, 1, 3, 4)
        grid = net.reshape(grid, HEADS, CHOSEN, POINTS, 2)
        image = net.reshape(values[level], HEADS, head_width, side, side)
        y = net.GridSample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=0)
        read.append(net.Unsqueeze(y, net.ints([-2])))
    read = net.reshape(net.Concat(*read, axis=-2), HEADS, head_width, CHOSEN, levels * POINTS)
    shares = net.reshape(net.transpose(shares, 0, 2, 1, 3), HEADS, 1, CHOSEN, levels * POINTS)
    y = net.ReduceSum(net.Mul(read, shares), net.ints([-1]), keepdims=0)
    y = net.swap_last(net.reshape(y, 1, width, CHOSEN))
    return net.linear(y, width, width)


def _choose_queries(net, memory, width):
    """The pixels whose best class is likeliest: their rows and the logits of their boxes."""
    memory = net.layer_norm(net.linear(memory, width, width), width)
    scores = net.ReduceMax(net.linear(memory, width, 80), axes=[-1], keepdims=0)
    boxes = net.Add(_perceptron(net, memory, width, 4, gain=0.2), net.constant(_anchors()))
    rows = net.TopK(scores, net.ints([CHOSEN]), axis=1, largest=1, sorted=1, output_count=2)[1]
    return _take_rows(net, memory, rows, width), _take_rows(net, boxes, rows, 4)


def _best_boxes(net, logits, boxes, count):
    """The likeliest pairs of a query and a class: scores, classes, boxes by their corners."""
    middle, extent = net.split(boxes, [2, 2], axis=-1)
    half = net.Mul(extent, net.constant(0.5))
    boxes = net.Mul(net.Concat(net.Sub(middle, half), net.Add(middle, half), axis=-1), net.constant(256.0))
    scores, places = net.TopK(net.reshape(net.Sigmoid(logits), 1, CHOSEN * 80), net.ints([count]), axis=1,
                              output_count=2)
    queries = net.Div(places, net.ints(80))
    classes = net.Sub(places, net.Mul(queries, net.ints(80)))
    rows = net.Tile(net.Unsqueeze(queries, net.ints([-1])), net.ints([1, 1, 4]))
    net.output(scores, net.GatherElements(boxes, rows, axis=1))
    net.output(classes, element_type=INT64)


@architecture
def rt_detr(net):
    """RT-DETR (Zhao et al. 2024), 3 layers of 128: deformable attention, 100 pixels chosen; 256 x 256."""
    width = 128
    x = net.input("images", [1, 3, 256, 256])
    channels = 3
    levels = []
    for stage, new_channels in enumerate((16, 32, 64, 128, 192)):
        x = net.conv_relu(x, channels, new_channels, 3, 2)
        x = net.conv_relu(x, new_channels, new_channels, 3)
        channels = new_channels
        if stage >= 2:
            levels.append(net.conv(x, channels, width, 1))
    y = net.image_to_tokens(levels[2], width, 64)
    y = net.layer_norm(net.Add(y, net.attention(y, 64, width, HEADS)), width)
    levels[2] = net.tokens_to_image(net.layer_norm(net.Add(y, net.feed_forward(y, width, 1024)), width), width, 8)
    for i in (1, 0):
        levels[i] = net.Add(levels[i], net.conv_silu(net.upsample(levels[i + 1]), width, width, 3))
    tokens = [net.image_to_tokens(level, width, side * side) for level, side in zip(levels, SIDES)]
    memory = net.Concat(*tokens, axis=1)
    x, logits = _choose_queries(net, memory, width)
    boxes = net.Sigmoid(logits)
    for _ in range(3):
        places = net.linear(net.Relu(net.linear(boxes, 4, 2 * width)), 2 * width, width)
        x = net.layer_norm(net.Add(x, net.attention(net.Add(x, places), CHOSEN, width, HEADS, x, CHOSEN)), width)
        y = _deformable_attention(net, net.Add(x, places), boxes, memory, width)
        x = net.layer_norm(net.Add(x, y), width)
        x = net.layer_norm(net.Add(x, _relu_feed_forward(net, x, width)), width)
        boxes = net.Sigmoid(net.Add(_perceptron(net, x, width, 4, gain=0.2), _inverse_sigmoid(net, boxes)))
    _best_boxes(net, net.linear(x, width, 80), boxes, 50)
