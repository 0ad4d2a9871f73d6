#include "core/ops/op_resize_lines.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_move.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kMostTaps = 16;
constexpr int64_t kFewestFloats = 5;       // of a pixel: fewer are summed otherwise
constexpr int64_t kHeldFloats = 24 << 10;  // of lines that a thread has
constexpr int64_t kTaskFloats = 32 << 10;  // of the result
constexpr int64_t kFewestLines = 8;  // of x that a task reads: the first are made for it alone

// Whether the terms of each sum have places of their own among as many.
bool are_neighbours(const AxisTaps& table) {
  for (size_t i = 0; i < table.index.size(); i += static_cast<size_t>(table.taps)) {
    const auto begin = table.index.begin() + static_cast<int64_t>(i);
    const auto [least, most] = std::minmax_element(begin, begin + table.taps);
    if (*most - *least >= table.taps) return false;
  }
  return true;
}

class Lines {
 public:
  Lines(const ResizedLines& s, const FolioKernels& kernels, const float* x, float* y,
        int64_t y_step)
      : s_(s), kernels_(kernels), x_(x), y_(y), y_step_(y_step) {
    for (int axis = 0; axis < 2; ++axis) {
      weights_[axis].assign(s.taps[axis]->weights.begin(), s.taps[axis]->weights.end());
    }
    const int64_t most = kHeldFloats / (s.taps[0]->taps + 1) / s.inner;
    columns_ = even_part(s.out[1], std::max<int64_t>(most, 1));
    const int64_t lines = kTaskFloats / (columns_ * s.inner);
    lines_ = even_part(s.out[0], std::max(lines, kFewestLines * s.out[0] / s.in[0]));
  }

  int64_t tasks() const { return s_.outer * parts(0) * parts(1); }
  // Of a line's part: those that are held, and one that is moved to an image then.
  size_t scratch_bytes() const {
    const int64_t lines = s_.taps[0]->taps + (y_step_ != s_.inner ? 1 : 0);
    return static_cast<size_t>(lines * columns_ * s_.inner) * sizeof(float);
  }

  void compute(int64_t task, float* scratch) const {
    const int64_t column = task % parts(1) * columns_;
    const int64_t columns = std::min(columns_, s_.out[1] - column);
    const int64_t line = task / parts(1) % parts(0) * lines_;
    const int64_t end = std::min(line + lines_, s_.out[0]);
    const int64_t outer = task / parts(1) / parts(0);
    const int64_t taps = s_.taps[0]->taps;
    const int64_t floats = columns * s_.inner;
    const float* const image = x_ + outer * s_.in[0] * s_.in[1] * s_.inner;
    int64_t held[kMostTaps];
    std::fill_n(held, taps, -1);
    for (int64_t i = line; i < end; ++i) {
      int64_t offsets[kMostTaps];
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t from = s_.taps[0]->index[static_cast<size_t>(i * taps + t)];
        const int64_t slot = from % taps;
        offsets[t] = slot * floats;
        if (held[slot] == from) continue;
        held[slot] = from;
        make_line(image + from * s_.in[1] * s_.inner, column, columns, scratch + offsets[t]);
      }
      const bool is_apart = y_step_ != s_.inner;
      float* const y = y_ + ((outer * s_.out[0] + i) * s_.out[1] + column) * y_step_;
      float* const to = is_apart ? scratch + taps * floats : y;
      kernels_.shifted_sum_f32(floats, taps, &weights_[0][static_cast<size_t>(i * taps)], offsets,
                               scratch, 0.0F, to);
      if (is_apart) move_runs(y, y_step_, to, s_.inner, s_.inner, columns);
    }
  }

 private:
  int64_t parts(int axis) const {
    const int64_t each = axis == 0 ? lines_ : columns_;
    return (s_.out[axis] + each - 1) / each;
  }

  void make_line(const float* x, int64_t column, int64_t columns, float* to) const {
    const int64_t taps = s_.taps[1]->taps;
    for (int64_t j = column; j < column + columns; ++j, to += s_.inner) {
      int64_t offsets[kMostTaps];
      for (int64_t t = 0; t < taps; ++t) {
        offsets[t] = s_.taps[1]->index[static_cast<size_t>(j * taps + t)] * s_.inner;
      }
      kernels_.shifted_sum_f32(s_.inner, taps, &weights_[1][static_cast<size_t>(j * taps)], offsets,
                               x, 0.0F, to);
    }
  }

  const ResizedLines& s_;
  const FolioKernels& kernels_;
  const float* x_;
  float* y_;
  int64_t y_step_;
  std::vector<float> weights_[2];
  int64_t columns_ = 1;  // of a task, as are
  int64_t lines_ = 1;    // these
};

}  // namespace

std::optional<ResizedLines> resized_lines(const std::vector<ResizeAxis>& axes,
                                          const std::vector<AxisTaps>& tables) {
  ResizedLines lines;
  int found = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const AxisTaps& table = tables[i];
    if (table.taps == 0) {
      if (found == 1) return std::nullopt;  // not beside each other
      (found == 0 ? lines.outer : lines.inner) *= axes[i].in;
      continue;
    }
    if (found == 2 || axes[i].out < axes[i].in || table.taps > kMostTaps ||
        !table.outside.empty()) {
      return std::nullopt;
    }
    lines.in[found] = axes[i].in;
    lines.out[found] = axes[i].out;
    lines.taps[found++] = &table;
  }
  const bool fits = found == 2 && lines.inner >= kFewestFloats && are_neighbours(*lines.taps[0]);
  return fits ? std::make_optional(lines) : std::nullopt;
}

Status resize_lines(OpRun& run, const ResizedLines& s, const float* x, float* y, int64_t y_step) {
  const Lines lines(s, run.kernels(), x, y, y_step);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, lines.scratch_bytes(), &scratch));
  run.parallel().for_range(lines.tasks(), 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t task = begin; task < end; ++task) {
      lines.compute(task, reinterpret_cast<float*>(block.data()));
    }
  });
  return Status::ok();
}

void move_pixels(OpRun& run, const Shape& in, const float* x,
                 const std::vector<std::vector<int64_t>>& places, const Shape& out, float* y,
                 int64_t y_step) {
  const int last = out.rank() - 1;
  const int64_t channels = out[last];
  const int64_t pixels = out[last - 1];
  const std::vector<int64_t>& columns = places[static_cast<size_t>(last - 1)];
  const int64_t lines = out.count() / channels / pixels;
  run.parallel().for_range(
      lines, rows_per_task(pixels * channels), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          int64_t from = 0;
          int64_t stride = 1;
          int64_t rest = line;
          for (int axis = last - 2; axis >= 0; --axis) {
            from +=
                places[static_cast<size_t>(axis)][static_cast<size_t>(rest % out[axis])] * stride;
            rest /= out[axis];
            stride *= in[axis];
          }
          const float* const source = x + from * in[last - 1] * channels;
          float* to = y + line * pixels * y_step;
          for (int64_t j = 0; j < pixels; ++j, to += y_step) {
            move_run(to, source + columns[static_cast<size_t>(j)] * channels, channels);
          }
        }
      });
}

}  // namespace folio
