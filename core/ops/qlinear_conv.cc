// Convolutions of 8-bit tensors: QLinearConv and ConvInteger.
//
// Source: ONNX operator spec, opset 10; com.microsoft QLinearConv, version 1 (channels_last 0).
// Shapes: as Conv; w_scale and w_zero: one element or one per output channel; b int32 [M].
// Math:   sums of (x - x_zero) * (w - w_zero) + b are exact in int32 (wrapping): products of
//         floats over at most 256 taps at a time. QLinearConv: y = saturate(round(sum *
//         x_scale * w_scale / y_scale) + y_zero).
// Types:  int8 and uint8.
#include <algorithm>

#include "core/ops/op_conv.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_integer_matmul.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

template <typename Q>
struct ByteImage {
  const uint8_t* x;
  int32_t zero;

  float get(int64_t at) const { return static_cast<float>(Q::get(x, at) - zero); }
  void panel(int64_t at, float* dst) const {
    for (int64_t i = 0; i < PanelOrigin::kPanel; ++i) dst[i] = get(at + i);
  }
};

// What is computed and where it goes: out.store(channel, at, count, sums) takes sums of one output
// channel (counted over all groups) for the elements of y from `at` on.
template <typename Out>
struct Job {
  const ConvSizes& s;
  const uint8_t* x;
  int32_t x_zero;
  const float* w;  // without zero points
  const Out& out;
};

// Channels of one input and one output each: no matrix in it.
template <typename Q, typename Out>
Status run_depthwise(OpRun& run, const Job<Out>& job) {
  const ConvSizes& s = job.s;
  const int64_t pixels = s.window.out_count();
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(
      ThreadScratch::make(run, static_cast<size_t>(pixels) * 2 * sizeof(float), &scratch));
  run.parallel().for_range(s.batch * s.group, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    auto* plane = reinterpret_cast<float*>(block.data());
    auto* sums = reinterpret_cast<int32_t*>(plane + pixels);
    for (int64_t i = begin; i < end; ++i) {
      const ByteImage<Q> image{job.x + i * s.window.in_count(), job.x_zero};
      conv_plane(s, image, job.w + i % s.group * s.k(), 0.0F, plane);
      for (int64_t p = 0; p < pixels; ++p) sums[p] = static_cast<int32_t>(plane[p]);
      job.out.store(i % s.group, i * pixels, pixels, sums);
    }
  });
  return Status::ok();
}

// Sums of one tile [c_out, n] in int32.
template <typename Q>
void tile_sums(const FolioKernels& kernels, const ConvSizes& s, const ByteImage<Q>& image,
               FolioGemmF32 args, int64_t pixel, float* tile, int32_t* sums) {
  const float* weights = args.a;
  args.b = tile;
  for (int64_t from = 0; from < s.k(); from += kExactDepth) {
    const int64_t to = std::min(s.k(), from + kExactDepth);
    gather_conv_tile(s, image, pixel, args.n, from, to, tile);
    args.a = weights + from;
    args.k = to - from;
    kernels.gemm_f32(&args);
    for (int64_t i = 0; i < s.c_out * args.n; ++i) {
      const auto value = static_cast<uint32_t>(static_cast<int32_t>(args.c[i]));
      sums[i] = static_cast<int32_t>(from == 0 ? value : static_cast<uint32_t>(sums[i]) + value);
    }
  }
}

template <typename Q, typename Out>
Status run_tiled(OpRun& run, const Job<Out>& job) {
  const ConvSizes& s = job.s;
  const FolioKernels& kernels = run.kernels();
  const int64_t pixels = s.window.out_count();
  const int64_t tiles = (pixels + kConvTile - 1) / kConvTile;
  const int64_t tile_floats = std::min(s.k(), kExactDepth) * kConvTile;
  const auto bytes =
      align_up(static_cast<size_t>(tile_floats + 2 * s.c_out * kConvTile) * sizeof(float), 64);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, bytes + kernels.gemm_f32_scratch_bytes, &scratch));
  run.parallel().for_range(s.batch * s.group * tiles, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    auto* tile = reinterpret_cast<float*>(block.data());
    float* block_out = tile + tile_floats;
    auto* sums = reinterpret_cast<int32_t*>(block_out + s.c_out * kConvTile);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t i = chunk / tiles;
      const int64_t g = i % s.group;
      const int64_t pixel = chunk % tiles * kConvTile;
      FolioGemmF32 args{};
      args.m = s.c_out;
      args.n = args.c_row_stride = std::min(kConvTile, pixels - pixel);
      args.a = job.w + g * s.c_out * s.k();
      args.a_row_stride = s.k();
      args.a_col_stride = 1;
      args.c = block_out;
      args.alpha = 1.0F;
      args.scratch = block.data() + bytes;
      const ByteImage<Q> image{job.x + i * s.c_in * s.window.in_count(), job.x_zero};
      tile_sums(kernels, s, image, args, pixel, tile, sums);
      for (int64_t m = 0; m < s.c_out; ++m) {
        job.out.store(g * s.c_out + m, (i * s.c_out + m) * pixels + pixel, args.n,
                      sums + m * args.n);
      }
    }
  });
  return Status::ok();
}

// Weights without their zero points, [M, K] floats.
Result<const float*> widen_weights(OpRun& run, const Tensor& w, int zero_input,
                                   const ConvSizes& s) {
  const int64_t channels = w.dim(0);
  FOLIO_TRY(const ByteZero zero,
            byte_zero(run, zero_input, w.dtype(), 1, channels, ZeroAxis::kRows));
  return widen_bytes(run, w, zero, 1, channels, s.k());
}

template <typename Out>
Status run_conv(OpRun& run, const ConvSizes& s, const Tensor& x, int32_t x_zero, const float* w,
                const Out& out) {
  const Job<Out> job{s, x.raw(), x_zero, w, out};
  const bool depthwise = s.c_in == 1 && s.c_out == 1 && s.k() <= kExactDepth;
  Status status;
  dispatch_byte(x.dtype(), [&](auto quantized) {
    using Q = decltype(quantized);
    status = depthwise ? run_depthwise<Q>(run, job) : run_tiled<Q>(run, job);
  });
  return status;
}

// ---------------------------------------------------------------- ConvInteger

struct StoreSums {
  int32_t* y;

  void store(int64_t, int64_t at, int64_t count, const int32_t* sums) const {
    std::copy_n(sums, count, y + at);
  }
};

class ConvInteger final : public OpKernel {
 public:
  ConvAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* w, byte_tensor(run, 1));
    FOLIO_TRY(const ConvSizes s, conv_sizes(attrs, x->shape(), w->shape(), nullptr));
    int32_t x_zero = 0;
    if (run.has_input(2)) {
      FOLIO_TRY(const Tensor* zero, run.tensor(2, x->dtype()));
      if (zero->count() != 1) {
        return invalid_argument("x_zero_point ", zero->shape().to_string(),
                                " must have one element");
      }
      x_zero = byte_at(*zero, 0);
    }
    FOLIO_TRY(Tensor * y, run.output(0, DType::kInt32, s.out));
    if (y->count() == 0) return Status::ok();
    if (s.c_in == 0) {
      std::fill_n(y->data_mut<int32_t>(), y->count(), 0);
      return Status::ok();
    }
    FOLIO_TRY(const float* weights, widen_weights(run, *w, 3, s));
    return run_conv(run, s, *x, x_zero, weights, StoreSums{y->data_mut<int32_t>()});
  }
};

// ---------------------------------------------------------------- QLinearConv

template <typename Q>
struct StoreQuantized {
  const float* scales;
  int64_t scale_step;
  float factor;  // x_scale; the division by y_scale comes last
  float y_scale;
  int32_t y_zero;
  const int32_t* bias;  // or null
  uint8_t* y;

  void store(int64_t channel, int64_t at, int64_t count, const int32_t* sums) const {
    const float scale = factor * scales[channel * scale_step] / y_scale;
    const auto offset = static_cast<uint32_t>(bias ? bias[channel] : 0);
    for (int64_t i = 0; i < count; ++i) {
      const auto sum = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + offset);
      Q::set(y, at + i, quantize_ratio<Q>(static_cast<float>(sum) * scale, y_zero));
    }
  }
};

// Inputs x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B.
class QLinearConv final : public OpKernel {
 public:
  ConvAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* w, byte_tensor(run, 3));
    FOLIO_TRY(const Tensor* y_zero, byte_tensor(run, 7));
    const Tensor* b = nullptr;
    if (run.has_input(8)) {
      FOLIO_TRY(b, run.tensor(8, DType::kInt32));
    }
    FOLIO_TRY(const ConvSizes s, conv_sizes(attrs, x->shape(), w->shape(), b));
    FOLIO_TRY(const QuantScalar x_quant, quant_scalar(run, 1, 2, x->dtype()));
    FOLIO_TRY(const QuantScalar y_quant, quant_scalar(run, 6, 7, y_zero->dtype()));
    FOLIO_TRY(const Tensor* scales, run.tensor(4, DType::kFloat));
    FOLIO_TRY(const ByteZero scale_at, line_strides(*scales, 1, w->dim(0), ZeroAxis::kRows));
    FOLIO_TRY(Tensor * y, run.output(0, y_zero->dtype(), s.out));
    if (y->count() == 0) return Status::ok();
    if (s.c_in == 0) return invalid_argument("X ", x->shape().to_string(), " has no channels");
    FOLIO_TRY(const float* weights, widen_weights(run, *w, 5, s));
    Status status;
    dispatch_byte(y->dtype(), [&](auto quantized) {
      StoreQuantized<decltype(quantized)> out{};
      out.scales = scales->data<float>();
      out.scale_step = scale_at.row_stride;
      out.factor = x_quant.scale;
      out.y_scale = y_quant.scale;
      out.y_zero = y_quant.zero;
      out.bias = b ? b->data<int32_t>() : nullptr;
      out.y = y->raw_mut();
      status = run_conv(run, s, *x, x_quant.zero, weights, out);
    });
    return status;
  }
};

// ---------------------------------------------------------------- registration

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Kernel>();
  FOLIO_TRY(kernel->attrs, parse_conv(build.attrs()));
  FOLIO_TRY(const int64_t channels_last, build.attrs().get_int("channels_last", 0));
  if (channels_last != 0) return not_implemented("attribute 'channels_last' is ", channels_last);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_qlinear_conv(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "ConvInteger",
                .since = 10,
                .min_inputs = 2,
                .max_inputs = 4,
                .infer = [](OpInfer& i) { return infer_conv(i, DType::kInt32, 0, 1); },
                .make = make<ConvInteger>});
  for (const std::string_view domain : {"", "com.microsoft"}) {
    registry.add({.domain = domain,
                  .type = "QLinearConv",
                  .since = domain.empty() ? 10 : 1,
                  .min_inputs = 8,
                  .max_inputs = 9,
                  .infer = [](OpInfer& i) { return infer_conv(i, i.dtype(7), 0, 3); },
                  .make = make<QLinearConv>});
  }
}

}  // namespace folio
