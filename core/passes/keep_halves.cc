// Weights of 16 bits stay so: an operator that widens them piece by piece reads the float16 or
// bfloat16 constant instead of the copy in float32 that a Cast would make.
//
//   op(x, Cast(W))              op(x, W) with half_weights = 1
//   op(x, Transpose(Cast(W)))   op(x, Transpose(W)) with it: of all that only moves elements, the
//                               Cast could as well come last
//
// Where OpDef::takes_half says so: right operands of MatMul, Gemm and their fused forms, weights of
// convolutions with channels last, projections of attention, W of LSTM, GRU and RNN. A Cast of up
// to 64 KiB was computed when constants were folded and stays: so little is not worth widening in
// each run. A model's own Cast of a constant is treated as one that widen_half put there. Private:
// the result is never saved.
#include <unordered_map>

#include "core/ops/op_half_panels.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"
#include "core/passes/take_halves.h"

namespace folio {
namespace {

class KnownHalves {
 public:
  // The float16 or bfloat16 constant that has these numbers, or null.
  Ref<Initializer> half_of(const Ref<Initializer>& wide) {
    if (const Ref<Initializer>* half = half_behind(*wide)) return *half;
    if (wide->tensor || !wide->recipe || !only_moves(*wide->recipe)) return {};
    const auto known = moved_.find(wide.get());
    if (known != moved_.end()) return known->second;
    const Ref<Initializer> source = half_of(wide->recipe->inputs[0]);
    if (!source) return {};
    auto half = make_ref<Initializer>();
    half->name = wide->name;
    half->dtype = source->dtype;
    half->shape = wide->shape;
    half->recipe = std::make_unique<Recipe>(*wide->recipe);
    half->recipe->inputs[0] = source;
    return moved_[wide.get()] = half;
  }

 private:
  static bool only_moves(const Recipe& recipe) {
    const std::string_view type = recipe.op_type;
    return recipe.domain.empty() && !recipe.inputs.empty() && recipe.inputs[0] &&
           (type == "Transpose" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" ||
            type == "Flatten" || type == "Slice");
  }

  std::unordered_map<const Initializer*, Ref<Initializer>> moved_;  // by what they stand for
};

}  // namespace

void keep_halves(Model* model) {
  for_inner_graphs_first(&model->graph, [](Graph& graph) {
    KnownHalves halves;  // whatever graph the Cast of each is in
    take_halves(&graph,
                [&](const Node&, const Ref<Initializer>& wide) { return halves.half_of(wide); });
  });
}

}  // namespace folio
