// Convolutions of bytes: pixels are rows of unsigned bytes, channels last, weights are S8P16K4.
//
// Math:    sums of (x - x_zero) * (w - w_zero) + bias, exact in int32, then as FolioSums says
// Method:  inside of the operator images are [pixels, channels]; others are turned at its edge.
//          The product reads a pixel's channels under each tap where they lie, a pixel of zero
//          points at the border; 1x1 reads whole rows. Few channels (below 16, or no multiple of 4)
//          are gathered as [pixels, taps * C/g] first. Filters over one channel each: taps over 64
//          channels at a time. Weights: packed at load when constant, else here.
//          Of 3x3 with stride 1 on large images some by Winograd's algorithm
//          (op_winograd_bytes.h), where the pass choose_winograd says so and they are packed.
// Splits:  by shape only; bit-identical for any number of threads.
#pragma once

#include "core/ops/op_conv.h"
#include "core/ops/op_integer_matmul.h"

namespace folio {

// Asks for the constant weights [M, C/g, taps...] at `input` when this form would use them.
void request_byte_conv(OpBuild& build, int input, int64_t group);

struct ByteConv {
  const Tensor* x = nullptr;
  int32_t x_zero = 0;
  const Tensor* w = nullptr;
  int w_input = 0;
  bool is_winograd = false;       // packed so, if at all (op_winograd_bytes.h); with channels_last
  ByteZero w_zero;                // by row
  const int32_t* bias = nullptr;  // [M] or null
  bool channels_last = false;     // x and y
  FolioSums sums{};               // to, scale [M], zero, lo, hi, add and addend, which lies as y;
                                  // the rest is set here
  void* y = nullptr;
};

Status run_byte_conv(OpRun& run, const ConvSizes& s, const ByteConv& conv);

}  // namespace folio
