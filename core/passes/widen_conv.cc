// Convolutions of bfloat16 are those of float between Casts.
//
//   Conv(x, W, B)   ->   Cast(Conv(Cast(x), Cast(W), Cast(B)))
//   Relu, Clip of it     the same of the sums before they are rounded, which fuse_activations then
//                        finds: bounds are bfloat16 too, so it is all one which comes first
//
// The arithmetic is the operator's own: it computes in float and rounds its result, so values are
// rounded after every operator as before (ONNX Runtime's CPU has no such Conv). But now weights can
// be packed, of 16 bits still (keep_halves), where each run widened all of them, and images can
// have channels last. Not for models to be saved, which stay as they are.
#include <algorithm>
#include <unordered_map>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

class ConvWidener {
 public:
  ConvWidener(Graph* graph, int opset) : graph_(*graph), opset_(opset) {}

  bool widen() {
    if (!has_operator(graph_, "Conv")) return false;
    std::vector<Node> nodes = std::move(graph_.nodes);
    bool changed = false;
    for (Node& node : nodes) {
      const bool is_found = is_conv_of_bfloat16(node) || is_bound_of_sum(node);
      if (is_found) widen_node(std::move(node));
      if (!is_found) out_.push_back(std::move(node));
      changed |= is_found;
    }
    graph_.nodes = std::move(out_);
    if (changed) graph_.compact();
    return changed;
  }

 private:
  bool is_bfloat16(ValueId id) const {
    const TypeInfo& type = graph_.value(id).type;
    return type.is_tensor() && type.dtype == DType::kBfloat16;
  }

  // All of whose operands are.
  bool is_of_bfloat16(const Node& node, std::string_view type) const {
    if (node.dead || !node.domain.empty() || node.op_type != type || node.inputs.empty() ||
        node.inputs[0] == kNone || node.outputs.size() != 1 || node.outputs[0] == kNone) {
      return false;
    }
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return id == kNone || is_bfloat16(id); }) &&
           is_bfloat16(node.outputs[0]);
  }
  bool is_conv_of_bfloat16(const Node& node) const {
    return node.inputs.size() >= 2 && is_of_bfloat16(node, "Conv");
  }
  // Before opset 11 the bounds of Clip are floats.
  bool is_bound_of_sum(const Node& node) const {
    constexpr int kBoundsAreInputs = 11;
    const bool is_bound = is_of_bfloat16(node, "Relu") ||
                          (node.version >= kBoundsAreInputs && is_of_bfloat16(node, "Clip"));
    return is_bound && sums_.contains(node.inputs[0]);
  }

  void add_cast(ValueId from, ValueId to, DType type) {
    out_.push_back(make_cast(graph_, opset_, from, to, type));
  }

  void widen_node(Node node) {
    const bool is_bound = sums_.contains(node.inputs[0]) && node.op_type != "Conv";
    if (is_bound) node.inputs[0] = sums_[node.inputs[0]];
    for (ValueId& input : node.inputs) {
      if (input == kNone || !is_bfloat16(input)) continue;
      const auto [known, is_new] = floats_.try_emplace(input, kNone);
      if (is_new) {
        known->second = add_float_twin(&graph_, input);
        add_cast(input, known->second, DType::kFloat);
      }
      input = known->second;
    }
    const ValueId rounded = node.outputs[0];
    node.outputs[0] = add_float_twin(&graph_, rounded);
    const ValueId sum = node.outputs[0];
    sums_[rounded] = sum;
    out_.push_back(std::move(node));
    add_cast(sum, rounded, DType::kBfloat16);
  }

  Graph& graph_;
  int opset_;
  std::vector<Node> out_;
  std::unordered_map<ValueId, ValueId> floats_;  // by the values that they have
  std::unordered_map<ValueId, ValueId> sums_;    // by what they are rounded to
};

}  // namespace

void widen_conv(Model* model, bool* changed) {
  const int opset = model->opset_version("");
  // Before opset 6 a Cast names its type as a string.
  if (opset < 6) return;
  for_inner_graphs_first(&model->graph,
                         [&](Graph& graph) { *changed |= ConvWidener(&graph, opset).widen(); });
}

}  // namespace folio
