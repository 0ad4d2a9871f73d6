#include "core/passes/take_halves.h"

#include "core/ops/op_half_panels.h"
#include "core/ops/op_registry.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

void take(Graph* graph, ConstantValues* halves, const HalfOf& half_of, Node* node) {
  const OpDef* def = op_registry().find(node->domain, node->op_type, node->version);
  if (!def || !def->takes_half) return;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    const GraphValue* value =
        node->inputs[i] == kNone ? nullptr : graph->constant_value(node->inputs[i]);
    if (!value) continue;
    const Ref<Initializer>& wide = value->initializer;
    if (!def->takes_half(node->attributes, static_cast<int>(i), wide->shape)) continue;
    const Ref<Initializer> half = half_of(*node, wide);
    if (!half) continue;
    node->inputs[i] = halves->of(half);
    node->attributes.set(int_attribute(std::string(kHalfWeightsAttribute), 1));
  }
}

}  // namespace

void take_halves(Graph* graph, const HalfOf& half_of) {
  ConstantValues halves(graph);
  for (Node& node : graph->nodes) {
    if (!node.dead) take(graph, &halves, half_of, &node);
  }
  if (!halves.empty()) drop_unused_constants(graph);
}

}  // namespace folio
