#include "core/ops/op_conv.h"

#include "core/base/checked_math.h"

namespace folio {

Result<ConvAttrs> parse_conv(const Attributes& attrs) {
  ConvAttrs out;
  FOLIO_TRY(out.window, parse_window(attrs));
  FOLIO_TRY(out.group, attrs.get_int("group", 1));
  if (out.group < 1) return invalid_graph("attribute 'group' is ", out.group);
  return out;
}

Result<ConvSizes> conv_sizes(const ConvAttrs& attrs, const Shape& x, const Shape& w,
                             const Tensor* b) {
  if (x.rank() < 3 || w.rank() != x.rank()) {
    return invalid_argument("X ", x.to_string(), " and W ", w.to_string(),
                            " must have the same rank, 3 or more");
  }
  const Span<const int64_t> kernel = w.dims().subspan(2);
  const AxisNumbers& given = attrs.window.kernel;
  if (!given.empty() && !std::equal(kernel.begin(), kernel.end(), given.begin(), given.end())) {
    return invalid_argument("kernel_shape does not agree with W ", w.to_string());
  }
  ConvSizes s;
  FOLIO_TRY(s.window, make_window(attrs.window, x, kernel));
  s.batch = x[0];
  s.group = attrs.group;
  s.c_in = w[1];
  s.c_out = w[0] / attrs.group;
  int64_t channels = 0;
  if (!checked_mul(s.c_in, attrs.group, &channels) || x[1] != channels || w[0] % attrs.group != 0) {
    return invalid_argument("X ", x.to_string(), ", W ", w.to_string(), " and group ", attrs.group,
                            " do not agree on channels");
  }
  if (b && (b->rank() != 1 || b->dim(0) != w[0])) {
    return invalid_argument("B ", b->shape().to_string(), " must have ", w[0], " entries");
  }
  s.out = Shape{x[0], w[0]};
  s.window.append_out(&s.out);
  return s;
}

Result<Dims> conv_out_dims(const Attributes& from, DimTable& table, const Dims& x, const Dims& w) {
  FOLIO_TRY(const WindowAttrs attrs, parse_window(from));
  Dims out{x[0], w[0]};
  const size_t rank = x.size() - 2;
  for (size_t axis = 0; axis < rank; ++axis) {
    const Dim kernel = w[axis + 2];
    out.push_back(kernel.is_value()
                      ? window_out_dim(attrs, table, x[axis + 2], kernel.value, axis, rank)
                      : Dim::unknown());
  }
  return out;
}

Status infer_conv(OpInfer& infer, DType dtype, int x_input, int w_input) {
  const Dims* x = infer.dims_of(x_input);
  const Dims* w = infer.dims_of(w_input);
  infer.set_tensor(0, dtype);
  if (!x || !w || x->size() < 3) return Status::ok();
  if (w->size() != x->size()) {
    return invalid_graph("X ", type_to_string(infer.input(x_input)), " and W ",
                         type_to_string(infer.input(w_input)), " must have the same rank");
  }
  FOLIO_TRY(Dims out, conv_out_dims(infer.attrs(), infer.table(), *x, *w));
  infer.set_tensor(0, dtype, std::move(out));
  return Status::ok();
}

void copy_strided_row(int64_t n, const float* x, int64_t in, int64_t first, int64_t stride,
                      float* dst) {
  if (stride == 1) {
    const int64_t begin = std::clamp<int64_t>(-first, 0, n);
    const int64_t end = std::clamp<int64_t>(in - first, begin, n);
    std::fill_n(dst, begin, 0.0F);
    std::copy(x + first + begin, x + first + end, dst + begin);
    std::fill(dst + end, dst + n, 0.0F);
    return;
  }
  const int64_t begin = std::clamp<int64_t>(first < 0 ? (-first + stride - 1) / stride : 0, 0, n);
  const int64_t end = std::clamp<int64_t>(first < in ? (in - 1 - first) / stride + 1 : 0, begin, n);
  std::fill_n(dst, begin, 0.0F);
  for (int64_t i = begin; i < end; ++i) dst[i] = x[i * stride + first];
  std::fill(dst + end, dst + n, 0.0F);
}

Result<const Tensor*> conv_addend(const OpRun& run, int input, DType dtype, const Shape& out) {
  if (!run.has_input(input)) return static_cast<const Tensor*>(nullptr);
  FOLIO_TRY(const Tensor* z, run.tensor(input, dtype));
  if (z->shape() == out) return z;
  return invalid_argument("Z ", z->shape().to_string(), " differs from the output ",
                          out.to_string());
}

bool is_pointwise(const Window& w) {
  bool pointwise = true;
  for (int d = 0; d < kSpatial; ++d) {
    pointwise = pointwise && w.kernel[d] == 1 && w.stride[d] == 1 && w.pad_begin[d] == 0 &&
                w.pad_end[d] == 0;
  }
  return pointwise;
}

ConvTiling make_tiling(int64_t pixels, int64_t most, int64_t row_step, int64_t repeats,
                       int64_t c_out) {
  constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
  constexpr int64_t kEnoughChunks = 4;
  constexpr int64_t kLeastColumns = 64;  // fewer do not repay reading the pixels again
  ConvTiling t;
  t.tiles = (pixels + most - 1) / most;
  const int64_t even = (pixels + t.tiles - 1) / t.tiles;
  t.tile = t.tiles == 1 ? pixels : (even + row_step - 1) / row_step * row_step;
  t.tiles = (pixels + t.tile - 1) / t.tile;
  t.columns = c_out;
  if (repeats * t.tiles < kEnoughChunks && c_out > kLeastColumns) {
    t.columns = std::max((c_out / 2 + kPanel - 1) / kPanel * kPanel, kLeastColumns);
  }
  t.blocks = (c_out + t.columns - 1) / t.columns;
  return t;
}

PanelOrigin panel_origin(const Window& w, int64_t pixel, int64_t count) {
  constexpr int64_t kPanel = PanelOrigin::kPanel;
  PanelOrigin origin;
  origin.count = std::min(count, kPanel);
  for (int64_t i = 0; i < origin.count; ++i) {
    const int64_t p = pixel + i;
    const int64_t o[kSpatial] = {p / (w.out[1] * w.out[2]), p / w.out[2] % w.out[1], p % w.out[2]};
    for (int d = 0; d < kSpatial; ++d) origin.at[i][d] = o[d] * w.stride[d] - w.pad_begin[d];
  }
  origin.rows = 0;
  for (int64_t i = 0; i < origin.count; ++i) {
    const bool goes_on =
        i > 0 && origin.at[i][0] == origin.at[i - 1][0] && origin.at[i][1] == origin.at[i - 1][1];
    if (!goes_on) origin.row_begin[origin.rows++] = i;
  }
  origin.row_begin[origin.rows] = origin.count;
  return origin;
}

namespace {

// One row of a panel: plane x of the image at one kernel tap for 16 pixels; zero outside.
void gather_conv_row(const Window& w, const PanelOrigin& origin, const float* x,
                     const int64_t tap[], float* dst) {
  constexpr int64_t kPanel = PanelOrigin::kPanel;
  const int64_t offset[kSpatial] = {tap[0] * w.dilation[0], tap[1] * w.dilation[1],
                                    tap[2] * w.dilation[2]};
  for (int64_t r = 0; r < origin.rows; ++r) {
    const int64_t begin = origin.row_begin[r];
    const int64_t count = origin.row_begin[r + 1] - begin;
    const int64_t d = origin.at[begin][0] + offset[0];
    const int64_t h = origin.at[begin][1] + offset[1];
    const int64_t from = origin.at[begin][2] + offset[2];
    const bool row_inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1];
    const float* row = row_inside ? x + (d * w.in[1] + h) * w.in[2] : x;
    if (count == kPanel && w.stride[2] == 1 && row_inside && from >= 0 &&
        from + kPanel <= w.in[2]) {
      std::memcpy(dst, row + from, kPanel * sizeof(float));
      return;
    }
    copy_strided_row(count, row, row_inside ? w.in[2] : 0, from, w.stride[2], dst + begin);
  }
  std::fill(dst + origin.count, dst + kPanel, 0.0F);
}

}  // namespace

void gather_conv_tile(const ConvSizes& s, const float* x, int64_t pixel, int64_t pixels,
                      float* dst) {
  const Window& w = s.window;
  for (int64_t p = 0; p < pixels; p += PanelOrigin::kPanel) {
    const PanelOrigin origin = panel_origin(w, pixel + p, pixels - p);
    int64_t tap[kSpatial];
    for (int64_t c = 0; c < s.c_in; ++c) {
      for (tap[0] = 0; tap[0] < w.kernel[0]; ++tap[0]) {
        for (tap[1] = 0; tap[1] < w.kernel[1]; ++tap[1]) {
          for (tap[2] = 0; tap[2] < w.kernel[2]; ++tap[2], dst += PanelOrigin::kPanel) {
            gather_conv_row(w, origin, x + c * w.in_count(), tap, dst);
          }
        }
      }
    }
  }
}

}  // namespace folio
