// PackKey: names a packed blob before it is packed.
//
// Rule:    equal keys mean interchangeable blobs. In the key: what the source is (its id, which
//          holds dtype and shape), how the matrix lies in it, layout id and version. Left out: the
//          ISA and the build, which do not change the bytes.
#pragma once

#include "core/prepack/content_id.h"
#include "core/prepack/pack_request.h"

namespace folio {

using PackKey = ContentId;

// `source` is an id of the tensor that is packed. An id that only holds inside this process (a
// place in a mapping) gives a key that only holds inside it.
PackKey make_pack_key(const ContentId& source, const PackRequest& request);

// Of the constant itself, in the form in which operators read it: Layout::kRaw.
PackKey make_raw_key(const ContentId& source);

}  // namespace folio
