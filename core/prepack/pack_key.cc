#include "core/prepack/pack_key.h"

#include <xxhash.h>  // header only: XXH_INLINE_ALL is set by the build

#include <cstring>
#include <vector>

namespace folio {
namespace {

// Numbers in a fixed order and width, so that no padding enters the hash.
class KeyBytes {
 public:
  template <typename T>
  void add(T number) {
    const auto wide = static_cast<uint64_t>(number);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(wide));
    std::memcpy(bytes_.data() + at, &wide, sizeof(wide));
  }
  PackKey hash() const {
    const XXH128_hash_t h = XXH3_128bits(bytes_.data(), bytes_.size());
    return {h.high64, h.low64};
  }

 private:
  std::vector<uint8_t> bytes_;
};

constexpr uint64_t kTierMapping = 'a';
constexpr uint64_t kTierBytes = 'b';

}  // namespace

PackKey make_pack_key(const PackSource& source, const PackRequest& request) {
  KeyBytes key;
  const Tensor& tensor = *source.tensor;
  if (source.source_serial != 0) {
    key.add(kTierMapping);
    key.add(source.source_serial);
    key.add(source.offset);
    key.add(tensor.bytes());
  } else {
    key.add(kTierBytes);
    const XXH128_hash_t h = XXH3_128bits(tensor.raw(), tensor.bytes());
    key.add(h.high64);
    key.add(h.low64);
  }
  key.add(tensor.dtype());
  key.add(tensor.rank());
  for (const int64_t dim : tensor.shape().dims()) key.add(dim);
  key.add(request.layout);
  key.add(request.version);
  key.add(request.k);
  key.add(request.n);
  key.add(request.row_stride);
  key.add(request.col_stride);
  key.add(request.taps);
  key.add(request.groups);
  return key.hash();
}

}  // namespace folio
