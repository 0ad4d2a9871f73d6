// The sliding window of Conv, ConvTranspose and pooling: attributes, output dims, padding.
//
// Source: ONNX operator spec, Conv and MaxPool: auto_pad, pads, strides, dilations, ceil_mode.
// Shapes: spatial dims are handled as exactly three, [d, h, w], leading ones filled with 1.
// Errors: kInvalidGraph for attributes of wrong length or value; kInvalidArgument when an input
//         does not fit the window.
#pragma once

#include <algorithm>

#include "core/ops/op.h"

namespace folio {

inline constexpr int kSpatial = 3;

enum class AutoPad : uint8_t { kNotSet, kSameUpper, kSameLower, kValid };

// A number for each spatial axis, or for each end of one. A load makes many: no allocation.
class AxisNumbers {
 public:
  static constexpr size_t kCapacity = 2 * kSpatial;

  AxisNumbers() = default;
  explicit AxisNumbers(Span<const int64_t> numbers) : size_(numbers.size()) {  // <= kCapacity
    std::copy(numbers.begin(), numbers.end(), numbers_);
  }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  const int64_t* begin() const { return numbers_; }
  const int64_t* end() const { return numbers_ + size_; }
  int64_t operator[](size_t i) const { return numbers_[i]; }

 private:
  size_t size_ = 0;
  int64_t numbers_[kCapacity] = {};
};

// Attributes as given; lists may be empty (then defaults hold for the rank at run).
inline bool all_are(const AxisNumbers& numbers, int64_t number) {
  return std::all_of(numbers.begin(), numbers.end(), [=](int64_t n) { return n == number; });
}

struct WindowAttrs {
  AxisNumbers kernel;
  AxisNumbers strides;
  AxisNumbers dilations;
  AxisNumbers pads;  // all begins, then all ends
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil_mode = false;
};

// What an attribute says of an axis; it may be absent.
inline int64_t at_or(Span<const int64_t> values, size_t axis, int64_t absent) {
  return values.empty() ? absent : values[axis];
}

Result<WindowAttrs> parse_window(const Attributes& attrs);

// One window over one input shape.
struct Window {
  int rank = 0;  // spatial dims of the tensors
  int64_t in[kSpatial] = {1, 1, 1};
  int64_t out[kSpatial] = {1, 1, 1};
  int64_t kernel[kSpatial] = {1, 1, 1};
  int64_t stride[kSpatial] = {1, 1, 1};
  int64_t dilation[kSpatial] = {1, 1, 1};
  int64_t pad_begin[kSpatial] = {0, 0, 0};
  int64_t pad_end[kSpatial] = {0, 0, 0};

  int64_t in_count() const { return in[0] * in[1] * in[2]; }
  int64_t out_count() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_count() const { return kernel[0] * kernel[1] * kernel[2]; }
  // Appends the spatial output dims.
  void append_out(Shape* shape) const;
};

// Elements from a window's first tap to its last along an axis.
inline int64_t span(const Window& w, int axis) {
  return (w.kernel[axis] - 1) * w.dilation[axis] + 1;
}

// Which taps of one output's window along one axis stand inside the image: [from, to), each at
// first + tap * dilation.
struct WindowTaps {
  int64_t first, from, to;
};

inline WindowTaps taps_inside(const Window& w, int axis, int64_t out) {
  WindowTaps r{};
  r.first = out * w.stride[axis] - w.pad_begin[axis];
  const int64_t step = w.dilation[axis];
  const auto steps = [&](int64_t n) { return step == 1 ? n : (n + step - 1) / step; };
  const int64_t before = r.first < 0 ? steps(-r.first) : int64_t{0};
  r.from = std::min(w.kernel[axis], before);  // all of a window may stand in the padding
  const int64_t room = w.in[axis] - r.first;
  const int64_t taps = room <= 0 ? 0 : steps(room);
  r.to = std::max(r.from, std::min(w.kernel[axis], taps));
  return r;
}

// [N, C, spatial...] of [N, spatial..., C] and back; fewer than two dims stay as they are.
Shape channels_first(const Shape& last);
Shape channels_last(const Shape& first);

// `x` is [N, C, spatial...]; `kernel` holds the spatial kernel dims.
Result<Window> make_window(const WindowAttrs& attrs, const Shape& x, Span<const int64_t> kernel);

// Output dim of one axis, symbolically; unknown where a rule needs numbers.
Dim window_out_dim(const WindowAttrs& attrs, DimTable& table, Dim in, int64_t kernel, size_t axis,
                   size_t rank);

}  // namespace folio
