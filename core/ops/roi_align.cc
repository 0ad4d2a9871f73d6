// RoiAlign: regions of an image pooled to one size from interpolated samples.
//
// Source: ONNX operator spec, RoiAlign, opsets 10 (corners as they are), 16
//         (coordinate_transformation_mode), 22.
// Shapes: x [n, c, h, w], rois [r, 4] (x1, y1, x2, y2), batch_indices [r] ->
//         y [r, c, output_height, output_width].
// Math:   each bin is the mean of its bilinear samples, or the maximum of the weighted elements
//         that they are made of.
// Types:  float, double, float16, bfloat16, each computed in double.
// Errors: kInvalidArgument for batch indices outside, and regions of no finite, usable size.
#include <cmath>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

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
      options.samples > 0 ? options.samples : std::max<int64_t>(0, static_cast<int64_t>(needed));
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

template <typename T>
double pool_bin(const T* plane, int64_t width, const Pair* rows, int64_t row_count,
                const Pair* columns, int64_t column_count, bool maximum) {
  double result = 0;
  bool first = true;
  for (int64_t i = 0; i < row_count; ++i) {
    for (int64_t j = 0; j < column_count; ++j) {
      const Pair& r = rows[i];
      const Pair& c = columns[j];
      const auto at = [&](int64_t y, int64_t x) {
        return static_cast<double>(static_cast<Compute<T>>(plane[y * width + x]));
      };
      const double a = r.low_weight * c.low_weight * at(r.low, c.low);
      const double b = r.low_weight * c.high_weight * at(r.low, c.high);
      const double d = r.high_weight * c.low_weight * at(r.high, c.low);
      const double e = r.high_weight * c.high_weight * at(r.high, c.high);
      if (maximum) {
        const double best = std::max(std::max(a, b), std::max(d, e));
        result = first ? best : std::max(result, best);
        first = false;
      } else {
        result += a + b + d + e;
      }
    }
  }
  const int64_t count = std::max<int64_t>(1, row_count * column_count);
  return maximum ? result : result / static_cast<double>(count);
}

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
    Status status;
    dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
      status = align<typename decltype(tag)::type>(run, *x, *rois, batches, y);
    });
    return status;
  }

 private:
  static void fill_pairs(const Span1& span, int64_t bins, int64_t n, std::vector<Pair>* pairs) {
    pairs->clear();
    for (int64_t b = 0; b < bins; ++b) {
      for (int64_t s = 0; s < span.samples; ++s) {
        const double part = (static_cast<double>(s) + 0.5) / static_cast<double>(span.samples);
        pairs->push_back(pair_of(span.start + (static_cast<double>(b) + part) * span.bin, n));
      }
    }
  }

  template <typename T>
  Status align(OpRun& run, const Tensor& x, const Tensor& rois, const std::vector<int64_t>& batches,
               Tensor* y) const {
    const int64_t channels = x.dim(1);
    const int64_t height = x.dim(2);
    const int64_t width = x.dim(3);
    const int64_t bins = options_.height * options_.width;
    std::vector<Pair> rows;
    std::vector<Pair> columns;
    for (size_t r = 0; r < batches.size(); ++r) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      double corner[4];
      for (size_t i = 0; i < 4; ++i) {
        corner[i] = static_cast<double>(static_cast<Compute<T>>(rois.data<T>()[r * 4 + i]));
      }
      FOLIO_TRY(const Span1 across, span_of(options_, corner[0], corner[2], options_.width));
      FOLIO_TRY(const Span1 down, span_of(options_, corner[1], corner[3], options_.height));
      fill_pairs(down, options_.height, height, &rows);
      fill_pairs(across, options_.width, width, &columns);
      const T* image = x.data<T>() + batches[r] * channels * height * width;
      T* out = y->data_mut<T>() + static_cast<int64_t>(r) * channels * bins;
      run.parallel().for_range(channels, 1, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin * bins; at < end * bins; ++at) {
          const int64_t bin = at % bins;
          out[at] = static_cast<T>(static_cast<Compute<T>>(
              pool_bin(image + at / bins * height * width, width,
                       rows.data() + bin / options_.width * down.samples, down.samples,
                       columns.data() + bin % options_.width * across.samples, across.samples,
                       options_.maximum)));
        }
      });
    }
    return Status::ok();
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
  registry.add(def);
}

}  // namespace folio
