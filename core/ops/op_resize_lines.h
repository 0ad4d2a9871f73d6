// Pixels of floats that are resized along two axes beside each other, line by line: lines along the
// later axis are made in scratch that a cache holds, and the others are sums of these. Or pixels
// that are only moved. Either way the results may be channels of a larger image.
//
// Math:    that of one axis after the other, the later one first, bit by bit.
// Memory:  a thread has as many lines, or parts of them, as one sum has.
// Splits:  by shape only.
// Threads: reentrant.
#pragma once

#include <vector>

#include "core/ops/op.h"
#include "core/ops/op_resize.h"

namespace folio {

// x [outer, in[0], in[1], inner] to [outer, out[0], out[1], inner].
struct ResizedLines {
  int64_t outer = 1;
  int64_t in[2] = {1, 1};
  int64_t out[2] = {1, 1};
  int64_t inner = 1;
  const AxisTaps* taps[2] = {};
};

// What axes with these tables come to; nothing where more or fewer than two are resized, one
// shrinks (which comes first then), or a sum has many terms or a few floats.
std::optional<ResizedLines> resized_lines(const std::vector<ResizeAxis>& axes,
                                          const std::vector<AxisTaps>& tables);

// To y, whose pixels are `y_step` floats apart.
Status resize_lines(OpRun& run, const ResizedLines& lines, const float* x, float* y,
                    int64_t y_step);

// The pixel of each of y that `places` says, by axes but for the last one, the channels.
void move_pixels(OpRun& run, const Shape& in, const float* x,
                 const std::vector<std::vector<int64_t>>& places, const Shape& out, float* y,
                 int64_t y_step);

}  // namespace folio
