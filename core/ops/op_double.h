// Inputs and outputs of numbers as doubles, for operators whose double elements go through plain
// loops: double as it is, others through scratch copies that live as long as this call.
//
// Flow:    doubles_of() for inputs, DoubleOutput::make() ... finish() for outputs.
// Owns:    nothing; the copies are scratch of the run.
// Errors:  kInvalidArgument for elements that are no numbers.
#pragma once

#include <vector>

#include "core/base/checked_math.h"
#include "core/ops/op_convert.h"

namespace folio {

inline Result<double*> scratch_doubles(OpRun& run, int64_t count) {
  uint64_t bytes = 0;
  if (!checked_mul(static_cast<uint64_t>(count), uint64_t{sizeof(double)}, &bytes)) {
    return error(Code::kOutOfMemory, count, " doubles");
  }
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(bytes)));
  return reinterpret_cast<double*>(memory);
}

inline Result<const double*> doubles_of(OpRun& run, const Tensor& tensor) {
  if (tensor.dtype() == DType::kDouble) return tensor.data<double>();
  if (!contains(NumberTypes{}, tensor.dtype())) {
    return invalid_argument("elements of type ", dtype_name(tensor.dtype()), " are no numbers");
  }
  FOLIO_TRY(double* wide, scratch_doubles(run, tensor.count()));
  convert_numbers(run, tensor.dtype(), tensor.raw(), DType::kDouble,
                  reinterpret_cast<uint8_t*>(wide), tensor.count());
  return static_cast<const double*>(wide);
}

// Input i, or null when it is absent. `count`: the elements that it must have; -1: any.
inline Result<const double*> doubles_of_input(OpRun& run, int i, int64_t count = -1) {
  if (!run.has_input(i)) return static_cast<const double*>(nullptr);
  FOLIO_TRY(const Tensor* tensor, run.tensor(i));
  if (count >= 0 && tensor->count() != count) {
    return invalid_argument("input ", i, " has shape ", tensor->shape().to_string(), ", expected ",
                            count, " elements");
  }
  return doubles_of(run, *tensor);
}

class DoubleOutput {
 public:
  // Of a type of floating point numbers.
  static Result<DoubleOutput> make(OpRun& run, int i, DType dtype, const Shape& shape) {
    DoubleOutput out;
    FOLIO_TRY(out.tensor_, run.output(i, dtype, shape));
    if (dtype == DType::kDouble) {
      out.data_ = out.tensor_->data_mut<double>();
      return out;
    }
    if (!contains(FloatTypes{}, dtype)) return wrong_type(i, dtype);
    FOLIO_TRY(out.data_, scratch_doubles(run, out.tensor_->count()));
    return out;
  }

  double* data() const { return data_; }  // null when it was never made
  int64_t count() const { return tensor_->count(); }

  // To be called when data() is filled.
  void finish(OpRun& run) const {
    if (!tensor_ || tensor_->dtype() == DType::kDouble) return;
    convert_numbers(run, DType::kDouble, reinterpret_cast<const uint8_t*>(data_), tensor_->dtype(),
                    tensor_->raw_mut(), tensor_->count());
  }

 private:
  Tensor* tensor_ = nullptr;
  double* data_ = nullptr;
};

}  // namespace folio
