// Transposed convolution of floats by filters over one channel each, channels first.
//
// Math:    y[i * stride + t - pad] += w[t] * x[i]: of the outputs that are a stride apart, each
// sees
//          the taps that are a stride apart, in the opposite order: a plain filter over the plane.
// Method:  the slot filter_plane_f32, once for each place between two strides, some lines at a
//          time, whose results are then put between each other.
// Splits:  by planes; bit-identical for any number of threads.
// Errors:  what OpRun::scratch gives.
#pragma once

#include "core/ops/op_conv.h"

namespace folio {

// Sizes of transpose_sizes().
bool fits_transposed_planes(const ConvSizes& s);

// w [C, M / C, kernel...]; `bias` may be null.
Status run_transposed_planes(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                             const float* bias, float* y);

}  // namespace folio
