#include "core/ops/op_sequence.h"

namespace folio {

Result<const SequenceData*> sequence_input(const OpRun& run, int i) {
  if (!run.has_input(i)) return invalid_argument("input ", i, " is missing");
  if (run.value(i).kind() != Value::Kind::kSequence) {
    return invalid_argument("input ", i, " is no sequence");
  }
  return &run.value(i).sequence();
}

Status append_tensor(const OpRun& run, int input, SequenceData* sequence) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(input));
  const bool other_kind = sequence->dtype == DType::kUndefined ? !sequence->elements.empty()
                                                               : sequence->dtype != tensor->dtype();
  if (other_kind) {
    return invalid_argument("input ", input, " is ", dtype_name(tensor->dtype()),
                            ", the sequence holds ", dtype_name(sequence->dtype));
  }
  sequence->dtype = tensor->dtype();
  FOLIO_TRY(Tensor own, run.owned(*tensor));
  sequence->elements.emplace_back(std::move(own));
  return Status::ok();
}

Result<TypeInfo> sequence_element(const OpInfer& infer, int i) {
  const TypeInfo& type = infer.input(i);
  if (type.kind == TypeInfo::Kind::kUnknown) return TypeInfo();
  if (type.kind != TypeInfo::Kind::kSequence) {
    return invalid_graph("input ", i, " is ", type_to_string(type), ", expected a sequence");
  }
  return type.element ? *type.element : TypeInfo();
}

}  // namespace folio
