#include "core/ops/op_evaluate.h"

#include <cstring>

#include "core/ops/op_registry.h"
#include "core/os/arena.h"

namespace folio {
namespace {

// Weights are computed to be packed and then freed: pages of their own go back at once, where
// malloc would keep the holes between the packs.
constexpr uint64_t kMapFrom = 1 << 20;

Result<Tensor> allocate_constant(DType dtype, const Shape& shape) {
  uint64_t bytes = 0;
  const bool is_large = dtype != DType::kString &&
                        dtype_bytes(dtype, static_cast<uint64_t>(shape.count()), &bytes) &&
                        bytes >= kMapFrom;
  if (!is_large) return allocate_tensor(dtype, shape);
  FOLIO_TRY(Ref<Arena> map, Arena::create(static_cast<size_t>(bytes)));
  uint8_t* data = map->data();
  return Tensor(dtype, shape, data,
                view_buffer(Buffer::Kind::kHeap, data, static_cast<size_t>(bytes), std::move(map)));
}

class ConstantHost final : public OpHost {
 public:
  ConstantHost(const Evaluator& evaluator, uint64_t bytes_left)
      : evaluator_(evaluator), bytes_left_(bytes_left) {}

  Result<Tensor> allocate_output(int, DType dtype, const Shape& shape) override {
    const uint64_t bytes = element_bytes(dtype, shape);
    if (bytes > bytes_left_) {
      return error(Code::kFail, "a constant of ", bytes, " bytes: at most ", bytes_left_,
                   " are computed while loading");
    }
    bytes_left_ -= bytes;
    return allocate_constant(dtype, shape);
  }
  Status run_subgraph(int, Span<const Value>, std::vector<Value>*) override {
    return error(Code::kFail, "subgraphs are not folded");
  }
  Status check_cancelled() override {
    return evaluator_.check_cancelled ? evaluator_.check_cancelled() : Status::ok();
  }

 private:
  const Evaluator& evaluator_;
  uint64_t bytes_left_;
};

Node node_of(const Recipe& recipe, Graph* graph) {
  Node node;
  node.name = recipe.node_name;
  node.domain = recipe.domain;
  node.op_type = recipe.op_type;
  node.version = recipe.version;
  node.attributes = recipe.attributes;
  for (const Ref<Initializer>& input : recipe.inputs) {
    ValueId id = kNone;
    if (input) {
      id = graph->add_value(input->name);
      graph->value(id).initializer = input;
      Dims dims;
      for (const int64_t dim : input->shape.dims()) dims.push_back(Dim::of(dim));
      graph->value(id).type = TypeInfo::tensor(input->dtype, std::move(dims));
    }
    node.inputs.push_back(id);
  }
  for (int i = 0; i < recipe.output_count; ++i) {
    node.outputs.push_back(graph->add_value(cat("output", i)));
  }
  return node;
}

// Operators take aligned bytes except where they say otherwise.
Result<Value> input_value(const OpDef& def, const Recipe& recipe, size_t i) {
  if (!recipe.inputs[i]) return Value();
  const Tensor& tensor = *recipe.inputs[i]->tensor;
  if (has_bit(def.unaligned_inputs, i) || is_aligned_for(tensor)) return Value(tensor);
  FOLIO_TRY(Tensor copy, allocate_constant(tensor.dtype(), tensor.shape()));
  std::memcpy(copy.raw_mut(), tensor.raw(), tensor.bytes());  // strings are always aligned
  return Value(std::move(copy));
}

}  // namespace

bool is_aligned_for(const Tensor& tensor) {
  const int bits = dtype_bits(tensor.dtype());
  const auto bytes = static_cast<uintptr_t>(bits <= 8 ? 1 : bits > 64 ? 8 : bits / 8);
  return tensor.is_string() || reinterpret_cast<uintptr_t>(tensor.raw()) % bytes == 0;
}

uint64_t element_bytes(DType dtype, const Shape& shape) {
  uint64_t bytes = 0;
  const bool fits = dtype_bytes(dtype, static_cast<uint64_t>(shape.count()), &bytes);
  return fits ? bytes : std::numeric_limits<uint64_t>::max();
}

Result<std::vector<Value>> evaluate_outputs(const Evaluator& evaluator, const Recipe& recipe,
                                            uint64_t most_bytes) {
  ConstantHost host(evaluator, most_bytes);
  FOLIO_RETURN_IF_ERROR(host.check_cancelled());
  Graph graph;
  Node node = node_of(recipe, &graph);
  const OpDef* def = op_registry().find(recipe.domain, recipe.op_type, recipe.version);
  if (!def) return error(Code::kUnsupportedOperator, node.label(), ": operator is not supported");
  OpBuild build(graph, node, evaluator.kernels, /*prepack=*/false);
  auto made = def->make(build);
  if (!made.is_ok()) return std::move(made).take_status().with_context(node.label());

  std::vector<Value> inputs;
  for (size_t i = 0; i < recipe.inputs.size(); ++i) {
    auto value = input_value(*def, recipe, i);
    if (!value.is_ok()) return std::move(value).take_status().with_context(node.label());
    inputs.push_back(std::move(value).take());
  }
  std::vector<const Value*> pointers;
  for (const Value& value : inputs) pointers.push_back(value.is_none() ? nullptr : &value);
  const std::vector<uint8_t> wanted(node.outputs.size(), 1);
  OpRun run(host, evaluator.kernels, evaluator.parallel);
  run.begin(pointers, wanted, {});
  auto status = catching_bad_alloc([&] { return made.value()->run(run); });
  if (!status.is_ok()) return std::move(status).with_context(node.label());
  return std::move(run.outputs());
}

Status evaluate(const Evaluator& evaluator, Initializer* initializer) {
  if (initializer->tensor) return Status::ok();
  // Depth first with a stack of our own: chains of recipes may be long.
  std::vector<Initializer*> stack{initializer};
  while (!stack.empty()) {
    Initializer* top = stack.back();
    if (top->tensor) {
      stack.pop_back();
      continue;
    }
    const size_t depth = stack.size();
    for (const Ref<Initializer>& input : top->recipe->inputs) {
      if (input && !input->tensor) stack.push_back(input.get());
    }
    if (stack.size() > depth) continue;
    FOLIO_TRY(std::vector<Value> outputs, evaluate_outputs(evaluator, *top->recipe));
    Value& value = outputs[static_cast<size_t>(top->recipe->output)];
    if (!value.is_tensor()) {
      return error(Code::kFail, "folding '", top->name, "' gave no tensor");
    }
    top->tensor = std::move(value.tensor());
    top->dtype = top->tensor->dtype();
    top->shape = top->tensor->shape();
    // Heap inputs that only this recipe kept alive are freed here; pages of the file that others
    // read too come back from it.
    for (const Ref<Initializer>& input : top->recipe->inputs) {
      if (input && input->source) input->source->drop_pages(input->offset, input->tensor->bytes());
    }
    top->recipe.reset();
    stack.pop_back();
  }
  return Status::ok();
}

}  // namespace folio
