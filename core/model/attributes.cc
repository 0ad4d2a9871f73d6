#include "core/model/attributes.h"

#include <atomic>

namespace folio {
namespace {

using Type = AttributeDef::Type;

std::string_view type_name(Type type) {
  static constexpr std::string_view kNames[] = {
      "undefined",      "float",      "int",        "string",  "tensor", "graph",
      "floats",         "ints",       "strings",    "tensors", "graphs", "sparse_tensor",
      "sparse_tensors", "type_proto", "type_protos"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

// The value of a single-valued attribute. Protobuf leaves out a field that holds its default, so
// an absent one is 0 or "".
template <typename T>
T only(const std::vector<T>& values) {
  return values.empty() ? T{} : values.front();
}

std::atomic<AttributeHook> g_hook{nullptr};

void tell_hook(std::string_view name, Type type) {
  if (const AttributeHook hook = g_hook.load(std::memory_order_relaxed)) hook(name, type);
}

}  // namespace

void set_attribute_hook(AttributeHook hook) { g_hook.store(hook); }

const AttributeDef* Attributes::find(std::string_view name) const {
  tell_hook(name, Type::kUndefined);
  return look_up(name);
}

const AttributeDef* Attributes::look_up(std::string_view name) const {
  for (const AttributeDef& attribute : attributes_) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

void Attributes::set(AttributeDef attribute) {
  for (AttributeDef& existing : attributes_) {
    if (existing.name == attribute.name) {
      existing = std::move(attribute);
      return;
    }
  }
  attributes_.push_back(std::move(attribute));
}

Result<const AttributeDef*> Attributes::typed(std::string_view name, Type type) const {
  tell_hook(name, type);
  const AttributeDef* attribute = look_up(name);
  if (!attribute) return attribute;
  if (attribute->type != type) {
    return invalid_graph("attribute '", name, "' is of type ", type_name(attribute->type),
                         ", expected ", type_name(type));
  }
  return attribute;
}

Result<const AttributeDef*> Attributes::required(std::string_view name, Type type) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, type));
  if (!attribute) return invalid_graph("attribute '", name, "' is required but missing");
  return attribute;
}

Result<int64_t> Attributes::get_int(std::string_view name, int64_t fallback) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, Type::kInt));
  return attribute ? only(attribute->ints) : fallback;
}

Result<float> Attributes::get_float(std::string_view name, float fallback) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, Type::kFloat));
  return attribute ? only(attribute->floats) : fallback;
}

Result<std::string> Attributes::get_string(std::string_view name, std::string_view fallback) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, Type::kString));
  return attribute ? only(attribute->strings) : std::string(fallback);
}

Result<std::vector<int64_t>> Attributes::get_ints(std::string_view name,
                                                  std::vector<int64_t> fallback) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, Type::kInts));
  return attribute ? attribute->ints : std::move(fallback);
}

Result<Span<const int64_t>> Attributes::view_ints(std::string_view name) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, Type::kInts));
  return attribute ? Span<const int64_t>(attribute->ints) : Span<const int64_t>();
}

Result<Span<const std::string>> Attributes::view_strings(std::string_view name) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, Type::kStrings));
  return attribute ? Span<const std::string>(attribute->strings) : Span<const std::string>();
}

Result<std::vector<float>> Attributes::get_floats(std::string_view name,
                                                  std::vector<float> fallback) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, Type::kFloats));
  return attribute ? attribute->floats : std::move(fallback);
}

Result<std::vector<std::string>> Attributes::get_strings(std::string_view name) const {
  FOLIO_TRY(const AttributeDef* attribute, typed(name, Type::kStrings));
  return attribute ? attribute->strings : std::vector<std::string>{};
}

Result<int64_t> Attributes::get_int(std::string_view name) const {
  FOLIO_TRY(const AttributeDef* attribute, required(name, Type::kInt));
  return only(attribute->ints);
}

Result<float> Attributes::get_float(std::string_view name) const {
  FOLIO_TRY(const AttributeDef* attribute, required(name, Type::kFloat));
  return only(attribute->floats);
}

Result<std::string> Attributes::get_string(std::string_view name) const {
  FOLIO_TRY(const AttributeDef* attribute, required(name, Type::kString));
  return only(attribute->strings);
}

Result<Tensor> Attributes::get_tensor(std::string_view name) const {
  FOLIO_TRY(const AttributeDef* attribute, required(name, Type::kTensor));
  if (attribute->tensors.empty()) return invalid_graph("attribute '", name, "' holds no tensor");
  return attribute->tensors[0];
}

AttributeDef int_attribute(std::string name, int64_t value) {
  AttributeDef attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeDef::Type::kInt;
  attribute.ints = {value};
  return attribute;
}

AttributeDef ints_attribute(std::string name, std::vector<int64_t> values) {
  AttributeDef attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeDef::Type::kInts;
  attribute.ints = std::move(values);
  return attribute;
}

AttributeDef float_attribute(std::string name, float value) {
  AttributeDef attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeDef::Type::kFloat;
  attribute.floats = {value};
  return attribute;
}

AttributeDef text_attribute(std::string name, std::string value) {
  AttributeDef attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeDef::Type::kString;
  attribute.strings = {std::move(value)};
  return attribute;
}

}  // namespace folio
