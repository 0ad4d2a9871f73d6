// expand_sparse: a sparse tensor of a model file made dense. They are rare and small in models, so
// both formats do this while loading.
//
// Flow:    onnx/sparse_reader and ort/ort_tensors hand over what the file says.
// Owns:    nothing; the result is on the heap.
// Threads: pure function but for the caller's counter.
// Errors:  kInvalidGraph when dims, values and indices do not agree, when indices are not inside
//          the dims, ascending and unique, or when the budget is exceeded.
#pragma once

#include <cstdint>

#include "core/base/span.h"
#include "core/base/status.h"
#include "core/base/tensor.h"

namespace folio {

// What all sparse tensors of one model may take when dense.
struct DenseBudget {
  uint64_t limit_bytes = 0;
  uint64_t taken_bytes = 0;
};

// `values`: [count]. `indices`: signed integers, [count] (linear positions) or [count, rank].
// Both may be unaligned. Missing elements are zero, strings empty.
Result<Tensor> expand_sparse(const Tensor& values, const Tensor& indices, Span<const int64_t> dims,
                             DenseBudget* budget);

}  // namespace folio
