/* The files of this folder to each other, and what becomes of 16 sums in a vector. */
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

#include "core/kernels/kernels.h"

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || \
    !defined(__AVX512VL__) || !defined(__AVX512VNNI__)
#error "compile this folder with the flags of its isa.cmake"
#endif

#define VFN static inline __attribute__((always_inline))

constexpr int64_t kColumns = 16;

void folio_fill_gemm__x86_avx512vnni(FolioKernels* table);
void folio_fill_depthwise__x86_avx512vnni(FolioKernels* table);
void folio_fill_blocks__x86_avx512vnni(FolioKernels* table);

/* sum + products of unsigned a and signed b. In words of its own: g++ 12 copies every sum before
 * the intrinsic, and then runs out of registers. */
VFN void dot4(__m512i* sum, __m512i a, __m512i b) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}

VFN __mmask16 first_lanes(int64_t count) {
  return (__mmask16)(count >= 16 ? 0xffff : (1u << count) - 1);
}

/* Columns of a panel: what FolioSums says of them. */
typedef struct PanelSums {
  __mmask16 mask;
  __m512i offset, b_zero;
  __m512 scale, bias;
} PanelSums;

VFN PanelSums load_panel(const FolioSums* s, int64_t j, int64_t count) {
  PanelSums p;
  p.mask = first_lanes(count);
  p.offset = s->offset ? _mm512_maskz_loadu_epi32(p.mask, s->offset + j) : _mm512_setzero_si512();
  p.b_zero = s->row_sum ? _mm512_maskz_loadu_epi32(p.mask, s->b_zero + j) : _mm512_setzero_si512();
  const int scaled = s->to != kFolioToInt32;
  p.scale = scaled ? _mm512_maskz_loadu_ps(p.mask, s->scale + j) : _mm512_setzero_ps();
  p.bias = scaled && s->bias ? _mm512_maskz_loadu_ps(p.mask, s->bias + j) : _mm512_setzero_ps();
  return p;
}

VFN __m512i to_codes(const FolioSums* s, __m512i sum, __m512 scale) {
  const __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
  __m512 v = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(value, value, _CMP_ORD_Q), value);
  v = _mm512_max_ps(v, _mm512_set1_ps((float)(s->lo - s->zero)));
  v = _mm512_min_ps(v, _mm512_set1_ps((float)(s->hi - s->zero)));
  return _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(s->zero));
}

/* `to`: element (i, j) of the panel's first column. */
VFN void store_panel(const FolioSums* s, const PanelSums* p, __m512i sum, int64_t i, char* to) {
  sum = _mm512_add_epi32(sum, p->offset);
  if (s->row_sum) {
    sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(s->row_sum[i]), p->b_zero));
  }
  if (s->to == kFolioToByte) {
    _mm512_mask_cvtepi32_storeu_epi8(to, p->mask, to_codes(s, sum, p->scale));
  } else if (s->to == kFolioToInt32) {
    _mm512_mask_storeu_epi32(to, p->mask, sum);
  } else {
    __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), p->scale);
    if (s->bias) value = _mm512_add_ps(value, p->bias);
    _mm512_mask_storeu_ps(to, p->mask, value);
  }
}
