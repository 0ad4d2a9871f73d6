// Attributes: typed, checked access to a node's attributes.
//
// Owns:    the attribute values, as copies (tensors share their bytes).
// Errors:  kInvalidGraph when an attribute has another type than asked, or is missing though
//          required; the message names the attribute, what was found and what was expected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_def.h"

namespace folio {

class Attributes {
 public:
  Attributes() = default;
  explicit Attributes(std::vector<AttributeDef> attributes) : attributes_(std::move(attributes)) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const AttributeDef* find(std::string_view name) const;
  const std::vector<AttributeDef>& all() const { return attributes_; }
  void set(AttributeDef attribute);  // replaces one of the same name

  // With a default: absent gives the default.
  Result<int64_t> get_int(std::string_view name, int64_t fallback) const;
  Result<float> get_float(std::string_view name, float fallback) const;
  Result<std::string> get_string(std::string_view name, std::string_view fallback) const;
  Result<std::vector<int64_t>> get_ints(std::string_view name,
                                        std::vector<int64_t> fallback = {}) const;
  // Empty when absent. The views live as long as the attributes stay as they are.
  Result<Span<const int64_t>> view_ints(std::string_view name) const;
  Result<Span<const std::string>> view_strings(std::string_view name) const;
  Result<std::vector<float>> get_floats(std::string_view name,
                                        std::vector<float> fallback = {}) const;
  Result<std::vector<std::string>> get_strings(std::string_view name) const;
  // Required.
  Result<int64_t> get_int(std::string_view name) const;
  Result<float> get_float(std::string_view name) const;
  Result<std::string> get_string(std::string_view name) const;
  Result<Tensor> get_tensor(std::string_view name) const;

 private:
  const AttributeDef* look_up(std::string_view name) const;
  Result<const AttributeDef*> typed(std::string_view name, AttributeDef::Type type) const;
  Result<const AttributeDef*> required(std::string_view name, AttributeDef::Type type) const;

  std::vector<AttributeDef> attributes_;
};

// Tests learn through this hook what operators read: it is told of every attribute that is looked
// for, and of which type (kUndefined: of any). Null (the default) is told nothing.
using AttributeHook = void (*)(std::string_view name, AttributeDef::Type type);
void set_attribute_hook(AttributeHook hook);

// Attributes of nodes that Folio makes.
AttributeDef int_attribute(std::string name, int64_t value);
AttributeDef ints_attribute(std::string name, std::vector<int64_t> values);
AttributeDef float_attribute(std::string name, float value);
AttributeDef text_attribute(std::string name, std::string value);

}  // namespace folio
