// Pad: elements put around a tensor, or cut off where a pad is negative.
//
// Source: ONNX operator spec, Pad, opsets 1 (`paddings`), 2 (`pads` attribute), 11 (inputs), 13,
//         18 (axes), 19 (wrap), 21 (4-bit), 23 to 25; com.microsoft version 1, which is as 11.
// Shapes: pads [2 * n]: begins of n axes, then ends; y's dim is begin + dim + end.
// Math:   constant: `value`; edge: the nearest element; reflect: mirrored about the edge element;
//         wrap: from the other side. Cutting comes first, padding sees what is left.
// Types:  all types; before opset 11 float, double, float16 where value is not 0.
// Errors: kInvalidArgument for lengths that differ, dims below 0, and modes that need an element
//         where there is none.
#include <cstdint>

#include "core/base/checked_math.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

enum class Mode : uint8_t { kConstant, kReflect, kEdge, kWrap };

Result<Mode> mode_of(const Attributes& attrs, int version) {
  FOLIO_TRY(const std::string name, attrs.get_string("mode", "constant"));
  if (name == "constant") return Mode::kConstant;
  if (name == "reflect") return Mode::kReflect;
  if (name == "edge") return Mode::kEdge;
  if (name == "wrap" && version >= 19) return Mode::kWrap;
  return invalid_graph("mode is '", name, "', expected constant, reflect, edge",
                       version >= 19 ? " or wrap" : "");
}

// One axis: what is left of it when it is cut, [first, first + n), and where that stands in `out`.
struct PaddedAxis {
  int64_t first = 0;
  int64_t n = 0;
  int64_t lead = 0;
  int64_t out = 0;
};

Result<PaddedAxis> padded_axis(int64_t dim, int64_t begin, int64_t end, Mode mode) {
  PaddedAxis axis;
  if (!checked_add(dim, begin, &axis.out) || !checked_add(axis.out, end, &axis.out) ||
      axis.out < 0) {
    return invalid_argument("a dim of ", dim, " cannot be padded by ", begin, " and ", end);
  }
  const auto cut_by = [dim](int64_t pad) { return pad >= 0 ? 0 : pad < -dim ? dim : -pad; };
  axis.first = cut_by(begin);
  axis.n = std::max<int64_t>(0, dim - axis.first - cut_by(end));
  axis.lead = std::max<int64_t>(begin, 0);
  if (axis.n == 0 && axis.out > 0 && mode != Mode::kConstant) {
    return invalid_argument("nothing is left of a dim of ", dim, " to pad with");
  }
  uint64_t bytes = 0;
  if (!dtype_bytes(DType::kInt64, static_cast<uint64_t>(axis.out), &bytes) ||
      bytes > INT64_MAX / 2) {
    return invalid_argument("a padded dim of ", axis.out, " is too large");
  }
  return axis;
}

// Where along the axis each output element comes from; -1: the constant.
std::vector<int64_t> source_places(const PaddedAxis& axis, Mode mode) {
  const auto [first, n, lead, out] = axis;
  std::vector<int64_t> places(static_cast<size_t>(out));
  const int64_t period = n > 1 ? 2 * (n - 1) : 1;
  for (int64_t i = 0; i < out; ++i) {
    int64_t at = i - lead;
    if (at < 0 || at >= n) {
      switch (mode) {
        case Mode::kConstant:
          places[static_cast<size_t>(i)] = -1;
          continue;
        case Mode::kEdge:
          at = at < 0 ? 0 : n - 1;
          break;
        case Mode::kReflect:
          at = (at % period + period) % period;
          if (at >= n) at = period - at;
          break;
        case Mode::kWrap:
          at = (at % n + n) % n;
          break;
      }
    }
    places[static_cast<size_t>(i)] = first + at;
  }
  return places;
}

// The last axis along which elements change their places; 0 if there is none.
int last_padded(const Shape& x, const Shape& padded,
                const std::vector<std::vector<int64_t>>& places) {
  int axis = x.rank() - 1;
  for (; axis > 0; --axis) {
    const std::vector<int64_t>& at = places[static_cast<size_t>(axis)];
    // As many elements as before: the pads are opposite numbers, and move both ends unless 0.
    if (x[axis] != padded[axis] || at.front() != 0 || at.back() != x[axis] - 1) break;
  }
  return axis;
}

// Neighbours along an axis that stay neighbours; or that get the constant, when place is -1.
struct PadRun {
  int64_t at, place, length;
};

std::vector<PadRun> runs_of(const std::vector<int64_t>& places) {
  std::vector<PadRun> runs;
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t place = places[i];
    if (!runs.empty()) {
      PadRun& last = runs.back();
      if (place < 0 ? last.place < 0 : last.place >= 0 && place == last.place + last.length) {
        ++last.length;
        continue;
      }
    }
    runs.push_back({static_cast<int64_t>(i), place, 1});
  }
  return runs;
}

// For each row of the output, the source row (or none), then runs by place. What lies behind the
// last axis that is padded moves as a whole.
template <typename T>
void pad_rows(OpRun& run, const Shape& x, const std::vector<std::vector<int64_t>>& places,
              const void* from, const T& fill, const Shape& shape, T* to) {
  const int last = last_padded(x, shape, places);
  const int64_t n = shape[last];
  const int64_t unit = shape.product(last + 1, shape.rank());
  const int64_t rows = shape.product(0, last);
  const std::vector<PadRun> runs = runs_of(places[static_cast<size_t>(last)]);
  int64_t strides[kMaxRank];
  row_strides(x, strides);
  run.parallel().for_range(rows, rows_per_task(n * unit), [&](int64_t begin, int64_t end) {
    int64_t index[kMaxRank];
    int64_t rest = begin;
    for (int i = last - 1; i >= 0; --i) {
      index[i] = rest % shape[i];
      rest /= shape[i];
    }
    for (int64_t row = begin; row < end; ++row) {
      int64_t offset = 0;
      bool outside = false;
      for (int i = last - 1; i >= 0; --i) {
        const int64_t place = places[static_cast<size_t>(i)][static_cast<size_t>(index[i])];
        outside |= place < 0;
        offset += place * strides[i];
      }
      for (int i = last - 1; i >= 0 && ++index[i] == shape[i]; --i) index[i] = 0;
      T* out = to + row * n * unit;
      if (outside) {
        fill_run(out, n * unit, fill);
        continue;
      }
      for (const auto& [at, place, length] : runs) {
        if (place < 0) {
          fill_run(out + at * unit, length * unit, fill);
        } else if (length * unit == 1) {
          move_one(out + at, element_at<T>(from, offset + place));
        } else {
          move_run(out + at * unit, element_at<T>(from, offset + place * unit), length * unit);
        }
      }
    }
  });
}

struct Options {
  Mode mode = Mode::kConstant;
  std::vector<int64_t> pads;  // before opset 11
  float value = 0;
};

Result<Options> parse(const Attributes& attrs, int version) {
  Options options;
  FOLIO_TRY(options.mode, mode_of(attrs, version));
  if (version < 11) {
    FOLIO_TRY(options.pads, attrs.get_ints(version == 1 ? "paddings" : "pads"));
    FOLIO_TRY(options.value, attrs.get_float("value", 0.0F));
  }
  return options;
}

// Pads of `axes` as begins and ends of all axes.
Result<std::vector<int64_t>> spread(const std::vector<int64_t>& pads, const std::vector<int>& axes,
                                    int rank) {
  if (pads.size() != 2 * axes.size()) {
    return invalid_argument("pads has ", pads.size(), " entries, expected ", 2 * axes.size());
  }
  std::vector<int64_t> out(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    out[static_cast<size_t>(axes[i])] = pads[i];
    out[static_cast<size_t>(axes[i] + rank)] = pads[i + axes.size()];
  }
  return out;
}

Result<std::vector<int>> padded_axes(const std::optional<std::vector<int64_t>>& given, int rank) {
  if (given) return normalize_axes(*given, rank);
  std::vector<int> all;
  for (int i = 0; i < rank; ++i) all.push_back(i);
  return all;
}

class Pad final : public OpKernel {
 public:
  Pad(Options options, int version) : options_(std::move(options)), version_(version) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const int rank = x->rank();
    std::vector<int64_t> pads = options_.pads;
    std::optional<std::vector<int64_t>> given_axes;
    if (version_ >= 11) {
      FOLIO_TRY(pads, run.ints(1));
    }
    if (version_ >= 18 && run.has_input(3)) {
      FOLIO_TRY(given_axes, run.ints(3));
    }
    FOLIO_TRY(const std::vector<int> axes, padded_axes(given_axes, rank));
    FOLIO_TRY(pads, spread(pads, axes, rank));
    std::vector<PaddedAxis> padded;
    std::vector<int64_t> dims;
    for (int i = 0; i < rank; ++i) {
      const auto at = static_cast<size_t>(i);
      FOLIO_TRY(
          const PaddedAxis axis,
          padded_axis(x->dim(i), pads[at], pads[at + static_cast<size_t>(rank)], options_.mode));
      dims.push_back(axis.out);
      padded.push_back(axis);
    }
    FOLIO_TRY(Shape shape, shape_from(dims));
    FOLIO_TRY(const Tensor fill, fill_value(run, x->dtype()));
    FOLIO_TRY(Tensor * out, run.output(0, x->dtype(), shape));
    if (out->count() == 0) return Status::ok();
    if (rank == 0) {
      StridedView view;
      return copy_strided(run, view, *x, out);
    }
    // Only now: beside a dim of 0 another may be of any length.
    std::vector<std::vector<int64_t>> places;
    for (const PaddedAxis& axis : padded) places.push_back(source_places(axis, options_.mode));
    return move(run, *x, fill, places, out);
  }

 private:
  // One element of x's type, as a tensor. Numbers keep their bits; 0 has none set in any type.
  Result<Tensor> fill_value(OpRun& run, DType dtype) const {
    FOLIO_TRY(Tensor fill, allocate_tensor(dtype, Shape{}));
    if (dtype != DType::kString) std::memset(fill.raw_mut(), 0, fill.bytes());
    if (version_ >= 11 && run.has_input(2)) {
      FOLIO_TRY(const Tensor* given, run.tensor(2, dtype));
      if (given->count() < 1) return fill;  // ORT takes an empty one as absent
      if (dtype == DType::kString) return given->count() == 1 ? *given : fill;
      std::memcpy(fill.raw_mut(), given->raw(), fill.bytes());
    } else if (options_.value != 0) {
      if (dtype == DType::kFloat) {
        *fill.data_mut<float>() = options_.value;
      } else if (dtype == DType::kDouble) {
        *fill.data_mut<double>() = options_.value;
      } else if (dtype == DType::kFloat16) {
        run.kernels().f32_to_f16(1, &options_.value, fill.raw_mut());
      } else {
        return invalid_argument("input 0 is ", dtype_name(dtype),
                                ", expected a floating point type");
      }
    }
    return fill;
  }

  static Status move(OpRun& run, const Tensor& x, const Tensor& fill,
                     const std::vector<std::vector<int64_t>>& places, Tensor* out) {
    if (dtype_is_subbyte(x.dtype())) {
      FOLIO_TRY(uint8_t * from, run.scratch(static_cast<size_t>(x.count()) + 1));
      FOLIO_TRY(uint8_t * to, run.scratch(static_cast<size_t>(out->count())));
      unpack_bits(x, from);
      uint8_t one = 0;
      unpack_bits(fill, &one);
      pad_rows(run, x.shape(), places, from, one, out->shape(), to);
      pack_bits(to, out);
      return Status::ok();
    }
    return dispatch_move(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      pad_rows(run, x.shape(), places, x.raw(), *fill.data<T>(), out->shape(), out->data_mut<T>());
      return Status::ok();
    });
  }

  Options options_;
  int version_;
};

// The opset of ONNX whose Pad a node is.
int opset_of(const Node& node) { return node.domain.empty() ? node.version : 11; }

Status infer_pad(OpInfer& infer) {
  const int version = opset_of(infer.node());
  FOLIO_TRY(const Options options, parse(infer.attrs(), version));
  const Dims* x = infer.dims_of(0);
  if (!x) {
    infer.set_tensor(0, infer.dtype(0));
    return Status::ok();
  }
  const auto rank = static_cast<int>(x->size());
  Dims out(x->size());
  const auto pads = version < 11 ? std::optional(options.pads) : infer.ints(1);
  std::optional<std::vector<int64_t>> given;
  bool axes_known = true;
  if (version >= 18 && infer.has_input(3)) {
    given = infer.ints(3);
    axes_known = given.has_value();
  }
  if (pads && axes_known) {
    FOLIO_TRY(const std::vector<int> axes, padded_axes(given, rank));
    FOLIO_TRY(const std::vector<int64_t> all, spread(*pads, axes, rank));
    for (size_t i = 0; i < x->size(); ++i) {
      int64_t grown = 0;
      if (!checked_add(all[i], all[i + x->size()], &grown) || grown == INT64_MIN) continue;
      DimTable& table = infer.table();
      out[i] =
          grown >= 0 ? table.add((*x)[i], Dim::of(grown)) : table.sub((*x)[i], Dim::of(-grown));
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_pad(OpBuild& build) {
  const int version = opset_of(build.node());
  FOLIO_TRY(Options options, parse(build.attrs(), version));
  return std::unique_ptr<OpKernel>(std::make_unique<Pad>(std::move(options), version));
}

}  // namespace

[[gnu::cold]] void register_pad(OpRegistry& registry) {
  OpDef def;
  def.type = "Pad";
  def.is_exact = true;
  def.until = 10;
  def.infer = infer_pad;
  def.make = make_pad;
  def.one_type = 0b101;
  registry.add(def);
  def.since = 11;
  def.until = 17;
  def.min_inputs = 2;
  def.max_inputs = 3;
  registry.add(def);
  OpDef contrib = def;
  contrib.domain = "com.microsoft";
  contrib.since = 1;
  contrib.until = kLatest;
  registry.add(contrib);
  def.since = 18;
  def.until = kLatest;
  def.max_inputs = 4;
  registry.add(def);
}

}  // namespace folio
