// Convolution where each output channel reads one input channel, or a few: rows of shifted sums.
//
// Math:    y[p] = bias + sum over channels c of the group and taps t of
//          w[c, t] * x[c, p * stride + t * dilation - pad], per plane.
// Method:  planes are copied with their borders of zeros, one copy per phase of the stride, so that
//          every tap is a shift by a fixed offset and all outputs are one row of the slot
//          shifted_sum_f32; the columns between two output rows are computed and thrown away.
// Memory:  the padded planes of a group and an output plane a thread.
#pragma once

#include "core/ops/op_conv.h"

namespace folio {

// Filters and channels of each group are so few that most of a tile of a product would be empty.
inline bool is_small_group(int64_t group, int64_t filters, int64_t channels) {
  return group > 1 && filters <= FOLIO_F32P16_COLUMNS / 2 && channels <= 32;
}

// False where borders or dilation would make the copy much larger than image and output, and where
// the copies of several channels would leave the cache.
bool fits_depthwise(const ConvSizes& s);

// `bias` may be null. Of shapes that fit.
Status run_depthwise(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                     const float* bias, float* y);

}  // namespace folio
