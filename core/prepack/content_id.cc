#include "core/prepack/content_id.h"

#include <xxhash.h>  // header only: XXH_INLINE_ALL is set by the build

#include <cstring>

namespace folio {

ContentId hash_bytes(Bytes bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

uint64_t checksum_bytes(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

void IdHasher::add(uint64_t number) {
  const size_t at = bytes_.size();
  bytes_.resize(at + sizeof(number));
  std::memcpy(bytes_.data() + at, &number, sizeof(number));
}

void IdHasher::add(std::string_view text) {
  add(text.size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
}

ContentId IdHasher::id() const { return hash_bytes({bytes_.data(), bytes_.size()}); }

}  // namespace folio
