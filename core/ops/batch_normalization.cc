// Batch normalization.
//
// Source: ONNX operator spec, BatchNormalization, opsets 1, 6, 7, 9, 14 (training_mode), 15.
// Shapes: x, y [N, C, spatial...]; scale, B, mean, var [C] (opset < 9 with spatial = 0: [C, ...]).
// Math:   y = (x - mean) / sqrt(var + epsilon) * scale + B, as x * a + b with a and b per channel.
//         With training_mode mean and var are those of x (the population's), and outputs 1 and 2
//         are [C]: given * momentum + of x * (1 - momentum), in the given ones' types.
// Types:  float; float16 and bfloat16 x with float parameters in float; double.
// Notes:  training before opset 14 is refused.
// Errors: kNotImplemented for training before opset 14; kInvalidGraph for its outputs without it.
#include <cmath>
#include <vector>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_norm.h"
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

// How x lies: `batch` times `channels` rows of `inner` elements.
struct Layout {
  int64_t batch = 0;
  int64_t channels = 1;
  int64_t inner = 1;
};

// Mean and population variance of every channel, in double.
void measure(OpRun& run, const Tensor& x, const Layout& at, std::vector<double>* mean,
             std::vector<double>* var) {
  if (x.count() == 0) {  // other dims may be so large that no loop over them ends
    mean->assign(mean->size(), std::nan(""));
    *var = *mean;
    return;
  }
  const auto size = static_cast<double>(at.batch * at.inner);
  // body(value) for every element of channel c.
  const auto for_channel = [&](auto tag, int64_t c, auto&& body) {
    using T = typename decltype(tag)::type;
    for (int64_t n = 0; n < at.batch; ++n) {
      const T* row = x.data<T>() + (n * at.channels + c) * at.inner;
      for (int64_t i = 0; i < at.inner; ++i) {
        body(static_cast<double>(static_cast<Compute<T>>(row[i])));
      }
    }
  };
  dispatch(FloatTypes{}, x.dtype(), [&](auto tag) {
    run.parallel().for_range(at.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double sum = 0;
        for_channel(tag, c, [&](double value) { sum += value; });
        const double middle = sum / size;
        double squares = 0;
        for_channel(tag, c, [&](double value) { squares += (value - middle) * (value - middle); });
        (*mean)[static_cast<size_t>(c)] = middle;
        (*var)[static_cast<size_t>(c)] = squares / size;
      }
    });
  });
}

// Lines of one element for each channel: a filter of one tap over each.
void scale_lines(OpRun& run, const Layout& at, const std::vector<double>& a,
                 const std::vector<double>& b, const float* x, float* y) {
  const std::vector<float> scale(a.begin(), a.end());
  const std::vector<float> shift(b.begin(), b.end());
  const int64_t channels = at.channels;
  const int64_t grain = 1 + 16384 / channels;
  run.parallel().for_range(at.batch, grain, [&](int64_t begin, int64_t end) {
    const float* from = x + begin * channels;
    const float* factors = scale.data();
    FolioWindowF32 args{};
    args.lines = 1;
    args.pixels = end - begin;
    args.channels = channels;
    args.taps = 1;
    args.x = &from;
    args.x_step = args.y_step = channels;
    args.w = &factors;
    args.bias = shift.data();
    args.y = y + begin * channels;
    run.kernels().depthwise_f32(&args);
  });
}

class BatchNormalization final : public OpKernel {
 public:
  float epsilon = 1e-5F;
  float momentum = 0.9F;
  bool training = false;
  bool per_element = false;  // opset < 9, spatial = 0

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    if (x->rank() < 1) return invalid_argument("X has no dims");
    const Layout at = layout_of(x->shape());
    FOLIO_TRY(const std::vector<double> scale, numbers(run, 1, at.channels));
    FOLIO_TRY(const std::vector<double> bias, numbers(run, 2, at.channels));
    FOLIO_TRY(std::vector<double> mean, numbers(run, 3, at.channels));
    FOLIO_TRY(std::vector<double> var, numbers(run, 4, at.channels));
    if (training) FOLIO_RETURN_IF_ERROR(train(run, *x, at, &mean, &var));
    std::vector<double> a(scale.size());
    std::vector<double> b(scale.size());
    for (size_t c = 0; c < scale.size(); ++c) {
      a[c] = scale[c] / std::sqrt(var[c] + static_cast<double>(epsilon));
      b[c] = bias[c] - mean[c] * a[c];
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (y->count() == 0) return Status::ok();
    if (x->dtype() == DType::kFloat && at.inner == 1) {
      scale_lines(run, at, a, b, x->data<float>(), y->data_mut<float>());
      return Status::ok();
    }
    dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = Compute<T>;
      const T* from = x->data<T>();
      T* to = y->data_mut<T>();
      const int64_t inner = at.inner;
      const int64_t grain = inner > 0 ? 1 + 16384 / inner : 1;
      run.parallel().for_range(at.batch * at.channels, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const auto c = static_cast<size_t>(row % at.channels);
          scale_row(run.kernels(), inner, from + row * inner, static_cast<C>(a[c]),
                    static_cast<C>(b[c]), to + row * inner);
        }
      });
    });
    return Status::ok();
  }

 private:
  Layout layout_of(const Shape& x) const {
    if (per_element) return {x[0], x.product(1, x.rank()), 1};
    return {x[0], x.rank() > 1 ? x[1] : 1, x.rank() < 3 ? 1 : x.product(2, x.rank())};
  }

  // Gives the running statistics, and puts x's own in the place of the given ones.
  Status train(OpRun& run, const Tensor& x, const Layout& at, std::vector<double>* mean,
               std::vector<double>* var) const {
    std::vector<double> own[2] = {*mean, *var};
    measure(run, x, at, own, own + 1);
    std::vector<double>* given[2] = {mean, var};
    const auto keep = static_cast<double>(momentum);
    for (int k = 0; k < 2; ++k) {
      std::vector<double>& running = *given[k];
      for (size_t c = 0; c < running.size(); ++c) {
        running[c] = running[c] * keep + own[k][c] * (1 - keep);
      }
      if (run.has_output(1 + k)) {
        FOLIO_TRY(Tensor * out,
                  run.output(1 + k, run.value(3 + k).tensor().dtype(), Shape{at.channels}));
        dispatch(FloatTypes{}, out->dtype(), [&](auto tag) {
          using T = typename decltype(tag)::type;
          for (size_t c = 0; c < running.size(); ++c) {
            out->data_mut<T>()[c] = static_cast<T>(static_cast<Compute<T>>(running[c]));
          }
        });
      }
      running = std::move(own[k]);
    }
    return Status::ok();
  }
};

// training_mode, which came with opset 14 and is what gives the other outputs a meaning.
Result<bool> is_training(const Node& node) {
  FOLIO_TRY(const int64_t mode, node.attributes.get_int("training_mode", 0));
  const bool training = node.version >= 14 && mode != 0;
  for (size_t i = 1; i < node.outputs.size() && !training; ++i) {
    if (node.outputs[i] == kNone) continue;
    if (node.version < 14) return not_implemented("statistics outputs (training) before opset 14");
    return invalid_graph("has output ", i, ", which only training_mode = 1 gives");
  }
  if (node.version >= 14 && node.outputs.size() > 3) {
    return invalid_graph("has ", node.outputs.size(), " outputs, expected 1 to 3");
  }
  return training;
}

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  FOLIO_TRY(const bool training, is_training(infer.node()));
  const Dims* x = infer.dims_of(0);
  const Dim channels = !x || x->empty() ? Dim::unknown() : x->size() > 1 ? (*x)[1] : Dim::of(1);
  for (int i = 1; training && i < infer.output_count(); ++i) {
    if (infer.has_output(i)) infer.set_tensor(i, infer.dtype(2 + i), Dims{channels});
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<BatchNormalization>();
  FOLIO_TRY(kernel->epsilon, build.attrs().get_float("epsilon", 1e-5F));
  FOLIO_TRY(kernel->momentum, build.attrs().get_float("momentum", 0.9F));
  FOLIO_TRY(const int64_t spatial, build.attrs().get_int("spatial", 1));
  kernel->per_element = build.version() < 9 && spatial == 0;
  FOLIO_TRY(kernel->training, is_training(build.node()));
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
