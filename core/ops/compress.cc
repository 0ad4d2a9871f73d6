// Compress: the entries of an axis that a condition picks.
//
// Source: ONNX operator spec, Compress, opsets 9, 11 (negative axes).
// Shapes: x [outer.., n, inner..], condition bool [up to n] -> y [outer.., count, inner..]; without
//         an axis x counts as one dim.
// Types:  all types but those of 2 and 4 bits.
// Errors: kInvalidArgument when the condition picks an entry beyond the axis.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Compress final : public OpKernel {
 public:
  explicit Compress(std::optional<int64_t> axis) : axis_(axis) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* condition, run.tensor(1, DType::kBool));
    Shape shape{x->count()};
    int axis = 0;
    if (axis_) {
      FOLIO_TRY(axis, normalize_axis(*axis_, x->rank()));
      shape = x->shape();
    }
    const int64_t n = shape[axis];
    std::vector<int64_t> picks;
    for (int64_t i = 0, end = condition->count(); i < end; ++i) {
      if (condition->raw()[i] == 0) continue;
      if (i >= n) return invalid_argument("condition picks entry ", i, " of an axis of ", n);
      picks.push_back(i);
    }
    const int64_t outer = shape.product(0, axis);
    const int64_t inner = shape.product(axis + 1, shape.rank());
    shape[axis] = static_cast<int64_t>(picks.size());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    return dispatch_move(x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = y->data_mut<T>();
      for (int64_t o = 0; o < outer; ++o) {
        for (const int64_t pick : picks) {
          move_run(to, x->data<T>() + (o * n + pick) * inner, inner);
          to += inner;
        }
      }
      return Status::ok();
    });
  }

 private:
  std::optional<int64_t> axis_;
};

Result<std::unique_ptr<OpKernel>> make_compress(OpBuild& build) {
  FOLIO_TRY(const std::optional<int64_t> axis, optional_axis(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<Compress>(axis));
}

}  // namespace

[[gnu::cold]] void register_compress(OpRegistry& registry) {
  OpDef def;
  def.type = "Compress";
  def.since = 9;
  def.keeps_half = true;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_selection;
  def.make = make_compress;
  registry.add(def);
}

}  // namespace folio
