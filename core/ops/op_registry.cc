#include "core/ops/op_registry.h"

namespace folio {

#define FOLIO_OP_FILE(stem) void register_##stem(OpRegistry& registry);
#include "op_list.inc"
#undef FOLIO_OP_FILE

namespace {

std::string key_of(std::string_view domain, std::string_view type) {
  return std::string(domain) + ':' + std::string(type);
}

}  // namespace

void OpRegistry::add(const OpDef& def) {
  by_name_[key_of(def.domain, def.type)].push_back(defs_.size());
  defs_.push_back(def);
}

const OpDef* OpRegistry::find(std::string_view domain, std::string_view type, int version) const {
  const auto it = by_name_.find(key_of(domain, type));
  if (it == by_name_.end()) return nullptr;
  for (const size_t index : it->second) {
    const OpDef& def = defs_[index];
    if (version >= def.since && version <= def.until) return &def;
  }
  return nullptr;
}

bool OpRegistry::knows(std::string_view domain, std::string_view type) const {
  return by_name_.contains(key_of(domain, type));
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
