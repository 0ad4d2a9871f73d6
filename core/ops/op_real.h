// Inputs and outputs as plain floats or doubles, for operators that compute in one of the two:
// elements of that type as they are, others through scratch copies that live as long as this call
// of the operator.
//
// Flow:    reals_of<T>() for inputs, RealOutput<T>::make() ... finish() for outputs.
// Types:   float: float, float16 and bfloat16. double: inputs of all numbers, outputs of the
//          floating point types.
// Owns:    nothing; the copies are scratch of the run.
// Errors:  for other element types kNotImplemented (float) or kInvalidArgument (double).
#pragma once

#include <type_traits>

#include "core/base/checked_math.h"
#include "core/ops/op_convert.h"
#include "core/ops/op_gemm.h"

namespace folio {

template <typename T>
Result<T*> scratch_reals(OpRun& run, int64_t count) {
  uint64_t bytes = 0;
  if (!checked_mul(static_cast<uint64_t>(count), uint64_t{sizeof(T)}, &bytes)) {
    return error(Code::kOutOfMemory, count, " ", dtype_name(dtype_of<T>()), "s");
  }
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(bytes)));
  return reinterpret_cast<T*>(memory);
}
inline Result<float*> scratch_floats(OpRun& run, int64_t count) {
  return scratch_reals<float>(run, count);
}

inline Status check_computes_in_float(DType dtype) {
  if (dtype == DType::kFloat || is_half(dtype)) return Status::ok();
  return not_implemented("elements of type ", dtype_name(dtype),
                         " are not supported here, expected float, float16 or bfloat16");
}

template <typename T>
Result<const T*> reals_of(OpRun& run, const Tensor& tensor) {
  if (tensor.dtype() == dtype_of<T>()) return tensor.data<T>();
  if constexpr (std::is_same_v<T, float>) {
    FOLIO_RETURN_IF_ERROR(check_computes_in_float(tensor.dtype()));
    FOLIO_TRY(const float* wide, widen_half(run, tensor));
    return wide;
  } else {
    if (!contains(NumberTypes{}, tensor.dtype())) {
      return invalid_argument("elements of type ", dtype_name(tensor.dtype()), " are no numbers");
    }
    FOLIO_TRY(double* wide, scratch_reals<double>(run, tensor.count()));
    convert_numbers(run, tensor.dtype(), tensor.raw(), DType::kDouble,
                    reinterpret_cast<uint8_t*>(wide), tensor.count());
    return static_cast<const double*>(wide);
  }
}
inline Result<const float*> floats_of(OpRun& run, const Tensor& tensor) {
  return reals_of<float>(run, tensor);
}

// Input i, which must have `count` elements; -1: any.
template <typename T>
Result<const T*> reals_of_input(OpRun& run, int i, int64_t count = -1) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(i));
  if (count >= 0 && tensor->count() != count) {
    return invalid_argument("input ", i, " has shape ", tensor->shape().to_string(), ", expected ",
                            count, " elements");
  }
  return reals_of<T>(run, *tensor);
}
inline Result<const float*> floats_of_input(OpRun& run, int i, int64_t count) {
  return reals_of_input<float>(run, i, count);
}

// The same, or null when it is absent.
template <typename T>
Result<const T*> optional_reals(OpRun& run, int i, int64_t count = -1) {
  if (!run.has_input(i)) return static_cast<const T*>(nullptr);
  return reals_of_input<T>(run, i, count);
}

template <typename T>
class RealOutput {
 public:
  static Result<RealOutput> make(OpRun& run, int i, DType dtype, const Shape& shape) {
    RealOutput out;
    FOLIO_TRY(out.tensor_, run.output(i, dtype, shape));
    if (dtype == dtype_of<T>()) {
      out.data_ = out.tensor_->template data_mut<T>();
      return out;
    }
    if constexpr (std::is_same_v<T, float>) {
      FOLIO_RETURN_IF_ERROR(check_computes_in_float(dtype));
    } else if (!contains(FloatTypes{}, dtype)) {
      return wrong_type(i, dtype);
    }
    FOLIO_TRY(out.data_, scratch_reals<T>(run, out.tensor_->count()));
    return out;
  }

  // Where it is not wanted: without data, or of scratch, which finish() leaves alone.
  static Result<RealOutput> make_if_wanted(OpRun& run, int i, DType dtype, const Shape& shape) {
    if (!run.has_output(i)) return RealOutput();
    return make(run, i, dtype, shape);
  }
  static Result<RealOutput> make_or_scratch(OpRun& run, int i, DType dtype, const Shape& shape) {
    if (run.has_output(i)) return make(run, i, dtype, shape);
    RealOutput out;
    FOLIO_TRY(out.data_, scratch_reals<T>(run, shape.count()));
    return out;
  }

  T* data() const { return data_; }
  // Of one that was made.
  const Tensor& tensor() const { return *tensor_; }
  int64_t count() const { return tensor_->count(); }

  // To be called when data() is filled; afterwards floats hold what the output holds, rounded.
  void finish(OpRun& run) const {
    if (!tensor_ || tensor_->dtype() == dtype_of<T>()) return;
    if constexpr (std::is_same_v<T, float>) {
      narrow_half(run, data_, tensor_);
      const auto widen = tensor_->dtype() == DType::kFloat16 ? run.kernels().f16_to_f32
                                                             : run.kernels().bf16_to_f32;
      widen(tensor_->count(), tensor_->raw(), data_);
    } else {
      convert_numbers(run, DType::kDouble, reinterpret_cast<const uint8_t*>(data_),
                      tensor_->dtype(), tensor_->raw_mut(), tensor_->count());
    }
  }

 private:
  Tensor* tensor_ = nullptr;
  T* data_ = nullptr;
};
using FloatOutput = RealOutput<float>;

}  // namespace folio
