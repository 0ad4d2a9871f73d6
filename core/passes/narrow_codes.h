// Weights of convolutions that codes of few bits stand for, and floats between codes.
//
// Owns:    ids of values.
#pragma once

#include <unordered_set>

#include "core/model/graph.h"

namespace folio {

// Weights that codes of 4 bits or fewer with one scale a filter stand for.
bool are_of_narrow_codes(const Initializer& weights);

// The floats of a graph that DequantizeLinear makes of 8 bits or fewer, and those that
// QuantizeLinear makes such of.
class NeighbouringCodes {
 public:
  NeighbouringCodes() = default;
  explicit NeighbouringCodes(const Graph& graph);

  bool are_around(ValueId x, ValueId y) const { return from_.contains(x) && to_.contains(y); }

 private:
  std::unordered_set<ValueId> from_;
  std::unordered_set<ValueId> to_;
};

}  // namespace folio
