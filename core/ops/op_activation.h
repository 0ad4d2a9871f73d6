// Activation: a function by name with its parameters, applied to rows in place; what recurrent
// layers and fused convolutions and products share.
//
// Source:  ONNX operator spec, LSTM: table of activation functions; com.microsoft FusedConv adds
//          Clip(x) = min(max(x, alpha), beta), FusedGemm Celu, ParametricSoftplus(x) =
//          alpha * Softplus(beta * x) and Selu, whose gamma stands in beta; fuse_activations.cc
//          further Swish(x) = x * sigmoid(alpha * x), HardSwish, Gelu (by erf) and GeluTanh.
// Owns:    plain values.
// Errors:  kInvalidGraph for a name that is not in the table.
#pragma once

#include <string>
#include <vector>

#include "core/ops/op.h"

namespace folio {

struct Activation {
  enum class Kind : uint8_t {
    kIdentity,
    kSigmoid,
    kTanh,
    kRelu,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus,
    kCelu,
    kSelu,
    kParametricSoftplus,
    kClip,
    kSwish,
    kHardSwish,
    kGelu,
    kGeluTanh,
  };
  Kind kind = Kind::kIdentity;
  float alpha = 0.0F;
  float beta = 0.0F;

  bool takes_alpha() const;
  bool takes_beta() const;
  // In place over a row.
  void apply(const FolioKernels& kernels, int64_t n, float* x) const;
  // Over rows of n, `stride` floats apart.
  void apply_rows(const FolioKernels& kernels, int64_t rows, int64_t n, float* x,
                  int64_t stride) const;
  // Of one double.
  double of(double v) const;
  // Lets a kernel itself apply it, a product, a filter or a plane's filter: false when it cannot.
  template <typename Args>
  bool set_in_kernel(Args* args) const {
    if (kind == Kind::kRelu) args->activation = kFolioActRelu;
    if (kind == Kind::kClip) {
      args->activation = kFolioActClip;
      args->clip_lo = alpha;
      args->clip_hi = beta;
    }
    if (kind == Kind::kLeakyRelu) {
      args->activation = kFolioActLeakyRelu;
      args->clip_lo = alpha;
    }
    return kind == Kind::kIdentity || kind == Kind::kRelu || kind == Kind::kClip ||
           kind == Kind::kLeakyRelu;
  }
};

// The function of this name (case does not matter) with the spec's default parameters.
Result<Activation> find_activation(std::string_view name);

// The attribute `activation` of fused operators (absent: none); `parameters` are alpha and beta.
Result<Activation> parse_fused_activation(const Attributes& attrs,
                                          const std::vector<float>& parameters);

}  // namespace folio
