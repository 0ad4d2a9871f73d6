// Convolution of floats with channels last, over weights packed at load.
//
// Math:    Y [pixels, M] = X [pixels, K] * W [K, M], K = taps * C/g, tap by tap: pixels are rows of A,
//          whose pieces, one for each tap, are read where they lie in x.
// Method:  1x1 without stride or border: x is A. Few channels: the taps of one row of the window are
//          one piece (they are neighbours in x). Outside of the image pieces are zeros. A filter over
//          one channel each (depthwise): rows of the slot depthwise_f32.
// Memory:  pointers and border pieces of a tile of pixels a thread.
// Splits:  by shape only; bit-identical for any number of threads.
#pragma once

#include "core/ops/op_activation.h"
#include "core/ops/op_conv.h"

namespace folio {

// Which weights [M, C/g, kernel...] this form takes, and how it packs them.
bool fits_nhwc_conv(Span<const int64_t> w, int64_t group);
Result<PackRequest> nhwc_conv_request(const FolioKernels& kernels, Span<const int64_t> w,
                                      int64_t group);

struct NhwcConvArgs {
  const float* x = nullptr;
  const float* packed = nullptr;
  const float* bias = nullptr;  // may be null
  const float* z = nullptr;     // as y, added before the activation; may be null
  Activation activation;
  float* y = nullptr;
};

Status run_nhwc_conv(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args);

}  // namespace folio
