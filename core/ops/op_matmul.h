// The shapes of NumPy's matmul, for MatMul and its integer kin.
//
// Shapes: a [..., m, k], b [..., k, n] -> [..., m, n]; 1-D operands are a row or a column whose
//         dim is dropped from the result.
// Owns:   plain values.
// Errors: kInvalidArgument (at inference kInvalidGraph) when a rank is 0, k differs, or batches do
//         not broadcast.
#pragma once

#include "core/ops/op.h"

namespace folio {

struct MatMulGeometry {
  int64_t m = 1;
  int64_t k = 0;
  int64_t n = 1;
  Shape batch_a;
  Shape batch_b;
  Shape batch;  // broadcast
  Shape out;

  // Which matrix of an operand belongs to the broadcast batch index `at`.
  int64_t index_a(int64_t at) const { return batch_index(batch_a, at); }
  int64_t index_b(int64_t at) const { return batch_index(batch_b, at); }

 private:
  int64_t batch_index(const Shape& operand, int64_t at) const;
};

Result<MatMulGeometry> matmul_geometry(const Shape& a, const Shape& b);

// Dims of the product of inputs a and b; absent when a rank is unknown.
Result<std::optional<Dims>> infer_matmul_dims(OpInfer& infer, int a, int b);
Result<std::optional<Dims>> infer_matmul_dims(DimTable& table, const std::optional<Dims>& a,
                                              const std::optional<Dims>& b);

}  // namespace folio
