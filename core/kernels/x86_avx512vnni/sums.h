/* What becomes of sums of products of bytes in a stripe of up to four panels: the text that the
 * products of this folder and of x86_amx have in common. */
#pragma once

#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

constexpr int kStripePanels = 4;

/* Four panels or fewer, and what FolioSums says of their columns. */
typedef struct Stripe {
  const FolioGemmU8* args;
  int64_t column;
  __m512i offset[kStripePanels], b_zero[kStripePanels];
  Codes codes;                    /* to bytes */
  PanelSums words[kStripePanels]; /* to the others */
} Stripe;

/* What FolioSums says of the columns of `stripe`. */
VFN void begin_stripe(Stripe* stripe) {
  const FolioSums* s = &stripe->args->sums;
  const int64_t n = stripe->args->n;
  for (int64_t v = 0; v < kStripePanels; ++v) {
    const int64_t j = stripe->column + v * kColumns;
    const __mmask16 mask = first_lanes(n > j ? n - j : 0);
    stripe->offset[v] =
        s->offset ? _mm512_maskz_loadu_epi32(mask, s->offset + j) : _mm512_setzero_si512();
    stripe->b_zero[v] =
        s->row_sum ? _mm512_maskz_loadu_epi32(mask, s->b_zero + j) : _mm512_setzero_si512();
    if (s->to != kFolioToByte) stripe->words[v] = load_panel(s, j, n > j ? n - j : 0);
  }
  if (s->to != kFolioToByte) return;
  stripe->codes = make_codes(s, stripe->column, n - stripe->column);
}

template <int kRows, int kPanels>
VFN void begin_sums(const Stripe* stripe, int64_t row, __m512i (&sum)[kRows][kPanels]) {
  const int32_t* row_sum = stripe->args->sums.row_sum;
#pragma GCC unroll 4
  for (int v = 0; v < kPanels; ++v) {
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) sum[i][v] = stripe->offset[v];
    if (!row_sum) continue;
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const __m512i times = _mm512_set1_epi32(row_sum[row + i]);
      sum[i][v] = _mm512_sub_epi32(sum[i][v], _mm512_mullo_epi32(times, stripe->b_zero[v]));
    }
  }
}

template <int kRows, int kPanels>
VFN void finish_sums(const Stripe* stripe, int64_t row, const __m512i (&sum)[kRows][kPanels]) {
  const FolioGemmU8* args = stripe->args;
  const FolioSums* s = &args->sums;
  const int64_t size = s->to == kFolioToByte ? 1 : 4;
  char* c = (char*)args->c + (row * args->c_row_stride + stripe->column) * size;
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i, c += args->c_row_stride * size) {
    if (s->to == kFolioToByte) {
      store_codes<kPanels>(&stripe->codes, sum[i], c);
      continue;
    }
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) store_words(s, &stripe->words[v], sum[i][v], c + v * 64);
  }
}
