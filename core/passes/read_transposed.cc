// Products read a constant matrix where it stands, not a transposed copy of it.
//
//   MatMul(x, Transpose(W))        com.microsoft FusedMatMul(x, W) with transB
//   FusedMatMul, Gemm, FusedGemm   the same with transB turned
//   Cast(Transpose(W)) for W       Cast(W), which keep_halves takes away
//
// A head whose matrix is the table of the embeddings ("tied") is the usual case: its Transpose was
// folded into a recipe, which would be computed: a second matrix in private memory while packs are
// made, and for good where nothing is packed. Up to 64 KiB were computed when constants were folded
// and stay. Panels and chains of sums are the same either way. Private: the result is never saved.
#include <unordered_map>

#include "core/ops/op_half_panels.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

const Recipe* recipe_of_type(const Initializer& constant, std::string_view type) {
  const Recipe* recipe = constant.recipe.get();
  const bool is_found = !constant.tensor && recipe && recipe->domain.empty() &&
                        recipe->op_type == type && !recipe->inputs.empty() && recipe->inputs[0];
  return is_found ? recipe : nullptr;
}

// The matrix that this is the transpose of, or null.
Ref<Initializer> transpose_of(const Initializer& constant) {
  const Recipe* recipe = recipe_of_type(constant, "Transpose");
  if (!recipe || constant.shape.rank() != 2) return {};
  const auto perm = recipe->attributes.get_ints("perm");
  const bool swaps =
      perm.is_ok() && (perm.value().empty() || perm.value() == std::vector<int64_t>{1, 0});
  return swaps ? recipe->inputs[0] : Ref<Initializer>();
}

class TransposedReader {
 public:
  explicit TransposedReader(Graph* graph) : graph_(*graph), values_(graph) {}

  void run() {
    for (Node& node : graph_.nodes) {
      if (!node.dead && is_product(node)) read(&node);
    }
    if (!values_.empty()) drop_unused_constants(&graph_);
  }

 private:
  static bool is_product(const Node& node) {
    const std::string_view type = node.op_type;
    if (node.inputs.size() < 2 || node.inputs[1] == kNone) return false;
    if (node.domain.empty()) return type == "MatMul" || type == "Gemm";
    if (node.domain == "folio") return type == "FusedMatMul";
    return node.domain == "com.microsoft" &&
           (type == "FusedMatMul" || type == "TransposeMatMul" || type == "FusedGemm");
  }

  void read(Node* node) {
    for (;;) {  // models that others made have a Transpose of a Transpose
      const GraphValue* value = graph_.constant_value(node->inputs[1]);
      const Ref<Initializer> source = value ? turned(value->initializer) : Ref<Initializer>();
      if (!source || !turn(node)) return;
      node->inputs[1] = values_.of(source);
    }
  }

  // The constant without its Transpose, which may stand before a Cast to float.
  Ref<Initializer> turned(const Ref<Initializer>& constant) {
    if (!has_panels(constant->dtype)) return {};
    if (Ref<Initializer> source = transpose_of(*constant)) return source;
    const Recipe* cast = recipe_of_type(*constant, "Cast");
    if (!cast || !is_half(cast->inputs[0]->dtype)) return {};
    const Ref<Initializer> half = transpose_of(*cast->inputs[0]);
    if (!half) return {};
    Ref<Initializer>& known = casts_[half.get()];
    if (!known) {
      known = make_ref<Initializer>();
      known->name = constant->name;
      known->dtype = constant->dtype;
      known->shape = half->shape;
      known->recipe = std::make_unique<Recipe>(*cast);
      known->recipe->inputs[0] = half;
    }
    return known;
  }

  static bool turn(Node* node) {
    const auto trans = node->attributes.get_int("transB", 0);
    if (!trans.is_ok()) return false;
    if (node->domain.empty() && node->op_type == "MatMul") {
      node->domain = "com.microsoft";
      node->op_type = "FusedMatMul";
      node->version = 1;
    }
    node->attributes.set(int_attribute("transB", trans.value() == 0 ? 1 : 0));
    return true;
  }

  Graph& graph_;
  ConstantValues values_;
  std::unordered_map<const Initializer*, Ref<Initializer>> casts_;  // by what they widen
};

}  // namespace

void read_transposed(Model* model) {
  for_inner_graphs_first(&model->graph, [](Graph& graph) { TransposedReader(&graph).run(); });
}

}  // namespace folio
