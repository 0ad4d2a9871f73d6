// Rows of n, one behind the other, of Softmax: y = exp(x - max) / sum(exp(x - max)). x and y may be
// the same; n > 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernels/kernels.h"

namespace folio {

inline void softmax_rows(const FolioKernels& kernels, int64_t rows, int64_t n, const float* x,
                         float* y) {
  kernels.softmax_f32(rows, n, x, y);
}

inline void softmax_rows(const FolioKernels&, int64_t rows, int64_t n, const double* x, double* y) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const double most = *std::max_element(x, x + n);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < n; ++i) y[i] /= sum;
  }
}

}  // namespace folio
