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
#include "core/ops/op_registry.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

class KeepHalves {
 public:
  explicit KeepHalves(Graph* graph) : graph_(*graph), halves_(graph) {}

  void run() {
    for (Node& node : graph_.nodes) {
      if (!node.dead) keep(&node);
    }
    if (!halves_.empty()) drop_unused_constants(&graph_);
  }

 private:
  void keep(Node* node) {
    const OpDef* def = op_registry().find(node->domain, node->op_type, node->version);
    if (!def || !def->takes_half) return;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const GraphValue* wide =
          node->inputs[i] == kNone ? nullptr : graph_.constant_value(node->inputs[i]);
      const Ref<Initializer> half = wide ? half_of(wide->initializer) : Ref<Initializer>();
      if (!half || !def->takes_half(node->attributes, static_cast<int>(i), half->shape)) continue;
      node->inputs[i] = halves_.of(half);
      node->attributes.set(int_attribute(std::string(kHalfWeightsAttribute), 1));
    }
  }

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

  static bool only_moves(const Recipe& recipe) {
    const std::string_view type = recipe.op_type;
    return recipe.domain.empty() && !recipe.inputs.empty() && recipe.inputs[0] &&
           (type == "Transpose" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" ||
            type == "Flatten");
  }

  Graph& graph_;
  ConstantValues halves_;  // whatever graph the Cast of each is in
  std::unordered_map<const Initializer*, Ref<Initializer>> moved_;  // by what they stand for
};

}  // namespace

void keep_halves(Model* model) {
  for_inner_graphs_first(&model->graph, [](Graph& graph) { KeepHalves(&graph).run(); });
}

}  // namespace folio
