#include "tools/make_model/onnx_tensor.h"

#include "tools/make_model/onnx_fields.h"

namespace model_writer {

namespace {

ProtoMessage shape_message(const std::vector<Dim>& dims) {
  ProtoMessage shape;
  for (const Dim& dim : dims) {
    ProtoMessage message;
    if (dim.value) {
      message.put_int(field::kDimValue, *dim.value);
    } else if (!dim.symbol.empty()) {
      message.put_bytes(field::kDimParam, dim.symbol);
    }
    shape.put_message(field::kShapeDim, std::move(message));
  }
  return shape;
}

ProtoMessage tensor_type_message(ElementType element, const std::vector<Dim>& dims) {
  ProtoMessage tensor;
  tensor.put_int(field::kTypeTensorElement, static_cast<int64_t>(element));
  tensor.put_message(field::kTypeTensorShape, shape_message(dims));
  return tensor;
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

uint32_t element_bits(ElementType type) {
  switch (type) {
    case ElementType::kUint2:
    case ElementType::kInt2:
      return 2;
    case ElementType::kUint4:
    case ElementType::kInt4:
    case ElementType::kFloat4E2M1:
      return 4;
    case ElementType::kUint8:
    case ElementType::kInt8:
    case ElementType::kBool:
    case ElementType::kFloat8E4M3Fn:
    case ElementType::kFloat8E4M3Fnuz:
    case ElementType::kFloat8E5M2:
    case ElementType::kFloat8E5M2Fnuz:
    case ElementType::kFloat8E8M0:
      return 8;
    case ElementType::kUint16:
    case ElementType::kInt16:
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return 16;
    case ElementType::kFloat:
    case ElementType::kInt32:
    case ElementType::kUint32:
      return 32;
    case ElementType::kDouble:
    case ElementType::kInt64:
    case ElementType::kUint64:
    case ElementType::kComplex64:
      return 64;
    case ElementType::kComplex128:
      return 128;
    case ElementType::kUndefined:
    case ElementType::kString:
      return 0;
  }
  return 0;
}

Type Type::tensor(ElementType element, const std::vector<Dim>& dims) {
  Type type;
  type.message_.put_message(field::kTypeTensor, tensor_type_message(element, dims));
  return type;
}

Type Type::tensor_of_unknown_rank(ElementType element) {
  ProtoMessage tensor;
  tensor.put_int(field::kTypeTensorElement, static_cast<int64_t>(element));
  Type type;
  type.message_.put_message(field::kTypeTensor, std::move(tensor));
  return type;
}

Type Type::sparse_tensor(ElementType element, const std::vector<Dim>& dims) {
  Type type;
  type.message_.put_message(field::kTypeSparseTensor, tensor_type_message(element, dims));
  return type;
}

Type Type::sequence(Type element) {
  ProtoMessage sequence;
  sequence.put_message(field::kTypeNestedElement, std::move(element.message_));
  Type type;
  type.message_.put_message(field::kTypeSequence, std::move(sequence));
  return type;
}

Type Type::optional(Type element) {
  ProtoMessage optional;
  optional.put_message(field::kTypeNestedElement, std::move(element.message_));
  Type type;
  type.message_.put_message(field::kTypeOptional, std::move(optional));
  return type;
}

Type Type::map(ElementType key, Type value) {
  ProtoMessage map;
  map.put_int(field::kTypeMapKey, static_cast<int64_t>(key));
  map.put_message(field::kTypeMapValue, std::move(value.message_));
  Type type;
  type.message_.put_message(field::kTypeMap, std::move(map));
  return type;
}

TensorWriter::TensorWriter(std::string_view name, ElementType type,
                           const std::vector<int64_t>& dims) {
  // onnx.proto is proto2 and does not pack dims.
  for (const int64_t dim : dims) message_.put_int(field::kTensorDims, dim);
  message_.put_int(field::kTensorType, static_cast<int64_t>(type));
  if (!name.empty()) message_.put_bytes(field::kTensorName, name);
}

TensorWriter& TensorWriter::raw(std::string_view bytes) {
  message_.put_bytes(field::kTensorRawData, bytes);
  return *this;
}

TensorWriter& TensorWriter::raw(Payload payload) {
  message_.put_payload(field::kTensorRawData, std::move(payload));
  return *this;
}

TensorWriter& TensorWriter::floats(const std::vector<float>& values) {
  message_.put_packed_f32(field::kTensorFloatData, values);
  return *this;
}

TensorWriter& TensorWriter::doubles(const std::vector<double>& values) {
  message_.put_packed_f64(field::kTensorDoubleData, values);
  return *this;
}

TensorWriter& TensorWriter::int32s(const std::vector<int64_t>& values) {
  message_.put_packed_ints(field::kTensorInt32Data, values);
  return *this;
}

TensorWriter& TensorWriter::int64s(const std::vector<int64_t>& values) {
  message_.put_packed_ints(field::kTensorInt64Data, values);
  return *this;
}

TensorWriter& TensorWriter::uint64s(const std::vector<uint64_t>& values) {
  message_.put_packed_ints(field::kTensorUint64Data,
                           std::vector<int64_t>(values.begin(), values.end()));
  return *this;
}

TensorWriter& TensorWriter::strings(const std::vector<std::string>& values) {
  for (const std::string& value : values) message_.put_bytes(field::kTensorStringData, value);
  return *this;
}

TensorWriter& TensorWriter::external(std::string_view location, std::optional<uint64_t> offset,
                                     std::optional<uint64_t> bytes) {
  external_entry("location", location);
  if (offset) external_entry("offset", std::to_string(*offset));
  if (bytes) external_entry("length", std::to_string(*bytes));
  message_.put_int(field::kTensorDataLocation, kDataLocationExternal);
  return *this;
}

TensorWriter& TensorWriter::external_entry(std::string_view key, std::string_view value) {
  message_.put_message(field::kTensorExternalData, entry_message(key, value));
  return *this;
}

TensorWriter& TensorWriter::doc(std::string_view text) {
  message_.put_bytes(field::kTensorDoc, text);
  return *this;
}

TensorWriter f32_tensor(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<float>& values) {
  return TensorWriter(name, ElementType::kFloat, dims).raw(bytes_of(values));
}

TensorWriter i64_tensor(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<int64_t>& values) {
  return TensorWriter(name, ElementType::kInt64, dims).raw(bytes_of(values));
}

TensorWriter u8_tensor(std::string_view name, const std::vector<int64_t>& dims,
                       const std::vector<uint8_t>& values) {
  return TensorWriter(name, ElementType::kUint8, dims).raw(bytes_of(values));
}

SparseTensorWriter::SparseTensorWriter(TensorWriter values, TensorWriter indices,
                                       const std::vector<int64_t>& dims) {
  message_.put_message(field::kSparseValues, std::move(values).message());
  message_.put_message(field::kSparseIndices, std::move(indices).message());
  for (const int64_t dim : dims) message_.put_int(field::kSparseDims, dim);
}

}  // namespace model_writer
