// Two or three convolutions with channels last, one of which is a filter over one channel each, or
// MaxPool instead of it: what stands between them is made some lines at a time and never leaves the
// cache.
//
//   y = last(filter(first(x)))    each: activation(scale * (W x) + b), the last one's + z
//
// Source: as core/ops/nhwc_conv.cc; made by the pass chain_convs only, for constant weights. The
//         first or the last may be missing. The last one's windows are pixels. A filter without
//         weights is MaxPool, with its attributes.
// Shapes: x [N, H, W, C], of each step w [M, C, kernel...] (the filter's [M, 1, kernel...]), b [M],
//         scale [M] (not of the filter), z as y -> y [N, out..., M], or channels of an image, as
//         core/ops/nhwc_conv.cc has it, as x and z may be
// Types:  float.
// Attributes are those of the steps, with their names (kChainSteps) before.
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_chain.h"
#include "core/ops/op_nhwc_channels.h"
#include "core/ops/op_pool.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Form {
  size_t step = 0;
  NhwcConvForm conv;
  std::optional<PoolAttrs> pool;
};

bool is_pool(const Attributes& step) { return step.has("kernel_shape"); }

// The step's sizes and arguments but for x and y.
Status read_step(const OpRun& run, const Form& form, const Shape& x, NhwcStep* step) {
  if (!form.pool) {
    const int weights = weights_of_step(form.step);
    FOLIO_TRY(step->sizes,
              read_nhwc_conv(run, form.conv, x, weights, weights + 1, weights + 2, &step->args));
    return Status::ok();
  }
  const Shape image = channels_first(x);
  FOLIO_TRY(step->sizes.window, pool_window(*form.pool, image));
  step->sizes.batch = image[0];
  step->sizes.group = image[1];
  step->sizes.c_in = step->sizes.c_out = 1;
  step->sizes.out = {image[0], image[1]};
  step->sizes.window.append_out(&step->sizes.out);
  return Status::ok();
}

bool is_with_room(const NhwcStep& last) {
  return !last.args.weights || leaves_room(last.args.weights->shape().dims(), last.sizes.group);
}

class NhwcConvChain final : public OpKernel {
 public:
  std::vector<Form> forms;
  JoinPlace place;
  AddendPlace addend;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    if (x->rank() != 4) return invalid_argument("X ", x->shape().to_string(), " has not 4 dims");
    std::vector<NhwcStep> steps(forms.size());
    Shape shape = x->shape();
    for (size_t i = 0; i < forms.size(); ++i) {
      FOLIO_RETURN_IF_ERROR(read_step(run, forms[i], shape, &steps[i]));
      if (i > 0 && !fits_in_chain(steps[i])) {
        return not_implemented("W ", steps[i].args.weights->shape().to_string(), " after ",
                               shape.to_string());
      }
      shape = channels_last(steps[i].sizes.out);
    }
    NhwcConvArgs& last = steps.back().args;
    if (place.channels > 0 && !is_with_room(steps.back())) {
      return not_implemented("Y ", shape.to_string(), " to some channels of an image");
    }
    FOLIO_RETURN_IF_ERROR(place_addend(run, kChainZ, addend, shape, &last));
    if ((last.z || last.behind) && forms.back().step != kLastStep)
      return invalid_argument("Z without a last step");
    FOLIO_TRY(const PlacedOutput placed, place_output(run, place, kChainInto, shape));
    last.y = placed.y;
    last.y_step = placed.y_step;
    if (shape.count() == 0) return Status::ok();
    steps.front().args.x = x->data<float>() + forms.front().conv.first_channel();
    return run_nhwc_chain(run, std::move(steps));
  }
};

Status infer(OpInfer& infer) {
  infer.set_tensor(0, infer.dtype(0));
  const Dims* x = infer.dims_of(0);
  if (!x) return Status::ok();
  if (x->size() != 4) return invalid_graph("X ", dims_to_string(*x), " must have 4 dims");
  Dims image = *x;
  for (size_t step = 0; step < kMostSteps; ++step) {
    const Attributes attrs = attributes_of_step(infer.attrs(), step);
    const bool has_weights = infer.has_input(weights_of_step(step));
    if (!has_weights && !is_pool(attrs)) continue;
    const Dims* w = has_weights ? infer.dims_of(weights_of_step(step)) : nullptr;
    if (has_weights && !w) return Status::ok();
    if (w && w->size() != 4) return invalid_graph("W ", dims_to_string(*w), " must have 4 dims");
    if (w) FOLIO_RETURN_IF_ERROR(infer_x_channels(attrs, *w, &image));
    FOLIO_TRY(const int64_t planes, attrs.get_int(kPlanesAttribute, 0));
    if (planes == 0) image = {image[0], image[3], image[1], image[2]};
    FOLIO_TRY(const Dims out, w ? conv_out_dims(attrs, infer.table(), image, *w)
                                : pool_out_dims(attrs, infer.table(), image, false));
    image = {out[0], out[2], out[3], out[1]};
  }
  FOLIO_RETURN_IF_ERROR(infer_joined(infer.attrs(), &image));
  infer.set_tensor(0, infer.dtype(0), std::move(image));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<NhwcConvChain>();
  for (size_t step = 0; step < kMostSteps; ++step) {
    const Attributes attrs = attributes_of_step(build.attrs(), step);
    Form form;
    form.step = step;
    if (build.has_input(weights_of_step(step))) {
      FOLIO_TRY(form.conv, parse_nhwc_conv(attrs));
      if (form.conv.x_at >= 0 && !kernel->forms.empty()) {
        return invalid_graph("'", kChainSteps[step], kXAtAttribute, "' behind the first step");
      }
      FOLIO_RETURN_IF_ERROR(request_nhwc_conv(build, weights_of_step(step), form.conv));
    } else if (is_pool(attrs)) {
      FOLIO_TRY(form.pool, parse_pool(attrs, PoolKind::kMax, false));
    } else {
      continue;
    }
    kernel->forms.push_back(std::move(form));
  }
  if (kernel->forms.empty()) return invalid_graph("there are no weights");
  FOLIO_TRY(kernel->place, parse_join_place(build.attrs()));
  FOLIO_TRY(kernel->addend, parse_addend_place(build.attrs()));
  if (build.has_input(kChainInto)) build.writes_into(kChainInto);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_conv_chain(OpRegistry& registry) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = "ConvChain";
  def.min_inputs = 2;
  def.max_inputs = kChainInto + 1;
  for (size_t step = 0; step < kMostSteps; ++step) {
    def.optional_inputs |= 7U << weights_of_step(step);
    def.unaligned_inputs |= 1U << weights_of_step(step);  // they are only ever packed
  }
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
