"""What makes images: diffusion, adversarial networks, super resolution, radiance fields."""

import numpy as np

from registry import architecture


def _group_norm(net, x, channels, side):
    return net.group_norm(x, 32, [1, channels, side, side])


def _residual(net, x, channels, width, side, time=None):
    """The ResNet block of diffusion models; `time` is the embedding of the step, where there is one."""
    y = net.conv(net.silu(_group_norm(net, x, channels, side)), channels, width, 3)
    if time:
        row = net.gemm(net.silu(time), 1280, width)
        y = net.Add(y, net.Unsqueeze(net.Unsqueeze(row, net.ints([2])), net.ints([3])))
    y = net.conv(net.silu(_group_norm(net, y, width, side)), width, width, 3)
    shortcut = net.conv(x, channels, width, 1) if channels != width else x
    return net.Add(shortcut, y)


def _context_transformer(net, x, channels, side, context):
    """Attention of pixels to each other, then to the text, then products gated by GELU."""
    count = side * side
    y = _group_norm(net, x, channels, side)
    y = net.reshape(net.channels_last(net.conv(y, channels, channels, 1)), 1, count, channels)
    y = net.Add(y, net.attention(net.layer_norm(y, channels), count, channels, 8))
    y = net.Add(y, net.attention(net.layer_norm(y, channels), count, channels, 8, context, 77, 768))
    hidden = net.linear(net.layer_norm(y, channels), channels, 8 * channels)
    hidden, gate = net.split(hidden, [4 * channels] * 2, axis=-1)
    y = net.Add(y, net.linear(net.Mul(hidden, net.gelu(gate)), 4 * channels, channels))
    y = net.channels_first(net.reshape(y, 1, side, side, channels))
    return net.Add(net.conv(y, channels, channels, 1), x)


@architecture
def sd_unet(net):
    """Stable Diffusion's U-Net (Rombach et al. 2022), two levels, narrow: latents of 32 x 32, a text of 77 x 768."""
    x = net.input("sample", [1, 4, 32, 32])
    time = net.input("temb", [1, 1280])
    context = net.input("context", [1, 77, 768])
    x = net.conv(x, 4, 128, 3)
    skipped = _context_transformer(net, _residual(net, x, 128, 128, 32, time), 128, 32, context)
    x = net.conv(skipped, 128, 128, 3, 2)
    x = _context_transformer(net, _residual(net, x, 128, 256, 16, time), 256, 16, context)
    x = _residual(net, x, 256, 256, 16, time)
    x = net.conv(net.upsample(x), 256, 256, 3)
    x = _residual(net, net.Concat(x, skipped, axis=1), 384, 128, 32, time)
    x = _context_transformer(net, x, 128, 32, context)
    net.output(net.conv(net.silu(_group_norm(net, x, 128, 32)), 128, 4, 3))


@architecture
def sd_vae_decoder(net):
    """Stable Diffusion's decoder of latents (Rombach et al. 2022), narrow: 16 x 16 to an image of 128 x 128."""
    channels = 256
    side = 16
    x = net.conv(net.input("latent", [1, 4, side, side]), 4, channels, 3)
    x = _residual(net, x, channels, channels, side)
    for width in (256, 128, 64):
        x = _residual(net, x, channels, width, side)
        x = net.conv(net.upsample(x), width, width, 3)
        channels = width
        side *= 2
    net.output(net.conv(net.silu(_group_norm(net, x, channels, side)), channels, 3, 3))


@architecture
def stylegan(net):
    """StyleGAN2's synthesis (Karras et al. 2020): weights computed from the style; 8 x 8 to 64 x 64."""
    style = net.input("w", [1, 256])
    channels = 256
    x = net.weights(1, channels, 8, 8, fan=1)
    for width in (256, 128, 64):
        factors = net.reshape(net.gemm(style, 256, channels), 1, 1, channels, 1, 1)
        weights = net.Mul(net.weights(1, width, channels, 3, 3, fan=9 * channels), factors)
        one = net.constant(1.0)
        energy = net.ReduceSum(net.Mul(weights, weights), net.ints([2, 3, 4]), keepdims=1)
        norm = net.Div(one, net.Sqrt(net.Add(energy, net.constant(1e-8))))
        weights = net.reshape(net.Mul(weights, norm), width, channels, 3, 3)
        x = net.Resize(x, "", net.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear")
        x = net.Conv(x, weights, kernel_shape=[3, 3], pads=[1] * 4)
        x = net.Add(x, net.constant(0.1 * net.rng.standard_normal((1, width, 1, 1))))
        x = net.LeakyRelu(x, alpha=0.2)
        channels = width
    net.output(net.conv(x, channels, 3, 1))


@architecture
def esrgan(net):
    """ESRGAN (Wang et al. 2018), two of its dense blocks: super resolution of 64 x 64 to 256 x 256."""
    x = net.conv(net.input("x", [1, 3, 64, 64]), 3, 64, 3)
    first = x
    for _ in range(2):
        features = [x]
        for i in range(4):
            y = net.Concat(*features, axis=1) if i > 0 else x
            features.append(net.LeakyRelu(net.conv(y, 64 + 32 * i, 32, 3), alpha=0.2))
        y = net.conv(net.Concat(*features, axis=1), 192, 64, 3)
        x = net.Add(net.Mul(y, net.constant(0.2)), x)
    x = net.Add(first, net.conv(x, 64, 64, 3))
    for width in (64, 32):
        x = net.LeakyRelu(net.conv(net.upsample(x), 64, width, 3), alpha=0.2)
    net.output(net.conv(x, 32, 3, 3))


@architecture
def style_transfer(net):
    """Style transfer (Johnson et al. 2016), 3 residual blocks: InstanceNormalization, reflected borders; 224 x 224."""

    def padded_conv(x, channels, width, kernel, stride=1):
        border = kernel // 2
        x = net.Pad(x, net.ints([0, 0, border, border] * 2), mode="reflect")
        return net.conv(x, channels, width, kernel, stride, padding=0)

    def layer(x, channels, width, kernel, stride=1):
        x = padded_conv(x, channels, width, kernel, stride)
        return net.InstanceNormalization(x, net.scale(width), net.bias(width))

    x = net.Relu(layer(net.input("x", [1, 3, 224, 224]), 3, 32, 9))
    x = net.Relu(layer(x, 32, 64, 3, 2))
    x = net.Relu(layer(x, 64, 128, 3, 2))
    for _ in range(3):
        y = net.Relu(layer(x, 128, 128, 3))
        x = net.Add(layer(y, 128, 128, 3), x)
    x = net.Relu(layer(net.upsample(x), 128, 64, 3))
    x = net.Relu(layer(net.upsample(x), 64, 32, 3))
    net.output(padded_conv(x, 32, 3, 9))


@architecture
def nerf(net):
    """NeRF (Mildenhall et al. 2020), 7 layers of 128: color and density of points, as sines; 4096 points."""
    x = net.input("x", [4096, 3])
    waves = [wave(net.Mul(x, net.constant(float(2**i)))) for i in range(8) for wave in (net.Sin, net.Cos)]
    encoded = net.Concat(x, *waves, axis=1)
    y = net.Relu(net.linear(encoded, 51, 128))
    for i in range(6):
        if i == 3:
            y = net.Relu(net.linear(net.Concat(y, encoded, axis=1), 179, 128))
        else:
            y = net.Relu(net.linear(y, 128, 128))
    net.output(net.linear(y, 128, 4))
