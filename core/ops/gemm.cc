// General matrix product: y = alpha * A' * B' + beta * C.
//
// Source: ONNX operator spec, Gemm, opsets 1, 6 (broadcast attribute), 7, 9, 11 (C optional), 13;
//         com.microsoft FusedGemm: activation, activation_alpha, activation_beta,
//         activation_gamma; parameters that are absent are the function's own defaults (ONNX
//         Runtime wants all of them).
// Shapes: A' [m, k] (A transposed when transA), B' [k, n], C broadcasts to [m, n] one way.
// Types:  Gemm: float by kernels; float16 and bfloat16 in float; double, (u)int32, (u)int64
//         (alpha and beta as the element type). FusedGemm: float by kernels; float16 and bfloat16
//         in float; double.
// Errors: kInvalidArgument when ranks are not 2, k differs, or C does not broadcast.
#include <algorithm>
#include <cmath>

#include "core/ops/op_activation.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_product.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct GemmSizes {
  int64_t m, n, k;
};

class Gemm final : public OpKernel {
 public:
  float alpha = 1.0F;
  float beta = 1.0F;
  bool trans_a = false;
  bool trans_b = false;
  bool fused = false;
  bool has_half_b = false;
  bool unpacked = false;  // see GemmB
  Activation activation;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    FOLIO_TRY(const Tensor* b, weights_input(run, 1, a->dtype(), has_half_b));
    FOLIO_TRY(const Tensor* c, run.optional_tensor(2, a->dtype()));
    if (fused && !contains(FloatTypes{}, a->dtype())) return wrong_type(0, a->dtype());
    FOLIO_TRY(const GemmSizes s, sizes(*a, *b, c));
    FOLIO_TRY(Tensor * y, run.output(0, a->dtype(), Shape{s.m, s.n}));
    switch (a->dtype()) {
      case DType::kFloat:
        return run_f32(run, s, a->data<float>(), Operands::kFloats, *b,
                       c ? c->data<float>() : nullptr, c, y->data_mut<float>());
      case DType::kFloat16:
      case DType::kBfloat16:
        return run_in_float(run, *a, c, y, [&](const float* a32, const float* c32, float* y32) {
          return run_f32(run, s, a32, operands_of(*a, *b), *b, c32, c, y32);
        });
      case DType::kDouble:
        return run_numbers<double>(run, s, *a, *b, c, y);
      case DType::kInt32:
      case DType::kUint32:
        return run_numbers<uint32_t>(run, s, *a, *b, c, y);
      case DType::kInt64:
      case DType::kUint64:
        return run_numbers<uint64_t>(run, s, *a, *b, c, y);
      default:
        return not_implemented("Gemm of ", dtype_name(a->dtype()));
    }
  }

 private:
  Result<GemmSizes> sizes(const Tensor& a, const Tensor& b, const Tensor* c) const {
    if (a.rank() != 2 || b.rank() != 2) {
      return invalid_argument("A ", a.shape().to_string(), " and B ", b.shape().to_string(),
                              " must have 2 dims");
    }
    const GemmSizes s{a.dim(trans_a ? 1 : 0), b.dim(trans_b ? 0 : 1), a.dim(trans_a ? 0 : 1)};
    if (s.k != b.dim(trans_b ? 1 : 0)) {
      return invalid_argument("A ", a.shape().to_string(), " and B ", b.shape().to_string(),
                              " do not match: k is ", s.k, " and ", b.dim(trans_b ? 1 : 0));
    }
    if (c) {
      const Shape out{s.m, s.n};
      auto both = broadcast(c->shape(), out);
      if (!both.is_ok() || !(both.value() == out)) {
        return invalid_argument("C ", c->shape().to_string(), " does not broadcast to ",
                                out.to_string());
      }
    }
    return s;
  }

  // Strides of C as [m, n], 0 where it is broadcast.
  static std::pair<int64_t, int64_t> c_strides(const Tensor& c) {
    const int rank = c.rank();
    const int64_t cols = rank > 0 ? c.dim(rank - 1) : 1;
    const int64_t rows = rank > 1 ? c.dim(rank - 2) : 1;
    return {rows > 1 ? cols : 0, cols > 1 ? 1 : 0};
  }

  Status run_f32(OpRun& run, const GemmSizes& s, const float* a, Operands operands, const Tensor& b,
                 const float* c, const Tensor* c_tensor, float* y) const {
    FolioGemmF32 args{};
    args.m = s.m;
    args.n = s.n;
    args.k = s.k;
    args.a = a;
    args.a_row_stride = trans_a ? 1 : s.k;
    args.a_col_stride = trans_a ? s.m : 1;
    args.c = y;
    args.c_row_stride = s.n;
    args.alpha = alpha;
    GemmB plain;
    plain.dtype = b.dtype();
    plain.operands = operands;
    plain.unpacked = unpacked;
    plain.data = b.raw();
    plain.row_stride = trans_b ? 1 : s.n;
    plain.col_stride = trans_b ? s.k : 1;
    plain.set_packed(run.packed(1));
    const bool has_c = c && beta != 0.0F;
    const auto [row_step, col_step] = has_c ? c_strides(*c_tensor) : std::pair<int64_t, int64_t>{};
    // A bias per column, the usual case, is added inside the kernel.
    const bool in_kernel = has_c && row_step == 0 && col_step == 1 && beta == 1.0F;
    if (in_kernel) args.col_bias = c;
    const bool is_finished = (!has_c || in_kernel) && activation.set_in_kernel(&args);
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, plain));
    if (has_c && !in_kernel && s.n > 0) {
      for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; ++j) {
          y[i * s.n + j] += beta * c[i * row_step + j * col_step];
        }
      }
    }
    if (is_finished) return Status::ok();
    run.parallel().for_range(s.m * s.n, kElementGrain, [&](int64_t begin, int64_t end) {
      activation.apply(run.kernels(), end - begin, y + begin);
    });
    return Status::ok();
  }

  // T: double or unsigned integers, whose arithmetic wraps. Of integers only whole factors have a
  // meaning.
  template <typename T>
  static T scaled(float factor, T value) {
    if constexpr (std::is_integral_v<T>) {
      const double bounded = std::clamp<double>(std::isnan(factor) ? 0.0 : factor, -9e18, 9e18);
      return static_cast<T>(static_cast<int64_t>(bounded)) * value;
    } else {
      return static_cast<T>(factor) * value;
    }
  }

  template <typename T>
  Status run_numbers(OpRun& run, const GemmSizes& s, const Tensor& a, const Tensor& given_b,
                     const Tensor* c, Tensor* y) const {
    FOLIO_TRY(const Tensor b, aligned(given_b));
    T* out = y->data_mut<T>();
    NumberProduct<T> product;
    product.m = s.m;
    product.n = s.n;
    product.k = s.k;
    product.a = a.data<T>();
    product.a_row = trans_a ? 1 : s.k;
    product.a_col = trans_a ? s.m : 1;
    product.b = b.data<T>();
    product.b_row = trans_b ? 1 : s.n;
    product.b_col = trans_b ? s.k : 1;
    product.y = out;
    if constexpr (std::is_same_v<T, double>) product.alpha = double{alpha};
    FOLIO_RETURN_IF_ERROR(multiply_numbers(run, product));
    const T* c_data = c ? c->data<T>() : nullptr;
    const bool has_function = activation.kind != Activation::Kind::kIdentity;
    const bool scales = !std::is_same_v<T, double> && alpha != 1.0F;
    if (s.n == 0 || (!c_data && !scales && !has_function)) return Status::ok();
    // Not a structured binding: clang 14 lets no lambda have one.
    const auto steps = c ? c_strides(*c) : std::pair<int64_t, int64_t>{};
    const int64_t grain = 1 + kElementGrain / std::max<int64_t>(1, s.n);
    run.parallel().for_range(s.m, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* row = out + i * s.n;
        const T* bias = c_data ? c_data + i * steps.first : nullptr;
        for (int64_t j = 0; scales && j < s.n; ++j) row[j] = scaled(alpha, row[j]);
        if (bias && steps.second == 1) {
          FOLIO_IVDEP
          for (int64_t j = 0; j < s.n; ++j) row[j] += scaled(beta, bias[j]);
        } else if (bias) {
          const T each = scaled(beta, *bias);
          for (int64_t j = 0; j < s.n; ++j) row[j] += each;
        }
        if constexpr (std::is_same_v<T, double>) {
          for (int64_t j = 0; has_function && j < s.n; ++j) row[j] = activation.of(row[j]);
        }
      }
    });
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t trans_a, infer.attrs().get_int("transA", 0));
  FOLIO_TRY(const int64_t trans_b, infer.attrs().get_int("transB", 0));
  const Dims* a = infer.dims_of(0);
  const Dims* b = infer.dims_of(1);
  Dims out(2, Dim::unknown());
  for (const Dims* dims : {a, b}) {
    if (dims && dims->size() != 2) return invalid_graph("A and B must have 2 dims");
  }
  if (a) out[0] = (*a)[trans_a != 0 ? 1 : 0];
  if (b) out[1] = (*b)[trans_b != 0 ? 0 : 1];
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<Activation> parse_fused_gemm(const Attributes& attrs) {
  FOLIO_TRY(Activation activation, parse_fused_activation(attrs, {}));
  FOLIO_TRY(activation.alpha, attrs.get_float("activation_alpha", activation.alpha));
  // Of Selu the second one is called gamma.
  const bool has_gamma = activation.kind == Activation::Kind::kSelu;
  const char* const second = has_gamma ? "activation_gamma" : "activation_beta";
  FOLIO_TRY(activation.beta, attrs.get_float(second, activation.beta));
  return activation;
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Gemm>();
  FOLIO_TRY(kernel->alpha, build.attrs().get_float("alpha", 1.0F));
  FOLIO_TRY(kernel->beta, build.attrs().get_float("beta", 1.0F));
  FOLIO_TRY(const int64_t trans_a, build.attrs().get_int("transA", 0));
  FOLIO_TRY(const int64_t trans_b, build.attrs().get_int("transB", 0));
  kernel->trans_a = trans_a != 0;
  kernel->trans_b = trans_b != 0;
  kernel->fused = build.node().op_type == "FusedGemm";
  if (kernel->fused) {
    FOLIO_TRY(kernel->activation, parse_fused_gemm(build.attrs()));
  }
  kernel->has_half_b = has_half_weights(build.attrs());
  kernel->unpacked = request_matrix(build, 1, kernel->trans_a, kernel->trans_b);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_gemm(OpRegistry& registry) {
  OpDef def;
  def.type = "Gemm";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.infer = infer;
  def.make = make;
  def.one_type = 0b111;
  def.unaligned_inputs = 1U << 1;
  def.takes_half = takes_half_matrix;
  registry.add(def);
  def.domain = "com.microsoft";
  def.type = "FusedGemm";
  registry.add(def);
}

}  // namespace folio
