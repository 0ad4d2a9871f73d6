// TypeInfo: the declared or inferred type of a value, with symbolic dims.
//
// Owns:    plain values. A Dim is a number, a symbolic expression of the model's DimTable, or
//          unknown.
// Threads: value types.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace folio {

// One dim. `symbol` indexes DimTable; -1: not symbolic. Unknown: neither.
struct Dim {
  int64_t value = -1;
  int32_t symbol = -1;

  static Dim of(int64_t value) { return {value, -1}; }
  static Dim of_symbol(int32_t symbol) { return {-1, symbol}; }
  static Dim unknown() { return {}; }
  bool is_value() const { return value >= 0 && symbol < 0; }
  bool is_symbol() const { return symbol >= 0; }
  bool is_unknown() const { return value < 0 && symbol < 0; }
  bool operator==(const Dim&) const = default;
};

using Dims = std::vector<Dim>;

struct TypeInfo {
  enum class Kind : uint8_t { kUnknown, kTensor, kSequence, kMap, kOptional, kSparseTensor };

  TypeInfo();
  TypeInfo(const TypeInfo& other);
  TypeInfo(TypeInfo&& other) noexcept;
  TypeInfo& operator=(const TypeInfo& other);
  TypeInfo& operator=(TypeInfo&& other) noexcept;
  ~TypeInfo();

  Kind kind = Kind::kUnknown;
  DType dtype = DType::kUndefined;          // kTensor, kSparseTensor: elements; kMap: keys
  std::optional<Dims> dims;                 // kTensor: absent = unknown rank
  std::shared_ptr<const TypeInfo> element;  // kSequence, kOptional: element; kMap: value

  static TypeInfo tensor(DType dtype, std::optional<Dims> dims = std::nullopt);
  static TypeInfo sequence(TypeInfo element_type);
  static TypeInfo optional_of(TypeInfo element_type);
  static TypeInfo map(DType key, TypeInfo value_type);

  bool is_tensor() const { return kind == Kind::kTensor; }
  bool has_rank() const { return is_tensor() && dims.has_value(); }
  int rank() const { return static_cast<int>(dims->size()); }

  // The concrete shape when every dim is a number.
  std::optional<Shape> static_shape() const;
};

std::string dims_to_string(const Dims& dims);      // "[?,3]"
std::string type_to_string(const TypeInfo& type);  // "tensor(float)[?,3]", "seq(tensor(int64))"

}  // namespace folio
