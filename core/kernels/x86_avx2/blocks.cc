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

constexpr int kTileRows = 4;
constexpr int kTilePanels = 1;

#include "core/kernels/vector/block_rows.inl"

/* Sums over the quads of 32 codes times x, added to *dots. Two products of bytes of 8 bits do not
 * fit into 16. */
template <int kBits>
VFN void add_dots(VI* dots, VI codes, const VI* x) {
  const VI ones = _mm256_set1_epi16(1);
  if constexpr (kBits == 4) {
    const VI even = _mm256_maddubs_epi16(low_codes<4>(codes), x[0]);
    const VI odd = _mm256_maddubs_epi16(high_codes(codes), x[1]);
    *dots = vi_add(*dots, _mm256_madd_epi16(_mm256_add_epi16(even, odd), ones));
  } else { /* bytes 0 to 7 and 16 to 23, then the others: a block's stay in their lane */
    const VI zero = _mm256_setzero_si256();
    const VI low = _mm256_madd_epi16(_mm256_unpacklo_epi8(codes, zero), x[0]);
    const VI high = _mm256_madd_epi16(_mm256_unpackhi_epi8(codes, zero), x[1]);
    *dots = vi_add(*dots, vi_add(low, high));
  }
}

/* 32 bytes of a row as add_dots takes them; `low`: of the first plane. */
template <int kBits>
VFN void prepare_x(VI low, VI high, VI* x) {
  if constexpr (kBits == 4) {
    x[0] = low;
    x[1] = high;
  } else {
    x[0] = _mm256_srai_epi16(_mm256_unpacklo_epi8(low, low), 8);
    x[1] = _mm256_srai_epi16(_mm256_unpackhi_epi8(low, low), 8);
  }
}

/* ---- one row: two blocks of four columns at a time, a block in each lane of 128 bits */

/* `count` bytes, a multiple of 8 up to 32, and zeros. */
VFN VI load_bytes(const uint8_t* p, int64_t count) {
  if (count >= 32) return vi_load(p);
  const VI which = _mm256_setr_epi64x(0, 8, 16, 24);
  return _mm256_maskload_epi64((const long long*)p,
                               _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), which));
}

/* 8 bytes to each lane of 128 bits. */
VFN VI spread_eights(VI bytes) {
  return _mm256_and_si256(_mm256_permute4x64_epi64(bytes, 0x50), _mm256_setr_epi64x(-1, 0, -1, 0));
}

/* dots[j] += column j's bytes [at, end); those of an eight fewer than 32. */
template <int kBits, int kEights>
VFN void dot_bytes(const Columns& c, const Shape& s, const int8_t* x, int64_t at, int64_t end,
                   VI* dots) {
  for (; at < end; at += 32) {
    const int64_t left = end < s.bytes ? end - at : s.bytes - at;
    VI low = vi_load(x + at);
    VI high = kBits == 4 ? vi_load(x + s.plane + at) : low;
    if (kEights) low = spread_eights(low);
    if (kEights) high = spread_eights(high);
    VI of_x[2];
    prepare_x<kBits>(low, high, of_x);
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) {
      VI bytes = load_bytes(c.codes + j * c.bytes + at, left);
      if (kEights) bytes = spread_eights(bytes);
      add_dots<kBits>(&dots[j], bytes, of_x);
    }
  }
}

/* dots[j]: of column j sums over quads of the blocks b and b + 1. */
template <int kBits, int kBlob>
VFN void dot_pairs(const Columns& c, const Shape& s, const int8_t* x, int64_t b, VI* dots) {
  const int64_t at = b * s.blob;
  for (int j = 0; j < kAcross; ++j) dots[j] = _mm256_setzero_si256();
  if constexpr (kBlob <= 16) {
    dot_bytes<kBits, kBlob == 8>(c, s, x, at, at + 2 * kBlob, dots);
  } else {
    VI second[kAcross];
    for (int j = 0; j < kAcross; ++j) second[j] = _mm256_setzero_si256();
    dot_bytes<kBits, 0>(c, s, x, at, at + s.blob, dots);
    if (b + 1 < s.blocks) dot_bytes<kBits, 0>(c, s, x, at + s.blob, at + 2 * s.blob, second);
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) {
      dots[j] = vi_add(_mm256_permute2x128_si256(dots[j], second[j], 0x20),
                       _mm256_permute2x128_si256(dots[j], second[j], 0x31));
    }
  }
}

/* [block][column] of numbers of which each column has one a block; `step`: bytes between columns.
 * Without a second block its numbers are 0. */
VFN V load_pairs(const void* p, int64_t step, bool two) {
  const char* from = (const char*)p;
  __m128 half[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i, from += 2 * step) {
    int64_t pair[2] = {0, 0};
    if (two) {
      __builtin_memcpy(&pair[0], from, 8);
      __builtin_memcpy(&pair[1], from + step, 8);
    } else {
      __builtin_memcpy(&pair[0], from, 4);
      __builtin_memcpy(&pair[1], from + step, 4);
    }
    half[i] = _mm_castsi128_ps(_mm_set_epi64x(pair[1], pair[0]));
  }
  return _mm256_set_m128(_mm_shuffle_ps(half[0], half[1], 0xDD),
                         _mm_shuffle_ps(half[0], half[1], 0x88));
}

/* sum + the blocks b and b + 1 of four columns. */
template <int kBits, int kBlob>
VFN V add_pairs(const Columns& c, const Shape& s, const Row& a, int64_t b, V sum) {
  const bool two = b + 1 < s.blocks;
  VI dots[kAcross];
  dot_pairs<kBits, kBlob>(c, s, a.codes, b, dots);
  const VI exact_dots =
      _mm256_hadd_epi32(_mm256_hadd_epi32(dots[0], dots[1]), _mm256_hadd_epi32(dots[2], dots[3]));
  const VI middles =
      _mm256_set_m128i(_mm_set1_epi32(a.middles[b + 1]), _mm_set1_epi32(a.middles[b]));
  V exact;
  if (c.zeros) {
    const V zeros = load_pairs(c.zeros + b, 4 * c.blocks, two);
    exact = v_fma(v_mul(zeros, v_set1(1.0f / (1 << (kBits - 1)))), v_from_int(middles),
                  v_from_int(exact_dots));
  } else {
    exact = v_from_int(vi_add(exact_dots, middles));
  }
  const V a_scale = _mm256_set_m128(_mm_set1_ps(a.scales[b + 1]), _mm_set1_ps(a.scales[b]));
  return v_fma(exact, v_mul(load_pairs(c.scales + 4 * b, 4 * c.blocks, two), a_scale), sum);
}

template <int kBits, int kBlob>
VFN __m128 dot_columns(const Columns& c, const Shape& s, const Row& a) {
  V sum[2] = {v_zero(), v_zero()};
  for (int64_t b = 0; b < s.blocks; b += 4) {
    fetch_next(c, s, b);
    sum[0] = add_pairs<kBits, kBlob>(c, s, a, b, sum[0]);
    if (b + 2 < s.blocks) sum[1] = add_pairs<kBits, kBlob>(c, s, a, b + 2, sum[1]);
  }
  const V two = v_add(sum[0], sum[1]);
  return _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1));
}

/* ---- many rows */

VFN void turn_columns(const void* first, int64_t step, int64_t count, int64_t at, int64_t length,
                      VI* to) {
  const VM m = v_first(length <= at ? 0 : length - at < 8 ? length - at : 8);
  /* Each step turns the address (row, dword) left by one bit, but for what the lanes cannot. */
  VI rows[8];
#pragma GCC unroll 8
  for (int64_t j = 0; j < 8; ++j) {
    const char* column = (const char*)first + (j < count ? j : count - 1) * step;
    rows[j] = _mm256_maskload_epi32((const int*)(const void*)(column + 4 * at), m);
  }
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) { /* of the columns: dwords 0 to 3 and 4 to 7 of four */
    const VI* r = rows + 4 * half;
    VI* out = to + 4 * half;
    const VI ab_low = _mm256_unpacklo_epi32(r[0], r[1]);
    const VI ab_high = _mm256_unpackhi_epi32(r[0], r[1]);
    const VI cd_low = _mm256_unpacklo_epi32(r[2], r[3]);
    const VI cd_high = _mm256_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm256_unpacklo_epi64(ab_low, cd_low);
    out[1] = _mm256_unpackhi_epi64(ab_low, cd_low);
    out[2] = _mm256_unpacklo_epi64(ab_high, cd_high);
    out[3] = _mm256_unpackhi_epi64(ab_high, cd_high);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const VI low = to[i];
    const VI high = to[4 + i];
    to[i] = _mm256_permute2x128_si256(low, high, 0x20);
    to[4 + i] = _mm256_permute2x128_si256(low, high, 0x31);
  }
}

VFN int32_t quad_of(const int8_t* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, 4);
  return quad;
}

/* Of 4 bits: up to 16 bytes of a block, 32 products, fit into sums of 16 bits. */
template <int kRows>
VFN void dot_nibbles(int64_t at, int64_t end, int64_t row, const int8_t* const* planes,
                     const uint8_t* codes, VI (*sum)[1]) {
  VI part[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) part[i] = _mm256_setzero_si256();
  for (; at < end; at += 4) {
#pragma GCC unroll 2
    for (int place = 0; place < 2; ++place) {
      const VI w = vi_load(codes + 16 * at + 32 * place);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        const VI x = vi_set1(quad_of(planes[place] + i * row + at));
        part[i] = _mm256_add_epi16(part[i], _mm256_maddubs_epi16(w, x));
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    sum[i][0] = vi_add(sum[i][0], _mm256_madd_epi16(part[i], _mm256_set1_epi16(1)));
  }
}

/* Of 8 bits: sums of two products; columns 0, 1, 4, 5 and 2, 3, 6, 7 apart. */
template <int kRows>
VFN void dot_wide(int64_t blob, int64_t row, const int8_t* a, const uint8_t* codes, VI (*sum)[1]) {
  const VI zero = _mm256_setzero_si256();
  VI part[2][kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) part[0][i] = part[1][i] = zero;
  for (int64_t at = 0; at < blob; at += 4) {
    const VI w = vi_load(codes + 8 * at);
    const VI low = _mm256_unpacklo_epi8(w, zero);
    const VI high = _mm256_unpackhi_epi8(w, zero);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const __m128i quad = _mm_cvtepi8_epi16(_mm_cvtsi32_si128(quad_of(a + i * row + at)));
      const VI x = _mm256_broadcastq_epi64(quad);
      part[0][i] = vi_add(part[0][i], _mm256_madd_epi16(low, x));
      part[1][i] = vi_add(part[1][i], _mm256_madd_epi16(high, x));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    sum[i][0] = vi_add(sum[i][0], _mm256_hadd_epi32(part[0][i], part[1][i]));
  }
}

template <int kBits, int kRows, int kPanels>
VFN void dot_block(int64_t blob, int64_t row, const int8_t* const* planes,
                   const uint8_t* const* codes, VI (*sum)[kPanels]) {
  static_assert(kPanels == 1);
  if constexpr (kBits == 4) {
    for (int64_t at = 0; at < blob; at += 16) {
      dot_nibbles<kRows>(at, at + 16 < blob ? at + 16 : blob, row, planes, codes[0], sum);
    }
  } else {
    dot_wide<kRows>(blob, row, planes[0], codes[0], sum);
  }
}

void folio_fill_blocks__x86_avx2(FolioKernels* table) {
  fill_blocks(table);
  table->block_dots_s8 = block_dots_s8;
}
