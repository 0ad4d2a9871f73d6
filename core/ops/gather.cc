// Gather: entries of an axis by index.
//
// Source: ONNX operator spec, Gather, opsets 1, 11 (negative indices), 13.
// Shapes: x [outer.., n, inner..], indices [any..] -> y [outer.., any.., inner..].
// Types:  all types but those of 2 and 4 bits; indices int32, int64.
// Memory: a table of 16 bits that the model casts to float is read as it stands
//         (kHalfWeightsAttribute); the rows picked are widened.
// Errors: kInvalidArgument when an index is outside [-n, n).
#include "core/ops/op_half_panels.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Gather final : public OpKernel {
 public:
  Gather(int64_t axis, bool widens) : axis_(axis), widens_(widens) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* where, run.tensor(1));
    FOLIO_TRY(const int axis, normalize_axis(axis_, x->rank()));
    FOLIO_TRY(std::vector<int64_t> indices, run.ints(1));
    for (int64_t& index : indices) {
      const int64_t given = index;
      if (!wrap_index(&index, x->dim(axis))) {
        return invalid_argument("index ", given, " is outside an axis of ", x->dim(axis));
      }
    }
    std::vector<int64_t> dims(x->shape().begin(), x->shape().begin() + axis);
    dims.insert(dims.end(), where->shape().begin(), where->shape().end());
    dims.insert(dims.end(), x->shape().begin() + axis + 1, x->shape().end());
    FOLIO_TRY(const Shape shape, shape_from(dims));
    const bool widens = widens_ && is_half(x->dtype());
    FOLIO_TRY(Tensor * out, run.output(0, widens ? DType::kFloat : x->dtype(), shape));
    if (out->count() == 0) return Status::ok();
    const int64_t inner = x->shape().product(axis + 1, x->rank());
    if (widens) {
      auto* const to = out->data_mut<float>();
      for_rows(run, *x, axis, indices, [&](int64_t i, int64_t from) {
        widen_halves(run.kernels(), x->dtype(), inner, x->raw() + from * 2, to + i * inner);
      });
      return Status::ok();
    }
    return dispatch_move(x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const to = out->data_mut<T>();
      for_rows(run, *x, axis, indices, [&](int64_t i, int64_t from) {
        if (inner == 1) {
          move_one(to + i, element_at<T>(x->raw(), from));
        } else {
          move_run(to + i * inner, element_at<T>(x->raw(), from), inner);
        }
      });
      return Status::ok();
    });
  }

 private:
  // Calls row(i, from) for each row of the result: the one of x that begins at element `from`.
  template <typename Row>
  static void for_rows(OpRun& run, const Tensor& x, int axis, const std::vector<int64_t>& indices,
                       const Row& each) {
    const int64_t inner = x.shape().product(axis + 1, x.rank());
    const int64_t n = x.dim(axis);
    const auto picks = static_cast<int64_t>(indices.size());
    const int64_t outer = x.shape().product(0, axis);
    run.parallel().for_range(outer * picks, rows_per_task(inner), [&](int64_t begin, int64_t end) {
      int64_t row = begin / picks;
      int64_t pick = begin % picks;
      for (int64_t i = begin; i < end; ++i) {
        each(i, (row * n + indices[static_cast<size_t>(pick)]) * inner);
        if (++pick == picks) {
          pick = 0;
          ++row;
        }
      }
    });
  }

  int64_t axis_;
  bool widens_;
};

// Entries picked from known contents.
void pick_data(OpInfer& infer) {
  const auto data = infer.data(0);
  const auto indices = infer.ints(1);
  const Dims* x = infer.dims_of(0);
  const Dims* where = infer.dims_of(1);
  if (!data || !indices || !x || x->size() != 1 || !where || where->size() > 1) return;
  std::vector<Dim> picked;
  for (int64_t index : *indices) {
    if (!wrap_index(&index, static_cast<int64_t>(data->size()))) return;
    picked.push_back((*data)[static_cast<size_t>(index)]);
  }
  infer.set_data(0, std::move(picked));
}

Status infer_gather(OpInfer& infer) {
  FOLIO_TRY(const int64_t given, infer.attrs().get_int("axis", 0));
  const Dims* x = infer.dims_of(0);
  const Dims* where = infer.dims_of(1);
  std::optional<Dims> out;
  if (x) {
    FOLIO_TRY(const int axis, normalize_axis(given, static_cast<int>(x->size())));
    if (where) {
      out.emplace(x->begin(), x->begin() + axis);
      out->insert(out->end(), where->begin(), where->end());
      out->insert(out->end(), x->begin() + axis + 1, x->end());
      if (out->size() > static_cast<size_t>(kMaxRank)) {
        return invalid_graph("the result would have ", out->size(), " dims, at most ", kMaxRank,
                             " are supported");
      }
    }
  }
  const bool widens = has_half_weights(infer.attrs()) && is_half(infer.dtype(0));
  infer.set_tensor(0, widens ? DType::kFloat : infer.dtype(0), std::move(out));
  pick_data(infer);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_gather(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", 0));
  return std::unique_ptr<OpKernel>(std::make_unique<Gather>(axis, has_half_weights(build.attrs())));
}

}  // namespace

[[gnu::cold]] void register_gather(OpRegistry& registry) {
  OpDef def;
  def.type = "Gather";
  def.keeps_half = true;
  def.is_exact = true;
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer_gather;
  def.make = make_gather;
  def.unaligned_inputs = 1;
  def.picked_inputs = 1;
  def.takes_half = [](const Attributes&, int i, const Shape&) { return i == 0; };
  registry.add(def);
}

}  // namespace folio
