#include "core/ops/op_activation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace folio {
namespace {

using Kind = Activation::Kind;

struct ActivationRow {
  std::string_view name;
  Kind kind;
  float alpha;  // the spec's defaults
  float beta;
};

constexpr ActivationRow kActivations[] = {
    {"Sigmoid", Kind::kSigmoid, 0, 0},
    {"Tanh", Kind::kTanh, 0, 0},
    {"Relu", Kind::kRelu, 0, 0},
    {"Affine", Kind::kAffine, 1.0F, 0},
    {"LeakyRelu", Kind::kLeakyRelu, 0.01F, 0},
    {"ThresholdedRelu", Kind::kThresholdedRelu, 1.0F, 0},
    {"ScaledTanh", Kind::kScaledTanh, 1.0F, 1.0F},
    {"HardSigmoid", Kind::kHardSigmoid, 0.2F, 0.5F},
    {"Elu", Kind::kElu, 1.0F, 0},
    {"Softsign", Kind::kSoftsign, 0, 0},
    {"Softplus", Kind::kSoftplus, 0, 0},
    {"Celu", Kind::kCelu, 1.0F, 0},
    {"Selu", Kind::kSelu, 1.67326319217681884765625F, 1.05070102214813232421875F},
    {"ParametricSoftplus", Kind::kParametricSoftplus, 1.0F, 1.0F},
    {"Clip", Kind::kClip, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()},
    {"Swish", Kind::kSwish, 1.0F, 0},
    {"HardSwish", Kind::kHardSwish, 0, 0},
    {"Gelu", Kind::kGelu, 0, 0},
    {"GeluTanh", Kind::kGeluTanh, 0, 0},
};

// x * sigmoid(alpha * x).
void swish(const FolioKernels& kernels, int64_t n, float alpha, float* x) {
  if (alpha == 1.0F) return kernels.unary_f32[kFolioSilu](n, x, x);
  constexpr int64_t kPart = 512;
  float part[kPart];
  for (int64_t at = 0; at < n; at += kPart) {
    const int64_t count = std::min(kPart, n - at);
    float* y = x + at;
    kernels.binary_f32[kFolioMul](count, y, 1, &alpha, 0, part);
    kernels.unary_f32[kFolioSigmoid](count, part, part);
    kernels.binary_f32[kFolioMul](count, y, 1, part, 1, y);
  }
}

double softplus(double v) { return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v)); }

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

bool Activation::takes_alpha() const {
  return kind == Kind::kAffine || kind == Kind::kLeakyRelu || kind == Kind::kThresholdedRelu ||
         kind == Kind::kScaledTanh || kind == Kind::kHardSigmoid || kind == Kind::kElu ||
         kind == Kind::kCelu || kind == Kind::kSelu || kind == Kind::kParametricSoftplus ||
         kind == Kind::kClip || kind == Kind::kSwish;
}

bool Activation::takes_beta() const {
  return kind == Kind::kAffine || kind == Kind::kScaledTanh || kind == Kind::kHardSigmoid ||
         kind == Kind::kSelu || kind == Kind::kParametricSoftplus || kind == Kind::kClip;
}

void Activation::apply_rows(const FolioKernels& kernels, int64_t rows, int64_t n, float* x,
                            int64_t stride) const {
  if (n == stride) return apply(kernels, rows * n, x);
  for (int64_t i = 0; i < rows; ++i) apply(kernels, n, x + i * stride);
}

void Activation::apply(const FolioKernels& kernels, int64_t n, float* x) const {
  switch (kind) {
    case Kind::kIdentity:
      return;
    case Kind::kSigmoid:
      return kernels.unary_f32[kFolioSigmoid](n, x, x);
    case Kind::kTanh:
      return kernels.unary_f32[kFolioTanh](n, x, x);
    case Kind::kRelu:
      return kernels.unary_f32[kFolioRelu](n, x, x);
    case Kind::kSoftplus:
      return kernels.unary_f32[kFolioSoftplus](n, x, x);
    case Kind::kClip:
      return kernels.clip_f32(n, x, alpha, beta, x);
    case Kind::kSwish:
      return swish(kernels, n, alpha, x);
    case Kind::kHardSwish:
      return kernels.unary_f32[kFolioHardSwish](n, x, x);
    case Kind::kGelu:
      return kernels.unary_f32[kFolioGeluErf](n, x, x);
    case Kind::kGeluTanh:
      return kernels.unary_f32[kFolioGeluTanh](n, x, x);
    case Kind::kAffine:
      return kernels.shaped_f32[kFolioAffine](n, x, alpha, beta, x);
    case Kind::kLeakyRelu:
      return kernels.shaped_f32[kFolioLeakyRelu](n, x, alpha, beta, x);
    case Kind::kThresholdedRelu:
      return kernels.shaped_f32[kFolioThresholdedRelu](n, x, alpha, beta, x);
    case Kind::kHardSigmoid:
      return kernels.shaped_f32[kFolioHardSigmoid](n, x, alpha, beta, x);
    case Kind::kElu:
      return kernels.shaped_f32[kFolioElu](n, x, alpha, beta, x);
    case Kind::kCelu:
      return kernels.shaped_f32[kFolioCelu](n, x, alpha, beta, x);
    case Kind::kSelu:
      return kernels.shaped_f32[kFolioSelu](n, x, alpha, beta, x);
    case Kind::kSoftsign:
      return kernels.unary_f32[kFolioSoftsign](n, x, x);
    case Kind::kScaledTanh:
      kernels.binary_f32[kFolioMul](n, x, 1, &beta, 0, x);
      kernels.unary_f32[kFolioTanh](n, x, x);
      return kernels.binary_f32[kFolioMul](n, x, 1, &alpha, 0, x);
    case Kind::kParametricSoftplus:
      kernels.binary_f32[kFolioMul](n, x, 1, &beta, 0, x);
      kernels.unary_f32[kFolioSoftplus](n, x, x);
      return kernels.binary_f32[kFolioMul](n, x, 1, &alpha, 0, x);
  }
}

double Activation::of(double v) const {
  const auto a = static_cast<double>(alpha);
  const auto b = static_cast<double>(beta);
  switch (kind) {
    case Kind::kIdentity:
      return v;
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-v));
    case Kind::kTanh:
      return std::tanh(v);
    case Kind::kRelu:
      return v < 0 ? 0 : v;
    case Kind::kAffine:
      return a * v + b;
    case Kind::kLeakyRelu:
      return v < 0 ? a * v : v;
    case Kind::kThresholdedRelu:
      return v > a ? v : 0;
    case Kind::kScaledTanh:
      return a * std::tanh(b * v);
    case Kind::kHardSigmoid:
      return std::clamp(a * v + b, 0.0, 1.0);
    case Kind::kElu:
      return v < 0 ? a * std::expm1(v) : v;
    case Kind::kSoftsign:
      return v / (1 + std::abs(v));
    case Kind::kSoftplus:
      return softplus(v);
    case Kind::kCelu:
      return std::max(0.0, v) + std::min(0.0, a * std::expm1(v / a));
    case Kind::kSelu:
      return b * (v <= 0 ? a * std::expm1(v) : v);
    case Kind::kParametricSoftplus:
      return a * softplus(b * v);
    case Kind::kClip:
      return std::clamp(v, a, std::max(a, b));
    case Kind::kSwish:
      return v / (1 + std::exp(-a * v));
    case Kind::kHardSwish:
      return v * std::clamp(v / 6 + 0.5, 0.0, 1.0);
    case Kind::kGelu:
      return v / 2 * (1 + std::erf(v * M_SQRT1_2));
    case Kind::kGeluTanh:
      return v / 2 * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  }
  return v;
}

Result<Activation> find_activation(std::string_view name) {
  for (const ActivationRow& row : kActivations) {
    if (same_name(row.name, name)) return Activation{row.kind, row.alpha, row.beta};
  }
  return invalid_graph("unknown activation '", name, "'");
}

Result<Activation> parse_fused_activation(const Attributes& attrs,
                                          const std::vector<float>& parameters) {
  FOLIO_TRY(const std::string name, attrs.get_string("activation", ""));
  if (name.empty()) return Activation{};
  FOLIO_TRY(Activation activation, find_activation(name));
  if (!parameters.empty()) activation.alpha = parameters[0];
  if (parameters.size() > 1) activation.beta = parameters[1];
  return activation;
}

}  // namespace folio
