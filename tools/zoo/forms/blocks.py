"""Products whose weights are 4 bits in blocks of equal scale, as ONNX Runtime's MatMul4BitsQuantizer and
MatMulBnb4Quantizer write them. These leave Gemm alone; here it is a product like MatMul, so that GPT-2 has some.
"""

import numpy as np

from forms.rewrite import CONTRIB, Rewrite, rewrite_product

BLOCK = 32
NF4_BLOCK = 64
NF4 = 1  # the operator's quant_type

# Dettmers et al. 2023: quantiles of a normal distribution.
NF4_LEVELS = np.array([-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                       -0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
                       0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                       0.7229568362236023, 1], np.float32)


def _padded(array, block):
    """Zeros behind the last dim, to whole blocks."""
    missing = -array.shape[-1] % block
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])


def _q4_blocks(weights):
    """Codes [columns, blocks, BLOCK / 2] and scales: 8 is zero, and what is largest in a block is code 0."""
    columns = _padded(weights.T, BLOCK).reshape(weights.shape[1], -1, BLOCK)
    largest = np.take_along_axis(columns, np.abs(columns).argmax(2)[..., None], 2)[..., 0]
    scales = (largest / -8).astype(np.float32)
    scales[scales == 0] = 1
    codes = np.clip(np.rint(columns / scales[..., None]) + 8, 0, 15).astype(np.uint8)
    return codes[..., 0::2] | (codes[..., 1::2] << 4), scales.reshape(-1)


def _nf4_blocks(weights):
    """Codes, two a byte, and the largest of each block: columns one after the other, blocks across their ends."""
    count = weights.size
    blocks = _padded(weights.T.reshape(-1), NF4_BLOCK).reshape(-1, NF4_BLOCK)
    largest = np.abs(blocks).max(1)
    largest[largest == 0] = 1
    middles = (NF4_LEVELS[1:] + NF4_LEVELS[:-1]) / 2
    codes = np.searchsorted(middles, blocks / largest[:, None]).astype(np.uint8).reshape(-1)
    return ((codes[0::2] << 4) | codes[1::2])[:(count + 1) // 2], largest


def _products(model, operator, quantize, **attributes):
    rewrite = Rewrite(model)

    def write(product, output):
        codes, scales = quantize(product.weights)
        rows, columns = product.weights.shape
        name = product.weights_name
        inputs = [product.x, rewrite.constant(codes, f"{name}_codes"), rewrite.constant(scales, f"{name}_scales")]
        rewrite.add(operator, inputs, [output], domain=CONTRIB, K=rows, N=columns, **attributes)

    count = 0
    for node in rewrite.graph.node:
        if rewrite_product(rewrite, node, write):
            count += 1
        else:
            rewrite.nodes.append(node)
    return rewrite.finish() if count else None


def q4(model, _measure):
    return _products(model, "MatMulNBits", _q4_blocks, bits=4, block_size=BLOCK)


def bnb4(model, _measure):
    return _products(model, "MatMulBnb4", _nf4_blocks, block_size=NF4_BLOCK, quant_type=NF4)
