// Quantized element types and how scales and zero points lie over a tensor.
//
// Flow:    QuantizeLinear, DequantizeLinear and their kin plan with plan_scales(), then work on
// rows
//          in which scale and zero point step by 0 or 1.
// Owns:    plain values.
// Errors:  kInvalidArgument for scales whose shape fits neither per tensor, per axis nor blocks.
#pragma once

#include <algorithm>

#include "core/ops/op_broadcast.h"

namespace folio {

// One quantized type: values as int32 (read also from sub-byte elements), and their bounds.
template <DType kType, int kBits, bool kSigned>
struct QuantizedType {
  static constexpr DType kDType = kType;
  static constexpr bool kSubByte = kBits < 8;
  static constexpr bool kIsByte = kBits == 8;
  static constexpr int32_t kMin = kSigned ? static_cast<int32_t>(-(int64_t{1} << (kBits - 1))) : 0;
  static constexpr int32_t kMax =
      static_cast<int32_t>((int64_t{1} << (kSigned ? kBits - 1 : kBits)) - 1);

  static int32_t get(const uint8_t* raw, int64_t i) {
    if constexpr (kBits == 8) return kSigned ? static_cast<int8_t>(raw[i]) : raw[i];
    if constexpr (kBits == 16) {
      const uint16_t v = reinterpret_cast<const uint16_t*>(raw)[i];
      return kSigned ? static_cast<int16_t>(v) : v;
    }
    if constexpr (kBits == 32) return reinterpret_cast<const int32_t*>(raw)[i];
    if constexpr (kBits < 8) {
      constexpr int kPerByte = 8 / kBits;
      const int32_t v = raw[i / kPerByte] >> (i % kPerByte * kBits) & ((1 << kBits) - 1);
      return kSigned && v > kMax ? v - (1 << kBits) : v;
    }
  }
  // Not for sub-byte types: their bytes are shared.
  static void set(uint8_t* raw, int64_t i, int32_t value) {
    if constexpr (kBits == 8) raw[i] = static_cast<uint8_t>(value);
    if constexpr (kBits == 16) reinterpret_cast<uint16_t*>(raw)[i] = static_cast<uint16_t>(value);
  }
};

// Calls body(QuantizedType<...>{}) for a quantized dtype; false for others.
template <typename Body>
bool dispatch_quantized(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kUint8:
      return body(QuantizedType<DType::kUint8, 8, false>{}), true;
    case DType::kInt8:
      return body(QuantizedType<DType::kInt8, 8, true>{}), true;
    case DType::kUint16:
      return body(QuantizedType<DType::kUint16, 16, false>{}), true;
    case DType::kInt16:
      return body(QuantizedType<DType::kInt16, 16, true>{}), true;
    case DType::kInt32:
      return body(QuantizedType<DType::kInt32, 32, true>{}), true;
    case DType::kUint4:
      return body(QuantizedType<DType::kUint4, 4, false>{}), true;
    case DType::kInt4:
      return body(QuantizedType<DType::kInt4, 4, true>{}), true;
    case DType::kUint2:
      return body(QuantizedType<DType::kUint2, 2, false>{}), true;
    case DType::kInt2:
      return body(QuantizedType<DType::kInt2, 2, true>{}), true;
    default:
      return false;
  }
}

// Nearest integer, ties to even, of what fits 22 bits: the sum's last place is 1.
inline int32_t round_small(float value) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  return static_cast<int32_t>(value + kMagic - kMagic);
}

// saturate(round(ratio) + zero) as Q; NaN as zero.
template <typename Q>
int32_t quantize_ratio(float ratio, int32_t zero) {
  // Past this, any zero point of 16 bits leaves the range anyway.
  constexpr float kBound = 200000.0f;
  const float bounded = ratio != ratio ? 0.0f : std::clamp(ratio, -kBound, kBound);
  return std::clamp(round_small(bounded) + zero, Q::kMin, Q::kMax);
}

// The same of x / scale.
template <typename Q>
int32_t quantize_one(float x, float scale, int32_t zero) {
  return quantize_ratio<Q>(x / scale, zero);
}

inline bool is_byte(DType dtype) { return dtype == DType::kUint8 || dtype == DType::kInt8; }

// Calls body(QuantizedType<...>{}) for int8 or uint8, which the caller has checked.
template <typename Body>
void dispatch_byte(DType dtype, Body&& body) {
  if (dtype == DType::kInt8) {
    body(QuantizedType<DType::kInt8, 8, true>{});
  } else {
    body(QuantizedType<DType::kUint8, 8, false>{});
  }
}

inline int32_t byte_at(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::kInt8 ? tensor.data<int8_t>()[i] : tensor.raw()[i];
}

// A float, float16, bfloat16 or int32 tensor as floats: its own bytes, or scratch.
Result<const float*> as_floats(OpRun& run, int input, const Tensor& tensor);

// Scale and zero point of a whole tensor.
struct QuantScalar {
  float scale = 1.0F;
  int32_t zero = 0;
};

// Inputs `scale` (float) and `zero` (of type `dtype`, absent: 0), both of one element.
Result<QuantScalar> quant_scalar(const OpRun& run, int scale, int zero, DType dtype);

// Scale and zero point (as uint8) of the range of x, zero included: DynamicQuantizeLinear.
QuantScalar dynamic_quant(OpRun& run, int64_t count, const float* x);

// Codes of x in int8 or uint8.
void quantize_bytes(OpRun& run, int64_t count, const float* x, QuantScalar to, DType dtype,
                    uint8_t* y);
inline FolioByteScale byte_scale(QuantScalar quant, DType dtype) {
  return {quant.scale, quant.zero, dtype == DType::kInt8 ? 1 : 0};
}

// Input i as int8 or uint8.
Result<const Tensor*> byte_tensor(const OpRun& run, int i);

// Rows of the data over which the scale is constant (step 0) or steps along (step 1).
struct ScalePlan {
  enum class Mode { kTensor, kAxis, kBlocks };
  Mode mode = Mode::kTensor;
  int64_t axis_dim = 1;
  int64_t inner = 1;
  int64_t block = 1;   // elements of the axis under one scale
  int64_t blocks = 1;  // scales along the axis
  int64_t rows = 1;
  int64_t row = 1;  // length of a row; with inner == 1 the last block may be shorter
  int64_t step = 0;
};

// `block_size` 0: per tensor or per axis, by the shape of the scale.
Result<ScalePlan> plan_scales(const Shape& data, const Shape& scale, int64_t axis,
                              int64_t block_size);

// body(data_offset, scale_offset, count) for each row.
template <typename Body>
void for_scale_rows(Parallel& parallel, const ScalePlan& plan, Body&& body) {
  using Mode = ScalePlan::Mode;
  if (plan.row == 0 || plan.rows == 0) return;
  if (plan.mode == Mode::kTensor) {
    parallel.for_range(plan.row, kElementGrain,
                       [&](int64_t begin, int64_t end) { body(begin, int64_t{0}, end - begin); });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kElementGrain / plan.row);
  parallel.for_range(plan.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (plan.mode == Mode::kAxis) {
        body(r * plan.row, plan.inner == 1 ? 0 : r % plan.axis_dim, plan.row);
      } else if (plan.inner == 1) {
        const int64_t at = r % plan.blocks * plan.block;
        body(r / plan.blocks * plan.axis_dim + at, r, std::min(plan.block, plan.axis_dim - at));
      } else {
        const int64_t outer = r / plan.axis_dim;
        const int64_t block = r % plan.axis_dim / plan.block;
        body(r * plan.row, (outer * plan.blocks + block) * plan.inner, plan.row);
      }
    }
  });
}

}  // namespace folio
