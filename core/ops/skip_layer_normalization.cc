// SkipLayerNormalization and SkipSimplifiedLayerNormalization: a residual sum and its
// normalization.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.
// Shapes: input [B, S, H] or [T, H]; skip of input's shape, [1, S, H] or [S, H]; gamma, beta and
//         bias [H]. Output and input_skip_bias_sum have input's shape, mean and inv_std_var
//         [.., 1]. With the attribute `broadcasts` (passes/fuse_norms only; not of double, nor with
//         a bias) input and skip broadcast as Add's operands.
// Math:   sum = input + skip + bias; y = layer (or RMS) normalization of each row of sum.
// Types:  float; float16 and bfloat16 in float; double.
#include "core/ops/op_broadcast.h"
#include "core/ops/op_norm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class SkipNormalization final : public OpKernel {
 public:
  bool rms = false;
  bool broadcasts = false;
  float epsilon = 1e-12F;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* skip, run.tensor(1, x->dtype()));
    const Shape& shape = x->shape();
    if (shape.rank() != 2 && shape.rank() != 3) {
      return invalid_argument("input has shape ", shape.to_string(), ", expected 2 or 3 dims");
    }
    if (broadcasts && x->dtype() != DType::kDouble && !(shape == skip->shape())) {
      FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(shape, skip->shape()));
      return run_in<float>(run, *x, *skip, &plan);
    }
    if (!fits(shape, skip->shape())) {
      return invalid_argument("skip ", skip->shape().to_string(), " does not fit input ",
                              shape.to_string());
    }
    return x->dtype() == DType::kDouble ? run_in<double>(run, *x, *skip, nullptr)
                                        : run_in<float>(run, *x, *skip, nullptr);
  }

 private:
  // `plan`: how x and skip broadcast, or null, as it is for doubles.
  template <typename T>
  Status run_in(OpRun& run, const Tensor& x, const Tensor& skip, const BroadcastPlan* plan) const {
    const Shape shape = plan ? plan->out : x.shape();
    NormRows<T> norm;
    norm.rms = rms;
    norm.epsilon = static_cast<T>(epsilon);
    norm.n = shape[shape.rank() - 1];
    FOLIO_TRY(norm.scale, reals_of_input<T>(run, 2, norm.n));
    if (!rms) {
      FOLIO_TRY(norm.bias, optional_reals<T>(run, 3, norm.n));
    }
    FOLIO_TRY(const T* bias, optional_reals<T>(run, rms ? 3 : 4, norm.n));
    FOLIO_TRY(const auto y, RealOutput<T>::make(run, 0, x.dtype(), shape));
    FOLIO_TRY(float* mean, statistic(run, 1, shape));
    FOLIO_TRY(float* inv_std, statistic(run, 2, shape));
    FOLIO_TRY(const auto sum, RealOutput<T>::make_if_wanted(run, 3, x.dtype(), shape));
    if (shape.count() == 0) return Status::ok();
    const int64_t rows = shape.count() / norm.n;
    if constexpr (std::is_same_v<T, float>) {
      norm.mean = mean;
      norm.inv_std = inv_std;
    } else {
      FOLIO_TRY(norm.mean, scratch_reals<T>(run, 2 * rows));
      norm.inv_std = norm.mean + rows;
    }
    T* total = sum.data() ? sum.data() : y.data();
    FOLIO_TRY(const T* from, reals_of<T>(run, x));
    FOLIO_TRY(const T* added, reals_of<T>(run, skip));
    if constexpr (std::is_same_v<T, float>) {
      if (plan) add_broadcast(run, *plan, x.shape(), from, skip.shape(), added, total);
    }
    const int64_t skip_rows = std::max<int64_t>(1, skip.count() / norm.n);
    norm.run(run, rows, total, y.data(), [&](int64_t row) {
      if (plan) return;
      add_row(run.kernels(), norm.n, from + row * norm.n, added + row % skip_rows * norm.n, bias,
              total + row * norm.n);
    });
    y.finish(run);
    sum.finish(run);
    for (int64_t i = 0; std::is_same_v<T, double> && i < rows; ++i) {
      if (mean && !rms) mean[i] = static_cast<float>(norm.mean[i]);
      if (inv_std) inv_std[i] = static_cast<float>(norm.inv_std[i]);
    }
    return Status::ok();
  }

  static bool fits(const Shape& x, const Shape& skip) {
    if (x == skip) return true;
    if (x.rank() != 3) return false;
    const int lead = skip.rank() - 2;
    if (lead != 0 && !(lead == 1 && skip[0] == 1)) return false;
    return skip[lead] == x[1] && skip[lead + 1] == x[2];
  }

  static void add_broadcast(OpRun& run, const BroadcastPlan& plan, const Shape& x_shape,
                            const float* x, const Shape& skip_shape, const float* skip,
                            float* sum) {
    const auto tensor = [](const Shape& shape, const float* data) {
      return Tensor(DType::kFloat, shape, reinterpret_cast<uint8_t*>(const_cast<float*>(data)), {});
    };
    Tensor to = tensor(plan.out, sum);
    run_binary_f32(run, run.kernels().binary_f32[kFolioAdd], plan, tensor(x_shape, x),
                   tensor(skip_shape, skip), &to);
  }

  static void add_row(const FolioKernels& kernels, int64_t n, const float* x, const float* skip,
                      const float* bias, float* sum) {
    kernels.binary_f32[kFolioAdd](n, x, 1, skip, 1, sum);
    if (bias) kernels.binary_f32[kFolioAdd](n, sum, 1, bias, 1, sum);
  }
  static void add_row(const FolioKernels&, int64_t n, const double* x, const double* skip,
                      const double* bias, double* sum) {
    for (int64_t i = 0; i < n; ++i) sum[i] = x[i] + skip[i] + (bias ? bias[i] : 0);
  }

  static Result<float*> statistic(OpRun& run, int output, const Shape& x) {
    if (!run.has_output(output)) return static_cast<float*>(nullptr);
    Shape shape = x;
    shape[shape.rank() - 1] = 1;
    FOLIO_TRY(Tensor * tensor, run.output(output, DType::kFloat, shape));
    // RMS normalization has no mean.
    std::fill_n(tensor->data_mut<float>(), tensor->count(), 0.0F);
    return tensor->data_mut<float>();
  }
};

Result<bool> may_broadcast(const Attributes& attrs) {
  FOLIO_TRY(const int64_t flag, attrs.get_int("broadcasts", 0));
  return flag != 0;
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const bool broadcasts, may_broadcast(infer.attrs()));
  TypeInfo type = infer.input(0);
  if (broadcasts) {
    type = TypeInfo::tensor(infer.dtype(0));
    if (infer.dims_of(0) && infer.dims_of(1)) {
      FOLIO_TRY(type.dims, infer_broadcast(infer.table(), *infer.dims_of(0), *infer.dims_of(1)));
    }
  }
  std::optional<Dims> dims;
  if (type.has_rank() && type.rank() > 0) {
    dims = *type.dims;
    dims->back() = Dim::of(1);
  }
  infer.set_output(0, type);
  for (int i = 1; i < infer.output_count(); ++i) {
    if (i == 3) {
      infer.set_output(i, type);
    } else {
      infer.set_tensor(i, DType::kFloat, dims);
    }
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<SkipNormalization>();
  kernel->rms = build.node().op_type == "SkipSimplifiedLayerNormalization";
  FOLIO_TRY(kernel->epsilon, build.attrs().get_float("epsilon", 1e-12F));
  FOLIO_TRY(kernel->broadcasts, may_broadcast(build.attrs()));
  if (kernel->broadcasts && build.has_input(kernel->rms ? 3 : 4)) {
    return invalid_graph("a bias beside the attribute 'broadcasts'");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_skip_layer_normalization(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "SkipLayerNormalization";
  def.keeps_half = true;
  def.min_inputs = 3;
  def.max_inputs = 5;
  def.max_outputs = 4;
  def.infer = infer;
  def.make = make;
  registry.add(def);
  def.type = "SkipSimplifiedLayerNormalization";
  def.max_inputs = 4;
  registry.add(def);
}

}  // namespace folio
