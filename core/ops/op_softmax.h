// Rows of n, one behind the other, of Softmax: y = exp(x - max) / sum(exp(x - max)). x and y may be
// the same; n > 0.
#pragma once

#include <algorithm>
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

// Short rows some at a time: a call takes longer than a row of them.
inline void softmax_rows(const FolioKernels& kernels, int64_t rows, int64_t n, const double* x,
                         double* y) {
  constexpr int64_t kRows = 64;
  constexpr int64_t kElements = 1024;  // of rows that stay in L1
  const int64_t together = std::clamp<int64_t>(kElements / n, 1, kRows);
  for (int64_t r = 0; r < rows; r += together) {
    const int64_t count = std::min(together, rows - r);
    const double* const from = x + r * n;
    double* const to = y + r * n;
    double most[kRows];
    double sums[kRows] = {};
    std::fill_n(most, count, -std::numeric_limits<double>::infinity());
    kernels.reduce_rows_f64[kFolioReduceMax](count, n, from, n, most);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = i * n; j < (i + 1) * n; ++j) to[j] = from[j] - most[i];
    }
    kernels.unary_f64[kFolioExpF64](count * n, to, to);
    kernels.reduce_rows_f64[kFolioReduceSum](count, n, to, n, sums);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = i * n; j < (i + 1) * n; ++j) to[j] /= sums[i];
    }
  }
}

}  // namespace folio
