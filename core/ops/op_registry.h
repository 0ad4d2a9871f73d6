// OpRegistry: all operators of this build, found by (domain, type, version).
//
// Owns:    the definitions, made once on first use from the generated list of operator files.
// Threads: immutable after the first call of op_registry().
#pragma once

#include <cstdint>
#include <string_view>
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
  static constexpr uint32_t kNoDef = ~0U;

  // Where in slots_ the first definition of that name stands, or would stand.
  size_t slot_of(std::string_view domain, std::string_view type) const;
  void grow();

  std::vector<OpDef> defs_;
  std::vector<uint32_t> next_;  // by index: the next of the same name
  // Open addressing, a power of two, at most half full: a load asks some ten times per node.
  std::vector<uint32_t> slots_;
  size_t name_count_ = 0;
};

const OpRegistry& op_registry();

// The newest ai.onnx opset whose operators are claimed here; newer imports are refused.
inline constexpr int kNewestOpset = 28;

}  // namespace folio
