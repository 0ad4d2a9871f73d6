"""What images show and where: detection, segmentation, text, motion."""

import numpy as np

from graph import INT64
from network import BRANCH_GAIN
from registry import architecture


def _yolo_block(net, x, channels, width, count, has_shortcuts=True):
    """C2f: bottlenecks of half the width, all of whose outputs are joined."""
    half = width // 2
    parts = net.split(net.conv_silu(x, channels, width, 1), [half, half], axis=1)
    for _ in range(count):
        y = net.conv_silu(net.conv_silu(parts[-1], half, half, 3), half, half, 3)
        parts.append(net.Add(parts[-1], y) if has_shortcuts else y)
    return net.conv_silu(net.Concat(*parts, axis=1), (2 + count) * half, width, 1)


def _yolo_backbone(net, x):
    """Features at strides of 8, 16 and 32: 64, 128 and 256 channels."""
    x = net.conv_silu(net.conv_silu(x, 3, 16, 3, 2), 16, 32, 3, 2)
    x = _yolo_block(net, x, 32, 32, 1)
    eighth = _yolo_block(net, net.conv_silu(x, 32, 64, 3, 2), 64, 64, 2)
    sixteenth = _yolo_block(net, net.conv_silu(eighth, 64, 128, 3, 2), 128, 128, 2)
    x = _yolo_block(net, net.conv_silu(sixteenth, 128, 256, 3, 2), 256, 256, 1)
    pooled = [net.conv_silu(x, 256, 128, 1)]
    for _ in range(3):
        pooled.append(net.MaxPool(pooled[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    return eighth, sixteenth, net.conv_silu(net.Concat(*pooled, axis=1), 512, 256, 1)


def _yolo_neck(net, eighth, sixteenth, last):
    """Features of each stride with what the others saw: up, then down again."""
    x = net.Concat(net.upsample(last), sixteenth, axis=1)
    middle = _yolo_block(net, x, 384, 128, 1, has_shortcuts=False)
    x = net.Concat(net.upsample(middle), eighth, axis=1)
    fine = _yolo_block(net, x, 192, 64, 1, has_shortcuts=False)
    x = net.Concat(net.conv_silu(fine, 64, 64, 3, 2), middle, axis=1)
    middle = _yolo_block(net, x, 192, 128, 1, has_shortcuts=False)
    x = net.Concat(net.conv_silu(middle, 128, 128, 3, 2), last, axis=1)
    return fine, middle, _yolo_block(net, x, 384, 256, 1, has_shortcuts=False)


def _yolo_boxes(net, x, count):
    """From distributions over 16 distances to each side: [1, 4, count], middle and size."""
    x = net.Softmax(net.transpose(net.reshape(x, 1, 4, 16, count), 0, 2, 1, 3), axis=1)
    distances = net.constant(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    x = net.reshape(net.Conv(x, distances, kernel_shape=[1, 1]), 1, 4, count)
    left_top = net.slice(x, 0, 2, 1)
    right_bottom = net.slice(x, 2, 4, 1)
    anchors = net.constant(np.abs(net.rng.standard_normal((1, 2, count))).astype(np.float32) * 20)
    begin = net.Sub(anchors, left_top)
    end = net.Add(anchors, right_bottom)
    middle = net.Div(net.Add(begin, end), net.constant(2.0))
    extent = net.Sub(end, begin)
    return net.Mul(net.Concat(middle, extent, axis=1), net.constant(np.full((1, count), 8, np.float32)))


@architecture
def yolov8n(net):
    """YOLOv8n (Ultralytics 2023) with its boxes decoded, 80 classes, random anchors; 320 x 320."""
    side = 320
    features = _yolo_neck(net, *_yolo_backbone(net, net.input("images", [1, 3, side, side])))
    rows = []
    count = 0
    for x, channels, stride in zip(features, (64, 128, 256), (8, 16, 32)):
        y = net.conv_silu(net.conv_silu(x, channels, 64, 3), 64, 64, 3)
        boxes = net.conv(y, 64, 64, 1)
        y = net.conv_silu(net.conv_silu(x, channels, 80, 3), 80, 80, 3)
        classes = net.conv(y, 80, 80, 1)
        rows.append(net.reshape(net.Concat(boxes, classes, axis=1), 1, 144, -1))
        count += (side // stride) ** 2
    boxes, classes = net.split(net.Concat(*rows, axis=2), [64, 80], axis=1)
    boxes = _yolo_boxes(net, boxes, count)
    net.output(net.Concat(boxes, net.Sigmoid(classes), axis=1))


@architecture
def retinaface_nms(net):
    """Faces in one shot, as RetinaFace (Deng et al. 2020) with MobileNet, and NonMaxSuppression; 256 x 256."""
    x = net.conv_relu(net.input("x", [1, 3, 256, 256]), 3, 16, 3, 2)
    channels = 16
    for width, stride in ((32, 1), (64, 2), (128, 2)):
        x = net.conv_relu(x, channels, channels, 3, stride, groups=channels)
        x = net.conv_relu(x, channels, width, 1)
        channels = width
    boxes = net.reshape(net.channels_last(net.conv(x, channels, 8, 3)), 1, -1, 4)
    scores = net.reshape(net.channels_last(net.conv(x, channels, 4, 3)), 1, -1, 2)
    scores = net.swap_last(net.Softmax(scores, axis=-1))
    half = np.array([0.5], np.float32)
    chosen = net.NonMaxSuppression(boxes, scores, net.ints([200]), net.constant(half), net.constant(half))
    net.output(net.Gather(boxes, net.pick(chosen, 2, axis=1), axis=1))
    net.output(chosen, element_type=INT64)


def _resize_to(net, x, channels, side, **options):
    return net.Resize(x, "", "", net.ints([1, channels, side, side]), mode="linear", **options)


@architecture
def deeplab_v3(net):
    """DeepLabV3 (Chen et al. 2017) on a small ResNet: dilated convolutions, a pyramid, 21 classes; 257 x 257."""
    half_pixel = {"coordinate_transformation_mode": "pytorch_half_pixel"}
    x = net.conv_relu(net.input("x", [1, 3, 257, 257]), 3, 32, 3, 2)
    channels = 32
    for hidden, width, first_stride, dilation in ((32, 64, 2, 1), (64, 128, 2, 1), (128, 256, 1, 2), (128, 256, 1, 4)):
        for i in range(2):
            stride = first_stride if i == 0 else 1
            y = net.conv_relu(x, channels, hidden, 1)
            y = net.conv_relu(y, hidden, hidden, 3, stride, dilation=dilation)
            y = net.conv(y, hidden, width, 1, gain=BRANCH_GAIN)
            shortcut = net.conv(x, channels, width, 1, stride) if channels != width else x
            x = net.Relu(net.Add(y, shortcut))
            channels = width
    pyramid = [net.conv_relu(x, 256, 128, 1)]
    for dilation in (6, 12, 18):
        pyramid.append(net.conv_relu(x, 256, 128, 3, dilation=dilation))
    pooled = net.conv_relu(net.GlobalAveragePool(x), 256, 128, 1)
    pyramid.append(_resize_to(net, pooled, 128, 33, **half_pixel))
    x = net.conv_relu(net.Concat(*pyramid, axis=1), 640, 128, 1)
    x = net.conv(net.conv_relu(x, 128, 128, 3), 128, 21, 1)
    x = _resize_to(net, x, 21, 257, **half_pixel)
    net.output(net.ArgMax(x, axis=1, keepdims=0), element_type=INT64)


@architecture
def unet(net):
    """U-Net (Ronneberger et al. 2015), 32 to 512 channels, transposed convolutions; 192 x 192."""

    def pair(x, channels, width):
        return net.conv_relu(net.conv_relu(x, channels, width, 3), width, width, 3)

    x = net.input("x", [1, 3, 192, 192])
    channels = 3
    skipped = []
    for width in (32, 64, 128, 256):
        x = pair(x, channels, width)
        skipped.append(x)
        x = net.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2])
        channels = width
    x = pair(x, channels, 512)
    channels = 512
    for width in (256, 128, 64, 32):
        y = net.conv_transpose(x, channels, width, 2, 2)
        x = pair(net.Concat(skipped.pop(), y, axis=1), 2 * width, width)
        channels = width
    net.output(net.Sigmoid(net.conv(x, channels, 1, 1)))


def _segformer_layer(net, x, width, heads, side, reduction):
    """Attention to every reduction-th row and column, then products with a depthwise convolution between them."""
    count = side * side
    y = net.layer_norm(x, width)
    context = y
    context_side = side // reduction
    if reduction > 1:
        context = net.conv(net.tokens_to_image(y, width, side), width, width, reduction, reduction, padding=0)
        context = net.layer_norm(net.image_to_tokens(context, width, context_side**2), width)
    x = net.Add(x, net.attention(y, count, width, heads, context, context_side**2))
    y = net.linear(net.layer_norm(x, width), width, 4 * width)
    y = net.conv(net.tokens_to_image(y, 4 * width, side), 4 * width, 4 * width, 3, groups=4 * width)
    y = net.gelu(net.image_to_tokens(y, 4 * width, count))
    return net.Add(x, net.linear(y, 4 * width, width))


@architecture
def segformer(net):
    """SegFormer-B0 (Xie et al. 2021), its decoder 128 wide: attention to fewer keys, 19 classes; 256 x 256."""
    x = net.input("x", [1, 3, 256, 256])
    channels = 3
    side = 256
    features = []
    for width, heads, reduction, kernel, stride in ((32, 1, 8, 7, 4), (64, 2, 4, 3, 2), (160, 5, 2, 3, 2),
                                                    (256, 8, 1, 3, 2)):
        x = net.conv(x, channels, width, kernel, stride)
        side //= stride
        x = net.layer_norm(net.image_to_tokens(x, width, side * side), width)
        for _ in range(2):
            x = _segformer_layer(net, x, width, heads, side, reduction)
        y = net.tokens_to_image(net.linear(x, width, 128), 128, side)
        features.append(_resize_to(net, y, 128, 64) if side != 64 else y)
        x = net.tokens_to_image(net.layer_norm(x, width), width, side)
        channels = width
    x = net.conv_relu(net.Concat(*reversed(features), axis=1), 512, 128, 1)
    net.output(net.conv(x, 128, 19, 1))


@architecture
def crnn(net):
    """CRNN (Shi et al. 2017): a line of text by convolutions and two LSTMs of both directions; 32 x 160, grey."""
    x = net.input("x", [1, 1, 32, 160])
    for channels, width, pool in ((1, 64, (2, 2)), (64, 128, (2, 2)), (128, 256, None), (256, 256, (2, 1)),
                                  (256, 512, None), (512, 512, (2, 1))):
        x = net.conv_relu(x, channels, width, 3)
        if pool:
            x = net.MaxPool(x, kernel_shape=pool, strides=pool)
    x = net.conv_relu(x, 512, 512, 2, padding=0)
    x = net.transpose(net.Squeeze(x, net.ints([2])), 2, 0, 1)
    for _ in range(2):
        x = net.lstm(x, 512, 256, directions=2)
        x = net.reshape(net.transpose(x, 0, 2, 1, 3), 0, 0, -1)
    net.output(net.LogSoftmax(net.linear(x, 512, 37), axis=2))


@architecture
def raft_flow(net):
    """RAFT's updates (Teed, Deng 2020): all pairs' correlations read where the flow points; features of 32 x 32."""
    side = 32
    count = side * side
    first = net.input("f1", [1, 64, side, side])
    second = net.input("f2", [1, 64, side, side])
    flow = net.input("coords", [1, side, side, 2])
    rows = net.swap_last(net.reshape(first, 1, 64, count))
    products = net.MatMul(rows, net.reshape(second, 1, 64, count))
    correlations = net.reshape(net.Div(products, net.constant(8.0)), count, 1, side, side)
    state = net.conv(first, 64, 64, 3)
    pyramid = [correlations, net.AveragePool(correlations, kernel_shape=[2, 2], strides=[2, 2])]
    steps = np.stack(np.meshgrid(np.arange(-3, 4), np.arange(-3, 4)), -1).reshape(1, 7, 7, 2)
    neighbours = net.constant(steps.astype(np.float32) / side)
    for _ in range(3):
        places = net.Add(net.reshape(flow, count, 1, 1, 2), neighbours)
        read = [net.reshape(net.GridSample(level, places, align_corners=1), 1, side, side, 49) for level in pyramid]
        motion = net.conv_relu(net.channels_first(net.Concat(*read, axis=3)), 98, 64, 1)
        gate = net.Sigmoid(net.conv(net.Concat(state, motion, axis=1), 128, 64, 3))
        fresh = net.Concat(net.Mul(gate, state), motion, axis=1)
        fresh = net.Tanh(net.conv(fresh, 128, 64, 3))
        kept = net.Mul(net.Sub(net.constant(1.0), gate), state)
        state = net.Add(kept, net.Mul(gate, fresh))
        change = net.conv(net.conv_relu(state, 64, 64, 3), 64, 2, 3, gain=0.01)
        flow = net.Add(flow, net.channels_last(change))
    net.output(flow)
