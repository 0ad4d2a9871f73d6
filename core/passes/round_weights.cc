// Large weights of products become bfloat16: half the bytes in packs, in memory and on the way from
// there (folio.float32_weights).
//
//   op(x, W)   ->   op(x, Cast(W, to = bfloat16)) with half_weights = 1
//
// Constants in float of operators that read 16 bits (OpDef::takes_half), but for Gather, which
// multiplies nothing, and Winograd's convolutions, whose weights are transformed. Constants of up
// to 64 KiB as bfloat16 stay as they are: widening them in each run is not repaid. The Cast is a
// recipe: computed when it is packed, or when the model is loaded if it is not. Private: the result
// is never saved.
#include <unordered_map>

#include "core/ops/op_half_panels.h"
#include "core/ops/op_registry.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{64} << 10;  // of a rounded constant
constexpr int kBfloat16 = 16;                         // TensorProto.DataType
constexpr int kCastVersion = 13;

class RoundWeights {
 public:
  explicit RoundWeights(Graph* graph) : graph_(*graph), constants_(graph) {}

  void run() {
    for (Node& node : graph_.nodes) {
      if (!node.dead) round(&node);
    }
    if (!constants_.empty()) drop_unused_constants(&graph_);
  }

 private:
  void round(Node* node) {
    const OpDef* def = op_registry().find(node->domain, node->op_type, node->version);
    if (!def || !def->takes_half || node->op_type == "Gather") return;
    if (node->attributes.has("winograd")) return;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const GraphValue* value =
          node->inputs[i] == kNone ? nullptr : graph_.constant_value(node->inputs[i]);
      if (!value || !is_large(*value->initializer)) continue;
      const Shape& shape = value->initializer->shape;
      if (!def->takes_half(node->attributes, static_cast<int>(i), shape)) continue;
      node->inputs[i] = constants_.of(rounded(value->initializer));
      node->attributes.set(int_attribute(std::string(kHalfWeightsAttribute), 1));
    }
  }

  static bool is_large(const Initializer& constant) {
    return constant.dtype == DType::kFloat && plain_bytes(constant) / 2 > kLeastBytes;
  }

  const Ref<Initializer>& rounded(const Ref<Initializer>& wide) {
    Ref<Initializer>& made = rounded_[wide.get()];
    if (made) return made;
    made = make_ref<Initializer>();
    made->name = wide->name;
    made->dtype = DType::kBfloat16;
    made->shape = wide->shape;
    made->recipe = std::make_unique<Recipe>();
    made->recipe->op_type = "Cast";
    made->recipe->node_name = wide->name;
    made->recipe->version = kCastVersion;
    made->recipe->attributes.set(int_attribute("to", kBfloat16));
    made->recipe->inputs.push_back(wide);
    return made;
  }

  Graph& graph_;
  ConstantValues constants_;
  std::unordered_map<const Initializer*, Ref<Initializer>> rounded_;  // by what they are made of
};

}  // namespace

void round_weights(Model* model) {
  for_inner_graphs_first(&model->graph, [](Graph& graph) { RoundWeights(&graph).run(); });
}

}  // namespace folio
