// Reshape of an image that puts its pixels in other dims, with channels last.
#pragma once

#include "core/passes/pattern.h"

namespace folio {

// Whether a node is a Reshape from [N, C, pixels...] to [N, C, pixels...] that has such a form.
bool moves_pixels(const Pattern& pattern, const Node& node);

// The constant that makes what it makes, with channels last; kNone where it has no such form.
ValueId pixels_target_last(Pattern* pattern, const Node& reshape);

}  // namespace folio
