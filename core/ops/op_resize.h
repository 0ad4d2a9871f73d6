// What Resize and Upsample compute with: where along each axis an output element comes from.
//
// Flow:    resize_axes() turns scales or sizes into one ResizeAxis per axis; nearest_places() or
//          axis_taps() give its table; resize.cc moves or sums elements by these tables.
// Owns:    plain values.
// Threads: value types.
// Errors:  kInvalidArgument for scales and sizes that no output can have.
//
// A place exactly between two elements decides what nearest gives. Of scales, coordinates are
// computed in float and in the order of the specification's formulas; of sizes, from the lengths
// themselves, which no scale in float can stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/attributes.h"

namespace folio {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class ResizeCoordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,
  kTfCropAndResize
};
// kSimple is what Upsample and Resize-10 do: floor, or ceil where an axis shrinks.
enum class ResizeRounding : uint8_t { kPreferFloor, kPreferCeil, kFloor, kCeil, kSimple };
enum class ResizePolicy : uint8_t { kStretch, kNotLarger, kNotSmaller };

struct ResizeOptions {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kPreferFloor;
  ResizePolicy policy = ResizePolicy::kStretch;
  float cubic_a = -0.75F;
  float extrapolation = 0;
  bool exclude_outside = false;
  bool antialias = false;
  std::optional<std::vector<int64_t>> axes;
  std::vector<float> scales;  // of an Upsample before opset 9

  static Result<ResizeOptions> parse_resize(const Attributes& attributes, int version);
  static Result<ResizeOptions> parse_upsample(const Attributes& attributes, int version);
};

struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  float scale = 1;
  bool is_sized = false;  // `out` is the size asked for: scale is out / in, rounded
  float roi_begin = 0;
  float roi_end = 1;

  bool crops(const ResizeOptions& options) const {
    return options.coordinates == ResizeCoordinates::kTfCropAndResize &&
           (roi_begin != 0 || roi_end != 1);
  }
  // The output is the input along this axis, whatever the mode.
  bool is_identity(const ResizeOptions& options) const {
    return in == out && scale == 1 && !crops(options);
  }
};

// floor(dim * scale), exact where the scale is a whole number or the reciprocal of a power of two.
// kInvalidArgument when the scale is not a positive number or the result does not fit.
Result<int64_t> scaled_dim(int64_t dim, float scale);

// `scales`, `sizes` and `roi` are empty when not given; they have an entry (roi: two) for each axis
// in options.axes, or for each of all.
Result<std::vector<ResizeAxis>> resize_axes(const ResizeOptions& options, Span<const int64_t> dims,
                                            const std::vector<float>& scales,
                                            const std::vector<int64_t>& sizes,
                                            const std::vector<float>& roi);

// The input element that each output element of an axis shows; -1: the extrapolation value.
Result<std::vector<int64_t>> nearest_places(const ResizeOptions& options, const ResizeAxis& axis);

// Output element i is the sum over t of weights[i * taps + t] * input[index[i * taps + t]].
struct AxisTaps {
  int64_t taps = 0;
  std::vector<int64_t> index;
  std::vector<double> weights;
  std::vector<uint8_t> outside;  // empty, or 1 where the output is the extrapolation value
};
Result<AxisTaps> axis_taps(const ResizeOptions& options, const ResizeAxis& axis);

}  // namespace folio
