#include "core/prepack/pack_key.h"

namespace folio {

PackKey make_pack_key(const ContentId& source, const PackRequest& request) {
  IdHasher key;
  key.add(source);
  key.add(static_cast<uint64_t>(request.layout));
  key.add(request.version);
  key.add(static_cast<uint64_t>(request.k));
  key.add(static_cast<uint64_t>(request.n));
  key.add(static_cast<uint64_t>(request.row_stride));
  key.add(static_cast<uint64_t>(request.col_stride));
  key.add(static_cast<uint64_t>(request.taps));
  key.add(static_cast<uint64_t>(request.groups));
  return key.id();
}

PackKey make_raw_key(const ContentId& source) {
  IdHasher key;
  key.add(source);
  key.add(static_cast<uint64_t>(Layout::kRaw));
  key.add(kRawVersion);
  return key.id();
}

}  // namespace folio
