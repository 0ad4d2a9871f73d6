// SequenceMap: a subgraph run for each element of a sequence.
//
// Source: ONNX operator spec, SequenceMap, opset 17.
// Inputs: a sequence, then sequences of the same length or tensors, which every call gets whole.
// Body:   one input for each of these -> one tensor for each output sequence.
// Types:  tensors of all types.
#include "core/ops/op_registry.h"
#include "core/ops/op_sequence.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

class SequenceMap final : public OpKernel {
 public:
  int body = 0;
  std::vector<DType> dtypes;  // of the outputs, as far as known

  Status run(OpRun& run) const override {
    FOLIO_TRY(const SequenceData* first, sequence_input(run, 0));
    const size_t count = first->elements.size();
    for (int i = 1; i < run.input_count(); ++i) {
      if (!run.has_input(i)) return invalid_argument("input ", i, " is missing");
      const Value& value = run.value(i);
      if (value.kind() == Value::Kind::kSequence && value.sequence().elements.size() != count) {
        return invalid_argument("input ", i, " has ", value.sequence().elements.size(),
                                " elements, input 0 has ", count);
      }
    }
    std::vector<Ref<SequenceData>> outputs;
    for (const DType dtype : dtypes) {
      outputs.push_back(make_ref<SequenceData>());
      outputs.back()->dtype = dtype;
    }
    for (size_t at = 0; at < count; ++at) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      FOLIO_RETURN_IF_ERROR(call(run, at, &outputs));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      run.set_output(static_cast<int>(i), Value(Ref<const SequenceData>(outputs[i])));
    }
    return Status::ok();
  }

 private:
  Status call(OpRun& run, size_t at, std::vector<Ref<SequenceData>>* outputs) const {
    std::vector<Value> args;
    for (int i = 0; i < run.input_count(); ++i) {
      const Value& value = run.value(i);
      const bool each = value.kind() == Value::Kind::kSequence;
      args.push_back(each ? value.sequence().elements[at] : value);
    }
    std::vector<Value> results;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(body, args, &results));
    for (size_t i = 0; i < outputs->size(); ++i) {
      SequenceData& sequence = *(*outputs)[i];
      const Value& result = results[i];
      if (!result.is_tensor()) return invalid_argument("output ", i, " of the body is no tensor");
      if (sequence.elements.empty()) sequence.dtype = result.tensor().dtype();
      if (sequence.dtype != result.tensor().dtype()) {
        return invalid_argument("output ", i, " of the body changes from ",
                                dtype_name(sequence.dtype), " to ",
                                dtype_name(result.tensor().dtype()));
      }
      // What the body passes through is still its owner's.
      FOLIO_TRY(Tensor own, run.owned(result.tensor()));
      sequence.elements.emplace_back(std::move(own));
    }
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int body, find_subgraph(infer.node(), "body"));
  std::vector<TypeInfo> inputs;
  for (int i = 0; i < infer.input_count(); ++i) {
    const TypeInfo& type = infer.input(i);
    const bool each = type.kind == TypeInfo::Kind::kSequence;
    inputs.push_back(each && type.element ? *type.element : each ? TypeInfo() : type);
  }
  FOLIO_TRY(const std::vector<TypeInfo> outputs, infer.infer_subgraph(body, inputs));
  for (size_t i = 0; i < outputs.size() && i < static_cast<size_t>(infer.output_count()); ++i) {
    infer.set_output(static_cast<int>(i), TypeInfo::sequence(without_dims(outputs[i])));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<SequenceMap>();
  FOLIO_TRY(kernel->body, find_subgraph(build.node(), "body"));
  const Graph& body = *build.node().subgraphs[static_cast<size_t>(kernel->body)];
  if (body.inputs.size() != static_cast<size_t>(build.input_count()) ||
      body.outputs.size() < static_cast<size_t>(build.output_count())) {
    return invalid_graph("the body has ", body.inputs.size(), " inputs and ", body.outputs.size(),
                         " outputs; the node ", build.input_count(), " and ", build.output_count());
  }
  for (int i = 0; i < build.output_count(); ++i) {
    const GraphValue& output = body.value(body.outputs[static_cast<size_t>(i)]);
    kernel->dtypes.push_back(output.type.is_tensor() ? output.type.dtype : output.declared.dtype);
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_sequence_map(OpRegistry& registry) {
  OpDef def;
  def.type = "SequenceMap";
  def.since = 17;
  def.max_inputs = kVariadic;
  def.max_outputs = kVariadic;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
