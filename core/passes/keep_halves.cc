// Weights of 16 bits stay so: an operator that widens them piece by piece reads the float16 or
// bfloat16 constant instead of the copy in float32 that a Cast would make.
//
//   op(x, Cast(W))   ->   op(x, W) with half_weights = 1
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

namespace folio {
namespace {

class KeepHalves {
 public:
  explicit KeepHalves(Graph* graph) : graph_(*graph) {}

  void run() {
    for (Node& node : graph_.nodes) {
      for (auto& subgraph : node.subgraphs) KeepHalves(subgraph.get()).run();
      if (!node.dead) keep(&node);
    }
    if (halves_.empty()) return;
    // What only the replaced Casts made is not to be named or looked for any more.
    const std::vector<int> uses = graph_.use_counts();
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      GraphValue& value = graph_.values[i];
      if (uses[i] == 0 && value.is_constant()) value.initializer = nullptr;
    }
  }

 private:
  void keep(Node* node) {
    const OpDef* def = op_registry().find(node->domain, node->op_type, node->version);
    if (!def || !def->takes_half) return;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const GraphValue* wide =
          node->inputs[i] == kNone ? nullptr : graph_.constant_value(node->inputs[i]);
      const Ref<Initializer>* half = wide ? half_behind(*wide->initializer) : nullptr;
      if (!half || !def->takes_half(node->attributes, static_cast<int>(i), (*half)->shape)) {
        continue;
      }
      node->inputs[i] = value_of(*half);
      node->attributes.set(int_attribute(std::string(kHalfWeightsAttribute), 1));
    }
  }

  // One value in this graph for each constant, whatever graph its Cast is in.
  ValueId value_of(const Ref<Initializer>& half) {
    const auto known = halves_.find(half.get());
    if (known != halves_.end()) return known->second;
    const ValueId id = graph_.add_value(half->name);
    Dims dims;
    for (const int64_t dim : half->shape.dims()) dims.push_back(Dim::of(dim));
    graph_.value(id).type = TypeInfo::tensor(half->dtype, std::move(dims));
    graph_.value(id).initializer = half;
    return halves_[half.get()] = id;
  }

  Graph& graph_;
  std::unordered_map<const Initializer*, ValueId> halves_;
};

}  // namespace

void keep_halves(Model* model) { KeepHalves(&model->graph).run(); }

}  // namespace folio
