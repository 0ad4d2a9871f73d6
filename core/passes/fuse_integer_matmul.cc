// Products of dynamically quantized activations give floats at once.
//
//   DynamicQuantizeLinear of a value that another one quantizes already   that one's outputs
//   DQL -> MatMulInteger -> Cast -> Mul (a_scale * b_scale) [-> Add bias] com.microsoft
//   MatMulIntegerToFloat
//
// The same arithmetic in the same order, without int32 and float tensors between. b_scale, bias and
// B are constants; values between have no other reader. Portable.
#include <map>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

class IntegerMatMulFuser {
 public:
  IntegerMatMulFuser(Graph* graph, bool* changed) : graph_(*graph), changed_(changed) {}

  void fuse() {
    merge_quantizers();
    links_.emplace(graph_);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_op(graph_.nodes[i], "MatMulInteger")) fuse_product(static_cast<NodeId>(i));
    }
    graph_.compact();
  }

 private:
  static bool is_op(const Node& node, std::string_view type) {
    return !node.dead && node.domain.empty() && node.op_type == type;
  }
  Node& node(NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }
  NodeId maker(ValueId id) const {
    return id == kNone ? kNone : links_->makers[static_cast<size_t>(id)];
  }

  void merge_quantizers() {
    std::map<ValueId, std::vector<ValueId>> made;
    Graph::Replacements replacements;
    for (Node& at : graph_.nodes) {
      if (!is_op(at, "DynamicQuantizeLinear") || at.outputs.size() != 3) continue;
      const auto [first, is_new] = made.try_emplace(at.inputs[0], at.outputs);
      if (is_new || !replaceable(at.outputs, first->second)) continue;
      for (size_t i = 0; i < 3; ++i) {
        if (at.outputs[i] != kNone) replacements[at.outputs[i]] = first->second[i];
      }
      at.dead = true;
      *changed_ = true;
    }
    graph_.replace_uses(replacements);
  }

  bool replaceable(const std::vector<ValueId>& outputs, const std::vector<ValueId>& by) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == kNone) continue;
      if (by[i] == kNone) return false;
      for (const ValueId output : graph_.outputs) {
        if (output == outputs[i]) return false;
      }
    }
    return true;
  }

  NodeId sole_reader(NodeId id, std::string_view type) {
    const Node& from = node(id);
    if (from.outputs.size() != 1 || from.outputs[0] == kNone) return kNone;
    if (links_->uses[static_cast<size_t>(from.outputs[0])] != 1) return kNone;
    const NodeId reader = links_->readers[static_cast<size_t>(from.outputs[0])];
    return reader != kNone && is_op(node(reader), type) ? reader : kNone;
  }

  static ValueId other_input(const Node& at, ValueId one) {
    if (at.inputs.size() != 2) return kNone;
    return at.inputs[0] == one ? at.inputs[1] : at.inputs[0];
  }

  // A float constant of one element or of n under one dim.
  bool is_line(ValueId id, int64_t n, bool or_one) const {
    const GraphValue* value = id == kNone ? nullptr : graph_.constant_value(id);
    if (!value || value->initializer->dtype != DType::kFloat) return false;
    const Shape& shape = value->initializer->shape;
    return (shape.rank() == 1 && shape[0] == n) ||
           (or_one && shape.rank() <= 1 && shape.count() == 1);
  }

  void fuse_product(NodeId id) {
    const Node& product = node(id);
    if (product.inputs.size() < 3) return;
    const NodeId quantizer = maker(product.inputs[0]);
    if (quantizer == kNone || !is_op(node(quantizer), "DynamicQuantizeLinear")) return;
    const std::vector<ValueId>& made = node(quantizer).outputs;
    const GraphValue* b = graph_.constant_value(product.inputs[1]);
    if (made.size() != 3 || made[0] != product.inputs[0] || made[2] != product.inputs[2] ||
        made[1] == kNone || !b || b->initializer->shape.rank() != 2) {
      return;
    }
    const int64_t n = b->initializer->shape[1];
    const NodeId cast = sole_reader(id, "Cast");
    if (cast == kNone) return;
    const auto to = node(cast).attributes.get_int("to", 0);
    if (!to.is_ok() || to.value() != static_cast<int64_t>(DType::kFloat)) return;
    const NodeId mul = sole_reader(cast, "Mul");
    if (mul == kNone) return;
    const NodeId scales = maker(other_input(node(mul), node(cast).outputs[0]));
    if (scales == kNone || !is_op(node(scales), "Mul")) return;
    const ValueId b_scale = other_input(node(scales), made[1]);
    const bool has_a_scale = node(scales).inputs[0] == made[1] || node(scales).inputs[1] == made[1];
    if (!has_a_scale || !is_line(b_scale, n, true)) return;
    const NodeId add = sole_reader(mul, "Add");
    const ValueId bias = add == kNone ? kNone : other_input(node(add), node(mul).outputs[0]);
    const bool has_bias = bias != kNone && is_line(bias, n, false);
    replace(id, cast, mul, has_bias ? add : kNone, b_scale, has_bias ? bias : kNone, made[1]);
  }

  void replace(NodeId id, NodeId cast, NodeId mul, NodeId add, ValueId b_scale, ValueId bias,
               ValueId a_scale) {
    const Node& product = node(id);
    Node fused;
    fused.name = product.name;
    fused.domain = "com.microsoft";
    fused.op_type = "MatMulIntegerToFloat";
    fused.version = 1;
    fused.inputs = {product.inputs[0],
                    product.inputs[1],
                    a_scale,
                    b_scale,
                    product.inputs[2],
                    product.inputs.size() > 3 ? product.inputs[3] : kNone,
                    bias};
    const NodeId last = add == kNone ? mul : add;
    fused.outputs = node(last).outputs;
    for (const NodeId gone : {id, cast, mul, last}) {
      node(gone) = Node();
      node(gone).dead = true;
    }
    node(last) = std::move(fused);
    *changed_ = true;
  }

  Graph& graph_;
  bool* changed_;
  std::optional<ValueLinks> links_;  // before any product was fused
};

}  // namespace

void fuse_integer_matmul(Model* model, bool* changed) {
  for_inner_graphs_first(&model->graph, [&](Graph& graph) {
    if (has_operator(graph, "MatMulInteger")) IntegerMatMulFuser(&graph, changed).fuse();
  });
}

}  // namespace folio
