// PackKey: names a packed blob before it is packed.
//
// Rule:    equal keys mean interchangeable blobs. In the key: the content of the source (tier a:
//          which mapping and where in it, tier b: a hash of its bytes), dtype, shape, how the
//          matrix lies in it, layout id and version. Left out: addresses that may be reused after
//          an unload (a mapping's identity is its serial number, not its address), names, the ISA
//          and the build, which do not change the bytes.
#pragma once

#include <compare>
#include <cstdint>

#include "core/prepack/pack_request.h"

namespace folio {

struct PackKey {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const PackKey&) const = default;
};

// Where a weight's bytes come from.
struct PackSource {
  const Tensor* tensor = nullptr;
  // Tier a: a serial number of the mapping (never reused) and the offset of the payload in it; 0:
  // not known, then the bytes are hashed (tier b).
  uint64_t source_serial = 0;
  uint64_t offset = 0;
};

PackKey make_pack_key(const PackSource& source, const PackRequest& request);

}  // namespace folio
