// pack_weight: asks the cache for an initializer in a kernel's layout.
//
// Flow:    program_builder, once per request of an operator.
// Errors:  kOutOfMemory.
#pragma once

#include "core/model/graph.h"
#include "core/prepack/packed_cache.h"

namespace folio {

// `initializer` has its bytes. A mapped payload is named by its mapping and offset, so that
// nothing is hashed, and its pages are dropped once packed; computed ones are named by their
// content.
Result<Ref<const PackedBlob>> pack_weight(PackedCache& cache, const Initializer& initializer,
                                          const PackRequest& request);

}  // namespace folio
