// Convolution over 1 to 3 spatial dims, grouped, dilated, padded.
//
// Source: ONNX operator spec, Conv, opsets 1, 11, 22; com.microsoft FusedConv: activation
//         and activation_params, input Z of y's shape that is added before. folio PlanesConv: the
//         same, for 1x1 filters and filters over one channel each whose weights are a constant that
//         stands in the file, at any address.
// Shapes: x [N, C, spatial...], w [M, C / group, kernel...], b [M] -> y [N, M, out...]
// Math:   y[n, m, o] = b[m] + sum over c, t of w[m, c, t] * x[n, c, o * stride + t * dilation -
//         pad]
// Method: weights are read where they stand (op_conv.h); 1x1: the image is B of a product; filters
//         over one channel, and groups of few channels: op_depthwise.h. Constant weights of floats
//         are packed in the form with channels last, nhwc_conv.cc.
// Types:  float; float16 and bfloat16 in float; double by loops.
// Notes:  1 to 3 spatial dims.
#include <algorithm>

#include "core/ops/op_activation.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_conv.h"
#include "core/ops/op_deep_planes.h"
#include "core/ops/op_evaluate.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

FolioGemmF32 gemm_args(const ConvSizes& s, const float* weights, const float* bias,
                       const ConvFinish& finish) {
  FolioGemmF32 args{};
  args.m = s.c_out;
  args.k = s.k();
  args.a = weights;
  args.a_row_stride = s.k();
  args.a_col_stride = 1;
  args.c_row_stride = s.window.out_count();
  args.row_bias = bias;
  args.alpha = 1.0F;
  args.addend_row_stride = s.window.out_count();
  finish.activation.set_in_kernel(&args);
  return args;
}

// 1x1, one pixel: the images are the rows of a product with W as it stands.
Status run_one_pixel(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                     const float* bias, const ConvFinish& finish, float* y) {
  for (int64_t g = 0; g < s.group; ++g) {
    FolioGemmF32 args{};
    args.m = s.batch;
    args.k = s.k();
    args.n = s.c_out;
    args.a = x + g * s.c_in;
    args.a_row_stride = s.group * s.c_in;
    args.a_col_stride = 1;
    args.c = y + g * s.c_out;
    args.c_row_stride = s.group * s.c_out;
    args.col_bias = bias ? bias + g * s.c_out : nullptr;
    args.addend = finish.z ? finish.z + g * s.c_out : nullptr;
    args.addend_row_stride = args.c_row_stride;
    args.alpha = 1.0F;
    finish.activation.set_in_kernel(&args);
    GemmB b;
    b.data = w + g * s.c_out * s.k();
    b.row_stride = 1;
    b.col_stride = s.k();
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, b));
  }
  return Status::ok();
}

// 1x1 in groups: many small products, which threads share.
void run_pointwise_groups(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                          const float* bias, const ConvFinish& finish, float* y) {
  const FolioKernels& kernels = run.kernels();
  const int64_t pixels = s.window.out_count();
  const int64_t work = s.c_out * s.k() * pixels;
  const int64_t grain = std::max<int64_t>(1, kThreadMacs / work);
  run.parallel().for_range(s.batch * s.group, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % s.group * s.c_out;
      FolioGemmF32 args =
          gemm_args(s, w + channel * s.k(), bias ? bias + channel : nullptr, finish);
      args.n = pixels;
      args.c = y + i * s.c_out * pixels;
      if (finish.z) args.addend = finish.z + i * s.c_out * pixels;
      kernels.gemm_plain_f32(&args, x + i * s.c_in * pixels, pixels);
    }
  });
}

// 1x1: X is the image as it stands. W too, whatever its alignment.
Status run_pointwise(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                     const float* bias, const ConvFinish& finish, float* y) {
  const int64_t pixels = s.window.out_count();
  if (pixels == 1) return run_one_pixel(run, s, x, w, bias, finish, y);
  for (int64_t i = 0; i < s.batch * s.group; ++i) {
    const int64_t g = i % s.group;
    FolioGemmF32 args =
        gemm_args(s, w + g * s.c_out * s.k(), bias ? bias + g * s.c_out : nullptr, finish);
    args.n = pixels;
    args.c = y + i * s.c_out * pixels;
    if (finish.z) args.addend = finish.z + i * s.c_out * pixels;
    GemmB b;
    b.data = x + i * s.c_in * pixels;
    b.row_stride = pixels;
    b.col_stride = 1;
    b.unpacked = true;
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, b));
  }
  return Status::ok();
}

Status run_tiled(OpRun& run, const ConvSizes& s, const float* x, const float* w, const float* bias,
                 const ConvFinish& finish, float* y) {
  const FolioKernels& kernels = run.kernels();
  const int64_t pixels = s.window.out_count();
  const int64_t tiles = (pixels + kConvTile - 1) / kConvTile;
  const auto tile_bytes = align_up(static_cast<size_t>(s.k() * kConvTile) * sizeof(float), 64);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, tile_bytes, &scratch));
  run.parallel().for_range(s.batch * s.group * tiles, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t i = chunk / tiles;
      const int64_t g = i % s.group;
      const int64_t pixel = chunk % tiles * kConvTile;
      FolioGemmF32 args =
          gemm_args(s, w + g * s.c_out * s.k(), bias ? bias + g * s.c_out : nullptr, finish);
      args.n = std::min(kConvTile, pixels - pixel);
      auto* tile = reinterpret_cast<float*>(block.data());
      gather_conv_tile(s, x + i * s.c_in * s.window.in_count(), pixel, args.n, tile);
      args.b = tile;
      args.c = y + i * s.c_out * pixels + pixel;
      if (finish.z) args.addend = finish.z + i * s.c_out * pixels + pixel;
      kernels.gemm_f32(&args);
    }
  });
  return Status::ok();
}

// What no product did.
void finish_rows(OpRun& run, const ConvSizes& s, const ConvFinish& finish, float* y) {
  if (!finish.z && finish.activation.kind == Activation::Kind::kIdentity) return;
  run.parallel().for_range(s.out.count(), kElementGrain, [&](int64_t begin, int64_t end) {
    finish.apply(run.kernels(), begin, end - begin, y);
  });
}

template <typename T>
void run_direct(OpRun& run, const ConvSizes& s, const T* x, const T* w, const T* bias, T* y) {
  run.parallel().for_range(s.batch * s.group * s.c_out, 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t channel = plane % (s.group * s.c_out);
      const int64_t image_group = plane / s.c_out;
      conv_plane(s, x + image_group * s.c_in * s.window.in_count(), w + channel * s.k(),
                 bias ? bias[channel] : T{}, y + plane * s.window.out_count());
    }
  });
}

// Bytes of a file, for those who read floats. (The product of a 1x1 filter reads bytes.)
Result<const float*> aligned_weights(OpRun& run, const Tensor& w) {
  if (is_aligned_for(w)) return w.data<float>();
  FOLIO_TRY(uint8_t * copy, run.scratch(w.bytes()));
  std::memcpy(copy, w.raw(), w.bytes());
  return reinterpret_cast<const float*>(copy);
}

// Filters over few channels, of float.
Status run_few_channels(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                        const float* bias, const ConvFinish& finish, float* y) {
  // Many taps repay a copy whose rows go on without a border.
  const bool copies = s.window.kernel_count() > kPlaneTaps && fits_depthwise(s);
  if (fits_plane_filters(s) && !copies) {
    return run_plane_filters(run, s, x, w, bias, finish, y);
  }
  if (fits_depthwise(s)) {
    FOLIO_RETURN_IF_ERROR(run_depthwise(run, s, x, w, bias, y));
  } else {
    run_direct(run, s, x, w, bias, y);
  }
  finish_rows(run, s, finish, y);
  return Status::ok();
}

Status run_f32(OpRun& run, const ConvSizes& s, const float* x, const Tensor& weights,
               const float* bias, const ConvFinish& finish, float* y) {
  const bool is_depthwise = s.c_in == 1 && s.c_out < FOLIO_F32P16_COLUMNS;
  const bool is_few = is_small_group(s.group, s.c_out, s.c_in) && fits_depthwise(s);
  const int64_t pixels = s.window.out_count();
  if (s.group > 1 && s.k() > 1 && pixels > 1 && is_pointwise(s.window) &&
      reads_in_place(run.kernels(), s.c_out, pixels, s.k())) {
    FOLIO_TRY(const float* w, aligned_weights(run, weights));
    run_pointwise_groups(run, s, x, w, bias, finish, y);
  } else if (!is_depthwise && !is_few && is_pointwise(s.window)) {
    const auto* w = reinterpret_cast<const float*>(weights.raw());
    FOLIO_RETURN_IF_ERROR(run_pointwise(run, s, x, w, bias, finish, y));
  } else {
    FOLIO_TRY(const float* w, aligned_weights(run, weights));
    if (fits_deep_planes(s)) return run_deep_planes(run, s, x, w, bias, finish, y);
    if (is_depthwise || is_few) return run_few_channels(run, s, x, w, bias, finish, y);
    FOLIO_RETURN_IF_ERROR(run_tiled(run, s, x, w, bias, finish, y));
  }
  FolioGemmF32 probe{};
  if (!finish.activation.set_in_kernel(&probe))
    finish_rows(run, s, {nullptr, finish.activation}, y);
  return Status::ok();
}

Status run_widened(OpRun& run, const ConvSizes& s, const Tensor& x, const Tensor& w,
                   const Tensor* b, const ConvFinish& finish, Tensor* y) {
  FOLIO_TRY(float* widened, widen_half(run, w));
  const Tensor w32(DType::kFloat, w.shape(), reinterpret_cast<uint8_t*>(widened), {});
  return run_in_float(run, x, b, y, [&](const float* x32, const float* b32, float* y32) {
    return run_f32(run, s, x32, w32, b32, finish, y32);
  });
}

class Conv final : public OpKernel {
 public:
  ConvAttrs attrs;
  bool fused = false;
  Activation activation;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* w, run.tensor(1, x->dtype()));
    FOLIO_TRY(const Tensor* b, run.optional_tensor(2, x->dtype()));
    FOLIO_TRY(const ConvSizes s, conv_sizes(attrs, x->shape(), w->shape(), b));
    FOLIO_TRY(const Tensor* z, addend(run, x->dtype(), s));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), s.out));
    if (y->count() == 0) return Status::ok();
    ConvFinish finish{nullptr, activation};
    switch (x->dtype()) {
      case DType::kFloat:
        if (z) finish.z = z->data<float>();
        return run_f32(run, s, x->data<float>(), *w, b ? b->data<float>() : nullptr, finish,
                       y->data_mut<float>());
      case DType::kDouble:
        run_direct(run, s, x->data<double>(), w->data<double>(), b ? b->data<double>() : nullptr,
                   y->data_mut<double>());
        if (fused) finish_doubles(run, z ? z->data<double>() : nullptr, y);
        return Status::ok();
      case DType::kFloat16:
      case DType::kBfloat16:
        if (z) {
          FOLIO_TRY(finish.z, widen_half(run, *z));
        }
        return run_widened(run, s, *x, *w, b, finish, y);
      default:
        return not_implemented("Conv of ", dtype_name(x->dtype()));
    }
  }

 private:
  // Z, or null.
  Result<const Tensor*> addend(const OpRun& run, DType dtype, const ConvSizes& s) const {
    if (!fused) return static_cast<const Tensor*>(nullptr);
    return conv_addend(run, 3, dtype, s.out);
  }

  void finish_doubles(OpRun& run, const double* z, Tensor* y) const {
    auto* const to = y->data_mut<double>();
    run.parallel().for_range(y->count(), kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = activation.of(z ? to[i] + z[i] : to[i]);
    });
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Conv>();
  FOLIO_TRY(kernel->attrs, parse_conv(build.attrs()));
  kernel->fused = build.node().op_type != "Conv";
  if (kernel->fused) {
    FOLIO_TRY(const std::vector<float> parameters, build.attrs().get_floats("activation_params"));
    FOLIO_TRY(kernel->activation, parse_fused_activation(build.attrs(), parameters));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_conv(OpRegistry& registry) {
  OpDef def;
  def.type = "Conv";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.infer = [](OpInfer& infer) { return infer_conv(infer, infer.dtype(0), 0, 1); };
  def.make = make;
  def.one_type = 0b1111;
  registry.add(def);
  def.domain = "com.microsoft";
  def.type = "FusedConv";
  def.max_inputs = 4;
  registry.add(def);
  def.domain = "folio";  // of channels_last.cc
  def.type = "PlanesConv";
  def.unaligned_inputs = 1U << 1;
  registry.add(def);
}

}  // namespace folio
