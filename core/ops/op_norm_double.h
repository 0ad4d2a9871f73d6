// Layer and RMS normalization of rows of doubles: what NormRows (op_norm.h) is to floats.
#pragma once

#include <cmath>

#include "core/ops/op.h"

namespace folio {

struct NormRowsF64 {
  bool rms = false;
  double epsilon = 0;
  int64_t n = 0;                  // of a row
  const double* scale = nullptr;  // [n] or null
  const double* bias = nullptr;   // [n] or null
  double* mean = nullptr;         // [rows] or null
  double* inv_std = nullptr;

  // y may be x.
  void run(OpRun& run, int64_t rows, const double* x, double* y) const {
    run.parallel().for_range(rows, 1 + 2048 / (n + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) one(row, x + row * n, y + row * n);
    });
  }

 private:
  void one(int64_t row, const double* x, double* y) const {
    const auto count = static_cast<double>(n);
    double middle = 0;
    if (!rms) {
      for (int64_t i = 0; i < n; ++i) middle += x[i];
      middle /= count;
    }
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += (x[i] - middle) * (x[i] - middle);
    const double factor = 1 / std::sqrt(squares / count + epsilon);
    for (int64_t i = 0; i < n; ++i) {
      const double scaled = (x[i] - middle) * factor * (scale ? scale[i] : 1);
      y[i] = bias ? scaled + bias[i] : scaled;
    }
    if (mean) mean[row] = middle;
    if (inv_std) inv_std[row] = factor;
  }
};

}  // namespace folio
