// Constants beside images, as they stand beside the same images with channels last.
//
//   [C, 1, 1], [1, 1, H, W]   the same bytes under other dims
//   [1, C, H, W]              a recipe: a Transpose, computed once
//
// Owns:    nothing; makes constants of a graph.
#pragma once

#include "core/passes/pattern.h"

namespace folio {

// Of a constant that broadcasts to images [N, C, spatial...] of this rank, or is one; kNone: it is
// too large, or not there yet.
ValueId constant_last(Pattern* pattern, ValueId id, size_t rank);

}  // namespace folio
