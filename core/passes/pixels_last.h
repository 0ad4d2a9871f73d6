// Reshape of an image that puts its pixels in other dims, with channels last.
#pragma once

#include "core/passes/pattern.h"

namespace folio {

// Whether a Reshape is from [N, C, pixels...] to [N, C, pixels...], and has such a form.
bool moves_pixels(const Pattern& pattern, const Node& reshape);

// The constant that makes what it makes, with channels last; kNone where it has no such form.
ValueId pixels_target_last(Pattern* pattern, const Node& reshape);

}  // namespace folio
