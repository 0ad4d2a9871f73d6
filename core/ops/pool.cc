// Pooling over 1 to 3 spatial dims: MaxPool, AveragePool, LpPool and their Global forms.
//
// Source: ONNX operator spec: MaxPool (1, 8 indices, 10 ceil_mode and dilations, 11, 12, 22),
//         AveragePool (1, 7, 10, 11, 19 dilations, 22), LpPool (1 auto_pad as 2, 2, 11, 18, 22),
//         GlobalMaxPool, GlobalAveragePool (1, 22), GlobalLpPool (1, 2, 22).
//         com.microsoft QLinearAveragePool and QLinearGlobalAveragePool, version 1: x and y int8 or
//         uint8 with scale and zero point, averaged in float; channels_last: x [N, spatial..., C].
//         With count_include_pad a window that ceil_mode lets hang over the padding counts whole
//         (as in ONNX Runtime), where AveragePool counts what lies inside of the padding.
// Shapes: x [N, C, spatial...] -> y [N, C, out...], each window reduced to one element.
// Types:  float, double; float16 and bfloat16 in float. MaxPool, GlobalMaxPool: also int8 and
//         uint8. QLinearAveragePool, QLinearGlobalAveragePool: int8 and uint8; scales float.
// Notes:  1 to 3 spatial dims.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/ops/op_byte_pool.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_integer_matmul.h"
#include "core/ops/op_order.h"
#include "core/ops/op_pool.h"
#include "core/ops/op_pool_lines.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Calls body(value) for each tap inside the image.
template <typename T, typename Body>
void for_taps(const Window& w, const WindowTaps r[], const T* x, Body&& body) {
  for (int64_t kd = r[0].from; kd < r[0].to; ++kd) {
    const int64_t d = r[0].first + kd * w.dilation[0];
    for (int64_t kh = r[1].from; kh < r[1].to; ++kh) {
      const int64_t row = (d * w.in[1] + r[1].first + kh * w.dilation[1]) * w.in[2];
      for (int64_t kw = r[2].from; kw < r[2].to; ++kw) {
        body(x[row + r[2].first + kw * w.dilation[2]]);
      }
    }
  }
}

int64_t column_major_index(const Window& w, int64_t at) {
  const int64_t v = at % w.in[2];
  const int64_t h = at / w.in[2] % w.in[1];
  const int64_t d = at / (w.in[2] * w.in[1]);
  return (v * w.in[1] + h) * w.in[0] + d;
}

template <typename T>
T lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}

// Without a branch, which compilers make of choices between floats.
template <typename T>
T choose(bool first, T a, T b) {
  using Bits = BitsOf<T>;
  const auto mask = static_cast<Bits>(-static_cast<Bits>(first));
  const auto chosen = (std::bit_cast<Bits>(a) & mask) | (std::bit_cast<Bits>(b) & ~mask);
  return std::bit_cast<T>(static_cast<Bits>(chosen));
}

// The greatest so far of some windows of a row, and where it stands in the plane.
template <typename T>
struct MaxColumns {
  static constexpr int64_t kMost = 64;
  int64_t first;
  int64_t count;
  T best[kMost];
  int64_t at[kMost];

  // One tap, `shift` columns from each window's first: which of two is greater no CPU foresees.
  void take(const Window& w, const T* x, int64_t row, int64_t shift) {
    const int64_t stride = w.stride[2];
    const auto windows = [&](int64_t columns) {  // that begin before that many
      const int64_t n = columns <= 0 ? 0 : (columns + stride - 1) / stride;
      return std::clamp<int64_t>(n - first, 0, count);
    };
    const int64_t end = windows(w.in[2] - shift);
    for (int64_t i = windows(-shift); i < end; ++i) {
      const int64_t place = row + (first + i) * stride + shift;
      const T value = x[place];
      const bool is_best = bool(value > best[i]) | bool(at[i] < 0) | bool(value != value);
      best[i] = choose(is_best, value, best[i]);
      at[i] = choose(is_best, place, at[i]);
    }
  }
};

// One row of windows, whose taps in depth and height are r[0] and r[1].
template <typename T>
void max_row(const PoolAttrs& attrs, const Window& w, const WindowTaps r[], const T* x, T* y,
             int64_t base, int64_t* index) {
  MaxColumns<T> some;
  for (some.first = 0; some.first < w.out[2]; some.first += some.kMost) {
    some.count = std::min(some.kMost, w.out[2] - some.first);
    std::fill_n(some.best, some.count, lowest<T>());
    std::fill_n(some.at, some.count, int64_t{-1});
    for (int64_t kd = r[0].from; kd < r[0].to; ++kd) {
      const int64_t d = r[0].first + kd * w.dilation[0];
      for (int64_t kh = r[1].from; kh < r[1].to; ++kh) {
        const int64_t row = (d * w.in[1] + r[1].first + kh * w.dilation[1]) * w.in[2];
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
          some.take(w, x, row, kw * w.dilation[2] - w.pad_begin[2]);
        }
      }
    }
    std::copy_n(some.best, some.count, y + some.first);
    for (int64_t i = 0; index && i < some.count; ++i) {
      const int64_t at = std::max<int64_t>(some.at[i], 0);  // 0: a window of padding only
      index[some.first + i] = base + (attrs.column_major ? column_major_index(w, at) : at);
    }
  }
}

template <typename T>
T lp_norm(const PoolAttrs& attrs, const Window& w, const WindowTaps r[], const T* x) {
  T sum{};
  const T power = static_cast<T>(attrs.p);
  for_taps(w, r, x, [&](T value) {
    sum += attrs.p == 2   ? value * value
           : attrs.p == 1 ? std::abs(value)
                          : std::pow(std::abs(value), power);
  });
  if (attrs.p == 2) return std::sqrt(sum);
  return attrs.p == 1 ? sum : std::pow(sum, 1 / power);
}

template <typename T>
void pool_plane(const PoolAttrs& attrs, const Window& w, const T* x, T* y, int64_t base,
                int64_t* indices) {
  int64_t at = 0;
  WindowTaps r[kSpatial];
  for (int64_t d = 0; d < w.out[0]; ++d) {
    r[0] = taps_inside(w, 0, d);
    for (int64_t h = 0; h < w.out[1]; ++h) {
      r[1] = taps_inside(w, 1, h);
      if (attrs.kind == PoolKind::kMax) {
        max_row(attrs, w, r, x, y + at, base, indices ? indices + at : nullptr);
        at += w.out[2];
        continue;
      }
      for (int64_t v = 0; v < w.out[2]; ++v, ++at) {
        r[2] = taps_inside(w, 2, v);
        if constexpr (std::is_floating_point_v<T>) {
          if (attrs.kind == PoolKind::kLp) {
            y[at] = lp_norm(attrs, w, r, x);
            continue;
          }
          T sum{};
          for_taps(w, r, x, [&](T value) { sum += value; });
          y[at] = sum / static_cast<T>(pool_divisor(attrs, w, r));
        }
      }
    }
  }
}

// One window that is the image.
bool is_whole(const Window& w) {
  bool whole = true;
  for (int d = 0; d < kSpatial; ++d) {
    whole = whole && w.out[d] == 1 && w.kernel[d] == w.in[d] && w.dilation[d] == 1 &&
            w.pad_begin[d] == 0 && w.pad_end[d] == 0;
  }
  return whole;
}

// A plane of which one number remains.
bool pool_whole(const FolioKernels& kernels, const PoolAttrs& attrs, const Window& w,
                const float* x, float* y) {
  const int64_t n = w.in_count();
  if (attrs.kind == PoolKind::kMax) {
    *y = kernels.max_f32(n, x);
  } else if (attrs.kind == PoolKind::kAverage) {
    *y = kernels.sum_f32(n, x) / static_cast<float>(n);
  } else {
    return false;
  }
  return true;
}

template <typename T>
Status pool_planes(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes, const T* x,
                   T* y, int64_t* indices) {
  if constexpr (std::is_same_v<T, float>) {
    if (!indices && !is_whole(w) && attrs.kind != PoolKind::kLp && fits_pool_lines(w)) {
      return pool_lines(run, attrs, w, planes, x, y);
    }
  }
  const int64_t work = std::max<int64_t>(w.out_count() * w.kernel_count(), 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / work);
  const bool whole = !indices && is_whole(w);
  run.parallel().for_range(planes, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      if constexpr (std::is_same_v<T, float>) {
        if (whole && pool_whole(run.kernels(), attrs, w, x + p * w.in_count(), y + p)) continue;
      }
      pool_plane(attrs, w, x + p * w.in_count(), y + p * w.out_count(), p * w.in_count(),
                 indices ? indices + p * w.out_count() : nullptr);
    }
  });
  return Status::ok();
}

class Pool : public OpKernel {
 public:
  PoolAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Window w, pool_window(attrs, x->shape()));
    Shape out{x->dim(0), x->dim(1)};
    w.append_out(&out);
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), out));
    int64_t* indices = nullptr;
    if (run.has_output(1)) {
      FOLIO_TRY(Tensor * index_tensor, run.output(1, DType::kInt64, out));
      indices = index_tensor->data_mut<int64_t>();
    }
    if (y->count() == 0) return Status::ok();
    const int64_t planes = x->dim(0) * x->dim(1);
    const bool is_max = attrs.kind == PoolKind::kMax;
    switch (x->dtype()) {
      case DType::kFloat:
        return pool_planes(run, attrs, w, planes, x->data<float>(), y->data_mut<float>(), indices);
      case DType::kDouble:
        return pool_planes(run, attrs, w, planes, x->data<double>(), y->data_mut<double>(),
                           indices);
      case DType::kFloat16:
      case DType::kBfloat16: {
        FOLIO_TRY(const float* x32, widen_half(run, *x));
        FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
        auto* y32 = reinterpret_cast<float*>(bytes);
        FOLIO_RETURN_IF_ERROR(pool_planes(run, attrs, w, planes, x32, y32, indices));
        narrow_half(run, y32, y);
        return Status::ok();
      }
      case DType::kInt8:
      case DType::kUint8:
        if (is_max && !indices) {
          return max_pool_bytes(run, w, planes, 1, x->dtype() == DType::kInt8, x->raw(),
                                y->raw_mut());
        }
        if (is_max && x->dtype() == DType::kInt8) {
          return pool_planes(run, attrs, w, planes, x->data<int8_t>(), y->data_mut<int8_t>(),
                             indices);
        }
        if (is_max) {
          return pool_planes(run, attrs, w, planes, x->raw(), y->raw_mut(), indices);
        }
        break;
      default:
        return not_implemented("pooling of ", dtype_name(x->dtype()));
    }
    return not_implemented("average of ", dtype_name(x->dtype()));
  }
};

// Inputs X, x_scale, x_zero, y_scale, y_zero.
class QLinearPool final : public Pool {
 public:
  bool last = false;  // channels

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const QuantScalar qx, quant_scalar(run, 1, 2, x->dtype()));
    FOLIO_TRY(const QuantScalar qy, quant_scalar(run, 3, 4, x->dtype()));
    if (x->rank() < 2) return invalid_argument("input ", x->shape().to_string(), " is too flat");
    const Shape shape = last ? channels_first(x->shape()) : x->shape();
    FOLIO_TRY(const Window w, pool_window(attrs, shape));
    Shape out{shape[0], shape[1]};
    w.append_out(&out);
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), last ? channels_last(out) : out));
    if (y->count() == 0) return Status::ok();
    if (last && is_whole(w) && w.in_count() <= kMostPixels) {
      return average_images(run, shape, w.in_count(), *x, qx, byte_scale(qy, x->dtype()),
                            y->raw_mut());
    }
    if (!last && is_whole(w) && w.in_count() <= kMostPixels) {
      return average_planes(run, y->count(), w.in_count(), *x, qx, byte_scale(qy, x->dtype()),
                            y->raw_mut());
    }
    return average_windows(run, shape, w, *x, qx, byte_scale(qy, x->dtype()), y);
  }

 private:
  static constexpr int64_t kMostPixels = 1 << 16;  // sums are exact in float as well

  static float mean_of(int32_t sum, int64_t pixels, int32_t zero, float scale) {
    const auto centred = static_cast<float>(sum - static_cast<int32_t>(pixels) * zero);
    return centred / static_cast<float>(pixels) * scale;
  }

  // Planes of bytes one after the other.
  static Status average_planes(OpRun& run, int64_t planes, int64_t pixels, const Tensor& x,
                               QuantScalar from, const FolioByteScale& to, uint8_t* y) {
    constexpr int64_t kPlanes = 64;
    FOLIO_TRY(const uint8_t* codes, unsigned_codes(run, x.raw(), x.count(), x.dtype()));
    const int32_t zero = from.zero + (x.dtype() == DType::kInt8 ? 128 : 0);
    const int64_t blocks = (planes + kPlanes - 1) / kPlanes;
    const int64_t grain = std::max<int64_t>(1, (1 << 17) / (pixels * kPlanes));
    run.parallel().for_range(blocks, grain, [&](int64_t begin, int64_t end) {
      float means[kPlanes];
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kPlanes;
        const int64_t count = std::min(kPlanes, planes - first);
        for (int64_t p = 0; p < count; ++p) {
          const int32_t sum = run.kernels().sum_u8(pixels, codes + (first + p) * pixels);
          means[p] = mean_of(sum, pixels, zero, from.scale);
        }
        run.kernels().quantize_f32(count, means, &to, y + first);
      }
    });
    return Status::ok();
  }

  // Sums of columns of bytes are those of a filter of ones: 64 channels and taps at a time.
  static Status average_images(OpRun& run, const Shape& shape, int64_t pixels, const Tensor& x,
                               QuantScalar from, const FolioByteScale& to, uint8_t* y) {
    constexpr int64_t kChannels = 64;
    constexpr int64_t kTaps = 64;
    FOLIO_TRY(const uint8_t* codes, unsigned_codes(run, x.raw(), x.count(), x.dtype()));
    const int32_t zero = from.zero + (x.dtype() == DType::kInt8 ? 128 : 0);
    const int64_t channels = shape[1];
    const int64_t blocks = (channels + kChannels - 1) / kChannels;
    const int64_t grain = std::max<int64_t>(1, (1 << 17) / (pixels * kChannels));
    run.parallel().for_range(shape[0] * blocks, grain, [&](int64_t begin, int64_t end) {
      alignas(64) uint8_t ones[kTaps * kChannels];
      std::fill(std::begin(ones), std::end(ones), uint8_t{1});
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kChannels;
        const int64_t image = i / blocks;
        const uint8_t* taps[kTaps];
        int32_t sums[2][kChannels] = {};
        FolioDepthwiseU8 args{};
        args.lines = args.pixels = args.sets = args.rows = args.step = args.dilation = 1;
        args.channels = std::min(kChannels, channels - first);
        args.x = taps;
        args.b = ones;
        args.y_row_stride = kChannels;
        const uint8_t* pixel = codes + image * pixels * channels + first;
        for (int64_t p = 0; p < pixels; p += args.columns) {
          args.columns = std::min(kTaps, pixels - p);
          for (int64_t t = 0; t < args.columns; ++t, pixel += channels) taps[t] = pixel;
          args.sums.offset = sums[p / kTaps % 2];
          args.y = sums[1 - p / kTaps % 2];
          run.kernels().depthwise_u8(&args);
        }
        const int32_t* total = sums[(pixels + kTaps - 1) / kTaps % 2];
        float means[kChannels];
        for (int64_t c = 0; c < args.channels; ++c) {
          means[c] = mean_of(total[c], pixels, zero, from.scale);
        }
        run.kernels().quantize_f32(args.channels, means, &to, y + image * channels + first);
      }
    });
    return Status::ok();
  }

  // In float, plane by plane.
  Status average_windows(OpRun& run, const Shape& shape, const Window& w, const Tensor& x,
                         QuantScalar from, const FolioByteScale& to, Tensor* y) const {
    const FolioKernels& kernels = run.kernels();
    const int64_t in = x.count();
    const int64_t out = y->count();
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(in + out) * sizeof(float)));
    auto* x32 = reinterpret_cast<float*>(memory);
    float* y32 = x32 + in;
    const uint8_t* codes = x.raw();
    uint8_t* means = y->raw_mut();
    if (last) {
      FOLIO_TRY(uint8_t * turned, run.scratch(static_cast<size_t>(in + out)));
      turn_images(run, shape[0], w.in_count(), shape[1], codes, turned);
      codes = turned;
      means = turned + in;
    }
    // Codes less the zero point, so that sums are exact.
    const FolioByteScale whole{1.0F, from.zero, to.is_signed};
    run.parallel().for_range(in, kElementGrain, [&](int64_t begin, int64_t end) {
      kernels.dequantize_b8(end - begin, codes + begin, &whole, x32 + begin);
    });
    FOLIO_RETURN_IF_ERROR(pool_planes(run, attrs, w, shape[0] * shape[1], x32, y32, nullptr));
    run.parallel().for_range(out, kElementGrain, [&](int64_t begin, int64_t end) {
      float* at = y32 + begin;
      kernels.binary_f32[kFolioMul](end - begin, at, 1, &from.scale, 0, at);
      kernels.quantize_f32(end - begin, at, &to, means + begin);
    });
    if (last) turn_images(run, shape[0], shape[1], w.out_count(), means, y->raw_mut());
    return Status::ok();
  }

  // Each image [rows, columns] the other way round.
  static void turn_images(OpRun& run, int64_t images, int64_t rows, int64_t columns,
                          const uint8_t* x, uint8_t* y) {
    const int64_t count = rows * columns;
    run.parallel().for_range(
        images, std::max<int64_t>(1, kElementGrain / (count + 1)), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            run.kernels().transpose_b8(rows, columns, x + i * count, columns, y + i * count, rows);
          }
        });
  }
};

template <PoolKind kind, bool global>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Pool>();
  FOLIO_TRY(kernel->attrs, parse_pool(build.attrs(), kind, global));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

template <bool global>
Result<std::unique_ptr<OpKernel>> make_qlinear(OpBuild& build) {
  auto kernel = std::make_unique<QLinearPool>();
  FOLIO_TRY(kernel->attrs, parse_pool(build.attrs(), PoolKind::kAverage, global));
  kernel->attrs.count_beyond = true;
  FOLIO_TRY(const int64_t channels_last, build.attrs().get_int("channels_last", 0));
  kernel->last = channels_last != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

template <bool global>
OpDef qlinear_def(std::string_view type) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = type;
  def.min_inputs = 4;
  def.max_inputs = 5;
  def.optional_inputs = 1U << 2;  // X's zero point
  def.float_inputs = 1U << 1 | 1U << 3;
  def.infer = [](OpInfer& infer) {
    FOLIO_TRY(const int64_t channels_last, infer.attrs().get_int("channels_last", 0));
    return infer_pool(infer, global, channels_last != 0);
  };
  def.make = make_qlinear<global>;
  return def;
}

template <PoolKind kind, bool global>
OpDef def_of(std::string_view type) {
  OpDef def;
  def.type = type;
  def.max_outputs = kind == PoolKind::kMax && !global ? 2 : 1;
  def.infer = [](OpInfer& infer) { return infer_pool(infer, global, /*channels_last=*/false); };
  def.make = make<kind, global>;
  return def;
}

}  // namespace

[[gnu::cold]] void register_pool(OpRegistry& registry) {
  registry.add(def_of<PoolKind::kMax, false>("MaxPool"));
  registry.add(def_of<PoolKind::kAverage, false>("AveragePool"));
  registry.add(def_of<PoolKind::kLp, false>("LpPool"));
  registry.add(def_of<PoolKind::kMax, true>("GlobalMaxPool"));
  registry.add(def_of<PoolKind::kAverage, true>("GlobalAveragePool"));
  registry.add(def_of<PoolKind::kLp, true>("GlobalLpPool"));
  registry.add(qlinear_def<false>("QLinearAveragePool"));
  registry.add(qlinear_def<true>("QLinearGlobalAveragePool"));
}

}  // namespace folio
