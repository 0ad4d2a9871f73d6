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

#include "core/kernels/vector/sum_scales.inl"

constexpr int64_t kColumns = 16;

void folio_fill_gemm__x86_avx512vnni(FolioKernels* table);
void folio_fill_depthwise__x86_avx512vnni(FolioKernels* table);
void folio_fill_winograd__x86_avx512vnni(FolioKernels* table);
void folio_fill_blocks__x86_avx512vnni(FolioKernels* table);

/* For those levels above that leave a few rows to this one. */
void gemm_u8__x86_avx512vnni(const FolioGemmU8* args);
void block_dots_s8__x86_avx512vnni(const FolioBlockDotsS8* args);

/* sum + products of unsigned a and signed b. In words of its own: g++ 12 copies every sum before
 * the intrinsic, and then runs out of registers. */
VFN void dot4(__m512i* sum, __m512i a, __m512i b) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}

VFN __mmask16 first_lanes(int64_t count) {
  return (__mmask16)(count >= 16 ? 0xffff : (1u << count) - 1);
}

/* What FolioSums adds to the products in `count` columns from j on, in every row. */
VFN __m512i load_offset(const FolioSums* s, int64_t j, int64_t count) {
  const __mmask16 mask = first_lanes(count);
  __m512i offset =
      s->offset ? _mm512_maskz_loadu_epi32(mask, s->offset + j) : _mm512_setzero_si512();
  if (s->column_sum) {
    const __m512i column = _mm512_maskz_loadu_epi32(mask, s->column_sum + j);
    offset = _mm512_sub_epi32(offset, _mm512_mullo_epi32(column, _mm512_set1_epi32(s->a_zero)));
  }
  return offset;
}

/* Columns of a panel: what FolioSums says of them, to words. */
typedef struct PanelSums {
  __mmask16 mask;
  __m512 scale, bias;
} PanelSums;

VFN PanelSums load_panel(const FolioSums* s, int64_t j, int64_t count) {
  PanelSums p;
  p.mask = first_lanes(count);
  const int scaled = s->to != kFolioToInt32;
  p.scale = scaled ? _mm512_maskz_loadu_ps(p.mask, s->scale + j) : _mm512_setzero_ps();
  p.bias = scaled && s->bias ? _mm512_maskz_loadu_ps(p.mask, s->bias + j) : _mm512_setzero_ps();
  return p;
}

/* int32 or float: `to` is where the panel's first column goes, `sum` has its offset already. */
VFN void store_words(const FolioSums* s, const PanelSums* p, __m512i sum, char* to) {
  if (s->to == kFolioToInt32) {
    _mm512_mask_storeu_epi32(to, p->mask, sum);
    return;
  }
  __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), p->scale);
  if (s->bias) value = _mm512_add_ps(value, p->bias);
  _mm512_mask_storeu_ps(to, p->mask, value);
}

/* Whether every sum times its scale stays in int32: |scale| < 1. */
VFN int scales_are_small(const __m512 scale[4]) {
  __mmask16 large = 0;
  for (int v = 0; v < 4; ++v) {
    large |= _mm512_cmp_ps_mask(_mm512_abs_ps(scale[v]), _mm512_set1_ps(1.0f), _CMP_NLT_UQ);
  }
  return large == 0;
}

/* From sums to bytes of up to 64 columns. Signed codes are made as unsigned ones, 128 more. */
typedef struct Codes {
  __m512 scale[4];
  __m512 low, high;          /* of the scaled sum */
  __m512i zero;              /* 16 bits */
  __m512i least, most, flip; /* bytes */
  __mmask64 mask;
  int is_plain; /* small scales, all of int8 or uint8: neither `low` nor `least` are needed */
} Codes;

VFN Codes make_codes(const FolioSums* s, int64_t j, int64_t count) {
  const int up = s->lo < 0 ? 128 : 0;
  Codes c;
  for (int64_t v = 0; v < 4; ++v) {
    const int64_t left = count - v * kColumns;
    c.scale[v] = left > 0 ? _mm512_maskz_loadu_ps(first_lanes(left), s->scale + j + v * kColumns)
                          : _mm512_setzero_ps();
  }
  c.low = _mm512_set1_ps((float)(s->lo - s->zero));
  c.high = _mm512_set1_ps((float)(s->hi - s->zero));
  c.zero = _mm512_set1_epi16((short)(s->zero + up));
  c.least = _mm512_set1_epi8((char)(s->lo + up));
  c.most = _mm512_set1_epi8((char)(s->hi + up));
  c.flip = _mm512_set1_epi8((char)up);
  c.mask = count >= 64 ? ~UINT64_C(0) : ~UINT64_C(0) >> (64 - count);
  c.is_plain = scales_are_small(c.scale) && s->hi - s->lo == 255;
  return c;
}

template <int kPlain>
VFN __m512i round_code(const Codes* c, __m512i sum, __m512 scale) {
  __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
  if (!kPlain) {
    value = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(value, value, _CMP_ORD_Q), value);
    value = _mm512_min_ps(_mm512_max_ps(value, c->low), c->high);
  }
  return _mm512_cvtps_epi32(value);
}

/* Bytes of each lane: four of code[0], ..., four of code[3]. What leaves 16 bits stays at their
 * ends, far beyond any byte. */
template <int kPlain>
VFN __m512i pack_codes(const Codes* c, const __m512i code[4]) {
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(code[0], code[1]), c->zero);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(code[2], code[3]), c->zero);
  __m512i bytes = _mm512_packus_epi16(low, high);
  if (!kPlain) bytes = _mm512_min_epu8(_mm512_max_epu8(bytes, c->least), c->most);
  return _mm512_xor_si512(bytes, c->flip);
}

/* What pack_codes leaves, one vector of codes after the other. */
VFN __m512i in_order(__m512i packed) {
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  return _mm512_permutexvar_epi32(order, packed);
}

/* Bytes of one row, as pack_codes leaves them. kWhole: all columns of the panels; masks take
 * longer. */
template <int kPanels, int kWhole>
VFN void store_packed(const Codes* c, __m512i packed, char* to) {
  const __m512i bytes = in_order(packed);
  if (!kWhole) {
    const __mmask64 of_panels =
        kPanels == 4 ? ~UINT64_C(0) : (UINT64_C(1) << 16 * (kPanels % 4)) - 1;
    _mm512_mask_storeu_epi8(to, c->mask & of_panels, bytes);
    return;
  }
  if (kPanels == 4) _mm512_storeu_si512(to, bytes);
  if (kPanels == 2 || kPanels == 3) {
    _mm256_storeu_si256((__m256i*)(void*)to, _mm512_castsi512_si256(bytes));
  }
  if (kPanels == 3) {
    _mm_storeu_si128((__m128i*)(void*)(to + 32), _mm512_extracti32x4_epi32(bytes, 2));
  }
  if (kPanels == 1) _mm_storeu_si128((__m128i*)(void*)to, _mm512_castsi512_si128(bytes));
}

/* One row. */
template <int kPanels, int kPlain, int kWhole>
VFN void store_codes(const Codes* c, const __m512i* sum, char* to) {
  __m512i code[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    code[v] = v < kPanels ? round_code<kPlain>(c, sum[v < kPanels ? v : 0], c->scale[v])
                          : _mm512_setzero_si512();
  }
  store_packed<kPanels, kWhole>(c, pack_codes<kPlain>(c, code), to);
}

/* How codes are added: any way, or fast ones, bit 0: of signed bytes, bit 1: the addend is a. */
enum AddForm { kAnyAdd = -1, kFastAdd = 0 };

/* What FolioByteAdd comes to. Codes that are added stay floats: to the nearest integer by a sum
 * whose last place is 1. */
typedef struct CodeAdd {
  __m512 p, q, r;            /* of a and b */
  __m512 magic, least, most; /* least and most: of the rounded sum with `magic` */
  __m512 back;               /* magic less the zero point of a */
  __m512 low, high;          /* of the ratio */
  __m512i zero;              /* 16 bits */
  int is_signed, addend_is_a;
  int form; /* fast: plain codes of whole panels, all ratios within int32 */
} CodeAdd;

/* `is_plain`: the codes are, and all columns of the panels. */
VFN CodeAdd make_code_add(const FolioSums* s, int is_plain) {
  const FolioByteAdd* add = s->add;
  constexpr float kMagic = 12582912.0f; /* 1.5 * 2^23 */
  const SumScales scales = sum_scales(&add->a, &add->b, &add->to);
  const int32_t low = add->to.is_signed ? -128 : 0;
  CodeAdd c;
  c.p = _mm512_set1_ps(scales.p);
  c.q = _mm512_set1_ps(scales.q);
  c.r = _mm512_set1_ps(scales.r);
  c.magic = _mm512_set1_ps(kMagic);
  c.least = _mm512_set1_ps(kMagic + (float)(s->lo - s->zero));
  c.most = _mm512_set1_ps(kMagic + (float)(s->hi - s->zero));
  c.back = _mm512_set1_ps(kMagic - (float)s->zero);
  c.low = _mm512_set1_ps((float)(low - add->to.zero));
  c.high = _mm512_set1_ps((float)(low + 255 - add->to.zero));
  c.zero = _mm512_set1_epi16((short)add->to.zero);
  c.is_signed = add->to.is_signed;
  c.addend_is_a = add->addend_is_a;
  const int bits = (c.is_signed ? 1 : 0) + (c.addend_is_a ? 2 : 0);
  c.form = is_plain && scales.most < 0x1p30f ? kFastAdd + bits : kAnyAdd;
  return c;
}

VFN __m512 zero_where_nan(__m512 x) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
}

/* 16 sums as codes, with those of `addend`; rounded, without the zero point. */
template <int kForm>
VFN __m512i add_code(const CodeAdd* add, __m512i sum, __m512 scale, __m128i addend) {
  const int is_signed = kForm == kAnyAdd ? add->is_signed : kForm & 1;
  const int addend_is_a = kForm == kAnyAdd ? add->addend_is_a : kForm & 2;
  __m512 code = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
  if (kForm == kAnyAdd) code = zero_where_nan(code);
  code = _mm512_add_ps(code, add->magic);
  code = _mm512_sub_ps(_mm512_min_ps(_mm512_max_ps(code, add->least), add->most), add->back);
  const __m512i wide = is_signed ? _mm512_cvtepi8_epi32(addend) : _mm512_cvtepu8_epi32(addend);
  const __m512 other = _mm512_cvtepi32_ps(wide);
  const __m512 a = addend_is_a ? other : code;
  const __m512 b = addend_is_a ? code : other;
  __m512 ratio = _mm512_fmadd_ps(a, add->p, _mm512_fmadd_ps(b, add->q, add->r));
  if (kForm == kAnyAdd) {
    ratio = _mm512_min_ps(_mm512_max_ps(zero_where_nan(ratio), add->low), add->high);
  }
  return _mm512_cvtps_epi32(ratio);
}

/* Bytes of add_code's results, as pack_codes leaves its. */
template <int kForm>
VFN __m512i pack_added(const CodeAdd* add, const __m512i code[4]) {
  const int is_signed = kForm == kAnyAdd ? add->is_signed : kForm & 1;
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(code[0], code[1]), add->zero);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(code[2], code[3]), add->zero);
  return is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
}

/* One row. */
template <int kPanels, int kForm>
VFN void store_added(const Codes* c, const CodeAdd* add, const __m512i* sum, const uint8_t* addend,
                     char* to) {
  __m512i code[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    code[v] = _mm512_setzero_si512();
    if (v >= kPanels) continue;
    const uint8_t* from = addend + v * kColumns;
    const __m128i bytes = kForm == kAnyAdd
                              ? _mm_maskz_loadu_epi8((__mmask16)(c->mask >> 16 * v), from)
                              : _mm_loadu_si128((const __m128i*)(const void*)from);
    code[v] = add_code<kForm>(add, sum[v < kPanels ? v : 0], c->scale[v], bytes);
  }
  store_packed<kPanels, kForm != kAnyAdd>(c, pack_added<kForm>(add, code), to);
}

/* Rows of bytes that are added to others: where each is, and how far apart. */
typedef struct AddedRows {
  int64_t rows, addend_stride, stride;
  const uint8_t* addend;
  char* to;
} AddedRows;

template <int kPanels, int kForm>
VFN void store_all_added(const Codes* c, const CodeAdd* add, const __m512i* sums, AddedRows r) {
  for (; r.rows > 0; --r.rows, sums += kPanels) {
    store_added<kPanels, kForm>(c, add, sums, r.addend, r.to);
    r.addend += r.addend_stride;
    r.to += r.stride;
  }
}

/* sums: [rows][panels]. */
template <int kPanels>
VFN void store_sums_of_codes(const Codes* c, const CodeAdd* add, const __m512i* sums,
                             const AddedRows& r) {
  switch (add->form) {
    case kFastAdd:
      return store_all_added<kPanels, 0>(c, add, sums, r);
    case kFastAdd + 1:
      return store_all_added<kPanels, 1>(c, add, sums, r);
    case kFastAdd + 2:
      return store_all_added<kPanels, 2>(c, add, sums, r);
    case kFastAdd + 3:
      return store_all_added<kPanels, 3>(c, add, sums, r);
    default:
      return store_all_added<kPanels, kAnyAdd>(c, add, sums, r);
  }
}

/* The same of four panels, which is there once. */
void store_four_added__x86_avx512vnni(const Codes* c, const CodeAdd* add, const __m512i* sums,
                                      const AddedRows& r);
