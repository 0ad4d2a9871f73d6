/* The words in which core/kernels/vector is written, for AVX-512.
 *
 * V is a vector of floats, VI of as many int32, VM a mask. Everything has internal linkage: an
 * inline function with AVX-512 code that the linker shares would crash older CPUs.
 * Min and max give their second operand when either is NaN, as the instructions do. */
#pragma once

/* g++ 12 warns of its own headers' undefined vectors (GCC bug 105593). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#include <stddef.h>
#include <stdint.h>

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || \
    !defined(__AVX512VL__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile this folder with the flags of its isa.cmake"
#endif

#define FOLIO_LEVEL(name) name##__x86_avx512
#define VFN static inline __attribute__((always_inline))

typedef __m512 V;
typedef __m512i VI;
typedef __mmask16 VM;
constexpr int64_t kLanes = 16;

VFN V v_load(const float* p) { return _mm512_loadu_ps(p); }
VFN void v_store(float* p, V a) { _mm512_storeu_ps(p, a); }
/* The first count lanes, 0 <= count <= kLanes; a load fills the others with 0. */
VFN VM v_first(int64_t count) { return (VM)((1u << count) - 1); }
/* Lanes [begin, end), 0 <= begin <= end <= kLanes. */
VFN VM v_between(int64_t begin, int64_t end) { return (VM)(v_first(end) & ~v_first(begin)); }
VFN V v_load_masked(const float* p, VM m) { return _mm512_maskz_loadu_ps(m, p); }
VFN void v_store_masked(float* p, VM m, V a) { _mm512_mask_storeu_ps(p, m, a); }

VFN V v_set1(float x) { return _mm512_set1_ps(x); }
VFN V v_zero(void) { return _mm512_setzero_ps(); }
VFN V v_add(V a, V b) { return _mm512_add_ps(a, b); }
VFN V v_sub(V a, V b) { return _mm512_sub_ps(a, b); }
VFN V v_mul(V a, V b) { return _mm512_mul_ps(a, b); }
VFN V v_div(V a, V b) { return _mm512_div_ps(a, b); }
VFN V v_fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }   /* a * b + c */
VFN V v_fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a * b */
/* sum += a * b where sums fill the registers. */
VFN void v_add_product(V* sum, V a, V b) { *sum = v_fma(a, b, *sum); }
VFN V v_min(V a, V b) { return _mm512_min_ps(a, b); }
VFN V v_max(V a, V b) { return _mm512_max_ps(a, b); }
VFN V v_sqrt(V a) { return _mm512_sqrt_ps(a); }
VFN V v_round(V a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VFN V v_floor(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
VFN V v_ceil(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }

VFN VM v_lt(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VFN VM v_eq(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
VFN VM v_is_nan(V a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
/* Where a or b is NaN; and where either holds. */
VFN VM v_unordered(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
VFN VM v_either(VM a, VM b) { return (VM)(a | b); }
VFN V v_select(VM m, V yes, V no) { return _mm512_mask_blend_ps(m, no, yes); }

/* Min and max where NaN stays: b's by the instructions, a's because nothing is done there. */
VFN V v_pick_min(V a, V b) {
  return _mm512_mask_min_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b);
}
VFN V v_pick_max(V a, V b) {
  return _mm512_mask_max_ps(a, _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), a, b);
}

/* Every second of the lanes of a and b, from the first or the second on. */
VFN V v_even(V a, V b) {
  const VI lanes = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return _mm512_permutex2var_ps(a, lanes, b);
}
VFN V v_odd(V a, V b) {
  const VI lanes = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_ps(a, lanes, b);
}

VFN VI vi_from_bits(V a) { return _mm512_castps_si512(a); }
VFN V v_from_bits(VI a) { return _mm512_castsi512_ps(a); }
VFN VI vi_load(const void* p) { return _mm512_loadu_si512(p); }
VFN void vi_store(void* p, VI a) { _mm512_storeu_si512(p, a); }
VFN VI vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
/* The four bytes at p, of any alignment, in all lanes. */
VFN VI vi_broadcast(const void* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return vi_set1(four);
}
VFN VI vi_add(VI a, VI b) { return _mm512_add_epi32(a, b); }
VFN VI vi_sub(VI a, VI b) { return _mm512_sub_epi32(a, b); }
VFN VI vi_max(VI a, VI b) { return _mm512_max_epi32(a, b); }
VFN VI vi_and(VI a, VI b) { return _mm512_and_si512(a, b); }
VFN VI vi_or(VI a, VI b) { return _mm512_or_si512(a, b); }
VFN VI vi_xor(VI a, VI b) { return _mm512_xor_si512(a, b); }
VFN VI vi_andnot(VI a, VI b) { return _mm512_andnot_si512(a, b); } /* ~a & b */
VFN VI vi_shift_left(VI a, int count) { return _mm512_slli_epi32(a, (unsigned)count); }
VFN VI vi_shift_right(VI a, int count) { return _mm512_srli_epi32(a, (unsigned)count); }
VFN VI vi_shift_right_signed(VI a, int count) { return _mm512_srai_epi32(a, (unsigned)count); }
VFN V v_from_int(VI a) { return _mm512_cvtepi32_ps(a); }
VFN VI vi_truncate(V a) { return _mm512_cvttps_epi32(a); }

/* a * 2^n for integral n in [-200, 200], rounded once. */
VFN V v_scale2(V a, V n) { return _mm512_scalef_ps(a, n); }

/* The same, and 0 where `gone`, whatever a and n are there: it costs nothing. */
VFN V v_scale2_unless(VM gone, V a, V n) {
  return _mm512_maskz_scalef_ps(_knot_mask16(gone), a, n);
}
constexpr int kScalesAtOnce = 1;

/* The same for n in [-127, 127] where the result is normal. */
VFN V v_scale2_normal(V a, V n) { return _mm512_scalef_ps(a, n); }

/* 1 / b within 2^-14 of it, for b in [2^-60, 2^126]: a quotient that is corrected once needs no
 * more. */
VFN V v_reciprocal_near(V b) { return _mm512_rcp14_ps(b); }
constexpr int kDividesAtOnce = 0;

/* a / b within 1 ulp for b in [2^-60, 2^60] and |a| <= b; vdivps takes 16 cycles for 16 lanes. */
VFN V v_div_fast(V a, V b) {
  V y = v_reciprocal_near(b);
  y = v_fma(y, v_fnma(b, y, v_set1(1.0f)), y);
  const V quotient = v_mul(a, y);
  return v_fma(v_fnma(quotient, b, a), y, quotient);
}

/* Lane i is a's lane index[i]. */
VFN V v_permute(V a, VI index) { return _mm512_permutexvar_ps(index, a); }
/* Of those of a, then of b. */
VFN V v_permute2(V a, V b, VI index) { return _mm512_permutex2var_ps(a, index, b); }

/* row[index & 7] of 8 floats. */
VFN V v_lookup8(const float* row, VI index) {
  return _mm512_permutexvar_ps(index, _mm512_broadcast_f32x8(_mm256_loadu_ps(row)));
}

/* The halves as 8 lanes; of 8 lanes both are all. */
VFN __m256 v_low8(V a) { return _mm512_castps512_ps256(a); }
VFN __m256 v_high8(V a) { return _mm512_extractf32x8_ps(a, 1); }
VFN V v_of_8(__m256 low, __m256 high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
/* On the first 8 lanes alone; the others become anything. */
VFN V v_set8(float x) { return _mm512_castps256_ps512(_mm256_set1_ps(x)); }
VFN V v_fma8(V a, V b, V c) {
  return _mm512_castps256_ps512(_mm256_fmadd_ps(v_low8(a), v_low8(b), v_low8(c)));
}
VFN V v_load8(const float* p) { return _mm512_castps256_ps512(_mm256_loadu_ps(p)); }
VFN void v_store8(float* p, V a) { _mm256_storeu_ps(p, v_low8(a)); }

/* to[i] = the sum of lanes i of four: in fours (0 + 2) + (1 + 3), those as the halves' halves. */
VFN void v_sums4(V a, V b, V c, V d, float* to) {
  const V ab = v_add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const V cd = v_add(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const V all = v_add(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
  const __m256 half = _mm256_add_ps(v_low8(all), v_high8(all));
  _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}

VFN float v_sum(V a) { return _mm512_reduce_add_ps(a); }
VFN float v_max_lane(V a) { return _mm512_reduce_max_ps(a); }
VFN float v_min_lane(V a) { return _mm512_reduce_min_ps(a); }
VFN int v_any(VM m) { return m != 0; }

VFN V v_from_half(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
VFN void v_to_half(void* p, V a) {
  _mm256_storeu_si256((__m256i*)p,
                      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* kLanes uint16, and the low halves of kLanes int32. */
VFN VI vi_load_u16(const void* p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
}
VFN void vi_store_u16(void* p, VI a) { _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(a)); }
/* kLanes bytes, and the low bytes of kLanes int32. */
VFN VI vi_widen_u8(__m128i bytes) { return _mm512_cvtepu8_epi32(bytes); }
VFN VI vi_load_u8(const void* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
}
VFN VI vi_load_s8(const void* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p));
}
VFN void vi_store_b8(void* p, VI a) { _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(a)); }
/* To nearest, ties to even; what leaves int32 is INT32_MIN. */
VFN VI vi_nearest(V a) { return _mm512_cvtps_epi32(a); }
/* Bytes of a[0], ..., a[3], each plus `add` (words), saturating. */
VFN void vi_store4_b8(void* p, const VI a[4], VI add, int is_signed) {
  const VI low = _mm512_adds_epi16(_mm512_packs_epi32(a[0], a[1]), add);
  const VI high = _mm512_adds_epi16(_mm512_packs_epi32(a[2], a[3]), add);
  const VI bytes = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  const VI order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, bytes));
}
VFN VI vi_set1_words(int32_t x) { return _mm512_set1_epi16((short)x); }

/* Half as many doubles, and as many 64-bit integers in a VI. */
typedef __m512d VD;
VFN VD vd_low(V a) { return _mm512_cvtps_pd(_mm512_castps512_ps256(a)); }
VFN VD vd_high(V a) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)); }
VFN V v_from_doubles(VD low, VD high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}
constexpr int64_t kDoubles = kLanes / 2;
VFN VD vd_load(const double* p) { return _mm512_loadu_pd(p); }
VFN void vd_store(double* p, VD a) { _mm512_storeu_pd(p, a); }
VFN VD vd_zero(void) { return _mm512_setzero_pd(); }
VFN VD vd_set1(double x) { return _mm512_set1_pd(x); }
VFN VD vd_add(VD a, VD b) { return _mm512_add_pd(a, b); }
VFN VD vd_sub(VD a, VD b) { return _mm512_sub_pd(a, b); }
VFN VD vd_mul(VD a, VD b) { return _mm512_mul_pd(a, b); }
VFN VD vd_div(VD a, VD b) { return _mm512_div_pd(a, b); }
VFN VD vd_fma(VD a, VD b, VD c) { return _mm512_fmadd_pd(a, b, c); }
VFN VD vd_min(VD a, VD b) { return _mm512_min_pd(a, b); }
VFN VD vd_max(VD a, VD b) { return _mm512_max_pd(a, b); }
VFN VD vd_pick_min(VD a, VD b) {
  return _mm512_mask_min_pd(a, _mm512_cmp_pd_mask(a, a, _CMP_ORD_Q), a, b);
}
VFN VD vd_pick_max(VD a, VD b) {
  return _mm512_mask_max_pd(a, _mm512_cmp_pd_mask(a, a, _CMP_ORD_Q), a, b);
}
VFN VD vd_sqrt(VD a) { return _mm512_sqrt_pd(a); }
VFN VD vd_floor(VD a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
VFN VD vd_ceil(VD a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
VFN VD vd_round(VD a) {
  return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VFN VD vd_select_eq(VD a, VD b, VD yes, VD no) { /* a == b ? yes : no */
  return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), no, yes);
}
VFN VD vd_select_lt(VD a, VD b, VD yes, VD no) { /* a < b ? yes : no */
  return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), no, yes);
}
VFN VI vi_from_doubles(VD a) { return _mm512_castpd_si512(a); }
VFN VD vd_from_bits(VI a) { return _mm512_castsi512_pd(a); }
VFN VI vi_set1_64(int64_t x) { return _mm512_set1_epi64(x); }
VFN VI vi_add64(VI a, VI b) { return _mm512_add_epi64(a, b); }
VFN VI vi_sub64(VI a, VI b) { return _mm512_sub_epi64(a, b); }
VFN VI vi_shift_left64(VI a, int count) { return _mm512_slli_epi64(a, (unsigned)count); }
VFN VI vi_shift_right64(VI a, int count) { return _mm512_srli_epi64(a, (unsigned)count); }
