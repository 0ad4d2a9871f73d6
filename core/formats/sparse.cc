#include "core/formats/sparse.h"

#include <cstring>

#include "core/base/checked_math.h"

namespace folio {
namespace {

template <typename T>
int64_t load_index(const Tensor& indices, int64_t i) {
  T index = 0;
  std::memcpy(&index, indices.raw() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return index;
}

bool is_index_type(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kInt16 ||
         dtype == DType::kInt8;
}

// Entry `i` of the indices. Types narrower than int64 are what ORT makes of large Constant nodes.
int64_t index_at(const Tensor& indices, int64_t i) {
  switch (indices.dtype()) {
    case DType::kInt8:
      return load_index<int8_t>(indices, i);
    case DType::kInt16:
      return load_index<int16_t>(indices, i);
    case DType::kInt32:
      return load_index<int32_t>(indices, i);
    default:
      return load_index<int64_t>(indices, i);
  }
}

// The linear position of stored value `i`.
Result<int64_t> position_of(const Tensor& indices, const Shape& dense, int64_t i) {
  if (indices.rank() == 1) {
    const int64_t at = index_at(indices, i);
    if (at >= 0 && at < dense.count()) return at;
    return invalid_graph("index ", at, " of stored value ", i, " is outside ", dense.to_string());
  }
  int64_t at = 0;
  for (int axis = 0; axis < dense.rank(); ++axis) {
    const int64_t index = index_at(indices, i * dense.rank() + axis);
    if (index < 0 || index >= dense[axis]) {
      return invalid_graph("index ", index, " of stored value ", i, " is outside axis ", axis,
                           " of ", dense.to_string());
    }
    at = at * dense[axis] + index;  // below dense.count(), which was checked to fit
  }
  return at;
}

void copy_element(const Tensor& from, int64_t from_index, Tensor* to, int64_t to_index) {
  const auto source = static_cast<size_t>(from_index);
  const auto target = static_cast<size_t>(to_index);
  if (from.is_string()) {
    to->data_mut<std::string>()[target] = from.data<std::string>()[source];
    return;
  }
  const auto bits = static_cast<size_t>(dtype_bits(from.dtype()));
  if (bits >= 8) {
    std::memcpy(to->raw_mut() + target * (bits / 8), from.raw() + source * (bits / 8), bits / 8);
    return;
  }
  // `to` starts as zeros and each position is written once, so the bits are only set.
  const unsigned mask = (1U << bits) - 1;
  const unsigned element = (from.raw()[source * bits / 8] >> (source * bits % 8)) & mask;
  to->raw_mut()[target * bits / 8] |= static_cast<uint8_t>(element << (target * bits % 8));
}

Status check_parts(const Tensor& values, const Tensor& indices, size_t rank) {
  if (values.rank() != 1) {
    return invalid_graph("values have shape ", values.shape().to_string(), ", expected one dim");
  }
  const bool linear = indices.rank() == 1;
  const bool coordinates = indices.rank() == 2 && indices.dim(1) == static_cast<int64_t>(rank);
  if (!is_index_type(indices.dtype()) || (!linear && !coordinates) ||
      indices.dim(0) != values.dim(0)) {
    return invalid_graph("indices are ", dtype_name(indices.dtype()), indices.shape().to_string(),
                         ", expected int64[", values.dim(0), "] or int64[", values.dim(0), ",",
                         rank, "]");
  }
  return Status::ok();
}

}  // namespace

Result<Tensor> expand_sparse(const Tensor& values, const Tensor& indices, Span<const int64_t> dims,
                             DenseBudget* budget) {
  uint64_t count = 0;
  if (dims.size() > static_cast<size_t>(kMaxRank) || !checked_count(dims, &count)) {
    return invalid_graph("sparse dims are negative, overflow, or are more than ", kMaxRank);
  }
  FOLIO_RETURN_IF_ERROR(check_parts(values, indices, dims.size()));
  uint64_t bytes = 0;
  if (!dtype_bytes(values.dtype(), count, &bytes) ||
      !range_inside(budget->taken_bytes, bytes, budget->limit_bytes)) {
    return invalid_graph("made dense it has ", count, " elements of ", dtype_name(values.dtype()),
                         "; the sparse tensors of a model may take ", budget->limit_bytes,
                         " bytes, ", budget->taken_bytes, " are taken");
  }
  budget->taken_bytes += bytes;
  const Shape shape(dims);
  FOLIO_TRY(Tensor dense, allocate_tensor(values.dtype(), shape));
  if (!dense.is_string() && bytes > 0) std::memset(dense.raw_mut(), 0, bytes);
  int64_t last = -1;
  for (int64_t i = 0; i < values.dim(0); ++i) {
    FOLIO_TRY(const int64_t at, position_of(indices, shape, i));
    if (at <= last) return invalid_graph("indices are not ascending at stored value ", i);
    copy_element(values, i, &dense, at);
    last = at;
  }
  return dense;
}

}  // namespace folio
