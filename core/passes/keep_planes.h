// Which convolutions of floats keep channels first, though they have a form with channels last: all
// that this form would give them are the Transposes before and after.
//
//   Reshape -> Conv 1x1 -> Relu -> depthwise Conv -> Reshape      both keep channels first
//   Conv 3x3 -> Conv 1x1                                          none
//   Transpose (to channels first) -> Conv 1x1 -> Reshape          none: one Transpose either way
//   tokens -> Transpose -> Reshape -> depthwise Conv -> Reshape   none: a Reshape of pixels follows
//       -> Transpose -> tokens
//
// Flow:    channels_last.cc asks before it turns anything.
// Chosen:  convolutions whose form with channels first is as fast (1x1; a filter over one channel
//          each), where everything that they reach over values that could follow into the other
//          form are a few of their kind, and operators that go element by element. Whatever gains
//          from channels last, a convolution of another kind, a pool, a Concat, takes all with it;
//          BatchNormalization and reductions do not. Few filters over few channels of deep images
//          always (core/ops/op_deep_planes.h).
#pragma once

#include <vector>

#include "core/model/graph.h"
#include "core/passes/pattern.h"

namespace folio {

// What channels_last does with a node whose input has that form.
enum class Turning : uint8_t { kStays, kFollows, kGains };
using TurningOf = Turning (*)(const Node&);

// An entry for each node.
std::vector<bool> convs_that_keep_planes(const Pattern& pattern, TurningOf turning_of);

}  // namespace folio
