// Loop: a subgraph run while a condition holds.
//
// Source: ONNX operator spec, Loop, opsets 1, 11, 13, 16 and later (only types were added).
// Inputs: M (int64 scalar, optional), cond (bool, optional), loop-carried values of any kind.
// Body:   (iteration, cond, carried...) -> (cond, carried..., scan outputs...)
// Outputs: final carried values, then scan outputs stacked along a new axis 0.
// Types:  M int32, int64; cond bool; carried values of any kind; scan outputs: all types but those
//         of 2 and 4 bits.
#include <algorithm>

#include "core/ops/op_registry.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

Result<bool> read_bool(const Value& value) {
  if (!value.is_tensor() || value.tensor().dtype() != DType::kBool || value.tensor().count() != 1) {
    return invalid_argument("the condition must be one bool");
  }
  return *value.tensor().data<uint8_t>() != 0;
}

class Loop final : public OpKernel {
 public:
  int body = 0;
  Shape own_shapes[2];  // of the iteration number and the condition
  size_t carried = 0;
  std::vector<TypeInfo> scan_types;

  Status run(OpRun& run) const override {
    int64_t limit = INT64_MAX;
    bool condition = true;
    if (run.has_input(0)) {
      FOLIO_TRY(const std::vector<int64_t> m, run.ints(0));
      if (m.size() != 1) return invalid_argument("M has ", m.size(), " elements, expected 1");
      limit = m[0];
    }
    if (run.has_input(1)) {
      FOLIO_TRY(condition, read_bool(run.value(1)));
    }
    std::vector<Value> state;
    for (size_t i = 0; i < carried; ++i) {
      const int input = static_cast<int>(i) + 2;
      state.push_back(run.has_input(input) ? run.value(input) : Value());
    }
    constexpr int64_t kFirst = 16;  // `limit` may be far beyond where the condition ends
    std::vector<ScanOutput> scans(scan_types.size(), ScanOutput(std::min(limit, kFirst), limit));
    std::vector<Value> inputs;
    std::vector<Value> outputs;
    for (int64_t i = 0; i < limit && condition; ++i) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      FOLIO_RETURN_IF_ERROR(set_inputs(i, &state, &inputs));
      FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(body, inputs, &outputs));
      inputs.clear();
      FOLIO_RETURN_IF_ERROR(take_outputs(&outputs, &condition, &state, &scans));
    }
    for (size_t i = 0; i < carried; ++i) {
      const auto output = static_cast<int>(i);
      if (run.has_output(output)) run.set_output(output, std::move(state[i]));
    }
    for (size_t i = 0; i < scans.size(); ++i) {
      const auto output = static_cast<int>(carried + i);
      if (!run.has_output(output)) continue;
      FOLIO_TRY(Tensor stacked, scans[i].stack(0, false, scan_types[i]));
      run.set_output(output, std::move(stacked));
    }
    return Status::ok();
  }

 private:
  Status set_inputs(int64_t index, std::vector<Value>* state, std::vector<Value>* inputs) const {
    FOLIO_TRY(Tensor iteration, allocate_tensor(DType::kInt64, own_shapes[0]));
    *iteration.data_mut<int64_t>() = index;
    FOLIO_TRY(Tensor cond, allocate_tensor(DType::kBool, own_shapes[1]));
    *cond.raw_mut() = 1;  // otherwise there would be no iteration
    inputs->emplace_back(std::move(iteration));
    inputs->emplace_back(std::move(cond));
    for (Value& value : *state) inputs->push_back(std::move(value));
    return Status::ok();
  }

  Status take_outputs(std::vector<Value>* outputs, bool* condition, std::vector<Value>* state,
                      std::vector<ScanOutput>* scans) const {
    if (outputs->size() != 1 + carried + scans->size()) {
      return invalid_graph("the body has ", outputs->size(), " outputs, expected ",
                           1 + carried + scans->size());
    }
    FOLIO_TRY(*condition, read_bool((*outputs)[0]));
    for (size_t i = 0; i < carried; ++i) (*state)[i] = std::move((*outputs)[1 + i]);
    for (size_t i = 0; i < scans->size(); ++i) {
      FOLIO_RETURN_IF_ERROR((*scans)[i].add((*outputs)[1 + carried + i]));
    }
    outputs->clear();
    return Status::ok();
  }
};

// The iteration number and the condition are scalars; bodies that declare them as [1] get that.
bool declares_list(const Graph& body, size_t input) {
  if (input >= body.inputs.size()) return false;
  const TypeInfo& type = body.value(body.inputs[input]).declared;
  return type.is_tensor() && type.has_rank() && type.rank() == 1;
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int body, find_subgraph(infer.node(), "body"));
  const auto carried = static_cast<size_t>(std::max(infer.input_count() - 2, 0));
  const Graph& graph = *infer.node().subgraphs[static_cast<size_t>(body)];
  std::vector<TypeInfo> inputs;
  for (const DType dtype : {DType::kInt64, DType::kBool}) {
    const bool list = declares_list(graph, inputs.size());
    inputs.push_back(TypeInfo::tensor(dtype, list ? Dims{Dim::of(1)} : Dims{}));
  }
  for (size_t i = 0; i < carried; ++i) {
    // Dims may change from one iteration to the next.
    inputs.push_back(without_dims(infer.input(static_cast<int>(i) + 2)));
  }
  FOLIO_TRY(const std::vector<TypeInfo> outputs, infer.infer_subgraph(body, inputs));
  if (outputs.size() < 1 + carried) {
    return invalid_graph("the body has ", outputs.size(), " outputs, expected ", 1 + carried,
                         " or more");
  }
  for (size_t i = 0; i < carried; ++i) {
    const TypeInfo& begins = inputs[2 + i];
    const TypeInfo& goes_on = outputs[1 + i];
    if (!may_carry(begins, goes_on)) {
      return invalid_graph("input ", 2 + i, " is ", type_to_string(begins), ", the body makes it ",
                           type_to_string(goes_on));
    }
  }
  for (size_t i = 0; 1 + i < outputs.size(); ++i) {
    infer.set_output(static_cast<int>(i), i < carried ? carried_type(inputs[2 + i], outputs[1 + i])
                                                      : stacked_type(outputs[1 + i]));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Loop>();
  FOLIO_TRY(kernel->body, find_subgraph(build.node(), "body"));
  const Graph& body = *build.node().subgraphs[static_cast<size_t>(kernel->body)];
  kernel->carried = static_cast<size_t>(std::max(build.input_count() - 2, 0));
  if (body.inputs.size() != kernel->carried + 2 || body.outputs.size() < kernel->carried + 1) {
    return invalid_graph("the body has ", body.inputs.size(), " inputs and ", body.outputs.size(),
                         " outputs for ", kernel->carried, " loop-carried values");
  }
  for (size_t i = 0; i < 2; ++i) {
    if (declares_list(body, i)) kernel->own_shapes[i] = Shape{1};
  }
  for (size_t i = kernel->carried + 1; i < body.outputs.size(); ++i) {
    const GraphValue& output = body.value(body.outputs[i]);
    kernel->scan_types.push_back(type_without_iteration(output));
  }
  if (static_cast<size_t>(build.output_count()) > kernel->carried + kernel->scan_types.size()) {
    return invalid_graph("has ", build.output_count(), " outputs, its body gives ",
                         kernel->carried + kernel->scan_types.size());
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_loop(OpRegistry& registry) {
  OpDef def;
  def.type = "Loop";
  def.min_inputs = 0;
  def.max_inputs = kVariadic;
  def.max_outputs = kVariadic;
  def.places_outputs = false;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
