// Conv with channels last, with what FusedConv adds, z and an activation, and a scale of each
// output channel, which stands for scaled weights: y = activation(scale * (W x) + b + z).
//
// Source: as core/ops/conv.cc (ONNX operator spec, Conv; com.microsoft FusedConv); made by the pass
//         channels_last only, for constant weights.
// Shapes: x [N, spatial..., C], w [M, C / group, kernel...], b [M], z as y, scale [M]
//         -> y [N, out..., M]
// Types:  float.
// winograd: 1: the other algorithm, of 3x3 filters with stride 1 (op_winograd.h); the pass
//         choose_winograd says where.
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_conv.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_winograd.h"

namespace folio {
namespace {

class NhwcConv final : public OpKernel {
 public:
  ConvAttrs attrs;
  Activation activation;
  bool is_winograd = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    FOLIO_TRY(const Tensor* w, run.tensor(1, DType::kFloat));
    const Tensor* b = nullptr;
    if (run.has_input(2)) {
      FOLIO_TRY(b, run.tensor(2, DType::kFloat));
    }
    if (x->rank() < 3) return invalid_argument("X ", x->shape().to_string(), " is too flat");
    FOLIO_TRY(const ConvSizes s, conv_sizes(attrs, channels_first(x->shape()), w->shape(), b));
    const Span<const int64_t> dims = w->shape().dims();
    if (!fits_nhwc_conv(dims, attrs.group) || (is_winograd && !fits_winograd(dims, attrs))) {
      return not_implemented("W ", w->shape().to_string(), " in ", attrs.group, " groups",
                             is_winograd ? " by Winograd's algorithm" : "");
    }
    const Shape out = channels_last(s.out);
    NhwcConvArgs args;
    if (run.has_input(3)) {
      FOLIO_TRY(const Tensor* z, run.tensor(3, DType::kFloat));
      if (!(z->shape() == out)) {
        return invalid_argument("Z ", z->shape().to_string(), " differs from the output ",
                                out.to_string());
      }
      args.z = z->data<float>();
    }
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, out));
    if (y->count() == 0) return Status::ok();
    FOLIO_TRY(args.scale, scale_of(run, w->shape()));
    args.weights = w;
    if (const PackedBlob* packed = run.packed(1)) {
      args.packed = reinterpret_cast<const float*>(packed->data());
    }
    args.x = x->data<float>();
    args.bias = b ? b->data<float>() : nullptr;
    args.activation = activation;
    args.y = y->data_mut<float>();
    return is_winograd ? run_winograd_conv(run, s, args) : run_nhwc_conv(run, s, args);
  }

 private:
  Result<const float*> scale_of(const OpRun& run, const Shape& w) const {
    if (!run.has_input(4)) return nullptr;
    FOLIO_TRY(const Tensor* scale, run.tensor(4, DType::kFloat));
    if (scale->count() != w[0] || is_depthwise_conv(w.dims(), attrs.group)) {
      return invalid_argument("scale ", scale->shape().to_string(), " does not fit W ",
                              w.to_string());
    }
    return scale->data<float>();
  }
};

Status infer(OpInfer& infer) {
  infer.set_tensor(0, infer.dtype(0));
  const Dims* x = infer.dims_of(0);
  const Dims* w = infer.dims_of(1);
  if (!x || !w || x->size() < 3) return Status::ok();
  if (w->size() != x->size()) {
    return invalid_graph("X ", type_to_string(infer.input(0)), " and W ",
                         type_to_string(infer.input(1)), " must have the same rank");
  }
  Dims first = *x;
  std::rotate(first.begin() + 1, first.end() - 1, first.end());
  FOLIO_TRY(Dims out, conv_out_dims(infer.attrs(), infer.table(), first, *w));
  std::rotate(out.begin() + 1, out.begin() + 2, out.end());
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Status request_pack(OpBuild& build, const NhwcConv& conv, Span<const int64_t> w) {
  PackRequest request;
  if (!conv.is_winograd) {
    FOLIO_TRY(request, nhwc_conv_request(build.kernels(), w, conv.attrs.group));
    request.replaces_source = true;  // run() reads W's shape alone then
  } else if (fits_winograd(w, conv.attrs)) {
    FOLIO_TRY(request, winograd_request(build.kernels(), w));
  }
  if (request.bytes > 0) build.request_pack(1, request);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<NhwcConv>();
  FOLIO_TRY(kernel->attrs, parse_conv(build.attrs()));
  FOLIO_TRY(const std::vector<float> parameters, build.attrs().get_floats("activation_params"));
  FOLIO_TRY(kernel->activation, parse_fused_activation(build.attrs(), parameters));
  FOLIO_TRY(const int64_t winograd, build.attrs().get_int("winograd", 0));
  kernel->is_winograd = winograd != 0;
  const Initializer* w = build.initializer(1);
  if (w && w->dtype == DType::kFloat && fits_nhwc_conv(w->shape.dims(), kernel->attrs.group)) {
    FOLIO_RETURN_IF_ERROR(request_pack(build, *kernel, w->shape.dims()));
    if (!kernel->is_winograd && adds_in_place(w->shape.dims(), kernel->attrs.group)) {
      build.may_overwrite(3);
    }
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_conv(OpRegistry& registry) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = "Conv";
  def.min_inputs = 2;
  def.max_inputs = 5;
  def.infer = infer;
  def.make = make;
  def.unaligned_inputs = 1U << 1;  // W is only ever packed
  registry.add(def);
}

}  // namespace folio
