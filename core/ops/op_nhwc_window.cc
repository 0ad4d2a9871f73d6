#include "core/ops/op_nhwc_window.h"

#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
// A depthwise chunk: multiply-adds at least, lines at most.
constexpr int64_t kGrainWork = 1 << 15;
constexpr int64_t kMostLines = 16;
constexpr int64_t kManyChunks = 8;        // where lines are few, of their columns
constexpr int64_t kColumnWork = 1 << 18;  // multiply-adds of a line's columns, where lines are few
constexpr int64_t kFewestColumns = 32;
constexpr int64_t kGroupedFloats = 64 * 1024;  // of the image, in small groups

// Neighbouring lines read the same of the image, and the kernel computes some at a time: parts of
// one size, the same number of them for each thread.
int64_t depthwise_grain(const ConvSizes& s, int threads, int64_t floats, int64_t lines) {
  const int64_t work = std::max<int64_t>(1, kGrainWork / (floats * s.window.kernel_count()));
  const int64_t most = kMostLines * threads;
  const int64_t parts = threads * std::max<int64_t>(1, (lines + most - 1) / most);
  return std::max(work, (lines + parts - 1) / parts);
}

// Groups have more weights, each of which is loaded once for the pixels of a chunk: as many lines
// as are in L2 meanwhile.
int64_t grouped_grain(const ConvSizes& s, int threads, int64_t lines) {
  const int64_t line = s.window.stride[1] * s.window.in[2] * s.group * s.c_in;
  const int64_t held = std::max<int64_t>(1, kGroupedFloats / std::max<int64_t>(1, line));
  const int64_t share = (lines + 2 * threads - 1) / (2 * threads);
  return std::clamp<int64_t>(share, 1, held);
}

// Columns a chunk: all of them, unless there are fewer lines than chunks wanted and a line is long
// (1-D). By shape only: what a pixel's neighbours are decides which of the kernel's loops has it.
int64_t column_grain(const ConvSizes& s, int64_t lines) {
  const int64_t work = s.group * s.c_in * s.c_in * s.window.kernel_count();
  const int64_t least = std::max(kFewestColumns, kColumnWork / std::max<int64_t>(1, work));
  const int64_t wanted = (lines * s.window.out[2] + kManyChunks - 1) / kManyChunks;
  return lines < kManyChunks ? std::min(s.window.out[2], std::max(least, wanted)) : s.window.out[2];
}

}  // namespace

WindowLines::WindowLines(const ConvSizes& s, const FolioKernels& kernels, const NhwcConvArgs& args)
    : kernels_(kernels),
      args_(args),
      channels_(s.group * s.c_in),
      group_(s.c_in),
      w_panel_(s.k() * kPanel),
      filter_(!args.weights ? kernels.max_window_f32
              : group_ == 1 ? kernels.depthwise_f32
                            : kernels.grouped_f32),
      columns_(s.window.out[2]),
      y_step_(args.y_pixel(s)),
      z_step_(args.z_pixel(s)) {
  FolioWindowF32 probe{};
  finishes_ = !args.z && !args.behind && args.activation.set_in_kernel(&probe);
}

void WindowLines::compute_columns(const NhwcRow& row, const float* image, int64_t depth,
                                  int64_t begin, int64_t end, NhwcRow::Columns columns, float* y,
                                  const Added& added) const {
  row.walk_columns(image, depth, begin, end, columns,
                   [&](int64_t line, int64_t column, FolioWindowF32& window, const WindowTaps[]) {
                     window.bias = args_.bias;
                     if (finishes_) args_.activation.set_in_kernel(&window);
                     window.y = y + (line - begin) * floats() + column * y_step_;
                     window.y_line = floats();
                     window.y_step = y_step_;
                     window.group = group_;
                     window.w_panel = w_panel_;
                     filter_(&window);
                   });
  if (finishes_) return;
  // All columns, or some of one line: what stands beside each other.
  const int64_t first = columns.from;
  const int64_t count = (end - begin - 1) * columns_ + columns.to - first;
  finish(count, y + first * y_step_,
         {added.before ? added.before + first * z_step_ : nullptr,
          added.behind ? added.behind + first * z_step_ : nullptr});
}

void WindowLines::finish(int64_t pixels, float* y, const Added& added) const {
  const auto add = [&](const float* z) {
    if (z) add_pixels(kernels_, pixels, channels_, z, z_step_, y, y_step_);
  };
  add(added.before);
  args_.activation.apply_rows(kernels_, pixels, channels_, y, y_step_);
  add(added.behind);
}

Status run_window_rows(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args) {
  const Window& w = s.window;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, NhwcRow::scratch_bytes(w), &scratch));
  const WindowLines filter(s, run.kernels(), args);
  const int64_t lines = s.batch * w.out[0] * w.out[1];
  const int64_t channels = s.group * s.c_in;
  const int64_t x_step = args.x_pixel(s);
  const int64_t w_step = s.c_in == 1 ? channels : s.c_in * kPanel;
  const int threads = run.parallel().thread_count();
  const int64_t grain = s.c_in == 1 ? depthwise_grain(s, threads, w.out[2] * channels, lines)
                                    : grouped_grain(s, threads, lines);
  const int64_t columns = column_grain(s, lines);
  const int64_t pieces = (w.out[2] + columns - 1) / columns;
  run.parallel().for_range(
      lines * pieces, pieces == 1 ? grain : 1, [&](int64_t begin, int64_t end) {
        const ThreadScratch::Block block(scratch);
        NhwcRow row(w, channels, args.packed, block.data(), w_step);
        row.set_x_step(x_step);
        const auto image = [&](int64_t i) { return args.x + i * w.in_count() * x_step; };
        if (pieces == 1) {
          for_each_slice(w, begin, end,
                         [&](int64_t i, int64_t depth, int64_t first, int64_t last, int64_t at) {
                           filter.compute(row, image(i), depth, first, last, at);
                         });
          return;
        }
        for (int64_t at = begin; at < end; ++at) {
          const int64_t from = at % pieces * columns;
          const NhwcRow::Columns part{from, std::min(w.out[2], from + columns)};
          for_each_slice(w, at / pieces, at / pieces + 1,
                         [&](int64_t i, int64_t depth, int64_t first, int64_t, int64_t line) {
                           filter.compute_columns(row, image(i), depth, first, part, line);
                         });
        }
      });
  return Status::ok();
}

}  // namespace folio
