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
  bool one_row;  // all in one output row: in x they are a stride apart
};

PanelOrigin panel_origin(const Window& w, int64_t pixel, int64_t count);

// One image as it stands; others may compute what get() gives.
template <typename T>
struct PlainImage {
  const T* x;

  T get(int64_t at) const { return x[at]; }
  // 16 neighbours.
  void panel(int64_t at, T* dst) const {
    std::memcpy(dst, x + at, PanelOrigin::kPanel * sizeof(T));
  }
};

// One row of a panel: plane `base` of the image at one kernel tap for 16 pixels; zero outside.
template <typename Image>
void gather_conv_row(const Window& w, const PanelOrigin& origin, const Image& image, int64_t base,
                     const int64_t tap[], float* dst) {
  constexpr int64_t kPanel = PanelOrigin::kPanel;
  const int64_t offset[kSpatial] = {tap[0] * w.dilation[0], tap[1] * w.dilation[1],
                                    tap[2] * w.dilation[2]};
  if (origin.one_row) {
    const int64_t d = origin.at[0][0] + offset[0];
    const int64_t h = origin.at[0][1] + offset[1];
    const int64_t from = origin.at[0][2] + offset[2];
    const bool row_inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1];
    const int64_t stride = w.stride[2];
    if (row_inside && from >= 0 && from + (kPanel - 1) * stride < w.in[2]) {
      const int64_t first = base + (d * w.in[1] + h) * w.in[2] + from;
      if (stride == 1) {
        image.panel(first, dst);
      } else {
        for (int64_t i = 0; i < kPanel; ++i) dst[i] = image.get(first + i * stride);
      }
      return;
    }
  }
  for (int64_t i = 0; i < kPanel; ++i) {
    dst[i] = 0.0F;
    if (i >= origin.count) continue;
    const int64_t d = origin.at[i][0] + offset[0];
    const int64_t h = origin.at[i][1] + offset[1];
    const int64_t v = origin.at[i][2] + offset[2];
    const bool inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1] && v >= 0 && v < w.in[2];
    if (inside) dst[i] = image.get(base + (d * w.in[1] + h) * w.in[2] + v);
  }
}

// Rows [from, to) of X [K, pixels from `pixel` on] as F32P16 of [to - from, pixels].
template <typename Image>
void gather_conv_tile(const ConvSizes& s, const Image& image, int64_t pixel, int64_t pixels,
                      int64_t from, int64_t to, float* dst) {
  const Window& w = s.window;
  for (int64_t p = 0; p < pixels; p += PanelOrigin::kPanel) {
    const PanelOrigin origin = panel_origin(w, pixel + p, pixels - p);
    int64_t c = from / w.kernel_count();
    const int64_t first = from % w.kernel_count();
    int64_t tap[kSpatial] = {first / (w.kernel[1] * w.kernel[2]), first / w.kernel[2] % w.kernel[1],
                             first % w.kernel[2]};
    for (int64_t row = from; row < to; ++row) {
      gather_conv_row(w, origin, image, c * w.in_count(), tap, dst);
      dst += PanelOrigin::kPanel;
      if (++tap[2] < w.kernel[2]) continue;
      tap[2] = 0;
      if (++tap[1] < w.kernel[1]) continue;
      tap[1] = 0;
      if (++tap[0] < w.kernel[0]) continue;
      tap[0] = 0;
      ++c;
    }
  }
}

// One output plane by the definition; used where each channel has its own small filter.
template <typename T, typename Image>
void conv_plane(const ConvSizes& s, const Image& image, const T* filter, T bias, T* y) {
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
            sum += tap[kw] * image.get(row + kw * w.dilation[2]);
          }
        }
      }
    }
    y[p] = sum;
  }
}

}  // namespace folio
