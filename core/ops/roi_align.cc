// RoiAlign: regions of an image pooled to one size from interpolated samples.
//
// Source: ONNX operator spec, RoiAlign, opsets 10 (corners as they are), 16
//         (coordinate_transformation_mode), 22.
// Shapes: x [n, c, h, w], rois [r, 4] (x1, y1, x2, y2), batch_indices [r] ->
//         y [r, c, output_height, output_width].
// Math:   each bin is the mean of its bilinear samples, or the maximum of the weighted elements
//         that they are made of. Either is joined of rows first, then of the columns of what they
//         give: a weight is one of a row times one of a column, none negative.
// Types:  float, double, float16, bfloat16, each computed in double.
// Errors: kInvalidArgument for batch indices outside, and regions of no finite, usable size.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

struct Options {
  bool maximum = false;
  bool half_pixel = false;
  int64_t height = 1;
  int64_t width = 1;
  int64_t samples = 0;
  float scale = 1;
};

constexpr int64_t kMaxSamples = 4096;  // of a bin along an axis
constexpr int64_t kMaxBins = int64_t{1} << 24;
constexpr int64_t kMaxPlaces = int64_t{1} << 22;  // of all bins along an axis

Result<Options> parse(const Attributes& attrs, int version) {
  Options options;
  FOLIO_TRY(const std::string mode, attrs.get_string("mode", "avg"));
  if (mode != "avg" && mode != "max") return invalid_graph("mode is '", mode, "', not avg or max");
  options.maximum = mode == "max";
  if (version >= 16) {
    FOLIO_TRY(const std::string coordinates,
              attrs.get_string("coordinate_transformation_mode", "half_pixel"));
    if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
      return invalid_graph("coordinate_transformation_mode is '", coordinates, "'");
    }
    options.half_pixel = coordinates == "half_pixel";
  }
  FOLIO_TRY(options.height, attrs.get_int("output_height", 1));
  FOLIO_TRY(options.width, attrs.get_int("output_width", 1));
  FOLIO_TRY(options.samples, attrs.get_int("sampling_ratio", 0));
  FOLIO_TRY(options.scale, attrs.get_float("spatial_scale", 1.0F));
  const auto bad = [](int64_t bins) { return bins < 1 || bins > kMaxBins; };
  if (bad(options.height) || bad(options.width) || options.samples < 0 ||
      options.samples > kMaxSamples) {
    return invalid_graph("output_height is ", options.height, ", output_width ", options.width,
                         ", sampling_ratio ", options.samples);
  }
  return options;
}

// One axis of a region: where its bins begin and how they are sampled.
struct Span1 {
  double start = 0;
  double bin = 0;
  int64_t samples = 0;
};

Result<Span1> span_of(const Options& options, double first, double last, int64_t bins) {
  const double offset = options.half_pixel ? 0.5 : 0;
  Span1 span;
  span.start = first * options.scale - offset;
  double length = last * options.scale - offset - span.start;
  if (!options.half_pixel) length = std::max(length, 1.0);
  span.bin = length / static_cast<double>(bins);
  const double needed = std::ceil(span.bin);
  if (!std::isfinite(span.start) || !(needed <= static_cast<double>(kMaxSamples))) {
    return invalid_argument("a region from ", first, " to ", last, " cannot be sampled");
  }
  span.samples =
      options.samples > 0 ? options.samples : static_cast<int64_t>(std::max(needed, 0.0));
  if (span.samples * bins > kMaxPlaces) {
    return invalid_argument("a region is sampled at ", span.samples, " places in each of ", bins,
                            " bins, more than ", kMaxPlaces);
  }
  return span;
}

// The two elements a place lies between; weight 0 for both when it is outside.
struct Pair {
  int64_t low = 0;
  int64_t high = 0;
  double low_weight = 0;
  double high_weight = 0;
};
Pair pair_of(double at, int64_t n) {
  if (!(at >= -1 && at <= static_cast<double>(n))) return {};
  at = std::max(at, 0.0);
  const auto low = static_cast<int64_t>(at);
  if (low >= n - 1) return {n - 1, n - 1, 1, 0};
  const double part = at - static_cast<double>(low);
  return {low, low + 1, 1 - part, part};
}

// ---------------------------------------------------------------- what a region is made of

// An element along an axis, and its weight.
struct Tap {
  int64_t at = 0;
  double weight = 0;
};

// Along an axis, the same for all channels: those of bin b end at ends[b].
struct Taps {
  std::vector<Tap> all;
  std::vector<int64_t> ends;

  Span<const Tap> of(int64_t bin) const {
    const int64_t begin = bin == 0 ? 0 : ends[static_cast<size_t>(bin) - 1];
    return {all.data() + begin, static_cast<size_t>(ends[static_cast<size_t>(bin)] - begin)};
  }
};

// Samples that are close have elements in common: their weights are added. `begin`: of the bin.
void add_tap(size_t begin, Tap tap, std::vector<Tap>* taps) {
  if (tap.weight == 0) return;
  const size_t near = std::max(begin, taps->size() < 2 ? 0 : taps->size() - 2);
  for (size_t i = near; i < taps->size(); ++i) {
    if ((*taps)[i].at != tap.at) continue;
    (*taps)[i].weight += tap.weight;
    return;
  }
  taps->push_back(tap);
}

void fill_taps(const Span1& span, int64_t bins, int64_t n, bool maximum, Taps* taps) {
  taps->all.clear();
  taps->ends.clear();
  for (int64_t b = 0; b < bins; ++b) {
    const size_t begin = taps->all.size();
    for (int64_t s = 0; s < span.samples; ++s) {
      const double part = (static_cast<double>(s) + 0.5) / static_cast<double>(span.samples);
      const Pair pair = pair_of(span.start + (static_cast<double>(b) + part) * span.bin, n);
      const Tap low{pair.low, pair.low_weight};
      const Tap high{pair.high, pair.high_weight};
      if (maximum) {
        // Of a weight of 0, too, 0 takes part; and a sum of weights is none of them.
        taps->all.insert(taps->all.end(), {low, high});
      } else {
        add_tap(begin, low, &taps->all);
        add_tap(begin, high, &taps->all);
      }
    }
    taps->ends.push_back(static_cast<int64_t>(taps->all.size()));
  }
}

// Rows are joined in pairs of neighbouring columns, those that the taps need; pair i gives the
// places 2 i and 2 i + 1, which the columns' taps then name.
constexpr int64_t kEach = 2;
constexpr int64_t kPairs = 4;  // that are joined together

struct Region {
  Taps rows;
  Taps columns;
  std::vector<int64_t> pairs;  // where they begin; a multiple of kPairs
};

void pair_columns(int64_t width, Region* region) {
  std::vector<Tap>& taps = region->columns.all;
  std::vector<int64_t> used;
  for (const Tap& tap : taps) used.push_back(tap.at);
  std::sort(used.begin(), used.end());
  std::vector<int64_t>& pairs = region->pairs;
  for (const int64_t at : used) {
    if (!pairs.empty() && at < pairs.back() + kEach) continue;
    pairs.push_back(std::max<int64_t>(0, std::min(at, width - kEach)));
  }
  for (Tap& tap : taps) {
    const auto after = std::upper_bound(pairs.begin(), pairs.end(), tap.at);
    tap.at = (after - pairs.begin() - 1) * kEach + tap.at - after[-1];
  }
  while (pairs.size() % kPairs != 0) pairs.push_back(pairs.back());
}

// ---------------------------------------------------------------- one channel

// As vectors of 16 bytes: g++ makes none of such loops at -O2.
typedef double Some __attribute__((vector_size(16)));

// Rows of bins that are joined together: [place][kBand].
constexpr int64_t kBand = 8;

template <typename T>
double number(T value) {
  return static_cast<double>(static_cast<Compute<T>>(value));
}

template <typename T>
Some load(const T* from) {
#if defined(__SSE2__)
  // g++ makes two conversions of a vector's.
  if constexpr (std::is_same_v<T, float>) {
    double both;
    std::memcpy(&both, from, sizeof(both));
    return _mm_cvtps_pd(_mm_castpd_ps(_mm_set_sd(both)));
  }
#endif
  return Some{number(from[0]), number(from[1])};
}

// What joining begins with, and a step of it.
template <bool kMaximum>
constexpr double kNone = kMaximum ? -std::numeric_limits<double>::infinity() : 0.0;
template <bool kMaximum, typename V>
V join(V a, V b) {
  if constexpr (kMaximum) {
    return a > b ? a : b;
  } else {
    return a + b;
  }
}

// The rows of a bin, in each pair of columns; to[0], of every place.
template <bool kMaximum, typename T>
void join_rows(const std::vector<int64_t>& pairs, const T* plane, int64_t width,
               Span<const Tap> rows, double* to) {
  for (size_t i = 0; i < pairs.size(); i += kPairs) {
    Some all[kPairs];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kPairs; ++v) all[v] = Some{} + kNone<kMaximum>;
    const int64_t* at = pairs.data() + i;
    for (const Tap& row : rows) {
      const T* from = plane + row.at * width;
#pragma GCC unroll 4
      for (int64_t v = 0; v < kPairs; ++v) {
        all[v] = join<kMaximum>(all[v], load(from + at[v]) * row.weight);
      }
    }
#pragma GCC unroll 4
    for (int64_t v = 0; v < kPairs; ++v) {
      to[v * kEach * kBand] = all[v][0];
      to[(v * kEach + 1) * kBand] = all[v][1];
    }
    to += kPairs * kEach * kBand;
  }
}

// The same in an image of one column, which has no pairs.
template <bool kMaximum, typename T>
void join_column(const T* plane, Span<const Tap> rows, double* to) {
  *to = kNone<kMaximum>;
  for (const Tap& row : rows) *to = join<kMaximum>(*to, number(plane[row.at]) * row.weight);
}

// The columns of a bin, in every row of the band.
template <bool kMaximum>
void join_columns(const double* joined, Span<const Tap> columns, double* to) {
  constexpr int64_t kVectors = kBand / 2;
  Some all[kVectors];
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) all[v] = Some{} + kNone<kMaximum>;
  for (const Tap& column : columns) {
    const double* from = joined + column.at * kBand;
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      Some some;
      std::memcpy(&some, from + v * 2, sizeof(some));
      all[v] = join<kMaximum>(all[v], some * column.weight);
    }
  }
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) std::memcpy(to + v * 2, &all[v], sizeof(Some));
}

// `joined`: kBand numbers for each place.
template <bool kMaximum, typename T>
void pool(const Region& region, const T* plane, int64_t width, double* joined, T* out) {
  const auto height = static_cast<int64_t>(region.rows.ends.size());
  const auto across = static_cast<int64_t>(region.columns.ends.size());
  for (int64_t y = 0; y < height; y += kBand) {
    const int64_t band = std::min(kBand, height - y);
    for (int64_t b = 0; b < band; ++b) {
      const Span<const Tap> rows = region.rows.of(y + b);
      if (width < kEach) {
        join_column<kMaximum>(plane, rows, joined + b);
      } else {
        join_rows<kMaximum>(region.pairs, plane, width, rows, joined + b);
      }
    }
    for (int64_t x = 0; x < across; ++x) {
      const Span<const Tap> columns = region.columns.of(x);
      double bins[kBand];
      join_columns<kMaximum>(joined, columns, bins);
      for (int64_t b = 0; b < band; ++b) {
        // What is not sampled gives 0.
        const bool is_sampled = !columns.empty() && !region.rows.of(y + b).empty();
        const double value = is_sampled || !kMaximum ? bins[b] : 0;
        out[(y + b) * across + x] = static_cast<T>(static_cast<Compute<T>>(value));
      }
    }
  }
}

// ---------------------------------------------------------------- the operator

class RoiAlign final : public OpKernel {
 public:
  explicit RoiAlign(Options options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* rois, run.tensor(1, x->dtype()));
    FOLIO_TRY(const std::vector<int64_t> batches, run.ints(2));
    const bool fits = x->rank() == 4 && rois->rank() == 2 && rois->dim(1) == 4 &&
                      rois->dim(0) == static_cast<int64_t>(batches.size());
    if (!fits) {
      return invalid_argument("input 0 is ", x->shape().to_string(), ", rois ",
                              rois->shape().to_string(), " with ", batches.size(),
                              " batch indices, expected [n,c,h,w] and [r,4]");
    }
    for (const int64_t batch : batches) {
      if (batch < 0 || batch >= x->dim(0)) {
        return invalid_argument("batch index ", batch, " is outside a batch of ", x->dim(0));
      }
    }
    FOLIO_TRY(const Shape shape, shape_from(std::vector<int64_t>{rois->dim(0), x->dim(1),
                                                                 options_.height, options_.width}));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    if (x->count() == 0) return invalid_argument("nothing to sample");
    return dispatch_input(FloatTypes{}, x->dtype(), [&](auto tag) {
      return align<typename decltype(tag)::type>(run, *x, *rois, batches, y);
    });
  }

 private:
  static constexpr size_t kRegions = 64;  // that are described at once

  template <typename T>
  Result<Region> region_of(const Tensor& x, const T* corners) const {
    double corner[4];
    for (size_t i = 0; i < 4; ++i) corner[i] = number(corners[i]);
    FOLIO_TRY(const Span1 across, span_of(options_, corner[0], corner[2], options_.width));
    FOLIO_TRY(const Span1 down, span_of(options_, corner[1], corner[3], options_.height));
    Region region;
    fill_taps(down, options_.height, x.dim(2), options_.maximum, &region.rows);
    fill_taps(across, options_.width, x.dim(3), options_.maximum, &region.columns);
    if (!options_.maximum) {
      const double samples =
          static_cast<double>(std::max<int64_t>(1, across.samples * down.samples));
      for (Tap& tap : region.columns.all) tap.weight /= samples;
    }
    pair_columns(x.dim(3), &region);
    return region;
  }

  template <typename T>
  Status align(OpRun& run, const Tensor& x, const Tensor& rois, const std::vector<int64_t>& batches,
               Tensor* y) const {
    const auto places = static_cast<size_t>(x.dim(3) + kPairs * kEach);
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, places * kBand * sizeof(double), &scratch));
    std::vector<Region> regions;
    for (size_t r = 0; r < batches.size(); r += kRegions) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      regions.clear();
      for (size_t i = r; i < std::min(batches.size(), r + kRegions); ++i) {
        FOLIO_TRY(Region region, region_of(x, rois.data<T>() + i * 4));
        regions.push_back(std::move(region));
      }
      T* out =
          y->data_mut<T>() + static_cast<int64_t>(r) * x.dim(1) * options_.height * options_.width;
      if (options_.maximum) {
        align_some<true>(run, x, regions, batches.data() + r, scratch, out);
      } else {
        align_some<false>(run, x, regions, batches.data() + r, scratch, out);
      }
    }
    return Status::ok();
  }

  // All channels of regions that follow each other.
  template <bool kMaximum, typename T>
  void align_some(OpRun& run, const Tensor& x, const std::vector<Region>& regions,
                  const int64_t* batches, ThreadScratch& scratch, T* out) const {
    const int64_t channels = x.dim(1);
    const int64_t plane = x.dim(2) * x.dim(3);
    const int64_t bins = options_.height * options_.width;
    const auto count = static_cast<int64_t>(regions.size()) * channels;
    run.parallel().for_range(count, 1 + 4096 / bins, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      auto* joined = reinterpret_cast<double*>(block.data());
      // A band of fewer rows joins what is there.
      std::fill_n(joined, (x.dim(3) + kPairs * kEach) * kBand, 0.0);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t r = i / channels;
        const T* image = x.data<T>() + (batches[r] * channels + i % channels) * plane;
        pool<kMaximum>(regions[static_cast<size_t>(r)], image, x.dim(3), joined, out + i * bins);
      }
    });
  }

  Options options_;
};

Status infer_roi_align(OpInfer& infer) {
  FOLIO_TRY(const Options options, parse(infer.attrs(), infer.version()));
  const Dims* x = infer.dims_of(0);
  const Dims* rois = infer.dims_of(1);
  Dims out{Dim::unknown(), Dim::unknown(), Dim::of(options.height), Dim::of(options.width)};
  if (rois && rois->size() == 2) out[0] = (*rois)[0];
  if (x && x->size() == 4) out[1] = (*x)[1];
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_roi_align(OpBuild& build) {
  FOLIO_TRY(const Options options, parse(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<RoiAlign>(options));
}

}  // namespace

[[gnu::cold]] void register_roi_align(OpRegistry& registry) {
  OpDef def;
  def.type = "RoiAlign";
  def.since = 10;
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer_roi_align;
  def.make = make_roi_align;
  def.one_type = 0b11;
  registry.add(def);
}

}  // namespace folio
