// Normalization over the last dims: LayerNormalization, RMSNormalization and ORT's
// SimplifiedLayerNormalization (the same as RMSNormalization, under ai.onnx).
//
// Source: ONNX operator spec, LayerNormalization opset 17, RMSNormalization opset 23; ONNX Runtime
//         ContribOperators, SimplifiedLayerNormalization.
// Shapes: x, y [rows, n], n = product of dims from `axis` on; Scale and B broadcast to x's dims
// from
//         axis on (full size here). Mean and InvStdDev: x's dims, ones from axis on.
// Types:  float; float16 and bfloat16 in float (stash_type 1).
#include "core/ops/op_norm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Normalization final : public OpKernel {
 public:
  bool rms = false;
  int64_t axis = -1;
  float epsilon = 1e-5F;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int at, normalize_axis(axis, x->rank()));
    const int64_t rows = x->shape().product(0, at);
    const int64_t n = x->shape().product(at, x->rank());
    FOLIO_TRY(const float* x32, floats_of(run, *x));
    NormRows norm;
    norm.rms = rms;
    norm.epsilon = epsilon;
    norm.n = n;
    FOLIO_TRY(norm.scale, parameter(run, 1, n));
    if (run.has_input(2)) {
      FOLIO_TRY(norm.bias, parameter(run, 2, n));
    }
    // SimplifiedLayerNormalization gives the scale's type, which all others share with x.
    FOLIO_TRY(const FloatOutput y,
              FloatOutput::make(run, 0, run.value(1).tensor().dtype(), x->shape()));
    FOLIO_TRY(norm.mean, statistic(run, rms ? -1 : 1, x->shape(), at));
    FOLIO_TRY(norm.inv_std, statistic(run, rms ? 1 : 2, x->shape(), at));
    norm.run(run, rows, x32, y.data());
    y.finish(run);
    return Status::ok();
  }

 private:
  // Scale or bias as n floats; one element stands for all.
  static Result<const float*> parameter(OpRun& run, int input, int64_t n) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(input));
    FOLIO_TRY(const float* data, floats_of(run, *tensor));
    if (tensor->count() == n) return data;
    if (tensor->count() != 1) {
      return invalid_argument("input ", input, " ", tensor->shape().to_string(), " has ",
                              tensor->count(), " elements, expected ", n);
    }
    FOLIO_TRY(float* filled, scratch_floats(run, n));
    std::fill_n(filled, n, data[0]);
    return static_cast<const float*>(filled);
  }

  static Result<float*> statistic(OpRun& run, int output, const Shape& x, int axis) {
    if (output < 0 || !run.has_output(output)) return static_cast<float*>(nullptr);
    Shape shape = x;
    for (int i = axis; i < shape.rank(); ++i) shape[i] = 1;
    FOLIO_TRY(Tensor * tensor, run.output(output, DType::kFloat, shape));
    return tensor->data_mut<float>();
  }
};

Status infer(OpInfer& infer) {
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
  for (int i = 1; i < infer.output_count(); ++i) infer.set_tensor(i, DType::kFloat, dims);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Normalization>();
  kernel->rms = build.node().op_type != "LayerNormalization";
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", -1));
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
