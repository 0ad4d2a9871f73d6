// Activations and sums with a bias over the last dim, as graph optimizers fuse them.
//
// Source: ONNX Runtime ContribOperators, com.microsoft: BiasGelu, FastGelu (bias optional),
//         BiasAdd, BiasSplitGelu.
// Shapes: X [.., C], bias [C], Y X's shape; BiasSplitGelu: Y [.., C / 2].
// Math:   t = X + bias. BiasGelu: gelu(t) with erf; FastGelu: with tanh; BiasAdd: t + skip;
//         BiasSplitGelu: the first half of t times gelu of the second.
// Types:  BiasGelu, FastGelu: float; float16 and bfloat16 in float; double by loops. BiasAdd,
//         BiasSplitGelu: float; float16 and bfloat16 in float.
#include <algorithm>
#include <cmath>

#include "core/ops/op_real.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kGrain = 16384;                 // elements a task
constexpr double kTanhGelu = 0.7978845608028654;  // the root of 2 / pi

enum class Fused { kGelu, kFastGelu, kAdd, kSplitGelu };

class BiasActivation final : public OpKernel {
 public:
  Fused fused = Fused::kGelu;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    Shape shape = x->shape();
    if (shape.rank() == 0) return invalid_argument("X is a scalar, expected 1 dim at least");
    const int64_t n = shape[shape.rank() - 1];
    const bool is_gelu = fused == Fused::kGelu || fused == Fused::kFastGelu;
    if (is_gelu && x->dtype() == DType::kDouble) return run_doubles(run, *x, n);
    FOLIO_TRY(const float* x32, floats_of(run, *x));
    const float* skip = nullptr;
    FOLIO_TRY(const float* bias, optional_reals<float>(run, 1, n));
    if (fused == Fused::kAdd) {
      FOLIO_TRY(skip, floats_of_input(run, 2, x->count()));
    }
    const bool split = fused == Fused::kSplitGelu;
    if (split && n % 2 != 0) return invalid_argument("the last dim ", n, " is odd");
    if (split) shape[shape.rank() - 1] = n / 2;
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, x->dtype(), shape));
    if (y.count() == 0) return Status::ok();
    const int64_t rows = x->count() / n;
    if (split) {
      FOLIO_RETURN_IF_ERROR(split_gelu(run, rows, n, x32, bias, y.data()));
    } else {
      whole_rows(run, rows, n, x32, bias, skip, y.data());
    }
    y.finish(run);
    return Status::ok();
  }

 private:
  Status run_doubles(OpRun& run, const Tensor& x, int64_t n) const {
    FOLIO_TRY(const double* bias, optional_reals<double>(run, 1, n));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kDouble, x.shape()));
    const auto* const from = x.data<double>();
    auto* const to = y->data_mut<double>();
    const bool by_tanh = fused == Fused::kFastGelu;
    run.parallel().for_range(x.count(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double t = bias ? from[i] + bias[i % n] : from[i];
        const double part =
            by_tanh ? std::tanh(kTanhGelu * (t + 0.044715 * t * t * t)) : std::erf(t * M_SQRT1_2);
        to[i] = t / 2 * (1 + part);
      }
    });
    return Status::ok();
  }

  void whole_rows(OpRun& run, int64_t rows, int64_t n, const float* x, const float* bias,
                  const float* skip, float* y) const {
    const FolioKernels& kernels = run.kernels();
    const auto add = kernels.binary_f32[kFolioAdd];
    const auto gelu = kernels.unary_f32[fused == Fused::kFastGelu ? kFolioGeluTanh : kFolioGeluErf];
    run.parallel().for_range(rows, 1 + kGrain / n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* from = x + row * n;
        float* to = y + row * n;
        if (bias) {
          add(n, from, 1, bias, 1, to);
          from = to;
        }
        if (skip) {
          add(n, from, 1, skip + row * n, 1, to);
        } else {
          gelu(n, from, to);
        }
      }
    });
  }

  static Status split_gelu(OpRun& run, int64_t rows, int64_t n, const float* x, const float* bias,
                           float* y) {
    const FolioKernels& kernels = run.kernels();
    const auto add = kernels.binary_f32[kFolioAdd];
    const int64_t half = n / 2;
    FOLIO_TRY(float* left, scratch_floats(run, rows * half));
    run.parallel().for_range(rows, 1 + kGrain / n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        float* to = y + row * half;
        float* kept = left + row * half;
        add(half, x + row * n, 1, bias, 1, kept);
        add(half, x + row * n + half, 1, bias + half, 1, to);
        kernels.unary_f32[kFolioGeluErf](half, to, to);
        kernels.binary_f32[kFolioMul](half, to, 1, kept, 1, to);
      }
    });
    return Status::ok();
  }
};

Status infer_same(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Status infer_split(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> dims;
  if (x && !x->empty()) {
    dims = *x;
    dims->back() = infer.table().floor_div(dims->back(), Dim::of(2));
  }
  infer.set_tensor(0, infer.dtype(0), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<BiasActivation>();
  const std::string& type = build.node().op_type;
  if (type == "FastGelu") kernel->fused = Fused::kFastGelu;
  if (type == "BiasAdd") kernel->fused = Fused::kAdd;
  if (type == "BiasSplitGelu") kernel->fused = Fused::kSplitGelu;
  const bool optional = kernel->fused == Fused::kFastGelu;
  if (!optional && !build.has_input(1)) return invalid_graph("input 1, the bias, is absent");
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_bias_gelu(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.infer = infer_same;
  def.make = make;
  def.type = "FastGelu";
  def.min_inputs = 1;
  def.max_inputs = 2;
  registry.add(def);
  def.type = "BiasGelu";
  def.min_inputs = 2;
  registry.add(def);
  def.type = "BiasSplitGelu";
  def.infer = infer_split;
  registry.add(def);
  def.type = "BiasAdd";
  def.infer = infer_same;
  def.min_inputs = def.max_inputs = 3;
  registry.add(def);
}

}  // namespace folio
