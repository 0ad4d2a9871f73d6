/* The words in which core/kernels/vector is written, for AVX2 with FMA and F16C.
 *
 * V is a vector of floats, VI of as many int32, VM a mask. Everything has internal linkage: an
 * inline function with AVX2 code that the linker shares would crash older CPUs.
 * Min and max give their second operand when either is NaN, as the instructions do. */
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__) || defined(__AVX512F__)
#error "compile this folder with the flags of its isa.cmake"
#endif

#ifndef FOLIO_LEVEL /* a level above may use these words */
#define FOLIO_LEVEL(name) name##__x86_avx2
#endif
#define VFN static inline __attribute__((always_inline))

typedef __m256 V;
typedef __m256i VI;
typedef __m256i VM; /* all bits of a lane set or none */
constexpr int64_t kLanes = 8;

VFN V v_load(const float* p) { return _mm256_loadu_ps(p); }
VFN void v_store(float* p, V a) { _mm256_storeu_ps(p, a); }
/* The first count lanes, 0 <= count <= kLanes; a load fills the others with 0. */
VFN VM v_first(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/* Lanes [begin, end), 0 <= begin <= end <= kLanes. */
VFN VM v_between(int64_t begin, int64_t end) {
  return _mm256_andnot_si256(v_first(begin), v_first(end));
}
VFN V v_load_masked(const float* p, VM m) { return _mm256_maskload_ps(p, m); }
/* AMD's CPUs take 12 cycles for a masked store (Zen 4), whatever the mask. */
VFN void v_store_masked(float* p, VM m, V a) {
  const int lanes = _mm256_movemask_ps(_mm256_castsi256_ps(m));
  if (lanes == 0xff) {
    _mm256_storeu_ps(p, a);
  } else if (lanes != 0) {
    _mm256_maskstore_ps(p, m, a);
  }
}

VFN V v_set1(float x) { return _mm256_set1_ps(x); }
VFN V v_zero(void) { return _mm256_setzero_ps(); }
VFN V v_add(V a, V b) { return _mm256_add_ps(a, b); }
VFN V v_sub(V a, V b) { return _mm256_sub_ps(a, b); }
VFN V v_mul(V a, V b) { return _mm256_mul_ps(a, b); }
VFN V v_div(V a, V b) { return _mm256_div_ps(a, b); }
VFN V v_fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }   /* a * b + c */
VFN V v_fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); } /* c - a * b */
/* sum += a * b where sums fill the registers: g++ moves them about with its own choice of operands,
 * keeps some in memory, and their chains wait for that (tiles of 6 x 16 on Zen 3: 90 GFLOP/s, not
 * 97 of 103). */
VFN void v_add_product(V* sum, V a, V b) {
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(*sum) : "x"(a), "x"(b));
}
VFN V v_min(V a, V b) { return _mm256_min_ps(a, b); }
VFN V v_max(V a, V b) { return _mm256_max_ps(a, b); }
VFN V v_sqrt(V a) { return _mm256_sqrt_ps(a); }
VFN V v_round(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VFN V v_floor(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
VFN V v_ceil(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }

/* Every second of the lanes of a and b, from the first or the second on. */
VFN V v_even(V a, V b) {
  const __m256d halves = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(halves, 0xd8));
}
VFN V v_odd(V a, V b) {
  const __m256d halves = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(halves, 0xd8));
}

VFN VI vi_from_bits(V a) { return _mm256_castps_si256(a); }
VFN V v_from_bits(VI a) { return _mm256_castsi256_ps(a); }

VFN VM v_lt(V a, V b) { return vi_from_bits(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
VFN VM v_eq(V a, V b) { return vi_from_bits(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
VFN VM v_is_nan(V a) { return vi_from_bits(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
/* Where a or b is NaN; and where either holds. */
VFN VM v_unordered(V a, V b) { return vi_from_bits(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)); }
VFN VM v_either(VM a, VM b) { return _mm256_or_si256(a, b); }
VFN V v_select(VM m, V yes, V no) { return _mm256_blendv_ps(no, yes, v_from_bits(m)); }
/* Min and max where NaN stays: b's by the instructions. */
VFN V v_pick_min(V a, V b) { return v_select(v_is_nan(a), a, v_min(a, b)); }
VFN V v_pick_max(V a, V b) { return v_select(v_is_nan(a), a, v_max(a, b)); }

VFN VI vi_load(const void* p) { return _mm256_loadu_si256((const __m256i*)p); }
VFN void vi_store(void* p, VI a) { _mm256_storeu_si256((__m256i*)p, a); }
VFN VI vi_set1(int32_t x) { return _mm256_set1_epi32(x); }
/* The four bytes at p, of any alignment, in all lanes. */
VFN VI vi_broadcast(const void* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return vi_set1(four);
}
VFN VI vi_add(VI a, VI b) { return _mm256_add_epi32(a, b); }
VFN VI vi_sub(VI a, VI b) { return _mm256_sub_epi32(a, b); }
VFN VI vi_max(VI a, VI b) { return _mm256_max_epi32(a, b); }
VFN VI vi_and(VI a, VI b) { return _mm256_and_si256(a, b); }
VFN VI vi_or(VI a, VI b) { return _mm256_or_si256(a, b); }
VFN VI vi_xor(VI a, VI b) { return _mm256_xor_si256(a, b); }
VFN VI vi_andnot(VI a, VI b) { return _mm256_andnot_si256(a, b); } /* ~a & b */
VFN VI vi_shift_left(VI a, int count) { return _mm256_slli_epi32(a, count); }
VFN VI vi_shift_right(VI a, int count) { return _mm256_srli_epi32(a, count); }
VFN VI vi_shift_right_signed(VI a, int count) { return _mm256_srai_epi32(a, count); }
VFN V v_from_int(VI a) { return _mm256_cvtepi32_ps(a); }
VFN VI vi_truncate(V a) { return _mm256_cvttps_epi32(a); }

/* a * 2^n for integral n in [-200, 200], rounded once if |a| is in [1/2, 2]: the first factor keeps
 * the product normal. */
VFN V v_scale2(V a, V n) {
  const VI whole = vi_truncate(n);
  const VI half = vi_shift_right_signed(whole, 1);
  const VI bias = vi_set1(127);
  const V first = v_from_bits(vi_shift_left(vi_add(half, bias), 23));
  const V second = v_from_bits(vi_shift_left(vi_add(vi_sub(whole, half), bias), 23));
  return v_mul(v_mul(a, first), second);
}

/* The same, and 0 where `gone`: there a and n may be any. */
VFN V v_scale2_unless(VM gone, V a, V n) {
  return v_select(gone, v_zero(), v_scale2(a, v_select(gone, v_zero(), n)));
}
constexpr int kScalesAtOnce = 0; /* v_scale2 as fast as v_scale2_normal */

/* The same for n in [-127, 127] where the result is normal. */
VFN V v_scale2_normal(V a, V n) {
  return v_from_bits(vi_add(vi_from_bits(a), vi_shift_left(vi_truncate(n), 23)));
}

/* a / b within 1 ulp; vdivps for 8 lanes is fast enough. */
VFN V v_div_fast(V a, V b) { return _mm256_div_ps(a, b); }
constexpr int kDividesAtOnce = 1; /* in less time than a reciprocal is corrected in */

/* 1 / b. */
VFN V v_reciprocal_near(V b) { return _mm256_div_ps(_mm256_set1_ps(1.0f), b); }

/* Lane i is a's lane index[i]. */
VFN V v_permute(V a, VI index) { return _mm256_permutevar8x32_ps(a, index); }
VFN V v_permute2(V a, V b, VI index) {
  const V is_b = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
  return _mm256_blendv_ps(v_permute(a, index), v_permute(b, index), is_b);
}

/* row[index & 7] of 8 floats. */
VFN V v_lookup8(const float* row, VI index) {
  return _mm256_permutevar8x32_ps(_mm256_loadu_ps(row), index);
}

/* The halves as 8 lanes; of 8 lanes both are all. */
VFN __m256 v_low8(V a) { return a; }
VFN __m256 v_high8(V a) { return a; }
VFN V v_of_8(__m256 low, __m256 high) {
  (void)high;
  return low;
}
VFN V v_set8(float x) { return v_set1(x); }
VFN V v_fma8(V a, V b, V c) { return v_fma(a, b, c); }
VFN V v_load8(const float* p) { return v_load(p); }
VFN void v_store8(float* p, V a) { v_store(p, a); }

/* to[i] = the sum of lanes i of four: in fours (0 + 2) + (1 + 3), then the halves. */
VFN void v_sums4(V a, V b, V c, V d, float* to) {
  const V ab = v_add(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  const V cd = v_add(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  const V all = v_add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}

VFN float v_sum(V a) {
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
VFN float v_max_lane(V a) {
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
VFN float v_min_lane(V a) {
  __m128 x = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  x = _mm_min_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_min_ss(x, _mm_movehdup_ps(x)));
}
VFN int v_any(VM m) { return _mm256_movemask_epi8(m) != 0; }

VFN V v_from_half(const void* p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }
VFN void v_to_half(void* p, V a) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* kLanes uint16, and the low halves of kLanes int32, which must be below 2^16. */
VFN VI vi_load_u16(const void* p) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
}
VFN void vi_store_u16(void* p, VI a) {
  _mm_storeu_si128((__m128i*)p,
                   _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
}
/* kLanes bytes, and the low bytes of kLanes int32, which must be in -128..255. */
VFN VI vi_widen_u8(__m128i bytes) { return _mm256_cvtepu8_epi32(bytes); }
VFN VI vi_load_u8(const void* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
VFN VI vi_load_s8(const void* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
VFN void vi_store_b8(void* p, VI a) {
  const VI low = _mm256_and_si256(a, _mm256_set1_epi32(0xff));
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packus_epi16(words, words));
}
/* To nearest, ties to even; what leaves int32 is INT32_MIN. */
VFN VI vi_nearest(V a) { return _mm256_cvtps_epi32(a); }
/* Bytes of a[0], ..., a[3], each plus `add` (words), saturating. */
VFN void vi_store4_b8(void* p, const VI a[4], VI add, int is_signed) {
  const VI low = _mm256_adds_epi16(_mm256_packs_epi32(a[0], a[1]), add);
  const VI high = _mm256_adds_epi16(_mm256_packs_epi32(a[2], a[3]), add);
  const VI bytes = is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  const VI order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
  vi_store(p, _mm256_permutevar8x32_epi32(bytes, order));
}
/* Unsigned bytes as words. */
VFN VI even_bytes(VI a) { return vi_and(a, _mm256_set1_epi16(0xff)); }
VFN VI odd_bytes(VI a) { return _mm256_srli_epi16(a, 8); }

VFN VI vi_set1_words(int32_t x) { return _mm256_set1_epi16((short)x); }

/* Half as many doubles, and as many 64-bit integers in a VI. */
typedef __m256d VD;
VFN VD vd_low(V a) { return _mm256_cvtps_pd(_mm256_castps256_ps128(a)); }
VFN VD vd_high(V a) { return _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)); }
VFN V v_from_doubles(VD low, VD high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high),
                              1);
}
constexpr int64_t kDoubles = kLanes / 2;
VFN VD vd_load(const double* p) { return _mm256_loadu_pd(p); }
VFN void vd_store(double* p, VD a) { _mm256_storeu_pd(p, a); }
VFN VD vd_zero(void) { return _mm256_setzero_pd(); }
VFN VD vd_set1(double x) { return _mm256_set1_pd(x); }
VFN VD vd_add(VD a, VD b) { return _mm256_add_pd(a, b); }
VFN VD vd_sub(VD a, VD b) { return _mm256_sub_pd(a, b); }
VFN VD vd_mul(VD a, VD b) { return _mm256_mul_pd(a, b); }
VFN VD vd_div(VD a, VD b) { return _mm256_div_pd(a, b); }
VFN VD vd_fma(VD a, VD b, VD c) { return _mm256_fmadd_pd(a, b, c); }
VFN VD vd_min(VD a, VD b) { return _mm256_min_pd(a, b); }
VFN VD vd_max(VD a, VD b) { return _mm256_max_pd(a, b); }
VFN VD vd_pick_min(VD a, VD b) {
  return _mm256_blendv_pd(_mm256_min_pd(a, b), a, _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
}
VFN VD vd_pick_max(VD a, VD b) {
  return _mm256_blendv_pd(_mm256_max_pd(a, b), a, _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
}
VFN VD vd_sqrt(VD a) { return _mm256_sqrt_pd(a); }
VFN VD vd_floor(VD a) { return _mm256_round_pd(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
VFN VD vd_ceil(VD a) { return _mm256_round_pd(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
VFN VD vd_round(VD a) { return _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VFN VD vd_select_eq(VD a, VD b, VD yes, VD no) { /* a == b ? yes : no */
  return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_EQ_OQ));
}
VFN VD vd_select_lt(VD a, VD b, VD yes, VD no) { /* a < b ? yes : no */
  return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_LT_OQ));
}
VFN VI vi_from_doubles(VD a) { return _mm256_castpd_si256(a); }
VFN VD vd_from_bits(VI a) { return _mm256_castsi256_pd(a); }
VFN VI vi_set1_64(int64_t x) { return _mm256_set1_epi64x(x); }
VFN VI vi_add64(VI a, VI b) { return _mm256_add_epi64(a, b); }
VFN VI vi_sub64(VI a, VI b) { return _mm256_sub_epi64(a, b); }
VFN VI vi_shift_left64(VI a, int count) { return _mm256_slli_epi64(a, count); }
VFN VI vi_shift_right64(VI a, int count) { return _mm256_srli_epi64(a, count); }
