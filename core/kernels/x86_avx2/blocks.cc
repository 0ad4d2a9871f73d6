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

VFN V gather_floats(const void* p, int64_t stride) {
  const VI lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_i32gather_ps((const float*)p, _mm256_mullo_epi32(lanes, vi_set1((int32_t)stride)),
                             4);
}

constexpr int kTileRows = 4;
constexpr int kTilePanels = 1;
constexpr int64_t kColumnAtOnce = 1024;
constexpr int64_t kAhead = 3 * 1024;
constexpr _mm_hint kFetchHint = _MM_HINT_T0;
template <int kBits>
constexpr bool kIsCentred = kBits == 8;

#include "core/kernels/vector/block_rows.inl"

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

/* Adds in the order in which calls stand: g++ would add up products of several rows first, run out
 * of registers and keep sums in memory. */
VFN void add_pairs(VI* sum, VI codes, VI x) {
  __asm__("vpaddw %1, %0, %0" : "+x"(*sum) : "x"(_mm256_maddubs_epi16(codes, x)));
}

/* Of 4 bits: up to 16 bytes of a block, 32 products, fit into sums of 16 bits. */
template <int kRows, int kBytes>
VFN void dot_nibbles(const Thirds<kRows>& low, const Thirds<kRows>& high, int64_t row,
                     const uint8_t* codes, VI (*sum)[1]) {
  VI part[kRows];
#pragma GCC unroll 4
  for (int at = 0; at < kBytes; at += 4) {
    const VI w0 = vi_load(codes + 16 * at);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const VI x = quad_at(low.row_at(i, row) + at);
      if (at == 0) {
        part[i] = _mm256_maddubs_epi16(w0, x);
      } else {
        add_pairs(&part[i], w0, x);
      }
    }
    const VI w1 = vi_load(codes + 16 * at + 32);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      add_pairs(&part[i], w1, quad_at(high.row_at(i, row) + at));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    sum[i][0] = vi_add(sum[i][0], _mm256_madd_epi16(part[i], _mm256_set1_epi16(1)));
  }
}

/* Of 8 bits. */
template <int kRows>
VFN void dot_bytes_of_rows(int64_t blob, int64_t row, const int8_t* a, const uint8_t* codes,
                           VI (*sum)[1]) {
  for (int64_t at = 0; at < blob; at += 4) {
    const VI w = vi_load(codes + 8 * at);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const VI x = quad_at(a + i * row + at);
      add_dots<8>(&sum[i][0], w, x, x);
    }
  }
}

template <int kBits, int kRows, int kPanels>
VFN void dot_block(int64_t blob, int64_t row, const int8_t* const* planes,
                   const uint8_t* const* codes, VI (*sum)[kPanels]) {
  static_assert(kPanels == 1);
  if constexpr (kBits == 4) {
    Thirds<kRows> low, high;
    const int8_t* first[2] = {planes[0], planes[1]};
    const uint8_t* c = codes[0];
    /* Or each address made of them would be one that is kept, and counted on, in memory. */
    __asm__("" : "+r"(first[0]), "+r"(first[1]), "+r"(c));
    low.set(first[0], row);
    high.set(first[1], row);
    if (blob == 8) return dot_nibbles<kRows, 8>(low, high, row, c, sum);
    for (int64_t left = blob; left > 0; left -= 16) {
      dot_nibbles<kRows, 16>(low, high, row, c, sum);
      c += 256;
      low.add(16);
      high.add(16);
    }
  } else {
    dot_bytes_of_rows<kRows>(blob, row, planes[0], codes[0], sum);
  }
}

void folio_fill_blocks__x86_avx2(FolioKernels* table) {
  fill_blocks(table);
  table->block_dots_s8 = block_dots_s8;
}
