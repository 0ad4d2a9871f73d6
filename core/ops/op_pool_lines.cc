#include "core/ops/op_pool_lines.h"

#include <cmath>
#include <limits>

#include "core/ops/op_move.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kBlockFloats = 1 << 12;  // of joined rows: they stay in L1, as what they are of

constexpr int64_t kSome = 8;  // rows of a side that are joined side by side

struct Range {
  int64_t begin, end;
};

// The outputs along one axis whose windows stand inside the image.
Range whole_windows(const Window& w, int axis) {
  const int64_t begin = (w.pad_begin[axis] + w.stride[axis] - 1) / w.stride[axis];
  const int64_t room = w.in[axis] - 1 - (w.kernel[axis] - 1) * w.dilation[axis] + w.pad_begin[axis];
  const int64_t end = room < 0 ? 0 : room / w.stride[axis] + 1;
  return {std::min(begin, w.out[axis]), std::clamp(end, std::min(begin, w.out[axis]), w.out[axis])};
}

// y[i] = x[i * stride]
void pick(int64_t n, const float* x, int64_t stride, float* y) {
  if (stride == 2) return pick_every_second(n, x, y);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
}

// y[r] = the sum, or the largest, of x[r * row + t * step], t < taps, r < kRows: side by side, as
// each is a chain of few steps. Whether a row has a NaN is asked beside its maximum.
template <int kRows>
void join_some(int64_t taps, const float* x, int64_t row, int64_t step, bool is_max, float* y) {
  float joined[kRows];
  float doubt[kRows] = {};  // NaN if any is
  for (int r = 0; r < kRows; ++r) joined[r] = is_max ? -std::numeric_limits<float>::infinity() : 0;
  for (int64_t t = 0; t < taps && !is_max; ++t) {
    for (int r = 0; r < kRows; ++r) joined[r] += x[r * row + t * step];
  }
  for (int64_t t = 0; t < taps && is_max; ++t) {
    for (int r = 0; r < kRows; ++r) {
      const float next = x[r * row + t * step];
      joined[r] = next > joined[r] ? next : joined[r];
      doubt[r] = next == next ? doubt[r] : next;
    }
  }
  for (int r = 0; r < kRows; ++r) y[r] = doubt[r] == doubt[r] ? joined[r] : doubt[r];
}

// Places from which numbers are joined: at x + i * outer_step + j * inner_step.
struct Taps {
  const float* x;
  int64_t outer, outer_step;
  int64_t inner, inner_step;
};

class Rows {
 public:
  // memory: 2 * block * w.in[2] floats, if no more than `block` rows are asked for at once.
  Rows(const FolioKernels& kernels, const PoolAttrs& attrs, const Window& w, int64_t block,
       float* memory)
      : kernels_(kernels),
        attrs_(attrs),
        w_(w),
        whole_rows_(whole_windows(w, 1)),
        whole_columns_(whole_windows(w, 2)),
        joined_(memory),
        places_(memory + block * w.in[2]),
        is_max_(attrs.kind == PoolKind::kMax),
        start_(is_max_ ? -std::numeric_limits<float>::infinity() : 0.0F),
        join_two_(kernels.binary_f32[is_max_ ? kFolioMax : kFolioAdd]),
        join_more_(kernels.reduce_columns_f32[is_max_ ? kFolioReduceMax : kFolioReduceSum]) {}

  // Rows [first, last) of the output at depth d. x and y: their planes.
  void run(const float* x, int64_t d, int64_t first, int64_t last, float* y) const {
    const WindowTaps depths = taps_inside(w_, 0, d);
    float* to = y + (d * w_.out[1] + first) * w_.out[2];
    for (int64_t h = first; h < last;) {
      const bool is_whole = h >= whole_rows_.begin && h < whole_rows_.end;
      const int64_t end = is_whole ? std::min(last, whole_rows_.end) : h + 1;
      alike(x, depths, taps_inside(w_, 1, h), end - h, to);
      to += (end - h) * w_.out[2];
      h = end;
    }
  }

 private:
  // Rows whose windows see as many rows of the image; `rows` are the first one's.
  void alike(const float* x, const WindowTaps& depths, const WindowTaps& rows, int64_t count,
             float* y) const {
    const float* joined = join_rows(x, depths, rows, count);
    join_columns(joined, depths, rows, count, y);
    for (int64_t v = 0; v < whole_columns_.begin; ++v) join_side(joined, depths, rows, v, count, y);
    for (int64_t v = whole_columns_.end; v < w_.out[2]; ++v) {
      join_side(joined, depths, rows, v, count, y);
    }
  }

  const float* join_rows(const float* x, const WindowTaps& depths, const WindowTaps& rows,
                         int64_t count) const {
    const int64_t n = w_.in[2];
    const int64_t line = w_.stride[1] * n;
    Taps taps{};
    taps.outer = depths.to - depths.from;
    taps.outer_step = w_.dilation[0] * w_.in[1] * n;
    taps.inner = rows.to - rows.from;
    taps.inner_step = w_.dilation[1] * n;
    if (taps.outer <= 0 || taps.inner <= 0) {
      std::fill_n(joined_, count * n, start_);
      return joined_;
    }
    const int64_t depth = depths.first + depths.from * w_.dilation[0];
    taps.x = x + (depth * w_.in[1] + rows.first + rows.from * w_.dilation[1]) * n;
    // Rows that are joined with nothing may stand where they are.
    if (taps.outer * taps.inner == 1 && (line == n || count == 1)) return taps.x;
    join(taps, count, n, line, joined_, n);
    return joined_;
  }

  // Of windows that stand inside the image from side to side. They are joined as if they stepped by
  // one, so that a tap is a shift, and rows are taken as one line where what lies between them is
  // written by join_side() later, or not picked.
  void join_columns(const float* joined, const WindowTaps& depths, const WindowTaps& rows,
                    int64_t count, float* y) const {
    const int64_t columns = whole_columns_.end - whole_columns_.begin;
    if (columns == 0) return;
    const int64_t n = w_.in[2];
    const int64_t pitch = w_.out[2];
    const int64_t stride = w_.stride[2];
    const int64_t from = whole_columns_.begin * stride - w_.pad_begin[2];
    const Taps taps{joined + from, 1, 0, w_.kernel[2], w_.dilation[2]};
    float* to = y + whole_columns_.begin;
    if (stride == 1 && pitch != n) {
      join(taps, count, columns, n, to, pitch);
    } else {
      const int64_t all = (count - 1) * n + (columns - 1) * stride + 1;
      join(taps, 1, all, 0, stride == 1 ? to : places_, 0);
    }
    for (int64_t i = 0; stride != 1 && i < count; ++i) {
      pick(columns, places_ + i * n, stride, to + i * pitch);
    }
    if (is_max_) return;
    divide((count - 1) * pitch + columns, divisor(depths, rows, whole_columns_.begin), to);
  }

  // A power of two has an exact inverse, and products are faster.
  void divide(int64_t n, float by, float* y) const {
    int exponent = 0;
    const bool is_power = std::frexp(by, &exponent) == 0.5F;
    const float factor = is_power ? 1 / by : by;
    kernels_.binary_f32[is_power ? kFolioMul : kFolioDiv](n, y, 1, &factor, 0, y);
  }

  // Column v of the output, whose windows hang over a side of the image.
  void join_side(const float* joined, const WindowTaps& depths, const WindowTaps& rows, int64_t v,
                 int64_t count, float* y) const {
    const WindowTaps taps = taps_inside(w_, 2, v);
    const float by = is_max_ ? 1 : divisor(depths, rows, v);
    const float* from = joined + taps.first + taps.from * w_.dilation[2];
    const int64_t n = w_.in[2];
    float some[kSome];
    for (int64_t i = 0; i < count; i += kSome) {
      const int64_t rest = std::min(kSome, count - i);
      if (rest == kSome) {
        join_some<kSome>(taps.to - taps.from, from + i * n, n, w_.dilation[2], is_max_, some);
      }
      for (int64_t r = 0; r < rest && rest < kSome; ++r) {
        join_some<1>(taps.to - taps.from, from + (i + r) * n, n, w_.dilation[2], is_max_, some + r);
      }
      for (int64_t r = 0; r < rest; ++r) y[(i + r) * w_.out[2] + v] = some[r] / by;
    }
  }

  float divisor(const WindowTaps& depths, const WindowTaps& rows, int64_t v) const {
    const WindowTaps taps[kSpatial] = {depths, rows, taps_inside(w_, 2, v)};
    return static_cast<float>(pool_divisor(attrs_, w_, taps));
  }

  // y[l * y_line + i] = the maximum or the sum of what stands at the taps + l * x_line + i, i < n.
  void join(const Taps& taps, int64_t lines, int64_t n, int64_t x_line, float* y,
            int64_t y_line) const {
    if (x_line == n && y_line == n) {
      n *= lines;
      lines = 1;
    }
    // A step for all lines before the next one: the end of a line is stored under a mask, from
    // where a CPU's loads have to wait for memory.
    const int64_t first = std::min<int64_t>(taps.inner, 2);
    for (int64_t l = 0; l < lines; ++l) {
      const float* x = taps.x + l * x_line;
      if (first == 2) {
        join_two_(n, x, 1, x + taps.inner_step, 1, y + l * y_line);
      } else {
        std::copy_n(x, n, y + l * y_line);
      }
    }
    for (int64_t t = 0; t < taps.outer; ++t) {
      const int64_t begin = t == 0 ? first : 0;
      const float* x = taps.x + t * taps.outer_step + begin * taps.inner_step;
      for (int64_t l = 0; l < lines && begin < taps.inner; ++l) {
        join_more_(taps.inner - begin, n, x + l * x_line, taps.inner_step, y + l * y_line);
      }
    }
  }

  const FolioKernels& kernels_;
  const PoolAttrs& attrs_;
  const Window& w_;
  Range whole_rows_;
  Range whole_columns_;
  float* joined_;
  float* places_;
  bool is_max_;
  float start_;
  FolioBinaryF32 join_two_;
  FolioReduceF32 join_more_;
};

}  // namespace

Status pool_lines(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes,
                  const float* x, float* y) {
  const int64_t block =
      std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, w.in[2]), 1, w.out[1]);
  const int64_t blocks = (w.out[1] + block - 1) / block;
  ThreadScratch scratch;
  const auto floats = static_cast<size_t>(2 * block * w.in[2]);
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, floats * sizeof(float), &scratch));
  const auto taps = [&](int axis) { return std::min(w.kernel[axis], w.in[axis]); };
  const int64_t steps = taps(0) * taps(1) + taps(2);
  const int64_t work = std::max<int64_t>(block * w.out[2] * steps, 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 17) / work);
  run.parallel().for_range(planes * w.out[0] * blocks, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block memory(scratch);
    const Rows rows(run.kernels(), attrs, w, block, reinterpret_cast<float*>(memory.data()));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / blocks / w.out[0];
      const int64_t first = i % blocks * block;
      rows.run(x + plane * w.in_count(), i / blocks % w.out[0], first,
               std::min(first + block, w.out[1]), y + plane * w.out_count());
    }
  });
  return Status::ok();
}

}  // namespace folio
