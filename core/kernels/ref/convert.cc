// Between f32 and the 16-bit float formats, in integer arithmetic on the bit patterns.
#include <string.h>

#include "core/kernels/ref/ref.h"

static uint16_t load_u16(const void* x, int64_t i) {
  uint16_t bits;
  memcpy(&bits, static_cast<const char*>(x) + 2 * i, 2);
  return bits;
}

static void store_u16(void* y, int64_t i, uint32_t bits) {
  const uint16_t narrow = static_cast<uint16_t>(bits);
  memcpy(static_cast<char*>(y) + 2 * i, &narrow, 2);
}

// Half: 1 sign, 5 exponent (bias 15), 10 mantissa bits; float: 1, 8 (bias 127), 23.
static uint32_t widen_half(uint32_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude > 0x7c00u) return sign | 0x7fc00000u | (magnitude << 13);  // NaN, made quiet
  if (magnitude == 0x7c00u) return sign | 0x7f800000u;                     // inf
  if (magnitude >= 0x0400u) return sign | ((magnitude << 13) + ((127 - 15) << 23));
  // Subnormal: magnitude * 2^-24, exact in f32.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return sign | bits;
}

static uint32_t narrow_to_half(uint32_t bits) {
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  // From 65520 = 2^16 - 2^4 on, the tie and above, values round to inf.
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude >= 0x38800000u) {  // 2^-14: normal. A carry out of the mantissa is right as it is.
    const uint32_t odd = (magnitude >> 13) & 1u;
    return sign | ((magnitude - ((127u - 15u) << 23) + 0xfffu + odd) >> 13);
  }
  // Subnormal: adding 0.5 puts the unit 2^-24 into the last mantissa bit, so the addition rounds.
  float value;
  memcpy(&value, &magnitude, 4);
  value += 0.5f;
  uint32_t rounded;
  memcpy(&rounded, &value, 4);
  return sign | (rounded - 0x3f000000u);
}

static uint32_t narrow_to_bf16(uint32_t bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x0040u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

void f16_to_f32__ref(int64_t n, const void* x, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = widen_half(load_u16(x, i));
    memcpy(y + i, &bits, 4);
  }
}

static void f32_to_f16__ref(int64_t n, const float* x, void* y) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    memcpy(&bits, x + i, 4);
    store_u16(y, i, narrow_to_half(bits));
  }
}

void bf16_to_f32__ref(int64_t n, const void* x, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits = uint32_t{load_u16(x, i)} << 16;
    if ((bits & 0x7fffffffu) > 0x7f800000u) bits |= 0x00400000u;
    memcpy(y + i, &bits, 4);
  }
}

static void f32_to_bf16__ref(int64_t n, const float* x, void* y) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    memcpy(&bits, x + i, 4);
    store_u16(y, i, narrow_to_bf16(bits));
  }
}

static void bf16p16_to_f32__ref(int64_t rows, const void* x, float* y) {
  const int64_t columns = FOLIO_F32P16_COLUMNS;
  for (int64_t p = 0; p < rows; ++p) {
    for (int64_t c = 0; c < columns; ++c) {
      const uint32_t bits = uint32_t{load_u16(x, folio_bf16p16_at(p, c))} << 16;
      memcpy(y + p * columns + c, &bits, 4);
    }
  }
}

void fill_convert__ref(FolioKernels* table) {
  table->bf16p16_to_f32 = bf16p16_to_f32__ref;
  table->f16_to_f32 = f16_to_f32__ref;
  table->f32_to_f16 = f32_to_f16__ref;
  table->bf16_to_f32 = bf16_to_f32__ref;
  table->f32_to_bf16 = f32_to_bf16__ref;
}
