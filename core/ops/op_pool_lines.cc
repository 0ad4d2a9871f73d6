#include "core/ops/op_pool_lines.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kBlockFloats = 1 << 12;  // of the image under the lines of a call
constexpr int64_t kMostRows = 1 << 12;     // that a call is given
constexpr int64_t kFewPads = 64;           // beside a small image

// Floats along an axis, from the first window's begin to the last one's end or the image's.
int64_t padded(const Window& w, int axis) {
  const int64_t reach = (w.out[axis] - 1) * w.stride[axis] + span(w, axis);
  return std::max(reach, w.pad_begin[axis] + w.in[axis]);
}

// What an average divides by: the product of a number of each axis.
struct Divisors {
  std::vector<float> of[kSpatial];

  Divisors(const PoolAttrs& attrs, const Window& w) {
    for (int axis = 0; axis < kSpatial; ++axis) {
      for (int64_t at = 0; at < w.out[axis]; ++at) {
        const int64_t count = pool_divisor(attrs, w, axis, taps_inside(w, axis, at));
        of[axis].push_back(static_cast<float>(std::max<int64_t>(1, count)));
      }
    }
  }
};

// A call's arguments but for what is of its lines, how many these are, and what memory that takes.
struct Sizes {
  FolioLinesF32 args{};
  int64_t rows;  // under a line, at most

  explicit Sizes(const Window& w)
      : rows(
            std::max<int64_t>(1, std::min(w.kernel[0], w.in[0]) * std::min(w.kernel[1], w.in[1]))) {
    args.pixels = w.out[2];
    args.x_pixels = w.in[2];
    args.taps = w.kernel[2];
    args.pixel_step = w.stride[2];
    args.tap_step = w.dilation[2];
    args.left = w.pad_begin[2];
    args.x_plane = w.in_count();
    args.y_plane = w.out_count();
    const int64_t most = std::min(kBlockFloats / folio_lines_pitch(&args), kMostRows / rows);
    args.lines = std::clamp<int64_t>(most, 1, w.out[1]);
  }
  size_t line_bytes() const { return static_cast<size_t>(args.lines) * sizeof(int64_t); }
  size_t row_bytes() const { return static_cast<size_t>(args.lines * rows) * sizeof(int64_t); }
  size_t bytes() const {
    return 2 * line_bytes() + row_bytes() +
           static_cast<size_t>(folio_lines_floats(&args)) * sizeof(float);
  }
};

class Lines {
 public:
  // divisors: of averages; null: maxima. memory: sizes.bytes().
  Lines(const FolioKernels& kernels, const Window& w, const Sizes& sizes, const Divisors* divisors,
        uint8_t* memory)
      : w_(w),
        divisors_(divisors),
        join_(divisors ? kernels.sum_lines_f32 : kernels.max_lines_f32),
        args_(sizes.args),
        counts_(reinterpret_cast<int64_t*>(memory)),
        by_(reinterpret_cast<float*>(memory + sizes.line_bytes())),
        rows_(reinterpret_cast<int64_t*>(memory + 2 * sizes.line_bytes())) {
    args_.counts = counts_;
    args_.rows = rows_;
    args_.joined = reinterpret_cast<float*>(memory + 2 * sizes.line_bytes() + sizes.row_bytes());
    if (!divisors) return;
    args_.by_lines = by_;
    args_.by_pixels = divisors->of[2].data();
  }

  // Lines [first, last) of the output at depth d, at most sizes.args.lines, of planes that follow
  // each other.
  void run(int64_t d, int64_t first, int64_t last, int64_t planes, const float* x, float* y) {
    const WindowTaps depths = taps_inside(w_, 0, d);
    int64_t* row = rows_;
    for (int64_t h = first; h < last; ++h) {
      int64_t* const begin = row;
      const WindowTaps heights = taps_inside(w_, 1, h);
      for (int64_t kd = depths.from; kd < depths.to; ++kd) {
        const int64_t slice = (depths.first + kd * w_.dilation[0]) * w_.in[1];
        for (int64_t kh = heights.from; kh < heights.to; ++kh) {
          *row++ = (slice + heights.first + kh * w_.dilation[1]) * w_.in[2];
        }
      }
      counts_[h - first] = row - begin;
      if (divisors_) by_[h - first] = divisor(d, h);
    }
    args_.planes = planes;
    args_.lines = last - first;
    args_.x = x;
    args_.y = y + (d * w_.out[1] + first) * w_.out[2];
    join_(&args_);
  }

 private:
  float divisor(int64_t d, int64_t h) const {
    return divisors_->of[0][static_cast<size_t>(d)] * divisors_->of[1][static_cast<size_t>(h)];
  }

  const Window& w_;
  const Divisors* divisors_;
  void (*join_)(const FolioLinesF32* args);
  FolioLinesF32 args_;
  int64_t* counts_;
  float* by_;      // divisors of the lines
  int64_t* rows_;  // where they begin in a plane
};

}  // namespace

bool fits_pool_lines(const Window& w) {
  const auto fits = [&](int axis) { return padded(w, axis) <= 3 * w.in[axis] + kFewPads; };
  return fits(1) && fits(2);
}

Status pool_lines(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes,
                  const float* x, float* y) {
  const Sizes sizes(w);
  const int64_t blocks = (w.out[1] + sizes.args.lines - 1) / sizes.args.lines;
  std::optional<Divisors> divisors;
  if (attrs.kind == PoolKind::kAverage) divisors.emplace(attrs, w);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, sizes.bytes(), &scratch));
  const int64_t work = sizes.args.lines * w.out[2] * (sizes.rows + w.kernel[2]);
  const int64_t grain = std::max<int64_t>(1, (1 << 17) / std::max<int64_t>(work, 1));
  // All planes of a block, then of the next one.
  run.parallel().for_range(w.out[0] * blocks * planes, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block memory(scratch);
    Lines lines(run.kernels(), w, sizes, divisors ? &*divisors : nullptr, memory.data());
    for (int64_t i = begin; i < end;) {
      const int64_t plane = i % planes;
      const int64_t count = std::min(planes - plane, end - i);
      const int64_t block = i / planes;
      const int64_t first = block % blocks * sizes.args.lines;
      lines.run(block / blocks, first, std::min(first + sizes.args.lines, w.out[1]), count,
                x + plane * w.in_count(), y + plane * w.out_count());
      i += count;
    }
  });
  return Status::ok();
}

}  // namespace folio
