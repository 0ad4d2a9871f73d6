// Slice: elements from start to end with a step, along some axes.
//
// Source: ONNX operator spec, Slice, opsets 1 (attributes), 10 (inputs, steps), 11, 13.
// Shapes: starts, ends, axes, steps [n]; negative places count from the end, everything is
//         clamped to the dim (a start backwards to its elements, so before the first is the first);
//         y's dim is ceil((end - start) / step), at least 0.
// Types:  all types; bounds int32, int64.
// Errors: kInvalidArgument when lengths differ, a step is 0, or an axis is outside or twice.
#include <limits>

#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

constexpr int64_t kFarStart = std::numeric_limits<int64_t>::min();
constexpr int64_t kLongStep = int64_t{1} << 62;  // beyond any dim, and safe to negate and add

struct Bounds {
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;   // empty: 0, 1, 2 ...
  std::vector<int64_t> steps;  // empty: 1
};

Status check_lengths(Bounds* bounds, bool has_axes, bool has_steps) {
  const size_t n = bounds->starts.size();
  if (!has_axes) {
    for (size_t i = 0; i < n; ++i) bounds->axes.push_back(static_cast<int64_t>(i));
  }
  if (!has_steps) bounds->steps.assign(n, 1);
  if (bounds->ends.size() != n || bounds->axes.size() != n || bounds->steps.size() != n) {
    return invalid_argument("starts, ends, axes and steps have ", n, ", ", bounds->ends.size(),
                            ", ", bounds->axes.size(), " and ", bounds->steps.size(),
                            " entries, expected equal numbers");
  }
  for (int64_t& step : bounds->steps) {
    if (step == 0) return invalid_argument("a step is 0");
    step = std::clamp(step, -kLongStep, kLongStep);
  }
  return Status::ok();
}

Result<Bounds> bounds_from_attributes(const Attributes& attrs) {
  Bounds bounds;
  for (const char* name : {"starts", "ends"}) {
    if (!attrs.has(name)) return invalid_graph("attribute '", name, "' is required but missing");
  }
  FOLIO_TRY(bounds.starts, attrs.get_ints("starts"));
  FOLIO_TRY(bounds.ends, attrs.get_ints("ends"));
  FOLIO_TRY(bounds.axes, attrs.get_ints("axes"));
  FOLIO_RETURN_IF_ERROR(check_lengths(&bounds, attrs.has("axes"), false));
  return bounds;
}

struct Range {
  int64_t start = 0;
  int64_t count = 0;
};

Range clamp_range(int64_t start, int64_t end, int64_t step, int64_t dim) {
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, 0, dim);
    return {start, end <= start ? 0 : (end - start - 1) / step + 1};
  }
  if (dim == 0) return {};
  start = std::clamp<int64_t>(start, 0, dim - 1);
  end = std::clamp<int64_t>(end, -1, dim - 1);
  return {start, start <= end ? 0 : (start - end - 1) / -step + 1};
}

class Slice final : public OpKernel {
 public:
  explicit Slice(std::optional<Bounds> bounds) : bounds_(std::move(bounds)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (bounds_) return slice(run, *x, *bounds_);
    Bounds bounds;
    FOLIO_TRY(bounds.starts, run.ints(1));
    FOLIO_TRY(bounds.ends, run.ints(2));
    if (run.has_input(3)) {
      FOLIO_TRY(bounds.axes, run.ints(3));
    }
    if (run.has_input(4)) {
      FOLIO_TRY(bounds.steps, run.ints(4));
    }
    FOLIO_RETURN_IF_ERROR(check_lengths(&bounds, run.has_input(3), run.has_input(4)));
    return slice(run, *x, bounds);
  }

 private:
  static Status slice(OpRun& run, const Tensor& x, const Bounds& bounds) {
    FOLIO_TRY(const std::vector<int> axes, normalize_axes(bounds.axes, x.rank()));
    int64_t strides[kMaxRank];
    row_strides(x.shape(), strides);
    Shape shape = x.shape();
    int64_t offset = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int axis = axes[i];
      const int64_t step = bounds.steps[i];
      const Range range = clamp_range(bounds.starts[i], bounds.ends[i], step, x.dim(axis));
      shape[axis] = range.count;
      if (range.count == 0) continue;
      offset += range.start * strides[axis];
      // A step that is never taken must not overflow.
      strides[axis] = range.count == 1 ? 0 : strides[axis] * step;
    }
    FOLIO_TRY(Tensor * out, run.output(0, x.dtype(), shape));
    if (out->count() == 0) return Status::ok();
    StridedView view;
    view.offset = offset;
    for (int i = 0; i < shape.rank(); ++i) view.add(shape[i], strides[i]);
    return copy_strided(run, view, x, out);
  }

  std::optional<Bounds> bounds_;
};

// ---------------------------------------------------------------- inference

// `dim` where it is not negative, else unknown: expressions may be negative, and a negative start
// means something else. (x + 1) / (x + 1) has no value from x = -1 down and is 1 above.
Dim not_negative(DimTable& table, Dim dim) {
  if (!dim.is_symbol() || !table.name(dim.symbol).empty()) return dim;
  const Dim next = table.add(dim, Dim::of(1));
  return table.mul(dim, table.ceil_div(next, next));
}

// What is known of one bound: a number of any sign, or a dim.
struct Bound {
  std::optional<int64_t> number;
  Dim dim;
};

// The sliced dim for step 1.
Dim sliced_dim(DimTable& table, Dim dim, const Bound& start, const Bound& end) {
  const auto place = [&](const Bound& bound) {
    if (!bound.number) return table.min(dim, not_negative(table, bound.dim));
    if (*bound.number >= 0) return table.min(dim, Dim::of(*bound.number));
    if (*bound.number == kFarStart) return Dim::of(0);
    return table.max(table.sub(dim, Dim::of(-*bound.number)), Dim::of(0));
  };
  // Far ends: exporters write the largest int32 or int64.
  const bool to_end = end.number && *end.number >= std::numeric_limits<int32_t>::max();
  const bool from_start = start.number && (*start.number == 0 || *start.number == kFarStart);
  if (from_start) return to_end ? dim : place(end);
  if (!to_end) return table.max(table.sub(place(end), place(start)), Dim::of(0));
  if (!start.number) {
    return table.max(table.sub(dim, not_negative(table, start.dim)), Dim::of(0));
  }
  if (*start.number < 0) return table.min(dim, Dim::of(-*start.number));
  return table.max(table.sub(dim, Dim::of(*start.number)), Dim::of(0));
}

Dim infer_dim(DimTable& table, Dim dim, const Bound& start, const Bound& end,
              std::optional<int64_t> step) {
  if (!step || *step == 0) return Dim::unknown();
  const int64_t by = std::clamp(*step, -kLongStep, kLongStep);
  if (dim.is_value() && start.number && end.number) {
    return Dim::of(clamp_range(*start.number, *end.number, by, dim.value).count);
  }
  if (by == 1) return sliced_dim(table, dim, start, end);
  // A symbolic dim may be shorter than a large end: only the far end is taken for it.
  if (by > 1) return table.ceil_div(sliced_dim(table, dim, start, end), Dim::of(by));
  const bool reversed = start.number && *start.number == -1 && end.number &&
                        *end.number <= std::numeric_limits<int32_t>::min();
  return reversed && by == -1 ? dim : Dim::unknown();
}

struct KnownBounds {
  std::vector<Bound> starts;
  std::vector<Bound> ends;
  std::optional<std::vector<int64_t>> axes;
  std::optional<std::vector<int64_t>> steps;
};

std::optional<std::vector<Bound>> known_bounds(OpInfer& infer, int input) {
  std::vector<Bound> out;
  if (const auto numbers = infer.ints(input)) {
    for (const int64_t number : *numbers) out.push_back({number, Dim::unknown()});
    return out;
  }
  const auto data = infer.data(input);
  if (!data) return std::nullopt;
  for (const Dim dim : *data) {
    out.push_back({dim.is_value() ? std::optional(dim.value) : std::nullopt, dim});
  }
  return out;
}

// Nothing when the axes are not known: then every dim may change.
Result<std::optional<KnownBounds>> bounds_at_infer(OpInfer& infer) {
  KnownBounds known;
  if (infer.version() < 10) {
    FOLIO_TRY(Bounds bounds, bounds_from_attributes(infer.attrs()));
    for (const int64_t start : bounds.starts) known.starts.push_back({start, Dim::unknown()});
    for (const int64_t end : bounds.ends) known.ends.push_back({end, Dim::unknown()});
    known.axes = std::move(bounds.axes);
    known.steps = std::move(bounds.steps);
    return std::optional(std::move(known));
  }
  auto starts = known_bounds(infer, 1);
  auto ends = known_bounds(infer, 2);
  size_t n = 0;
  if (starts) {
    n = starts->size();
  } else if (const Dims* dims = infer.dims_of(1);
             dims && dims->size() == 1 && (*dims)[0].is_value() && (*dims)[0].value <= kMaxRank) {
    n = static_cast<size_t>((*dims)[0].value);
  } else {
    return std::optional<KnownBounds>();
  }
  known.starts = starts ? std::move(*starts) : std::vector<Bound>(n);
  known.ends = ends ? std::move(*ends) : std::vector<Bound>(n);
  if (infer.has_input(3)) {
    known.axes = infer.ints(3);
    if (!known.axes) return std::optional<KnownBounds>();
  } else {
    known.axes.emplace();
    for (size_t i = 0; i < n; ++i) known.axes->push_back(static_cast<int64_t>(i));
  }
  known.steps = infer.has_input(4) ? infer.ints(4) : std::vector<int64_t>(n, 1);
  if (known.ends.size() != n || known.axes->size() != n ||
      (known.steps && known.steps->size() != n)) {
    return invalid_graph("starts, ends, axes and steps have different numbers of entries");
  }
  return std::optional(std::move(known));
}

// Slices of known contents (a shape cut in pieces).
void slice_data(OpInfer& infer, const KnownBounds& known) {
  const auto data = infer.data(0);
  if (!data || infer.dims_of(0)->size() != 1 || known.axes->size() != 1 || !known.steps) return;
  const Bound& start = known.starts[0];
  const Bound& end = known.ends[0];
  const int64_t step = std::clamp((*known.steps)[0], -kLongStep, kLongStep);
  if (!start.number || !end.number || step == 0) return;
  const Range range =
      clamp_range(*start.number, *end.number, step, static_cast<int64_t>(data->size()));
  std::vector<Dim> out;
  for (int64_t i = 0; i < range.count; ++i) {
    out.push_back((*data)[static_cast<size_t>(range.start + i * step)]);
  }
  infer.set_data(0, std::move(out));
}

Status infer_slice(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  FOLIO_TRY(const std::optional<KnownBounds> known, bounds_at_infer(infer));
  if (!x) {
    infer.set_tensor(0, infer.dtype(0));
    return Status::ok();
  }
  Dims out = *x;
  if (!known) {
    std::fill(out.begin(), out.end(), Dim::unknown());
  } else {
    FOLIO_TRY(const std::vector<int> axes,
              normalize_axes(*known->axes, static_cast<int>(x->size())));
    for (size_t i = 0; i < axes.size(); ++i) {
      Dim& dim = out[static_cast<size_t>(axes[i])];
      const auto step = known->steps ? std::optional((*known->steps)[i]) : std::nullopt;
      dim = infer_dim(infer.table(), dim, known->starts[i], known->ends[i], step);
    }
    slice_data(infer, *known);
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_slice(OpBuild& build) {
  std::optional<Bounds> bounds;
  if (build.version() < 10) {
    FOLIO_TRY(bounds, bounds_from_attributes(build.attrs()));
  }
  return std::unique_ptr<OpKernel>(std::make_unique<Slice>(std::move(bounds)));
}

}  // namespace

[[gnu::cold]] void register_slice(OpRegistry& registry) {
  OpDef def;
  def.type = "Slice";
  def.keeps_half = true;
  def.is_exact = true;
  def.until = 9;
  def.infer = infer_slice;
  def.make = make_slice;
  def.unaligned_inputs = 1;
  registry.add(def);
  def.since = 10;
  def.until = kLatest;
  def.min_inputs = 3;
  def.max_inputs = 5;
  registry.add(def);
}

}  // namespace folio
