#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/ops/op_registry.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

// Results up to this are computed while loading: shape arithmetic and scalars, which inference
// wants to look at. Larger ones stay recipes, computed only when a step reads them.
constexpr uint64_t kEagerBytes = 64 << 10;

// Results of a model have at most so many bytes together, whether they are there or recipes. A file
// of 200 bytes can ask for any number of them (ConstantOfShape, Range, Expand, Tile), and a run,
// which can be cancelled and times out, is who should pay. Weights become a few constants one after
// the other (transposed, reshaped, cast), of codes of 4 bits each 8 times as large. ONNX's light
// models fill all of theirs, up to 600 MB.
constexpr uint64_t kAnyModelBytes = uint64_t{1} << 30;
constexpr uint64_t kBytesPerByte = 16;  // of the model's own constants

uint64_t sum_or_most(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return checked_add(a, b, &sum) ? sum : std::numeric_limits<uint64_t>::max();
}

// Bytes of what the file holds: those of a recipe's inputs.
uint64_t own_bytes(const Graph& graph) {
  uint64_t total = 0;
  for (const GraphValue& value : graph.values) {
    if (!value.initializer) continue;
    const Recipe* recipe = value.initializer->recipe.get();
    if (!recipe) total = sum_or_most(total, plain_bytes(*value.initializer));
    for (const auto& input : recipe ? recipe->inputs : std::vector<Ref<Initializer>>()) {
      if (input) total = sum_or_most(total, plain_bytes(*input));
    }
  }
  for (const Node& node : graph.nodes) {
    for (const auto& subgraph : node.subgraphs) total = sum_or_most(total, own_bytes(*subgraph));
  }
  return total;
}

class Folder {
 public:
  Folder(const Evaluator& evaluator, uint64_t* budget, bool* changed, Dequantized dequantized)
      : evaluator_(evaluator), budget_(budget), changed_(changed), dequantized_(dequantized) {}

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
    const uint64_t bytes = known_bytes(*graph, node).value_or(0);
    if (bytes > *budget_) return false;
    if (bytes > kEagerBytes) {
      add_recipes(graph, node, recipe);
      *budget_ -= bytes;
      return true;
    }
    auto computed = compute(recipe);
    if (!computed.is_ok()) {
      // The node may stand where no run comes by; if one does, it says what is wrong.
      const Code code = computed.status().code();
      if (code != Code::kOutOfMemory && code != Code::kCancelled) return false;
      return std::move(computed).take_status();
    }
    const std::vector<Value> outputs = std::move(computed).take();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone && !outputs[i].is_tensor()) return false;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      const Tensor& tensor = outputs[i].tensor();
      *budget_ -= std::min(*budget_, element_bytes(tensor.dtype(), tensor.shape()));
      set_bytes(graph, node.outputs[i], tensor);
    }
    return true;
  }

  Result<std::vector<Value>> compute(const Recipe& recipe) {
    for (const Ref<Initializer>& input : recipe.inputs) {
      if (input) FOLIO_RETURN_IF_ERROR(evaluate(evaluator_, input.get()));
    }
    return evaluate_outputs(evaluator_, recipe, *budget_);
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

  // Of results whose types and dims are known and elements all have one size: else they are
  // computed at once, as small ones are.
  static std::optional<uint64_t> known_bytes(const Graph& graph, const Node& node) {
    uint64_t total = 0;
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      const TypeInfo& type = graph.value(output).type;
      const auto shape = type.static_shape();
      if (!shape || dtype_bits(type.dtype) == 0) return std::nullopt;
      total = sum_or_most(total, element_bytes(type.dtype, *shape));
    }
    return total;
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
  uint64_t* budget_;
  bool* changed_;
  const Dequantized dequantized_;
};

}  // namespace

uint64_t fold_budget(const Model& model) {
  uint64_t bytes = 0;
  const bool fits = checked_mul(own_bytes(model.graph), kBytesPerByte, &bytes);
  return sum_or_most(kAnyModelBytes, fits ? bytes : std::numeric_limits<uint64_t>::max());
}

Status fold_constants(Model* model, const Evaluator& evaluator, uint64_t* budget, bool* changed,
                      Dequantized dequantized) {
  return Folder(evaluator, budget, changed, dequantized).fold(&model->graph);
}

}  // namespace folio
