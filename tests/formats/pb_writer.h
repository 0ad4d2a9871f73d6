// PbWriter: writes protobuf fields for tests, valid or not, and the few ONNX messages that tests
// build again and again. Independent of the parser's wire code; only field numbers are shared.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/dtype.h"
#include "core/formats/onnx/onnx_fields.h"

namespace folio {

class PbWriter {
 public:
  PbWriter& varint(uint32_t field, int64_t value) {
    key(field, 0);
    raw_varint(static_cast<uint64_t>(value));
    return *this;
  }
  PbWriter& bytes(uint32_t field, std::string_view value) {
    key(field, 2);
    raw_varint(value.size());
    out_.append(value);
    return *this;
  }
  PbWriter& message(uint32_t field, const PbWriter& value) { return bytes(field, value.out_); }
  PbWriter& float32(uint32_t field, float value) {
    key(field, 5);
    return append(value);
  }
  PbWriter& float64(uint32_t field, double value) {
    key(field, 1);
    return append(value);
  }
  template <typename T>
  PbWriter& packed_varints(uint32_t field, const std::vector<T>& values) {
    PbWriter inner;
    for (const T value : values) inner.raw_varint(static_cast<uint64_t>(value));
    return bytes(field, inner.out_);
  }
  template <typename T>
  PbWriter& packed_fixed(uint32_t field, const std::vector<T>& values) {
    PbWriter inner;
    for (const T value : values) inner.append(value);
    return bytes(field, inner.out_);
  }
  PbWriter& key(uint32_t field, uint32_t wire_type) {
    raw_varint(uint64_t{field} << 3 | wire_type);
    return *this;
  }
  PbWriter& raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
    return *this;
  }
  PbWriter& raw(std::string_view bytes) {
    out_.append(bytes);
    return *this;
  }
  const std::string& str() const { return out_; }

 private:
  template <typename T>
  PbWriter& append(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
    return *this;
  }

  std::string out_;
};

// `innermost` inside `levels` times the messages that `fields` name, from the inside out. Takes
// linear time, where nesting PbWriters would copy every level into the next.
inline std::string nested_deeply(const std::string& innermost, const std::vector<uint32_t>& fields,
                                 int levels) {
  std::string reversed(innermost.rbegin(), innermost.rend());
  for (int level = 0; level < levels; ++level) {
    for (const uint32_t field : fields) {
      const std::string head = PbWriter().key(field, 2).raw_varint(reversed.size()).str();
      reversed.append(head.rbegin(), head.rend());
    }
  }
  return std::string(reversed.rbegin(), reversed.rend());
}

// The bytes of `values` as raw_data has them.
template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A TensorProto without payload.
inline PbWriter tensor_header(const std::string& name, int64_t data_type,
                              const std::vector<int64_t>& dims) {
  PbWriter tensor;
  tensor.packed_varints(TensorFields::kDims, dims);
  tensor.varint(TensorFields::kDataType, data_type);
  return tensor.bytes(TensorFields::kName, name);
}

inline PbWriter tensor_header(const std::string& name, DType dtype,
                              const std::vector<int64_t>& dims) {
  return tensor_header(name, static_cast<int64_t>(dtype), dims);
}

inline PbWriter raw_tensor(const std::string& name, DType dtype, const std::vector<int64_t>& dims,
                           std::string_view raw) {
  return tensor_header(name, dtype, dims).bytes(TensorFields::kRawData, raw);
}

// A StringStringEntryProto.
inline PbWriter entry(std::string_view key, std::string_view value) {
  return PbWriter().bytes(EntryFields::kKey, key).bytes(EntryFields::kValue, value);
}

// A TensorProto with external data.
inline PbWriter external_tensor(const std::string& name, DType dtype,
                                const std::vector<int64_t>& dims,
                                const std::vector<std::pair<std::string, std::string>>& entries) {
  PbWriter tensor = tensor_header(name, dtype, dims);
  for (const auto& [key, value] : entries) {
    tensor.message(TensorFields::kExternalData, entry(key, value));
  }
  return tensor.varint(TensorFields::kDataLocation, TensorFields::kLocationExternal);
}

inline PbWriter opset(const std::string& domain, int64_t version) {
  return PbWriter().bytes(OpsetFields::kDomain, domain).varint(OpsetFields::kVersion, version);
}

inline PbWriter node_of(const std::string& op_type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
  PbWriter node;
  for (const std::string& input : inputs) node.bytes(NodeFields::kInput, input);
  for (const std::string& output : outputs) node.bytes(NodeFields::kOutput, output);
  node.bytes(NodeFields::kName, op_type + "_0");
  return node.bytes(NodeFields::kOpType, op_type);
}

inline PbWriter attribute_of(const std::string& name, int64_t type) {
  PbWriter attribute;
  attribute.bytes(AttributeFields::kName, name);
  return type == 0 ? attribute : attribute.varint(AttributeFields::kType, type);
}

// A tensor ValueInfoProto with fixed dims.
inline PbWriter value_of(const std::string& name, DType dtype, const std::vector<int64_t>& dims) {
  PbWriter shape;
  for (const int64_t dim : dims) {
    shape.message(ShapeFields::kDim, PbWriter().varint(DimFields::kDimValue, dim));
  }
  PbWriter tensor;
  tensor.varint(TensorTypeFields::kElemType, static_cast<int64_t>(dtype));
  tensor.message(TensorTypeFields::kShape, shape);
  const PbWriter type = PbWriter().message(TypeFields::kTensor, tensor);
  return PbWriter().bytes(ValueInfoFields::kName, name).message(ValueInfoFields::kType, type);
}

inline std::string model_of(const PbWriter& graph, int64_t ir_version = 8) {
  PbWriter model;
  model.varint(ModelFields::kIrVersion, ir_version);
  model.message(ModelFields::kOpsetImport, opset("", 17));
  return model.message(ModelFields::kGraph, graph).str();
}

inline PbWriter graph_of_tensor(const PbWriter& tensor) {
  return PbWriter().message(GraphFields::kInitializer, tensor);
}

// A graph with one node that has one attribute.
inline PbWriter graph_of_attribute(const PbWriter& attribute) {
  PbWriter node = node_of("Op", {"x"}, {"y"});
  return PbWriter().message(GraphFields::kNode, node.message(NodeFields::kAttribute, attribute));
}

}  // namespace folio
