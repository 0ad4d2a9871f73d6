// Products of bytes: widened to 16 bits, because the instruction for bytes saturates its sums of
// two. A sum of 16 columns is four vectors of [4 columns][2 halves of the four rows].
#include "core/kernels/x86_avx2/x86_avx2.h"

#include "core/kernels/x86_avx2/vec.h"

#include "core/kernels/vector/byte_sum.inl"

constexpr int64_t kColumns = 16;

typedef struct Sums16 {
  VI part[4];
} Sums16;

VFN VI widen_s8(const uint8_t* p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)p));
}

/* Columns [j, j + count) of row i from their sums; `to` points at element (i, j); `add`: what
 * s->add comes to. */
static void store_sums(const FolioSums* s, const ByteSum* add, const Sums16* sums, int64_t i,
                       int64_t j, int64_t count, char* to) {
  for (int64_t half = 0; half < 2 && half * kLanes < count; ++half) {
    const int64_t left = count - half * kLanes;
    const VM mask = v_first(left < kLanes ? left : kLanes);
    const int64_t at = j + half * kLanes;
    VI sum = _mm256_permute4x64_epi64(
        _mm256_hadd_epi32(sums->part[2 * half], sums->part[2 * half + 1]), 0xd8);
    if (s->offset) sum = vi_add(sum, _mm256_maskload_epi32(s->offset + at, mask));
    if (s->column_sum) {
      const VI column = _mm256_maskload_epi32(s->column_sum + at, mask);
      sum = vi_sub(sum, _mm256_mullo_epi32(vi_set1(s->a_zero), column));
    }
    if (s->row_sum) {
      const VI zero = _mm256_maskload_epi32(s->b_zero + at, mask);
      sum = vi_sub(sum, _mm256_mullo_epi32(vi_set1(s->row_sum[i]), zero));
    }
    if (s->to == kFolioToInt32) {
      _mm256_maskstore_epi32((int*)(void*)(to + half * 32), mask, sum);
      continue;
    }
    V value = v_mul(v_from_int(sum), v_load_masked(s->scale + at, mask));
    if (s->to == kFolioToFloat) {
      if (s->bias) value = v_add(value, v_load_masked(s->bias + at, mask));
      v_store_masked((float*)(void*)(to + half * 32), mask, value);
      continue;
    }
    value = v_select(v_is_nan(value), v_zero(), value);
    value = v_max(value, v_set1((float)(s->lo - s->zero)));
    value = v_min(value, v_set1((float)(s->hi - s->zero)));
    uint8_t bytes[kLanes];
    vi_store_b8(bytes, vi_add(_mm256_cvtps_epi32(value), vi_set1(s->zero)));
    if (s->add) {
      uint8_t addend[kLanes] = {0};
      const uint8_t* from = s->addend + i * s->addend_row_stride + at;
      __builtin_memcpy(addend, from, (size_t)(left < kLanes ? left : kLanes));
      if (s->add->addend_is_a) add_vector(add, addend, bytes, bytes);
      if (!s->add->addend_is_a) add_vector(add, bytes, addend, bytes);
    }
    if (left >= kLanes) {
      __builtin_memcpy(to + half * kLanes, bytes, kLanes);
    } else {
      __builtin_memcpy(to + half * kLanes, bytes, (size_t)left);
    }
  }
}

/* The four bytes of row p / 4, as 16 bits in each group of four; beyond k they are 0. */
VFN VI widen_four(const uint8_t* a, int64_t left) {
  uint32_t four = 0;
  if (left >= 4) {
    __builtin_memcpy(&four, a, 4);
  } else {
    __builtin_memcpy(&four, a, (size_t)left);
  }
  return _mm256_cvtepu8_epi16(_mm_set1_epi32((int)four));
}

/* Adds `depth` rows of a panel. */
template <int kRows>
VFN void add_run(Sums16 sums[kRows], const uint8_t* const a[kRows], const uint8_t* b,
                 int64_t depth) {
  for (int64_t p = 0; p < depth; p += 4, b += FOLIO_S8P16K4_GROUP) {
    VI four[kRows];
    for (int i = 0; i < kRows; ++i) four[i] = widen_four(a[i] + p, depth - p);
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const VI w = widen_s8(b + 16 * q);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        sums[i].part[q] = vi_add(sums[i].part[q], _mm256_madd_epi16(four[i], w));
      }
    }
  }
}

template <int kRows>
static void gemm_rows(const FolioGemmU8* args, const ByteSum* add, int64_t row) {
  const int64_t panel = (args->k + 3) / 4 * FOLIO_S8P16K4_GROUP;
  const int64_t size = args->sums.to == kFolioToByte ? 1 : 4;
  const int64_t run = args->a_rows ? args->a_run : args->k;
  for (int64_t j = 0; j < args->n; j += kColumns) {
    const uint8_t* b = (const uint8_t*)args->b + j / kColumns * panel;
    Sums16 sums[kRows];
    for (int i = 0; i < kRows; ++i) {
      for (int q = 0; q < 4; ++q) sums[i].part[q] = _mm256_setzero_si256();
    }
    for (int64_t p = 0; p < args->k; p += run) {
      const uint8_t* a[kRows];
      for (int i = 0; i < kRows; ++i) {
        a[i] = args->a_rows ? args->a_rows[p / run * args->m + row + i]
                            : args->a + (row + i) * args->a_row_stride;
      }
      add_run<kRows>(sums, a, b + p / 4 * FOLIO_S8P16K4_GROUP, run);
    }
    const int64_t count = args->n - j < kColumns ? args->n - j : kColumns;
    for (int i = 0; i < kRows; ++i) {
      char* c = (char*)args->c + ((row + i) * args->c_row_stride + j) * size;
      store_sums(&args->sums, add, &sums[i], row + i, j, count, c);
    }
  }
}

static void FOLIO_LEVEL(gemm_u8)(const FolioGemmU8* args) {
  const FolioByteAdd* of = args->sums.add;
  ByteSum add = {};
  if (of) add = make_byte_sum(&of->a, &of->b, &of->to);
  int64_t row = 0;
  for (; row + 3 <= args->m; row += 3) gemm_rows<3>(args, &add, row);
  for (; row < args->m; ++row) gemm_rows<1>(args, &add, row);
}

/* Four channels of each of four taps, tap by tap within a channel, as 16 bits. */
VFN void interleave_taps(const __m128i x[4], VI out[4]) {
  const __m128i low01 = _mm_unpacklo_epi8(x[0], x[1]);
  const __m128i high01 = _mm_unpackhi_epi8(x[0], x[1]);
  const __m128i low23 = _mm_unpacklo_epi8(x[2], x[3]);
  const __m128i high23 = _mm_unpackhi_epi8(x[2], x[3]);
  out[0] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi16(low01, low23));
  out[1] = _mm256_cvtepu8_epi16(_mm_unpackhi_epi16(low01, low23));
  out[2] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi16(high01, high23));
  out[3] = _mm256_cvtepu8_epi16(_mm_unpackhi_epi16(high01, high23));
}

VFN __m128i load_channels(const uint8_t* p, int64_t count) {
  if (count >= 16) return _mm_loadu_si128((const __m128i*)p);
  uint8_t bytes[16] = {0};
  __builtin_memcpy(bytes, p, (size_t)count);
  return _mm_loadu_si128((const __m128i*)bytes);
}

/* 16 channels from `j` on of one pixel; `at`: its first column. */
VFN void add_taps(const FolioDepthwiseU8* args, const uint8_t* panel, int64_t at, int64_t j,
                  int64_t count, Sums16* sums) {
  const int64_t taps = args->sets * args->rows * args->columns;
  int64_t r = 0;
  int64_t c = 0;
  for (int64_t t = 0; t < taps; t += 4, panel += FOLIO_S8P16K4_GROUP) {
    __m128i x[4];
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm_setzero_si128();
      if (t + i >= taps) continue;
      x[i] = load_channels(args->x[r * args->x_row_stride + at + c * args->dilation] + j, count);
      if (++c < args->columns) continue;
      c = 0;
      if (++r == args->rows) r = 0;
    }
    VI wide[4];
    interleave_taps(x, wide);
    for (int q = 0; q < 4; ++q) {
      const VI product = _mm256_madd_epi16(wide[q], widen_s8(panel + 16 * q));
      sums->part[q] = vi_add(sums->part[q], product);
    }
  }
}

static void FOLIO_LEVEL(depthwise_u8)(const FolioDepthwiseU8* args) {
  const int64_t groups = (args->sets * args->rows * args->columns + 3) / 4;
  const int64_t size = args->sums.to == kFolioToByte ? 1 : 4;
  for (int64_t j = 0; j < args->channels; j += kColumns) {
    const int64_t count = args->channels - j < kColumns ? args->channels - j : kColumns;
    const uint8_t* panel = (const uint8_t*)args->b + j / kColumns * groups * FOLIO_S8P16K4_GROUP;
    for (int64_t i = 0; i < args->lines * args->pixels; ++i) {
      const int64_t at = i / args->pixels * args->x_line_stride + i % args->pixels * args->step;
      Sums16 sums;
      for (int q = 0; q < 4; ++q) sums.part[q] = _mm256_setzero_si256();
      add_taps(args, panel, at, j, count, &sums);
      char* y = (char*)args->y + (i * args->y_row_stride + j) * size;
      store_sums(&args->sums, nullptr, &sums, i, j, count, y);
    }
  }
}

void folio_fill_products__x86_avx2(FolioKernels* table) {
  table->gemm_u8 = FOLIO_LEVEL(gemm_u8);
  table->depthwise_u8 = FOLIO_LEVEL(depthwise_u8);
}
