// Layer and RMS normalization of rows: what LayerNormalization and its fused kin share; and steps
// of other normalizations.
//
// Math:    of floats, kernels.h: layer_norm_f32 and rms_norm_f32; of doubles, plain loops.
// Owns:    plain views.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/ops/op_gemm.h"
#include "core/ops/op_real.h"

namespace folio {

// y = f(g(x, a), b) of n floats and two numbers, each step rounded; y may be x. A piece at a time,
// which is in L1 when it is needed again.
template <FolioBinary kFirst, FolioBinary kSecond>
void two_steps(const FolioKernels& kernels, int64_t n, const float* x, float a, float b, float* y) {
  constexpr int64_t kPiece = 2048;
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = std::min(kPiece, n - i);
    kernels.binary_f32[kFirst](count, x + i, 1, &a, 0, y + i);
    kernels.binary_f32[kSecond](count, y + i, 1, &b, 0, y + i);
  }
}

// y = x * times + plus, not fused; y may be x.
template <typename T>
void scale_row(const FolioKernels& kernels, int64_t n, const T* x, Compute<T> times,
               Compute<T> plus, T* y) {
  constexpr int64_t kFew = 16;  // that a call is not worth
  if constexpr (std::is_same_v<T, float>) {
    if (n > kFew) return kernels.shaped_f32[kFolioAffine](n, x, times, plus, y);
  }
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(static_cast<Compute<T>>(x[i]) * times + plus);
  }
}

template <typename T>
struct NormRows {
  bool rms = false;
  T epsilon = 0;
  int64_t n = 0;             // of a row
  const T* scale = nullptr;  // [n] or null
  const T* bias = nullptr;   // [n] or null
  T* mean = nullptr;         // [rows] or null
  T* inv_std = nullptr;

  // y may be x. make(row): writes that row of x, just before it is read.
  template <typename Make>
  void run(OpRun& run, int64_t rows, const T* x, T* y, const Make& make) const {
    constexpr double kUnit = std::is_same_v<T, float> ? 4096 : 1024;  // numbers: see thread_parts
    const double units = static_cast<double>(rows) * static_cast<double>(n) / kUnit;
    const int64_t parts = thread_parts(units, run.parallel().thread_count());
    const int64_t grain = std::max<int64_t>(1, (rows + parts - 1) / parts);
    run.parallel().for_range(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        make(row);
        one(run.kernels(), x + row * n, y + row * n, mean ? mean + row : nullptr,
            inv_std ? inv_std + row : nullptr);
      }
    });
  }
  void run(OpRun& run, int64_t rows, const T* x, T* y) const {
    this->run(run, rows, x, y, [](int64_t) {});
  }

 private:
  void one(const FolioKernels& kernels, const float* x, float* y, float* mean_at,
           float* inv_std_at) const {
    if (rms) {
      kernels.rms_norm_f32(n, x, scale, epsilon, y, inv_std_at);
      if (bias) kernels.binary_f32[kFolioAdd](n, y, 1, bias, 1, y);
    } else {
      kernels.layer_norm_f32(n, x, scale, bias, epsilon, y, mean_at, inv_std_at);
    }
  }

  void one(const FolioKernels&, const double* x, double* y, double* mean_at,
           double* inv_std_at) const {
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
    if (mean_at) *mean_at = middle;
    if (inv_std_at) *inv_std_at = factor;
  }
};

}  // namespace folio
