#include <set>

#include "core/ops/op_unpack.h"
#include "core/passes/passes.h"

namespace folio {
namespace {

Status take(Graph* graph, Node* node, std::set<ValueId>* blobs) {
  FOLIO_TRY(const PackedWeight weight, parse_packed_weight(node->attributes));
  if (node->inputs.size() != 1 || node->outputs.size() != 1) {
    return invalid_graph("has ", node->inputs.size(), " inputs and ", node->outputs.size(),
                         " outputs, expected one of each");
  }
  const ValueId input = node->inputs[0];
  const GraphValue* blob = input == kNone ? nullptr : graph->constant_value(input);
  if (!blob || !blob->initializer->tensor) {
    return invalid_graph("its input is no initializer that the file holds");
  }
  const Initializer& stored = *blob->initializer;
  const auto bytes = static_cast<int64_t>(weight.form.bytes);
  if (stored.dtype != DType::kUint8 || !(stored.shape == Shape{bytes})) {
    return invalid_graph("its packed weight '", blob->name, "' is ", dtype_name(stored.dtype), " ",
                         stored.shape.to_string(), ", expected uint8 [", bytes, "]");
  }
  node->dead = true;
  blobs->insert(input);
  if (node->outputs[0] == kNone) return Status::ok();
  GraphValue& value = graph->value(node->outputs[0]);
  auto constant = make_ref<Initializer>();
  constant->name = value.name;
  constant->dtype = weight.dtype;
  constant->shape = weight.shape;
  constant->recipe = std::make_unique<Recipe>();
  Recipe& recipe = *constant->recipe;
  recipe.domain = node->domain;
  recipe.op_type = node->op_type;
  recipe.node_name = node->name;
  recipe.version = node->version;
  recipe.attributes = std::move(node->attributes);  // the node is dead
  recipe.inputs = {blob->initializer};
  Dims dims;
  for (const int64_t dim : weight.shape.dims()) dims.push_back(Dim::of(dim));
  value.type = TypeInfo::tensor(weight.dtype, std::move(dims));
  value.initializer = std::move(constant);
  return Status::ok();
}

Status take_all(Graph* graph) {
  std::set<ValueId> blobs;
  for (Node& node : graph->nodes) {
    for (const auto& subgraph : node.subgraphs) FOLIO_RETURN_IF_ERROR(take_all(subgraph.get()));
    if (!is_unpack(node)) continue;
    auto status = take(graph, &node, &blobs);
    if (!status.is_ok()) return std::move(status).with_context(node.label());
  }
  if (blobs.empty()) return Status::ok();
  graph->compact();
  graph->drop_unused_captures();
  // Blobs are the weights' own from here on.
  const std::vector<int> uses = graph->use_counts();
  for (const ValueId id : blobs) {
    if (uses[static_cast<size_t>(id)] == 0) graph->value(id).initializer = nullptr;
  }
  return Status::ok();
}

}  // namespace

Status take_packed_weights(Model* model) { return take_all(&model->graph); }

}  // namespace folio
