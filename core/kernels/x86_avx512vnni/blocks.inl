/* Weights of small integers in blocks times rows of 8-bit integers.
 *
 * The including file defines before: kFetchHint, to which cache one row's weights are fetched. */
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

#include "core/kernels/x86_avx512/vec.h"

#if !defined(__AVX512VNNI__)
#error "compile this folder with the flags of its isa.cmake"
#endif

constexpr int kTileRows = 6;
constexpr int kTilePanels = 2;

#include "core/kernels/vector/block_rows.inl"
#include "core/kernels/x86_avx512vnni/turn_columns.inl"

/* ---- one row of short blocks: sixteen blocks of four columns at a time
 *
 * What there is one of for each block is "turned": element g of lane i, of 128 bits, belongs to
 * block 4 g + i. So it comes out of the sums of blocks of 16 bytes, and four columns of it become
 * the four vectors [block][column] of block_weights.h's chains by unpacking alone. */

/* Lanes of 128 bits: those of a, then of b, two and two added. */
VFN VI fold(VI a, VI b) {
  return vi_add(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

/* From natural order to turned: which element goes to each. */
VFN VI natural_turn(void) {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

/* Sums over the quads of 64 bytes. kTail: bytes from s.bytes on are not there. */
template <int kBits, int kTail>
VFN VI dot_bytes(const uint8_t* codes, const Shape& s, const int8_t* x, int64_t at) {
  VI dots = _mm512_setzero_si512();
  VI bytes;
  if (kTail) {
    const int64_t left = s.bytes - at;
    if (left <= 0) return dots;
    bytes = _mm512_maskz_loadu_epi8(left < 64 ? (1ull << left) - 1 : ~0ull, codes + at);
  } else {
    bytes = vi_load(codes + at);
  }
  dot4(&dots, low_codes<kBits>(bytes), vi_load(x + at));
  if (kBits == 4) dot4(&dots, high_codes(bytes), vi_load(x + s.plane + at));
  return dots;
}

/* Of sums over eight products of 4 bits, which 16 bits hold, two and two. */
VFN VI add_pairs(VI a, VI b) {
  return _mm512_madd_epi16(_mm512_packs_epi32(a, b), _mm512_set1_epi16(1));
}

/* [lane][j] = the sum of that lane of dots[j], plus that of `more`. Of 4 bits, sums of sixteen
 * products fit into 16 bits, too: 16 * 15 * 127 < 2^15. */
template <int kBits>
VFN VI sum_quads(const VI* dots, VI more) {
  if (kBits == 4) {
    const VI both = _mm512_packs_epi32(add_pairs(dots[0], dots[1]), add_pairs(dots[2], dots[3]));
    return _mm512_dpwssd_epi32(more, both, _mm512_set1_epi16(1));
  }
  const VI ab =
      vi_add(_mm512_unpacklo_epi32(dots[0], dots[1]), _mm512_unpackhi_epi32(dots[0], dots[1]));
  const VI cd =
      vi_add(_mm512_unpacklo_epi32(dots[2], dots[3]), _mm512_unpackhi_epi32(dots[2], dots[3]));
  return vi_add(more, vi_add(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd)));
}

/* [i][v] = the sum of the 16 bytes from at + 64 * v + 16 * i on, plus that of `more`. */
template <int kBits, int kTail>
VFN VI dot_parts(const uint8_t* codes, const Shape& s, const int8_t* x, int64_t at, VI more) {
  VI dots[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) dots[v] = dot_bytes<kBits, kTail>(codes, s, x, at + 64 * v);
  return sum_quads<kBits>(dots, more);
}

/* Turned sums of 16 blocks of one column, plus `more`. */
template <int kBits, int kBlob, int kTail>
VFN VI dot_blocks(const uint8_t* codes, const Shape& s, const int8_t* x, int64_t b, VI more) {
  const VI none = _mm512_setzero_si512();
  const int64_t at = b * kBlob;
  if constexpr (kBlob == 16) {
    return dot_parts<kBits, kTail>(codes, s, x, at, more);
  } else if constexpr (kBlob == 8) { /* [lane] = blocks 2 lane and one on, then those 8 later */
    const VI sums = add_pairs(dot_bytes<kBits, kTail>(codes, s, x, at),
                              dot_bytes<kBits, kTail>(codes, s, x, at + 64));
    const VI turn = _mm512_setr_epi32(0, 8, 2, 10, 1, 9, 3, 11, 4, 12, 6, 14, 5, 13, 7, 15);
    return vi_add(more, _mm512_permutexvar_epi32(turn, sums));
  } else { /* 32; [lane][v] = block 2 v + lane, from lane 2 on 6 more */
    const VI sums = fold(dot_parts<kBits, kTail>(codes, s, x, at, none),
                         dot_parts<kBits, kTail>(codes, s, x, at + 256, none));
    const VI turn = _mm512_setr_epi32(0, 2, 8, 10, 4, 6, 12, 14, 1, 3, 9, 11, 5, 7, 13, 15);
    return vi_add(more, _mm512_permutexvar_epi32(turn, sums));
  }
}

/* Of four columns, turned: g[i] = [block 4 i + lane][column]. */
VFN void turn_groups(const V* columns, V* g) {
  const __m512d ab_low = _mm512_castps_pd(_mm512_unpacklo_ps(columns[0], columns[1]));
  const __m512d ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(columns[0], columns[1]));
  const __m512d cd_low = _mm512_castps_pd(_mm512_unpacklo_ps(columns[2], columns[3]));
  const __m512d cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(columns[2], columns[3]));
  g[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_low, cd_low));
  g[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_low, cd_low));
  g[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high));
  g[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high));
}

/* How far ahead of these four columns codes are fetched, in the order of memory: where the last of
 * the next four begins is needed as soon as they are. Best for rows of 1.5 and of 4 KiB (2026-11,
 * Zen 4: 2 KiB to 64 KiB in all). */
constexpr int64_t kAhead = 8 * 1024;

/* Fetches what will be read in the place of 16 blocks, a fourth of it at a time. */
template <int kBlob>
VFN void fetch_ahead(const Columns& c, int64_t b, int fourth) {
  constexpr int64_t kBytes = 16 * kBlob;
  const int64_t ahead = kAcross * c.bytes + kAhead;
  const char* codes = (const char*)c.codes + kAcross * b * kBlob + fourth * kBytes + ahead;
#pragma GCC unroll 8
  for (int64_t line = 0; line < kBytes; line += 64) _mm_prefetch(codes + line, kFetchHint);
  if (c.scale_bytes == 2 && fourth >= 2) return; /* two lines */
  const char* scales = c.scales + c.scale_bytes * (kAcross * b + ahead / kBlob);
  _mm_prefetch(scales + 64 * fourth, kFetchHint);
}

/* Scales of column j from block b on: those that m names, and zeros. */
VFN V load_scales(const Columns& c, int j, int64_t b, VM m) {
  const char* from = c.scales + c.scale_bytes * (j * c.blocks + b);
  if (c.scale_bytes == 2) return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, from));
  return _mm512_maskz_loadu_ps(m, from);
}

/* sum + 16 blocks of four columns, from block b on. */
template <int kBits, int kBlob, int kTail>
VFN V add_blocks(const Columns& c, const Shape& s, const Row& a, int64_t b, V sum) {
  const VM m = kTail ? v_first(s.blocks - b) : (VM)-1;
  const VI turn = natural_turn();
  const VI middles = _mm512_permutexvar_epi32(turn, vi_load(a.middles + b));
  const V a_scales = v_load(a.scales + b);
  V exact[kAcross], scales[kAcross];
#pragma GCC unroll 4
  for (int j = 0; j < kAcross; ++j) {
    const uint8_t* codes = c.codes + j * c.bytes;
    fetch_ahead<kBlob>(c, b, j);
    if (c.zeros) {
      const V part =
          v_mul(v_load_masked(c.zeros + j * c.blocks + b, m), v_set1(1.0f / (1 << (kBits - 1))));
      const VI dots = dot_blocks<kBits, kBlob, kTail>(codes, s, a.codes, b, _mm512_setzero_si512());
      exact[j] = v_fma(_mm512_permutexvar_ps(turn, part), v_from_int(middles), v_from_int(dots));
    } else {
      exact[j] = v_from_int(dot_blocks<kBits, kBlob, kTail>(codes, s, a.codes, b, middles));
    }
    scales[j] = _mm512_permutexvar_ps(turn, v_mul(load_scales(c, j, b, m), a_scales));
  }
  V exact_of[4], scale_of[4];
  turn_groups(exact, exact_of);
  turn_groups(scales, scale_of);
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) sum = v_fma(exact_of[g], scale_of[g], sum);
  return sum;
}

/* ---- one row of blocks of 64 bytes and more: four blocks of four columns at a time */

/* Sums over the quads of a block, folded to one of four in each lane of 128 bits: dots[j] of column
 * j the blocks from b on. */
template <int kBits>
VFN void dot_long_blocks(const Columns& c, const Shape& s, const int8_t* x, int64_t b, VI* dots) {
  VI part[4][kAcross];
#pragma GCC unroll 4
  for (int step = 0; step < 4; ++step) {
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) part[step][j] = _mm512_setzero_si512();
    if (b + step >= s.blocks) continue;
    const int64_t begin = (b + step) * s.blob;
    for (int64_t at = begin; at < begin + s.blob; at += 64) {
      VI of_x[2] = {vi_load(x + at), {}};
      if (kBits == 4) of_x[1] = vi_load(x + s.plane + at);
#pragma GCC unroll 4
      for (int j = 0; j < kAcross; ++j) {
        const VI bytes = vi_load(c.codes + j * c.bytes + at);
        dot4(&part[step][j], low_codes<kBits>(bytes), of_x[0]);
        if (kBits == 4) dot4(&part[step][j], high_codes(bytes), of_x[1]);
      }
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < kAcross; ++j) {
    dots[j] = fold(fold(part[0][j], part[1][j]), fold(part[2][j], part[3][j]));
  }
}

/* Those of four floats, or f16, that m names, and zeros. */
VFN __m128 load_four(const char* p, int64_t size, __mmask8 m) {
  return size == 2 ? _mm_cvtph_ps(_mm_maskz_loadu_epi16(m, p)) : _mm_maskz_loadu_ps(m, p);
}

/* [block][column] of numbers of 4 or 2 bytes, of which each column has one a block. */
VFN V load_groups(const void* p, int64_t size, int64_t blocks, __mmask8 m) {
  const char* from = (const char*)p;
  const int64_t step = size * blocks;
  V all = _mm512_castps128_ps512(load_four(from, size, m));
  all = _mm512_insertf32x4(all, load_four(from + step, size, m), 1);
  all = _mm512_insertf32x4(all, load_four(from + 2 * step, size, m), 2);
  all = _mm512_insertf32x4(all, load_four(from + 3 * step, size, m), 3);
  return _mm512_permutexvar_ps(natural_turn(), all);
}

/* sum + four blocks of four columns, from block b on. */
template <int kBits>
VFN V add_long_blocks(const Columns& c, const Shape& s, const Row& a, int64_t b, V sum) {
  const VI each = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const int64_t left = s.blocks - b;
  const __mmask8 m = (__mmask8)(left < 4 ? (1 << left) - 1 : 15);
  VI dots[kAcross];
  dot_long_blocks<kBits>(c, s, a.codes, b, dots);
  const VI sums = sum_quads<8>(dots, _mm512_setzero_si512());
  const __m128i four = _mm_load_si128((const __m128i*)(a.middles + b));
  const VI middles = _mm512_permutexvar_epi32(each, _mm512_castsi128_si512(four));
  V exact;
  if (c.zeros) {
    const V zeros = load_groups(c.zeros + b, 4, c.blocks, m);
    exact = v_fma(v_mul(zeros, v_set1(1.0f / (1 << (kBits - 1)))), v_from_int(middles),
                  v_from_int(sums));
  } else {
    exact = v_from_int(vi_add(sums, middles));
  }
  const V a_scale = _mm512_permutexvar_ps(each, _mm512_castps128_ps512(_mm_load_ps(a.scales + b)));
  const V scale = load_groups(c.scales + c.scale_bytes * b, c.scale_bytes, c.blocks, m);
  return v_fma(exact, v_mul(scale, a_scale), sum);
}

template <int kBits, int kBlob>
VFN __m128 dot_columns(const Columns& c, const Shape& s, const Row& a) {
  V sum = v_zero();
  int64_t b = 0;
  if constexpr (kBlob == 64) {
    for (; b < s.blocks; b += 4) {
      fetch_next(c, s, b);
      sum = add_long_blocks<kBits>(c, s, a, b, sum);
    }
  } else {
    for (; b + 16 <= s.blocks; b += 16) sum = add_blocks<kBits, kBlob, 0>(c, s, a, b, sum);
    if (b < s.blocks) sum = add_blocks<kBits, kBlob, 1>(c, s, a, b, sum);
  }
  const __m256 two = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
  return _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1));
}

#include "core/kernels/vector/block_quads.inl"
