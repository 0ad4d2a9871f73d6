// MaxRoiPool: the largest element in each bin of regions of an image.
//
// Source: ONNX operator spec, MaxRoiPool, opsets 1, 22; bins as Fast R-CNN (Girshick, 2015) has
//         them.
// Shapes: x [n, c, h, w], rois [r, 5] (image, x1, y1, x2, y2) -> y [r, c, pooled_shape].
// Math:   a region's corners are scaled and rounded, halves away from zero, and belong to it; of a
//         length of l elements, at least 1, bin i of p has [floor(i l / p), ceil((i + 1) l / p)),
//         cut at the image. A bin outside of it is 0; NaN is passed over where there is a number.
// Types:  float, double, float16, bfloat16.
// Errors: kInvalidArgument for images outside, and corners that are no usable numbers.
#include <algorithm>
#include <cmath>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kMaxBins = int64_t{1} << 24;
constexpr double kFarthest = 1e9;  // a corner, scaled: products with bins stay in int64

struct Options {
  int64_t height = 0;
  int64_t width = 0;
  float scale = 1;
};

Result<Options> parse(const Attributes& attrs) {
  Options options;
  FOLIO_TRY(const std::vector<int64_t> bins, attrs.get_ints("pooled_shape"));
  FOLIO_TRY(options.scale, attrs.get_float("spatial_scale", 1.0F));
  const auto bad = [](int64_t count) { return count < 1 || count > kMaxBins; };
  if (bins.size() != 2 || bad(bins[0]) || bad(bins[1])) {
    return invalid_graph("pooled_shape must be two numbers from 1 to ", kMaxBins);
  }
  options.height = bins[0];
  options.width = bins[1];
  return options;
}

// A region along an axis of the image, and what bins there are.
struct Extent {
  int64_t first = 0;
  int64_t length = 1;
  int64_t bins = 1;
  int64_t limit = 0;  // of the image

  int64_t begin(int64_t bin) const { return cut(first + bin * length / bins); }
  int64_t end(int64_t bin) const { return cut(first + ((bin + 1) * length + bins - 1) / bins); }

 private:
  int64_t cut(int64_t at) const { return std::clamp<int64_t>(at, 0, limit); }
};

struct Region {
  int64_t image = 0;
  Extent down, across;
};

Result<Extent> extent_of(double first, double last, float scale, int64_t bins, int64_t limit) {
  const double from = std::round(first * static_cast<double>(scale));
  const double to = std::round(last * static_cast<double>(scale));
  if (!(std::fabs(from) <= kFarthest && std::fabs(to) <= kFarthest)) {
    return invalid_argument("a region from ", first, " to ", last, " cannot be pooled");
  }
  const auto length = static_cast<int64_t>(to - from) + 1;
  return Extent{static_cast<int64_t>(from), std::max<int64_t>(length, 1), bins, limit};
}

template <typename T>
T largest(const Region& region, const T* plane, int64_t row, int64_t column) {
  const int64_t left = region.across.begin(column);
  const int64_t right = region.across.end(column);
  const int64_t bottom = region.down.end(row);
  bool is_empty = true;
  T best{};
  for (int64_t h = region.down.begin(row); h < bottom; ++h) {
    for (int64_t w = left; w < right; ++w) {
      const auto value = static_cast<Compute<T>>(plane[h * region.across.limit + w]);
      const auto so_far = static_cast<Compute<T>>(best);
      if (!is_empty && !(value > so_far) && !std::isnan(so_far)) continue;
      best = plane[h * region.across.limit + w];
      is_empty = false;
    }
  }
  return best;
}

class MaxRoiPool final : public OpKernel {
 public:
  explicit MaxRoiPool(Options options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* rois, run.tensor(1, x->dtype()));
    if (x->rank() != 4 || rois->rank() != 2 || rois->dim(1) != 5) {
      return invalid_argument("input 0 is ", x->shape().to_string(), ", rois ",
                              rois->shape().to_string(), ", expected [n,c,h,w] and [r,5]");
    }
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(const Shape shape, shape_from(std::vector<int64_t>{rois->dim(0), x->dim(1),
                                                                 options_.height, options_.width}));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    return dispatch_input(FloatTypes{}, x->dtype(), [&](auto tag) {
      return pool<typename decltype(tag)::type>(run, *x, *rois, y);
    });
  }

 private:
  template <typename T>
  Result<Region> region_of(const Tensor& x, const T* roi) const {
    double number[5];
    for (int i = 0; i < 5; ++i) number[i] = static_cast<double>(static_cast<Compute<T>>(roi[i]));
    Region region;
    if (!(number[0] >= 0 && number[0] < static_cast<double>(x.dim(0)))) {
      return invalid_argument("image ", number[0], " is outside a batch of ", x.dim(0));
    }
    region.image = static_cast<int64_t>(number[0]);
    FOLIO_TRY(region.across,
              extent_of(number[1], number[3], options_.scale, options_.width, x.dim(3)));
    FOLIO_TRY(region.down,
              extent_of(number[2], number[4], options_.scale, options_.height, x.dim(2)));
    return region;
  }

  template <typename T>
  Status pool(OpRun& run, const Tensor& x, const Tensor& rois, Tensor* y) const {
    const int64_t channels = x.dim(1);
    const int64_t plane = x.dim(2) * x.dim(3);
    const int64_t bins = options_.height * options_.width;
    for (int64_t r = 0; r < rois.dim(0); ++r) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      FOLIO_TRY(const Region region, region_of(x, rois.data<T>() + r * 5));
      const T* image = x.data<T>() + region.image * channels * plane;
      T* out = y->data_mut<T>() + r * channels * bins;
      run.parallel().for_range(channels, 1 + 4096 / bins, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          for (int64_t i = 0; i < bins; ++i) {
            out[c * bins + i] =
                largest(region, image + c * plane, i / options_.width, i % options_.width);
          }
        }
      });
    }
    return Status::ok();
  }

  Options options_;
};

Status infer_max_roi_pool(OpInfer& infer) {
  FOLIO_TRY(const Options options, parse(infer.attrs()));
  const Dims* x = infer.dims_of(0);
  const Dims* rois = infer.dims_of(1);
  Dims out{Dim::unknown(), Dim::unknown(), Dim::of(options.height), Dim::of(options.width)};
  if (rois && rois->size() == 2) out[0] = (*rois)[0];
  if (x && x->size() == 4) out[1] = (*x)[1];
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_max_roi_pool(OpBuild& build) {
  FOLIO_TRY(const Options options, parse(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<MaxRoiPool>(options));
}

}  // namespace

[[gnu::cold]] void register_max_roi_pool(OpRegistry& registry) {
  OpDef def;
  def.type = "MaxRoiPool";
  def.since = 1;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_max_roi_pool;
  def.make = make_max_roi_pool;
  def.one_type = 0b11;
  registry.add(def);
}

}  // namespace folio
