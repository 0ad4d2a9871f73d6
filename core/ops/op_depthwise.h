// Convolution where each output channel reads one input channel: rows of shifted sums.
//
// Math:    y[p] = bias + sum over taps t of w[t] * x[p * stride + t * dilation - pad], per plane.
// Method:  the plane is copied with its border of zeros, one copy per phase of the stride, so that
//          every tap is a shift by a fixed offset and all outputs are one row of the slot
//          shifted_sum_f32; the columns between two output rows are computed and thrown away.
// Memory:  a padded plane and an output plane a thread.
#pragma once

#include "core/ops/op_conv.h"

namespace folio {

// False where borders or dilation would make the copy much larger than image and output.
bool fits_depthwise(const ConvSizes& s);

// `bias` may be null. s.c_in is 1.
Status run_depthwise(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                     const float* bias, float* y);

}  // namespace folio
