// Normalization over the last dims: LayerNormalization, RMSNormalization and ORT's
// SimplifiedLayerNormalization (the same as RMSNormalization, under ai.onnx).
//
// Source: ONNX operator spec, LayerNormalization opset 17, RMSNormalization opset 23; ONNX Runtime
//         ContribOperators, SimplifiedLayerNormalization.
// Shapes: x, y [rows, n], n = product of dims from `axis` on; Scale and B broadcast to x's dims
// from
//         axis on (full size here). Mean and InvStdDev: x's dims, ones from axis on.
// Types:  float; float16 and bfloat16 in float; double. LayerNormalization's Mean and InvStdDev
// have
//         the type that stash_type names, rounded once.
#include "core/ops/op_norm.h"
#include "core/ops/op_registry.h"

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
    FOLIO_TRY(norm.scale, parameter<T>(run, 1, norm.n));
    if (run.has_input(2)) {
      FOLIO_TRY(norm.bias, parameter<T>(run, 2, norm.n));
    }
    // SimplifiedLayerNormalization gives the scale's type, which all others share with x.
    const DType dtype = run.value(1).tensor().dtype();
    FOLIO_TRY(const auto y, RealOutput<T>::make(run, 0, dtype, x.shape()));
    FOLIO_TRY(const auto mean, statistic<T>(run, rms ? -1 : 1, x.shape(), at));
    FOLIO_TRY(const auto inv_std, statistic<T>(run, rms ? 1 : 2, x.shape(), at));
    norm.mean = mean.data();
    norm.inv_std = inv_std.data();
    norm.run(run, x.shape().product(0, at), from, y.data());
    y.finish(run);
    mean.finish(run);
    inv_std.finish(run);
    return Status::ok();
  }

  // Scale or bias as n numbers; one element stands for all.
  template <typename T>
  static Result<const T*> parameter(OpRun& run, int input, int64_t n) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(input));
    if (tensor->count() != n && tensor->count() != 1) {
      return invalid_argument("input ", input, " ", tensor->shape().to_string(), " has ",
                              tensor->count(), " elements, expected ", n);
    }
    FOLIO_TRY(const T* data, reals_of<T>(run, *tensor));
    if (tensor->count() == n) return data;
    FOLIO_TRY(T * filled, scratch_reals<T>(run, n));
    std::fill_n(filled, n, data[0]);
    return static_cast<const T*>(filled);
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
