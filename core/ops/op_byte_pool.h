// Largest bytes of windows: rows of the image at a time, then along the row.
#pragma once

#include "core/ops/op_window.h"

namespace folio {

// Planes [in, channels] of x to planes [out, channels] of y, int8 or uint8; a window of padding
// only gives the lowest.
Status max_pool_bytes(OpRun& run, const Window& w, int64_t planes, int64_t channels, bool is_signed,
                      const uint8_t* x, uint8_t* y);

}  // namespace folio
