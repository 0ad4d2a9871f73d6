"""Layers, as PyTorch's exporter writes them: what architectures are made of.

A layer takes the names of its inputs and adds nodes; its weights are drawn as it is added. Images are [1, channels,
height, width], tokens [1, count, width].
"""

import math

import numpy as np

from graph import Graph

RELU_GAIN = 1.4  # sqrt(2): half of what Relu gets is lost (He et al. 2015)
BRANCH_GAIN = 0.5  # of the last convolution of a residual branch, so that sums of many stay small
TO_END = 2**63 - 1  # the end of a slice that has none, as PyTorch writes it


def _per_dim(value, dims):
    return [value] * dims if isinstance(value, int) else list(value)


class Network(Graph):
    """A graph that knows layers."""

    # Convolutions ---------------------------------------------------------------------------------------------------

    def conv(self, x, channels, filters, kernel, stride=1, *, groups=1, padding=None, dilation=1, bias=True, dims=2,
             gain=RELU_GAIN):
        """Padded to keep the size, unless `padding` says how much."""
        kernel = _per_dim(kernel, dims)
        padding = [(k - 1) * dilation // 2 for k in kernel] if padding is None else [padding] * dims
        inputs = [x, self.weights(filters, channels // groups, *kernel, gain=gain)]
        if bias:
            inputs.append(self.bias(filters))
        return self.Conv(*inputs, kernel_shape=kernel, strides=_per_dim(stride, dims), pads=padding * 2, group=groups,
                         dilations=[dilation] * dims)

    def conv_relu(self, x, channels, filters, kernel, stride=1, **options):
        return self.Relu(self.conv(x, channels, filters, kernel, stride, **options))

    def conv_silu(self, x, channels, filters, kernel, stride=1, **options):
        return self.silu(self.conv(x, channels, filters, kernel, stride, **options))

    def conv_transpose(self, x, channels, filters, kernel, stride, padding=0, dims=2):
        weights = self.weights(channels, filters, *[kernel] * dims, fan=channels * kernel**dims / stride**dims)
        return self.ConvTranspose(x, weights, self.bias(filters), kernel_shape=[kernel] * dims, strides=[stride] * dims,
                                  pads=[padding] * 2 * dims, output_padding=[0] * dims)

    def upsample(self, x):
        """Twice the height and width, by nearest pixels."""
        return self.Resize(x, "", self.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                           coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def squeeze_excite(self, x, channels, squeezed, activation=None, gate=None):
        activation = activation or self.Relu
        gate = gate or self.Sigmoid
        y = self.GlobalAveragePool(x)
        y = activation(self.conv(y, channels, squeezed, 1))
        y = self.conv(y, squeezed, channels, 1)
        return self.Mul(x, gate(y))

    def classifier(self, x, channels, classes=1000):
        """From an image to logits."""
        return self.gemm(self.Flatten(self.GlobalAveragePool(x)), channels, classes)

    # Products -------------------------------------------------------------------------------------------------------

    def gemm(self, x, width, outputs):
        """nn.Linear of a matrix."""
        return self.Gemm(x, self.weights(outputs, width), self.bias(outputs), transB=1)

    def linear(self, x, width, outputs, bias=True):
        """nn.Linear of more dims."""
        y = self.MatMul(x, self.weights(width, outputs, fan=width))
        return self.Add(self.bias(outputs), y) if bias else y

    def feed_forward(self, x, width, hidden):
        return self.linear(self.gelu(self.linear(x, width, hidden)), hidden, width)

    def gated_feed_forward(self, x, width, hidden, activation):
        gate = activation(self.linear(x, width, hidden, bias=False))
        y = self.Mul(gate, self.linear(x, width, hidden, bias=False))
        return self.linear(y, hidden, width, bias=False)

    # Activations ----------------------------------------------------------------------------------------------------

    def silu(self, x):
        return self.Mul(x, self.Sigmoid(x))

    def gelu(self, x):
        y = self.Erf(self.Div(x, self.constant(math.sqrt(2))))
        y = self.Mul(x, self.Add(y, self.constant(1.0)))
        return self.Mul(y, self.constant(0.5))

    def gelu_tanh(self, x):
        factor = self.constant(math.sqrt(2 / math.pi))
        cube = self.Mul(self.Pow(x, self.constant(3.0)), self.constant(0.044715))
        inner = self.Mul(factor, self.Add(x, cube))
        half = self.Mul(x, self.constant(0.5))
        return self.Mul(half, self.Add(self.Tanh(inner), self.constant(1.0)))

    # Normalizations -------------------------------------------------------------------------------------------------

    def batch_norm(self, x, channels):
        return self.BatchNormalization(x, self.scale(channels), self.bias(channels), self.bias(channels),
                                       self.variance(channels))

    def layer_norm(self, x, width):
        return self.LayerNormalization(x, self.scale(width), self.bias(width), axis=-1, epsilon=1e-5)

    def rms_norm(self, x, width):
        square = self.ReduceMean(self.Pow(x, self.constant(2.0)), axes=[-1], keepdims=1)
        scale = self.scale(width)
        one = self.constant(1.0)
        root = self.Sqrt(self.Add(square, self.constant(1e-6)))
        return self.Mul(scale, self.Mul(x, self.Div(one, root)))

    def group_norm(self, x, groups, shape):
        """Of `shape`, whose second dim is channels: ONNX has no such operator at this opset."""
        y = self.Reshape(x, self.ints([0, groups, -1]))
        ones = self.constant(np.ones(groups, np.float32))
        zeros = self.constant(np.zeros(groups, np.float32))
        y = self.InstanceNormalization(y, ones, zeros, epsilon=1e-5)
        y = self.Reshape(y, self.ints(shape))
        per_channel = [shape[1]] + [1] * (len(shape) - 2)
        y = self.Mul(y, self.constant(1 + 0.1 * self.rng.standard_normal(per_channel)))
        return self.Add(y, self.constant(0.1 * self.rng.standard_normal(per_channel)))

    # Moves ----------------------------------------------------------------------------------------------------------

    def reshape(self, x, *shape):
        return self.Reshape(x, self.ints(shape))

    def transpose(self, x, *order):
        return self.Transpose(x, perm=order)

    def slice(self, x, begin, end, axis, step=1):
        return self.Slice(x, self.ints([begin]), self.ints([end]), self.ints([axis]), self.ints([step]))

    def pick(self, x, index, axis=0):
        """x[index] along an axis, which disappears."""
        return self.Gather(x, self.ints(index), axis=axis)

    def split(self, x, sizes, axis):
        return self.Split(x, self.ints(sizes), axis=axis, output_count=len(sizes))

    def channels_last(self, x):
        return self.transpose(x, 0, 2, 3, 1)

    def channels_first(self, x):
        return self.transpose(x, 0, 3, 1, 2)

    def swap_last(self, x):
        """Of three dims."""
        return self.transpose(x, 0, 2, 1)

    def image_to_tokens(self, x, channels, count):
        return self.swap_last(self.reshape(x, 1, channels, count))

    def tokens_to_image(self, x, channels, side):
        return self.reshape(self.swap_last(x), 1, channels, side, side)

    # Attention ------------------------------------------------------------------------------------------------------

    def split_heads(self, x, count, heads, head_width):
        """[1, heads, count, head_width]."""
        return self.transpose(self.reshape(x, 1, count, heads, head_width), 0, 2, 1, 3)

    def join_heads(self, x, *shape):
        return self.reshape(self.transpose(x, 0, 2, 1, 3), *shape)

    def attend(self, scores, values):
        """Rows of values, mixed."""
        return self.MatMul(self.Softmax(scores, axis=-1), values)

    def packed_heads(self, x, batch, count, width, heads):
        """Queries, keys and values from one product: [batch, heads, count, width / heads] each."""
        y = self.reshape(self.linear(x, width, 3 * width), batch, count, 3, heads, width // heads)
        y = self.transpose(y, 2, 0, 3, 1, 4)
        return [self.pick(y, i) for i in range(3)]

    def attention(self, x, count, width, heads, context=None, context_count=None, context_width=None):
        """Of x to itself, or to a context; three products make queries, keys and values."""
        context = context or x
        context_count = context_count or count
        context_width = context_width or width
        head_width = width // heads
        queries = self.split_heads(self.linear(x, width, width), count, heads, head_width)
        keys = self.reshape(self.linear(context, context_width, width), 1, context_count, heads, head_width)
        keys = self.transpose(keys, 0, 2, 3, 1)
        values = self.split_heads(self.linear(context, context_width, width), context_count, heads, head_width)
        scores = self.Div(self.MatMul(queries, keys), self.constant(math.sqrt(head_width)))
        y = self.join_heads(self.attend(scores, values), 1, count, width)
        return self.linear(y, width, width)

    # Recurrent layers -----------------------------------------------------------------------------------------------

    def lstm(self, x, width, hidden, directions=1):
        """[steps, directions, batch, hidden]."""
        weights = self.weights(directions, 4 * hidden, width, fan=width)
        recurrent = self.weights(directions, 4 * hidden, hidden, fan=hidden)
        bias = self.weights(directions, 8 * hidden, fan=100)
        direction = "forward" if directions == 1 else "bidirectional"
        return self.LSTM(x, weights, recurrent, bias, hidden_size=hidden, direction=direction, output_count=3)[0]

    def gru(self, x, width, hidden):
        """[steps, 1, batch, hidden]."""
        weights = self.weights(1, 3 * hidden, width, fan=width)
        recurrent = self.weights(1, 3 * hidden, hidden, fan=hidden)
        bias = self.weights(1, 6 * hidden, fan=100)
        return self.GRU(x, weights, recurrent, bias, hidden_size=hidden, linear_before_reset=1, output_count=2)[0]
