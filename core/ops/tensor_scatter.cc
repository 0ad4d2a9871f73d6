// TensorScatter: an update written into a cache, at a place of its own for each batch item.
//
// Source: ONNX operator spec, TensorScatter, opset 24.
// Shapes: past [batch, .., max, ..], update [batch, .., n, ..], write_indices [batch] (0 when
//         absent) -> present as past.
// Math:   present is past with update at [write_indices[b], + n) of the axis; circular: modulo max.
// Types:  all types but those of 2 and 4 bits; write_indices int32, int64.
// Errors: kInvalidArgument when the update does not fit.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class TensorScatter final : public OpKernel {
 public:
  TensorScatter(int64_t axis, bool circular) : axis_(axis), circular_(circular) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* past, run.tensor(0));
    FOLIO_TRY(const Tensor* update, run.tensor(1, past->dtype()));
    FOLIO_TRY(const int axis, normalize_axis(axis_, past->rank()));
    Shape same = update->shape();
    if (same.rank() == past->rank()) same[axis] = past->dim(axis);
    if (axis == 0 || !(same == past->shape()) || update->dim(axis) > past->dim(axis)) {
      return invalid_argument("an update of ", update->shape().to_string(), " does not fit ",
                              past->shape().to_string(), " along axis ", axis);
    }
    FOLIO_TRY(const std::vector<int64_t> places, places_of(run, *past, *update, axis));
    FOLIO_RETURN_IF_ERROR(copy_to_output(run, 0, *past));
    if (update->count() == 0) return Status::ok();
    Tensor* present = &run.outputs()[0].tensor();
    return dispatch_move(past->dtype(), [&](auto tag) {
      write<typename decltype(tag)::type>(*update, axis, places, present);
      return Status::ok();
    });
  }

 private:
  Result<std::vector<int64_t>> places_of(OpRun& run, const Tensor& past, const Tensor& update,
                                         int axis) const {
    std::vector<int64_t> places;
    if (run.has_input(2)) {
      FOLIO_TRY(places, run.ints(2));
      if (static_cast<int64_t>(places.size()) != past.dim(0)) {
        return invalid_argument("write_indices has ", places.size(), " entries for a batch of ",
                                past.dim(0));
      }
    }
    const int64_t last = past.dim(axis) - (circular_ ? 1 : update.dim(axis));
    for (const int64_t place : places) {
      if (place < 0 || place > last) {
        return invalid_argument("a write index is ", place, ", expected 0 to ", last);
      }
    }
    return places;
  }

  template <typename T>
  static void write(const Tensor& update, int axis, const std::vector<int64_t>& places,
                    Tensor* present) {
    const Shape& shape = present->shape();
    const int64_t inner = shape.product(axis + 1, shape.rank());
    const int64_t per_batch = shape.product(1, axis);
    const int64_t longest = shape[axis];
    const int64_t n = update.dim(axis);
    const T* from = update.data<T>();
    for (int64_t row = 0; row < shape[0] * per_batch; ++row) {
      const int64_t first = places.empty() ? 0 : places[static_cast<size_t>(row / per_batch)];
      T* to = present->data_mut<T>() + row * longest * inner;
      // At most twice: up to the end, then from the start.
      const int64_t head = std::min(n, longest - first);
      move_run(to + first * inner, from, head * inner);
      move_run(to, from + head * inner, (n - head) * inner);
      from += n * inner;
    }
  }

  int64_t axis_;
  bool circular_;
};

Status infer_scatter(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_scatter(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", -2));
  FOLIO_TRY(const std::string mode, build.attrs().get_string("mode", "linear"));
  if (mode != "linear" && mode != "circular") {
    return invalid_graph("mode is '", mode, "', expected linear or circular");
  }
  build.may_overwrite(0);
  return std::unique_ptr<OpKernel>(std::make_unique<TensorScatter>(axis, mode == "circular"));
}

}  // namespace

[[gnu::cold]] void register_tensor_scatter(OpRegistry& registry) {
  OpDef def;
  def.type = "TensorScatter";
  def.keeps_half = true;
  def.since = 24;
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.in_place = {0, -1, -1};
  def.infer = infer_scatter;
  def.make = make_scatter;
  registry.add(def);
}

}  // namespace folio
