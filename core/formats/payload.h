// place_payload: bytes of a model file that already are what a kernel reads become a tensor.
//
// Owns:    nothing; the result is a view that keeps the source alive, or on the heap.
// Threads: pure function.
#pragma once

#include "core/model/model_def.h"

namespace folio {

// A view of `payload`, which stands in `source`, or a copy when it is below kSmallTensorBytes.
Status place_payload(const Ref<ByteSource>& source, Bytes payload, DType dtype, const Shape& shape,
                     InitializerDef* out);

}  // namespace folio
