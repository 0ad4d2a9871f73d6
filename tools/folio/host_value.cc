#include "tools/folio/host_value.h"

#include <cstring>
#include <utility>

#include "tools/folio/cli.h"
#include "tools/folio/element_type.h"

namespace folio_cli {

size_t HostValue::element_count() const {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  return count;
}

size_t checked_count(const folio::Dims& dims, folio::ElementType type) {
  // 2^56 elements of the longest type (16 bytes) still fit 64 bits.
  constexpr uint64_t kCountMax = uint64_t{1} << 56;
  uint64_t count = 1;
  bool has_zero = false;
  for (const int64_t dim : dims) {
    if (dim < 0) throw CliError(kExitCannotRun, "a dim of " + std::to_string(dim));
    has_zero = has_zero || dim == 0;
    if (dim > 0 && count > kCountMax / static_cast<uint64_t>(dim)) {
      throw CliError(kExitCannotRun, std::string(facts_of(type).name) + dims_text(dims) +
                                         " does not fit into memory");
    }
    if (dim > 0) count *= static_cast<uint64_t>(dim);
  }
  return has_zero ? 0 : static_cast<size_t>(count);
}

folio::Value to_value(const HostValue& value) {
  if (value.kind == FOLIO_KIND_TENSOR) {
    if (value.type == FOLIO_STRING) return folio::Value::strings(value.strings, value.dims);
    folio::Value tensor = folio::Value::tensor(value.type, value.dims);
    if (tensor.bytes() != value.bytes.size()) {
      throw folio::Error(FOLIO_FAIL, describe(value) + " has " + std::to_string(tensor.bytes()) +
                                         " bytes, not " + std::to_string(value.bytes.size()));
    }
    if (!value.bytes.empty()) {
      std::memcpy(tensor.mutable_data(), value.bytes.data(), value.bytes.size());
    }
    return tensor;
  }
  if (value.kind == FOLIO_KIND_OPTIONAL && value.parts.size() == 1) return to_value(value.parts[0]);
  if (value.kind == FOLIO_KIND_MAP && value.parts.size() == 2) {
    return folio::Value::map(to_value(value.parts[0]), to_value(value.parts[1]));
  }
  if (value.kind != FOLIO_KIND_SEQUENCE) {
    throw folio::Error(FOLIO_NOT_IMPLEMENTED, "an input that is " + describe(value));
  }
  std::vector<folio::Value> elements;
  std::vector<const folio::Value*> pointers;
  for (const HostValue& part : value.parts) elements.push_back(to_value(part));
  for (const folio::Value& element : elements) pointers.push_back(&element);
  return folio::Value::sequence(value.parts.empty() ? value.type : value.parts[0].type, pointers);
}

HostValue from_value(const folio::Value& value) {
  HostValue result;
  if (value.empty()) {
    result.kind = FOLIO_KIND_OPTIONAL;
    return result;
  }
  result.kind = value.kind();
  if (result.kind != FOLIO_KIND_TENSOR) {
    for (size_t i = 0; i < value.part_count(); ++i) {
      result.parts.push_back(from_value(value.part(i)));
    }
    return result;
  }
  result.type = value.type();
  result.dims = value.dims();
  const size_t count = value.element_count();
  if (result.type == FOLIO_STRING) {
    for (size_t i = 0; i < count; ++i) result.strings.push_back(value.string_at(i));
    return result;
  }
  result.bytes.resize(value.bytes());
  if (!result.bytes.empty()) {
    std::memcpy(result.bytes.data(), value.data(), result.bytes.size());
  }
  return result;
}

std::string dims_text(const folio::Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(dims[i]);
  }
  return text + "]";
}

std::string describe(const HostValue& value) {
  switch (value.kind) {
    case FOLIO_KIND_TENSOR:
      return facts_of(value.type).name + dims_text(value.dims);
    case FOLIO_KIND_SEQUENCE:
      return "sequence of " + std::to_string(value.parts.size());
    case FOLIO_KIND_MAP:
      return "map of " + std::to_string(value.parts.empty() ? 0 : value.parts[0].element_count());
    case FOLIO_KIND_OPTIONAL:
      return value.parts.empty() ? "optional, empty" : "optional " + describe(value.parts[0]);
    default:
      return "value of kind " + std::to_string(value.kind);
  }
}

}  // namespace folio_cli
