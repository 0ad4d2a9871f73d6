// Expand and Tile: elements repeated along axes.
//
// Source: ONNX operator spec, Expand, opsets 8, 13; Tile, opsets 1 (tiles and axis are scalars),
//         6 (repeats), 13.
// Shapes: Expand: x broadcast with the dims in input 1, both ways. Tile: y's dim is x's times
//         repeats[i].
// Types:  all types.
// Errors: kInvalidArgument when dims do not broadcast, repeats are negative or of another length.
#include <cmath>

#include "core/base/checked_math.h"
#include "core/ops/op_real.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

class Expand final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> dims, run.ints(1));
    FOLIO_TRY(const Shape to, shape_from(dims));
    FOLIO_TRY(const Shape shape, broadcast(x->shape(), to));
    FOLIO_TRY(Tensor * out, run.output(0, x->dtype(), shape));
    return copy_broadcast(run, *x, out);
  }
};

class Tile final : public OpKernel {
 public:
  explicit Tile(int version) : version_(version) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> repeats, repeats_of(run, x->rank()));
    int64_t strides[kMaxRank];
    row_strides(x->shape(), strides);
    StridedView view;
    std::vector<int64_t> dims;
    for (int i = 0; i < x->rank(); ++i) {
      const int64_t times = repeats[static_cast<size_t>(i)];
      int64_t dim = 0;
      if (times < 0 || !checked_mul(times, x->dim(i), &dim)) {
        return invalid_argument("dim ", x->dim(i), " cannot be repeated ", times, " times");
      }
      dims.push_back(dim);
      view.add(times, 0);
      view.add(x->dim(i), strides[i]);
    }
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * out, run.output(0, x->dtype(), shape));
    return copy_strided(run, view, *x, out);
  }

 private:
  // The spec has these two in x's type.
  static Result<std::vector<int64_t>> whole_numbers(OpRun& run, int input) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(input));
    if (!dtype_is_float(tensor->dtype())) return run.ints(input);
    FOLIO_TRY(const double* values, reals_of<double>(run, *tensor));
    std::vector<int64_t> out;
    for (int64_t i = 0, end = tensor->count(); i < end; ++i) {
      // Also false for NaN.
      if (!(std::abs(values[i]) <= 1e15) || values[i] != std::floor(values[i])) {
        return invalid_argument("input ", input, " is ", values[i], ", expected a whole number");
      }
      out.push_back(static_cast<int64_t>(values[i]));
    }
    return out;
  }

  Result<std::vector<int64_t>> repeats_of(OpRun& run, int rank) const {
    if (version_ >= 6) {
      FOLIO_TRY(std::vector<int64_t> repeats, run.ints(1));
      if (repeats.size() != static_cast<size_t>(rank)) {
        return invalid_argument("repeats has ", repeats.size(), " entries, expected ", rank);
      }
      return repeats;
    }
    FOLIO_TRY(const std::vector<int64_t> tiles, whole_numbers(run, 1));
    FOLIO_TRY(const std::vector<int64_t> axes, whole_numbers(run, 2));
    if (tiles.size() != 1 || axes.size() != 1) {
      return invalid_argument("tiles and axis have ", tiles.size(), " and ", axes.size(),
                              " entries, expected 1");
    }
    FOLIO_TRY(const int axis, normalize_axis(axes[0], rank));
    std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
    repeats[static_cast<size_t>(axis)] = tiles[0];
    return repeats;
  }

  int version_;
};

Status infer_expand(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  const auto to = infer.data(1);
  std::optional<Dims> out;
  const Dims* target = infer.dims_of(1);
  std::optional<size_t> to_rank;
  if (to) {
    to_rank = to->size();
  } else if (target && target->size() == 1 && (*target)[0].is_value() &&
             (*target)[0].value <= kMaxRank) {
    to_rank = static_cast<size_t>((*target)[0].value);
  }
  if (x && to_rank && *to_rank <= static_cast<size_t>(kMaxRank)) {
    const size_t rank = std::max(x->size(), *to_rank);
    out.emplace(rank);
    for (size_t i = 0; i < rank; ++i) {
      const size_t skip_x = rank - x->size();
      const size_t skip_to = rank - *to_rank;
      const Dim a = i < skip_x ? Dim::of(1) : (*x)[i - skip_x];
      const Dim b = i < skip_to ? Dim::of(1) : to ? (*to)[i - skip_to] : Dim::unknown();
      (*out)[i] = infer.table().broadcast(a, b);
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Status infer_tile(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> out;
  if (x) {
    const auto repeats = infer.version() >= 6 ? infer.data(1) : std::nullopt;
    // Repeats of no dims are checked by the run, which would be left out for equal shapes.
    const bool fits = repeats ? repeats->size() == x->size() : !x->empty();
    if (fits) out.emplace(x->size());
    for (size_t i = 0; fits && repeats && i < x->size(); ++i) {
      (*out)[i] = infer.table().mul((*x)[i], (*repeats)[i]);
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_expand(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Expand>());
}

Result<std::unique_ptr<OpKernel>> make_tile(OpBuild& build) {
  return std::unique_ptr<OpKernel>(std::make_unique<Tile>(build.version()));
}

}  // namespace

[[gnu::cold]] void register_expand(OpRegistry& registry) {
  OpDef def;
  def.type = "Expand";
  def.keeps_half = true;
  def.is_exact = true;
  def.since = 8;
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer_expand;
  def.make = make_expand;
  def.unaligned_inputs = 1;
  registry.add(def);

  def.type = "Tile";
  def.keeps_half = false;
  def.infer = infer_tile;
  def.make = make_tile;
  def.since = 1;
  def.until = 5;
  def.min_inputs = 3;
  def.max_inputs = 3;
  registry.add(def);
  def.since = 6;
  def.until = kLatest;
  def.min_inputs = 2;
  def.max_inputs = 2;
  registry.add(def);
}

}  // namespace folio
