// Typed writers for ONNX TensorProto, SparseTensorProto and TypeProto.
//
// Flow:    a model kind or a test fills one -> GraphWriter / NodeWriter (onnx_model.h) take it.
// Owns:    everything given to it; payloads are kept as functions, not as bytes.
// Threads: none; an object belongs to one thread at a time.
// Errors:  none. What is written is not checked against the specification, so that hostile models
//          can be written too; extra() takes any further field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/make_model/proto_writer.h"

namespace model_writer {

// TensorProto.DataType.
enum class ElementType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3Fn = 17,
  kFloat8E4M3Fnuz = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2Fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

// Bits of one element in raw_data; 0 for strings and unknown types.
uint32_t element_bits(ElementType type);

// A dimension of a value: a number, a symbol, or (default) unknown.
struct Dim {
  Dim() = default;
  Dim(int64_t number) : value(number) {}              // NOLINT: literals are dims
  Dim(int number) : value(number) {}                  // NOLINT
  Dim(const char* name) : symbol(name) {}             // NOLINT
  Dim(std::string name) : symbol(std::move(name)) {}  // NOLINT
  std::optional<int64_t> value;
  std::string symbol;
};

// A TypeProto.
class Type {
 public:
  static Type tensor(ElementType element, const std::vector<Dim>& dims);
  static Type tensor_of_unknown_rank(ElementType element);
  static Type sparse_tensor(ElementType element, const std::vector<Dim>& dims);
  static Type sequence(Type element);
  static Type optional(Type element);
  static Type map(ElementType key, Type value);

  ProtoMessage& extra() { return message_; }
  const ProtoMessage& message() const& { return message_; }
  ProtoMessage message() && { return std::move(message_); }

 private:
  ProtoMessage message_;
};

// A TensorProto. Set the data by at most one of the calls below, unless the model is meant to be
// bad.
class TensorWriter {
 public:
  TensorWriter(std::string_view name, ElementType type, const std::vector<int64_t>& dims);

  TensorWriter& raw(std::string_view bytes);
  TensorWriter& raw(Payload payload);
  TensorWriter& floats(const std::vector<float>& values);    // float, complex64
  TensorWriter& doubles(const std::vector<double>& values);  // double, complex128
  // The types of 32 bits or less but float and uint32: bit patterns; 4-bit types two in an entry.
  TensorWriter& int32s(const std::vector<int64_t>& values);
  TensorWriter& int64s(const std::vector<int64_t>& values);
  TensorWriter& uint64s(const std::vector<uint64_t>& values);  // uint64, uint32
  TensorWriter& strings(const std::vector<std::string>& values);

  // Names a range of another file; `offset` and `bytes` may be left out as the format allows.
  TensorWriter& external(std::string_view location, std::optional<uint64_t> offset = std::nullopt,
                         std::optional<uint64_t> bytes = std::nullopt);
  TensorWriter& external_entry(std::string_view key, std::string_view value);
  TensorWriter& doc(std::string_view text);

  ProtoMessage& extra() { return message_; }
  const ProtoMessage& message() const& { return message_; }
  ProtoMessage message() && { return std::move(message_); }

 private:
  ProtoMessage message_;
};

// Tensors from values, stored as raw_data.
TensorWriter f32_tensor(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<float>& values);
TensorWriter i64_tensor(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<int64_t>& values);
TensorWriter u8_tensor(std::string_view name, const std::vector<int64_t>& dims,
                       const std::vector<uint8_t>& values);

// A SparseTensorProto: `values` carries the name, `indices` is int64 [nnz] or [nnz, rank].
class SparseTensorWriter {
 public:
  SparseTensorWriter(TensorWriter values, TensorWriter indices, const std::vector<int64_t>& dims);

  ProtoMessage& extra() { return message_; }
  const ProtoMessage& message() const& { return message_; }
  ProtoMessage message() && { return std::move(message_); }

 private:
  ProtoMessage message_;
};

}  // namespace model_writer
