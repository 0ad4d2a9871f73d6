#include "core/ops/op_registry.h"

#include <functional>

namespace folio {

#define FOLIO_OP_FILE(stem) void register_##stem(OpRegistry& registry);
#include "op_list.inc"
#undef FOLIO_OP_FILE

namespace {

size_t hash_of(std::string_view domain, std::string_view type) {
  const std::hash<std::string_view> hash;
  return hash(type) + 31 * domain.size();
}

}  // namespace

// Made by the first load of a process, which waits for it: no growing.
OpRegistry::OpRegistry() : slots_(2048, kNoDef) {
  constexpr size_t kRoom = 1024;
  defs_.reserve(kRoom);
  next_.reserve(kRoom);
}

size_t OpRegistry::slot_of(std::string_view domain, std::string_view type) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash_of(domain, type) & mask;
  while (slots_[at] != kNoDef) {
    const OpDef& def = defs_[slots_[at]];
    if (def.type == type && def.domain == domain) break;
    at = (at + 1) & mask;
  }
  return at;
}

void OpRegistry::grow() {
  std::vector<uint32_t> old(slots_.size() * 2, kNoDef);
  old.swap(slots_);
  for (const uint32_t index : old) {
    if (index != kNoDef) slots_[slot_of(defs_[index].domain, defs_[index].type)] = index;
  }
}

void OpRegistry::add(const OpDef& def) {
  if (2 * name_count_ >= slots_.size()) grow();
  const auto index = static_cast<uint32_t>(defs_.size());
  uint32_t& named = slots_[slot_of(def.domain, def.type)];
  defs_.push_back(def);
  next_.push_back(kNoDef);
  if (named == kNoDef) {
    named = index;
    ++name_count_;
    return;
  }
  uint32_t last = named;
  while (next_[last] != kNoDef) last = next_[last];
  next_[last] = index;
}

const OpDef* OpRegistry::find(std::string_view domain, std::string_view type, int version) const {
  for (uint32_t index = slots_[slot_of(domain, type)]; index != kNoDef; index = next_[index]) {
    const OpDef& def = defs_[index];
    if (version >= def.since && version <= def.until) return &def;
  }
  return nullptr;
}

bool OpRegistry::knows(std::string_view domain, std::string_view type) const {
  return slots_[slot_of(domain, type)] != kNoDef;
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
