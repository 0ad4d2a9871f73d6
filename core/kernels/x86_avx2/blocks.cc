// Weights of small integers in blocks.
#include "core/kernels/x86_avx2/x86_avx2.h"

#include "core/kernels/x86_avx2/vec.h"

constexpr int kDotColumns[4] = {4, 2, 2, 2};

namespace {

template <int kBits>
struct Decoder {
  V zero, scale;

  [[gnu::always_inline]] void set(float zero_, float scale_) {
    zero = v_set1(zero_);
    scale = v_set1(scale_);
  }
  template <int kPlace>
  [[gnu::always_inline]] V decode(VI bytes) const {
    if constexpr (kPlace > 0) bytes = vi_shift_right(bytes, kPlace * kBits);
    if constexpr (kBits < 8) bytes = vi_and(bytes, vi_set1((1 << kBits) - 1));
    return v_mul(v_sub(v_from_int(bytes), zero), scale);
  }
};

/* Of 16 numbers: the low 3 bits of `index` look up among 8, bit 31 of `which` says among which 8.
 */
VFN V pick_of_16(V low, V high, VI index, VI which) {
  return v_select(which, v_permute(high, index), v_permute(low, index));
}

template <>
struct Decoder<kFolioBlockLevels> {
  V low, high;

  [[gnu::always_inline]] void set(const float* levels, float scale) {
    low = v_mul(v_load(levels), v_set1(scale));
    high = v_mul(v_load(levels + kLanes), v_set1(scale));
  }
  template <int kPlace>
  [[gnu::always_inline]] V decode(VI bytes) const {
    const VI index = kPlace > 0 ? vi_shift_right(bytes, 4) : bytes;
    return pick_of_16(low, high, index, vi_shift_left(bytes, kPlace > 0 ? 24 : 28));
  }
};

}  // namespace

#include "core/kernels/vector/blocks.inl"
#include "core/kernels/vector/turn.inl"

template <int kQuads>
VFN void load_quads(const uint8_t* const* rows, int64_t at, VI (*quads)[kPanelVectors]) {
#pragma GCC unroll 2
  for (int v = 0; v < kPanelVectors; ++v) {
    __m256 two[4]; /* columns i and i + 4: [quad]; then [quad][column] */
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m128i low = load_row<kQuads>(rows[v * kLanes + i] + at);
      const __m128i high = load_row<kQuads>(rows[v * kLanes + i + 4] + at);
      two[i] = _mm256_castsi256_ps(_mm256_set_m128i(high, low));
    }
    turn_lanes(two);
#pragma GCC unroll 4
    for (int d = 0; d < kQuads; ++d) quads[d][v] = _mm256_castps_si256(two[d]);
  }
}

template <int kBits>
VFN V low_code_floats(VI quads) {
  return v_from_int(vi_and(quads, vi_set1((1 << kBits) - 1)));
}

VFN V look_up_levels(const float* levels, VI quads) {
  return pick_of_16(v_load(levels), v_load(levels + kLanes), quads, vi_shift_left(quads, 28));
}

VFN V gather_floats(const void* p, int64_t stride) {
  const VI lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_i32gather_ps((const float*)p, _mm256_mullo_epi32(lanes, vi_set1((int32_t)stride)),
                             4);
}

constexpr int64_t kTilePanels = 1;
constexpr int64_t kAhead = 3 * 1024;
constexpr auto kFetchHint = _MM_HINT_T0;
template <int kBits>
constexpr bool kIsCentred = kBits == 8;

#include "core/kernels/vector/block_row.inl"

/* Two products of codes of 8 bits do not fit into 16: they are taken less 128, whose signs the
 * row's numbers, of at most 127, can have instead: 2 * 128 * 127 < 2^15. */
template <int kBits>
VFN void add_dots(VI* dots, VI codes, VI low, VI high) {
  const VI ones = _mm256_set1_epi16(1);
  if constexpr (kBits == 4) {
    const VI of_low = _mm256_maddubs_epi16(low_codes<4>(codes), low);
    const VI of_high = _mm256_maddubs_epi16(high_codes(codes), high);
    *dots = vi_add(*dots, _mm256_madd_epi16(_mm256_add_epi16(of_low, of_high), ones));
  } else {
    const VI centred = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
    const VI products =
        _mm256_maddubs_epi16(_mm256_abs_epi8(centred), _mm256_sign_epi8(low, centred));
    *dots = vi_add(*dots, _mm256_madd_epi16(products, ones));
  }
}

#include "core/kernels/vector/block_pairs.inl"

#include "core/kernels/x86_avx2/block_tiles.inl"

void folio_fill_blocks__x86_avx2(FolioKernels* table) {
  fill_blocks(table);
  table->block_dots_s8 = block_dots_s8;
}
