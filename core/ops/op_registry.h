// OpRegistry: all operators of this build, found by (domain, type, version).
//
// Owns:    the definitions, made once on first use from the generated list of operator files.
// Threads: immutable after the first call of op_registry().
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/ops/op.h"

namespace folio {

class OpRegistry {
 public:
  OpRegistry();
  // The names in `def` live as long as the registry.
  void add(const OpDef& def);

  // Null when there is no such operator at that version.
  const OpDef* find(std::string_view domain, std::string_view type, int version) const;
  // True when the operator exists at any version.
  bool knows(std::string_view domain, std::string_view type) const;
  const std::vector<OpDef>& all() const { return defs_; }

 private:
  struct Name {
    std::string_view domain;
    std::string_view type;
    bool operator==(const Name& other) const = default;
  };
  struct NameHash {
    size_t operator()(const Name& name) const {
      const std::hash<std::string_view> hash;
      return hash(name.type) + 31 * hash(name.domain);
    }
  };
  static constexpr uint32_t kNoDef = ~0U;

  std::vector<OpDef> defs_;
  std::unordered_map<Name, uint32_t, NameHash> by_name_;  // the first of that name
  std::vector<uint32_t> next_;                            // by index: the next of the same name
};

const OpRegistry& op_registry();

// The newest ai.onnx opset whose operators are claimed here; newer imports are refused.
inline constexpr int kNewestOpset = 28;

}  // namespace folio
