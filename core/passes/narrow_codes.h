// Weights of convolutions that codes of few bits stand for.
//
// Owns:    nothing.
#pragma once

#include "core/model/graph.h"

namespace folio {

// Weights that codes of 4 bits or fewer with one scale a filter stand for.
bool are_of_narrow_codes(const Initializer& weights);

}  // namespace folio
