// Convolution where each output channel reads one input channel, or a few: rows of shifted sums.
//
// Math:    y[p] = bias + sum over channels c of the group and taps t of
//          w[c, t] * x[c, p * stride + t * dilation - pad], per plane.
// Method:  planes are copied with their borders of zeros, one copy per phase of the stride, so that
//          every tap is a shift by a fixed offset and all outputs are one row of the slot
//          shifted_sum_f32; the columns between two output rows are computed and thrown away. One
//          filter over one plane of two dims: the slot filter_plane_f32 reads it as it lies.
// Memory:  the padded planes of a group and an output plane a thread; of the slot's form none.
#pragma once

#include "core/ops/op_activation.h"
#include "core/ops/op_conv.h"

namespace folio {

// Filters and channels of each group are so few that most of a tile of a product would be empty.
inline bool is_small_group(int64_t group, int64_t filters, int64_t channels) {
  return group > 1 && filters <= FOLIO_F32P16_COLUMNS / 2 && channels <= 32;
}

// What FusedConv does to a result: adds z, then applies a function.
struct ConvFinish {
  const float* z = nullptr;  // as y; may be null
  Activation activation;

  // To elements [at, at + count) of y.
  void apply(const FolioKernels& kernels, int64_t at, int64_t count, float* y) const {
    if (z) kernels.binary_f32[kFolioAdd](count, y + at, 1, z + at, 1, y + at);
    activation.apply(kernels, count, y + at);
  }
};

// Filters of up to so many taps are best over planes as they lie.
inline constexpr int64_t kPlaneTaps = 9;

// Along the axes from `first` on there is an image, and taps whose positions are far from wrapping.
bool has_near_taps(const Window& w, int first);

// Planes of two dims, or one, every pixel or every second one of a line: for filter_plane_f32.
bool fits_filter_plane(const Window& w);

// What the filters over an image of such planes share: all but lines, top, x, w, bias and y.
FolioPlaneF32 plane_args(const ConvSizes& s);

// The same, each plane under filters of its own: for run_plane_filters().
inline bool fits_plane_filters(const ConvSizes& s) {
  return s.c_in == 1 && fits_filter_plane(s.window);
}

// Of shapes that fit; `bias` may be null.
Status run_plane_filters(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                         const float* bias, const ConvFinish& finish, float* y);

// False where borders or dilation would make the copy much larger than image and output, and where
// the copies of several channels would leave the cache.
bool fits_depthwise(const ConvSizes& s);

// `bias` may be null. Of shapes that fit.
Status run_depthwise(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                     const float* bias, float* y);

}  // namespace folio
