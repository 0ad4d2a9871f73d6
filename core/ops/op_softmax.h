// One row of Softmax: y = exp(x - max) / sum(exp(x - max)). x and y may be the same; n > 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernels/kernels.h"

namespace folio {

inline void softmax_row(const FolioKernels& kernels, int64_t n, const float* x, float* y) {
  kernels.softmax_f32(n, x, y);
}

inline void softmax_row(const FolioKernels&, int64_t n, const double* x, double* y) {
  const double most = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}

}  // namespace folio
