// Walking windows over images with channels last: which input rows each output pixel reads.
//
// Flow:    for one output row, calls with runs of pixels that see the same taps: those whose window
//          lies inside the image from side to side are one run, those at its sides one each.
// Owns:    pointers of one run, in scratch of the caller.
#pragma once

#include "core/ops/op_window.h"

namespace folio {

// The domain of operators whose x and y are [N, spatial..., C]; only passes make them.
inline constexpr std::string_view kNhwcDomain = "folio.nhwc";

class NhwcRow {
 public:
  // Room for this many taps: two arrays of pointers.
  static size_t scratch_bytes(const Window& w) {
    return 2 * sizeof(const float*) * static_cast<size_t>(w.kernel_count());
  }
  // `weights` (rows of `channels` floats, one for each tap) may be null.
  NhwcRow(const Window& w, int64_t channels, const float* weights, uint8_t* scratch)
      : w_(w),
        channels_(channels),
        weights_(weights),
        x_(reinterpret_cast<const float**>(scratch)),
        taps_(x_ + w.kernel_count()) {}

  // body(column, pixels, args, taps): args has pixels, channels, taps, x, x_step and w set.
  template <typename Body>
  void walk(const float* image, int64_t depth, int64_t line, Body&& body) const {
    WindowTaps taps[kSpatial] = {taps_inside(w_, 0, depth), taps_inside(w_, 1, line), {}};
    int64_t column = 0;
    while (column < w_.out[2]) {
      taps[2] = taps_inside(w_, 2, column);
      const int64_t n = taps[2].from == 0 && taps[2].to == w_.kernel[2] ? inner_pixels(column) : 1;
      FolioWindowF32 args = point(image, taps);
      args.pixels = n;
      body(column, args, static_cast<const WindowTaps*>(taps));
      column += n;
    }
  }

 private:
  // Pixels from `column` on whose windows end inside the image.
  int64_t inner_pixels(int64_t column) const {
    const int64_t first = column * w_.stride[2] - w_.pad_begin[2];
    const int64_t reach = (w_.kernel[2] - 1) * w_.dilation[2];
    const int64_t more = (w_.in[2] - 1 - first - reach) / w_.stride[2];
    return std::min(w_.out[2] - column, more + 1);
  }

  FolioWindowF32 point(const float* image, const WindowTaps taps[]) const {
    FolioWindowF32 args{};
    for (int64_t kd = taps[0].from; kd < taps[0].to; ++kd) {
      const int64_t d = taps[0].first + kd * w_.dilation[0];
      for (int64_t kh = taps[1].from; kh < taps[1].to; ++kh) {
        const int64_t h = taps[1].first + kh * w_.dilation[1];
        for (int64_t kw = taps[2].from; kw < taps[2].to; ++kw, ++args.taps) {
          const int64_t v = taps[2].first + kw * w_.dilation[2];
          x_[args.taps] = image + ((d * w_.in[1] + h) * w_.in[2] + v) * channels_;
          const int64_t tap = (kd * w_.kernel[1] + kh) * w_.kernel[2] + kw;
          taps_[args.taps] = weights_ ? weights_ + tap * channels_ : nullptr;
        }
      }
    }
    args.channels = channels_;
    args.x = x_;
    args.x_step = w_.stride[2] * channels_;
    args.w = taps_;
    args.y_step = channels_;
    return args;
  }

  const Window& w_;
  int64_t channels_;
  const float* weights_;
  const float** x_;
  const float** taps_;
};

}  // namespace folio
