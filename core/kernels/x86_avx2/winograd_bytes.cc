// Winograd's algorithm for bytes.
#include "core/kernels/x86_avx2/x86_avx2.h"

#include "core/kernels/x86_avx2/vec.h"

constexpr int kWordRows = 4;
constexpr int kWordPanels = 1;
constexpr int kUnrolled = 1; /* few registers: what is written out is kept in memory, too */

VFN void dot2(VI* sum, VI a, VI b) { *sum = vi_add(*sum, _mm256_madd_epi16(a, b)); }

VFN VI bytes_as_words(const uint8_t* from, int64_t) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)(const void*)from));
}
VFN void put_words(int16_t* to, int64_t, VI words) { vi_store(to, words); }

#include "core/kernels/vector/byte_results.inl"

typedef Results Ending;

static void begin_ending(const FolioSums* s, int64_t column, int64_t count, Ending* e) {
  begin_results(s, column, count, kMostVectors, e);
}

/* 32 plain bytes. */
VFN void end_plain(const Results* r, int first, const VI* sum, const uint8_t* addend, char* to) {
  VI code[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const V value = v_mul(v_from_int(sum[first + v]), r->scale[first + v]);
    code[v] = addend ? add_plain_codes(r, value, addend + (first + v) * kLanes) : vi_nearest(value);
  }
  const VI zero = addend ? r->add.zero_words : vi_set1_words(r->s->zero);
  const VI order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const VI bytes = pack_plain(code, zero, r->s->lo < 0);
  vi_store(to + first * kLanes, _mm256_permutevar8x32_epi32(bytes, order));
}

VFN void end_pixel(const Ending* r, const VI* products, const uint8_t* addend, char* to) {
  VI sum[kMostVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kMostVectors; ++v) sum[v] = vi_add(products[v], r->offset[v]);
  if (!r->is_plain || r->count != kMostVectors * kLanes) {
    finish_row(r, sum, addend, to);
  } else {
    end_plain(r, 0, sum, addend, to);
    end_plain(r, 4, sum, addend, to);
  }
}

#include "core/kernels/vector/winograd_bytes.inl"

#include "core/kernels/vector/word_products.inl"

void folio_fill_winograd_bytes__x86_avx2(FolioKernels* table) {
  fill_winograd_bytes(table);
  fill_word_products(table);
}
