// Convolution over 1 to 3 spatial dims, grouped, dilated, padded.
//
// Source: ONNX operator spec, Conv, opsets 1, 11, 22.
// Shapes: x [N, C, spatial...], w [M, C / group, kernel...], b [M] -> y [N, M, out...]
// Math:   y[n, m, o] = b[m] + sum over c, t of w[m, c, t] * x[n, c, o * stride + t * dilation -
// pad] Method: per image and group one matrix product W [M/g, K] * X [K, pixels]; X is laid out as
//         F32P16 panels of 16 output pixels, tile by tile, so memory is bounded by a tile a
//         thread and weights are read where they stand. Depthwise: direct loops.
// Types:  float; float16 and bfloat16 in float; double by loops.
#include <algorithm>
#include <cstring>

#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"
#include "core/ops/op_window.h"

namespace folio {
namespace {

struct ConvSizes {
  Window window;
  int64_t batch = 0;
  int64_t group = 1;
  int64_t c_in = 0;   // per group
  int64_t c_out = 0;  // per group
  Shape out;

  int64_t k() const { return c_in * window.kernel_count(); }
};

// Pixels of one tile: K * 64 floats stay in L2 for every K of real models.
constexpr int64_t kTilePixels = 64;
constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;

// Top-left input coordinates of 16 neighbouring output pixels.
struct PanelOrigin {
  int64_t at[kPanel][kSpatial];
  int64_t count;
  bool one_row;  // all in one output row with stride 1: neighbours in x too
};

PanelOrigin origin_of(const Window& w, int64_t pixel, int64_t count) {
  PanelOrigin origin;
  origin.count = std::min(count, kPanel);
  for (int64_t i = 0; i < origin.count; ++i) {
    const int64_t p = pixel + i;
    const int64_t o[kSpatial] = {p / (w.out[1] * w.out[2]), p / w.out[2] % w.out[1], p % w.out[2]};
    for (int d = 0; d < kSpatial; ++d) origin.at[i][d] = o[d] * w.stride[d] - w.pad_begin[d];
  }
  const int64_t last = origin.count - 1;
  origin.one_row = origin.count == kPanel && w.stride[2] == 1 &&
                   origin.at[last][0] == origin.at[0][0] && origin.at[last][1] == origin.at[0][1];
  return origin;
}

// One row of a panel: x at kernel tap (kd, kh, kw) for 16 pixels; zero outside the image.
void gather_row(const Window& w, const PanelOrigin& origin, const float* x, const int64_t tap[],
                float* dst) {
  const int64_t offset[kSpatial] = {tap[0] * w.dilation[0], tap[1] * w.dilation[1],
                                    tap[2] * w.dilation[2]};
  if (origin.one_row) {
    const int64_t d = origin.at[0][0] + offset[0];
    const int64_t h = origin.at[0][1] + offset[1];
    const int64_t from = origin.at[0][2] + offset[2];
    const bool row_inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1];
    if (row_inside && from >= 0 && from + kPanel <= w.in[2]) {
      std::memcpy(dst, x + (d * w.in[1] + h) * w.in[2] + from, kPanel * sizeof(float));
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
    if (inside) dst[i] = x[(d * w.in[1] + h) * w.in[2] + v];
  }
}

// X [K, pixels from `pixel` on] as F32P16.
void gather_tile(const ConvSizes& s, const float* x, int64_t pixel, int64_t pixels, float* dst) {
  const Window& w = s.window;
  for (int64_t p = 0; p < pixels; p += kPanel) {
    const PanelOrigin origin = origin_of(w, pixel + p, pixels - p);
    for (int64_t c = 0; c < s.c_in; ++c) {
      const float* plane = x + c * w.in_count();
      for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
        for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
          for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
            const int64_t tap[kSpatial] = {kd, kh, kw};
            gather_row(w, origin, plane, tap, dst);
            dst += kPanel;
          }
        }
      }
    }
  }
}

bool is_pointwise(const Window& w) {
  bool pointwise = true;
  for (int d = 0; d < kSpatial; ++d) {
    pointwise = pointwise && w.kernel[d] == 1 && w.stride[d] == 1 && w.pad_begin[d] == 0 &&
                w.pad_end[d] == 0;
  }
  return pointwise;
}

FolioGemmF32 gemm_args(const ConvSizes& s, const float* weights, const float* bias) {
  FolioGemmF32 args{};
  args.m = s.c_out;
  args.k = s.k();
  args.a = weights;
  args.a_row_stride = s.k();
  args.a_col_stride = 1;
  args.c_row_stride = s.window.out_count();
  args.row_bias = bias;
  args.alpha = 1.0F;
  return args;
}

// 1x1: X is the image as it stands.
Status run_pointwise(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                     const float* bias, float* y) {
  const int64_t pixels = s.window.out_count();
  for (int64_t i = 0; i < s.batch * s.group; ++i) {
    const int64_t g = i % s.group;
    FolioGemmF32 args = gemm_args(s, w + g * s.c_out * s.k(), bias ? bias + g * s.c_out : nullptr);
    args.n = pixels;
    args.c = y + i * s.c_out * pixels;
    GemmB b;
    b.data = x + i * s.c_in * pixels;
    b.row_stride = pixels;
    b.col_stride = 1;
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, b));
  }
  return Status::ok();
}

Status run_tiled(OpRun& run, const ConvSizes& s, const float* x, const float* w, const float* bias,
                 float* y) {
  const FolioKernels& kernels = run.kernels();
  const int64_t pixels = s.window.out_count();
  const int64_t tiles = (pixels + kTilePixels - 1) / kTilePixels;
  const auto tile_bytes = align_up(static_cast<size_t>(s.k() * kTilePixels) * sizeof(float), 64);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(
      ThreadScratch::make(run, tile_bytes + kernels.gemm_f32_scratch_bytes, &scratch));
  run.parallel().for_range(s.batch * s.group * tiles, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t i = chunk / tiles;
      const int64_t g = i % s.group;
      const int64_t pixel = chunk % tiles * kTilePixels;
      FolioGemmF32 args =
          gemm_args(s, w + g * s.c_out * s.k(), bias ? bias + g * s.c_out : nullptr);
      args.n = std::min(kTilePixels, pixels - pixel);
      auto* tile = reinterpret_cast<float*>(block.data());
      gather_tile(s, x + i * s.c_in * s.window.in_count(), pixel, args.n, tile);
      args.b = tile;
      args.c = y + i * s.c_out * pixels + pixel;
      args.scratch = block.data() + tile_bytes;
      kernels.gemm_f32(&args);
    }
  });
  return Status::ok();
}

// One output plane by the definition; used where each channel has its own small filter.
template <typename T>
void direct_plane(const ConvSizes& s, const T* x, const T* filter, T bias, T* y) {
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
      const T* plane = x + c * w.in_count();
      const T* taps = filter + c * w.kernel_count();
      for (int64_t kd = from[0]; kd < to[0]; ++kd) {
        for (int64_t kh = from[1]; kh < to[1]; ++kh) {
          const int64_t row =
              ((first[0] + kd * w.dilation[0]) * w.in[1] + first[1] + kh * w.dilation[1]) * w.in[2];
          const T* tap = taps + (kd * w.kernel[1] + kh) * w.kernel[2];
          for (int64_t kw = from[2]; kw < to[2]; ++kw) {
            sum += tap[kw] * plane[row + first[2] + kw * w.dilation[2]];
          }
        }
      }
    }
    y[p] = sum;
  }
}

template <typename T>
void run_direct(OpRun& run, const ConvSizes& s, const T* x, const T* w, const T* bias, T* y) {
  run.parallel().for_range(s.batch * s.group * s.c_out, 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t channel = plane % (s.group * s.c_out);
      const int64_t image_group = plane / s.c_out;
      direct_plane(s, x + image_group * s.c_in * s.window.in_count(), w + channel * s.k(),
                   bias ? bias[channel] : T{}, y + plane * s.window.out_count());
    }
  });
}

Status run_f32(OpRun& run, const ConvSizes& s, const float* x, const float* w, const float* bias,
               float* y) {
  if (s.c_in == 1 && s.c_out == 1) {
    run_direct(run, s, x, w, bias, y);
    return Status::ok();
  }
  if (is_pointwise(s.window)) return run_pointwise(run, s, x, w, bias, y);
  return run_tiled(run, s, x, w, bias, y);
}

class Conv final : public OpKernel {
 public:
  WindowAttrs attrs;
  int64_t group = 1;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* w, run.tensor(1, x->dtype()));
    const Tensor* b = nullptr;
    if (run.has_input(2)) {
      FOLIO_TRY(b, run.tensor(2, x->dtype()));
    }
    FOLIO_TRY(const ConvSizes s, sizes(*x, *w, b));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), s.out));
    if (y->count() == 0) return Status::ok();
    switch (x->dtype()) {
      case DType::kFloat:
        return run_f32(run, s, x->data<float>(), w->data<float>(), b ? b->data<float>() : nullptr,
                       y->data_mut<float>());
      case DType::kDouble:
        run_direct(run, s, x->data<double>(), w->data<double>(), b ? b->data<double>() : nullptr,
                   y->data_mut<double>());
        return Status::ok();
      case DType::kFloat16:
      case DType::kBfloat16:
        return run_half(run, s, *x, *w, b, y);
      default:
        return not_implemented("Conv of ", dtype_name(x->dtype()));
    }
  }

 private:
  Result<ConvSizes> sizes(const Tensor& x, const Tensor& w, const Tensor* b) const {
    if (x.rank() < 3 || w.rank() != x.rank()) {
      return invalid_argument("X ", x.shape().to_string(), " and W ", w.shape().to_string(),
                              " must have the same rank, 3 or more");
    }
    const Span<const int64_t> kernel = w.shape().dims().subspan(2);
    if (!attrs.kernel.empty() &&
        !std::equal(kernel.begin(), kernel.end(), attrs.kernel.begin(), attrs.kernel.end())) {
      return invalid_argument("kernel_shape does not agree with W ", w.shape().to_string());
    }
    ConvSizes s;
    FOLIO_TRY(s.window, make_window(attrs, x.shape(), kernel));
    s.batch = x.dim(0);
    s.group = group;
    s.c_in = w.dim(1);
    s.c_out = w.dim(0) / group;
    int64_t channels = 0;
    if (!checked_mul(s.c_in, group, &channels) || x.dim(1) != channels || w.dim(0) % group != 0) {
      return invalid_argument("X ", x.shape().to_string(), ", W ", w.shape().to_string(),
                              " and group ", group, " do not agree on channels");
    }
    if (b && (b->rank() != 1 || b->dim(0) != w.dim(0))) {
      return invalid_argument("B ", b->shape().to_string(), " must have ", w.dim(0), " entries");
    }
    s.out = Shape{x.dim(0), w.dim(0)};
    s.window.append_out(&s.out);
    return s;
  }

  static Status run_half(OpRun& run, const ConvSizes& s, const Tensor& x, const Tensor& w,
                         const Tensor* b, Tensor* y) {
    FOLIO_TRY(const float* x32, widen_half(run, x));
    FOLIO_TRY(const float* w32, widen_half(run, w));
    const float* b32 = nullptr;
    if (b) {
      FOLIO_TRY(b32, widen_half(run, *b));
    }
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
    auto* y32 = reinterpret_cast<float*>(bytes);
    FOLIO_RETURN_IF_ERROR(run_f32(run, s, x32, w32, b32, y32));
    narrow_half(run, y32, y);
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  const Dims* w = infer.dims_of(1);
  infer.set_tensor(0, infer.dtype(0));
  if (!x || !w || x->size() < 3) return Status::ok();
  if (w->size() != x->size()) {
    return invalid_graph("X ", type_to_string(infer.input(0)), " and W ",
                         type_to_string(infer.input(1)), " must have the same rank");
  }
  FOLIO_TRY(const WindowAttrs attrs, parse_window(infer.attrs()));
  Dims out{(*x)[0], (*w)[0]};
  const size_t rank = x->size() - 2;
  for (size_t axis = 0; axis < rank; ++axis) {
    const Dim kernel = (*w)[axis + 2];
    out.push_back(kernel.is_value() ? window_out_dim(attrs, infer.table(), (*x)[axis + 2],
                                                     kernel.value, axis, rank)
                                    : Dim::unknown());
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Conv>();
  FOLIO_TRY(kernel->attrs, parse_window(build.attrs()));
  FOLIO_TRY(kernel->group, build.attrs().get_int("group", 1));
  if (kernel->group < 1) return invalid_graph("attribute 'group' is ", kernel->group);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_conv(OpRegistry& registry) {
  OpDef def;
  def.type = "Conv";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
