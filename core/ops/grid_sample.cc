// GridSample: an image read at given places.
//
// Source: ONNX operator spec, GridSample, opsets 16 (2 spatial axes; bilinear, bicubic), 20 (any
//         number; linear, cubic), 22; com.microsoft version 1, which is as opset 16.
// Shapes: x [n, c, in..], grid [n, out.., k] for k spatial axes -> y [n, c, out..]; a place is
//         (.., y, x): its numbers belong to the axes from the last to the first, -1 to 1.
// Math:   what lies outside is 0, or the border's, or reflected at the border; cubic: a = -0.75.
// Types:  X all numbers, with mode nearest all types but those of 2 and 4 bits, which are copied;
//         grid floats; summed in float, of double and integers in double.
// Notes:  1 to 4 spatial axes.
// Errors: kInvalidArgument when shapes do not fit; kNotImplemented for more than 4 spatial axes.
#include <cmath>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum class Mode : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

constexpr int kMaxSpatial = 4;
constexpr int kMaxTaps = 256;  // 4 ^ kMaxSpatial

struct Options {
  Mode mode = Mode::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;
};

Result<Options> parse(const Attributes& attrs, int version) {
  Options options;
  const bool old = version < 20;
  FOLIO_TRY(const std::string mode, attrs.get_string("mode", old ? "bilinear" : "linear"));
  if (mode == "nearest") {
    options.mode = Mode::kNearest;
  } else if (mode == (old ? "bicubic" : "cubic")) {
    options.mode = Mode::kCubic;
  } else if (mode != (old ? "bilinear" : "linear")) {
    return invalid_graph("mode is '", mode, "', which opset ", version, " does not have");
  }
  FOLIO_TRY(const std::string padding, attrs.get_string("padding_mode", "zeros"));
  if (padding == "border") {
    options.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    options.padding = Padding::kReflection;
  } else if (padding != "zeros") {
    return invalid_graph("padding_mode is '", padding, "', expected zeros, border or reflection");
  }
  FOLIO_TRY(const int64_t align, attrs.get_int("align_corners", 0));
  options.align_corners = align != 0;
  return options;
}

// Folds x into [low, high] by reflecting it at both ends.
double reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  const double outside = x < low ? low - x : x > high ? x - high : 0;
  if (outside == 0) return x;
  const double rest = std::fmod(outside, 2 * range);
  const double inward = rest <= range ? rest : 2 * range - rest;
  return x < low ? low + inward : high - inward;
}

// The elements of one axis that a place is made of.
struct AxisTaps {
  int count = 0;
  int64_t index[4];  // -1: outside, where zeros are
  double weight[4];
};

int64_t pad_index(const Options& options, double i, int64_t n) {
  const auto size = static_cast<double>(n);
  if (i >= 0 && i < size) return static_cast<int64_t>(i);
  if (options.padding == Padding::kZeros) return -1;
  if (options.padding == Padding::kReflection) {
    const double edge = options.align_corners ? 0 : 0.5;
    i = reflect(i, -edge, size - 1 + edge);
  }
  return static_cast<int64_t>(std::clamp(i, 0.0, size - 1));
}

double cubic_weight(double x) {
  constexpr double kA = -0.75;
  x = std::fabs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA;
  return 0;
}

// As std::nearbyint and std::floor, which are calls where SSE4.1 is not taken for granted.
double nearest_whole(double x) {
  constexpr double kWhole = 0x1.8p52;  // added to it, numbers of up to 2^51 have no fractions
  return std::fabs(x) < 0x1p51 ? x + kWhole - kWhole : x;
}
double floor_of_small(double x) {
  const auto whole = static_cast<double>(static_cast<int64_t>(x));
  return whole > x ? whole - 1 : whole;
}

// On an axis of so many elements, which is also said in double.
double element_of(const Options& options, double place, double size) {
  return options.align_corners ? (place + 1) / 2 * (size - 1) : ((place + 1) * size - 1) / 2;
}

void find_taps(const Options& options, double place, int64_t n, AxisTaps* taps) {
  const auto size = static_cast<double>(n);
  double x = element_of(options, place, size);
  if (options.mode == Mode::kNearest) x = nearest_whole(x);
  const double edge = options.align_corners ? 0 : 0.5;
  if (options.padding != Padding::kZeros && !(x >= -edge && x <= size - 1 + edge)) {
    x = options.padding == Padding::kBorder ? std::clamp(x, 0.0, size - 1)
                                            : reflect(x, -edge, size - 1 + edge);
  }
  // NaN and what is far away are outside, however far.
  x = x == x ? std::clamp(x, -8.0, size + 8) : -8.0;
  const double first = floor_of_small(x);
  switch (options.mode) {
    case Mode::kNearest:
      taps->count = 1;
      taps->index[0] = pad_index(options, nearest_whole(x), n);
      taps->weight[0] = 1;
      return;
    case Mode::kLinear:
      taps->count = 2;
      for (int t = 0; t < 2; ++t) {
        taps->index[t] = pad_index(options, first + t, n);
        taps->weight[t] = t == 0 ? 1 - (x - first) : x - first;
      }
      return;
    case Mode::kCubic:
      taps->count = 4;
      for (int t = 0; t < 4; ++t) {
        taps->index[t] = pad_index(options, first + t - 1, n);
        taps->weight[t] = cubic_weight(first + t - 1 - x);
      }
  }
}

// The nearest element of each of n places [spatial] in a plane; -1: outside, where zeros are. Where
// places lie is nothing to guess by, so that nothing depends on it but in reflections.
void find_nearest(const Options& options, int64_t n, const double* places, int spatial,
                  const int64_t* dims, int64_t* offsets) {
  std::fill_n(offsets, n, 0);
  const bool is_border = options.padding == Padding::kBorder;
  for (int i = 0; i < spatial; ++i) {
    const double* place = places + spatial - 1 - i;
    const auto size = static_cast<double>(dims[i]);
    const double low = is_border ? 0 : -1;
    const double high = is_border ? size - 1 : size;
    for (int64_t p = 0; p < n; ++p, place += spatial) {
      int64_t index = -1;
      if (options.padding == Padding::kReflection) {
        AxisTaps taps;
        find_taps(options, *place, dims[i], &taps);
        index = taps.index[0];
      } else {
        // NaN becomes `low`.
        const double x = std::max(low, std::min(element_of(options, *place, size), high));
        index = static_cast<int64_t>(nearest_whole(x));
        index = index == dims[i] ? -1 : index;
      }
      offsets[p] = (offsets[p] | index) < 0 ? -1 : offsets[p] * dims[i] + index;
    }
  }
}

// All axes' taps multiplied out: offsets in a plane and weights. Gives how many.
template <typename A>
int multiply_taps(const AxisTaps* axes, int spatial, const int64_t* dims, int64_t* offsets,
                  A* weights) {
  int64_t offset[2][kMaxTaps];  // 8 KiB, which are not worth to be cleared for a few
  double weight[2][kMaxTaps];
  offset[0][0] = 0;
  weight[0][0] = 1;
  int count = 1;
  int from = 0;
  for (int i = 0; i < spatial; ++i) {
    int next = 0;
    for (int a = 0; a < count; ++a) {
      for (int t = 0; t < axes[i].count; ++t) {
        if (axes[i].index[t] < 0) continue;
        offset[1 - from][next] = offset[from][a] * dims[i] + axes[i].index[t];
        weight[1 - from][next++] = weight[from][a] * axes[i].weight[t];
      }
    }
    count = next;
    from = 1 - from;
  }
  for (int a = 0; a < count; ++a) {
    offsets[a] = offset[from][a];
    weights[a] = static_cast<A>(weight[from][a]);
  }
  return count;
}

template <typename A, typename T>
A sum_taps(int count, const int64_t* offsets, const A* weights, const T* x) {
  const auto product = [&](int t) {
    return weights[t] * static_cast<A>(static_cast<Compute<T>>(x[offsets[t]]));
  };
  A sum = 0;
  if (count == 4) {  // as most places of an image have: no loop
    sum += product(0);
    sum += product(1);
    sum += product(2);
    return sum + product(3);
  }
  for (int t = 0; t < count; ++t) sum += product(t);
  return sum;
}

// The taps of some places, one after the other, for all channels.
template <typename A>
struct Places {
  static constexpr int64_t kTaps = 4 * kMaxTaps;
  int64_t most = 1;  // taps of one of them
  int64_t offsets[kTaps];
  A weights[kTaps];
  int counts[kTaps];

  int64_t room() const { return kTaps / most; }
  // Of the first n places: a row of a plane, each.
  template <typename T>
  void sum(int64_t n, const T* x, T* y) const {
    for (int64_t p = 0; p < n; ++p) sum_one(p, x, y + p);
  }
  template <typename T>
  void sum_one(int64_t p, const T* x, T* y) const {
    const A sum = sum_taps(counts[p], offsets + p * most, weights + p * most, x);
    if constexpr (std::is_integral_v<T>) {
      *y = saturating_cast<T>(sum);
    } else {
      *y = static_cast<T>(sum);
    }
  }
};

#if defined(__SSE2__)
// Places between the pixels of a float image: two pairs of neighbours each, which are one vector.
// What is outside of the image is a lane of zeros: sums begin with 0, which another does not
// change.
class PairPlaces {
 public:
  static constexpr int64_t kRoom = 256;

  // Place p from its lines and columns, if these are neighbours in an image of this width.
  bool set(int64_t p, const AxisTaps& lines, const AxisTaps& columns, int64_t width) {
    const int64_t* const at = columns.index;
    if (at[0] >= 0 && at[1] >= 0 && at[1] != at[0] + 1) return false;
    // One column alone may be the second of its pair.
    const int64_t first = std::min(at[0] >= 0 ? at[0] : std::max<int64_t>(at[1], 0), width - 2);
    for (int t = 0; t < 2; ++t) {
      const bool is_line = lines.index[t] >= 0;
      offsets_[p][t] = first + (is_line ? lines.index[t] * width : 0);
      weights_[p][2 * t] = weights_[p][2 * t + 1] = 0;
      masks_[p][2 * t] = masks_[p][2 * t + 1] = 0;
      for (int u = 0; u < 2; ++u) {
        if (!is_line || at[u] < 0) continue;
        const int64_t lane = 2 * t + at[u] - first;
        weights_[p][lane] = static_cast<float>(lines.weight[t] * columns.weight[u]);
        masks_[p][lane] = UINT32_MAX;
      }
    }
    return true;
  }
  // Place p as one of nothing.
  void clear(int64_t p) {
    std::fill_n(offsets_[p], 2, 0);
    std::fill_n(weights_[p], 4, 0.0F);
    std::fill_n(masks_[p], 4, 0);
  }
  // The sums of the first n, taps in order.
  void sum(int64_t n, const float* x, float* y) const {
    int64_t p = 0;
    for (; p + 4 <= n; p += 4) {
      __m128 a = products(p, x);
      __m128 b = products(p + 1, x);
      __m128 c = products(p + 2, x);
      __m128 d = products(p + 3, x);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      const __m128 two = _mm_add_ps(_mm_add_ps(_mm_setzero_ps(), a), b);
      _mm_storeu_ps(y + p, _mm_add_ps(_mm_add_ps(two, c), d));
    }
    for (; p < n; ++p) {
      alignas(16) float taps[4];
      _mm_store_ps(taps, products(p, x));
      y[p] = 0.0F + taps[0] + taps[1] + taps[2] + taps[3];
    }
  }

 private:
  __m128 products(int64_t p, const float* x) const {
    const auto pair = [x](int64_t offset) { return reinterpret_cast<const __m64*>(x + offset); };
    const __m128 line = _mm_loadl_pi(_mm_setzero_ps(), pair(offsets_[p][0]));
    const __m128 four = _mm_loadh_pi(line, pair(offsets_[p][1]));
    const auto* const mask = reinterpret_cast<const __m128i*>(masks_[p]);
    return _mm_mul_ps(_mm_load_ps(weights_[p]),
                      _mm_and_ps(four, _mm_castsi128_ps(_mm_load_si128(mask))));
  }

  int64_t offsets_[kRoom][2];
  alignas(16) float weights_[kRoom][4];
  alignas(16) uint32_t masks_[kRoom][4];
};
#endif

// Numbers of the grid, whatever their type, some at a time: one body for all types finds the taps.
class Coordinates {
 public:
  static constexpr int64_t kRoom = 1024;

  explicit Coordinates(const Tensor& grid) : grid_(grid) {}
  // Numbers [from, from + n), n <= kRoom, until the next call.
  const double* read(int64_t from, int64_t n) {
    dispatch(FloatTypes{}, grid_.dtype(), [&](auto tag) {
      using G = typename decltype(tag)::type;
      const G* x = grid_.data<G>() + from;
      for (int64_t i = 0; i < n; ++i)
        numbers_[i] = static_cast<double>(static_cast<Compute<G>>(x[i]));
    });
    return numbers_;
  }

 private:
  const Tensor& grid_;
  double numbers_[kRoom];  // NOLINT: written before they are read
};

class GridSample final : public OpKernel {
 public:
  explicit GridSample(Options options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* grid, run.tensor(1));
    const int spatial = x->rank() - 2;
    if (spatial > kMaxSpatial) return not_implemented(spatial, " spatial axes");
    const bool fits = spatial >= 1 && grid->rank() == x->rank() && grid->dim(0) == x->dim(0) &&
                      grid->dim(spatial + 1) == spatial;
    if (!fits) {
      return invalid_argument("input 0 is ", x->shape().to_string(), " and grid ",
                              grid->shape().to_string(), ", expected [n,c,in..] and [n,out..,k]");
    }
    std::vector<int64_t> dims{x->dim(0), x->dim(1)};
    dims.insert(dims.end(), grid->shape().begin() + 1, grid->shape().end() - 1);
    FOLIO_TRY(const Shape shape, shape_from(dims));
    if (options_.mode != Mode::kNearest && !contains(NumericTypes{}, x->dtype())) {
      return invalid_argument("elements of type ", dtype_name(x->dtype()),
                              " can be sampled by mode 'nearest' alone");
    }
    if (!contains(FloatTypes{}, grid->dtype())) return wrong_type(1, grid->dtype());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    if (x->count() == 0) return invalid_argument("nothing to sample");
    if (options_.mode == Mode::kNearest) return move(run, *x, *grid, y);
    dispatch(NumericTypes{}, x->dtype(),
             [&](auto tag) { sample<typename decltype(tag)::type>(run, *x, *grid, y); });
    return Status::ok();
  }

 private:
  // Mode nearest: elements as they are, of any type.
  Status move(OpRun& run, const Tensor& x, const Tensor& grid, Tensor* y) const {
    const int spatial = x.rank() - 2;
    const int64_t channels = x.dim(1);
    const int64_t points = y->shape().product(2, y->rank());
    const int64_t plane = x.shape().product(2, x.rank());
    return dispatch_move(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      run.parallel().for_range(
          x.dim(0) * points, rows_per_task(channels * 4), [&](int64_t begin, int64_t end) {
            Coordinates coordinates(grid);
            int64_t offsets[Coordinates::kRoom];
            for (int64_t at = begin; at < end;) {
              const int64_t batch = at / points;
              const int64_t n =
                  std::min({Coordinates::kRoom / spatial, end - at, (batch + 1) * points - at});
              const double* place = coordinates.read(at * spatial, n * spatial);
              find_nearest(options_, n, place, spatial, x.shape().begin() + 2, offsets);
              const T* from = x.data<T>() + batch * channels * plane;
              T* to = y->data_mut<T>() + batch * channels * points + at % points;
              for (int64_t c = 0; c < channels; ++c, from += plane, to += points) {
                for (int64_t p = 0; p < n; ++p) to[p] = offsets[p] < 0 ? T{} : from[offsets[p]];
              }
              at += n;
            }
          });
      return Status::ok();
    });
  }

  template <typename T>
  void sample(OpRun& run, const Tensor& x, const Tensor& grid, Tensor* y) const {
    using A = std::conditional_t<std::is_same_v<Compute<T>, float>, float, double>;
    const int spatial = x.rank() - 2;
    const int64_t channels = x.dim(1);
    const int64_t points = y->shape().product(2, y->rank());
    const int64_t plane = x.shape().product(2, x.rank());
    const int64_t* dims = x.shape().begin() + 2;
    const auto grain = rows_per_task(channels * 16);
#if defined(__SSE2__)
    if constexpr (std::is_same_v<T, float>) {
      if (spatial == 2 && dims[1] >= 2 && options_.mode == Mode::kLinear) {
        return sample_pairs(run, x, grid, y);
      }
    }
#endif
    run.parallel().for_range(x.dim(0) * points, grain, [&](int64_t begin, int64_t end) {
      AxisTaps taps[kMaxSpatial];
      Places<A> places;
      Coordinates coordinates(grid);
      for (int i = 0; i < spatial; ++i) places.most *= taps_of_axis();
      const int64_t room = std::min(places.room(), Coordinates::kRoom / spatial);
      for (int64_t at = begin; at < end;) {
        const int64_t batch = at / points;
        const int64_t n = std::min({room, end - at, (batch + 1) * points - at});
        const double* place = coordinates.read(at * spatial, n * spatial);
        for (int64_t p = 0; p < n; ++p, place += spatial) {
          for (int i = 0; i < spatial; ++i) {
            find_taps(options_, place[spatial - 1 - i], dims[i], &taps[i]);
          }
          places.counts[p] = multiply_taps(taps, spatial, dims, places.offsets + p * places.most,
                                           places.weights + p * places.most);
        }
        const T* from = x.data<T>() + batch * channels * plane;
        T* to = y->data_mut<T>() + batch * channels * points + at % points;
        for (int64_t c = 0; c < channels; ++c, from += plane, to += points) places.sum(n, from, to);
        at += n;
      }
    });
  }

#if defined(__SSE2__)
  // Images of floats, linear.
  void sample_pairs(OpRun& run, const Tensor& x, const Tensor& grid, Tensor* y) const {
    const int64_t channels = x.dim(1);
    const int64_t plane = x.dim(2) * x.dim(3);
    const int64_t points = y->dim(2) * y->dim(3);
    const auto grain = rows_per_task(channels * 16);
    run.parallel().for_range(x.dim(0) * points, grain, [&](int64_t begin, int64_t end) {
      PairPlaces pairs;
      Places<float> others;  // what is no pair, and where
      Coordinates coordinates(grid);
      others.most = 4;
      int64_t where[PairPlaces::kRoom];
      for (int64_t at = begin; at < end;) {
        const int64_t batch = at / points;
        const int64_t n = std::min({PairPlaces::kRoom, end - at, (batch + 1) * points - at});
        int64_t other = 0;
        const double* place = coordinates.read(at * 2, n * 2);
        for (int64_t p = 0; p < n; ++p, place += 2) {
          AxisTaps taps[2];
          for (int i = 0; i < 2; ++i) {
            find_taps(options_, place[1 - i], x.dim(2 + i), &taps[i]);
          }
          if (pairs.set(p, taps[0], taps[1], x.dim(3))) continue;
          pairs.clear(p);
          others.counts[other] =
              multiply_taps(taps, 2, x.shape().begin() + 2, others.offsets + other * 4,
                            others.weights + other * 4);
          where[other++] = p;
        }
        const float* from = x.data<float>() + batch * channels * plane;
        float* to = y->data_mut<float>() + batch * channels * points + at % points;
        for (int64_t c = 0; c < channels; ++c, from += plane, to += points) {
          pairs.sum(n, from, to);
          for (int64_t i = 0; i < other; ++i) others.sum_one(i, from, to + where[i]);
        }
        at += n;
      }
    });
  }
#endif

  int taps_of_axis() const { return options_.mode == Mode::kLinear ? 2 : 4; }

  Options options_;
};

Status infer_grid_sample(OpInfer& infer) {
  FOLIO_RETURN_IF_ERROR(parse(infer.attrs(), infer.version()).status());
  const Dims* x = infer.dims_of(0);
  const Dims* grid = infer.dims_of(1);
  std::optional<Dims> out;
  if (x && grid && x->size() == grid->size() && x->size() >= 3) {
    out = Dims{(*x)[0], (*x)[1]};
    out->insert(out->end(), grid->begin() + 1, grid->end() - 1);
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_grid_sample(OpBuild& build) {
  FOLIO_TRY(const Options options, parse(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<GridSample>(options));
}

}  // namespace

[[gnu::cold]] void register_grid_sample(OpRegistry& registry) {
  OpDef def;
  def.type = "GridSample";
  def.since = 16;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_grid_sample;
  def.make = make_grid_sample;
  registry.add(def);
  def.domain = "com.microsoft";
  def.since = 1;
  registry.add(def);
}

}  // namespace folio
