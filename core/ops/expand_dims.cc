// ExpandDims: one dim of 1 put in.
//
// Source: ONNX Runtime ContribOperators, com.microsoft ExpandDims.
// Shapes: x of rank r, axis one int32 of -r - 1 to r, a place in the result. A view.
// Types:  all types.
// Errors: kInvalidArgument when axis is no single int32, or out of range.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class ExpandDims final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* given, run.tensor(1, DType::kInt32));
    if (given->rank() > 1 || given->count() != 1) {
      return invalid_argument("axis ", given->shape().to_string(), " must be one number");
    }
    if (x->rank() == kMaxRank) {
      return not_implemented("the result would have more than ", kMaxRank, " dims");
    }
    FOLIO_TRY(const std::vector<int64_t> axis, run.ints(1));
    FOLIO_TRY(const int at, normalize_axis(axis[0], x->rank() + 1));
    Shape out = x->shape();
    out.insert(at, 1);
    run.set_output(0, x->reshaped(out));
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<ExpandDims>());
}

Status infer(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  const auto axis = infer.ints(1);
  if (axis && axis->size() != 1) {
    return invalid_graph("axis holds ", axis->size(), " numbers, expected one");
  }
  std::optional<Dims> out;
  if (x && x->size() >= static_cast<size_t>(kMaxRank)) {
    return invalid_graph("the result would have more than ", kMaxRank, " dims");
  }
  if (x && axis) {
    FOLIO_TRY(const int at, normalize_axis((*axis)[0], static_cast<int>(x->size()) + 1));
    out = *x;
    out->insert(out->begin() + at, Dim::of(1));
  } else if (x) {
    out = Dims(x->size() + 1, Dim::unknown());
  }
  // The contents of a scalar stay known.
  auto data = infer.data(0);
  const bool is_row = out && out->size() == 1;
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  if (data && is_row) infer.set_data(0, std::move(*data));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_expand_dims(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "ExpandDims";
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer;
  def.make = make;
  def.view_of = 0;
  def.is_exact = true;
  def.keeps_half = true;
  registry.add(def);
}

}  // namespace folio
