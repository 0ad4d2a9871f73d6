#include "core/ops/op_pool_lines.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/checked_math.h"
#include "core/ops/op_move.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kBlockFloats = 1 << 12;  // of joined rows: they stay in L1, as what they are of
constexpr int64_t kFewTaps = 3;            // two at a time
constexpr int64_t kFewPads = 64;           // beside a small image

// Floats along an axis, from the first window's begin to the last one's end or the image's.
int64_t padded(const Window& w, int axis) {
  const int64_t reach = (w.out[axis] - 1) * w.stride[axis] + span(w, axis);
  return std::max(reach, w.pad_begin[axis] + w.in[axis]);
}

// y[i] = x[i * stride]
void pick(int64_t n, const float* x, int64_t stride, float* y) {
  if (stride == 1) {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  if (stride == 2) return pick_every_second(n, x, y);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
}

// How some rows of the output are cut out of the image.
struct Sizes {
  int64_t pitch;   // of rows with their padding
  int64_t block;   // rows of the output at once
  int64_t height;  // rows of the image and its padding that these see

  explicit Sizes(const Window& w)
      : pitch(padded(w, 2)),
        block(std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, pitch), 1, w.out[1])),
        height((block - 1) * w.stride[1] + span(w, 1)) {}
  size_t float_bytes(const Window& w) const {
    const int64_t floats = (height + 2 * block) * pitch + w.out[2];
    return align_up(static_cast<size_t>(floats) * sizeof(float), sizeof(float*));
  }
  size_t bytes(const Window& w) const {
    return float_bytes(w) +
           static_cast<size_t>(std::max(w.kernel[1], w.kernel[2])) * sizeof(float*);
  }
};

// What an average divides by: the product of a number of each axis.
struct Divisors {
  std::vector<float> of[kSpatial];
  bool is_even;  // along a row

  Divisors(const PoolAttrs& attrs, const Window& w) {
    for (int axis = 0; axis < kSpatial; ++axis) {
      for (int64_t at = 0; at < w.out[axis]; ++at) {
        const int64_t count = pool_divisor(attrs, w, axis, taps_inside(w, axis, at));
        of[axis].push_back(static_cast<float>(std::max<int64_t>(1, count)));
      }
    }
    is_even = std::count(of[2].begin(), of[2].end(), of[2][0]) == w.out[2];
  }
};

class Rows {
 public:
  // divisors: of averages; null: maxima. memory: sizes.bytes().
  Rows(const FolioKernels& kernels, const Window& w, const Sizes& sizes, const Divisors* divisors,
       uint8_t* memory)
      : kernels_(kernels),
        w_(w),
        divisors_(divisors),
        pitch_(sizes.pitch),
        joined_(reinterpret_cast<float*>(memory)),
        places_(joined_ + sizes.block * pitch_),
        image_(places_ + sizes.block * pitch_),
        by_(image_ + sizes.height * pitch_),
        taps_(reinterpret_cast<const float**>(memory + sizes.float_bytes(w))),
        start_(divisors ? 0.0F : -std::numeric_limits<float>::infinity()),
        join_many_(divisors ? kernels.sum_window_f32 : kernels.max_window_f32),
        join_two_(kernels.binary_f32[divisors ? kFolioAdd : kFolioMax]) {
    if (pitch_ == w.in[2] && padded(w, 1) == w.in[1]) return;
    std::fill_n(image_, sizes.height * pitch_, start_);  // what is beside the image stays so
  }

  // Rows [first, last) of the output at depth d, at most a block. x and y: their planes.
  void run(const float* x, int64_t d, int64_t first, int64_t last, float* y) const {
    const int64_t count = last - first;
    join_columns(join_rows(x, d, first, count), count);
    float* to = y + (d * w_.out[1] + first) * w_.out[2];
    for (int64_t i = 0; i < count; ++i) {
      pick(w_.out[2], places_ + i * pitch_, w_.stride[2], to + i * w_.out[2]);
    }
    if (divisors_) divide(d, first, count, to);
  }

 private:
  const float* join_rows(const float* x, int64_t d, int64_t first, int64_t count) const {
    const WindowTaps depths = taps_inside(w_, 0, d);
    if (depths.from == depths.to) std::fill_n(joined_, count * pitch_, start_);
    for (int64_t kd = depths.from; kd < depths.to; ++kd) {
      const float* slice = x + (depths.first + kd * w_.dilation[0]) * w_.in[1] * w_.in[2];
      const float* rows = padded_rows(slice, first, count);
      const bool is_alone = depths.to - depths.from == 1 && w_.kernel[1] == 1;
      if (is_alone && (w_.stride[1] == 1 || count == 1)) return rows;
      float* const to = kd == depths.from ? joined_ : places_;
      const int64_t step = w_.dilation[1] * pitch_;
      if (w_.stride[1] == 1) {
        join(w_.kernel[1], step, rows, count * pitch_, 1, 0, to);
      } else {
        join(w_.kernel[1], step, rows, pitch_, count, w_.stride[1] * pitch_, to);
      }
      if (to != joined_) join_two_(count * pitch_, joined_, 1, places_, 1, joined_);
    }
    return joined_;
  }

  // What `count` rows of the output from `first` on see of a slice of the image, pitch_ floats a
  // row: where it stands, if no window hangs over a side.
  const float* padded_rows(const float* slice, int64_t first, int64_t count) const {
    const int64_t n = w_.in[2];
    const int64_t begin = first * w_.stride[1] - w_.pad_begin[1];
    const int64_t end = begin + (count - 1) * w_.stride[1] + span(w_, 1);
    if (pitch_ == n && begin >= 0 && end <= w_.in[1]) return slice + begin * n;
    float* to = image_;
    for (int64_t h = begin; h < end; ++h, to += pitch_) {
      if (h < 0 || h >= w_.in[1]) {
        std::fill_n(to, pitch_, start_);
        continue;
      }
      std::memcpy(to + w_.pad_begin[2], slice + h * n, static_cast<size_t>(n) * sizeof(float));
    }
    return image_;
  }

  // y[i * pitch_ + j] = the maximum or the sum of x[i * x_line + t * step + j], t < taps, j < n.
  void join(int64_t taps, int64_t step, const float* x, int64_t n, int64_t lines, int64_t x_line,
            float* y) const {
    if (taps <= kFewTaps) return join_few(taps, step, x, n, lines, x_line, y);
    for (int64_t t = 0; t < taps; ++t) taps_[t] = x + t * step;
    FolioWindowF32 args{};
    args.lines = lines;
    args.pixels = 1;
    args.channels = n;
    args.taps = taps;
    args.x = taps_;
    args.x_line = x_line;
    args.y = y;
    args.y_line = pitch_;
    args.scale = 1.0F;
    join_many_(&args);
  }

  void join_few(int64_t taps, int64_t step, const float* x, int64_t n, int64_t lines,
                int64_t x_line, float* y) const {
    for (int64_t l = 0; l < lines; ++l, x += x_line, y += pitch_) {
      if (taps == 1) std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
      if (taps > 1) join_two_(n, x, 1, x + step, 1, y);
    }
    if (taps <= 2) return;
    x -= lines * x_line;
    y -= lines * pitch_;
    for (int64_t l = 0; l < lines; ++l, x += x_line, y += pitch_) {
      join_two_(n, y, 1, x + 2 * step, 1, y);
    }
  }

  // As if windows stepped by one, so that a tap is a shift, and all rows were one line: what is
  // between two rows' windows is not picked.
  void join_columns(const float* joined, int64_t count) const {
    const int64_t n = (count - 1) * pitch_ + (w_.out[2] - 1) * w_.stride[2] + 1;
    join(w_.kernel[2], w_.dilation[2], joined, n, 1, 0, places_);
  }

  void divide(int64_t d, int64_t first, int64_t count, float* y) const {
    const auto by = [&](int64_t h) {
      return divisors_->of[0][static_cast<size_t>(d)] * divisors_->of[1][static_cast<size_t>(h)];
    };
    for (int64_t h = first; h < first + count;) {
      int64_t end = h + 1;
      while (end < first + count && by(end) == by(h)) ++end;
      divide_rows(end - h, by(h), y + (h - first) * w_.out[2]);
      h = end;
    }
  }

  // A power of two has an exact inverse, and products are faster.
  void divide_rows(int64_t count, float by, float* y) const {
    const int64_t n = w_.out[2];
    const float* const columns = divisors_->of[2].data();
    if (!divisors_->is_even) {
      kernels_.binary_f32[kFolioMul](n, columns, 1, &by, 0, by_);
      for (int64_t i = 0; i < count; ++i) {
        kernels_.binary_f32[kFolioDiv](n, y + i * n, 1, by_, 1, y + i * n);
      }
      return;
    }
    by *= columns[0];
    int exponent = 0;
    const bool is_power = std::frexp(by, &exponent) == 0.5F;
    const float factor = is_power ? 1 / by : by;
    kernels_.binary_f32[is_power ? kFolioMul : kFolioDiv](count * n, y, 1, &factor, 0, y);
  }

  const FolioKernels& kernels_;
  const Window& w_;
  const Divisors* divisors_;
  int64_t pitch_;
  float* joined_;
  float* places_;
  float* image_;
  float* by_;  // divisors of a row
  const float** taps_;
  float start_;
  void (*join_many_)(const FolioWindowF32* args);
  FolioBinaryF32 join_two_;
};

}  // namespace

bool fits_pool_lines(const Window& w) {
  const auto fits = [&](int axis) { return padded(w, axis) <= 3 * w.in[axis] + kFewPads; };
  return fits(1) && fits(2);
}

Status pool_lines(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes,
                  const float* x, float* y) {
  const Sizes sizes(w);
  const int64_t blocks = (w.out[1] + sizes.block - 1) / sizes.block;
  std::optional<Divisors> divisors;
  if (attrs.kind == PoolKind::kAverage) divisors.emplace(attrs, w);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, sizes.bytes(w), &scratch));
  const int64_t steps = w.kernel[0] * w.kernel[1] + w.kernel[2];
  const int64_t work = std::max<int64_t>(sizes.block * w.out[2] * steps, 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 17) / work);
  run.parallel().for_range(planes * w.out[0] * blocks, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block memory(scratch);
    const Rows rows(run.kernels(), w, sizes, divisors ? &*divisors : nullptr, memory.data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / blocks / w.out[0];
      const int64_t first = i % blocks * sizes.block;
      rows.run(x + plane * w.in_count(), i / blocks % w.out[0], first,
               std::min(first + sizes.block, w.out[1]), y + plane * w.out_count());
    }
  });
  return Status::ok();
}

}  // namespace folio
