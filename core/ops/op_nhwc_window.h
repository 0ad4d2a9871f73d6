// Filters whose sums stand beside their channels, with channels last: over one channel each, or in
// small square groups (is_window_conv()). Without weights: the largest under the window, of groups
// of one channel.
//
// Math:    y[pixel, c] = activation(b[c] + sum over taps and the channels s of c's group of
//          w[tap, s, c] * x[pixel under tap, s] + z[pixel, c]).
// Method:  rows of the slots depthwise_f32 and grouped_f32.
// Owns:    nothing.
// Splits:  lines, by shape and threads, or the columns of few lines, by shape; bit-identical for
//          any number of threads.
#pragma once

#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_conv.h"

namespace folio {

// Lines of the output.
class WindowLines {
 public:
  WindowLines(const ConvSizes& s, const FolioKernels& kernels, const NhwcConvArgs& args);

  int64_t floats() const { return columns_ * y_step_; }  // of a line of y

  // Lines [begin, end) of slice `depth` of the output of `image`; `at` is the first among all.
  void compute(const NhwcRow& row, const float* image, int64_t depth, int64_t begin, int64_t end,
               int64_t at) const {
    compute_columns(row, image, depth, begin, end, {0, columns_}, at);
  }
  // The same to y, of two spatial dims, with nothing added.
  void compute_to(const NhwcRow& row, const float* image, int64_t begin, int64_t end,
                  float* y) const {
    compute_columns(row, image, 0, begin, end, {0, columns_}, y, {});
  }
  // Some columns of one line only.
  void compute_columns(const NhwcRow& row, const float* image, int64_t depth, int64_t line,
                       NhwcRow::Columns columns, int64_t at) const {
    compute_columns(row, image, depth, line, line + 1, columns, at);
  }

 private:
  // Before the activation, and behind it.
  struct Added {
    const float* before = nullptr;
    const float* behind = nullptr;
  };
  void compute_columns(const NhwcRow& row, const float* image, int64_t depth, int64_t begin,
                       int64_t end, NhwcRow::Columns columns, int64_t at) const {
    const int64_t z = at * columns_ * z_step_;
    const Added added = {args_.z ? args_.z + z : nullptr,
                         args_.behind ? args_.behind + z : nullptr};
    compute_columns(row, image, depth, begin, end, columns, args_.y + at * floats(), added);
  }
  // `y` and what is added: of line `begin`.
  void compute_columns(const NhwcRow& row, const float* image, int64_t depth, int64_t begin,
                       int64_t end, NhwcRow::Columns columns, float* y, const Added& added) const;
  // Of pixels side by side.
  void finish(int64_t pixels, float* y, const Added& added) const;

  const FolioKernels& kernels_;
  const NhwcConvArgs& args_;
  int64_t channels_;
  int64_t group_;  // channels of each
  int64_t w_panel_;
  void (*filter_)(const FolioWindowF32* args);
  int64_t columns_;
  int64_t y_step_;
  int64_t z_step_;
  bool finishes_ = false;  // the kernel applies the activation
};

// All of it: as run_nhwc_conv(), which calls it. args.packed is there.
Status run_window_rows(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args);

}  // namespace folio
