// What Conv, FusedConv and the integer convolutions share: sizes, inference, and the gathering of
// the image into panels of a matrix product.
//
// Math:    per image and group W [M/g, K] * X [K, pixels], K = C/g * taps; X is laid out as F32P16
//          panels of 16 output pixels, tile by tile, so memory is bounded by a tile a thread and
//          weights are read where they stand.
// Owns:    plain values.
// Errors:  kInvalidGraph for attributes, kInvalidArgument for shapes that do not fit.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/ops/op_window.h"

namespace folio {

struct ConvAttrs {
  WindowAttrs window;
  int64_t group = 1;
};

Result<ConvAttrs> parse_conv(const Attributes& attrs);

struct ConvSizes {
  Window window;
  int64_t batch = 0;
  int64_t group = 1;
  int64_t c_in = 0;   // per group
  int64_t c_out = 0;  // per group
  Shape out;

  int64_t k() const { return c_in * window.kernel_count(); }
};

// x [N, C, spatial...], w [M, C / group, kernel...]; `b` may be null.
Result<ConvSizes> conv_sizes(const ConvAttrs& attrs, const Shape& x, const Shape& w,
                             const Tensor* b);

// The output's dims, channels first, of x and w of equal rank, 3 or more.
Result<Dims> conv_out_dims(const Attributes& from, DimTable& table, const Dims& x, const Dims& w);

// Sets output 0 to this type and the dims that inputs x and w make.
Status infer_conv(OpInfer& infer, DType dtype, int x_input, int w_input);

// The image that is added to the result, of its shape; null: there is none.
Result<const Tensor*> conv_addend(const OpRun& run, int input, DType dtype, const Shape& out);

// 1x1 without stride and border: the image is the matrix.
bool is_pointwise(const Window& w);

// dst[i] = x[i * stride + first] for i < n, zero where that is outside of [0, in).
void copy_strided_row(int64_t n, const float* x, int64_t in, int64_t first, int64_t stride,
                      float* dst);

// How the products of one convolution are cut, by shape only: rows of pixels and blocks of output
// channels.
struct ConvTiling {
  int64_t tile = 0;     // pixels, a multiple of `row_step` unless it is the only one
  int64_t tiles = 0;    // of `pixels`
  int64_t columns = 0;  // output channels of a chunk, a multiple of 16 but in the last
  int64_t blocks = 0;   // of a group's output channels
};

// At most `most` pixels a tile; `repeats`: how often the tiles are computed (images, groups). Few
// chunks in all: channels are split as well.
ConvTiling make_tiling(int64_t pixels, int64_t most, int64_t row_step, int64_t repeats,
                       int64_t c_out);

// Pixels of one tile: K * 64 floats stay in L2 for every K of real models.
inline constexpr int64_t kConvTile = 64;

// Top-left input coordinates of 16 neighbouring output pixels.
struct PanelOrigin {
  static constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
  int64_t at[kPanel][kSpatial];
  int64_t count;
  // Pixels [row_begin[r], row_begin[r + 1]) are of one output row: in x they are a stride apart.
  int64_t rows;
  int64_t row_begin[kPanel + 1];
};

PanelOrigin panel_origin(const Window& w, int64_t pixel, int64_t count);

// X [K, pixels from `pixel` on] of the image x as F32P16.
void gather_conv_tile(const ConvSizes& s, const float* x, int64_t pixel, int64_t pixels,
                      float* dst);

// One output plane by the definition; used where each channel has its own small filter.
template <typename T>
void conv_plane(const ConvSizes& s, const T* x, const T* filter, T bias, T* y) {
  const Window& w = s.window;
  for (int64_t p = 0; p < w.out_count(); ++p) {
    const int64_t o[kSpatial] = {p / (w.out[1] * w.out[2]), p / w.out[2] % w.out[1], p % w.out[2]};
    int64_t first[kSpatial];
    int64_t from[kSpatial];
    int64_t to[kSpatial];
    for (int d = 0; d < kSpatial; ++d) {
      first[d] = o[d] * w.stride[d] - w.pad_begin[d];
      from[d] = first[d] < 0 ? (-first[d] + w.dilation[d] - 1) / w.dilation[d] : 0;
      const int64_t room = w.in[d] - first[d];
      to[d] = room <= 0 ? 0 : std::min(w.kernel[d], (room + w.dilation[d] - 1) / w.dilation[d]);
    }
    T sum = bias;
    for (int64_t c = 0; c < s.c_in; ++c) {
      const int64_t plane = c * w.in_count();
      const T* taps = filter + c * w.kernel_count();
      for (int64_t kd = from[0]; kd < to[0]; ++kd) {
        for (int64_t kh = from[1]; kh < to[1]; ++kh) {
          const int64_t line =
              (first[0] + kd * w.dilation[0]) * w.in[1] + first[1] + kh * w.dilation[1];
          const int64_t row = plane + line * w.in[2] + first[2];
          const T* tap = taps + (kd * w.kernel[1] + kh) * w.kernel[2];
          for (int64_t kw = from[2]; kw < to[2]; ++kw) {
            sum += tap[kw] * x[row + kw * w.dilation[2]];
          }
        }
      }
    }
    y[p] = sum;
  }
}

}  // namespace folio
