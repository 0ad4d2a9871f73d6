// Float16 and BFloat16: 16-bit floating point elements, computed in float.
//
// Math:    widening is exact; narrowing rounds to nearest, ties to even, overflows to infinity and
//          keeps NaN a (quiet) NaN.
// Threads: value types.
//
// Whole rows go through the kernels' f16_to_f32 and its relatives; these types serve the operators
// that are templates over the element type.
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/dtype.h"

namespace folio {

inline bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

inline float half_to_float(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude < 0x0400) {  // zero or subnormal: a multiple of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  if (magnitude >= 0x7c00) {  // infinity or NaN
    const uint32_t quiet = magnitude > 0x7c00 ? 0x400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (magnitude & 0x3ffu) << 13);
  }
  constexpr uint32_t kRebias = (127 - 15) << 10;
  return std::bit_cast<float>(sign | (magnitude + kRebias) << 13);
}

inline uint16_t float_to_half(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  const uint32_t sign = all >> 16 & 0x8000u;
  const uint32_t bits = all & 0x7fffffffu;
  uint32_t out = 0;
  if (bits > 0x7f800000u) {
    out = 0x7e00u | (bits >> 13 & 0x3ffu);
  } else if (bits >= 0x477ff000u) {  // 65520 and above round to infinity
    out = 0x7c00u;
  } else if (bits < 0x38800000u) {
    // Below 2^-14: adding 0.5, whose last place is 2^-24, lets the addition do the rounding.
    out = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5f) - 0x3f000000u;
  } else {
    constexpr uint32_t kRebias = (127 - 15) << 23;
    out = (bits - kRebias + 0xfffu + (bits >> 13 & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | out);
}

inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

struct Float16 {
  uint16_t bits;

  Float16() = default;
  explicit Float16(float value) : bits(float_to_half(value)) {}
  operator float() const { return half_to_float(bits); }  // NOLINT: exact, so implicit
};

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) : bits(float_to_bfloat16(value)) {}
  operator float() const { return bfloat16_to_float(bits); }  // NOLINT: exact, so implicit
};

static_assert(sizeof(Float16) == 2 && sizeof(BFloat16) == 2);

}  // namespace folio
