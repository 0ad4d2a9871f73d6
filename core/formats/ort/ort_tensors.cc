// Tensors, dense and sparse; see ort_reader.h.
#include "core/base/checked_math.h"
#include "core/formats/ort/ort_reader.h"
#include "core/formats/payload.h"

namespace folio {

Status OrtReader::read_tensor(const ort_schema::Tensor& tensor, InitializerDef* out) {
  Status read = read_name(tensor.name(), "tensor name", &out->name);
  if (read.is_ok()) read = read_payload(tensor, out);
  if (read.is_ok()) return read;
  return std::move(read).with_context("tensor " + shown_name(tensor.name()));
}

Status OrtReader::read_dims(const flatbuffers::Vector<int64_t>* dims, std::vector<int64_t>* out) {
  if (dims && dims->size() > static_cast<uint32_t>(kMaxRank)) {
    return not_implemented("it has ", dims->size(), " dims, at most ", kMaxRank, " are supported");
  }
  return copy_scalars(dims, out);
}

Status OrtReader::read_payload(const ort_schema::Tensor& tensor, InitializerDef* out) {
  if (tensor.external_data_offset() >= 0 && !data_file_) {
    return not_implemented("its data stand outside the file, at external_data_offset ",
                           tensor.external_data_offset(), ", but the model names no data file");
  }
  FOLIO_TRY(const DType dtype, dtype_from(tensor.data_type()));
  if (dtype == DType::kUndefined) return invalid_graph("its element type is UNDEFINED");
  std::vector<int64_t> dims;
  FOLIO_RETURN_IF_ERROR(read_dims(tensor.dims(), &dims));
  uint64_t count = 0;
  if (!checked_count(dims, &count)) {
    return invalid_graph("dims ", dims_text(dims), " are negative or overflow");
  }
  const Shape shape((Span<const int64_t>(dims)));
  if (dtype == DType::kString) {
    return read_strings(tensor.string_data(), count, shape, &out->tensor);
  }
  uint64_t bytes = 0;
  if (!dtype_bytes(dtype, count, &bytes)) {
    return invalid_graph(dtype_name(dtype), dims_text(dims), " has more bytes than fit 64 bits");
  }
  if (tensor.external_data_offset() >= 0) {
    const auto offset = static_cast<uint64_t>(tensor.external_data_offset());
    return read_outside(offset, bytes, dtype, shape, out);
  }
  const uint64_t found = tensor.raw_data() ? tensor.raw_data()->size() : 0;
  if (found != bytes) {
    return invalid_graph(dtype_name(dtype), dims_text(dims), " takes ", bytes,
                         " bytes, but raw_data holds ", found);
  }
  const Bytes payload = found > 0 ? Bytes(tensor.raw_data()->Data(), found) : Bytes();
  return take_payload(source_, payload, dtype, shape, out);
}

Status OrtReader::take_payload(const Ref<ByteSource>& source, Bytes payload, DType dtype,
                               const Shape& shape, InitializerDef* out) {
  if (payload.size() < kSmallTensorBytes) FOLIO_RETURN_IF_ERROR(spend(payload.size()));
  return place_payload(source, payload, dtype, shape, out);
}

Status OrtReader::read_outside(uint64_t offset, uint64_t bytes, DType dtype, const Shape& shape,
                               InitializerDef* out) {
  const Bytes file = data_file_->bytes();
  if (!range_inside(offset, bytes, file.size())) {
    return invalid_graph("its ", bytes, " bytes at ", offset, " of the data file end beyond its ",
                         file.size());
  }
  return take_payload(data_file_, file.subspan(offset, bytes), dtype, shape, out);
}

Status OrtReader::read_strings(const Strings* strings, uint64_t count, const Shape& shape,
                               Tensor* out) {
  const uint64_t found = strings ? strings->size() : 0;
  if (found != count) {
    return invalid_graph("string", shape.to_string(), " takes ", count,
                         " strings, but string_data holds ", found);
  }
  // Before the allocation: one vector of strings can be that of many tensors.
  FOLIO_RETURN_IF_ERROR(spend(count * sizeof(std::string)));
  FOLIO_TRY(*out, allocate_tensor(DType::kString, shape));
  auto* next = out->data_mut<std::string>();
  return each_entry(strings, "string",
                    [&](const flatbuffers::String& text) { return read_bytes(&text, next++); });
}

Status OrtReader::read_sparse(const ort_schema::SparseTensor& sparse, InitializerDef* out) {
  if (!sparse.values() || !sparse.indices()) {
    return invalid_graph("a sparse initializer needs values and indices");
  }
  InitializerDef values;
  InitializerDef indices;
  std::vector<int64_t> dims;
  const auto expand = [&]() -> Status {
    FOLIO_RETURN_IF_ERROR(read_tensor(*sparse.values(), &values));
    FOLIO_RETURN_IF_ERROR(read_tensor(*sparse.indices(), &indices));
    FOLIO_RETURN_IF_ERROR(read_dims(sparse.dims(), &dims));
    FOLIO_TRY(out->tensor, expand_sparse(values.tensor, indices.tensor, dims, &dense_));
    out->name = std::move(values.name);
    return Status::ok();
  };
  return expand().with_context("sparse initializer " + shown_name(sparse.values()->name()));
}

}  // namespace folio
