// Conv with channels last, with what FusedConv adds, z and an activation, and a scale of each
// output channel, which stands for scaled weights: y = activation(scale * (W x) + b + z), or, where
// adds_last is 1, activation(scale * (W x) + b) + z.
//
// Source: as core/ops/conv.cc (ONNX operator spec, Conv; com.microsoft FusedConv); made by the pass
//         channels_last only, for weights of known shape.
// Shapes: x [N, spatial..., C] ([N, C, spatial...] where planes is 1), w [M, C / group, kernel...],
// b [M], z as y, scale [M]; x and z may be some channels of images with more, from x_at and z_at on
//         -> y [N, out..., M], or, in channels of an image that others write too, [N, out...,
//         joined_channels], which is the last input but for the first of them (op_nhwc_channels.h)
// Types:  float.
// winograd: 1: the other algorithm, of filters with stride 1 (op_winograd.h), 2: with weights that
//         are packed as it transforms them; the pass choose_winograd says where.
#include "core/ops/op_half_panels.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_channels.h"
#include "core/ops/op_nhwc_conv.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_winograd.h"

namespace folio {
namespace {

class NhwcConv final : public OpKernel {
 public:
  NhwcConvForm form;
  JoinPlace place;
  AddendPlace addend;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    if (x->rank() < 3) return invalid_argument("X ", x->shape().to_string(), " is too flat");
    NhwcConvArgs args;
    FOLIO_TRY(const ConvSizes s, read_nhwc_conv(run, form, x->shape(), 1, 2, kConvScale, &args));
    const Shape& w = args.weights->shape();
    if (!fits_nhwc_conv(w.dims(), s.group) ||
        (form.is_winograd && (form.is_planes || !fits_winograd(w.dims(), form.attrs)))) {
      return not_implemented("W ", w.to_string(), " in ", s.group, " groups",
                             form.is_winograd ? " by Winograd's algorithm" : "");
    }
    if (place.channels > 0 && !leaves_room(w.dims(), s.group)) {
      return not_implemented("W ", w.to_string(), " to some channels of an image");
    }
    const Shape out = channels_last(s.out);
    FOLIO_RETURN_IF_ERROR(place_addend(run, kConvZ, addend, out, &args));
    FOLIO_TRY(const PlacedOutput placed, place_output(run, place, kConvInto, out));
    args.y = placed.y;
    args.y_step = placed.y_step;
    if (out.count() == 0) return Status::ok();
    args.x = x->data<float>() + form.first_channel();
    return form.is_winograd ? run_winograd_conv(run, s, args) : run_nhwc_conv(run, s, args);
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
  FOLIO_TRY(const int64_t planes, infer.attrs().get_int(kPlanesAttribute, 0));
  Dims first = *x;
  FOLIO_RETURN_IF_ERROR(infer_x_channels(infer.attrs(), *w, &first));
  if (planes == 0) std::rotate(first.begin() + 1, first.end() - 1, first.end());
  FOLIO_TRY(Dims out, conv_out_dims(infer.attrs(), infer.table(), first, *w));
  std::rotate(out.begin() + 1, out.begin() + 2, out.end());
  FOLIO_RETURN_IF_ERROR(infer_joined(infer.attrs(), &out));
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Status request_winograd(OpBuild& build, const NhwcConvForm& form) {
  const Initializer* w = build.initializer(1);
  if (!w || !fits_winograd(w->shape.dims(), form.attrs) ||
      (w->dtype != DType::kFloat && !(form.has_half_w && is_half(w->dtype)))) {
    return Status::ok();
  }
  FOLIO_TRY(const PackRequest request, winograd_request(build.kernels(), w->shape.dims()));
  if (request.bytes > 0) build.request_pack(1, request);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<NhwcConv>();
  FOLIO_TRY(kernel->form, parse_nhwc_conv(build.attrs()));
  const ConvAttrs& attrs = kernel->form.attrs;
  FOLIO_TRY(kernel->place, parse_join_place(build.attrs()));
  FOLIO_TRY(kernel->addend, parse_addend_place(build.attrs()));
  if (build.has_input(kConvInto)) build.writes_into(kConvInto);
  FOLIO_TRY(const int64_t winograd, build.attrs().get_int("winograd", 0));
  kernel->form.is_winograd = winograd != 0;
  kernel->form.packs_transformed = winograd == kWinogradPacked;
  if (kernel->form.packs_transformed) {
    FOLIO_RETURN_IF_ERROR(request_winograd(build, kernel->form));
  } else {
    FOLIO_RETURN_IF_ERROR(request_nhwc_conv(build, 1, kernel->form));
  }
  if (kernel->form.is_winograd) return std::unique_ptr<OpKernel>(std::move(kernel));
  const Initializer* w = build.initializer(1);
  const AddendPlace& addend = kernel->addend;
  const bool is_z_alone = kernel->place.channels == 0 && addend.at < 0 && !addend.is_last;
  if (w && is_z_alone && fits_nhwc_conv(w->shape.dims(), attrs.group) &&
      adds_in_place(w->shape.dims(), attrs.group)) {
    build.may_overwrite(kConvZ);
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_conv(OpRegistry& registry) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = "Conv";
  def.min_inputs = 2;
  def.max_inputs = kConvInto + 1;
  def.infer = infer;
  def.make = make;
  def.unaligned_inputs = 1U << 1;  // W is only ever packed
  def.takes_half = [](const Attributes& attributes, int input, const Shape& shape) {
    return input == 1 && takes_half_nhwc(attributes, shape);
  };
  registry.add(def);
}

}  // namespace folio
