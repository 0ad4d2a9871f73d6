// What LRN shares, channels first or last.
//
// Owns:    plain numbers.
#pragma once

#include <algorithm>

#include "core/ops/op.h"

namespace folio {

struct LrnAttrs {
  int64_t size = 1;
  float alpha = 0.0001F;
  float beta = 0.75F;
  float bias = 1.0F;

  // Neighbours of a channel that may be there.
  int64_t before(int64_t channels) const { return std::min((size - 1) / 2, channels); }
  int64_t after(int64_t channels) const { return std::min(size - 1 - (size - 1) / 2, channels); }

  // y = y^beta; 3/4, which all models have, by square roots.
  void raise(const FolioKernels& kernels, int64_t n, float* y) const {
    if (beta != 0.75F) {
      kernels.binary_f32[kFolioPow](n, y, 1, &beta, 0, y);
      return;
    }
    constexpr int64_t kPart = 256;
    float roots[kPart];
    for (int64_t i = 0; i < n; i += kPart) {
      const int64_t count = std::min(kPart, n - i);
      kernels.unary_f32[kFolioSqrt](count, y + i, y + i);
      kernels.unary_f32[kFolioSqrt](count, y + i, roots);
      kernels.binary_f32[kFolioMul](count, y + i, 1, roots, 1, y + i);
    }
  }
};

inline Result<LrnAttrs> parse_lrn(const Attributes& attributes) {
  LrnAttrs out;
  FOLIO_TRY(out.size, attributes.get_int("size"));
  if (out.size < 1) {
    return invalid_graph("attribute 'size' is ", out.size, ", expected >= 1");
  }
  FOLIO_TRY(out.alpha, attributes.get_float("alpha", out.alpha));
  FOLIO_TRY(out.beta, attributes.get_float("beta", out.beta));
  FOLIO_TRY(out.bias, attributes.get_float("bias", out.bias));
  return out;
}

inline Status infer_lrn(OpInfer& infer) {
  if (infer.input(0).is_tensor()) infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace folio
