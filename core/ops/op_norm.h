// Layer and RMS normalization of rows: what LayerNormalization and its fused kin share.
//
// Math:    kernels.h, layer_norm_f32 and rms_norm_f32.
// Owns:    plain views.
#pragma once

#include <algorithm>

#include "core/ops/op_float.h"

namespace folio {

struct NormRows {
  bool rms = false;
  float epsilon = 0;
  int64_t n = 0;                 // of a row
  const float* scale = nullptr;  // [n] or null
  const float* bias = nullptr;   // [n] or null
  float* mean = nullptr;         // [rows] or null
  float* inv_std = nullptr;

  // y may be x.
  void run(OpRun& run, int64_t rows, const float* x, float* y) const {
    const FolioKernels& kernels = run.kernels();
    run.parallel().for_range(rows, 1 + 8192 / (n + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* from = x + row * n;
        float* to = y + row * n;
        float* std_at = inv_std ? inv_std + row : nullptr;
        if (rms) {
          kernels.rms_norm_f32(n, from, scale, epsilon, to, std_at);
          if (bias) kernels.binary_f32[kFolioAdd](n, to, 1, bias, 1, to);
        } else {
          kernels.layer_norm_f32(n, from, scale, bias, epsilon, to, mean ? mean + row : nullptr,
                                 std_at);
        }
      }
    });
  }
};

}  // namespace folio
