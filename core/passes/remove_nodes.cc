// Removes nodes that change nothing and nodes that nobody reads.
#include <algorithm>
#include <unordered_set>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

// `uses`: how often each value is read, of a graph with a Dropout.
bool does_nothing(const Graph& graph, const std::vector<int>& uses, const Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] == kNone) return false;
  if (node.op_type == "Identity") return true;
  if (node.op_type == "Dropout") {
    // Since opset 12 a third input may ask for training; the mask must be unwanted too.
    const bool may_train = node.inputs.size() > 2 && node.inputs[2] != kNone;
    const ValueId mask = node.outputs.size() > 1 ? node.outputs[1] : kNone;
    const bool mask_wanted = mask != kNone && uses[static_cast<size_t>(mask)] > 0;
    const auto is_test = node.attributes.get_int("is_test", 1);
    const bool tests = node.version >= 7 || (is_test.is_ok() && is_test.value() != 0);
    return !may_train && !mask_wanted && tests;
  }
  if (node.op_type == "Cast") {
    const TypeInfo& type = graph.value(node.inputs[0]).type;
    const auto to = node.attributes.get_int("to", 0);
    return type.is_tensor() && to.is_ok() && to.value() == static_cast<int64_t>(type.dtype);
  }
  return false;
}

void remove_in(Graph* graph, bool* changed) {
  const std::unordered_set<ValueId> outputs(graph->outputs.begin(), graph->outputs.end());
  const std::vector<int> uses =
      has_operator(*graph, "Dropout") ? graph->use_counts() : std::vector<int>();
  Graph::Replacements replacements;
  for (Node& node : graph->nodes) {
    if (node.dead || !does_nothing(*graph, uses, node)) continue;
    const ValueId output = node.outputs[0];
    // A graph output keeps its node: it needs memory of its own anyway.
    if (output == kNone || outputs.contains(output)) continue;
    // Nodes are sorted, so what the input itself was replaced by is known.
    const auto source = replacements.find(node.inputs[0]);
    replacements[output] = source == replacements.end() ? node.inputs[0] : source->second;
    node.dead = true;
    *changed = true;
  }
  graph->replace_uses(replacements);
}

void drop_in(Graph& graph) {
  std::vector<int> uses = graph.use_counts();
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    if (node.dead) continue;
    const bool wanted = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return output != kNone && uses[static_cast<size_t>(output)] > 0;
    });
    if (wanted) continue;
    Graph::for_each_read(node, [&](ValueId read) { --uses[static_cast<size_t>(read)]; });
    node.dead = true;
  }
  graph.compact();
  graph.drop_unused_captures();
}

void drop_idle_in(Graph& graph) {
  bool found = false;
  for (Node& node : graph.nodes) {
    const bool idle = std::all_of(node.outputs.begin(), node.outputs.end(),
                                  [](ValueId output) { return output == kNone; });
    node.dead |= idle;
    found |= idle;
  }
  if (!found) return;
  graph.compact();
  graph.drop_unused_captures();
}

}  // namespace

void drop_idle(Model* model) { for_inner_graphs_first(&model->graph, drop_idle_in); }

void remove_identities(Model* model, bool* changed) {
  for_inner_graphs_first(&model->graph, [&](Graph& graph) { remove_in(&graph, changed); });
}

// What inner graphs no longer read keeps nothing alive outside of them.
void drop_dead(Model* model) { for_inner_graphs_first(&model->graph, drop_in); }

}  // namespace folio
