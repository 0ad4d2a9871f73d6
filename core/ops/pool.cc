// Pooling over 1 to 3 spatial dims: MaxPool, AveragePool, LpPool and their Global forms.
//
// Source: ONNX operator spec: MaxPool (1, 8 indices, 10 ceil_mode and dilations, 11, 12, 22),
//         AveragePool (1, 7, 10, 11, 19 dilations, 22), LpPool (1 auto_pad as 2, 2, 11, 18, 22),
//         GlobalMaxPool, GlobalAveragePool (1, 22), GlobalLpPool (1, 2, 22).
//         com.microsoft QLinearAveragePool and QLinearGlobalAveragePool, version 1: x and y int8 or
//         uint8 with scale and zero point, averaged in float; channels_last: x [N, spatial..., C].
// Shapes: x [N, C, spatial...] -> y [N, C, out...], each window reduced to one element.
// Types:  float, double; float16 and bfloat16 in float; MaxPool also int8 and uint8.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/op_gemm.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_window.h"

namespace folio {
namespace {

enum class PoolKind : uint8_t { kMax, kAverage, kLp };

struct PoolAttrs {
  PoolKind kind = PoolKind::kMax;
  bool global = false;
  bool count_pad = false;
  bool column_major = false;  // MaxPool storage_order: how Indices count
  int64_t p = 2;
  WindowAttrs window;
};

// How many taps an average divides by: those inside the image, or inside image and padding (a
// ceil_mode window may hang over the padding too; what hangs over never counts).
int64_t divisor(const PoolAttrs& attrs, const Window& w, const WindowTaps r[]) {
  int64_t count = 1;
  for (int d = 0; d < kSpatial; ++d) {
    if (!attrs.count_pad) {
      count *= r[d].to - r[d].from;
      continue;
    }
    const int64_t room = w.in[d] + w.pad_end[d] - r[d].first;
    count *= std::min(w.kernel[d], (room + w.dilation[d] - 1) / w.dilation[d]);
  }
  return std::max<int64_t>(count, 1);
}

// Calls body(value, index in the plane) for each tap inside the image.
template <typename T, typename Body>
void for_taps(const Window& w, const WindowTaps r[], const T* x, Body&& body) {
  for (int64_t kd = r[0].from; kd < r[0].to; ++kd) {
    const int64_t d = r[0].first + kd * w.dilation[0];
    for (int64_t kh = r[1].from; kh < r[1].to; ++kh) {
      const int64_t row = (d * w.in[1] + r[1].first + kh * w.dilation[1]) * w.in[2];
      for (int64_t kw = r[2].from; kw < r[2].to; ++kw) {
        const int64_t at = row + r[2].first + kw * w.dilation[2];
        body(x[at], at);
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

template <typename T>
void max_window(const PoolAttrs& attrs, const Window& w, const WindowTaps r[], const T* x, T* y,
                int64_t base, int64_t* index) {
  T best = lowest<T>();
  int64_t best_at = -1;
  for_taps(w, r, x, [&](T value, int64_t at) {
    if (value > best || best_at < 0 || value != value) {
      best = value;
      best_at = at;
    }
  });
  *y = best;
  if (index && best_at >= 0) {
    *index = base + (attrs.column_major ? column_major_index(w, best_at) : best_at);
  } else if (index) {
    *index = base;  // a window of padding only
  }
}

template <typename T>
T lp_norm(const PoolAttrs& attrs, const Window& w, const WindowTaps r[], const T* x) {
  T sum{};
  const T power = static_cast<T>(attrs.p);
  for_taps(w, r, x, [&](T value, int64_t) {
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
  for (int64_t d = 0; d < w.out[0]; ++d) {
    for (int64_t h = 0; h < w.out[1]; ++h) {
      for (int64_t v = 0; v < w.out[2]; ++v, ++at) {
        const WindowTaps r[kSpatial] = {taps_inside(w, 0, d), taps_inside(w, 1, h),
                                        taps_inside(w, 2, v)};
        if (attrs.kind == PoolKind::kMax) {
          max_window(attrs, w, r, x, y + at, base, indices ? indices + at : nullptr);
          continue;
        }
        if constexpr (std::is_floating_point_v<T>) {
          if (attrs.kind == PoolKind::kLp) {
            y[at] = lp_norm(attrs, w, r, x);
            continue;
          }
          T sum{};
          for_taps(w, r, x, [&](T value, int64_t) { sum += value; });
          y[at] = sum / static_cast<T>(divisor(attrs, w, r));
        }
      }
    }
  }
}

template <typename T>
void pool_planes(OpRun& run, const PoolAttrs& attrs, const Window& w, int64_t planes, const T* x,
                 T* y, int64_t* indices) {
  const int64_t work = std::max<int64_t>(w.out_count() * w.kernel_count(), 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / work);
  run.parallel().for_range(planes, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      pool_plane(attrs, w, x + p * w.in_count(), y + p * w.out_count(), p * w.in_count(),
                 indices ? indices + p * w.out_count() : nullptr);
    }
  });
}

class Pool : public OpKernel {
 public:
  PoolAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Window w, window_of(x->shape()));
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
        pool_planes(run, attrs, w, planes, x->data<float>(), y->data_mut<float>(), indices);
        return Status::ok();
      case DType::kDouble:
        pool_planes(run, attrs, w, planes, x->data<double>(), y->data_mut<double>(), indices);
        return Status::ok();
      case DType::kFloat16:
      case DType::kBfloat16: {
        FOLIO_TRY(const float* x32, widen_half(run, *x));
        FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
        auto* y32 = reinterpret_cast<float*>(bytes);
        pool_planes(run, attrs, w, planes, x32, y32, indices);
        narrow_half(run, y32, y);
        return Status::ok();
      }
      case DType::kInt8:
        if (is_max)
          pool_planes(run, attrs, w, planes, x->data<int8_t>(), y->data_mut<int8_t>(), indices);
        break;
      case DType::kUint8:
        if (is_max)
          pool_planes(run, attrs, w, planes, x->data<uint8_t>(), y->data_mut<uint8_t>(), indices);
        break;
      default:
        return not_implemented("pooling of ", dtype_name(x->dtype()));
    }
    return is_max ? Status::ok() : not_implemented("average of ", dtype_name(x->dtype()));
  }

 protected:
  Result<Window> window_of(const Shape& x) const {
    if (x.rank() < 2) return invalid_argument("input ", x.to_string(), " has too few dims");
    if (!attrs.global) {
      return make_window(attrs.window, x, attrs.window.kernel);
    }
    // A global pool sees any number of spatial dims as one row.
    Window w;
    w.rank = x.rank() - 2;
    if (w.rank > kSpatial) return not_implemented("global pooling of ", x.to_string());
    w.in[2] = w.kernel[2] = x.product(2, x.rank());
    if (w.in[2] == 0) return invalid_argument("input ", x.to_string(), " has an empty spatial dim");
    return w;
  }
};

// Inputs X, x_scale, x_zero, y_scale, y_zero.
class QLinearPool final : public Pool {
 public:
  bool channels_last = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const QuantScalar qx, quant_scalar(run, 1, 2, x->dtype()));
    FOLIO_TRY(const QuantScalar qy, quant_scalar(run, 3, 4, x->dtype()));
    if (x->rank() < 2) return invalid_argument("input ", x->shape().to_string(), " is too flat");
    const Shape shape = channels_last ? to_first(x->shape()) : x->shape();
    FOLIO_TRY(const Window w, window_of(shape));
    Shape out{shape[0], shape[1]};
    w.append_out(&out);
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), channels_last ? to_last(out) : out));
    if (y->count() == 0) return Status::ok();
    FOLIO_TRY(uint8_t * x_bytes, run.scratch(static_cast<size_t>(x->count()) * sizeof(float)));
    FOLIO_TRY(uint8_t * y_bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
    auto* x32 = reinterpret_cast<float*>(x_bytes);
    auto* y32 = reinterpret_cast<float*>(y_bytes);
    dispatch_byte(x->dtype(), [&](auto quantized) {
      using Q = decltype(quantized);
      each_element(run, shape, w.in_count(), [&](int64_t first, int64_t stored) {
        x32[first] = static_cast<float>(Q::get(x->raw(), stored) - qx.zero);
      });
      pool_planes(run, attrs, w, shape[0] * shape[1], x32, y32, nullptr);
      each_element(run, shape, w.out_count(), [&](int64_t first, int64_t stored) {
        const float value = y32[first] * qx.scale;
        Q::set(y->raw_mut(), stored, quantize_one<Q>(value, qy.scale, qy.zero));
      });
    });
    return Status::ok();
  }

 private:
  static Shape to_first(const Shape& last) {
    Shape first = last;
    first.erase(last.rank() - 1);
    first.insert(1, last[last.rank() - 1]);
    return first;
  }
  static Shape to_last(const Shape& first) {
    Shape last = first;
    last.erase(1);
    last.push_back(first[1]);
    return last;
  }

  // Calls body(index with channels first, index as stored) for each element of planes of `pixels`.
  template <typename Body>
  void each_element(OpRun& run, const Shape& shape, int64_t pixels, Body&& body) const {
    const int64_t channels = shape[1];
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, pixels));
    run.parallel().for_range(shape[0] * channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t first = plane * pixels;
        const int64_t last = plane / channels * pixels * channels + plane % channels;
        for (int64_t p = 0; p < pixels; ++p) {
          body(first + p, channels_last ? last + p * channels : first + p);
        }
      }
    });
  }
};

Status infer(OpInfer& infer, bool global) {
  const Dims* given = infer.dims_of(0);
  std::optional<Dims> x;
  if (given) x = *given;
  FOLIO_TRY(const int64_t channels_last, infer.attrs().get_int("channels_last", 0));
  if (x && x->size() >= 2 && channels_last != 0) {
    std::rotate(x->begin() + 1, x->end() - 1, x->end());
  }
  std::optional<Dims> out;
  if (x && x->size() >= 2) {
    FOLIO_TRY(const WindowAttrs attrs, parse_window(infer.attrs()));
    const size_t rank = x->size() - 2;
    out = Dims{(*x)[0], (*x)[1]};
    for (size_t axis = 0; axis < rank; ++axis) {
      if (global) {
        out->push_back(Dim::of(1));
      } else if (attrs.kernel.size() == rank) {
        out->push_back(
            window_out_dim(attrs, infer.table(), (*x)[axis + 2], attrs.kernel[axis], axis, rank));
      } else {
        return invalid_graph("kernel_shape has ", attrs.kernel.size(), " entries, the input ",
                             type_to_string(infer.input(0)), " ", rank, " spatial dims");
      }
    }
  }
  if (out && channels_last != 0) std::rotate(out->begin() + 1, out->begin() + 2, out->end());
  infer.set_tensor(0, infer.dtype(0), out);
  infer.set_tensor(1, DType::kInt64, std::move(out));
  return Status::ok();
}

template <PoolKind kind, bool global, typename Kernel>
Result<std::unique_ptr<Kernel>> make_kernel(OpBuild& build) {
  auto kernel = std::make_unique<Kernel>();
  kernel->attrs.kind = kind;
  kernel->attrs.global = global;
  const Attributes& attrs = build.attrs();
  if (!global) {
    FOLIO_TRY(kernel->attrs.window, parse_window(attrs));
    if (kernel->attrs.window.kernel.empty()) {
      return invalid_graph("attribute 'kernel_shape' is required but missing");
    }
  }
  FOLIO_TRY(const int64_t count_pad, attrs.get_int("count_include_pad", 0));
  FOLIO_TRY(const int64_t storage_order, attrs.get_int("storage_order", 0));
  kernel->attrs.count_pad = count_pad != 0;
  kernel->attrs.column_major = storage_order != 0;
  if (kind == PoolKind::kLp) {
    // Version 1 had a float p.
    const AttributeDef* p = attrs.find("p");
    if (p && p->type == AttributeDef::Type::kFloat) {
      kernel->attrs.p =
          static_cast<int64_t>(std::clamp(p->floats.empty() ? 2.0F : p->floats[0], 1.0F, 1e6F));
    } else {
      FOLIO_TRY(kernel->attrs.p, attrs.get_int("p", 2));
    }
    if (kernel->attrs.p < 1) return invalid_graph("attribute 'p' is ", kernel->attrs.p);
  }
  return kernel;
}

template <PoolKind kind, bool global>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(auto kernel, (make_kernel<kind, global, Pool>(build)));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

template <bool global>
Result<std::unique_ptr<OpKernel>> make_qlinear(OpBuild& build) {
  FOLIO_TRY(auto kernel, (make_kernel<PoolKind::kAverage, global, QLinearPool>(build)));
  FOLIO_TRY(const int64_t channels_last, build.attrs().get_int("channels_last", 0));
  kernel->channels_last = channels_last != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

template <bool global>
OpDef qlinear_def(std::string_view type) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = type;
  def.min_inputs = 4;
  def.max_inputs = 5;
  def.infer = [](OpInfer& i) { return infer(i, global); };
  def.make = make_qlinear<global>;
  return def;
}

template <PoolKind kind, bool global>
OpDef def_of(std::string_view type) {
  OpDef def;
  def.type = type;
  def.max_outputs = kind == PoolKind::kMax && !global ? 2 : 1;
  def.infer = [](OpInfer& i) { return infer(i, global); };
  def.make = make<kind, global>;
  return def;
}

}  // namespace

void register_pool(OpRegistry& registry) {
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
