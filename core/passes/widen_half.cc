// Computes float16 graphs in float32 where ONNX Runtime's CPU does.
//
// Operators without a float16 kernel there read float32 copies of their float16 inputs and give
// float32 to those that do the same, so values are rounded to float16 only where an operator that
// keeps float16 (it only moves elements, or has such a kernel) or a graph output wants them. That
// is what its references hold, and it is faster: no conversions around each operator, and
// constants widened once.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/op_registry.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

// An operator that keeps float16 does, unless all of it comes from and goes to ones that do not.
bool keeps_half(const Node& node) {
  return op_registry().find(node.domain, node.op_type, node.version)->keeps_half;
}

constexpr auto kHalf = static_cast<int64_t>(DType::kFloat16);

class Widener {
 public:
  Widener(Graph* graph, int opset, bool* changed)
      : graph_(*graph), opset_(opset), changed_(changed) {
    for (const ValueId output : graph->outputs) kept_.insert(output);
    for (const Node& node : graph->nodes) {
      if (node.subgraphs.empty()) continue;
      Graph::for_each_read(node, [&](ValueId read) { kept_.insert(read); });
    }
    for (const Node& node : graph->nodes) {
      if (takes_half(node) && !keeps_half(node)) continue;
      for (const ValueId input : node.inputs) kept_.insert(input);
    }
  }

  void widen() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    for (Node& node : nodes) {
      if (node.op_type == "Cast" && node.domain.empty()) {
        pass_cast(&node);
        out_.push_back(std::move(node));
      } else if (wants_floats(node)) {
        widen_node(std::move(node));
      } else {
        out_.push_back(std::move(node));
      }
    }
    graph_.nodes = std::move(out_);
    graph_.compact();
  }

 private:
  bool is_half(ValueId id) const {
    if (id == kNone) return false;
    const TypeInfo& type = graph_.value(id).type;
    return type.is_tensor() && type.dtype == DType::kFloat16;
  }
  bool is_known(ValueId id) const {
    if (id == kNone) return true;
    const TypeInfo& type = graph_.value(id).type;
    return type.is_tensor() && type.dtype != DType::kUndefined;
  }

  // A node whose types are all known and that reads float16; its outputs follow its inputs.
  bool takes_half(const Node& node) const {
    if (!node.subgraphs.empty()) return false;
    const bool known = std::all_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId id) { return is_known(id); }) &&
                       std::all_of(node.outputs.begin(), node.outputs.end(),
                                   [&](ValueId id) { return is_known(id); });
    const auto half = [&](ValueId id) { return is_half(id); };
    if (!known || std::none_of(node.inputs.begin(), node.inputs.end(), half)) return false;
    for (const std::string_view name : {"dtype", "output_dtype", "to"}) {
      const auto value = node.attributes.get_int(name, 0);
      if (!value.is_ok() || value.value() == kHalf) return false;
    }
    return true;
  }

  bool wants_floats(const Node& node) const {
    if (!takes_half(node)) return false;
    if (!keeps_half(node)) return true;
    const auto floats = [&](ValueId id) { return from_widened_.contains(id); };
    const bool surrounded =
        std::any_of(node.inputs.begin(), node.inputs.end(), floats) &&
        std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
          return !is_half(id) || floats(id) || graph_.constant_value(id) != nullptr;
        });
    const bool gives_half = std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [&](ValueId id) { return is_half(id); });
    const bool wanted = std::any_of(node.outputs.begin(), node.outputs.end(),
                                    [&](ValueId id) { return kept_.contains(id); });
    return surrounded && gives_half && !wanted;
  }

  void add_cast(ValueId from, ValueId to, DType type) {
    out_.push_back(make_cast(graph_, opset_, from, to, type));
    *changed_ = true;
  }

  // The float32 twin of a float16 value, made by a Cast when nothing holds it yet.
  ValueId float_of(ValueId half) {
    const auto found = floats_.find(half);
    if (found != floats_.end()) return found->second;
    const ValueId id = add_float_twin(&graph_, half);
    add_cast(half, id, DType::kFloat);
    floats_[half] = id;
    return id;
  }

  void widen_node(Node node) {
    for (ValueId& input : node.inputs) {
      if (is_half(input)) input = float_of(input);
    }
    std::vector<std::pair<ValueId, ValueId>> casts;
    for (ValueId& output : node.outputs) {
      if (!is_half(output)) continue;
      const ValueId id = add_float_twin(&graph_, output);
      floats_[output] = id;
      from_widened_.insert(output);
      casts.emplace_back(id, output);
      output = id;
    }
    out_.push_back(std::move(node));
    for (const auto& [from, to] : casts) add_cast(from, to, DType::kFloat16);
  }

  // A Cast of what stands as floats already reads those, and the floats that a Cast rounds serve
  // whoever would widen them again.
  void pass_cast(Node* node) {
    if (node->inputs.size() != 1 || node->outputs.size() != 1) return;
    const ValueId input = node->inputs[0];
    if (from_widened_.contains(input)) node->inputs[0] = floats_[input];
    if (input == kNone || !is_half(node->outputs[0])) return;
    const TypeInfo& type = graph_.value(input).type;
    if (type.is_tensor() && type.dtype == DType::kFloat) floats_[node->outputs[0]] = input;
  }

  Graph& graph_;
  int opset_;
  bool* changed_;
  std::vector<Node> out_;
  std::unordered_map<ValueId, ValueId> floats_;  // float16 value -> its float32 twin
  std::unordered_set<ValueId> from_widened_;     // float16 values whose producer gives floats
  // Graph outputs, what subgraphs read, and what operators read that keep float16.
  std::unordered_set<ValueId> kept_;
};

bool has_halves(const Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(), [](const GraphValue& value) {
    return value.type.is_tensor() && value.type.dtype == DType::kFloat16;
  });
}

}  // namespace

void widen_half(Model* model, bool* changed) {
  const int opset = model->opset_version("");
  // Before opset 6 a Cast names its type as a string.
  if (opset < 6) return;
  for_inner_graphs_first(&model->graph, [&](Graph& graph) {
    if (has_halves(graph)) Widener(&graph, opset, changed).widen();
  });
}

}  // namespace folio
