// Maxima and averages of windows over planes of floats, many windows at a time.
//
// Math:    as pool.cc has it: the rows under a window are joined first, then their columns.
// Method:  the slots max_lines_f32 and sum_lines_f32, some lines of the output at a time.
// Errors:  what OpRun::scratch gives.
#pragma once

#include "core/ops/op_pool.h"

namespace folio {

// Whether padding is no more than some of the image.
bool fits_pool_lines(const Window& w);

// attrs.kind: kMax or kAverage. Of windows that fit.
Status pool_lines(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes,
                  const float* x, float* y);

}  // namespace folio
