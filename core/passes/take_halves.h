// What keep_halves and round_weights share: operators that read weights of 16 bits get them.
//
// Owns:    nothing. Threads: one, while loading.
#pragma once

#include <functional>

#include "core/model/graph.h"

namespace folio {

// The float16 or bfloat16 constant that a node may read for its input `wide`, or null.
using HalfOf = std::function<Ref<Initializer>(const Node& node, const Ref<Initializer>& wide)>;

// Of nodes whose operator says so (OpDef::takes_half) each constant input becomes what half_of
// gives for it, if anything, and the node has half_weights = 1 then.
void take_halves(Graph* graph, const HalfOf& half_of);

}  // namespace folio
