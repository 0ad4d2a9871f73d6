// Tensor: dtype, shape and bytes with their keeper. Cheap to copy (shares the bytes).
//
// Owns:    one count of its buffer. A tensor without a buffer but with count 0 is valid.
// Threads: a tensor object belongs to one thread; the bytes may be shared read-only.
// Bytes:   row-major, little-endian; sub-byte types packed low bits first; strings are
//          std::string objects (data<std::string>()). Constants may be unaligned: operators that
//          accept that say so (OpDef::unaligned_inputs), all others get aligned bytes.
#pragma once

#include <string>

#include "core/base/buffer.h"
#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace folio {

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape, uint8_t* data, Ref<Buffer> buffer)
      : dtype_(dtype), shape_(shape), data_(data), buffer_(std::move(buffer)) {}

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t count() const { return shape_.count(); }
  size_t bytes() const;  // of the elements; strings: of the std::string objects
  bool is_string() const { return dtype_ == DType::kString; }

  const uint8_t* raw() const { return data_; }
  uint8_t* raw_mut() { return data_; }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(data_);
  }
  template <typename T>
  T* data_mut() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  Span<const T> span() const {
    return {data<T>(), static_cast<size_t>(count())};
  }

  const Ref<Buffer>& buffer() const { return buffer_; }

  // The same bytes under another shape of equal count (or another dtype of equal size).
  Tensor reshaped(const Shape& shape) const { return Tensor(dtype_, shape, data_, buffer_); }

  // True when the bytes are ours and may outlive the run.
  bool escapes() const { return !buffer_ || buffer_->kind() == Buffer::Kind::kHeap; }

 private:
  DType dtype_ = DType::kUndefined;
  Shape shape_;
  uint8_t* data_ = nullptr;
  Ref<Buffer> buffer_;
};

// A fresh heap tensor; strings are empty, other bytes uninitialised.
// kInvalidArgument when the size overflows, kOutOfMemory.
Result<Tensor> allocate_tensor(DType dtype, const Shape& shape);

// A heap copy of the elements.
Result<Tensor> copy_tensor(const Tensor& source);

// Into a tensor of the same type and shape, elsewhere.
void copy_elements(const Tensor& source, Tensor* target);

// Small helpers for tests and passes.
Result<Tensor> make_int64_tensor(Span<const int64_t> values, const Shape& shape);

}  // namespace folio
