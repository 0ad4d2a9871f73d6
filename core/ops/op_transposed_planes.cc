#include "core/ops/op_transposed_planes.h"

#include <algorithm>

#include "core/ops/op_move.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kBlockFloats = 1 << 13;  // of results that are not in their places yet
constexpr int64_t kGrainWork = 1 << 16;    // multiply-adds of one chunk

// The outputs first, first + stride, ... along an axis, and the taps that they see.
struct Phase {
  int64_t count;  // of these outputs
  int64_t tap;    // the first
  int64_t taps;
  int64_t before;  // taps before the image, for output `first`

  Phase(const Window& w, int axis, int64_t first) {
    const int64_t stride = w.stride[axis];
    const int64_t at = first + w.pad_begin[axis];
    count = (w.out[axis] - first + stride - 1) / stride;
    tap = at % stride;
    taps = tap < w.kernel[axis] ? (w.kernel[axis] - 1 - tap) / stride + 1 : 0;
    before = taps - 1 - at / stride;
  }
};

class Planes {
 public:
  Planes(const ConvSizes& s, const FolioKernels& kernels, uint8_t* scratch)
      : w_(s.window),
        kernels_(kernels),
        filter_(reinterpret_cast<float*>(scratch)),
        made_(filter_ + w_.kernel_count()) {}

  static int64_t lines(const Window& w) {
    return std::clamp<int64_t>(kBlockFloats / w.out[2], 1, w.out[1]);
  }
  static size_t scratch_bytes(const Window& w) {
    return static_cast<size_t>(w.kernel_count() + lines(w) * w.out[2]) * sizeof(float);
  }

  void compute(const float* x, const float* w, float bias, float* y) const {
    for (int64_t first = 0; first < std::min(w_.stride[1], w_.out[1]); ++first) {
      const Phase rows(w_, 1, first);
      for (int64_t line = 0; line < rows.count; line += lines(w_)) {
        const int64_t count = std::min(lines(w_), rows.count - line);
        for (int64_t column = 0; column < std::min(w_.stride[2], w_.out[2]); ++column) {
          const Phase columns(w_, 2, column);
          filter(rows, columns, line, count, x, w, bias);
          float* to = y + (first + line * w_.stride[1]) * w_.out[2] + column;
          for (int64_t i = 0; i < count; ++i, to += w_.stride[1] * w_.out[2]) {
            put_apart(columns.count, made_ + i * columns.count, w_.stride[2], to);
          }
        }
      }
    }
  }

 private:
  // Outputs [line, line + count) of `rows`, all of `columns`, into made_.
  void filter(const Phase& rows, const Phase& columns, int64_t line, int64_t count, const float* x,
              const float* w, float bias) const {
    if (rows.taps == 0 || columns.taps == 0) {
      std::fill_n(made_, count * columns.count, bias);
      return;
    }
    float* to = filter_;
    for (int64_t r = rows.taps; r-- > 0;) {
      const float* row = w + (rows.tap + r * w_.stride[1]) * w_.kernel[2] + columns.tap;
      for (int64_t c = columns.taps; c-- > 0;) *to++ = row[c * w_.stride[2]];
    }
    FolioPlaneF32 args{};
    args.planes = 1;
    args.lines = count;
    args.pixels = columns.count;
    args.x_lines = w_.in[1];
    args.x_pixels = w_.in[2];
    args.rows = rows.taps;
    args.columns = columns.taps;
    args.line_step = args.pixel_step = args.row_step = args.column_step = 1;
    args.top = rows.before - line;
    args.left = columns.before;
    args.x = x;
    args.w = filter_;
    args.y = made_;
    args.bias = bias;
    kernels_.filter_plane_f32(&args);
  }

  const Window& w_;
  const FolioKernels& kernels_;
  float* filter_;
  float* made_;
};

}  // namespace

bool fits_transposed_planes(const ConvSizes& s) {
  const Window& w = s.window;
  const bool is_flat = w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.stride[0] == 1;
  constexpr int64_t kFewestPixels = 4;  // of a line: there is a call for each place between strides
  return s.c_in == 1 && is_flat && w.dilation[1] == 1 && w.dilation[2] == 1 && w.in[1] > 0 &&
         w.in[2] >= kFewestPixels;
}

Status run_transposed_planes(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                             const float* bias, float* y) {
  const Window& window = s.window;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, Planes::scratch_bytes(window), &scratch));
  const int64_t work = std::max<int64_t>(1, window.in_count() * window.kernel_count());
  const int64_t grain = std::max<int64_t>(1, kGrainWork / work);
  const int64_t channels = s.group * s.c_out;
  run.parallel().for_range(s.batch * channels, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    const Planes planes(s, run.kernels(), block.data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % channels;
      planes.compute(x + i / s.c_out * window.in_count(), w + channel * window.kernel_count(),
                     bias ? bias[channel] : 0.0F, y + i * window.out_count());
    }
  });
  return Status::ok();
}

}  // namespace folio
