// Matrix products of double and of integers, which wrap.
//
// Math:    y[i, j] = alpha * sum over p of a[i, p] * b[p, j], each product and each sum rounded, in
//          the order of p: nothing that a loop over it would not give.
// Method:  doubles by the kernel gemm_f64. Of integers, that no kernel has, 4 rows times two
//          vectors of 16 bytes in registers, over a part of the depth, whose columns of b stand
//          side by side in scratch; between the parts sums rest in y. One or two rows go over b
//          where it stands.
// Splits:  rows or columns, which changes no bit.
#pragma once

#include "core/ops/op.h"

namespace folio {

// a[i, p] = a[i * a_row + p * a_col], b[p, j] = b[p * b_row + j * b_col]; y[i * n + j].
template <typename T>
struct NumberProduct {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t a_row = 0, a_col = 0;
  const T* b = nullptr;
  int64_t b_row = 0, b_col = 0;
  T* y = nullptr;
  T alpha = 1;  // of doubles alone
};

// y overlaps nothing. T: double, uint32_t, uint64_t (of signed integers, too: the bits are the
// same). kOutOfMemory.
template <typename T>
Status multiply_numbers(OpRun& run, const NumberProduct<T>& product);

template <>
Status multiply_numbers(OpRun& run, const NumberProduct<double>& product);
extern template Status multiply_numbers(OpRun&, const NumberProduct<uint32_t>&);
extern template Status multiply_numbers(OpRun&, const NumberProduct<uint64_t>&);

}  // namespace folio
