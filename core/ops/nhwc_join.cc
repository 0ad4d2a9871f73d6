// Join: the channels that are missing of an image which others have begun, or all of them
// (op_nhwc_channels.h).
//
// Source: ONNX operator spec, Concat of Splits along the last axis; made by the passes
//         read_channels and join_in_place only.
// Shapes: image [N, spatial..., C] or none, x(i) [N, spatial..., C(i)] -> image: channels
//         [from[i], from[i] + channels[i]) of x(i) become those from at[i] on; C is the attribute
//         joined_channels.
// Types:  float.
// Errors: kInvalidArgument where an input does not fit the image.
#include "core/ops/op_move.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_channels.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Join final : public OpKernel {
 public:
  std::vector<JoinPart> parts;
  int64_t channels = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* first, run.tensor(run.has_input(0) ? 0 : 1, DType::kFloat));
    Shape shape = first->shape();
    const int last = shape.rank() - 1;
    if (last < 0) return invalid_argument("an image without dims");
    shape[last] = channels;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int input = static_cast<int>(i) + 1;
      FOLIO_TRY(const Tensor* x, run.tensor(input, DType::kFloat));
      Shape same = x->shape();
      if (same.rank() == shape.rank()) same[last] = channels;
      if (!(same == shape) || parts[i].count > x->dim(last) - parts[i].from) {
        return invalid_argument("input ", input, " is ", x->shape().to_string(), " from channel ",
                                parts[i].from, " on, which does not fit ", shape.to_string(),
                                " from channel ", parts[i].at, " on");
      }
    }
    FOLIO_TRY(const PlacedOutput image, place_output(run, {0, channels}, 0, shape));
    if (shape.count() > 0) copy(run, shape.count() / channels, image.y);
    return Status::ok();
  }

 private:
  void copy(OpRun& run, int64_t pixels, float* y) const {
    run.parallel().for_range(pixels, rows_per_task(channels), [&](int64_t begin, int64_t end) {
      for (size_t i = 0; i < parts.size(); ++i) {
        const Tensor& x = run.value(static_cast<int>(i) + 1).tensor();
        const int64_t step = x.dim(x.rank() - 1);
        move_runs(y + begin * channels + parts[i].at, channels,
                  x.data<float>() + begin * step + parts[i].from, step, parts[i].count,
                  end - begin);
      }
    });
  }
};

Status infer(OpInfer& infer) {
  const int like = infer.has_input(0) ? 0 : 1;
  infer.set_tensor(0, infer.dtype(like));
  const Dims* x = infer.dims_of(like);
  if (!x || x->empty()) return Status::ok();
  Dims image = *x;
  FOLIO_RETURN_IF_ERROR(infer_joined(infer.attrs(), &image));
  infer.set_tensor(0, infer.dtype(like), std::move(image));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Join>();
  FOLIO_TRY(const JoinPlace place, parse_join_place(build.attrs()));
  kernel->channels = place.channels;
  FOLIO_TRY(kernel->parts, parse_join_parts(build.attrs(), build.input_count() - 1));
  for (const JoinPart& part : kernel->parts) {
    if (part.count > place.channels - part.at) {
      return invalid_graph(part.count, " channels from ", part.at, " on of ", place.channels);
    }
  }
  if (build.has_input(0)) build.writes_into(0);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_join(OpRegistry& registry) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = "Join";
  def.min_inputs = 2;
  def.max_inputs = kVariadic;
  def.optional_inputs = 1U << 0;
  def.infer = infer;
  def.make = make;
  def.is_exact = true;
  registry.add(def);
}

}  // namespace folio
