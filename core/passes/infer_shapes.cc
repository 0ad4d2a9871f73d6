#include "core/ops/op_registry.h"
#include "core/passes/passes.h"

namespace folio {
namespace {

Status check_counts(const OpDef& def, const Node& node) {
  const auto inputs = static_cast<int>(node.inputs.size());
  const auto outputs = static_cast<int>(node.outputs.size());
  if (inputs < def.min_inputs || inputs > def.max_inputs) {
    return invalid_graph(node.label(), ": has ", inputs, " inputs, expected ", def.min_inputs,
                         def.max_inputs == kVariadic        ? std::string(" or more")
                         : def.max_inputs == def.min_inputs ? std::string()
                                                            : cat(" to ", def.max_inputs));
  }
  // No pass needs to look whether such an input is there.
  for (int i = 0; i < def.min_inputs; ++i) {
    const auto input = static_cast<size_t>(i);
    if (node.inputs[input] == kNone && !has_bit(def.optional_inputs, input)) {
      return invalid_graph(node.label(), ": input ", i, " is missing");
    }
  }
  if (outputs < def.min_outputs || outputs > def.max_outputs) {
    return invalid_graph(
        node.label(), ": has ", outputs, " outputs, expected ", def.min_outputs, " to ",
        def.max_outputs == kVariadic ? std::string("any number") : cat(def.max_outputs));
  }
  return Status::ok();
}

// Of every graph before anything else looks at one: operators that know nothing of subgraphs may
// have them all the same, and then nobody infers what is in there.
Status check_all_counts(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
    FOLIO_RETURN_IF_ERROR(check_counts(*def, node));
    for (const auto& subgraph : node.subgraphs) FOLIO_RETURN_IF_ERROR(check_all_counts(*subgraph));
  }
  return Status::ok();
}

class Inference {
 public:
  explicit Inference(DimTable* dims) : dims_(dims) {}

  Status infer(Graph* graph) {
    refresh_captures(graph);
    for (Node& node : graph->nodes) {
      if (node.dead) continue;
      FOLIO_RETURN_IF_ERROR(infer_node(graph, &node));
    }
    return Status::ok();
  }

 private:
  // A captured value is what the enclosing graph knows of it now.
  static void refresh_captures(Graph* graph) {
    for (GraphValue& value : graph->values) {
      if (value.outer == kNone) continue;
      const GraphValue& outer = graph->parent->value(value.outer);
      value.type = outer.type;
      value.data = outer.data;
    }
  }

  Status infer_node(Graph* graph, Node* node) {
    const OpDef* def = op_registry().find(node->domain, node->op_type, node->version);
    for (const ValueId output : node->outputs) {
      if (output == kNone) continue;
      graph->value(output).type = TypeInfo();
      graph->value(output).data.reset();
    }
    if (def->infer) {
      OpInfer infer(*graph, *node, *dims_, &Inference::infer_subgraph, this);
      auto status = def->infer(infer);
      if (!status.is_ok()) return std::move(status).with_context(node->label());
    }
    return Status::ok();
  }

  static Result<std::vector<TypeInfo>> infer_subgraph(void* state, Graph& subgraph,
                                                      const std::vector<TypeInfo>& inputs) {
    if (inputs.size() != subgraph.inputs.size()) {
      return invalid_graph("subgraph '", subgraph.name, "' has ", subgraph.inputs.size(),
                           " inputs, expected ", inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      GraphValue& value = subgraph.value(subgraph.inputs[i]);
      value.type = inputs[i];
    }
    FOLIO_RETURN_IF_ERROR(static_cast<Inference*>(state)->infer(&subgraph));
    std::vector<TypeInfo> out;
    for (const ValueId output : subgraph.outputs) out.push_back(subgraph.value(output).type);
    return out;
  }

  DimTable* dims_;
};

}  // namespace

Status infer_shapes(Model* model) {
  FOLIO_RETURN_IF_ERROR(check_all_counts(model->graph));
  return Inference(&model->dims).infer(&model->graph);
}

}  // namespace folio
