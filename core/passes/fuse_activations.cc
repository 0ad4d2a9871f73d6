// Conv and Gemm take in the function that alone reads their result, and Conv the sum before it.
//
//   Conv -> [Add z ->] [function]   com.microsoft FusedConv
//   Gemm -> [function]              com.microsoft FusedGemm
//
// Functions are those of fusable_function(): Relu, Clip, LeakyRelu, Sigmoid, Tanh, HardSigmoid,
// HardSwish, Swish, Gelu in both forms.
//
// One pass over the result less for each, while it is still in the cache. Float only: the fused
// operators know no other type. z must have the shape of the result in every run, as an Add would
// broadcast: by what is known of their dims, or as what the Conv reads, itself or through
// functions, where that has as many channels and its padding makes up for its window.
#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_conv.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

// Those that ONNX Runtime's FusedConv and FusedGemm know; Clip is FusedConv's alone.
constexpr std::string_view kPortable[] = {"Relu", "LeakyRelu",   "Sigmoid",
                                          "Tanh", "HardSigmoid", "Clip"};

class ActivationFuser {
 public:
  ActivationFuser(Graph* graph, Leaves leaves, bool* changed)
      : graph_(*graph), pattern_(graph), leaves_(leaves), changed_(changed), links_(*graph) {}

  void fuse() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (node.dead || !node.domain.empty() || node.outputs.size() != 1) continue;
      if (node.op_type == "Conv") fuse_conv(static_cast<NodeId>(i));
      if (node.op_type == "Gemm") fuse_into(static_cast<NodeId>(i), static_cast<NodeId>(i), kNone);
    }
    graph_.compact();
  }

 private:
  Node& node(NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }

  bool is_float(ValueId id) const {
    const TypeInfo& type = graph_.value(id).type;
    return type.is_tensor() && type.dtype == DType::kFloat;
  }

  // The node that alone reads the only output of `id`, once; kNone when there is none.
  NodeId sole_reader(NodeId id) {
    const ValueId output = node(id).outputs[0];
    if (output == kNone || !is_float(output) || links_.uses[static_cast<size_t>(output)] != 1) {
      return kNone;
    }
    const NodeId reader = links_.readers[static_cast<size_t>(output)];
    if (reader == kNone || !node(reader).subgraphs.empty()) return kNone;
    // It may be gone already: into the other Conv whose result it adds.
    return !node(reader).dead && node(reader).outputs.size() == 1 ? reader : kNone;
  }

  void fuse_conv(NodeId conv) {
    const NodeId add = sole_reader(conv);
    if (add == kNone || node(add).op_type != "Add" || !node(add).domain.empty() ||
        node(add).inputs.size() != 2) {
      fuse_into(conv, conv, kNone);
      return;
    }
    const std::vector<ValueId>& inputs = node(add).inputs;
    const ValueId z = inputs[0] == node(conv).outputs[0] ? inputs[1] : inputs[0];
    const ValueId y = node(conv).outputs[0];
    const bool fits = z != y && is_float(z) &&
                      (pattern_.same_dims(y, z) || (reads(conv, z) && keeps_shape(conv)));
    if (fits) fuse_into(conv, add, z);
  }

  // Whether its image is `z`, or functions of it.
  bool reads(NodeId conv, ValueId z) {
    ValueId x = node(conv).inputs[0];
    while (x != z) {
      const NodeId maker = x == kNone ? kNone : links_.makers[static_cast<size_t>(x)];
      if (maker == kNone || node(maker).dead || node(maker).outputs[0] != x ||
          !fusable_function(graph_, node(maker))) {
        return false;
      }
      x = node(maker).inputs[0];
    }
    return true;
  }

  // Whether its result always has the shape of its image.
  bool keeps_shape(NodeId conv) {
    const std::optional<Shape> w = pattern_.shape(node(conv).inputs[1]);
    const auto attrs = parse_conv(node(conv).attributes);
    if (!w || w->rank() < 3 || !attrs.is_ok()) return false;
    const auto& [window, group] = attrs.value();
    int64_t channels = 0;
    if (!checked_mul((*w)[1], group, &channels) || channels != (*w)[0] ||
        window.auto_pad != AutoPad::kNotSet) {
      return false;
    }
    DimTable table;
    const Dim size = table.anonymous();
    const int axes = w->rank() - 2;
    for (int i = 0; i < axes; ++i) {
      const Dim out = window_out_dim(window, table, size, (*w)[i + 2], static_cast<size_t>(i),
                                     static_cast<size_t>(axes));
      if (out != size) return false;
    }
    return true;
  }

  // `last` is the node behind which a function may stand: `id` itself or the Add after it.
  void fuse_into(NodeId id, NodeId last, ValueId z) {
    const NodeId reader = sole_reader(last);
    std::optional<FusableFunction> function;
    if (reader != kNone && node(reader).inputs[0] == node(last).outputs[0]) {
      function = fusable_function(graph_, node(reader));
      if (function && !may_leave(*function, node(id).op_type)) function.reset();
    }
    const bool has_function = function.has_value();
    if (!has_function && id == last) return;
    if (!is_float(node(id).outputs[0])) return;
    const NodeId end = has_function ? reader : last;
    Node fused = std::move(node(id));
    node(id) = Node();
    node(id).dead = true;
    if (has_function) set_function(*function, &fused);
    fused.op_type = fused.op_type == "Conv" ? "FusedConv" : "FusedGemm";
    fused.domain = "com.microsoft";
    fused.version = 1;
    if (z != kNone) {
      fused.inputs.resize(4, kNone);
      fused.inputs[3] = z;
      node(last).dead = true;
    }
    // In the place of the last one: all its inputs are made by then.
    fused.outputs = node(end).outputs;
    node(end) = std::move(fused);
    *changed_ = true;
  }

  bool may_leave(const FusableFunction& function, const std::string& into) const {
    if (leaves_ == Leaves::kAll) return true;
    for (const std::string_view name : kPortable) {
      if (name == function.name) return name != "Clip" || into == "Conv";
    }
    return false;
  }

  Graph& graph_;
  Pattern pattern_;  // for dims only: the nodes change without it
  const Leaves leaves_;
  bool* changed_;
  const ValueLinks links_;  // before any node was fused
};

}  // namespace

void fuse_activations(Model* model, bool* changed, Leaves leaves) {
  for_inner_graphs_first(&model->graph,
                         [&](Graph& graph) { ActivationFuser(&graph, leaves, changed).fuse(); });
}

}  // namespace folio
