// Inputs and outputs of the floating point types as plain floats: float as it is, float16 and
// bfloat16 through scratch copies that live as long as this call of the operator.
//
// Flow:    floats_of() for inputs, FloatOutput::make() ... finish() for outputs.
// Owns:    nothing; the copies are scratch of the run.
// Errors:  kNotImplemented for other element types.
#pragma once

#include "core/ops/op_gemm.h"

namespace folio {

inline Result<const float*> floats_of(OpRun& run, const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat) return tensor.data<float>();
  if (!is_half(tensor.dtype())) {
    return not_implemented("elements of type ", dtype_name(tensor.dtype()),
                           " are not supported here, expected float, float16 or bfloat16");
  }
  FOLIO_TRY(const float* wide, widen_half(run, tensor));
  return wide;
}

inline Result<float*> scratch_floats(OpRun& run, int64_t count) {
  FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(count) * sizeof(float)));
  return reinterpret_cast<float*>(bytes);
}

// Input i as `count` floats: it must have that many elements.
inline Result<const float*> floats_of_input(OpRun& run, int i, int64_t count) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(i));
  if (tensor->count() != count) {
    return invalid_argument("input ", i, " has shape ", tensor->shape().to_string(), ", expected ",
                            count, " elements");
  }
  return floats_of(run, *tensor);
}

class FloatOutput {
 public:
  static Result<FloatOutput> make(OpRun& run, int i, DType dtype, const Shape& shape) {
    FloatOutput out;
    FOLIO_TRY(out.tensor_, run.output(i, dtype, shape));
    if (dtype == DType::kFloat) {
      out.data_ = out.tensor_->data_mut<float>();
      return out;
    }
    if (!is_half(dtype)) {
      return not_implemented("elements of type ", dtype_name(dtype),
                             " are not supported here, expected float, float16 or bfloat16");
    }
    FOLIO_TRY(out.data_, scratch_floats(run, out.tensor_->count()));
    return out;
  }

  float* data() const { return data_; }
  const Tensor& tensor() const { return *tensor_; }
  int64_t count() const { return tensor_->count(); }

  // To be called when data() is filled; afterwards data() holds what the output holds, rounded.
  void finish(OpRun& run) const {
    if (!tensor_ || tensor_->dtype() == DType::kFloat) return;
    narrow_half(run, data_, tensor_);
    const auto widen =
        tensor_->dtype() == DType::kFloat16 ? run.kernels().f16_to_f32 : run.kernels().bf16_to_f32;
    widen(tensor_->count(), tensor_->raw(), data_);
  }

 private:
  Tensor* tensor_ = nullptr;
  float* data_ = nullptr;
};

}  // namespace folio
