// Transposed convolution over 1 to 3 spatial dims, grouped, dilated, padded.
//
// Source: ONNX operator spec, ConvTranspose, opsets 1, 11, 22; com.microsoft
//         ConvTransposeWithDynamicPads 1, whose pads are an input before b.
// Shapes: x [N, C, spatial...], w [C, M / group, kernel...], b [M] -> y [N, M, out...]
//         out = stride * (in - 1) + output_padding + (kernel - 1) * dilation + 1 - pads, or
//         output_shape (then the pads follow), or in * stride (auto_pad SAME).
// Math:   y[n, m, i * stride + t * dilation - pad] += w[c, m, t] * x[n, c, i], starting from b[m]:
//         columns W' [M/g * taps, C/g] * X [C/g, pixels] by a matrix product, tile by tile of
//         pixels, then each output channel adds its rows where they belong. Filters over one
//         channel each: op_transposed_planes.h.
// Types:  float; float16 and bfloat16 in float; double by loops.
// Notes:  1 to 3 spatial dims.
#include <algorithm>
#include <cstring>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_conv_transpose.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_transposed_planes.h"

namespace folio {
namespace {

// Floats of one tile of columns: 16 MiB.
constexpr int64_t kColumnFloats = 4 << 20;
// Output positions of one tap along one axis: first + i * stride, inside for i in [from, to).
struct TapRange {
  int64_t first, from, to;
};

TapRange tap_range(const Window& w, int axis, int64_t tap) {
  TapRange r{};
  r.first = tap * w.dilation[axis] - w.pad_begin[axis];
  const int64_t stride = w.stride[axis];
  r.from = r.first < 0 ? (-r.first + stride - 1) / stride : 0;
  const int64_t room = w.out[axis] - r.first;
  r.to = room <= 0 ? 0 : std::min(w.in[axis], (room + stride - 1) / stride);
  return r;
}

// Adds the row of one tap, columns of the input pixels [begin, end), to the output plane.
template <typename T>
void scatter_tap(const Window& w, const int64_t tap[], const T* column, int64_t begin, int64_t end,
                 T factor, T* plane) {
  const TapRange rd = tap_range(w, 0, tap[0]);
  const TapRange rh = tap_range(w, 1, tap[1]);
  const TapRange rw = tap_range(w, 2, tap[2]);
  const int64_t rows_begin = begin / w.in[2];
  const int64_t rows_end = (end + w.in[2] - 1) / w.in[2];
  for (int64_t row = rows_begin; row < rows_end; ++row) {
    const int64_t d = row / w.in[1];
    const int64_t h = row % w.in[1];
    if (d < rd.from || d >= rd.to || h < rh.from || h >= rh.to) continue;
    const int64_t start = row * w.in[2];
    const int64_t from = std::max(rw.from, begin - start);
    const int64_t to = std::min(rw.to, end - start);
    const int64_t out_row = (rd.first + d * w.stride[0]) * w.out[1] + rh.first + h * w.stride[1];
    T* out = plane + out_row * w.out[2];
    for (int64_t i = from; i < to; ++i) {
      out[rw.first + i * w.stride[2]] += factor * column[start - begin + i];
    }
  }
}

// out[2 * i] += a[i], out[2 * i + 1] += b[i], as vectors of 16 bytes.
void add_pairs(int64_t n, const float* a, const float* b, float* out) {
  typedef float Four __attribute__((vector_size(16)));
  const auto load = [](const float* from) {
    Four four;
    std::memcpy(&four, from, sizeof four);
    return four;
  };
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const Four left = load(a + i);
    const Four right = load(b + i);
    float* to = out + 2 * i;
    const Four low = load(to) + __builtin_shufflevector(left, right, 0, 4, 1, 5);
    const Four high = load(to + 4) + __builtin_shufflevector(left, right, 2, 6, 3, 7);
    std::memcpy(to, &low, sizeof low);
    std::memcpy(to + 4, &high, sizeof high);
  }
  for (; i < n; ++i) {
    out[2 * i] += a[i];
    out[2 * i + 1] += b[i];
  }
}

// The rows of two taps side by side where the stride is 2: what they write alternates.
void scatter_pair(const Window& w, const int64_t tap[], const float* a, const float* b,
                  int64_t begin, int64_t end, float* plane) {
  const TapRange rd = tap_range(w, 0, tap[0]);
  const TapRange rh = tap_range(w, 1, tap[1]);
  const TapRange ra = tap_range(w, 2, tap[2]);
  const TapRange rb = tap_range(w, 2, tap[2] + 1);
  for (int64_t row = begin / w.in[2]; row < (end + w.in[2] - 1) / w.in[2]; ++row) {
    const int64_t d = row / w.in[1];
    const int64_t h = row % w.in[1];
    if (d < rd.from || d >= rd.to || h < rh.from || h >= rh.to) continue;
    const int64_t start = row * w.in[2];
    const int64_t out_row = (rd.first + d * w.stride[0]) * w.out[1] + rh.first + h * w.stride[1];
    float* out = plane + out_row * w.out[2];
    const int64_t first = ra.first;
    const int64_t at = start - begin;
    const auto clip = [&](int64_t i) { return std::clamp(i, begin - start, end - start); };
    const int64_t a_from = clip(ra.from);
    const int64_t b_from = clip(rb.from);
    const int64_t from = std::max(a_from, b_from);
    const int64_t to = std::max(from, std::min(clip(ra.to), clip(rb.to)));
    for (int64_t i = a_from; i < std::min(from, clip(ra.to)); ++i) out[first + 2 * i] += a[at + i];
    for (int64_t i = b_from; i < std::min(from, clip(rb.to)); ++i)
      out[first + 2 * i + 1] += b[at + i];
    add_pairs(to - from, a + at + from, b + at + from, out + first + 2 * from);
    for (int64_t i = to; i < clip(ra.to); ++i) out[first + 2 * i] += a[at + i];
    for (int64_t i = to; i < clip(rb.to); ++i) out[first + 2 * i + 1] += b[at + i];
  }
}

// Calls body(tap, number) for each kernel tap.
template <typename Body>
void for_each_tap(const Window& w, Body&& body) {
  int64_t number = 0;
  for (int64_t d = 0; d < w.kernel[0]; ++d) {
    for (int64_t h = 0; h < w.kernel[1]; ++h) {
      for (int64_t v = 0; v < w.kernel[2]; ++v, ++number) {
        const int64_t tap[kSpatial] = {d, h, v};
        body(tap, number);
      }
    }
  }
}

template <typename T>
void fill_bias(OpRun& run, const ConvSizes& s, const T* bias, T* y) {
  const int64_t plane = s.window.out_count();
  const int64_t channels = s.group * s.c_out;
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(plane, 1));
  run.parallel().for_range(s.batch * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      fill_run(y + p * plane, plane, bias ? bias[p % channels] : T{});
    }
  });
}

Status run_f32(OpRun& run, const ConvSizes& s, const float* x, const float* w, const float* bias,
               float* y) {
  if (fits_transposed_planes(s)) return run_transposed_planes(run, s, x, w, bias, y);
  fill_bias(run, s, bias, y);
  if (s.c_in == 0) return Status::ok();
  const Window& window = s.window;
  const int64_t taps = window.kernel_count();
  const int64_t pixels = window.in_count();
  const int64_t rows = s.c_out * taps;
  const bool is_paired = window.stride[2] == 2 && window.dilation[2] == 1;
  const int64_t tile = std::clamp<int64_t>(kColumnFloats / rows, 16, std::max<int64_t>(pixels, 16));
  FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(rows * tile) * sizeof(float)));
  FolioGemmF32 args{};
  args.m = rows;
  args.k = s.c_in;
  args.a_row_stride = 1;
  args.a_col_stride = rows;
  args.c = reinterpret_cast<float*>(bytes);
  args.alpha = 1.0F;
  GemmB b;
  b.row_stride = pixels;
  b.col_stride = 1;
  for (int64_t i = 0; i < s.batch * s.group; ++i) {
    args.a = w + i % s.group * s.c_in * rows;
    float* planes = y + i * s.c_out * window.out_count();
    for (int64_t pixel = 0; pixel < pixels; pixel += tile) {
      args.n = args.c_row_stride = std::min(tile, pixels - pixel);
      b.data = x + i * s.c_in * pixels + pixel;
      FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, b));
      run.parallel().for_range(s.c_out, 1, [&](int64_t begin, int64_t end) {
        for (int64_t m = begin; m < end; ++m) {
          float* plane = planes + m * window.out_count();
          for_each_tap(window, [&](const int64_t tap[], int64_t t) {
            const float* column = args.c + (m * taps + t) * args.n;
            if (is_paired && (tap[2] % 2 == 1 || tap[2] + 1 < window.kernel[2])) {
              if (tap[2] % 2 == 1) return;  // with the one before
              scatter_pair(window, tap, column, column + args.n, pixel, pixel + args.n, plane);
            } else {
              scatter_tap(window, tap, column, pixel, pixel + args.n, 1.0F, plane);
            }
          });
        }
      });
    }
  }
  return Status::ok();
}

void run_f64(OpRun& run, const ConvSizes& s, const double* x, const double* w, const double* bias,
             double* y) {
  fill_bias(run, s, bias, y);
  const Window& window = s.window;
  if (window.in_count() == 0) return;
  const int64_t taps = window.kernel_count();
  run.parallel().for_range(s.batch * s.group * s.c_out, 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t image_group = plane / s.c_out;
      const int64_t g = image_group % s.group;
      for (int64_t c = 0; c < s.c_in; ++c) {
        const double* from = x + (image_group * s.c_in + c) * window.in_count();
        const double* filter = w + ((g * s.c_in + c) * s.c_out + plane % s.c_out) * taps;
        for_each_tap(window, [&](const int64_t tap[], int64_t t) {
          scatter_tap(window, tap, from, 0, window.in_count(), filter[t],
                      y + plane * window.out_count());
        });
      }
    }
  });
}

class ConvTranspose : public OpKernel {
 public:
  TransposeAttrs attrs;

  Status run(OpRun& run) const override { return convolve(run, attrs, 2); }

 protected:
  static Status convolve(OpRun& run, const TransposeAttrs& attrs, int bias) {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* w, run.tensor(1, x->dtype()));
    FOLIO_TRY(const Tensor* b, run.optional_tensor(bias, x->dtype()));
    FOLIO_TRY(const ConvSizes s, transpose_sizes(attrs, x->shape(), w->shape(), b));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), s.out));
    if (y->count() == 0) return Status::ok();
    switch (x->dtype()) {
      case DType::kFloat:
        return run_f32(run, s, x->data<float>(), w->data<float>(), b ? b->data<float>() : nullptr,
                       y->data_mut<float>());
      case DType::kDouble:
        run_f64(run, s, x->data<double>(), w->data<double>(), b ? b->data<double>() : nullptr,
                y->data_mut<double>());
        return Status::ok();
      case DType::kFloat16:
      case DType::kBfloat16:
        return run_in_float(run, *x, *w, b, y,
                            [&](const float* x32, const float* w32, const float* b32, float* y32) {
                              return run_f32(run, s, x32, w32, b32, y32);
                            });
      default:
        return wrong_type(0, x->dtype());
    }
  }
};

constexpr int kPads = 2;  // the input of ConvTransposeWithDynamicPads

Status set_pads(const std::vector<int64_t>& pads, TransposeAttrs* attrs) {
  constexpr int64_t kMaxPad = int64_t{1} << 30;  // larger ones only serve to overflow
  if (pads.size() > AxisNumbers::kCapacity) {
    return invalid_argument("input Pads has ", pads.size(), " elements, expected ", 2 * kSpatial,
                            " at most");
  }
  for (const int64_t pad : pads) {
    if (pad < 0 || pad > kMaxPad) {
      return invalid_argument("input Pads holds ", pad, ", expected 0 to ", kMaxPad);
    }
  }
  attrs->conv.window.pads = AxisNumbers(pads);
  return Status::ok();
}

class ConvTransposeWithDynamicPads final : public ConvTranspose {
 public:
  Status run(OpRun& run) const override {
    TransposeAttrs padded = attrs;
    if (run.has_input(kPads)) {
      FOLIO_TRY(const std::vector<int64_t> pads, run.ints(kPads));
      FOLIO_RETURN_IF_ERROR(set_pads(pads, &padded));
    }
    return convolve(run, padded, kPads + 1);
  }
};

Status infer_dynamic_pads(OpInfer& infer) {
  FOLIO_TRY(TransposeAttrs attrs, parse_conv_transpose(infer.attrs()));
  infer.set_tensor(0, infer.dtype(0));
  if (infer.has_input(kPads)) {
    const auto pads = infer.ints(kPads);
    if (!pads) return Status::ok();
    FOLIO_RETURN_IF_ERROR(set_pads(*pads, &attrs));
  }
  return infer_conv_transpose(infer, /*channels_last=*/false, attrs);
}

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Kernel>();
  FOLIO_TRY(kernel->attrs, parse_conv_transpose(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_conv_transpose(OpRegistry& registry) {
  registry.add(
      {.domain = "",
       .type = "ConvTranspose",
       .min_inputs = 2,
       .max_inputs = 3,
       .infer = [](OpInfer& infer) { return infer_conv_transpose(infer, /*channels_last=*/false); },
       .make = make<ConvTranspose>,
       .one_type = 0b111});
  registry.add({.domain = "com.microsoft",
                .type = "ConvTransposeWithDynamicPads",
                .min_inputs = 2,
                .max_inputs = 4,
                .infer = infer_dynamic_pads,
                .make = make<ConvTransposeWithDynamicPads>,
                .one_type = 0b1011});
}

}  // namespace folio
