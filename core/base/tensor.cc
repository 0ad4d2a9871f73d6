#include "core/base/tensor.h"

#include <algorithm>
#include <cstring>

namespace folio {

size_t Tensor::bytes() const {
  uint64_t bytes = 0;
  return dtype_bytes(dtype_, static_cast<uint64_t>(count()), &bytes) ? bytes : 0;
}

Result<Tensor> allocate_tensor(DType dtype, const Shape& shape) {
  uint64_t count = 0;
  uint64_t bytes = 0;
  if (!checked_count(shape.dims(), &count) || !dtype_bytes(dtype, count, &bytes)) {
    return invalid_argument("a ", dtype_name(dtype), " tensor of shape ", shape.to_string(),
                            " has no valid size");
  }
  FOLIO_TRY(Ref<Buffer> buffer,
            dtype == DType::kString ? allocate_strings(count) : allocate_buffer(bytes));
  uint8_t* data = buffer->data();
  return Tensor(dtype, shape, data, std::move(buffer));
}

Result<Tensor> copy_tensor(const Tensor& source) {
  FOLIO_TRY(Tensor copy, allocate_tensor(source.dtype(), source.shape()));
  copy_elements(source, &copy);
  return copy;
}

void copy_elements(const Tensor& source, Tensor* target) {
  if (source.is_string()) {
    std::copy_n(source.data<std::string>(), source.count(), target->data_mut<std::string>());
  } else if (source.bytes() > 0) {
    std::memcpy(target->raw_mut(), source.raw(), source.bytes());
  }
}

Result<Tensor> make_int64_tensor(Span<const int64_t> values, const Shape& shape) {
  FOLIO_TRY(Tensor tensor, allocate_tensor(DType::kInt64, shape));
  std::copy(values.begin(), values.end(), tensor.data_mut<int64_t>());
  return tensor;
}

}  // namespace folio
