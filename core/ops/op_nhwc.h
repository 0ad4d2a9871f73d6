// Walking windows over images with channels last: which input rows each output pixel reads.
//
// Flow:    for some output rows, calls with runs of rows and pixels that see the same taps: those
//          whose window lies inside the image are one run, those at its sides one each.
// Owns:    pointers of one run, in scratch of the caller.
#pragma once

#include "core/ops/op_window.h"

namespace folio {

// The domain of operators whose x and y are [N, spatial..., C]; only passes make them.
inline constexpr std::string_view kNhwcDomain = "folio.nhwc";

class NhwcRow {
 public:
  struct Columns {
    int64_t from, to;
  };

  // Room for this many taps: two arrays of pointers.
  static size_t scratch_bytes(const Window& w) {
    return 2 * sizeof(const float*) * static_cast<size_t>(w.kernel_count());
  }
  // `weights`: null, or those of each tap, `w_step` floats apart (0: rows of `channels` floats).
  NhwcRow(const Window& w, int64_t channels, const float* weights, uint8_t* scratch,
          int64_t w_step = 0)
      : w_(w),
        channels_(channels),
        x_step_(channels),
        w_step_(w_step > 0 ? w_step : channels),
        weights_(weights),
        x_(reinterpret_cast<const float**>(scratch)),
        taps_(x_ + w.kernel_count()) {}

  // Its pixels are so many floats apart: `channels` are some of theirs.
  void set_x_step(int64_t floats) { x_step_ = floats; }

  // The image is the last `lines` lines of one, line h in place of line h - lines; as many as a
  // line of the output sees, at least.
  void set_ring(int64_t lines) { ring_ = lines; }

  // Lines [begin, end) of the output at `depth`. body(line, column, args, taps): the first pixel;
  // args has lines, pixels, channels, taps, x, w and the steps set, but not y.
  template <typename Body>
  void walk(const float* image, int64_t depth, int64_t begin, int64_t end, Body&& body) const {
    walk_columns(image, depth, begin, end, {0, w_.out[2]}, body);
  }

  // The same of some columns of these lines only.
  template <typename Body>
  void walk_columns(const float* image, int64_t depth, int64_t begin, int64_t end, Columns columns,
                    Body&& body) const {
    WindowTaps taps[kSpatial] = {taps_inside(w_, 0, depth), {}, {}};
    for (int64_t line = begin; line < end;) {
      taps[1] = taps_inside(w_, 1, line);
      const int64_t lines = std::min({end - line, alike(taps[1], 1, line), until_turn(taps[1])});
      for (int64_t column = columns.from; column < columns.to;) {
        taps[2] = taps_inside(w_, 2, column);
        FolioWindowF32 args = point(image, taps);
        args.lines = lines;
        args.pixels = std::min(columns.to - column, alike(taps[2], 2, column));
        body(line, column, args, static_cast<const WindowTaps*>(taps));
        column += args.pixels;
      }
      line += lines;
    }
  }

 private:
  // Outputs along `axis` from `at` on that see the same taps: those whose window lies inside.
  int64_t alike(const WindowTaps& taps, int axis, int64_t at) const {
    if (taps.from != 0 || taps.to != w_.kernel[axis]) return 1;
    const int64_t reach = (w_.kernel[axis] - 1) * w_.dilation[axis];
    const int64_t more = (w_.in[axis] - 1 - taps.first - reach) / w_.stride[axis];
    return std::min(w_.out[axis] - at, more + 1);
  }

  // Lines of the output from one with these taps on before any of them is at the ring's first line.
  int64_t until_turn(const WindowTaps& taps) const {
    int64_t lines = w_.out[1];
    for (int64_t kh = taps.from; ring_ > 0 && kh < taps.to; ++kh) {
      const int64_t at = (taps.first + kh * w_.dilation[1]) % ring_;
      lines = std::min(lines, (ring_ - 1 - at) / w_.stride[1] + 1);
    }
    return lines;
  }

  FolioWindowF32 point(const float* image, const WindowTaps taps[]) const {
    FolioWindowF32 args{};
    for (int64_t kd = taps[0].from; kd < taps[0].to; ++kd) {
      const int64_t d = taps[0].first + kd * w_.dilation[0];
      for (int64_t kh = taps[1].from; kh < taps[1].to; ++kh) {
        int64_t h = taps[1].first + kh * w_.dilation[1];
        if (ring_ > 0) h %= ring_;
        for (int64_t kw = taps[2].from; kw < taps[2].to; ++kw, ++args.taps) {
          const int64_t v = taps[2].first + kw * w_.dilation[2];
          x_[args.taps] = image + ((d * w_.in[1] + h) * w_.in[2] + v) * x_step_;
          const int64_t tap = (kd * w_.kernel[1] + kh) * w_.kernel[2] + kw;
          taps_[args.taps] = weights_ ? weights_ + tap * w_step_ : nullptr;
        }
      }
    }
    args.channels = channels_;
    args.x = x_;
    args.x_line = w_.stride[1] * w_.in[2] * x_step_;
    args.x_step = w_.stride[2] * x_step_;
    args.w = taps_;
    args.y_line = w_.out[2] * channels_;
    args.y_step = channels_;
    return args;
  }

  const Window& w_;
  int64_t channels_;
  int64_t x_step_;
  int64_t w_step_;
  int64_t ring_ = 0;
  const float* weights_;
  const float** x_;
  const float** taps_;
};

// Lines [begin, end) of the output of a batch, slice by slice: body(image, depth, first, last, at),
// `at` being the number of line `first` of that slice.
template <typename Body>
void for_each_slice(const Window& w, int64_t begin, int64_t end, Body&& body) {
  for (int64_t at = begin; at < end;) {
    const int64_t slice = at / w.out[1];
    const int64_t first = at % w.out[1];
    const int64_t last = std::min(w.out[1], first + end - at);
    body(slice / w.out[0], slice % w.out[0], first, last, at);
    at += last - first;
  }
}

}  // namespace folio
