"""Images to maps of their size: key points, salience, what was missing, volumes, frames between frames."""

import numpy as np

from network import BRANCH_GAIN, RELU_GAIN
from registry import architecture

# Parallel branches --------------------------------------------------------------------------------------------------


def _basic_block(net, x, channels):
    y = net.conv(net.conv_relu(x, channels, channels, 3), channels, channels, 3, gain=BRANCH_GAIN)
    return net.Relu(net.Add(y, x))


def _to_finer(net, x, channels, width, steps):
    """By nearest pixels, 2^steps times."""
    scales = net.constant(np.array([1, 1, 2**steps, 2**steps], np.float32))
    x = net.conv(x, channels, width, 1, gain=BRANCH_GAIN)
    return net.Resize(x, "", scales, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")


def _to_coarser(net, x, channels, width, steps):
    """By convolutions of stride 2."""
    for _ in range(steps - 1):
        x = net.conv_relu(x, channels, channels, 3, 2)
    return net.conv(x, channels, width, 3, 2, gain=BRANCH_GAIN)


def _exchange(net, branches, widths):
    """Each branch becomes the sum of all, brought to its size."""
    sums = []
    for target, width in enumerate(widths):
        total = None
        for source, (x, channels) in enumerate(zip(branches, widths)):
            if source > target:
                x = _to_finer(net, x, channels, width, source - target)
            elif source < target:
                x = _to_coarser(net, x, channels, width, target - source)
            total = net.Add(total, x) if total else x
        sums.append(net.Relu(total))
    return sums


@architecture
def hrnet(net):
    """HRNet (Sun et al. 2019), 16 wide, 2 blocks a branch: four sizes that exchange; 17 points, 256 x 192."""
    x = net.conv_relu(net.conv_relu(net.input("x", [1, 3, 256, 192]), 3, 32, 3, 2), 32, 64, 3, 2)
    for _ in range(2):
        y = net.conv_relu(net.conv_relu(x, 64, 32, 1), 32, 32, 3)
        x = net.Relu(net.Add(net.conv(y, 32, 64, 1, gain=BRANCH_GAIN), x))
    branches = [net.conv_relu(x, 64, 16, 3), net.conv_relu(x, 64, 32, 3, 2)]
    for count in (2, 3, 4):
        widths = [16, 32, 64, 128][:count]
        if count > 2:
            branches.append(net.conv_relu(branches[-1], widths[-2], widths[-1], 3, 2))
        for _ in range(1 if count == 2 else 2):
            for i, width in enumerate(widths):
                for _ in range(2):
                    branches[i] = _basic_block(net, branches[i], width)
            branches = _exchange(net, branches, widths)
    net.output(net.conv(branches[0], 16, 17, 1))


# U-Nets -------------------------------------------------------------------------------------------------------------


def _resize_like(net, x, like):
    """To the height and width of another, read as it runs."""
    size = net.Concat(net.slice(net.Shape(x), 0, 2, 0), net.slice(net.Shape(like), 2, 4, 0), axis=0)
    return net.Resize(x, "", "", size, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")


def _nested_unet(net, x, channels, hidden, width, depth):
    """A U-Net of some depth within a layer."""
    first = net.conv_relu(x, channels, width, 3)
    levels = [net.conv_relu(first, width, hidden, 3)]
    for _ in range(depth - 2):
        y = net.MaxPool(levels[-1], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
        levels.append(net.conv_relu(y, hidden, hidden, 3))
    y = net.conv_relu(levels[-1], hidden, hidden, 3, dilation=2)
    while levels:
        level = levels.pop()
        y = net.conv_relu(net.Concat(y, level, axis=1), 2 * hidden, hidden if levels else width, 3,
                          gain=RELU_GAIN if levels else BRANCH_GAIN)
        y = _resize_like(net, y, levels[-1]) if levels else y
    return net.Add(y, first)


def _dilated_unet(net, x, channels, hidden, width):
    """The same without other sizes: dilations up to 8."""
    first = net.conv_relu(x, channels, width, 3)
    levels = [net.conv_relu(first, width, hidden, 3)]
    for dilation in (2, 4):
        levels.append(net.conv_relu(levels[-1], hidden, hidden, 3, dilation=dilation))
    y = net.conv_relu(levels[-1], hidden, hidden, 3, dilation=8)
    for dilation in (4, 2, 1):
        y = net.Concat(y, levels.pop(), axis=1)
        is_last = dilation == 1
        y = net.conv_relu(y, 2 * hidden, width if is_last else hidden, 3, dilation=dilation,
                          gain=BRANCH_GAIN if is_last else RELU_GAIN)
    return net.Add(y, first)


@architecture
def u2netp(net):
    """U2-Net's small form (Qin et al. 2020): U-Nets in a U-Net, sizes read as it runs; 160 x 160."""
    image = net.input("x", [1, 3, 160, 160])
    x = image
    channels = 3
    levels = []
    for depth in (7, 6, 5, 4, None, None):
        if levels:
            x = net.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
        x = _nested_unet(net, x, channels, 16, 64, depth) if depth else _dilated_unet(net, x, channels, 16, 64)
        levels.append(x)
        channels = 64
    maps = [levels.pop()]
    for depth in (None, 4, 5, 6, 7):
        level = levels.pop()
        y = net.Concat(_resize_like(net, maps[-1], level), level, axis=1)
        maps.append(_nested_unet(net, y, 128, 16, 64, depth) if depth else _dilated_unet(net, y, 128, 16, 64))
    sides = [_resize_like(net, net.conv(x, 64, 1, 3, gain=BRANCH_GAIN), image) for x in reversed(maps)]
    joined = net.conv(net.Concat(*sides, axis=1), 6, 1, 1)
    net.output(*[net.Sigmoid(x) for x in [joined, *sides]])


@architecture
def unet3d(net):
    """nnU-Net of volumes (Isensee et al. 2021), 4 sizes of 16 to 128 channels: InstanceNormalization; 24 x 48 x 48."""

    def layer(x, channels, width, stride=1):
        y = net.conv(x, channels, width, 3, stride, dims=3)
        y = net.InstanceNormalization(y, net.scale(width), net.bias(width), epsilon=1e-5)
        return net.LeakyRelu(y, alpha=0.01)

    x = net.input("x", [1, 1, 24, 48, 48])
    channels = 1
    skipped = []
    for width in (16, 32, 64, 128):
        x = layer(layer(x, channels, width, 2 if skipped else 1), width, width)
        skipped.append(x)
        channels = width
    skipped.pop()
    while skipped:
        width = channels // 2
        y = net.Concat(net.conv_transpose(x, channels, width, 2, 2, dims=3), skipped.pop(), axis=1)
        x = layer(layer(y, channels, width), width, width)
        channels = width
    net.output(net.Softmax(net.conv(x, channels, 4, 1, dims=3), axis=1))


# Fourier convolutions -----------------------------------------------------------------------------------------------


def _to_frequencies(net, x):
    """torch.fft.rfft2: [1, channels, height, width / 2 + 1, 2]."""
    x = net.Unsqueeze(x, net.ints([-1]))
    return net.DFT(net.DFT(x, axis=3, onesided=1), axis=2)


def _from_frequencies(net, x, side):
    """torch.fft.irfft2: the half that is not there mirrors the other."""
    x = net.DFT(x, axis=2, inverse=1)
    mirrored = net.Mul(net.slice(x, side // 2 - 1, 0, 3, -1), net.constant(np.array([1, -1], np.float32)))
    x = net.DFT(net.Concat(x, mirrored, axis=3), axis=3, inverse=1)
    return net.pick(x, 0, axis=4)


def _spectral(net, x, channels, width, side):
    """A product of each frequency's numbers, between two of pixels."""
    half = width // 2
    x = net.conv_relu(x, channels, half, 1)
    y = net.Mul(_to_frequencies(net, x), net.constant(1 / side))
    y = net.reshape(net.transpose(y, 0, 1, 4, 2, 3), 0, 2 * half, side, side // 2 + 1)
    y = net.conv_relu(y, 2 * half, 2 * half, 1)
    y = net.transpose(net.reshape(y, 0, half, 2, side, side // 2 + 1), 0, 1, 3, 4, 2)
    y = net.Mul(_from_frequencies(net, y, side), net.constant(float(side)))
    return net.conv(net.Add(x, y), half, width, 1, gain=BRANCH_GAIN)


def _reflected_conv(net, x, channels, width, kernel, stride=1, gain=1.0):
    border = kernel // 2
    x = net.Pad(x, net.ints([0, 0, border, border] * 2), mode="reflect")
    return net.conv(x, channels, width, kernel, stride, padding=0, gain=gain)


def _fourier_layer(net, near, far, side):
    """Of 32 channels that see their neighbours and 96 that see all."""
    new_near = net.Add(_reflected_conv(net, near, 32, 32, 3), _reflected_conv(net, far, 96, 32, 3))
    new_far = net.Add(_reflected_conv(net, near, 32, 96, 3), _spectral(net, far, 96, 96, side))
    return net.Relu(new_near), net.Relu(new_far)


@architecture
def lama(net):
    """LaMa (Suvorov et al. 2022), 4 blocks, 128 wide: convolutions of frequencies fill what is missing; 192 x 192."""
    image = net.input("image", [1, 3, 192, 192])
    mask = net.Cast(net.Greater(net.input("mask", [1, 1, 192, 192]), net.constant(0.0)), to=1)
    kept = net.Mul(image, net.Sub(net.constant(1.0), mask))
    x = net.Relu(_reflected_conv(net, net.Concat(kept, mask, axis=1), 4, 16, 7))
    for channels in (16, 32, 64):
        x = net.Relu(_reflected_conv(net, x, channels, 2 * channels, 3, 2, gain=1.4))
    near, far = net.split(x, [32, 96], axis=1)
    for _ in range(4):
        y, z = _fourier_layer(net, *_fourier_layer(net, near, far, 24), 24)
        near, far = net.Add(near, y), net.Add(far, z)
    x = net.Concat(near, far, axis=1)
    for channels in (128, 64, 32):
        weights = net.weights(channels, channels // 2, 3, 3, fan=channels * 9 / 4, gain=BRANCH_GAIN)
        x = net.Relu(net.ConvTranspose(x, weights, net.bias(channels // 2), kernel_shape=[3, 3], strides=[2, 2],
                                       pads=[1] * 4, output_padding=[1, 1]))
    x = net.Sigmoid(_reflected_conv(net, x, 16, 3, 7))
    net.output(net.Add(net.Mul(mask, x), kept))


# Motion -------------------------------------------------------------------------------------------------------------


def _scaled(net, x, factor):
    return net.Resize(x, "", net.constant(np.array([1, 1, factor, factor], np.float32)), mode="linear",
                      coordinate_transformation_mode="pytorch_half_pixel")


def _warp(net, image, flow, base, side):
    """The image read where the flow points, at its border from beyond."""
    places = net.Add(base, net.Div(flow, net.constant((side - 1) / 2)))
    return net.GridSample(image, net.channels_last(places), align_corners=1, padding_mode="border")


def _flow_block(net, x, channels, width, scale):
    """Changes of both flows and of the mask, computed on an image scaled down."""

    def prelu(y):
        return net.PRelu(y, net.constant(0.25 + 0.05 * net.rng.standard_normal((width, 1, 1))))

    x = _scaled(net, x, 1 / scale) if scale > 1 else x
    x = prelu(net.conv(prelu(net.conv(x, channels, width, 3, 2)), width, width, 3, 2))
    y = x
    for _ in range(4):
        y = prelu(net.conv(y, width, width, 3))
    y = net.conv_transpose(net.Add(y, x), width, 5, 4, 2, padding=1)
    y = _scaled(net, y, 2.0 * scale)
    return net.Mul(net.slice(y, 0, 4, 1), net.constant(float(scale))), net.slice(y, 4, 5, 1)


@architecture
def rife(net):
    """RIFE (Huang et al. 2022), 48 wide: the frame between two, read where three flows point; 128 x 128."""
    side = 128
    frames = [net.input(name, [1, 3, side, side]) for name in ("img0", "img1")]
    line = np.linspace(-1, 1, side, dtype=np.float32)
    base = net.constant(np.stack(np.meshgrid(line, line))[None])
    flow, mask = _flow_block(net, net.Concat(*frames, axis=1), 6, 48, 4)
    warped = frames
    for scale in (2, 1, None):
        warped = [_warp(net, frame, net.slice(flow, begin, begin + 2, 1), base, side)
                  for frame, begin in zip(frames, (0, 2))]
        if scale:
            x = net.Concat(*warped, mask, flow, axis=1)
            flow_change, mask_change = _flow_block(net, x, 11, 48, scale)
            flow, mask = net.Add(flow, flow_change), net.Add(mask, mask_change)
    mask = net.Sigmoid(mask)
    rest = net.Sub(net.constant(1.0), mask)
    net.output(net.Add(net.Mul(warped[0], mask), net.Mul(warped[1], rest)))
