// Rows of n, one behind the other, of Softmax: y = exp(x - max) / sum(exp(x - max)). x and y may be
// the same; n > 0.
#pragma once

#include <cstdint>
#include <limits>

#include "core/kernels/kernels.h"

namespace folio {

inline void softmax_rows(const FolioKernels& kernels, int64_t rows, int64_t n, const float* x,
                         float* y) {
  kernels.softmax_f32(rows, n, x, y);
}

inline double largest_of(const FolioKernels& kernels, int64_t n, const double* x) {
  double most = -std::numeric_limits<double>::infinity();
  kernels.reduce_rows_f64[kFolioReduceMax](1, n, x, n, &most);
  return most;
}

inline void softmax_rows(const FolioKernels& kernels, int64_t rows, int64_t n, const double* x,
                         double* y) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const double most = largest_of(kernels, n, x);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - most;
    kernels.unary_f64[kFolioExpF64](n, y, y);
    double sum = 0;
    kernels.reduce_rows_f64[kFolioReduceSum](1, n, y, n, &sum);
    for (int64_t i = 0; i < n; ++i) y[i] /= sum;
  }
}

}  // namespace folio
