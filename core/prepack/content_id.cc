#include "core/prepack/content_id.h"

#include <xxhash.h>  // header only: XXH_INLINE_ALL is set by the build

#include <cstring>

namespace folio {

ContentId hash_bytes(Bytes bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

uint64_t checksum_bytes(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

void IdHasher::append(const void* bytes, size_t count) {
  if (count == 0) return;
  if (more_.empty() && count <= few_.size() - few_count_) {
    std::memcpy(few_.data() + few_count_, bytes, count);
    few_count_ += count;
    return;
  }
  if (more_.empty()) more_.assign(few_.begin(), few_.begin() + few_count_);
  const auto* first = static_cast<const uint8_t*>(bytes);
  more_.insert(more_.end(), first, first + count);
}

void IdHasher::add(std::string_view text) {
  add(text.size());
  append(text.data(), text.size());
}

ContentId IdHasher::id() const {
  return more_.empty() ? hash_bytes({few_.data(), few_count_}) : hash_bytes(more_);
}

}  // namespace folio
