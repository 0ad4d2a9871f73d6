#include "core/ops/op_resize.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"

namespace folio {
namespace {

// Dims and tables above this are no images any more.
constexpr int64_t kMaxTable = int64_t{1} << 31;
constexpr int64_t kMaxTaps = int64_t{1} << 27;

template <typename E>
struct Name {
  std::string_view name;
  E value;
  int since;
  int until;
};

constexpr int kAlways = 1 << 30;

template <typename E, size_t N>
Result<E> pick(const Attributes& attributes, std::string_view attribute, std::string_view fallback,
               int version, const Name<E> (&names)[N]) {
  FOLIO_TRY(const std::string given, attributes.get_string(attribute, fallback));
  for (const Name<E>& entry : names) {
    if (entry.name == given && version >= entry.since && version <= entry.until) return entry.value;
  }
  return invalid_graph(attribute, " is '", given, "', which opset ", version, " does not have");
}

constexpr Name<ResizeMode> kModes[] = {{"nearest", ResizeMode::kNearest, 1, kAlways},
                                       {"linear", ResizeMode::kLinear, 1, kAlways},
                                       {"bilinear", ResizeMode::kLinear, 1, 6},
                                       {"cubic", ResizeMode::kCubic, 11, kAlways}};
constexpr Name<ResizeCoordinates> kCoordinates[] = {
    {"half_pixel", ResizeCoordinates::kHalfPixel, 11, kAlways},
    {"half_pixel_symmetric", ResizeCoordinates::kHalfPixelSymmetric, 19, kAlways},
    {"pytorch_half_pixel", ResizeCoordinates::kPytorchHalfPixel, 11, kAlways},
    {"align_corners", ResizeCoordinates::kAlignCorners, 11, kAlways},
    {"asymmetric", ResizeCoordinates::kAsymmetric, 11, kAlways},
    {"tf_half_pixel_for_nn", ResizeCoordinates::kTfHalfPixelForNn, 11, 12},
    {"tf_crop_and_resize", ResizeCoordinates::kTfCropAndResize, 11, kAlways}};
constexpr Name<ResizeRounding> kRoundings[] = {
    {"round_prefer_floor", ResizeRounding::kPreferFloor, 11, kAlways},
    {"round_prefer_ceil", ResizeRounding::kPreferCeil, 11, kAlways},
    {"floor", ResizeRounding::kFloor, 11, kAlways},
    {"ceil", ResizeRounding::kCeil, 11, kAlways}};
constexpr Name<ResizePolicy> kPolicies[] = {
    {"stretch", ResizePolicy::kStretch, 18, kAlways},
    {"not_larger", ResizePolicy::kNotLarger, 18, kAlways},
    {"not_smaller", ResizePolicy::kNotSmaller, 18, kAlways}};

// Sizes that keep the ratio of the axes: one scale for all of them.
Status keep_ratio(const ResizeOptions& options, const std::vector<size_t>& axes,
                  std::vector<ResizeAxis>* all) {
  const bool larger = options.policy == ResizePolicy::kNotSmaller;
  float scale = larger ? 0.0F : INFINITY;
  for (const size_t i : axes)
    scale = larger ? std::max(scale, (*all)[i].scale) : std::min(scale, (*all)[i].scale);
  for (const size_t i : axes) {
    ResizeAxis& axis = (*all)[i];
    const double size = std::floor(static_cast<double>(scale) * static_cast<double>(axis.in) + 0.5);
    if (!(size >= 0 && size < static_cast<double>(kMaxTable))) {
      return invalid_argument("a dim of ", axis.in, " cannot be scaled by ", scale);
    }
    axis.scale = scale;
    axis.out = static_cast<int64_t>(size);
    axis.is_sized = false;  // the length before it was rounded is what formulas mean
  }
  return Status::ok();
}

Status size_axis(int64_t size, ResizeAxis* axis) {
  if (size < 0 || (size > 0 && axis->in == 0)) {
    return invalid_argument("a dim of ", axis->in, " cannot be resized to ", size);
  }
  axis->out = size;
  axis->is_sized = true;
  axis->scale = axis->in == 0 ? 1 : static_cast<float>(size) / static_cast<float>(axis->in);
  return Status::ok();
}

Status scale_axis(const ResizeOptions& options, float scale, ResizeAxis* axis) {
  axis->scale = scale;
  FOLIO_TRY(axis->out, scaled_dim(axis->in, scale));
  if (axis->crops(options)) {
    const float size =
        std::floor(static_cast<float>(axis->in) * (axis->roi_end - axis->roi_begin) * scale);
    if (!(size >= 0 && size < static_cast<float>(kMaxTable))) {
      return invalid_argument("a dim of ", axis->in, " cannot be scaled by ", scale, " from ",
                              axis->roi_begin, " to ", axis->roi_end);
    }
    axis->out = static_cast<int64_t>(size);
  }
  return Status::ok();
}

// Where output element i lies among the input's.
class Coordinate {
 public:
  Coordinate(const ResizeOptions& options, const ResizeAxis& axis)
      : kind_(options.coordinates),
        is_sized_(axis.is_sized && kind_ != ResizeCoordinates::kTfCropAndResize),
        in_(static_cast<float>(axis.in)),
        out_(static_cast<float>(axis.out)),
        scale_(axis.scale),
        begin_(axis.roi_begin),
        end_(axis.roi_end),
        whole_in_(static_cast<double>(axis.in)),
        whole_out_(static_cast<double>(axis.out)) {
    // The length before rounding down: what the formulas of the specification mean.
    exact_ = std::fabs(scale_ * in_ - out_) < 1 ? scale_ * in_ : out_;
  }

  double at(int64_t i) const {
    return is_sized_ ? of_lengths(static_cast<double>(i)) : of_scale(static_cast<float>(i));
  }
  // Only crops reach beyond the input.
  bool outside(double x) const {
    return kind_ == ResizeCoordinates::kTfCropAndResize && !(x >= 0 && x <= in_ - 1);
  }

 private:
  float of_scale(float x) const {
    switch (kind_) {
      case ResizeCoordinates::kHalfPixel:
        return (x + 0.5F) / scale_ - 0.5F;
      case ResizeCoordinates::kHalfPixelSymmetric:
        return in_ / 2 * (1 - out_ / exact_) + (x + 0.5F) / scale_ - 0.5F;
      case ResizeCoordinates::kPytorchHalfPixel:
        return out_ > 1 ? (x + 0.5F) / scale_ - 0.5F : 0;
      case ResizeCoordinates::kAlignCorners:
        return out_ > 1 ? x * (in_ - 1) / (exact_ - 1) : 0;
      case ResizeCoordinates::kAsymmetric:
        return x / scale_;
      case ResizeCoordinates::kTfHalfPixelForNn:
        return (x + 0.5F) / scale_;
      case ResizeCoordinates::kTfCropAndResize:
        return out_ > 1 ? begin_ * (in_ - 1) + x * (end_ - begin_) * (in_ - 1) / (out_ - 1)
                        : 0.5F * (begin_ + end_) * (in_ - 1);
    }
    return x;
  }

  // The scale is a quotient of whole numbers: the product with one is exact, so the one division
  // gives elements, and what is halfway between two, as they are.
  double of_lengths(double x) const {
    const bool is_one = whole_out_ <= 1;
    switch (kind_) {
      case ResizeCoordinates::kAlignCorners:
        return is_one ? 0 : x * (whole_in_ - 1) / (whole_out_ - 1);
      case ResizeCoordinates::kAsymmetric:
        return x * whole_in_ / whole_out_;
      case ResizeCoordinates::kTfHalfPixelForNn:
        return (x + 0.5) * whole_in_ / whole_out_;
      case ResizeCoordinates::kPytorchHalfPixel:
        return is_one ? 0 : (x + 0.5) * whole_in_ / whole_out_ - 0.5;
      default:  // a symmetric half pixel moves nothing where no length is cut
        return (x + 0.5) * whole_in_ / whole_out_ - 0.5;
    }
  }

  ResizeCoordinates kind_;
  bool is_sized_;
  float in_;
  float out_;
  float scale_;
  float begin_;
  float end_;
  float exact_;
  double whole_in_;
  double whole_out_;
};

double round_place(ResizeRounding rounding, double x, bool shrinks) {
  switch (rounding) {
    case ResizeRounding::kPreferFloor:
      return x == std::floor(x) + 0.5 ? std::floor(x) : std::round(x);
    case ResizeRounding::kPreferCeil:
      return std::round(x);
    case ResizeRounding::kFloor:
      return std::floor(x);
    case ResizeRounding::kCeil:
      return std::ceil(x);
    case ResizeRounding::kSimple:
      return shrinks ? std::ceil(x) : std::floor(x);
  }
  return x;
}

// A number of any value as an index of [0, n).
int64_t clamp_place(double x, int64_t n) {
  if (!(x > 0)) return 0;
  if (x >= static_cast<double>(n)) return n - 1;
  return std::min(static_cast<int64_t>(x), n - 1);
}

double linear_weight(double x) { return std::max(0.0, 1 - std::fabs(x)); }

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

Status check_table(const ResizeAxis& axis, int64_t taps) {
  int64_t entries = 0;
  if (!checked_mul(axis.out, taps, &entries) || entries > (taps > 1 ? kMaxTaps : kMaxTable)) {
    return invalid_argument("resizing a dim of ", axis.in, " to ", axis.out, " with ", taps,
                            " inputs each is too large");
  }
  if (axis.in == 0 && axis.out > 0) {
    return invalid_argument("a dim of 0 cannot be resized to ", axis.out);
  }
  return Status::ok();
}

// The weights of one output element: `first` is the leftmost input it sees.
void fill_taps(const ResizeOptions& options, const ResizeAxis& axis, double filter, double x,
               int64_t taps, int64_t* index, double* weights) {
  const double whole = std::floor(x);
  const double ratio = x - whole;
  const int64_t start = 1 - taps / 2;
  double sum = 0;
  for (int64_t t = 0; t < taps; ++t) {
    const double offset = static_cast<double>(start + t);
    const double place = whole + offset;
    double weight = options.mode == ResizeMode::kLinear
                        ? linear_weight((offset - ratio) * filter)
                        : cubic_weight((offset - ratio) * filter, options.cubic_a);
    const bool inside = place >= 0 && place < static_cast<double>(axis.in);
    if (options.exclude_outside && !inside) weight = 0;
    index[t] = place <= 0 ? 0 : inside ? static_cast<int64_t>(place) : axis.in - 1;
    weights[t] = weight;
    sum += weight;
  }
  if (sum == 0) return;
  for (int64_t t = 0; t < taps; ++t) weights[t] /= sum;
}

}  // namespace

Result<ResizeOptions> ResizeOptions::parse_resize(const Attributes& attributes, int version) {
  ResizeOptions options;
  FOLIO_TRY(options.mode, pick(attributes, "mode", "nearest", version, kModes));
  if (version < 11) {
    options.coordinates = ResizeCoordinates::kAsymmetric;
    options.rounding = ResizeRounding::kSimple;
    return options;
  }
  FOLIO_TRY(options.coordinates, pick(attributes, "coordinate_transformation_mode", "half_pixel",
                                      version, kCoordinates));
  FOLIO_TRY(options.rounding,
            pick(attributes, "nearest_mode", "round_prefer_floor", version, kRoundings));
  FOLIO_TRY(options.cubic_a, attributes.get_float("cubic_coeff_a", -0.75F));
  FOLIO_TRY(options.extrapolation, attributes.get_float("extrapolation_value", 0.0F));
  FOLIO_TRY(const int64_t exclude, attributes.get_int("exclude_outside", 0));
  options.exclude_outside = exclude != 0;
  if (version < 18) return options;
  FOLIO_TRY(const int64_t antialias, attributes.get_int("antialias", 0));
  options.antialias = antialias != 0;
  FOLIO_TRY(options.policy,
            pick(attributes, "keep_aspect_ratio_policy", "stretch", version, kPolicies));
  if (attributes.has("axes")) {
    FOLIO_TRY(options.axes, attributes.get_ints("axes"));
  }
  return options;
}

Result<ResizeOptions> ResizeOptions::parse_upsample(const Attributes& attributes, int version) {
  ResizeOptions options;
  FOLIO_TRY(options.mode, pick(attributes, "mode", "nearest", std::min(version, 10), kModes));
  options.coordinates = ResizeCoordinates::kAsymmetric;
  options.rounding = ResizeRounding::kSimple;
  if (version < 7) {
    FOLIO_TRY(const float height, attributes.get_float("height_scale"));
    FOLIO_TRY(const float width, attributes.get_float("width_scale"));
    options.scales = {1, 1, height, width};
  } else if (version < 9) {
    FOLIO_TRY(options.scales, attributes.get_floats("scales"));
    if (options.scales.empty()) return invalid_graph("attribute 'scales' is missing or empty");
  }
  return options;
}

Result<int64_t> scaled_dim(int64_t dim, float scale) {
  if (scale > 0 && scale < static_cast<float>(kMaxTable)) {
    int64_t out = 0;
    if (scale == std::floor(scale)) {
      if (checked_mul(dim, static_cast<int64_t>(scale), &out)) return out;
    } else {
      int exponent = 0;
      const float mantissa = std::frexp(scale, &exponent);
      // scale = 2^(exponent - 1)
      if (mantissa == 0.5F) return exponent < -61 ? 0 : dim >> (1 - exponent);
      const float size = std::floor(static_cast<float>(dim) * scale);
      if (size < 9e18F) return static_cast<int64_t>(size);
    }
  }
  return invalid_argument("a dim of ", dim, " cannot be scaled by ", scale);
}

Result<std::vector<ResizeAxis>> resize_axes(const ResizeOptions& options, Span<const int64_t> dims,
                                            const std::vector<float>& scales,
                                            const std::vector<int64_t>& sizes,
                                            const std::vector<float>& roi) {
  std::vector<ResizeAxis> all;
  for (const int64_t dim : dims) {
    ResizeAxis axis;
    axis.in = axis.out = dim;
    all.push_back(axis);
  }
  std::vector<size_t> axes;
  if (options.axes) {
    for (const int64_t given : *options.axes) {
      FOLIO_TRY(const int axis, normalize_axis(given, static_cast<int>(dims.size())));
      if (std::find(axes.begin(), axes.end(), static_cast<size_t>(axis)) != axes.end()) {
        return invalid_argument("axis ", given, " is given twice");
      }
      axes.push_back(static_cast<size_t>(axis));
    }
  } else {
    for (size_t i = 0; i < dims.size(); ++i) axes.push_back(i);
  }
  if (scales.empty() == sizes.empty() && !axes.empty()) {
    return invalid_argument("one of scales and sizes must be given, found ", scales.size(), " and ",
                            sizes.size(), " entries");
  }
  const bool crop = options.coordinates == ResizeCoordinates::kTfCropAndResize;
  const size_t given = scales.empty() ? sizes.size() : scales.size();
  if (given != axes.size() || (crop && roi.size() != 2 * axes.size())) {
    return invalid_argument(given, " scales or sizes and ", roi.size(), " entries of roi for ",
                            axes.size(), " axes");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = all[axes[i]];
    if (crop) {
      axis.roi_begin = roi[i];
      axis.roi_end = roi[i + axes.size()];
    }
    if (scales.empty()) {
      FOLIO_RETURN_IF_ERROR(size_axis(sizes[i], &axis));
    } else {
      FOLIO_RETURN_IF_ERROR(scale_axis(options, scales[i], &axis));
    }
  }
  if (scales.empty() && options.policy != ResizePolicy::kStretch) {
    FOLIO_RETURN_IF_ERROR(keep_ratio(options, axes, &all));
  }
  return all;
}

Result<std::vector<int64_t>> nearest_places(const ResizeOptions& options, const ResizeAxis& axis) {
  FOLIO_RETURN_IF_ERROR(check_table(axis, 1));
  const Coordinate coordinate(options, axis);
  std::vector<int64_t> places(static_cast<size_t>(axis.out));
  const bool identity = axis.is_identity(options);
  for (int64_t i = 0; i < axis.out; ++i) {
    const double x = coordinate.at(i);
    int64_t place = i;
    if (coordinate.outside(x)) {
      place = -1;
    } else if (!identity) {
      place = clamp_place(round_place(options.rounding, x, axis.scale < 1), axis.in);
    }
    places[static_cast<size_t>(i)] = place;
  }
  return places;
}

Result<AxisTaps> axis_taps(const ResizeOptions& options, const ResizeAxis& axis) {
  // The window as a multiple of input elements on each side; wider where antialiasing shrinks.
  const double filter = options.antialias ? std::min(1.0, static_cast<double>(axis.scale)) : 1.0;
  const double reach = (options.mode == ResizeMode::kLinear ? 1.0 : 2.0) / filter;
  if (!(reach < static_cast<double>(kMaxTable))) {
    return invalid_argument("a dim of ", axis.in, " cannot be scaled by ", axis.scale);
  }
  AxisTaps out;
  out.taps = 2 * static_cast<int64_t>(std::ceil(reach));
  FOLIO_RETURN_IF_ERROR(check_table(axis, out.taps));
  const Coordinate coordinate(options, axis);
  out.index.resize(static_cast<size_t>(axis.out * out.taps));
  out.weights.resize(out.index.size());
  if (options.coordinates == ResizeCoordinates::kTfCropAndResize) {
    out.outside.resize(static_cast<size_t>(axis.out));
  }
  for (int64_t i = 0; i < axis.out; ++i) {
    double x = coordinate.at(i);
    if (coordinate.outside(x)) {
      out.outside[static_cast<size_t>(i)] = 1;
      x = 0;
    }
    fill_taps(options, axis, filter, x, out.taps, &out.index[static_cast<size_t>(i * out.taps)],
              &out.weights[static_cast<size_t>(i * out.taps)]);
  }
  return out;
}

}  // namespace folio
