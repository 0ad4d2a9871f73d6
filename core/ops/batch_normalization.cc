// Batch normalization, inference form.
//
// Source: ONNX operator spec, BatchNormalization, opsets 1, 6, 7, 9, 14 (training_mode), 15.
// Shapes: x, y [N, C, spatial...]; scale, B, mean, var [C] (opset < 9 with spatial = 0: [C, ...]).
// Math:   y = (x - mean) / sqrt(var + epsilon) * scale + B, as x * a + b with a and b per channel.
// Types:  float; float16 and bfloat16 x with float parameters in float; double.
// Errors: training is not supported: kNotImplemented.
#include <cmath>
#include <vector>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<std::vector<double>> numbers(const OpRun& run, int input, int64_t count) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(input));
  if (tensor->count() != count) {
    return invalid_argument("input ", input, " has ", tensor->count(), " elements, expected ",
                            count);
  }
  std::vector<double> out;
  const bool known = dispatch(FloatTypes{}, tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T& value : tensor->span<T>())
      out.push_back(static_cast<double>(static_cast<Compute<T>>(value)));
  });
  if (!known) return wrong_type(input, tensor->dtype());
  return out;
}

class BatchNormalization final : public OpKernel {
 public:
  float epsilon = 1e-5F;
  bool per_element = false;  // opset < 9, spatial = 0

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->rank() < 1) return invalid_argument("X has no dims");
    const int64_t batch = x->dim(0);
    const int64_t channels = per_element     ? x->shape().product(1, x->rank())
                             : x->rank() > 1 ? x->dim(1)
                                             : 1;
    const int64_t inner = per_element || x->rank() < 3 ? 1 : x->shape().product(2, x->rank());
    FOLIO_TRY(const std::vector<double> scale, numbers(run, 1, channels));
    FOLIO_TRY(const std::vector<double> bias, numbers(run, 2, channels));
    FOLIO_TRY(const std::vector<double> mean, numbers(run, 3, channels));
    FOLIO_TRY(const std::vector<double> var, numbers(run, 4, channels));
    std::vector<double> a(scale.size());
    std::vector<double> b(scale.size());
    for (size_t c = 0; c < scale.size(); ++c) {
      a[c] = scale[c] / std::sqrt(var[c] + static_cast<double>(epsilon));
      b[c] = bias[c] - mean[c] * a[c];
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    const bool known = dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = Compute<T>;
      const T* from = x->data<T>();
      T* to = y->data_mut<T>();
      const int64_t grain = inner > 0 ? 1 + 16384 / inner : 1;
      run.parallel().for_range(batch * channels, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const auto c = static_cast<size_t>(row % channels);
          const auto times = static_cast<C>(a[c]);
          const auto plus = static_cast<C>(b[c]);
          for (int64_t i = row * inner; i < (row + 1) * inner; ++i) {
            to[i] = static_cast<T>(static_cast<C>(from[i]) * times + plus);
          }
        }
      });
    });
    return known ? Status::ok() : wrong_type(0, x->dtype());
  }
};

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<BatchNormalization>();
  FOLIO_TRY(kernel->epsilon, build.attrs().get_float("epsilon", 1e-5F));
  FOLIO_TRY(const int64_t spatial, build.attrs().get_int("spatial", 1));
  FOLIO_TRY(const int64_t training, build.attrs().get_int("training_mode", 0));
  kernel->per_element = build.version() < 9 && spatial == 0;
  for (int i = 1; i < build.output_count(); ++i) {
    if (build.has_output(i)) return not_implemented("statistics outputs (training)");
  }
  if (training != 0) return not_implemented("training_mode = 1");
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_batch_normalization(OpRegistry& registry) {
  OpDef def;
  def.type = "BatchNormalization";
  def.min_inputs = def.max_inputs = 5;
  def.max_outputs = 5;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
