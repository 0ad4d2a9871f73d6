// Resize and Upsample: tensors scaled along their axes.
//
// Source: ONNX operator spec, Upsample, opsets 1 (height_scale, width_scale), 7 (scales an
//         attribute), 9 (an input); Resize, opsets 10 (as Upsample), 11, 13, 18 (antialias, axes,
//         keep_aspect_ratio_policy), 19 (half_pixel_symmetric).
// Shapes: y's dim is floor(dim * scale), or what sizes says. Of folio.nhwc, which the pass
//         join_in_place alone makes, of floats with channels last that are not resized: channels of
//         an image that others write, too (op_nhwc_channels.h).
// Math:   nearest moves elements; linear and cubic are sums along one axis after the other, in
//         float (double for double and the wide integers). What is computed of integers is cut
//         off towards zero (rounded with antialias), and clamped to what the type holds.
// Types:  nearest: all types but those of 2 and 4 bits (all numbers where it extrapolates); linear
//         and cubic: all numbers; float16, bfloat16 and integers of 8 and 16 bits in float, those
//         of 32 and 64 bits in double.
// Errors: kInvalidArgument for scales, sizes, roi or axes that do not fit the input.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_convert.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_channels.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_resize.h"
#include "core/ops/op_resize_lines.h"

namespace folio {
namespace {

using Places = std::vector<std::vector<int64_t>>;

// A little further from 0: a sum just below a whole number is that number but for rounding.
template <typename A>
A with_slack(A value) {
  constexpr A kSlack = static_cast<A>(1.0 / 1024);
  return value + (value < 0 ? -kSlack : kSlack);
}

// The value outside of the tensor, as the bits of an element of it: moves do not ask for more.
Result<uint64_t> outside_bits(DType dtype, float value) {
  uint64_t bits = 0;
  const bool is_number = dispatch(NumericTypes{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T element;
    if constexpr (std::is_integral_v<T>) {
      element = saturating_cast<T>(with_slack(value));
    } else {
      element = static_cast<T>(value);
    }
    std::memcpy(&bits, &element, sizeof element);
  });
  if (!is_number) return wrong_type(0, dtype);
  return bits;
}

// ---------------------------------------------------------------- nearest

// Each of n elements of 32 bits twice, four at a time, in this many rows one after the other.
template <int kRows>
void double_elements(const uint32_t* from, int64_t n, uint32_t* to) {
  typedef uint32_t Four __attribute__((vector_size(16)));
  const auto store = [&](int64_t at, Four four) {
    for (int row = 0; row < kRows; ++row) std::memcpy(to + 2 * n * row + at, &four, sizeof four);
  };
  const auto double_four = [&](int64_t at) {
    Four four;
    std::memcpy(&four, from + at, sizeof four);
    store(2 * at, __builtin_shufflevector(four, four, 0, 0, 1, 1));
    store(2 * at + 4, __builtin_shufflevector(four, four, 2, 2, 3, 3));
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) double_four(i), double_four(i + 4);
  for (; i + 4 <= n; i += 4) double_four(i);
  for (; i < n; ++i) {
    for (int row = 0; row < kRows; ++row) {
      to[2 * n * row + 2 * i] = to[2 * n * row + 2 * i + 1] = from[i];
    }
  }
}

// Each element `kTimes` times, in blocks, which compilers turn into vectors.
template <int64_t kTimes, typename T>
void repeat_elements(const T* from, int64_t n, T* to) {
  if constexpr (kTimes == 2 && std::is_same_v<T, uint32_t>) return double_elements<1>(from, n, to);
  constexpr int64_t kBlock = 16;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    T block[kBlock];
    std::copy_n(from + i, kBlock, block);
    for (int64_t u = 0; u < kBlock; ++u) {
      for (int64_t t = 0; t < kTimes; ++t) to[(i + u) * kTimes + t] = block[u];
    }
  }
  for (; i < n; ++i) std::fill_n(to + i * kTimes, kTimes, from[i]);
}

// How often each element of a row of `in` is repeated, if all are equally often and in order; or 0.
int64_t repeats_of(const std::vector<int64_t>& places, int64_t in) {
  const auto out = static_cast<int64_t>(places.size());
  if (in < 1 || out % in != 0) return 0;
  const int64_t times = out / in;
  for (int64_t i = 0; i < out; ++i) {
    if (places[static_cast<size_t>(i)] != i / times) return 0;
  }
  return times;
}

// One row by its places.
template <typename T>
void nearest_row(const T* from, const std::vector<int64_t>& places, int64_t repeats, bool extends,
                 const T& fill, T* to) {
  const auto n = static_cast<int64_t>(places.size());
  if (repeats == 1) return move_run(to, from, n);
  if constexpr (!std::is_same_v<T, std::string>) {
    if (repeats == 2) return repeat_elements<2>(from, n / 2, to);
    if (repeats == 3) return repeat_elements<3>(from, n / 3, to);
    if (repeats == 4) return repeat_elements<4>(from, n / 4, to);
  }
  const int64_t* at = places.data();
  if (!extends) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[at[i]];
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = at[i] < 0 ? fill : from[at[i]];
}

// The same row `together` times.
template <typename T>
void nearest_rows(const T* from, const std::vector<int64_t>& places, int64_t repeats, bool extends,
                  const T& fill, int64_t together, T* to) {
  const auto n = static_cast<int64_t>(places.size());
  if constexpr (std::is_same_v<T, uint32_t>) {
    if (repeats == 2 && together == 2) return double_elements<2>(from, n / 2, to);
  }
  nearest_row(from, places, repeats, extends, fill, to);
  for (int64_t i = 1; i < together; ++i) move_run(to + i * n, to, n);
}

// Walks every `step`-th row of the output, from the row-th on; `step` divides their axis.
class RowWalk {
 public:
  RowWalk(const Shape& in, const Shape& out, const Places& places, int64_t row, int64_t step)
      : out_(out), places_(places), last_(out.rank() - 2), step_(step) {
    int64_t stride = 1;
    for (int i = last_; i >= 0; --i) {
      strides_[i] = stride;
      stride *= in[i];
      index_[i] = row % out[i];
      row /= out[i];
    }
    find_base();
  }

  // The row of the input that it shows, -1 for none.
  int64_t source() const {
    if (last_ < 0) return 0;
    const int64_t place = places_[static_cast<size_t>(last_)][static_cast<size_t>(index_[last_])];
    return base_ < 0 || place < 0 ? -1 : base_ + place;
  }

  // How many rows, this one among them, are left of the axis around it.
  int64_t left() const { return last_ < 0 ? 1 : (out_[last_] - index_[last_]) / step_; }

  // To the count-th from here, of as many as are left at most.
  void next(int64_t count) {
    if (last_ < 0 || (index_[last_] += count * step_) < out_[last_]) return;
    index_[last_] = 0;
    for (int i = last_ - 1; i >= 0; --i) {
      if (++index_[i] < out_[i]) break;
      index_[i] = 0;
    }
    find_base();
  }

 private:
  // What all axes but a row's own and the one around it come to, which few rows change.
  void find_base() {
    base_ = 0;
    for (int i = 0; i < last_; ++i) {
      const int64_t place = places_[static_cast<size_t>(i)][static_cast<size_t>(index_[i])];
      if (place < 0) {
        base_ = -1;
        return;
      }
      base_ += place * strides_[i];
    }
  }

  const Shape& out_;
  const Places& places_;
  int last_;  // of the axes around a row; -1: there are none
  int64_t step_;
  int64_t base_ = 0;
  int64_t strides_[kMaxRank] = {};
  int64_t index_[kMaxRank] = {};
};

template <typename T>
void resize_nearest(OpRun& run, const Shape& in, const T* from, const Places& places, const T& fill,
                    const Shape& shape, T* to) {
  const int64_t n = shape[shape.rank() - 1];
  const int64_t length = in[in.rank() - 1];
  const bool extends =
      std::find(places.back().begin(), places.back().end(), -1) != places.back().end();
  const int64_t repeats = repeats_of(places.back(), length);
  // Where all rows of the axis around them are shown equally often, they are walked as one.
  const int around = shape.rank() - 2;
  const int64_t found =
      around < 0 ? 0 : repeats_of(places[static_cast<size_t>(around)], in[around]);
  const int64_t together = std::max<int64_t>(found, 1);
  const int64_t tasks = shape.count() / n / together;
  run.parallel().for_range(tasks, rows_per_task(n * together), [&](int64_t begin, int64_t end) {
    RowWalk walk(in, shape, places, begin * together, together);
    int64_t last = -2;
    for (int64_t task = begin; task < end;) {
      const int64_t source = walk.source();
      const int64_t count = found == 0 ? 1 : std::min(walk.left(), end - task);
      T* out = to + task * together * n;
      if (source < 0) {
        std::fill_n(out, count * together * n, fill);
      } else if (source == last && found == 0) {
        move_run(out, out - n, n);  // rows that show the same one stand together
      } else {
        for (int64_t i = 0; i < count; ++i) {
          nearest_rows(from + (source + i) * length, places.back(), repeats, extends, fill,
                       together, out + i * together * n);
        }
      }
      last = source;
      task += count;
      walk.next(count);
    }
  });
}

// Some bytes that are moved together, at any address.
template <int kBytes>
struct Chunk {
  uint8_t bytes[kBytes];
};

// Axes at the end that stay are chunks: the channels of a pixel. Whether there are such axes, and
// chunks of so many bytes; else nothing is moved.
bool move_chunks(OpRun& run, Shape in, const uint8_t* from, int64_t bytes, Places places, Shape out,
                 uint8_t* to) {
  const int rank = in.rank();
  const auto stays = [&] {
    return in.rank() > 1 && repeats_of(places.back(), in[in.rank() - 1]) == 1;
  };
  for (; stays() && bytes <= 16; places.pop_back()) {
    bytes *= in[in.rank() - 1];
    in.erase(in.rank() - 1);
    out.erase(out.rank() - 1);
  }
  if (in.rank() == rank) return false;
  const auto move_if = [&]<int kBytes>(std::integral_constant<int, kBytes>) {
    using T = Chunk<kBytes>;
    if (bytes != kBytes) return false;
    resize_nearest<T>(run, in, reinterpret_cast<const T*>(from), places, T{}, out,
                      reinterpret_cast<T*>(to));
    return true;
  };
  const auto move_any = [&]<int... kBytes>(std::integer_sequence<int, kBytes...>) {
    return (move_if(std::integral_constant<int, kBytes>{}) || ...);
  };
  return move_any(std::integer_sequence<int, 2, 3, 4, 6, 8, 12, 16>{});
}

// ---------------------------------------------------------------- linear and cubic

constexpr int64_t kFewTaps = 16;

// One row of pixels of kInner elements: the sums of `taps` pixels each.
template <int kInner, typename A>
void sum_pixels(int64_t out, int64_t taps, const A* weights, const int64_t* index, const A* x,
                A* y) {
  if (taps == 2) {
    for (int64_t i = 0; i < out; ++i, weights += 2, index += 2, y += kInner) {
      const A* a = x + index[0] * kInner;
      const A* b = x + index[1] * kInner;
      for (int j = 0; j < kInner; ++j) y[j] = weights[0] * a[j] + weights[1] * b[j];
    }
    return;
  }
  for (int64_t i = 0; i < out; ++i, weights += taps, index += taps, y += kInner) {
    A sum[kInner] = {};
    for (int64_t t = 0; t < taps; ++t) {
      const A* a = x + index[t] * kInner;
      for (int j = 0; j < kInner; ++j) sum[j] += weights[t] * a[j];
    }
    for (int j = 0; j < kInner; ++j) y[j] = sum[j];
  }
}

// y[outer, out, inner] = sums of x[outer, in, inner] along the middle axis.
template <typename A>
void sum_axis(OpRun& run, const AxisTaps& table, int64_t outer, int64_t in, int64_t inner,
              const A* x, A* y) {
  const int64_t taps = table.taps;
  const int64_t out = static_cast<int64_t>(table.index.size()) / taps;
  const std::vector<A> weights(table.weights.begin(), table.weights.end());
  const int64_t* index = table.index.data();
  if (inner <= 4) {
    const auto sum = inner == 1   ? sum_pixels<1, A>
                     : inner == 2 ? sum_pixels<2, A>
                     : inner == 3 ? sum_pixels<3, A>
                                  : sum_pixels<4, A>;
    const int64_t grain = rows_per_task(out * taps * inner);
    run.parallel().for_range(outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        sum(out, taps, weights.data(), index, x + row * in * inner, y + row * out * inner);
      }
    });
    return;
  }
  run.parallel().for_range(
      outer * out, rows_per_task(inner * taps), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t i = row % out;
          const A* from = x + row / out * in * inner;
          A* to = y + row * inner;
          if constexpr (std::is_same_v<A, float>) {
            int64_t offsets[kFewTaps];
            if (taps <= kFewTaps) {
              for (int64_t t = 0; t < taps; ++t) offsets[t] = index[i * taps + t] * inner;
              run.kernels().shifted_sum_f32(inner, taps, &weights[static_cast<size_t>(i * taps)],
                                            offsets, from, 0.0F, to);
              continue;
            }
          }
          const A* a = from + index[i * taps] * inner;
          const A* b = from + index[i * taps + 1] * inner;  // there are always two
          const A wa = weights[static_cast<size_t>(i * taps)];
          const A wb = weights[static_cast<size_t>(i * taps + 1)];
          for (int64_t j = 0; j < inner; ++j) to[j] = wa * a[j] + wb * b[j];
          for (int64_t t = i * taps + 2; t < (i + 1) * taps; ++t) {
            const A w = weights[static_cast<size_t>(t)];
            const A* c = from + index[t] * inner;
            for (int64_t j = 0; j < inner; ++j) to[j] += w * c[j];
          }
        }
      });
}

// The axes in the order in which they are resized: those that shrink from the first on, as whole
// rows that are fewer then, the others from the last on, while rows are still few.
std::vector<int> resize_order(const std::vector<ResizeAxis>& axes,
                              const std::vector<AxisTaps>& tables) {
  const auto rank = static_cast<int>(axes.size());
  std::vector<int> order;
  const auto shrinks = [&](int i) {
    return axes[static_cast<size_t>(i)].out < axes[static_cast<size_t>(i)].in;
  };
  for (int i = 0; i < rank; ++i) {
    if (tables[static_cast<size_t>(i)].taps > 0 && shrinks(i)) order.push_back(i);
  }
  for (int i = rank - 1; i >= 0; --i) {
    if (tables[static_cast<size_t>(i)].taps > 0 && !shrinks(i)) order.push_back(i);
  }
  return order;
}

// One axis after the other; `y` is the output, or scratch of the same length.
template <typename A>
Status sum_axes(OpRun& run, const std::vector<ResizeAxis>& axes,
                const std::vector<AxisTaps>& tables, const A* x, A* y) {
  if constexpr (std::is_same_v<A, float>) {
    const std::optional<ResizedLines> lines = resized_lines(axes, tables);
    if (lines) return resize_lines(run, *lines, x, y, lines->inner);
  }
  std::vector<int64_t> dims;
  for (const ResizeAxis& axis : axes) dims.push_back(axis.in);
  const std::vector<int> order = resize_order(axes, tables);
  const A* at = x;
  for (const int axis : order) {
    int64_t outer = 1;
    int64_t inner = 1;
    for (int i = 0; i < axis; ++i) outer *= dims[static_cast<size_t>(i)];
    for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner *= dims[i];
    const int64_t in = dims[static_cast<size_t>(axis)];
    dims[static_cast<size_t>(axis)] = axes[static_cast<size_t>(axis)].out;
    A* to = y;
    if (axis != order.back()) {
      uint64_t count = 0;
      uint64_t bytes = 0;
      if (!checked_count(dims, &count) || !dtype_bytes(dtype_of<A>(), count, &bytes)) {
        return invalid_argument("the tensor between two axes is too large");
      }
      FOLIO_TRY(uint8_t * memory, run.scratch(bytes));
      to = reinterpret_cast<A*>(memory);
    }
    sum_axis(run, tables[static_cast<size_t>(axis)], outer, in, inner, at, to);
    at = to;
  }
  if (order.empty()) {
    std::copy_n(x, std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()), y);
  }
  return Status::ok();
}

// What is outside along any axis gets the extrapolation value.
template <typename A>
void extrapolate(const std::vector<AxisTaps>& tables, const Shape& shape, A value, A* y) {
  int64_t inner = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const std::vector<uint8_t>& outside = tables[static_cast<size_t>(i)].outside;
    for (size_t at = 0; at < outside.size(); ++at) {
      if (!outside[at]) continue;
      const int64_t outer = shape.product(0, i);
      for (int64_t o = 0; o < outer; ++o) {
        std::fill_n(y + (o * shape[i] + static_cast<int64_t>(at)) * inner, inner, value);
      }
    }
    inner *= shape[i];
  }
}

// Before sums are converted as Cast does: within T's bounds, and rounded, or with slack. Blocks of
// a number that a compiler knows are vectors.
template <typename T, typename A>
void prepare_cut(OpRun& run, bool rounds, int64_t count, A* sums) {
  constexpr int64_t kBlock = 16;
  constexpr A kLow = static_cast<A>(std::numeric_limits<T>::lowest());
  constexpr A kHigh = static_cast<A>(std::numeric_limits<T>::max());
  const auto cut = [](A value) {
    return value < kLow ? kLow : value > kHigh ? kHigh : with_slack(value);
  };
  run.parallel().for_range(count, kElementGrain, [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; rounds && i < end; ++i) {
      sums[i] = std::clamp(std::nearbyint(sums[i]), kLow, kHigh);
    }
    for (; i + kBlock <= end; i += kBlock) {
      for (int64_t u = 0; u < kBlock; ++u) sums[i + u] = cut(sums[i + u]);
    }
    for (; i < end; ++i) sums[i] = cut(sums[i]);
  });
}

// What linear and cubic compute a T in.
template <typename T>
using SumOf =
    std::conditional_t<std::is_same_v<T, double> || (std::is_integral_v<T> && sizeof(T) >= 4),
                       double, float>;

// Of axes that are resized.
Result<std::vector<AxisTaps>> taps_of(const ResizeOptions& options,
                                      const std::vector<ResizeAxis>& axes) {
  std::vector<AxisTaps> tables(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].is_identity(options)) continue;
    FOLIO_TRY(tables[i], axis_taps(options, axes[i]));
  }
  return tables;
}

// In sums of type A, made once for all elements that take it; `prepare` is null where these are
// no integers.
template <typename A>
Status resize_sums(OpRun& run, const ResizeOptions& options, const std::vector<ResizeAxis>& axes,
                   const Tensor& x, Tensor* y, void (*prepare)(OpRun&, bool, int64_t, A*)) {
  FOLIO_TRY(const std::vector<AxisTaps> tables, taps_of(options, axes));
  const bool extends = std::any_of(tables.begin(), tables.end(),
                                   [](const AxisTaps& table) { return !table.outside.empty(); });
  const bool is_sum = x.dtype() == dtype_of<A>();
  const A* from = nullptr;
  A* to = nullptr;
  if (is_sum) {
    from = x.data<A>();
    to = y->data_mut<A>();
  } else {
    const auto longest = static_cast<uint64_t>(std::max(x.count(), y->count()));
    uint64_t bytes = 0;
    if (!dtype_bytes(dtype_of<A>(), longest, &bytes)) return invalid_argument("is too large");
    FOLIO_TRY(uint8_t * in, run.scratch(bytes));
    FOLIO_TRY(uint8_t * out, run.scratch(bytes));
    convert_numbers(run, x.dtype(), x.raw(), dtype_of<A>(), in, x.count());
    from = reinterpret_cast<const A*>(in);
    to = reinterpret_cast<A*>(out);
  }
  FOLIO_RETURN_IF_ERROR(sum_axes(run, axes, tables, from, to));
  if (extends) extrapolate(tables, y->shape(), static_cast<A>(options.extrapolation), to);
  if (prepare) prepare(run, options.antialias, y->count(), to);
  if (!is_sum) {
    convert_numbers(run, dtype_of<A>(), reinterpret_cast<const uint8_t*>(to), y->dtype(),
                    y->raw_mut(), y->count());
  }
  return Status::ok();
}

// ---------------------------------------------------------------- the operators

Result<std::vector<float>> floats_of(const Tensor& tensor, int input) {
  std::vector<float> out;
  const bool known = dispatch(FloatTypes{}, tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T value : tensor.span<T>()) {
      out.push_back(static_cast<float>(static_cast<Compute<T>>(value)));
    }
  });
  if (!known) return wrong_type(input, tensor.dtype());
  return out;
}

// Which inputs hold what: -1 where the version has none.
struct Inputs {
  int roi = -1;
  int scales = -1;
  int sizes = -1;
};
Inputs inputs_of(const Node& node) {
  if (node.op_type == "Upsample") return {-1, node.version >= 9 ? 1 : -1, -1};
  return node.version >= 11 ? Inputs{1, 2, 3} : Inputs{-1, 1, -1};
}

class Resize final : public OpKernel {
 public:
  Resize(ResizeOptions options, Inputs inputs) : options_(std::move(options)), inputs_(inputs) {}
  JoinPlace place;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    std::vector<float> scales = options_.scales;
    std::vector<float> roi;
    std::vector<int64_t> sizes;
    if (inputs_.scales >= 0 && run.has_input(inputs_.scales)) {
      FOLIO_TRY(const Tensor* given, run.tensor(inputs_.scales));
      FOLIO_TRY(scales, floats_of(*given, inputs_.scales));
    }
    if (inputs_.sizes >= 0 && run.has_input(inputs_.sizes)) {
      FOLIO_TRY(sizes, run.ints(inputs_.sizes));
    }
    if (options_.coordinates == ResizeCoordinates::kTfCropAndResize && run.has_input(inputs_.roi)) {
      FOLIO_TRY(const Tensor* given, run.tensor(inputs_.roi));
      FOLIO_TRY(roi, floats_of(*given, inputs_.roi));
    }
    // Exporters write both where one is a leftover: sizes are what they mean.
    if (!sizes.empty()) scales.clear();
    FOLIO_TRY(const std::vector<ResizeAxis> axes,
              resize_axes(options_, x->shape().dims(), scales, sizes, roi));
    std::vector<int64_t> dims;
    for (const ResizeAxis& axis : axes) dims.push_back(axis.out);
    FOLIO_TRY(const Shape shape, shape_from(dims));
    if (place.channels > 0) return run_joined(run, axes, *x, shape);
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    if (x->count() == 0) return invalid_argument("nothing to resize to ", shape.to_string());
    if (x->rank() == 0) {
      return dispatch_move(x->dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        *y->data_mut<T>() = *x->data<T>();
        return Status::ok();
      });
    }
    return options_.mode == ResizeMode::kNearest ? nearest(run, axes, *x, y)
                                                 : sums(run, axes, *x, y);
  }

 private:
  // To some channels of an image: as it goes, or from a tensor between.
  Status run_joined(OpRun& run, const std::vector<ResizeAxis>& axes, const Tensor& x,
                    const Shape& shape) const {
    const int last = shape.rank() - 1;
    if (x.dtype() != DType::kFloat) return wrong_type(0, x.dtype());
    if (last < 1) return invalid_argument("X ", x.shape().to_string(), " to channels of an image");
    FOLIO_TRY(const PlacedOutput to, place_output(run, place, kResizeInto, shape));
    if (shape.count() == 0) return Status::ok();
    if (x.count() == 0) return invalid_argument("nothing to resize to ", shape.to_string());
    FOLIO_TRY(const bool is_done, place_pixels(run, axes, x, shape, to));
    if (is_done) return Status::ok();
    uint64_t bytes = 0;
    if (!dtype_bytes(DType::kFloat, static_cast<uint64_t>(shape.count()), &bytes)) {
      return invalid_argument("Y ", shape.to_string(), " is too large");
    }
    FOLIO_TRY(uint8_t * memory, run.scratch(bytes));
    Tensor between(DType::kFloat, shape, memory, {});
    FOLIO_RETURN_IF_ERROR(options_.mode == ResizeMode::kNearest ? nearest(run, axes, x, &between)
                                                                : sums(run, axes, x, &between));
    const int64_t channels = shape[last];
    const float* const from = between.data<float>();
    run.parallel().for_range(shape.count() / channels, rows_per_task(channels),
                             [&](int64_t begin, int64_t end) {
                               move_runs(to.y + begin * to.y_step, to.y_step,
                                         from + begin * channels, channels, channels, end - begin);
                             });
    return Status::ok();
  }

  // False where these axes take a tensor between.
  Result<bool> place_pixels(OpRun& run, const std::vector<ResizeAxis>& axes, const Tensor& x,
                            const Shape& shape, const PlacedOutput& to) const {
    const bool has_outside = options_.coordinates == ResizeCoordinates::kTfCropAndResize;
    if (has_outside || !axes.back().is_identity(options_)) return false;
    if (options_.mode != ResizeMode::kNearest) {
      FOLIO_TRY(const std::vector<AxisTaps> tables, taps_of(options_, axes));
      const std::optional<ResizedLines> lines = resized_lines(axes, tables);
      if (!lines || lines->inner != shape[shape.rank() - 1]) return false;
      FOLIO_RETURN_IF_ERROR(resize_lines(run, *lines, x.data<float>(), to.y, to.y_step));
      return true;
    }
    FOLIO_TRY(const Places places, places_of(axes));
    move_pixels(run, x.shape(), x.data<float>(), places, shape, to.y, to.y_step);
    return true;
  }

  Result<Places> places_of(const std::vector<ResizeAxis>& axes) const {
    Places places;
    for (const ResizeAxis& axis : axes) {
      FOLIO_TRY(std::vector<int64_t> table, nearest_places(options_, axis));
      places.push_back(std::move(table));
    }
    return places;
  }

  Status nearest(OpRun& run, const std::vector<ResizeAxis>& axes, const Tensor& x,
                 Tensor* y) const {
    FOLIO_TRY(const Places places, places_of(axes));
    const bool extends =
        std::any_of(places.begin(), places.end(), [](const std::vector<int64_t>& table) {
          return std::find(table.begin(), table.end(), -1) != table.end();
        });
    uint64_t outside = 0;
    if (extends) {
      FOLIO_TRY(outside, outside_bits(x.dtype(), options_.extrapolation));
    }
    const int64_t bytes = dtype_bits(x.dtype()) / 8;
    if (!extends && !x.is_string() && bytes > 0 &&
        move_chunks(run, x.shape(), x.raw(), bytes, places, y->shape(), y->raw_mut())) {
      return Status::ok();
    }
    return dispatch_move(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T fill{};
      if constexpr (std::is_integral_v<T>) fill = static_cast<T>(outside);
      resize_nearest<T>(run, x.shape(), x.data<T>(), places, fill, y->shape(), y->data_mut<T>());
      return Status::ok();
    });
  }

  Status sums(OpRun& run, const std::vector<ResizeAxis>& axes, const Tensor& x, Tensor* y) const {
    return dispatch_input(NumericTypes{}, x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      void (*prepare)(OpRun&, bool, int64_t, SumOf<T>*) = nullptr;
      if constexpr (std::is_integral_v<T>) prepare = prepare_cut<T, SumOf<T>>;
      return resize_sums(run, options_, axes, x, y, prepare);
    });
  }

  ResizeOptions options_;
  Inputs inputs_;
};

Result<ResizeOptions> parse(const Node& node) {
  return node.op_type == "Upsample" ? ResizeOptions::parse_upsample(node.attributes, node.version)
                                    : ResizeOptions::parse_resize(node.attributes, node.version);
}

Dim scale_dim(DimTable& table, Dim dim, float scale) {
  if (dim.is_value()) {
    const Result<int64_t> out = scaled_dim(dim.value, scale);
    return out.is_ok() ? Dim::of(out.value()) : Dim::unknown();
  }
  if (scale == 1) return dim;
  if (scale >= 1 && scale < 1e6F && scale == std::floor(scale)) {
    return table.mul(dim, Dim::of(static_cast<int64_t>(scale)));
  }
  for (int64_t by = 2; by <= 64; by *= 2) {
    if (scale == 1 / static_cast<float>(by)) return table.floor_div(dim, Dim::of(by));
  }
  return Dim::unknown();
}

// Dims of the resized axes as far as scales or sizes are known.
void infer_axes(OpInfer& infer, const ResizeOptions& options, const std::vector<size_t>& axes,
                Dims* out) {
  const Inputs inputs = inputs_of(infer.node());
  if (inputs.sizes >= 0 && infer.has_input(inputs.sizes)) {
    const auto sizes = infer.data(inputs.sizes);
    if (!sizes) return;
    if (!sizes->empty()) {
      if (sizes->size() != axes.size() || options.policy != ResizePolicy::kStretch) return;
      for (size_t i = 0; i < axes.size(); ++i) (*out)[axes[i]] = (*sizes)[i];
      return;
    }
  }
  std::vector<float> scales = options.scales;
  if (inputs.scales >= 0) {
    const Tensor* given = infer.constant(inputs.scales);
    if (!given || given->dtype() != DType::kFloat) return;
    scales.assign(given->data<float>(), given->data<float>() + given->count());
  }
  const Dims* x = infer.dims_of(0);
  if (scales.size() != axes.size() || options.coordinates == ResizeCoordinates::kTfCropAndResize) {
    return;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    (*out)[axes[i]] = scale_dim(infer.table(), (*x)[axes[i]], scales[i]);
  }
}

Status infer_resize(OpInfer& infer) {
  FOLIO_TRY(const ResizeOptions options, parse(infer.node()));
  const Dims* x = infer.dims_of(0);
  if (!x) {
    infer.set_tensor(0, infer.dtype(0));
    return Status::ok();
  }
  Dims out(x->size());
  std::vector<size_t> axes;
  if (options.axes) {
    out = *x;
    for (const int64_t given : *options.axes) {
      FOLIO_TRY(const int axis, normalize_axis(given, static_cast<int>(x->size())));
      axes.push_back(static_cast<size_t>(axis));
      out[axes.back()] = Dim::unknown();
    }
  } else {
    for (size_t i = 0; i < x->size(); ++i) axes.push_back(i);
  }
  infer_axes(infer, options, axes, &out);
  if (infer.node().domain == kNhwcDomain) FOLIO_RETURN_IF_ERROR(infer_joined(infer.attrs(), &out));
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_resize(OpBuild& build) {
  FOLIO_TRY(ResizeOptions options, parse(build.node()));
  auto kernel = std::make_unique<Resize>(std::move(options), inputs_of(build.node()));
  if (build.node().domain == kNhwcDomain) {
    FOLIO_TRY(kernel->place, parse_join_place(build.attrs()));
    if (build.has_input(kResizeInto)) build.writes_into(kResizeInto);
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_resize(OpRegistry& registry) {
  OpDef def;
  def.type = "Upsample";
  def.infer = infer_resize;
  def.make = make_resize;
  def.until = 8;
  registry.add(def);
  def.since = 9;
  def.until = kLatest;  // deprecated since 10, but files use it
  def.min_inputs = def.max_inputs = 2;
  registry.add(def);

  def.type = "Resize";
  def.since = def.until = 10;
  registry.add(def);
  def.since = 11;
  def.until = kLatest;
  def.min_inputs = 1;
  def.max_inputs = kResizeInto;
  registry.add(def);
  def.domain = kNhwcDomain;
  def.max_inputs = kResizeInto + 1;
  registry.add(def);
}

}  // namespace folio
