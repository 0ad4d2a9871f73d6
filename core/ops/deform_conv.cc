// Deformable convolution over 2 spatial dims.
//
// Source: ONNX operator spec, DeformConv, opsets 19, 22.
// Shapes: x [N, C, H, W], w [M, C / group, kh, kw], offset [N, offset_group * kh * kw * 2, oh, ow]
//         (y before x), b [M], mask [N, offset_group * kh * kw, oh, ow] -> y [N, M, oh, ow]
// Math:   as Conv, but tap t of output pixel p reads x at its place plus offset, bilinearly between
//         the four neighbours (0 outside the image), times mask.
// Types:  float; float16 and bfloat16 in float; double by loops.
// Notes:  2 spatial dims.
#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/ops/op_conv.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = PanelOrigin::kPanel;

// Four pixels of a plane and what each counts; outside ones count 0.
template <typename T>
struct Sample {
  int64_t at[4];
  T weight[4];

  // What counts 0 is not read: the plane may be empty, or its first pixel infinite.
  T read(const T* plane) const {
    T sum = 0;
    for (int i = 0; i < 4; ++i) {
      if (weight[i] != 0) sum += weight[i] * plane[at[i]];
    }
    return sum;
  }
};

template <typename T>
Sample<T> sample_at(const Window& w, T y, T x, T factor) {
  Sample<T> sample{};
  const int64_t height = w.in[1];
  const int64_t width = w.in[2];
  // Also false for NaN.
  const bool inside = y > -1 && x > -1 && y < static_cast<T>(height) && x < static_cast<T>(width);
  if (!inside) return sample;
  const T top = std::floor(y);
  const T left = std::floor(x);
  for (int corner = 0; corner < 4; ++corner) {
    const int64_t row = static_cast<int64_t>(top) + corner / 2;
    const int64_t col = static_cast<int64_t>(left) + corner % 2;
    if (row < 0 || row >= height || col < 0 || col >= width) continue;
    const T by_row = corner / 2 ? y - top : 1 - (y - top);
    const T by_col = corner % 2 ? x - left : 1 - (x - left);
    sample.at[corner] = row * width + col;
    sample.weight[corner] = by_row * by_col * factor;
  }
  return sample;
}

template <typename T>
struct DeformInputs {
  const T* x = nullptr;
  const T* w = nullptr;
  const T* offset = nullptr;
  const T* b = nullptr;     // or null
  const T* mask = nullptr;  // or null
};

class DeformConv final : public OpKernel {
 public:
  ConvAttrs attrs;
  int64_t offset_group = 1;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const DType dtype = x->dtype();
    if (!contains(FloatTypes{}, dtype)) return wrong_type(0, dtype);
    FOLIO_TRY(const Tensor* w, run.tensor(1, dtype));
    FOLIO_TRY(const Tensor* b, run.optional_tensor(3, dtype));
    FOLIO_TRY(const ConvSizes s, conv_sizes(attrs, x->shape(), w->shape(), b));
    FOLIO_RETURN_IF_ERROR(check(run, s, *x));
    FOLIO_TRY(Tensor * y, run.output(0, dtype, s.out));
    if (y->count() == 0) return Status::ok();
    if (dtype == DType::kDouble) {
      run_double(run, s, y->data_mut<double>());
      return Status::ok();
    }
    DeformInputs<float> in;
    FOLIO_TRY(in.x, floats_of(run, 0, dtype));
    FOLIO_TRY(in.w, floats_of(run, 1, dtype));
    FOLIO_TRY(in.offset, floats_of(run, 2, dtype));
    FOLIO_TRY(in.b, floats_of(run, 3, dtype));
    FOLIO_TRY(in.mask, floats_of(run, 4, dtype));
    if (dtype == DType::kFloat) return run_tiles(run, s, in, y->data_mut<float>());
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
    auto* y32 = reinterpret_cast<float*>(bytes);
    FOLIO_RETURN_IF_ERROR(run_tiles(run, s, in, y32));
    narrow_half(run, y32, y);
    return Status::ok();
  }

 private:
  static Result<const float*> floats_of(OpRun& run, int input, DType dtype) {
    if (!run.has_input(input)) return static_cast<const float*>(nullptr);
    FOLIO_TRY(const Tensor* tensor, run.tensor(input, dtype));
    if (dtype == DType::kFloat) return tensor->data<float>();
    FOLIO_TRY(const float* wide, widen_half(run, *tensor));
    return wide;
  }

  Status check(const OpRun& run, const ConvSizes& s, const Tensor& x) const {
    if (x.rank() != 4) return not_implemented("DeformConv of ", x.shape().to_string());
    if (x.dim(1) % offset_group != 0) {
      return invalid_argument("offset_group ", offset_group, " does not divide ", x.dim(1),
                              " channels");
    }
    int64_t taps = 0;
    int64_t numbers = 0;
    if (!checked_mul(offset_group, s.window.kernel_count(), &taps) ||
        !checked_mul(taps, int64_t{2}, &numbers)) {
      return invalid_argument("offset_group is ", offset_group);
    }
    for (const int input : {2, 4}) {
      if (input == 4 && !run.has_input(4)) continue;
      FOLIO_TRY(const Tensor* tensor, run.tensor(input, x.dtype()));
      const Shape expected{s.batch, input == 2 ? numbers : taps, s.window.out[1], s.window.out[2]};
      if (!(tensor->shape() == expected)) {
        return invalid_argument("input ", input, " is ", tensor->shape().to_string(), ", expected ",
                                expected.to_string());
      }
    }
    return Status::ok();
  }

  void run_double(OpRun& run, const ConvSizes& s, double* y) const {
    const auto input = [&](int i) -> const double* {
      return run.has_input(i) ? run.value(i).tensor().data<double>() : nullptr;
    };
    const DeformInputs<double> in{input(0), input(1), input(2), input(3), input(4)};
    const int64_t pixels = s.window.out_count();
    run.parallel().for_range(
        s.batch * s.group * s.c_out * pixels, 16, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) {
            const int64_t plane = at / pixels;
            const int64_t filters = s.group * s.c_out;
            y[at] = pixel_of(s, in, plane / filters, plane % filters, at % pixels);
          }
        });
  }

  double pixel_of(const ConvSizes& s, const DeformInputs<double>& in, int64_t image, int64_t filter,
                  int64_t pixel) const {
    const Window& w = s.window;
    const int64_t taps = w.kernel_count();
    const int64_t pixels = w.out_count();
    const int64_t channels = s.c_in * s.group;
    const int64_t per_offset = channels / offset_group;
    const PanelOrigin origin = panel_origin(w, pixel, 1);
    double sum = in.b ? in.b[filter] : 0;
    for (int64_t k = 0; k < s.k(); ++k) {
      const int64_t channel = filter / s.c_out * s.c_in + k / taps;
      const int64_t tap = k % taps;
      const int64_t row = (image * offset_group + channel / per_offset) * taps + tap;
      const double* offset = in.offset + row * 2 * pixels + pixel;
      const auto place_y = static_cast<double>(origin.at[0][1] + tap / w.kernel[2] * w.dilation[1]);
      const auto place_x = static_cast<double>(origin.at[0][2] + tap % w.kernel[2] * w.dilation[2]);
      const double factor = in.mask ? in.mask[row * pixels + pixel] : 1;
      const Sample<double> sample =
          sample_at<double>(w, place_y + offset[0], place_x + offset[pixels], factor);
      sum += in.w[filter * s.k() + k] *
             sample.read(in.x + (image * channels + channel) * w.in_count());
    }
    return sum;
  }

  Status run_tiles(OpRun& run, const ConvSizes& s, const DeformInputs<float>& in, float* y) const {
    const FolioKernels& kernels = run.kernels();
    const int64_t pixels = s.window.out_count();
    const int64_t tiles = (pixels + kConvTile - 1) / kConvTile;
    const auto bytes = align_up(static_cast<size_t>(s.k() * kConvTile) * sizeof(float), 64);
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, bytes, &scratch));
    run.parallel().for_range(s.batch * s.group * tiles, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      auto* tile = reinterpret_cast<float*>(block.data());
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t i = chunk / tiles;
        const int64_t g = i % s.group;
        const int64_t pixel = chunk % tiles * kConvTile;
        FolioGemmF32 args{};
        args.m = s.c_out;
        args.n = std::min(kConvTile, pixels - pixel);
        args.k = s.k();
        args.a = in.w + g * s.c_out * s.k();
        args.a_row_stride = s.k();
        args.a_col_stride = 1;
        args.b = tile;
        args.c = y + i * s.c_out * pixels + pixel;
        args.c_row_stride = pixels;
        args.row_bias = in.b ? in.b + g * s.c_out : nullptr;
        args.alpha = 1.0F;
        for (int64_t p = 0; p < args.n; p += kPanel) {
          gather_panel(s, in, i / s.group, g, pixel + p, std::min(kPanel, args.n - p),
                       tile + p * s.k());
        }
        kernels.gemm_f32(&args);
      }
    });
    return Status::ok();
  }

  // X [K, 16 pixels] of one image and group.
  void gather_panel(const ConvSizes& s, const DeformInputs<float>& in, int64_t image, int64_t g,
                    int64_t pixel, int64_t count, float* dst) const {
    const Window& w = s.window;
    const int64_t taps = w.kernel_count();
    const int64_t pixels = w.out_count();
    const int64_t channels = s.c_in * s.group;
    const int64_t per_offset = channels / offset_group;
    const PanelOrigin origin = panel_origin(w, pixel, count);
    Sample<float> samples[kPanel];
    for (int64_t c = 0; c < s.c_in;) {
      const int64_t channel = g * s.c_in + c;
      const int64_t og = channel / per_offset;
      const int64_t last = std::min(s.c_in, (og + 1) * per_offset - g * s.c_in);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t row = (image * offset_group + og) * taps + tap;
        const auto shift_y = static_cast<float>(tap / w.kernel[2] * w.dilation[1]);
        const auto shift_x = static_cast<float>(tap % w.kernel[2] * w.dilation[2]);
        for (int64_t i = 0; i < count; ++i) {
          const float* offset = in.offset + row * 2 * pixels + pixel + i;
          const float factor = in.mask ? in.mask[row * pixels + pixel + i] : 1.0F;
          samples[i] = sample_at<float>(
              w, static_cast<float>(origin.at[i][1]) + shift_y + offset[0],
              static_cast<float>(origin.at[i][2]) + shift_x + offset[pixels], factor);
        }
        for (int64_t k = c; k < last; ++k) {
          const float* plane = in.x + (image * channels + g * s.c_in + k) * w.in_count();
          float* out = dst + (k * taps + tap) * kPanel;
          for (int64_t i = 0; i < kPanel; ++i) out[i] = i < count ? samples[i].read(plane) : 0.0F;
        }
      }
      c = last;
    }
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<DeformConv>();
  FOLIO_TRY(kernel->attrs, parse_conv(build.attrs()));
  FOLIO_TRY(kernel->offset_group, build.attrs().get_int("offset_group", 1));
  if (kernel->offset_group < 1) {
    return invalid_graph("attribute 'offset_group' is ", kernel->offset_group);
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_deform_conv(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "DeformConv",
                .since = 19,
                .min_inputs = 3,
                .max_inputs = 5,
                .infer = [](OpInfer& i) { return infer_conv(i, i.dtype(0), 0, 1); },
                .make = make,
                .one_type = 0b11111});
}

}  // namespace folio
