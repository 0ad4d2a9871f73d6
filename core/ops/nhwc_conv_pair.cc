// Two convolutions with channels last, the second of which is a filter over one channel each: what
// stands between them is made some lines at a time and never leaves the cache.
//
//   y = activation(W2 * activation1(scale * (W1 x) + b1) + b2)
//
// Source: as core/ops/nhwc_conv.cc; made by the pass pair_convs only, for constant weights.
// Shapes: x [N, H, W, C], w1 [M, C, kernel...], b1 [M], scale [M], w2 [M, 1, kernel...], b2 [M]
//         -> y [N, out..., M]
// Types:  float.
// Attributes are the second one's; those of the first have kFirst before their names.
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_conv.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int kW1 = 1;
constexpr int kB1 = 2;
constexpr int kScale = 3;
constexpr int kW2 = 4;
constexpr int kB2 = 5;

class NhwcConvPair final : public OpKernel {
 public:
  NhwcConvForm first;
  NhwcConvForm second;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    if (x->rank() != 4) return invalid_argument("X ", x->shape().to_string(), " has not 4 dims");
    NhwcConvArgs a;
    NhwcConvArgs b;
    FOLIO_TRY(const ConvSizes s1, read_nhwc_conv(run, first, x->shape(), kW1, kB1, kScale, &a));
    FOLIO_TRY(const ConvSizes s2,
              read_nhwc_conv(run, second, channels_last(s1.out), kW2, kB2, -1, &b));
    if (s1.group != 1 || !is_depthwise_conv(b.weights->shape().dims(), s2.group)) {
      return not_implemented("W ", a.weights->shape().to_string(), " before W ",
                             b.weights->shape().to_string());
    }
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, channels_last(s2.out)));
    if (y->count() == 0) return Status::ok();
    a.x = x->data<float>();
    b.y = y->data_mut<float>();
    return run_nhwc_conv_pair(run, s1, a, s2, b);
  }
};

Status infer(OpInfer& infer) {
  infer.set_tensor(0, infer.dtype(0));
  const Dims* x = infer.dims_of(0);
  const Dims* w1 = infer.dims_of(kW1);
  const Dims* w2 = infer.dims_of(kW2);
  if (!x || !w1 || !w2) return Status::ok();
  if (x->size() != 4 || w1->size() != 4 || w2->size() != 4) {
    return invalid_graph("X ", type_to_string(infer.input(0)), ", W ",
                         type_to_string(infer.input(kW1)), " and W ",
                         type_to_string(infer.input(kW2)), " must have 4 dims");
  }
  const Attributes first = attributes_of_first(infer.attrs());
  FOLIO_TRY(const int64_t planes, first.get_int(kPlanesAttribute, 0));
  const Dims image = planes != 0 ? *x : Dims{(*x)[0], (*x)[3], (*x)[1], (*x)[2]};
  FOLIO_TRY(const Dims between, conv_out_dims(first, infer.table(), image, *w1));
  FOLIO_TRY(const Dims out, conv_out_dims(infer.attrs(), infer.table(), between, *w2));
  infer.set_tensor(0, infer.dtype(0), Dims{out[0], out[2], out[3], out[1]});
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<NhwcConvPair>();
  FOLIO_TRY(kernel->first, parse_nhwc_conv(attributes_of_first(build.attrs())));
  FOLIO_TRY(kernel->second, parse_nhwc_conv(build.attrs()));
  FOLIO_RETURN_IF_ERROR(request_nhwc_conv(build, kW1, kernel->first));
  FOLIO_RETURN_IF_ERROR(request_nhwc_conv(build, kW2, kernel->second));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_conv_pair(OpRegistry& registry) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = "ConvPair";
  def.min_inputs = 5;
  def.max_inputs = 6;
  def.optional_inputs = 1U << kB1 | 1U << kScale;
  def.infer = infer;
  def.make = make;
  def.unaligned_inputs = 1U << kW1 | 1U << kW2;  // they are only ever packed
  registry.add(def);
}

}  // namespace folio
