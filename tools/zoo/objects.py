"""Objects and people by maps of what is where: what is behind the last convolution is half of these models."""

import numpy as np

from graph import FLOAT, INT64
from registry import architecture

INT32 = 6  # TensorProto's


def _resize_twice(net, x):
    return net.Resize(x, "", net.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear",
                      coordinate_transformation_mode="half_pixel")


def _depthwise(net, x, channels, width, kernel, stride=1):
    """MobileNet's pair of convolutions, as NanoDet writes it."""
    x = net.LeakyRelu(net.conv(x, channels, channels, kernel, stride, groups=channels), alpha=0.1)
    return net.LeakyRelu(net.conv(x, channels, width, 1), alpha=0.1)


def _shuffle_unit(net, x, channels, side, stride):
    """ShuffleNetV2's: half of the channels pass, then both halves are shuffled."""
    half = channels // 2
    if stride == 1:
        kept, y = net.split(x, [half, half], axis=1)
        inputs = half
    else:
        inputs = channels // 2
        kept = net.conv(x, inputs, inputs, 3, 2, groups=inputs, gain=1.0)
        kept = net.LeakyRelu(net.conv(kept, inputs, half, 1), alpha=0.1)
        y = x
    y = net.LeakyRelu(net.conv(y, inputs, half, 1), alpha=0.1)
    y = net.conv(y, half, half, 3, stride, groups=half, gain=1.0)
    y = net.LeakyRelu(net.conv(y, half, half, 1), alpha=0.1)
    x = net.reshape(net.Concat(kept, y, axis=1), -1, 2, half, side, side)
    return net.reshape(net.transpose(x, 0, 2, 1, 3, 4), -1, channels, side, side)


def _distances(net, x, centers, stride):
    """From distributions over 8 distances to each side to corners, within the image: [1, count, 4]."""
    x = net.Softmax(net.reshape(x, -1, 8), axis=1)
    x = net.MatMul(x, net.constant(np.arange(8, dtype=np.float32)))
    x = net.Mul(net.reshape(x, 1, -1, 4), net.constant(float(stride)))
    sides = [net.pick(x, i, axis=2) for i in range(4)]
    corners = []
    for i, move in enumerate((net.Sub, net.Sub, net.Add, net.Add)):
        corner = net.Clip(move(centers[i % 2], sides[i]), net.constant(0.0), net.constant(256.0))
        corners.append(net.Unsqueeze(corner, net.ints([-1])))
    return net.Concat(*corners, axis=-1)


def _suppressed(net, boxes, scores, classes):
    """As MMDeploy writes it: boxes of each class that overlap go, the best of the others stay, however many."""
    chosen = net.NonMaxSuppression(boxes, net.swap_last(scores), net.ints([100]),
                                   net.constant(np.array([0.6], np.float32)), net.constant(np.array([0.7], np.float32)))
    class_ids, rows = net.pick(chosen, 1, axis=1), net.pick(chosen, 2, axis=1)
    boxes = net.Gather(net.Squeeze(boxes, net.ints([0])), rows, axis=0)
    flat = net.Add(net.Mul(rows, net.ints(classes)), class_ids)
    scores = net.Gather(net.reshape(scores, -1), flat, axis=0)
    count = net.Min(net.Shape(scores), net.ints([100]))
    scores, best = net.TopK(scores, count, axis=0, output_count=2)
    scores = net.Unsqueeze(scores, net.ints([1]))
    net.output(net.Concat(net.Gather(boxes, best, axis=0), scores, axis=1))
    net.output(net.Gather(class_ids, best, axis=0), element_type=INT64)


@architecture
def nanodet(net):
    """NanoDet-Plus (RangiLyu 2021), 20 classes: shuffled channels, distributions, NonMaxSuppression; 256 x 256."""
    classes, side = 20, 64
    x = net.conv(net.input("data", [1, 3, 256, 256]), 3, 24, 3, 2)
    x = net.MaxPool(net.LeakyRelu(x, alpha=0.1), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = net.LeakyRelu(net.conv(x, 24, 58, 1), alpha=0.1)
    levels = []
    for channels, count in ((116, 4), (232, 8), (464, 4)):
        side //= 2
        for i in range(count):
            x = _shuffle_unit(net, x, channels, side, 2 if i == 0 else 1)
        levels.append(net.LeakyRelu(net.conv(x, channels, 96, 1), alpha=0.1))
    for i in (1, 0):
        levels[i] = _depthwise(net, net.Concat(_resize_twice(net, levels[i + 1]), levels[i], axis=1), 192, 96, 5)
    boxes, scores = [], []
    for x, stride in zip(levels, (8, 16, 32)):
        x = _depthwise(net, _depthwise(net, x, 96, 96, 5), 96, 96, 5)
        y = net.reshape(net.conv(x, 96, classes + 32, 1, gain=1.0), 1, classes + 32, -1)
        logits, distances = net.split(net.swap_last(y), [classes, 32], axis=2)
        line = np.arange(256 // stride, dtype=np.float32) * stride
        centers = [net.constant(part.reshape(1, -1)) for part in np.meshgrid(line, line)]
        boxes.append(_distances(net, distances, centers, stride))
        scores.append(net.Sigmoid(logits))
    _suppressed(net, net.Concat(*boxes, axis=1), net.Concat(*scores, axis=1), classes)


def _movenet_features(net, x):
    """MobileNetV2 and a pyramid: [1, 24, 48, 48]."""
    channels = 32
    x = net.Clip(net.conv(x, 3, 32, 3, 2), net.constant(0.0), net.constant(6.0))
    levels = []
    for width, stride, count in ((24, 2, 2), (32, 2, 3), (64, 2, 4), (160, 2, 3)):
        for i in range(count):
            hidden = 6 * channels if channels != 32 else 64
            y = net.Clip(net.conv(x, channels, hidden, 1), net.constant(0.0), net.constant(6.0))
            y = net.conv(y, hidden, hidden, 3, stride if i == 0 else 1, groups=hidden)
            y = net.conv(net.Clip(y, net.constant(0.0), net.constant(6.0)), hidden, width, 1)
            x = net.Add(x, y) if i > 0 else y
            channels = width
        levels.append((x, width))
    x = net.conv(x, channels, 64, 1)
    for level, width in reversed(levels[:-1]):
        target = 24 if width == 24 else 64
        y = net.Add(_resize_twice(net, x), net.conv(level, width, 64, 1))
        x = net.conv_relu(net.conv(y, 64, 64, 3, groups=64), 64, target, 1)
    return x


def _cell(net, heatmap, axis):
    """Row and column of the largest number, of 48 x 48 cells in a line."""
    place = net.Cast(net.ArgMax(heatmap, axis=axis, keepdims=0), to=INT32)
    side = net.constant(np.array(48, np.int32))
    row = net.Div(place, side)
    return row, net.Sub(place, net.Mul(row, side))


def _stacked(net, *parts):
    return net.Concat(*[net.Unsqueeze(part, net.ints([-1])) for part in parts], axis=-1)


@architecture
def movenet(net):
    """MoveNet Lightning (Google 2021), shallow: a middle, then 17 points near where it says; int32, 192 x 192."""
    x = net.Cast(net.input("input", [1, 192, 192, 3], INT32, between=(0, 255)), to=FLOAT)
    x = net.channels_first(net.Sub(net.Mul(x, net.constant(1 / 127.5)), net.constant(1.0)))
    x = _movenet_features(net, x)
    heads = [net.channels_last(net.conv(net.conv_relu(x, 24, 96, 3), 96, width, 1)) for width in (1, 34, 17, 34)]
    middle, places, points, offsets = heads
    weight = net.constant(np.hanning(50)[1:-1, None] * np.hanning(50)[1:-1])
    middle = net.Mul(net.Sigmoid(net.reshape(middle, 48, 48)), weight)
    row, column = _cell(net, net.reshape(middle, 1, 48 * 48), 1)
    places = net.GatherND(net.Squeeze(places, net.ints([0])), net.Cast(_stacked(net, row, column), to=INT64))
    cell = net.Cast(_stacked(net, row, column), to=FLOAT)
    places = net.Add(net.reshape(places, 17, 2), cell)
    line = net.constant(np.arange(48, dtype=np.float32))
    rows = net.Sub(net.reshape(line, 48, 1, 1), net.pick(places, 0, axis=1))
    columns = net.Sub(net.reshape(line, 1, 48, 1), net.pick(places, 1, axis=1))
    squares = net.Add(net.Mul(rows, rows), net.Mul(columns, columns))
    near = net.Div(net.Sigmoid(net.Squeeze(points, net.ints([0]))), net.Add(net.Sqrt(squares), net.constant(1.8)))
    rows, columns = _cell(net, net.reshape(near, 48 * 48, 17), 0)
    ids = net.constant(np.arange(17, dtype=np.int32))
    cells = net.Cast(_stacked(net, rows, columns, ids), to=INT64)
    offsets = net.GatherND(net.reshape(offsets, 48, 48, 17, 2), cells)
    scores = net.GatherND(net.Sigmoid(net.Squeeze(points, net.ints([0]))), cells)
    exact = net.Add(net.Cast(_stacked(net, rows, columns), to=FLOAT), offsets)
    found = net.Concat(net.Mul(exact, net.constant(1 / 48)), net.Unsqueeze(scores, net.ints([1])), axis=1)
    net.output(net.reshape(found, 1, 1, 17, 3))
