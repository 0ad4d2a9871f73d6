#include <limits>

#include "core/ops/op_registry.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

// Results up to this are computed while loading: shape arithmetic and scalars, which inference
// wants to look at. Larger ones stay recipes, computed only when a step reads them.
constexpr uint64_t kEagerBytes = 64 << 10;

class Folder {
 public:
  Folder(const Evaluator& evaluator, bool* changed, Dequantized dequantized)
      : evaluator_(evaluator), changed_(changed), dequantized_(dequantized) {}

  Status fold(Graph* graph) {
    for (Node& node : graph->nodes) {
      if (node.dead) continue;
      for (auto& subgraph : node.subgraphs) FOLIO_RETURN_IF_ERROR(fold(subgraph.get()));
      if (!foldable(*graph, node)) continue;
      FOLIO_TRY(const bool folded, fold_node(graph, node));
      if (folded) {
        node.dead = true;
        *changed_ = true;
      }
    }
    return Status::ok();
  }

 private:
  bool foldable(const Graph& graph, const Node& node) const {
    if (dequantized_ != Dequantized::kFold && node.op_type == "DequantizeLinear") return false;
    if (dequantized_ == Dequantized::kKeepHalves && widens_half(graph, node)) return false;
    const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
    if (!def->foldable || !node.subgraphs.empty()) return false;
    bool data_known = true;
    for (const ValueId output : node.outputs) {
      data_known &= output == kNone || known_ints(graph.value(output)).has_value();
    }
    if (data_known) return true;
    for (const ValueId input : node.inputs) {
      if (input != kNone && !graph.constant_value(input)) return false;
    }
    return true;
  }

  static bool widens_half(const Graph& graph, const Node& node) {
    if (node.op_type != "Cast" || node.inputs.size() != 1 || node.inputs[0] == kNone) return false;
    const TypeInfo& type = graph.value(node.inputs[0]).type;
    return type.is_tensor() && type.dtype == DType::kFloat16;
  }

  // Integer contents that inference knows fully, such as the Shape of a value of static shape.
  static std::optional<std::vector<int64_t>> known_ints(const GraphValue& value) {
    if (!value.data || !value.type.has_rank() || value.type.rank() > 1) return std::nullopt;
    if (value.type.dtype != DType::kInt64 && value.type.dtype != DType::kInt32) return std::nullopt;
    std::vector<int64_t> out;
    for (const Dim dim : *value.data) {
      if (!dim.is_value()) return std::nullopt;
      out.push_back(dim.value);
    }
    if (value.type.rank() == 0 && out.size() != 1) return std::nullopt;
    return out;
  }

  Result<bool> fold_node(Graph* graph, const Node& node) {
    if (const bool done = fold_known(graph, node)) return done;
    Recipe recipe = recipe_of(node, [graph](ValueId input) {
      const GraphValue* constant = graph->constant_value(input);
      return constant ? constant->initializer : Ref<Initializer>();
    });
    if (stays_recipe(*graph, node)) {
      add_recipes(graph, node, recipe);
      return true;
    }
    auto computed = compute(recipe);
    if (!computed.is_ok()) {
      // The node may stand where no run comes by; if one does, it says what is wrong.
      if (computed.status().code() != Code::kOutOfMemory) return false;
      return std::move(computed).take_status();
    }
    const std::vector<Value> outputs = std::move(computed).take();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone && !outputs[i].is_tensor()) return false;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) set_bytes(graph, node.outputs[i], outputs[i].tensor());
    }
    return true;
  }

  Result<std::vector<Value>> compute(const Recipe& recipe) {
    for (const Ref<Initializer>& input : recipe.inputs) {
      if (input) FOLIO_RETURN_IF_ERROR(evaluate(evaluator_, input.get()));
    }
    return evaluate_outputs(evaluator_, recipe);
  }

  bool fold_known(Graph* graph, const Node& node) {
    for (const ValueId output : node.outputs) {
      if (output != kNone && !known_ints(graph->value(output))) return false;
    }
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      GraphValue& value = graph->value(output);
      const auto numbers = *known_ints(value);
      Shape shape;
      if (value.type.rank() == 1) shape.push_back(static_cast<int64_t>(numbers.size()));
      auto made = allocate_tensor(value.type.dtype, shape);
      if (!made.is_ok()) return false;
      Tensor tensor = std::move(made).take();
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (tensor.dtype() == DType::kInt64) {
          tensor.data_mut<int64_t>()[i] = numbers[i];
        } else {
          tensor.data_mut<int32_t>()[i] = static_cast<int32_t>(numbers[i]);
        }
      }
      set_bytes(graph, output, std::move(tensor));
    }
    return true;
  }

  // Known large results of tensors: not now. Everything else is computed at once.
  static bool stays_recipe(const Graph& graph, const Node& node) {
    uint64_t total = 0;
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      const TypeInfo& type = graph.value(output).type;
      const auto shape = type.static_shape();
      uint64_t bytes = 0;
      if (!shape || !dtype_bytes(type.dtype, static_cast<uint64_t>(shape->count()), &bytes)) {
        return false;
      }
      total = bytes > std::numeric_limits<uint64_t>::max() - total ? bytes : total + bytes;
    }
    return total > kEagerBytes;
  }

  static void add_recipes(Graph* graph, const Node& node, const Recipe& recipe) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      GraphValue& value = graph->value(node.outputs[i]);
      auto initializer = make_ref<Initializer>();
      initializer->name = value.name;
      initializer->dtype = value.type.dtype;
      initializer->shape = *value.type.static_shape();
      initializer->recipe = std::make_unique<Recipe>(recipe);
      initializer->recipe->output = static_cast<int>(i);
      value.initializer = std::move(initializer);
      value.producer = kNone;
    }
  }

  static void set_bytes(Graph* graph, ValueId id, Tensor tensor) {
    GraphValue& value = graph->value(id);
    auto initializer = make_ref<Initializer>();
    initializer->name = value.name;
    initializer->dtype = tensor.dtype();
    initializer->shape = tensor.shape();
    initializer->tensor = std::move(tensor);
    Dims dims;
    for (const int64_t dim : initializer->shape.dims()) dims.push_back(Dim::of(dim));
    value.type = TypeInfo::tensor(initializer->dtype, std::move(dims));
    value.initializer = std::move(initializer);
    value.producer = kNone;
  }

  const Evaluator& evaluator_;
  bool* changed_;
  const Dequantized dequantized_;
};

}  // namespace

Status fold_constants(Model* model, const Evaluator& evaluator, bool* changed,
                      Dequantized dequantized) {
  return Folder(evaluator, changed, dequantized).fold(&model->graph);
}

}  // namespace folio
