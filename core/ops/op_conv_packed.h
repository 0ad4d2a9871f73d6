// Convolution over weights packed at load: pixels are rows of A, output channels columns of B.
//
// Math:    per image and group Y [pixels, M/g] = X [pixels, K] * W [K, M/g], K = C/g * taps
// Method:  tiles of pixels: X is gathered as [K, tile] (1x1 without stride or border: read where it
//          stands), the product is made in a tile of [pixels, channels] and turned into y's planes.
//          Beside a tile a thread no memory.
// Splits:  by shape only; bit-identical for any number of threads.
#pragma once

#include "core/ops/op_activation.h"
#include "core/ops/op_conv.h"

namespace folio {

// Asks for the constant weights of input 1 as F32P16 [K, M] when this form would use them.
void request_packed_conv(OpBuild& build, int64_t group);

// `packed`: what was asked for. `bias` may be null; the activation is one that the product knows.
Status run_packed_conv(OpRun& run, const ConvSizes& s, const float* x, const float* packed,
                       const float* bias, const Activation& activation, float* y);

}  // namespace folio
