// Reshape of an image that puts its pixels in other dims, with channels last.
#pragma once

#include <string>

#include "core/passes/pattern.h"

namespace folio {

// Of a Reshape from [N, C, pixels...] to [N, C, pixels...]: the constant that makes the one with
// channels last of the other; kNone where it is no such Reshape.
ValueId pixels_target_last(Pattern* pattern, const Node& reshape);

}  // namespace folio
