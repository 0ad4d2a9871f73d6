#include "core/model/type_info.h"

#include "core/base/status.h"

namespace folio {

TypeInfo::TypeInfo() = default;
TypeInfo::TypeInfo(const TypeInfo& other) = default;
TypeInfo::TypeInfo(TypeInfo&& other) noexcept = default;
TypeInfo& TypeInfo::operator=(const TypeInfo& other) = default;
TypeInfo& TypeInfo::operator=(TypeInfo&& other) noexcept = default;
TypeInfo::~TypeInfo() = default;

TypeInfo TypeInfo::tensor(DType dtype, std::optional<Dims> dims) {
  TypeInfo type;
  type.kind = Kind::kTensor;
  type.dtype = dtype;
  type.dims = std::move(dims);
  return type;
}

TypeInfo TypeInfo::sequence(TypeInfo element_type) {
  TypeInfo type;
  type.kind = Kind::kSequence;
  type.element = std::make_shared<const TypeInfo>(std::move(element_type));
  return type;
}

TypeInfo TypeInfo::optional_of(TypeInfo element_type) {
  TypeInfo type = sequence(std::move(element_type));
  type.kind = Kind::kOptional;
  return type;
}

TypeInfo TypeInfo::map(DType key, TypeInfo value_type) {
  TypeInfo type = sequence(std::move(value_type));
  type.kind = Kind::kMap;
  type.dtype = key;
  return type;
}

std::optional<Shape> TypeInfo::static_shape() const {
  if (!has_rank() || dims->size() > static_cast<size_t>(kMaxRank)) return std::nullopt;
  Shape shape;
  for (const Dim dim : *dims) {
    if (!dim.is_value()) return std::nullopt;
    shape.push_back(dim.value);
  }
  uint64_t count = 0;
  if (!checked_count(shape.dims(), &count)) return std::nullopt;
  return shape;
}

std::string dims_to_string(const Dims& dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ',';
    out += dims[i].is_value() ? std::to_string(dims[i].value) : "?";
  }
  return out + ']';
}

std::string type_to_string(const TypeInfo& type) {
  const std::string inner = type.element ? type_to_string(*type.element) : "?";
  switch (type.kind) {
    case TypeInfo::Kind::kUnknown:
      return "unknown";
    case TypeInfo::Kind::kSequence:
      return cat("seq(", inner, ")");
    case TypeInfo::Kind::kOptional:
      return cat("optional(", inner, ")");
    case TypeInfo::Kind::kMap:
      return cat("map(", dtype_name(type.dtype), ",", inner, ")");
    case TypeInfo::Kind::kTensor:
    case TypeInfo::Kind::kSparseTensor:
      break;
  }
  return cat(type.kind == TypeInfo::Kind::kTensor ? "tensor(" : "sparse_tensor(",
             dtype_name(type.dtype), ")", type.dims ? dims_to_string(*type.dims) : "");
}

}  // namespace folio
