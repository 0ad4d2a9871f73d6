#include "core/plan/pack_weights.h"

namespace folio {

Result<Ref<const PackedBlob>> pack_weight(PackedCache& cache, const Initializer& initializer,
                                          const PackRequest& request) {
  PackSource source;
  source.tensor = &*initializer.tensor;
  if (initializer.source) {
    source.source_serial = initializer.source->serial();
    source.offset = initializer.offset;
  }
  return cache.get_or_pack(make_pack_key(source, request), *initializer.tensor, request);
}

}  // namespace folio
