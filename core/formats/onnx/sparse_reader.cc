// Sparse tensors are rare and small in ONNX models, so they are made dense while loading; see
// tensor_reader.h.
#include <cstring>

#include "core/base/checked_math.h"
#include "core/formats/onnx/onnx_fields.h"
#include "core/formats/onnx/tensor_reader.h"

namespace folio {
namespace {

struct SparseScan {
  InitializerDef values;
  InitializerDef indices;
  bool has_values = false;
  bool has_indices = false;
  std::vector<int64_t> dims;
};

Status read_part(LoadContext& context, WireReader& reader, const char* part, bool* has,
                 InitializerDef* out) {
  if (*has) return invalid_graph("sparse tensor has ", part, " twice");
  *has = true;
  Bytes message;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
  return read_tensor(context, message, out).with_context(cat("sparse tensor ", part));
}

Status scan_sparse(LoadContext& context, Bytes message, SparseScan* scan) {
  WireReader reader = context.reader(message, "SparseTensorProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case SparseTensorFields::kValues:
        return read_part(context, reader, "values", &scan->has_values, &scan->values);
      case SparseTensorFields::kIndices:
        return read_part(context, reader, "indices", &scan->has_indices, &scan->indices);
      case SparseTensorFields::kDims:
        return reader.append_ints(&scan->dims, kMaxRank);
      default:
        return reader.skip();
    }
  });
}

// Entry `i` of the int64 indices, which may be unaligned.
int64_t index_at(const Tensor& indices, int64_t i) {
  int64_t index = 0;
  std::memcpy(&index, indices.raw() + static_cast<size_t>(i) * sizeof(index), sizeof(index));
  return index;
}

// The linear position of stored value `i`; indices are [count] (linear) or [count, rank].
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

Status check_sparse(const SparseScan& scan, uint64_t* out_count) {
  if (!scan.has_values || !scan.has_indices) {
    return invalid_graph("a sparse tensor needs values and indices");
  }
  const Tensor& values = scan.values.tensor;
  const Tensor& indices = scan.indices.tensor;
  if (!checked_count(scan.dims, out_count)) {
    return invalid_graph("sparse dims are negative or overflow");
  }
  if (values.rank() != 1) {
    return invalid_graph("values have shape ", values.shape().to_string(), ", expected one dim");
  }
  const auto rank = static_cast<int64_t>(scan.dims.size());
  const bool linear = indices.rank() == 1;
  const bool coordinates = indices.rank() == 2 && indices.dim(1) == rank;
  if (indices.dtype() != DType::kInt64 || (!linear && !coordinates) ||
      indices.dim(0) != values.dim(0)) {
    return invalid_graph("indices are ", dtype_name(indices.dtype()), indices.shape().to_string(),
                         ", expected int64[", values.dim(0), "] or int64[", values.dim(0), ",",
                         rank, "]");
  }
  return Status::ok();
}

Status expand(LoadContext& context, const SparseScan& scan, Tensor* out) {
  uint64_t count = 0;
  FOLIO_RETURN_IF_ERROR(check_sparse(scan, &count));
  const Tensor& values = scan.values.tensor;
  uint64_t bytes = 0;
  const uint64_t limit = context.options.max_dense_bytes;
  if (!dtype_bytes(values.dtype(), count, &bytes) ||
      !range_inside(context.dense_bytes, bytes, limit)) {
    return invalid_graph("made dense it has ", count, " elements of ", dtype_name(values.dtype()),
                         "; the sparse tensors of a model may take ", limit, " bytes, ",
                         context.dense_bytes, " are taken");
  }
  context.dense_bytes += bytes;
  const Shape dense((Span<const int64_t>(scan.dims)));
  FOLIO_TRY(*out, allocate_tensor(values.dtype(), dense));
  if (!out->is_string() && bytes > 0) std::memset(out->raw_mut(), 0, bytes);
  int64_t last = -1;
  for (int64_t i = 0; i < values.dim(0); ++i) {
    FOLIO_TRY(const int64_t at, position_of(scan.indices.tensor, dense, i));
    if (at <= last) return invalid_graph("indices are not ascending at stored value ", i);
    copy_element(values, i, out, at);
    last = at;
  }
  return Status::ok();
}

}  // namespace

Status read_sparse_tensor(LoadContext& context, Bytes message, InitializerDef* out) {
  SparseScan scan;
  FOLIO_RETURN_IF_ERROR(scan_sparse(context, message, &scan));
  out->name = scan.values.name;
  return expand(context, scan, &out->tensor)
      .with_context(cat("sparse tensor ", quoted(scan.values.name)));
}

}  // namespace folio
