// Maxima and averages of windows over planes of floats, many windows at a time.
//
// Math:    as pool.cc has it: the rows under a window are joined first, then their columns.
// Method:  some rows of the output at a time. Rows of the image are joined from side to side, all
//          that are joined alike in one call; then columns, where a tap is a shift. Windows that
//          hang over a side of the image are joined one by one.
// Errors:  what OpRun::scratch gives.
#pragma once

#include "core/ops/op_pool.h"

namespace folio {

// attrs.kind: kMax or kAverage.
Status pool_lines(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes,
                  const float* x, float* y);

}  // namespace folio
