#include "core/ops/op_pool_lines.h"

#include <limits>

#include "core/base/checked_math.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

// The lengths of what stands in scratch.
struct Line {
  int64_t length = 0;  // of a line with its borders
  int64_t places = 0;  // of windows that step by one, from the first of ours to the last
};

bool make_line(const Window& w, Line* line) {
  int64_t reach = 0;
  int64_t steps = 0;
  int64_t seen = 0;
  int64_t held = 0;
  if (!checked_mul(w.kernel[2] - 1, w.dilation[2], &reach) ||
      !checked_mul(w.out[2] - 1, w.stride[2], &steps) || !checked_add(steps, reach, &seen) ||
      !checked_add(seen, int64_t{1}, &seen) || !checked_add(w.pad_begin[2], w.in[2], &held)) {
    return false;
  }
  line->length = std::max(seen, held);
  line->places = steps + 1;
  return w.pad_begin[2] >= 0 && line->length / 4 <= w.in[2] + w.out[2] + 1024;
}

class Lines {
 public:
  Lines(const FolioKernels& kernels, const PoolAttrs& attrs, const Window& w, const Line& line,
        float* memory)
      : attrs_(attrs), w_(w), line_(line), memory_(memory) {
    const bool is_max = attrs.kind == PoolKind::kMax;
    join_ = kernels.reduce_columns_f32[is_max ? kFolioReduceMax : kFolioReduceSum];
    start_ = is_max ? -std::numeric_limits<float>::infinity() : 0.0F;
    std::fill_n(memory, line.length, start_);  // borders stay so
  }

  void plane(const float* x, float* y) const {
    for (int64_t d = 0; d < w_.out[0]; ++d) {
      for (int64_t h = 0; h < w_.out[1]; ++h, y += w_.out[2]) {
        const WindowTaps depths = taps_inside(w_, 0, d);
        const WindowTaps rows = taps_inside(w_, 1, h);
        join_rows(x, depths, rows);
        join_columns(y);
        if (attrs_.kind == PoolKind::kAverage) divide(depths, rows, y);
      }
    }
  }

 private:
  void join_rows(const float* x, const WindowTaps& depths, const WindowTaps& rows) const {
    float* line = memory_ + w_.pad_begin[2];
    const int64_t n = w_.in[2];
    const int64_t count = rows.to - rows.from;
    if (count <= 0 || depths.to <= depths.from) {
      std::fill_n(line, n, start_);
      return;
    }
    const int64_t stride = w_.dilation[1] * n;
    for (int64_t t = depths.from; t < depths.to; ++t) {
      const int64_t depth = depths.first + t * w_.dilation[0];
      const float* row = x + (depth * w_.in[1] + rows.first + rows.from * w_.dilation[1]) * n;
      if (t > depths.from) {
        join_(count, n, row, stride, line);
      } else {
        std::copy_n(row, n, line);
        join_(count - 1, n, row + stride, stride, line);
      }
    }
  }

  void join_columns(float* y) const {
    const bool is_dense = w_.stride[2] == 1;
    float* places = is_dense ? y : memory_ + line_.length;
    std::copy_n(memory_, line_.places, places);
    join_(w_.kernel[2] - 1, line_.places, memory_ + w_.dilation[2], w_.dilation[2], places);
    if (is_dense) return;
    for (int64_t i = 0; i < w_.out[2]; ++i) y[i] = places[i * w_.stride[2]];
  }

  void divide(const WindowTaps& depths, const WindowTaps& rows, float* y) const {
    for (int64_t v = 0; v < w_.out[2]; ++v) {
      const WindowTaps taps[kSpatial] = {depths, rows, taps_inside(w_, 2, v)};
      y[v] /= static_cast<float>(pool_divisor(attrs_, w_, taps));
    }
  }

  const PoolAttrs& attrs_;
  const Window& w_;
  const Line& line_;
  float* memory_;
  FolioReduceF32 join_;
  float start_;
};

}  // namespace

bool fits_pool_lines(const PoolAttrs& attrs, const Window& w) {
  Line line;
  return (attrs.kind == PoolKind::kMax || attrs.kind == PoolKind::kAverage) && make_line(w, &line);
}

Status pool_lines(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes,
                  const float* x, float* y) {
  Line line;
  make_line(w, &line);
  ThreadScratch scratch;
  const auto floats = static_cast<size_t>(line.length + line.places);
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, floats * sizeof(float), &scratch));
  const int64_t work = std::max<int64_t>(w.out_count() * w.kernel_count(), 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 17) / work);
  run.parallel().for_range(planes, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    const Lines lines(run.kernels(), attrs, w, line, reinterpret_cast<float*>(block.data()));
    for (int64_t p = begin; p < end; ++p) {
      lines.plane(x + p * w.in_count(), y + p * w.out_count());
    }
  });
  return Status::ok();
}

}  // namespace folio
