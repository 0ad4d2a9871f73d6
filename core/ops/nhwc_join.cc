// Join: the channels that are missing of an image which others have begun (op_nhwc_join.h).
//
// Source: ONNX operator spec, Concat along the last axis; made by the pass join_in_place only.
// Shapes: image [N, spatial..., C], x [N, spatial..., C(i)], each with its first channel in `at`
//         -> image.
// Types:  float.
// Errors: kInvalidArgument where an input does not fit the image.
#include "core/ops/op_move.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_join.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Join final : public OpKernel {
 public:
  std::vector<int64_t> at;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* begun, run.tensor(0, DType::kFloat));
    Tensor image = *begun;
    const int last = image.rank() - 1;
    if (last < 0) return invalid_argument("an image without dims");
    for (size_t k = 0; k < at.size(); ++k) {
      const int i = static_cast<int>(k) + 1;
      FOLIO_TRY(const Tensor* x, run.tensor(i, DType::kFloat));
      Shape same = x->shape();
      if (same.rank() == image.rank()) same[last] = image.dim(last);
      if (!(same == image.shape()) || x->dim(last) > image.dim(last) - at[k]) {
        return invalid_argument("input ", i, " is ", x->shape().to_string(),
                                ", which does not fit ", image.shape().to_string(),
                                " from channel ", at[k], " on");
      }
    }
    if (image.count() > 0) copy(run, &image);
    run.set_output(0, Value(std::move(image)));
    return Status::ok();
  }

 private:
  void copy(OpRun& run, Tensor* image) const {
    const int last = image->rank() - 1;
    const int64_t channels = image->dim(last);
    float* const y = image->data_mut<float>();
    run.parallel().for_range(image->count() / channels, rows_per_task(channels),
                             [&](int64_t begin, int64_t end) {
                               for (size_t k = 0; k < at.size(); ++k) {
                                 const Tensor& x = run.value(static_cast<int>(k) + 1).tensor();
                                 const int64_t n = x.dim(last);
                                 move_runs(y + begin * channels + at[k], channels,
                                           x.data<float>() + begin * n, n, n, end - begin);
                               }
                             });
  }
};

Status infer(OpInfer& infer) {
  infer_same(infer, 0, 0);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Join>();
  FOLIO_TRY(kernel->at, build.attrs().get_ints("at"));
  const auto images = static_cast<size_t>(build.input_count()) - 1;
  if (kernel->at.size() != images ||
      std::any_of(kernel->at.begin(), kernel->at.end(), [](int64_t at) { return at < 0; })) {
    return invalid_graph("'at' has ", kernel->at.size(), " first channels for ", images, " images");
  }
  build.writes_into(0);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_join(OpRegistry& registry) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = "Join";
  def.min_inputs = 2;
  def.max_inputs = kVariadic;
  def.infer = infer;
  def.make = make;
  def.is_exact = true;
  registry.add(def);
}

}  // namespace folio
