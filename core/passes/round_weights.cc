// Large weights of products become bfloat16: half the bytes in packs, in memory and on the way from
// there (folio.float32_weights).
//
//   op(x, W)   ->   op(x, Cast(W, to = bfloat16, keeps_finite = 1)) with half_weights = 1
//
// Finite weights stay finite, as where kernels round operands themselves.
// Constants in float of operators that read 16 bits (OpDef::takes_half), but for Gather, which
// multiplies nothing, and Winograd's convolutions, whose weights are transformed. Constants of up
// to 64 KiB as bfloat16 stay as they are: widening them in each run is not repaid. The Cast is a
// recipe: computed when it is packed, or when the model is loaded if it is not. Private: the result
// is never saved.
#include <unordered_map>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"
#include "core/passes/take_halves.h"

namespace folio {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{64} << 10;  // of a rounded constant
constexpr int kBfloat16 = 16;                         // TensorProto.DataType
constexpr int kCastVersion = 13;

class RoundedWeights {
 public:
  Ref<Initializer> half_of(const Node& node, const Ref<Initializer>& wide) {
    const bool stays = node.op_type == "Gather" || node.attributes.has("winograd");
    return stays || !is_large(*wide) ? Ref<Initializer>() : rounded(wide);
  }

 private:
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
    made->recipe->attributes.set(int_attribute("keeps_finite", 1));
    made->recipe->inputs.push_back(wide);
    return made;
  }

  std::unordered_map<const Initializer*, Ref<Initializer>> rounded_;  // by what they are made of
};

}  // namespace

void round_weights(Model* model) {
  for_inner_graphs_first(&model->graph, [](Graph& graph) {
    RoundedWeights weights;
    take_halves(&graph, [&](const Node& node, const Ref<Initializer>& wide) {
      return weights.half_of(node, wide);
    });
  });
}

}  // namespace folio
