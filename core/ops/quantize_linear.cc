// QuantizeLinear and DequantizeLinear.
//
// Source: ONNX operator spec; opsets 10 (per tensor), 13 (per axis), 19 (16-bit floats, float8), 21
//         (blocks, 16-bit and 4-bit integers, output_dtype), 23 (float4), 24 (float8e8m0 scales),
//         25 (2-bit); com.microsoft version 1.
// Shapes: y has x's shape; scale and zero point: one element, [dims(axis)], or x's shape with
//         ceil(dims(axis) / block_size) at axis.
// Math:   quantize: saturate(round(x / scale) + zero_point), ties to even, NaN as 0; to float8 and
//         float4: x / scale + zero_point rounded as Cast does it (saturate: float8 only).
//         dequantize: (x - zero_point) * scale, in float. x / scale is in float too, whatever the
//         type of scale: neither that nor `precision` narrows it.
// Types:  QuantizeLinear: x float, float16, bfloat16, int32, all in float; y (u)int2, (u)int4,
//         (u)int8, (u)int16, float8 but E8M0, float4e2m1; scales as x, or float8e8m0.
//         DequantizeLinear: x (u)int2, (u)int4, (u)int8, (u)int16, int32, float8 but E8M0,
//         float4e2m1; y float, float16, bfloat16, all in float; scales as y, or with output_dtype
//         float8e8m0.
// Errors: kInvalidArgument for shapes and types that do not fit; kInvalidGraph for an output_dtype
//         that is no element type or not the zero point's.
#include <array>

#include "core/ops/op_gemm.h"
#include "core/ops/op_narrow.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct QuantizeOptions {
  int64_t axis = 1;
  int64_t block_size = 0;
  DType output_dtype = DType::kUndefined;
  bool saturate = true;

  static Result<QuantizeOptions> parse(const Attributes& attributes) {
    QuantizeOptions options;
    FOLIO_TRY(options.axis, attributes.get_int("axis", 1));
    FOLIO_TRY(options.block_size, attributes.get_int("block_size", 0));
    FOLIO_TRY(const int64_t dtype, attributes.get_int("output_dtype", 0));
    if (dtype != 0 && !dtype_known(dtype)) {
      return invalid_graph("attribute 'output_dtype' is ", dtype, ", which is no element type");
    }
    options.output_dtype = static_cast<DType>(dtype);
    FOLIO_TRY(const int64_t saturate, attributes.get_int("saturate", 1));
    options.saturate = saturate != 0;
    return options;
  }
};

// The zero point's bytes, or null when absent (0).
Result<const uint8_t*> zero_point_of(const OpRun& run, const Tensor& scale, DType dtype) {
  const uint8_t* none = nullptr;
  if (!run.has_input(2)) return none;
  FOLIO_TRY(const Tensor* zero, run.tensor(2, dtype));
  if (zero->count() != scale.count()) {
    return invalid_argument("zero point shape ", zero->shape().to_string(), " differs from scale ",
                            scale.shape().to_string());
  }
  return zero->raw();
}

// Scales are numbers, or float8e8m0: powers of two.
Result<const float*> scale_floats(OpRun& run, const Tensor& scale) {
  if (scale.dtype() != DType::kFloat8E8M0) return as_floats(run, 1, scale);
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(scale.count()) * sizeof(float)));
  auto* wide = reinterpret_cast<float*>(memory);
  for (int64_t i = 0, end = scale.count(); i < end; ++i) {
    wide[i] = narrow_to_float(scale.dtype(), scale.raw()[i]);
  }
  return static_cast<const float*>(wide);
}

// Elements of float8 or float4, but for their type's numbers.
struct NarrowCodes {
  const uint8_t* raw = nullptr;
  bool is_nibble = false;

  uint8_t at(int64_t i) const { return is_nibble ? raw[i / 2] >> (i % 2 * 4) & 0xf : raw[i]; }
};

bool is_narrow_code(DType dtype) { return is_narrow_float(dtype) && dtype != DType::kFloat8E8M0; }

using NarrowNumbers = std::array<float, 256>;  // by code

NarrowNumbers numbers_of(DType dtype) {
  NarrowNumbers numbers{};
  const int codes = 1 << dtype_bits(dtype);
  for (int code = 0; code < codes; ++code) {
    numbers[static_cast<size_t>(code)] = narrow_to_float(dtype, static_cast<uint8_t>(code));
  }
  return numbers;
}

// ---------------------------------------------------------------- quantize

// One byte for each code, also those of 4 bits.
void quantize_narrow(OpRun& run, const ScalePlan& plan, DType dtype, bool saturate, const float* x,
                     const float* scale, const uint8_t* zero, uint8_t* y) {
  const NarrowNumbers numbers = numbers_of(dtype);
  const NarrowCodes zeros{zero, dtype_is_subbyte(dtype)};
  for_scale_rows(run.parallel(), plan, [&](int64_t at, int64_t scale_at, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t s = scale_at + i * plan.step;
      const float offset = zero ? numbers[zeros.at(s)] : 0.0F;
      y[at + i] =
          float_to_narrow(dtype, x[at + i] / scale[s] + offset, saturate, ScaleRounding::kNearest);
    }
  });
}

template <typename Q>
void quantize_rows(OpRun& run, const ScalePlan& plan, const float* x, const float* scale,
                   const uint8_t* zero, uint8_t* y) {
  // Values of sub-byte types are written as whole bytes first.
  using Byte = QuantizedType<DType::kInt8, 8, true>;
  using Out = std::conditional_t<Q::kSubByte, Byte, Q>;
  for_scale_rows(run.parallel(), plan, [&](int64_t at, int64_t scale_at, int64_t count) {
    if (Q::kIsByte && plan.step == 0) {
      const FolioByteScale to{scale[scale_at], zero ? Q::get(zero, scale_at) : 0, Q::kMin < 0};
      run.kernels().quantize_f32(count, x + at, &to, y + at);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t s = scale_at + i * plan.step;
      Out::set(y, at + i, quantize_one<Q>(x[at + i], scale[s], zero ? Q::get(zero, s) : 0));
    }
  });
}

void pack_bytes(const uint8_t* values, int64_t count, int bits, uint8_t* packed) {
  const int per_byte = 8 / bits;
  const int mask = (1 << bits) - 1;
  std::fill_n(packed, (count + per_byte - 1) / per_byte, uint8_t{0});
  for (int64_t i = 0; i < count; ++i) {
    const int shift = static_cast<int>(i % per_byte) * bits;
    packed[i / per_byte] |= static_cast<uint8_t>((values[i] & mask) << shift);
  }
}

class Quantize final : public OpKernel {
 public:
  explicit Quantize(const QuantizeOptions& options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* scale, run.tensor(1));
    DType dtype = options_.output_dtype;
    if (run.has_input(2)) {
      FOLIO_TRY(const Tensor* zero, run.tensor(2));
      if (dtype != DType::kUndefined && dtype != zero->dtype()) {
        return invalid_argument("the zero point is ", dtype_name(zero->dtype()),
                                ", output_dtype is ", dtype_name(dtype));
      }
      dtype = zero->dtype();
    } else if (dtype == DType::kUndefined) {
      dtype = DType::kUint8;
    }
    FOLIO_TRY(const ScalePlan plan,
              plan_scales(x->shape(), scale->shape(), options_.axis, options_.block_size));
    FOLIO_TRY(const uint8_t* zero, zero_point_of(run, *scale, dtype));
    FOLIO_TRY(const float* x_data, as_floats(run, 0, *x));
    FOLIO_TRY(const float* scale_data, scale_floats(run, *scale));
    if (dtype == DType::kInt32) return wrong_type(2, dtype);
    FOLIO_TRY(Tensor * y, run.output(0, dtype, x->shape()));
    uint8_t* bytes = y->raw_mut();
    if (dtype_is_subbyte(dtype)) {
      FOLIO_TRY(bytes, run.scratch(static_cast<size_t>(x->count())));
    }
    if (is_narrow_code(dtype)) {
      quantize_narrow(run, plan, dtype, options_.saturate, x_data, scale_data, zero, bytes);
    } else if (!dispatch_quantized(dtype, [&](auto quantized) {
                 using Q = decltype(quantized);
                 if constexpr (Q::kDType != DType::kInt32) {
                   quantize_rows<Q>(run, plan, x_data, scale_data, zero, bytes);
                 }
               })) {
      return invalid_argument("cannot quantize to ", dtype_name(dtype),
                              ", expected integers of up to 16 bits, float8 or float4");
    }
    if (bytes != y->raw()) pack_bytes(bytes, x->count(), dtype_bits(dtype), y->raw_mut());
    return Status::ok();
  }

 private:
  QuantizeOptions options_;
};

// ---------------------------------------------------------------- dequantize

template <typename Q>
void dequantize_rows(OpRun& run, const ScalePlan& plan, const uint8_t* x, const float* scale,
                     const uint8_t* zero, float* y) {
  // Only 32-bit values may leave int32 when the zero point is subtracted.
  using Difference = std::conditional_t<Q::kDType == DType::kInt32, int64_t, int32_t>;
  for_scale_rows(run.parallel(), plan, [&](int64_t at, int64_t scale_at, int64_t count) {
    if (Q::kIsByte && plan.step == 0) {
      const FolioByteScale from{scale[scale_at], zero ? Q::get(zero, scale_at) : 0, Q::kMin < 0};
      run.kernels().dequantize_b8(count, x + at, &from, y + at);
      return;
    }
    if (plan.step == 0) {
      const Difference offset = zero ? Q::get(zero, scale_at) : 0;
      const float factor = scale[scale_at];
      for (int64_t i = 0; i < count; ++i) {
        y[at + i] = static_cast<float>(Q::get(x, at + i) - offset) * factor;
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const Difference offset = zero ? Q::get(zero, scale_at + i) : 0;
      y[at + i] = static_cast<float>(Q::get(x, at + i) - offset) * scale[scale_at + i];
    }
  });
}

void dequantize_narrow(OpRun& run, const ScalePlan& plan, const Tensor& x, const float* scale,
                       const uint8_t* zero, float* y) {
  const NarrowNumbers numbers = numbers_of(x.dtype());
  const bool is_nibble = dtype_is_subbyte(x.dtype());
  const NarrowCodes codes{x.raw(), is_nibble};
  const NarrowCodes zeros{zero, is_nibble};
  for_scale_rows(run.parallel(), plan, [&](int64_t at, int64_t scale_at, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t s = scale_at + i * plan.step;
      const float offset = zero ? numbers[zeros.at(s)] : 0.0F;
      y[at + i] = (numbers[codes.at(at + i)] - offset) * scale[s];
    }
  });
}

class Dequantize final : public OpKernel {
 public:
  explicit Dequantize(const QuantizeOptions& options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* scale, run.tensor(1));
    if (scale->dtype() == DType::kInt32) return wrong_type(1, scale->dtype());
    const DType dtype =
        options_.output_dtype != DType::kUndefined ? options_.output_dtype : scale->dtype();
    FOLIO_TRY(const ScalePlan plan,
              plan_scales(x->shape(), scale->shape(), options_.axis, options_.block_size));
    FOLIO_TRY(const uint8_t* zero, zero_point_of(run, *scale, x->dtype()));
    FOLIO_TRY(const float* scale_data, scale_floats(run, *scale));
    const bool is_half = dtype == DType::kFloat16 || dtype == DType::kBfloat16;
    if (!is_half && dtype != DType::kFloat) {
      return invalid_argument("cannot dequantize to ", dtype_name(dtype),
                              ", expected float, float16 or bfloat16");
    }
    FOLIO_TRY(Tensor * y, run.output(0, dtype, x->shape()));
    float* out = reinterpret_cast<float*>(y->raw_mut());
    if (is_half) {
      FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(x->count()) * sizeof(float)));
      out = reinterpret_cast<float*>(memory);
    }
    if (is_narrow_code(x->dtype())) {
      dequantize_narrow(run, plan, *x, scale_data, zero, out);
    } else if (!dispatch_quantized(x->dtype(), [&](auto quantized) {
                 dequantize_rows<decltype(quantized)>(run, plan, x->raw(), scale_data, zero, out);
               })) {
      return wrong_type(0, x->dtype());
    }
    if (is_half) narrow_half(run, out, y);
    return Status::ok();
  }

 private:
  QuantizeOptions options_;
};

// ---------------------------------------------------------------- registration

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(const QuantizeOptions options, QuantizeOptions::parse(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<Kernel>(options));
}

void set_like_input(OpInfer& infer, DType dtype) {
  const Dims* dims = infer.dims_of(0);
  if (dtype == DType::kUndefined) return;
  infer.set_tensor(0, dtype, dims ? std::optional<Dims>(*dims) : std::nullopt);
}

Status infer_quantize(OpInfer& infer) {
  FOLIO_TRY(const QuantizeOptions options, QuantizeOptions::parse(infer.attrs()));
  DType dtype = options.output_dtype == DType::kUndefined ? DType::kUint8 : options.output_dtype;
  if (infer.has_input(2)) {
    dtype = infer.dtype(2);
    const bool known = dtype != DType::kUndefined && options.output_dtype != DType::kUndefined;
    if (known && dtype != options.output_dtype) {
      return invalid_graph("the zero point is ", dtype_name(dtype), ", output_dtype is ",
                           dtype_name(options.output_dtype));
    }
  }
  set_like_input(infer, dtype);
  return Status::ok();
}

Status infer_dequantize(OpInfer& infer) {
  FOLIO_TRY(const QuantizeOptions options, QuantizeOptions::parse(infer.attrs()));
  set_like_input(infer,
                 options.output_dtype == DType::kUndefined ? infer.dtype(1) : options.output_dtype);
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_quantize_linear(OpRegistry& registry) {
  for (const std::string_view domain : {"", "com.microsoft"}) {
    const int since = domain.empty() ? 10 : 1;
    registry.add({.domain = domain,
                  .type = "QuantizeLinear",
                  .since = since,
                  .min_inputs = 2,
                  .max_inputs = 3,
                  .infer = infer_quantize,
                  .make = make<Quantize>,
                  .keeps_half = domain.empty()});
    registry.add({.domain = domain,
                  .type = "DequantizeLinear",
                  .since = since,
                  .min_inputs = 2,
                  .max_inputs = 3,
                  .infer = infer_dequantize,
                  .make = make<Dequantize>,
                  .is_exact = true,
                  .keeps_half = domain.empty()});
  }
}

}  // namespace folio
