/* Weights of small integers in blocks times rows of 8-bit integers.
 *
 * The including file defines before: kAhead and kFetchHint (block_rows.inl). */
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

#include "core/kernels/x86_avx512/vec.h"

#if !defined(__AVX512VNNI__)
#error "compile this folder with the flags of its isa.cmake"
#endif

constexpr int kTileRows = 6;
constexpr int kTilePanels = 2;
template <int kBits>
constexpr bool kIsCentred = false;

#include "core/kernels/vector/block_rows.inl"
#include "core/kernels/x86_avx512vnni/turn_columns.inl"

/* ---- one row: sixteen blocks at a time */

/* Lanes of 128 bits: those of a, then of b, two and two added. */
VFN VI fold(VI a, VI b) {
  return vi_add(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
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
    __asm__("" : "+v"(bytes)); /* loaded once: it is used twice */
  }
  dot4(&dots, low_codes<kBits>(bytes), vi_load(x + at));
  if (kBits == 4) dot4(&dots, high_codes(bytes), vi_load(x + s.plane + at));
  return dots;
}

/* Of sums over eight products of 4 bits, which 16 bits hold, two and two. */
VFN VI add_pairs(VI a, VI b) {
  return _mm512_madd_epi16(_mm512_packs_epi32(a, b), _mm512_set1_epi16(1));
}

/* [lane][j] = the sum of that lane of dots[j]. */
VFN VI sum_lanes(const VI* dots) {
  const VI ab =
      vi_add(_mm512_unpacklo_epi32(dots[0], dots[1]), _mm512_unpackhi_epi32(dots[0], dots[1]));
  const VI cd =
      vi_add(_mm512_unpacklo_epi32(dots[2], dots[3]), _mm512_unpackhi_epi32(dots[2], dots[3]));
  return vi_add(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* The same of 4 bits and one vector of codes in each of dots: sums of sixteen products fit into 16
 * bits, too: 16 * 15 * 127 < 2^15. */
VFN VI sum_short_lanes(const VI* dots) {
  return add_pairs(add_pairs(dots[0], dots[1]), add_pairs(dots[2], dots[3]));
}

/* [i][v] = the sum of the 16 bytes from at + 64 * v + 16 * i on. */
template <int kBits, int kTail>
VFN VI dot_parts(const uint8_t* codes, const Shape& s, const int8_t* x, int64_t at) {
  VI dots[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) dots[v] = dot_bytes<kBits, kTail>(codes, s, x, at + 64 * v);
  return kBits == 4 ? sum_short_lanes(dots) : sum_lanes(dots);
}

/* kBlob: bytes of a block; 128: that and more. */
template <int kBlob>
VFN int64_t blob_of(const Shape& s) {
  return kBlob < 128 ? kBlob : s.blob;
}

/* Of a block of 64 bytes and more. */
template <int kBits, int kBlob>
VFN VI dot_block(const uint8_t* codes, const Shape& s, const int8_t* x, int64_t b) {
  const int64_t begin = b * blob_of<kBlob>(s);
  VI dots = dot_bytes<kBits, 0>(codes, s, x, begin);
  for (int64_t at = 64; at < blob_of<kBlob>(s); at += 64) {
    dots = vi_add(dots, dot_bytes<kBits, 0>(codes, s, x, begin + at));
  }
  return dots;
}

/* [lane][j] = the sum of that lane of 128 bits over block b + j, of four of them. */
template <int kBits, int kBlob>
VFN VI dot_four_blocks(const uint8_t* codes, const Shape& s, const int8_t* x, int64_t b) {
  VI dots[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) dots[i] = dot_block<kBits, kBlob>(codes, s, x, b + i);
  return sum_lanes(dots);
}

/* The sums of 16 blocks from b on. */
template <int kBits, int kBlob, int kTail>
VFN VI dot_blocks(const uint8_t* codes, const Shape& s, const int8_t* x, int64_t b) {
  const int64_t at = b * kBlob;
  VI sums, order;              /* where each block's stands */
  if constexpr (kBlob == 16) { /* [i][v] = block 4 v + i */
    sums = dot_parts<kBits, kTail>(codes, s, x, at);
    order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  } else if constexpr (kBlob == 8) { /* [lane] = blocks 2 lane and one on, then those 8 later */
    sums = add_pairs(dot_bytes<kBits, kTail>(codes, s, x, at),
                     dot_bytes<kBits, kTail>(codes, s, x, at + 64));
    order = _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  } else if constexpr (kBlob >= 64) { /* [lane][j] = block 4 lane + j */
    return fold(fold(dot_four_blocks<kBits, kBlob>(codes, s, x, b),
                     dot_four_blocks<kBits, kBlob>(codes, s, x, b + 4)),
                fold(dot_four_blocks<kBits, kBlob>(codes, s, x, b + 8),
                     dot_four_blocks<kBits, kBlob>(codes, s, x, b + 12)));
  } else { /* 32; [lane][v] = block 2 v + lane, from lane 2 on 6 more */
    sums = fold(dot_parts<kBits, kTail>(codes, s, x, at),
                dot_parts<kBits, kTail>(codes, s, x, at + 256));
    order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  }
  return _mm512_permutexvar_epi32(order, sums);
}

/* Fetches what stands so far behind 16 blocks from b on. */
template <int kBlob>
VFN void fetch_ahead(const Columns& c, const Shape& s, int64_t b) {
  const int64_t blob = blob_of<kBlob>(s);
  const char* codes = (const char*)c.codes + b * blob + kAhead;
#pragma GCC unroll 8
  for (int64_t line = 0; line < 16 * blob; line += 64) _mm_prefetch(codes + line, kFetchHint);
  _mm_prefetch(c.scales + c.scale_bytes * (b + kAhead / blob), kFetchHint);
}

/* Scales from block b on: those that m names, and zeros. */
VFN V load_scales(const Columns& c, int64_t b, VM m) {
  const char* from = c.scales + c.scale_bytes * b;
  if (c.scale_bytes == 2) return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, from));
  return _mm512_maskz_loadu_ps(m, from);
}

/* sum + 16 blocks, from block b on. */
template <int kBits, int kBlob, int kTail>
VFN __m128 add_blocks(const Columns& c, const Shape& s, const Row& a, int64_t b, __m128 sum) {
  const VM m = kTail ? v_first(s.blocks - b) : (VM)-1;
  const VI dots = dot_blocks<kBits, kBlob, kTail>(c.codes, s, a.codes, b);
  const VI middles = vi_load(a.middles + b);
  const V scales = v_mul(load_scales(c, b, m), v_load(a.scales + b));
  fetch_ahead<kBlob>(c, s, b);
  V exact;
  if (c.zeros || c.zero_codes) {
    const V zeros = c.zeros ? v_load_masked(c.zeros + b, m)
                            : v_from_int(_mm512_cvtepu8_epi32(zero_codes_at<kBits, 16>(c, s, b)));
    const V part = v_mul(zeros, v_set1(1.0f / (1 << (kBits - 1))));
    exact = v_fma(part, v_from_int(middles), v_from_int(dots));
  } else {
    exact = v_from_int(vi_add(dots, middles));
  }
  sum = _mm_fmadd_ps(_mm512_castps512_ps128(exact), _mm512_castps512_ps128(scales), sum);
  sum = _mm_fmadd_ps(_mm512_extractf32x4_ps(exact, 1), _mm512_extractf32x4_ps(scales, 1), sum);
  sum = _mm_fmadd_ps(_mm512_extractf32x4_ps(exact, 2), _mm512_extractf32x4_ps(scales, 2), sum);
  return _mm_fmadd_ps(_mm512_extractf32x4_ps(exact, 3), _mm512_extractf32x4_ps(scales, 3), sum);
}

/* The sums of the last four blocks or fewer of 64 bytes and more, 0 where there are none. */
template <int kBits, int kBlob>
VFN __m128i dot_last_blocks(const Columns& c, const Shape& s, const int8_t* x, int64_t b) {
  const int64_t blob = blob_of<kBlob>(s);
  VI dots[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    dots[i] = _mm512_setzero_si512();
    if (b + i >= s.blocks) continue;
    dots[i] = dot_block<kBits, kBlob>(c.codes, s, x, b + i);
    for (int64_t line = 0; line < blob; line += 64) {
      _mm_prefetch((const char*)c.codes + (b + i) * blob + line + kAhead, kFetchHint);
    }
  }
  _mm_prefetch(c.scales + c.scale_bytes * (b + kAhead / blob), kFetchHint);
  const VI lanes = sum_lanes(dots);
  const __m256i two =
      _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
}

template <int kBits, int kBlob>
VFN __m128 dot_all_blocks(const Columns& c, const Shape& s, const Row& a) {
  __m128 sum = _mm_setzero_ps();
  int64_t b = 0;
  for (; b + 16 <= s.blocks; b += 16) sum = add_blocks<kBits, kBlob, 0>(c, s, a, b, sum);
  if constexpr (kBlob >= 64) {
    for (; b < s.blocks; b += 4) {
      sum = add_four<kBits>(c, s, a, b, dot_last_blocks<kBits, kBlob>(c, s, a.codes, b), sum);
    }
  } else if (b < s.blocks) {
    sum = add_blocks<kBits, kBlob, 1>(c, s, a, b, sum);
  }
  return sum;
}

template <int kBits, int kBlob>
VFN __m128 dot_column(const Columns& c, const Shape& s, const Row& a) {
  if (kBlob == 64 && s.blob > 64) return dot_all_blocks<kBits, 128>(c, s, a);
  return dot_all_blocks<kBits, kBlob>(c, s, a);
}
