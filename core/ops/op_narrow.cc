#include "core/ops/op_narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace folio {
namespace {

constexpr int kNoCode = -1;

// sign | exponent | mantissa; codes are of the magnitude, without the sign bit.
struct Format {
  int mantissa_bits;
  int bias;
  int largest;   // code of the largest number
  int infinity;  // kNoCode: none
  int nan;       // with the sign bit where the format has a single NaN
  bool negative_zero;
  int sign_bit;
};

constexpr Format kE4M3FN{3, 7, 0x7e, kNoCode, 0x7f, true, 0x80};
constexpr Format kE4M3FNUZ{3, 8, 0x7f, kNoCode, 0x80, false, 0x80};
constexpr Format kE5M2{2, 15, 0x7b, 0x7c, 0x7f, true, 0x80};
constexpr Format kE5M2FNUZ{2, 16, 0x7f, kNoCode, 0x80, false, 0x80};
constexpr Format kE2M1{1, 1, 0x7, kNoCode, kNoCode, true, 0x8};

const Format& format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3FNUZ:
      return kE4M3FNUZ;
    case DType::kFloat8E5M2:
      return kE5M2;
    case DType::kFloat8E5M2FNUZ:
      return kE5M2FNUZ;
    case DType::kFloat4E2M1:
      return kE2M1;
    default:
      return kE4M3FN;
  }
}

constexpr int kScaleBias = 127;
constexpr uint8_t kScaleNan = 0xff;

// A power of two with the exponent only.
uint8_t float_to_scale(float value, bool saturate, ScaleRounding rounding) {
  if (std::isnan(value) || value < 0) return kScaleNan;
  if (std::isinf(value)) return saturate ? kScaleNan - 1 : kScaleNan;
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  int code = exponent - 1 + kScaleBias;
  const bool up = rounding == ScaleRounding::kUp        ? fraction > 0.5F
                  : rounding == ScaleRounding::kNearest ? fraction >= 0.75F
                                                        : false;
  if (up) ++code;
  if (code < 0) return 0;
  if (code >= kScaleNan) return saturate ? kScaleNan - 1 : kScaleNan;
  return static_cast<uint8_t>(code);
}

}  // namespace

bool is_narrow_float(DType dtype) {
  return dtype == DType::kFloat8E4M3FN || dtype == DType::kFloat8E4M3FNUZ ||
         dtype == DType::kFloat8E5M2 || dtype == DType::kFloat8E5M2FNUZ ||
         dtype == DType::kFloat4E2M1 || dtype == DType::kFloat8E8M0;
}

float narrow_to_float(DType dtype, uint8_t code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (dtype == DType::kFloat8E8M0) {
    return code == kScaleNan ? kNan : std::ldexp(1.0F, code - kScaleBias);
  }
  const Format& format = format_of(dtype);
  const int magnitude = code & (format.sign_bit - 1);
  const bool negative = (code & format.sign_bit) != 0;
  if (format.nan != kNoCode) {
    if (!format.negative_zero && code == format.nan) return kNan;
    if (format.negative_zero && magnitude > format.largest && magnitude != format.infinity) {
      return kNan;
    }
  }
  float value = std::numeric_limits<float>::infinity();
  if (magnitude != format.infinity) {
    const int exponent = magnitude >> format.mantissa_bits;
    const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
    const int whole = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
    const int scale = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
    value = std::ldexp(static_cast<float>(whole), scale);
  }
  return negative ? -value : value;
}

uint8_t float_to_narrow(DType dtype, float value, bool saturate, ScaleRounding rounding) {
  if (dtype == DType::kFloat8E8M0) return float_to_scale(value, saturate, rounding);
  const Format& format = format_of(dtype);
  if (std::isnan(value)) {
    // Four bits have no NaN: zero is as good as any.
    if (format.nan == kNoCode) return 0;
    const bool keep_sign = format.negative_zero && std::signbit(value);
    return static_cast<uint8_t>(format.nan | (keep_sign ? format.sign_bit : 0));
  }
  const int sign = std::signbit(value) ? format.sign_bit : 0;
  const float magnitude = std::fabs(value);
  int code = format.largest + 1;
  if (!std::isinf(magnitude)) {
    const int lowest = 1 - format.bias;
    const int exponent = magnitude == 0 ? lowest : std::max(lowest, std::ilogb(magnitude));
    // Units of the last place; a carry runs into the exponent by itself.
    const double units = std::ldexp(double{magnitude}, format.mantissa_bits - exponent);
    const int64_t whole = std::llrint(units);
    const int64_t wide = (int64_t{exponent - lowest} << format.mantissa_bits) + whole;
    code = static_cast<int>(std::min<int64_t>(wide, format.largest + 1));
  }
  if (code > format.largest) {
    if (saturate || format.nan == kNoCode) {
      code = format.largest;
    } else if (format.infinity != kNoCode) {
      code = format.infinity;
    } else {
      return static_cast<uint8_t>(format.negative_zero ? format.nan | sign : format.nan);
    }
  }
  if (code == 0 && !format.negative_zero) return 0;
  return static_cast<uint8_t>(code | sign);
}

}  // namespace folio
