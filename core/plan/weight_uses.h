// weight_uses: how the operators of an optimized graph take each constant of the model's file.
//
// Flow:    passes/ -> weight_uses -> session/replace_weights decides which weights can stand in
//          their packed form alone.
// Owns:    nothing. Operators are made and thrown away; no weight is read for it.
// Threads: one.
// Errors:  what making an operator gives.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/model/graph.h"
#include "core/ops/op.h"

namespace folio {

struct WeightUse {
  std::optional<PackRequest> packed;  // in which form
  // Somebody reads the weight itself, or computes another constant from it, or two operators want
  // it in different forms.
  bool is_raw = false;

  void add(const WeightUse& other);
};

// Of constants that have bytes, or that the file has packed; subgraphs included. What nobody reads
// is not there.
using WeightUses = std::unordered_map<const Initializer*, WeightUse>;
Result<WeightUses> weight_uses(const Graph& graph, const FolioKernels& kernels);

}  // namespace folio
