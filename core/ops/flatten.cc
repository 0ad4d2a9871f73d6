// Flatten: a matrix of the dims before and from an axis.
//
// Source: ONNX operator spec, Flatten, opsets 1, 9 (all types), 11 (negative axis), 13, 21 to 25.
// Shapes: [d0 * ... * d(axis-1), d(axis) * ... * dn]. A view.
// Types:  all types.
// Errors: kInvalidArgument when axis is outside [-rank, rank].
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Unlike other axes this one may be `rank`.
Result<int> split_axis(int64_t axis, int rank) {
  if (axis < -rank || axis > rank) {
    return invalid_argument("axis ", axis, " is outside [", -rank, ", ", rank, "]");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

class Flatten final : public OpKernel {
 public:
  explicit Flatten(int64_t axis) : axis_(axis) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int axis, split_axis(axis_, x->rank()));
    const Shape shape{x->shape().product(0, axis), x->shape().product(axis, x->rank())};
    run.set_output(0, x->reshaped(shape));
    return Status::ok();
  }

 private:
  int64_t axis_;
};

Status infer_flatten(OpInfer& infer) {
  Dims out(2);
  if (const Dims* x = infer.dims_of(0)) {
    FOLIO_TRY(const int64_t given, infer.attrs().get_int("axis", 1));
    FOLIO_TRY(const int axis, split_axis(given, static_cast<int>(x->size())));
    out[0] = infer.table().product(Dims(x->begin(), x->begin() + axis));
    out[1] = infer.table().product(Dims(x->begin() + axis, x->end()));
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_flatten(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", 1));
  return std::unique_ptr<OpKernel>(std::make_unique<Flatten>(axis));
}

}  // namespace

[[gnu::cold]] void register_flatten(OpRegistry& registry) {
  OpDef def;
  def.type = "Flatten";
  def.keeps_half = true;
  def.is_exact = true;
  def.infer = infer_flatten;
  def.make = make_flatten;
  def.view_of = 0;
  registry.add(def);
}

}  // namespace folio
