// Loop: a subgraph again and again, with values carried from one iteration to the next.
//
// Source: ONNX operator spec, Loop, opsets 1, 11, 13 (sequences), 16 (optionals), 19 to 25.
// Shapes: inputs: trip count M (optional), condition (optional), N carried values. Body inputs:
//         iteration number, condition, N values; outputs: condition, N values, K values to
//         collect. Outputs: the N last values, then each of the K stacked along a new first axis.
//         Without an iteration the stacks are empty, with the element shape known from the body.
// Errors: kInvalidArgument when collected shapes differ between iterations; kCancelled.
#include "core/ops/op_control.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int kFixedInputs = 2;  // M, condition

// Rank 1 when the body declares its counter or condition so, else a scalar.
Shape scalar_shape(const Node& node, int body, size_t input) {
  const Graph& graph = *node.subgraphs[static_cast<size_t>(body)];
  if (input >= graph.inputs.size()) return {};
  const TypeInfo& declared = graph.value(graph.inputs[input]).declared;
  return declared.has_rank() && declared.rank() == 1 ? Shape{1} : Shape{};
}

class Loop final : public OpKernel {
 public:
  Loop(OpBuild& build, int body)
      : body_(body),
        counter_shape_(scalar_shape(build.node(), body, 0)),
        condition_shape_(scalar_shape(build.node(), body, 1)) {
    for (int i = 0; i < build.output_count(); ++i) output_types_.push_back(build.output(i));
  }

  Status run(OpRun& run) const override {
    FOLIO_TRY(const int64_t trips, trip_count(run));
    bool condition = true;
    if (run.has_input(1)) {
      FOLIO_TRY(condition, as_condition(run.value(1)));
    }
    const int carried = std::max(0, run.input_count() - kFixedInputs);
    const int collected = run.output_count() - carried;
    if (collected < 0) {
      return invalid_graph("the node has ", run.output_count(), " outputs for ", carried,
                           " carried values");
    }
    std::vector<Value> state;
    for (int i = 0; i < carried; ++i) {
      state.push_back(run.has_input(kFixedInputs + i) ? run.value(kFixedInputs + i) : Value());
    }
    std::vector<Stack> stacks(static_cast<size_t>(collected));
    for (int64_t i = 0; i < trips && condition; ++i) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      FOLIO_TRY(condition, iterate(run, i, condition, &state, &stacks));
    }
    return finish(run, std::move(state), stacks);
  }

 private:
  static Result<int64_t> trip_count(OpRun& run) {
    if (!run.has_input(0)) return INT64_MAX;
    FOLIO_TRY(const std::vector<int64_t> count, run.ints(0));
    if (count.size() != 1) {
      return invalid_argument("the trip count has ", count.size(), " elements, expected 1");
    }
    return count[0];
  }

  // One iteration; gives the condition for the next.
  Result<bool> iterate(OpRun& run, int64_t i, bool condition, std::vector<Value>* state,
                       std::vector<Stack>* stacks) const {
    FOLIO_TRY(Tensor counter, allocate_tensor(DType::kInt64, counter_shape_));
    *counter.data_mut<int64_t>() = i;
    FOLIO_TRY(Tensor go_on, allocate_tensor(DType::kBool, condition_shape_));
    *go_on.raw_mut() = condition ? 1 : 0;
    std::vector<Value> inputs;
    inputs.emplace_back(std::move(counter));
    inputs.emplace_back(std::move(go_on));
    for (Value& value : *state) inputs.push_back(std::move(value));
    std::vector<Value> outputs;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(body_, inputs, &outputs));
    const size_t carried = state->size();
    if (outputs.size() != 1 + carried + stacks->size()) {
      return invalid_graph("the body gives ", outputs.size(), " values, expected ",
                           1 + carried + stacks->size());
    }
    for (size_t k = 0; k < carried; ++k) (*state)[k] = std::move(outputs[1 + k]);
    for (size_t k = 0; k < stacks->size(); ++k) {
      if (!run.has_output(static_cast<int>(carried + k))) continue;
      FOLIO_RETURN_IF_ERROR((*stacks)[k].push(outputs[1 + carried + k]));
    }
    return as_condition(outputs[0]);
  }

  Status finish(OpRun& run, std::vector<Value> state, const std::vector<Stack>& stacks) const {
    for (size_t k = 0; k < state.size(); ++k) {
      if (!run.has_output(static_cast<int>(k))) continue;
      if (state[k].is_tensor()) {
        FOLIO_TRY(Tensor owned, run.owned(state[k].tensor()));
        state[k] = std::move(owned);
      }
      run.set_output(static_cast<int>(k), std::move(state[k]));
    }
    for (size_t k = 0; k < stacks.size(); ++k) {
      const auto output = static_cast<int>(state.size() + k);
      if (!run.has_output(output)) continue;
      FOLIO_TRY(Tensor joined, stacks[k].join(run, 0, false, stacks[k].count(),
                                              output_types_[state.size() + k]));
      run.set_output(output, std::move(joined));
    }
    return Status::ok();
  }

  int body_;
  Shape counter_shape_;
  Shape condition_shape_;
  std::vector<TypeInfo> output_types_;
};

TypeInfo scalar_type(DType dtype, const Shape& shape) {
  Dims dims;
  for (const int64_t dim : shape.dims()) dims.push_back(Dim::of(dim));
  return TypeInfo::tensor(dtype, std::move(dims));
}

Status infer_loop(OpInfer& infer) {
  FOLIO_TRY(const int body, subgraph_index(infer.node(), "body"));
  const auto carried = static_cast<size_t>(std::max(0, infer.input_count() - kFixedInputs));
  const auto outputs = static_cast<size_t>(infer.output_count());
  if (outputs < carried) {
    return invalid_graph("the node has ", outputs, " outputs for ", carried, " carried values");
  }
  std::vector<TypeInfo> inputs = {
      scalar_type(DType::kInt64, scalar_shape(infer.node(), body, 0)),
      scalar_type(DType::kBool, scalar_shape(infer.node(), body, 1))};
  for (size_t i = 0; i < carried; ++i) {
    inputs.push_back(infer.input(kFixedInputs + static_cast<int>(i)));
  }
  FOLIO_TRY(const LoopTypes types,
            infer_loop_body(infer, body, std::move(inputs), kFixedInputs, 1, carried));
  if (types.outputs.size() != 1 + outputs) {
    return invalid_graph("the body has ", types.outputs.size(), " outputs, expected ",
                         1 + outputs);
  }
  for (size_t i = 0; i < outputs; ++i) {
    const auto output = static_cast<int>(i);
    if (i < carried) {
      infer.set_output(output, types.inputs[kFixedInputs + i]);
      continue;
    }
    TypeInfo stacked = types.outputs[1 + i];
    if (stacked.dims) stacked.dims->insert(stacked.dims->begin(), Dim::unknown());
    if (stacked.is_tensor()) infer.set_output(output, std::move(stacked));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_loop(OpBuild& build) {
  FOLIO_TRY(const int body, subgraph_index(build.node(), "body"));
  return std::unique_ptr<OpKernel>(std::make_unique<Loop>(build, body));
}

}  // namespace

void register_loop(OpRegistry& registry) {
  OpDef def;
  def.type = "Loop";
  def.min_inputs = 2;
  def.max_inputs = kVariadic;
  def.max_outputs = kVariadic;
  def.infer = infer_loop;
  def.make = make_loop;
  registry.add(def);
}

}  // namespace folio
