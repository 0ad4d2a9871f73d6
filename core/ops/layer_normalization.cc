// Normalization over the last dims: LayerNormalization, RMSNormalization and ORT's
// SimplifiedLayerNormalization (the same as RMSNormalization, under ai.onnx).
//
// Source: ONNX operator spec, LayerNormalization opset 17, RMSNormalization opset 23; ONNX Runtime
//         ContribOperators, SimplifiedLayerNormalization.
// Shapes: x, y [rows, n], n = product of dims from `axis` on; Scale and B are broadcast to x, from
//         whichever of its dims they have. Mean and InvStdDev: x's dims, ones from axis on.
// Types:  float; float16 and bfloat16 in float; double. LayerNormalization's Mean and
//         InvStdDev have the type that stash_type names, rounded once.
#include "core/ops/op_broadcast.h"
#include "core/ops/op_norm.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

class Normalization final : public OpKernel {
 public:
  bool rms = false;
  int64_t axis = -1;
  float epsilon = 1e-5F;
  DType stash = DType::kFloat;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int at, normalize_axis(axis, x->rank()));
    FOLIO_TRY(const Tensor* scale, run.tensor(1));
    const bool in_double = x->dtype() == DType::kDouble || scale->dtype() == DType::kDouble;
    return in_double ? run_in<double>(run, *x, at) : run_in<float>(run, *x, at);
  }

 private:
  template <typename T>
  Status run_in(OpRun& run, const Tensor& x, int at) const {
    FOLIO_TRY(const T* from, reals_of<T>(run, x));
    NormRows<T> norm;
    norm.rms = rms;
    norm.epsilon = static_cast<T>(epsilon);
    norm.n = x.shape().product(at, x.rank());
    FOLIO_TRY(Parameter<T> scale, parameter<T>(run, 1, x.shape(), at));
    Parameter<T> bias;
    if (run.has_input(2)) {
      FOLIO_TRY(bias, parameter<T>(run, 2, x.shape(), at));
    }
    if (scale.differs) {
      FOLIO_TRY(scale.row, filled(run, norm.n, T{1}));
      bias.differs = bias.all != nullptr;
    }
    norm.scale = scale.row;
    norm.bias = bias.differs ? nullptr : bias.row;
    // SimplifiedLayerNormalization gives the scale's type, which all others share with x.
    const DType dtype = run.value(1).tensor().dtype();
    FOLIO_TRY(const auto y, RealOutput<T>::make(run, 0, dtype, x.shape()));
    FOLIO_TRY(const auto mean, statistic<T>(run, rms ? -1 : 1, x.shape(), at));
    FOLIO_TRY(const auto inv_std, statistic<T>(run, rms ? 1 : 2, x.shape(), at));
    norm.mean = mean.data();
    norm.inv_std = inv_std.data();
    norm.run(run, x.shape().product(0, at), from, y.data());
    if (scale.differs) FOLIO_RETURN_IF_ERROR(combine<kFolioMul>(run, x.shape(), scale, y.data()));
    if (bias.differs) FOLIO_RETURN_IF_ERROR(combine<kFolioAdd>(run, x.shape(), bias, y.data()));
    y.finish(run);
    mean.finish(run);
    inv_std.finish(run);
    return Status::ok();
  }

  // Scale or bias.
  template <typename T>
  struct Parameter {
    const T* all = nullptr;  // as they are given
    Shape shape;
    const T* row = nullptr;  // for each element of a row
    bool differs = false;    // from row to row: there is no `row`
  };

  template <typename T>
  static Result<const T*> filled(OpRun& run, int64_t n, T value) {
    FOLIO_TRY(T * numbers, scratch_reals<T>(run, n));
    std::fill_n(numbers, n, value);
    return static_cast<const T*>(numbers);
  }

  template <typename T>
  static Result<Parameter<T>> parameter(OpRun& run, int input, const Shape& x, int at) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(input));
    const int64_t n = x.product(at, x.rank());
    const int64_t count = tensor->count();
    Parameter<T> out;
    out.shape = tensor->shape();
    FOLIO_TRY(out.all, reals_of<T>(run, *tensor));
    out.row = out.all;
    if (count == 1) {
      FOLIO_TRY(out.row, filled(run, n, *out.all));
      return out;
    }
    const auto plan = plan_broadcast(x, out.shape);
    if (!plan.is_ok() || !(plan.value().out == x)) {
      return invalid_argument("input ", input, " has dims ", out.shape.to_string(),
                              ", which do not broadcast to ", x.to_string());
    }
    int64_t strides[kMaxRank];
    broadcast_strides(out.shape, x, strides);
    for (int i = 0; i < at; ++i) out.differs |= strides[i] != 0 && x[i] > 1;
    if (out.differs || count == n || count == 0) return out;  // 0: there is no row
    FOLIO_TRY(T * row, scratch_reals<T>(run, n));
    Odometer<1> place(x.rank() - at, x.begin() + at, {strides + at});
    for (int64_t i = 0; i < n; ++i, place.advance()) row[i] = out.all[place.offset()];
    out.row = row;
    return out;
  }

  // y = y * parameter, or y + parameter.
  template <FolioBinary kFunction, typename T>
  static Status combine(OpRun& run, const Shape& x, const Parameter<T>& parameter, T* y) {
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(x, parameter.shape));
    for_broadcast_rows(run.parallel(), plan, [&](int64_t, int64_t from, int64_t to, int64_t count) {
      const T* p = parameter.all + from;
      if constexpr (std::is_same_v<T, float>) {
        run.kernels().binary_f32[kFunction](count, y + to, 1, p, plan.b_step, y + to);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          const T other = p[i * plan.b_step];
          y[to + i] = kFunction == kFolioMul ? y[to + i] * other : y[to + i] + other;
        }
      }
    });
    return Status::ok();
  }

  // Empty when it is not wanted.
  template <typename T>
  Result<RealOutput<T>> statistic(OpRun& run, int output, const Shape& x, int at) const {
    if (output < 0) return RealOutput<T>();
    Shape shape = x;
    for (int i = at; i < shape.rank(); ++i) shape[i] = 1;
    return RealOutput<T>::make_if_wanted(run, output, stash, shape);
  }
};

// Of Mean and InvStdDev.
Result<DType> stash_of(const Attributes& attrs) {
  FOLIO_TRY(const int64_t number, attrs.get_int("stash_type", 1));
  const bool is_known = number == static_cast<int64_t>(DType::kFloat) ||
                        number == static_cast<int64_t>(DType::kFloat16) ||
                        number == static_cast<int64_t>(DType::kBfloat16);
  if (is_known) return static_cast<DType>(number);
  return invalid_graph("attribute 'stash_type' is ", number,
                       ", expected 1 (float), 10 (float16) or 16 (bfloat16)");
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const DType stash, stash_of(infer.attrs()));
  const Dims* given = infer.dims_of(0);
  infer.set_tensor(0, infer.dtype(1), given ? std::optional<Dims>(*given) : std::nullopt);
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", -1));
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> dims;
  if (x) {
    FOLIO_TRY(const int at, normalize_axis(axis, static_cast<int>(x->size())));
    dims = *x;
    for (size_t i = static_cast<size_t>(at); i < dims->size(); ++i) (*dims)[i] = Dim::of(1);
  }
  for (int i = 1; i < infer.output_count(); ++i) infer.set_tensor(i, stash, dims);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Normalization>();
  kernel->rms = build.node().op_type != "LayerNormalization";
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", -1));
  FOLIO_TRY(kernel->stash, stash_of(build.attrs()));
  FOLIO_TRY(kernel->epsilon, build.attrs().get_float("epsilon", 1e-5F));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_layer_normalization(OpRegistry& registry) {
  OpDef def;
  def.infer = infer;
  def.make = make;
  def.min_inputs = 2;
  def.type = "LayerNormalization";
  def.keeps_half = true;
  def.max_inputs = 3;
  def.max_outputs = 3;
  registry.add(def);
  def.max_inputs = 2;
  def.max_outputs = 2;
  def.type = "SimplifiedLayerNormalization";
  registry.add(def);
  def.type = "RMSNormalization";
  def.since = 23;
  def.max_outputs = 1;
  registry.add(def);
}

}  // namespace folio
