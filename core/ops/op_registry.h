// OpRegistry: all operators of this build, found by (domain, type, version).
//
// Owns:    the definitions, made once on first use from the generated list of operator files.
// Threads: immutable after the first call of op_registry().
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/ops/op.h"

namespace folio {

class OpRegistry {
 public:
  void add(const OpDef& def);

  // Null when there is no such operator at that version.
  const OpDef* find(std::string_view domain, std::string_view type, int version) const;
  // True when the operator exists at any version.
  bool knows(std::string_view domain, std::string_view type) const;
  const std::vector<OpDef>& all() const { return defs_; }

 private:
  std::vector<OpDef> defs_;
  std::unordered_map<std::string, std::vector<size_t>> by_name_;
};

const OpRegistry& op_registry();

// The newest ai.onnx opset whose operators are claimed here; newer imports are refused.
inline constexpr int kNewestOpset = 28;

}  // namespace folio
