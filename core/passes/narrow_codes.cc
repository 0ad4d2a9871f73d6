#include "core/passes/narrow_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace folio {
namespace {

// Whether all numbers are multiples, at most the 15th, of one.
bool are_small_multiples(const uint8_t* bytes, int64_t n) {
  constexpr int kMost = 15;
  const auto at = [bytes](int64_t i) {
    float value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof(float)), sizeof(float));
    return std::abs(value);
  };
  float most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, at(i));
  if (most == 0) return true;
  for (int times = 1; times <= kMost; ++times) {
    int64_t i = 0;
    for (; i < n; ++i) {
      const float multiple = at(i) / most * static_cast<float>(times);
      // Each product of code and scale was rounded once, and so was `most`.
      if (!(std::abs(multiple - std::round(multiple)) <= 1e-6F * kMost)) break;
    }
    if (i == n) return true;
  }
  return false;
}

}  // namespace

bool are_of_narrow_codes(const Initializer& weights) {
  const Initializer* w = &weights;
  while (!w->tensor) {
    const Recipe* recipe = w->recipe.get();
    if (!recipe || recipe->inputs.empty() || !recipe->inputs[0]) return false;
    const Initializer* from = recipe->inputs[0].get();
    if (recipe->op_type == "DequantizeLinear") return dtype_is_subbyte(from->dtype);
    if (recipe->op_type != "Mul") return false;  // by a scale that fold_scales put there
    w = from;
  }
  if (w->dtype != DType::kFloat || w->shape.rank() == 0 || w->shape.count() == 0) return false;
  const int64_t filters = w->shape[0];
  const int64_t n = w->shape.count() / filters;
  for (int64_t f = 0; f < filters; ++f) {
    const int64_t first = f * n * static_cast<int64_t>(sizeof(float));
    if (!are_small_multiples(w->tensor->raw() + first, n)) return false;
  }
  return true;
}

NeighbouringCodes::NeighbouringCodes(const Graph& graph) {
  const auto is_code = [&graph](ValueId id) {
    const int bits = id == kNone ? 0 : dtype_bits(graph.value(id).type.dtype);
    return bits > 0 && bits <= 8;
  };
  for (const Node& node : graph.nodes) {
    if (node.dead || node.inputs.empty() || node.outputs.empty()) continue;
    if (node.op_type == "DequantizeLinear" && is_code(node.inputs[0]))
      from_.insert(node.outputs[0]);
    if (node.op_type == "QuantizeLinear" && is_code(node.outputs[0])) to_.insert(node.inputs[0]);
  }
}

}  // namespace folio
