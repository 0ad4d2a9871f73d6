// Maxima and sums of windows over planes of floats, line by line.
//
// Math:    as pool.cc has it: the rows under a window are joined first, for a whole line of the
//          image at once, then the columns.
// Method:  a line stands in scratch between borders of the neutral element. Its windows are joined
//          as if they stepped by one, so that a tap is a shift; then some are picked.
// Errors:  what OpRun::scratch gives.
#pragma once

#include "core/ops/op_pool.h"

namespace folio {

// Max and Average whose borders are not much larger than image and output.
bool fits_pool_lines(const PoolAttrs& attrs, const Window& w);

Status pool_lines(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes,
                  const float* x, float* y);

}  // namespace folio
