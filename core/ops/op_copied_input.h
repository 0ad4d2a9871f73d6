// Numbers of an input that are used as indices or bounds, copied to scratch before they are
// checked.
//
// Flow:    an operator copies, checks the copy and uses the copy: an input may stand in a mapped
//          file, which another process can write to between the check and the use.
// Owns:    nothing; the copy is scratch of the run.
#pragma once

#include <cstring>

#include "core/ops/op_real.h"

namespace folio {

// The first `count` elements, which the tensor must have.
template <typename T>
Result<const T*> copied_input(OpRun& run, const Tensor& tensor, int64_t count) {
  FOLIO_TRY(T * copy, scratch_reals<T>(run, count));
  if (count > 0) std::memcpy(copy, tensor.raw(), static_cast<size_t>(count) * sizeof(T));
  return static_cast<const T*>(copy);
}

}  // namespace folio
