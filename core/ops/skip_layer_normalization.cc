// SkipLayerNormalization and SkipSimplifiedLayerNormalization: a residual sum and its
// normalization.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.
// Shapes: input [B, S, H] or [T, H]; skip of input's shape, [1, S, H] or [S, H]; gamma, beta and
//         bias [H]. Output and input_skip_bias_sum have input's shape, mean and inv_std_var
//         [.., 1].
// Math:   sum = input + skip + bias; y = layer (or RMS) normalization of each row of sum.
// Types:  float; float16 and bfloat16 in float; double.
#include "core/ops/op_double.h"
#include "core/ops/op_norm.h"
#include "core/ops/op_norm_double.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class SkipNormalization final : public OpKernel {
 public:
  bool rms = false;
  float epsilon = 1e-12F;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* skip, run.tensor(1, x->dtype()));
    const Shape& shape = x->shape();
    if (shape.rank() != 2 && shape.rank() != 3) {
      return invalid_argument("input has shape ", shape.to_string(), ", expected 2 or 3 dims");
    }
    if (!fits(shape, skip->shape())) {
      return invalid_argument("skip ", skip->shape().to_string(), " does not fit input ",
                              shape.to_string());
    }
    if (x->dtype() == DType::kDouble) return run_double(run, *x, *skip);
    NormRows norm;
    norm.rms = rms;
    norm.epsilon = epsilon;
    norm.n = shape[shape.rank() - 1];
    FOLIO_TRY(norm.scale, floats_of_input(run, 2, norm.n));
    if (!rms && run.has_input(3)) {
      FOLIO_TRY(norm.bias, floats_of_input(run, 3, norm.n));
    }
    const int bias_input = rms ? 3 : 4;
    const float* bias = nullptr;
    if (run.has_input(bias_input)) {
      FOLIO_TRY(bias, floats_of_input(run, bias_input, norm.n));
    }
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, x->dtype(), shape));
    FOLIO_TRY(norm.mean, statistic(run, 1, shape));
    FOLIO_TRY(norm.inv_std, statistic(run, 2, shape));
    FloatOutput sum;
    if (run.has_output(3)) {
      FOLIO_TRY(sum, FloatOutput::make(run, 3, x->dtype(), shape));
    }
    if (x->count() == 0) return Status::ok();
    float* total = run.has_output(3) ? sum.data() : y.data();
    FOLIO_TRY(const float* x32, floats_of(run, *x));
    FOLIO_TRY(const float* skip32, floats_of(run, *skip));
    const int64_t rows = x->count() / norm.n;
    add_rows(run, norm.n, rows, x32, skip32, skip->count() / norm.n, bias, total);
    norm.run(run, rows, total, y.data());
    y.finish(run);
    sum.finish(run);
    return Status::ok();
  }

 private:
  Status run_double(OpRun& run, const Tensor& x, const Tensor& skip) const {
    const Shape& shape = x.shape();
    NormRowsF64 norm;
    norm.rms = rms;
    norm.epsilon = static_cast<double>(epsilon);
    norm.n = shape[shape.rank() - 1];
    FOLIO_TRY(norm.scale, doubles_of_input(run, 2, norm.n));
    if (!rms) {
      FOLIO_TRY(norm.bias, doubles_of_input(run, 3, norm.n));
    }
    FOLIO_TRY(const double* bias, doubles_of_input(run, rms ? 3 : 4, norm.n));
    FOLIO_TRY(const DoubleOutput y, DoubleOutput::make(run, 0, x.dtype(), shape));
    FOLIO_TRY(float* mean, statistic(run, 1, shape));
    FOLIO_TRY(float* inv_std, statistic(run, 2, shape));
    DoubleOutput sum;
    if (run.has_output(3)) {
      FOLIO_TRY(sum, DoubleOutput::make(run, 3, x.dtype(), shape));
    }
    if (x.count() == 0) return Status::ok();
    const int64_t rows = x.count() / norm.n;
    const int64_t skip_rows = skip.count() / norm.n;
    FOLIO_TRY(double* statistics, scratch_doubles(run, 2 * rows));
    norm.mean = statistics;
    norm.inv_std = statistics + rows;
    double* total = run.has_output(3) ? sum.data() : y.data();
    const auto* from = x.data<double>();
    const auto* added = skip.data<double>();
    run.parallel().for_range(rows, 1 + 4096 / norm.n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * norm.n; i < end * norm.n; ++i) {
        const int64_t row = i / norm.n;
        const int64_t at = i - row * norm.n;
        total[i] = from[i] + added[row % skip_rows * norm.n + at] + (bias ? bias[at] : 0);
      }
    });
    norm.run(run, rows, total, y.data());
    for (int64_t i = 0; i < rows; ++i) {
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

  static void add_rows(OpRun& run, int64_t n, int64_t rows, const float* x, const float* skip,
                       int64_t skip_rows, const float* bias, float* sum) {
    const auto add = run.kernels().binary_f32[kFolioAdd];
    run.parallel().for_range(rows, 1 + 16384 / n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        float* to = sum + row * n;
        add(n, x + row * n, 1, skip + row % skip_rows * n, 1, to);
        if (bias) add(n, to, 1, bias, 1, to);
      }
    });
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

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> dims;
  if (x && !x->empty()) {
    dims = *x;
    dims->back() = Dim::of(1);
  }
  for (int i = 1; i < infer.output_count(); ++i) {
    if (i == 3) {
      infer.set_output(i, infer.input(0));
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
