// Weights of small integers in blocks. Codes of up to 4 bits are looked up in a register.
#include "core/kernels/x86_avx512/x86_avx512.h"

#include "core/kernels/x86_avx512/vec.h"

constexpr int kDotColumns[4] = {4, 4, 4, 4};

/* Of 4 bits the code that they are, where codes have kBits. */
template <int kBits>
VFN V code_floats(void) {
  return kBits == 4 ? _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
                    : _mm512_setr_ps(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}

namespace {

template <int kBits>
struct Decoder {
  V table; /* of every code the weight */

  [[gnu::always_inline]] void set(float zero, float scale) {
    table = v_mul(v_sub(code_floats<kBits>(), v_set1(zero)), v_set1(scale));
  }
  /* The look-up takes the low 4 bits of an index. */
  template <int kPlace>
  [[gnu::always_inline]] V decode(VI bytes) const {
    if constexpr (kPlace > 0) bytes = vi_shift_right(bytes, kPlace * kBits);
    return _mm512_permutexvar_ps(bytes, table);
  }
};

template <>
struct Decoder<8> {
  V zero, scale;

  [[gnu::always_inline]] void set(float zero_, float scale_) {
    zero = v_set1(zero_);
    scale = v_set1(scale_);
  }
  template <int kPlace>
  [[gnu::always_inline]] V decode(VI bytes) const {
    return v_mul(v_sub(v_from_int(bytes), zero), scale);
  }
};

template <>
struct Decoder<kFolioBlockLevels> : Decoder<4> {
  [[gnu::always_inline]] void set(const float* levels, float scale) {
    table = v_mul(v_load(levels), v_set1(scale));
  }
};

}  // namespace

#include "core/kernels/vector/blocks.inl"

template <int kQuads>
VFN void load_quads(const uint8_t* const* rows, int64_t at, VI (*quads)[kPanelVectors]) {
  VI four[4]; /* [column][quad] */
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    four[i] = _mm512_castsi128_si512(load_row<kQuads>(rows[4 * i] + at));
    four[i] = _mm512_inserti32x4(four[i], load_row<kQuads>(rows[4 * i + 1] + at), 1);
    four[i] = _mm512_inserti32x4(four[i], load_row<kQuads>(rows[4 * i + 2] + at), 2);
    four[i] = _mm512_inserti32x4(four[i], load_row<kQuads>(rows[4 * i + 3] + at), 3);
  }
#pragma GCC unroll 2
  for (int pair = 0; pair < kQuads; pair += 2) { /* quads 0 and 1, then 2 and 3, of 8 columns */
    const VI pick = vi_add(
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29), vi_set1(pair));
    const VI low = _mm512_permutex2var_epi32(four[0], pick, four[1]);
    const VI high = _mm512_permutex2var_epi32(four[2], pick, four[3]);
    quads[pair][0] = _mm512_shuffle_i64x2(low, high, 0x44);
    if (pair + 1 < kQuads) quads[pair + 1][0] = _mm512_shuffle_i64x2(low, high, 0xEE);
  }
}

/* The look-up takes the low 4 bits of an index. */
template <int kBits>
VFN V low_code_floats(VI quads) {
  if constexpr (kBits == 8) return v_from_int(vi_and(quads, vi_set1(255)));
  return _mm512_permutexvar_ps(quads, code_floats<kBits>());
}

VFN V look_up_levels(const float* levels, VI quads) {
  return _mm512_permutexvar_ps(quads, v_load(levels));
}

VFN V gather_floats(const void* p, int64_t stride) {
  const VI lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_i32gather_ps(_mm512_mullo_epi32(lanes, vi_set1((int32_t)stride)), p, 4);
}

void folio_fill_blocks__x86_avx512(FolioKernels* table) { fill_blocks(table); }
