// Floating point formats of 8 and 4 bits: their codes from and to float.
//
// Source: ONNX, "Float stored in 8 bits" and "Float stored in 4 bits".
// Math:   widening is exact; narrowing rounds to nearest, ties to even. Overflow gives the largest
//         number (saturate) or else infinity where the format has one, or NaN.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"

namespace folio {

enum class ScaleRounding : uint8_t { kUp, kDown, kNearest };  // of float8e8m0 (round_mode)

// True for the types of this file.
bool is_narrow_float(DType dtype);

float narrow_to_float(DType dtype, uint8_t code);
uint8_t float_to_narrow(DType dtype, float value, bool saturate, ScaleRounding rounding);

}  // namespace folio
