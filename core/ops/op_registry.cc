#include "core/ops/op_registry.h"

namespace folio {

#define FOLIO_OP_FILE(stem) void register_##stem(OpRegistry& registry);
#include "op_list.inc"
#undef FOLIO_OP_FILE

// Made by the first load of a process, which waits for it: no growing.
OpRegistry::OpRegistry() {
  constexpr size_t kRoom = 1024;
  defs_.reserve(kRoom);
  next_.reserve(kRoom);
  by_name_.reserve(kRoom);
}

void OpRegistry::add(const OpDef& def) {
  const auto index = static_cast<uint32_t>(defs_.size());
  const auto [first, is_new] = by_name_.try_emplace({def.domain, def.type}, index);
  defs_.push_back(def);
  next_.push_back(kNoDef);
  if (is_new) return;
  uint32_t last = first->second;
  while (next_[last] != kNoDef) last = next_[last];
  next_[last] = index;
}

const OpDef* OpRegistry::find(std::string_view domain, std::string_view type, int version) const {
  const auto first = by_name_.find({domain, type});
  if (first == by_name_.end()) return nullptr;
  for (uint32_t index = first->second; index != kNoDef; index = next_[index]) {
    const OpDef& def = defs_[index];
    if (version >= def.since && version <= def.until) return &def;
  }
  return nullptr;
}

bool OpRegistry::knows(std::string_view domain, std::string_view type) const {
  return by_name_.contains({domain, type});
}

const OpRegistry& op_registry() {
  // Leaked on purpose: kernels may outlive static destruction inside a host process.
  static const OpRegistry* const registry = [] {
    auto* made = new OpRegistry();
#define FOLIO_OP_FILE(stem) register_##stem(*made);
#include "op_list.inc"
#undef FOLIO_OP_FILE
    return made;
  }();
  return *registry;
}

}  // namespace folio
