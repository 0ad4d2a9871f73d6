#include "core/plan/weight_uses.h"

#include <unordered_set>

#include "core/ops/op_registry.h"
#include "core/ops/op_unpack.h"

namespace folio {
namespace {

class Uses {
 public:
  explicit Uses(const FolioKernels& kernels) : kernels_(kernels) {}

  Status add(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (node.dead) continue;
      auto status = add_node(graph, node);
      if (!status.is_ok()) return std::move(status).with_context(node.label());
    }
    for (const ValueId output : graph.outputs) add_raw(graph.constant_value(output));
    for (const ValueId input : graph.overridable) add_raw(&graph.value(input));
    return Status::ok();
  }

  WeightUses take() { return std::move(uses_); }

 private:
  Status add_node(const Graph& graph, const Node& node) {
    for (const auto& subgraph : node.subgraphs) FOLIO_RETURN_IF_ERROR(add(*subgraph));
    const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
    OpBuild build(graph, node, kernels_, /*prepack=*/true);
    auto made = def->make(build);
    if (!made.is_ok()) return std::move(made).take_status();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNone) continue;
      const GraphValue* value = graph.constant_value(node.inputs[i]);
      if (!value) continue;
      const PackRequest* request = request_for(build, static_cast<int>(i));
      if (request && !is_computed(*value->initializer)) {
        WeightUse use;
        use.packed = *request;
        uses_[value->initializer.get()].add(use);
      } else {
        add_raw(value);
      }
    }
    return Status::ok();
  }

  // Only where the operator then reads nothing else of the weight.
  static const PackRequest* request_for(const OpBuild& build, int input) {
    for (const auto& [at, request] : build.pack_requests()) {
      if (at == input && request.replaces_source) return &request;
    }
    return nullptr;
  }

  void add_raw(const GraphValue* value) {
    if (!value || !value->initializer) return;
    std::vector<const Initializer*> waiting{value->initializer.get()};
    while (!waiting.empty()) {
      const Initializer* next = waiting.back();
      waiting.pop_back();
      if (!is_computed(*next)) {
        uses_[next].is_raw = true;
      } else if (seen_.insert(next).second) {
        for (const Ref<Initializer>& input : next->recipe->inputs) {
          if (input) waiting.push_back(input.get());
        }
      }
    }
  }

  const FolioKernels& kernels_;
  WeightUses uses_;
  std::unordered_set<const Initializer*> seen_;
};

}  // namespace

void WeightUse::add(const WeightUse& other) {
  is_raw = is_raw || other.is_raw;
  if (packed && other.packed && !is_same_form(*packed, *other.packed)) is_raw = true;
  if (!packed) packed = other.packed;
}

Result<WeightUses> weight_uses(const Graph& graph, const FolioKernels& kernels) {
  Uses uses(kernels);
  FOLIO_RETURN_IF_ERROR(uses.add(graph));
  return uses.take();
}

}  // namespace folio
