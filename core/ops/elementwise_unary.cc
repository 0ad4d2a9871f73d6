// Element-wise functions of one tensor, activations included.
//
// Source: ONNX operator spec; each row below names the first opset version; later ones only added
//         types. Gelu 20, Mish 18, Swish 24, HardSwish 14, Celu 12. ONNX Runtime ContribOperators:
//         com.microsoft Gelu and QuickGelu (x * sigmoid(alpha * x)). Before 1.5, experimental
//         opset 1: Affine, ScaledTanh, ParametricSoftplus, ThresholdedRelu.
// Shapes: y has x's shape.
// Types:  float (by kernels where a slot exists), double; float16 and bfloat16 in float. Abs: also
//         integers, wrapping at the lowest value. Sign: also integers. Neg: also signed integers,
//         wrapping at the lowest value. Relu: also signed integers.
// Errors: kInvalidArgument for a type the function does not take.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kGrain = 16384;  // elements a chunk: about 10 us of the cheapest function
constexpr int kNoSlot = -1;
constexpr int kSwishSlot = -2;  // x * sigmoid(a * x) through the sigmoid kernel
// Slots of functions with parameters come after the others.
constexpr int shaped(int slot) { return kFolioUnaryCount + slot; }

// In place of a default: the attribute must be there.
constexpr float kRequired = std::numeric_limits<float>::infinity();

// Parameters as the attributes give them.
struct Params {
  float a = 0.0F;
  float b = 0.0F;
};

enum class Integers : uint8_t { kNo, kSigned, kAll };

struct Row {
  std::string_view name;
  int since;
  int slot;
  Integers integers;
  std::string_view a_name;
  float a;
  std::string_view b_name;
  float b;
  void (*f32)(int64_t n, const float* x, Params p, float* y);  // y may be x
  void (*f64)(int64_t n, const double* x, Params p, double* y);
};

// The function is known in the loop, which the compiler then vectorizes if it can.
template <typename F, typename T>
void map(int64_t n, const T* x, Params p, T* y) {
  FOLIO_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = F{}(x[i], p);
}

template <typename F>
constexpr Row row(std::string_view name, int since, int slot, F, Integers integers = Integers::kNo,
                  std::string_view a_name = "", float a = 0, std::string_view b_name = "",
                  float b = 0) {
  return {name, since, slot, integers, a_name, a, b_name, b, map<F, float>, map<F, double>};
}

// A function over float and double from one expression in x and p; T is the type of x.
#define FOLIO_FN(expression)                \
  [](auto x, [[maybe_unused]] Params p) {   \
    using T [[maybe_unused]] = decltype(x); \
    return static_cast<T>(expression);      \
  }

constexpr Row kRows[] = {
    row("Abs", 1, kFolioAbs, FOLIO_FN(std::abs(x)), Integers::kAll),
    row("Neg", 1, kFolioNeg, FOLIO_FN(-x), Integers::kSigned),
    row("Sign", 9, kFolioSign,
        FOLIO_FN(x > 0    ? T(1)
                 : x < 0  ? T(-1)
                 : x == 0 ? T(0)
                          : x),
        Integers::kAll),
    row("Exp", 1, kFolioExp, FOLIO_FN(std::exp(x))),
    row("Log", 1, kFolioLog, FOLIO_FN(std::log(x))),
    row("Sqrt", 1, kFolioSqrt, FOLIO_FN(std::sqrt(x))),
    row("Reciprocal", 1, kFolioReciprocal, FOLIO_FN(1 / x)),
    row("Floor", 1, kFolioFloor, FOLIO_FN(std::floor(x))),
    row("Ceil", 1, kFolioCeil, FOLIO_FN(std::ceil(x))),
    row("Round", 11, kFolioRound, FOLIO_FN(std::rint(x))),
    row("Erf", 9, kFolioErf, FOLIO_FN(std::erf(x)), Integers::kAll),
    row("Sin", 7, kFolioSin, FOLIO_FN(std::sin(x))),
    row("Cos", 7, kFolioCos, FOLIO_FN(std::cos(x))),
    row("Tan", 7, kFolioTan, FOLIO_FN(std::tan(x))),
    row("Asin", 7, kFolioAsin, FOLIO_FN(std::asin(x))),
    row("Acos", 7, kFolioAcos, FOLIO_FN(std::acos(x))),
    row("Atan", 7, kFolioAtan, FOLIO_FN(std::atan(x))),
    row("Sinh", 9, kFolioSinh, FOLIO_FN(std::sinh(x))),
    row("Cosh", 9, kFolioCosh, FOLIO_FN(std::cosh(x))),
    row("Asinh", 9, kFolioAsinh, FOLIO_FN(std::asinh(x))),
    row("Acosh", 9, kFolioAcosh, FOLIO_FN(std::acosh(x))),
    row("Atanh", 9, kFolioAtanh, FOLIO_FN(std::atanh(x))),
    row("Relu", 1, kFolioRelu, FOLIO_FN(x < 0 ? T(0) : x), Integers::kSigned),
    row("Tanh", 1, kFolioTanh, FOLIO_FN(std::tanh(x))),
    row("Sigmoid", 1, kFolioSigmoid, FOLIO_FN(1 / (1 + std::exp(-x)))),
    row("LeakyRelu", 1, shaped(kFolioLeakyRelu), FOLIO_FN(x < 0 ? T(p.a) * x : x), Integers::kNo,
        "alpha", 0.01F),
    row("Elu", 1, shaped(kFolioElu), FOLIO_FN(x < 0 ? T(p.a) * std::expm1(x) : x), Integers::kNo,
        "alpha", 1),
    row("Selu", 1, shaped(kFolioSelu),
        FOLIO_FN(x <= 0 ? T(p.b) * (T(p.a) * std::exp(x) - T(p.a)) : T(p.b) * x), Integers::kNo,
        "alpha", 1.67326319217681884765625F, "gamma", 1.05070102214813232421875F),
    row("Celu", 12, shaped(kFolioCelu),
        FOLIO_FN(std::max(T(0), x) + std::min(T(0), T(p.a) * std::expm1(x / T(p.a)))),
        Integers::kNo, "alpha", 1),
    row("HardSigmoid", 1, shaped(kFolioHardSigmoid),
        FOLIO_FN(std::isnan(x) ? x : std::clamp(T(p.a) * x + T(p.b), T(0), T(1))), Integers::kNo,
        "alpha", 0.2F, "beta", 0.5F),
    row("HardSwish", 14, kFolioHardSwish, FOLIO_FN(x* std::clamp(x / 6 + T(0.5), T(0), T(1)))),
    row("ThresholdedRelu", 1, shaped(kFolioThresholdedRelu), FOLIO_FN(x > T(p.a) ? x : T(0)),
        Integers::kNo, "alpha", 1),
    row("Softplus", 1, kFolioSoftplus,
        FOLIO_FN(std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x))))),
    row("Softsign", 1, kFolioSoftsign, FOLIO_FN(x / (1 + std::abs(x)))),
    row("Mish", 18, kFolioMish,
        FOLIO_FN(x* std::tanh(std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)))))),
    row("Affine", 1, shaped(kFolioAffine), FOLIO_FN(T(p.a) * x + T(p.b)), Integers::kNo, "alpha", 1,
        "beta", 0),
    row("ScaledTanh", 1, kNoSlot, FOLIO_FN(T(p.a) * std::tanh(T(p.b) * x)), Integers::kNo, "alpha",
        kRequired, "beta", kRequired),
    row("ParametricSoftplus", 1, kNoSlot,
        FOLIO_FN(T(p.a) *
                 (std::max(T(p.b) * x, T(0)) + std::log1p(std::exp(-std::abs(T(p.b) * x))))),
        Integers::kNo, "alpha", kRequired, "beta", kRequired),
    row("Swish", 24, kSwishSlot, FOLIO_FN(x / (1 + std::exp(-T(p.a) * x))), Integers::kNo, "alpha",
        1),
};

constexpr Row kQuickGelu =
    row("QuickGelu", 1, kSwishSlot, FOLIO_FN(x / (1 + std::exp(-T(p.a) * x))), Integers::kNo,
        "alpha", 1.702F);

constexpr Row kGeluErf =
    row("Gelu", 20, kFolioGeluErf, FOLIO_FN(x / 2 * (1 + std::erf(x * T(M_SQRT1_2)))));
constexpr Row kGeluTanh =
    row("Gelu", 20, kFolioGeluTanh,
        FOLIO_FN(x / 2 * (1 + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)))));
#undef FOLIO_FN

class Unary final : public OpKernel {
 public:
  const Row* row = nullptr;
  Params params;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    const int64_t count = x->count();
    switch (x->dtype()) {
      case DType::kFloat:
        floats(run, count, x->data<float>(), y->data_mut<float>());
        return Status::ok();
      case DType::kDouble:
        doubles(run, count, x->data<double>(), y->data_mut<double>());
        return Status::ok();
      case DType::kFloat16:
      case DType::kBfloat16: {
        FOLIO_TRY(float* wide, widen_half(run, *x));
        floats(run, count, wide, wide);
        narrow_half(run, wide, y);
        return Status::ok();
      }
      default:
        return integers(run, *x, y);
    }
  }

 private:
  void floats(OpRun& run, int64_t count, const float* x, float* y) const {
    const FolioKernels& kernels = run.kernels();
    int slot = row->slot;
    // The kernel's formula is for positive parameters.
    if (slot == shaped(kFolioCelu) && !(params.a > 0)) slot = kNoSlot;
    run.parallel().for_range(count, kGrain, [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      if (slot == kSwishSlot) {
        swish(kernels, n, x + begin, y + begin);
      } else if (slot >= kFolioUnaryCount) {
        kernels.shaped_f32[slot - kFolioUnaryCount](n, x + begin, params.a, params.b, y + begin);
      } else if (slot >= 0) {
        kernels.unary_f32[slot](n, x + begin, y + begin);
      } else {
        row->f32(n, x + begin, params, y + begin);
      }
    });
  }

  // Those of vectors where a loop over the C library, or without AVX, takes long.
  void doubles(OpRun& run, int64_t count, const double* x, double* y) const {
    constexpr std::pair<int, int> kSlots[] = {
        {kFolioExp, kFolioExpF64},     {kFolioLog, kFolioLogF64},
        {kFolioTanh, kFolioTanhF64},   {kFolioSigmoid, kFolioSigmoidF64},
        {kFolioFloor, kFolioFloorF64}, {kFolioCeil, kFolioCeilF64},
        {kFolioRound, kFolioRoundF64}};
    FolioUnaryF64 kernel = nullptr;
    for (const auto& [slot, of_doubles] : kSlots) {
      if (slot == row->slot) kernel = run.kernels().unary_f64[of_doubles];
    }
    run.parallel().for_range(count, kGrain / 4, [&](int64_t begin, int64_t end) {
      if (kernel) return kernel(end - begin, x + begin, y + begin);
      row->f64(end - begin, x + begin, params, y + begin);
    });
  }

  // y may be x.
  void swish(const FolioKernels& kernels, int64_t count, const float* x, float* y) const {
    constexpr int64_t kPart = 512;
    float part[kPart];
    for (int64_t at = 0; at < count; at += kPart) {
      const int64_t n = std::min(kPart, count - at);
      kernels.binary_f32[kFolioMul](n, x + at, 1, &params.a, 0, part);
      kernels.unary_f32[kFolioSigmoid](n, part, part);
      kernels.binary_f32[kFolioMul](n, x + at, 1, part, 1, y + at);
    }
  }

  Status integers(OpRun& run, const Tensor& x, Tensor* y) const {
    bool done = false;
    const auto body = [&](auto tag) {
      using T = typename decltype(tag)::type;
      using U = std::make_unsigned_t<T>;
      const auto each = [&](auto f) {
        run.parallel().for_range(x.count(), kGrain, [&](int64_t begin, int64_t end) {
          const T* from = x.data<T>();
          T* to = y->data_mut<T>();
          FOLIO_IVDEP
          for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
        });
      };
      // Those below 0 with all bits turned, and one more.
      const auto absolute = [](T v) {
        const T sign = std::is_signed_v<T> ? static_cast<T>(v >> (sizeof(T) * 8 - 1)) : T{0};
        return static_cast<T>(static_cast<U>(v ^ sign) - static_cast<U>(sign));
      };
      switch (row->slot) {
        case kFolioSign:
          each([](T v) { return static_cast<T>((v > 0) - (v < 0)); });
          break;
        case kFolioNeg:
          each([](T v) { return static_cast<T>(static_cast<U>(0) - static_cast<U>(v)); });
          break;
        case kFolioRelu:
          each([](T v) { return v < 0 ? T{0} : v; });
          break;
        case kFolioErf:  // truncated as Cast does: 1 where erf rounds to it, from 6 on
          each([](T v) { return static_cast<T>(std::erf(static_cast<double>(v))); });
          break;
        default:
          each(absolute);
          break;
      }
      done = true;
    };
    if (row->integers != Integers::kNo) dispatch(SignedTypes{}, x.dtype(), body);
    if (row->integers == Integers::kAll) dispatch(UnsignedTypes{}, x.dtype(), body);
    return done ? Status::ok() : wrong_type(0, x.dtype());
  }
};

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<float> parameter(const Attributes& attrs, std::string_view name, float fallback) {
  return fallback == kRequired ? attrs.get_float(name) : attrs.get_float(name, fallback);
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Unary>();
  const std::string& type = build.node().op_type;
  if (type == "Gelu") {
    FOLIO_TRY(const std::string approximate, build.attrs().get_string("approximate", "none"));
    if (approximate != "none" && approximate != "tanh") {
      return invalid_graph("attribute 'approximate' is '", approximate, "', expected none or tanh");
    }
    kernel->row = approximate == "tanh" ? &kGeluTanh : &kGeluErf;
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  for (const Row& each : kRows) {
    if (each.name == type) kernel->row = &each;
  }
  if (type == kQuickGelu.name) kernel->row = &kQuickGelu;
  const Row& found = *kernel->row;
  if (!found.a_name.empty()) {
    FOLIO_TRY(kernel->params.a, parameter(build.attrs(), found.a_name, found.a));
  }
  if (!found.b_name.empty()) {
    FOLIO_TRY(kernel->params.b, parameter(build.attrs(), found.b_name, found.b));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_elementwise_unary(OpRegistry& registry) {
  OpDef def;
  def.elementwise = true;
  def.infer = infer;
  def.make = make;
  for (const Row& each : kRows) {
    def.type = each.name;
    def.since = each.since;
    registry.add(def);
  }
  def.type = "Gelu";
  def.since = 20;
  def.keeps_half = true;
  registry.add(def);
  def.domain = "com.microsoft";
  def.keeps_half = false;
  def.since = 1;
  registry.add(def);
  def.type = kQuickGelu.name;
  registry.add(def);
}

}  // namespace folio
