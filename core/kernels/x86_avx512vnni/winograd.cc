// Winograd's algorithm for bytes: core/kernels/vector in words of its own.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

#define FOLIO_LEVEL(name) name##__x86_avx512vnni

constexpr int kLanes = 16;
constexpr int kWordRows = 6;
constexpr int kWordPanels = 4;
constexpr int kUnrolled = 6;
typedef __m512i VI;

VFN VI vi_broadcast(const void* p) {
  int32_t x;
  __builtin_memcpy(&x, p, 4);
  return _mm512_set1_epi32(x);
}

VFN VI vi_set1_words(int32_t x) { return _mm512_set1_epi16((short)x); }

/* As dot4 has it. */
VFN void dot2(VI* sum, VI a, VI b) { __asm__("vpdpwssd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b)); }

VFN __mmask32 first_words(int64_t count) { return count >= 32 ? ~0U : (1U << count) - 1; }
VFN VI bytes_as_words(const uint8_t* from, int64_t left) {
  return _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(first_words(left), from));
}
VFN void put_words(int16_t* to, int64_t left, VI words) {
  _mm512_mask_storeu_epi16(to, first_words(left), words);
}

typedef struct Ending {
  const FolioSums* s;
  int64_t count;
  VI offset[4];
  Codes codes;        /* to bytes */
  CodeAdd add;        /* to sums of bytes */
  PanelSums words[4]; /* to the others */
  int is_plain;       /* 64 plain bytes */
} Ending;

static void begin_ending(const FolioSums* s, int64_t column, int64_t count, Ending* e) {
  e->s = s;
  e->count = count;
  for (int64_t v = 0; v < 4; ++v) {
    const int64_t left = count > v * kLanes ? count - v * kLanes : 0;
    e->offset[v] = load_offset(s, column + v * kLanes, left);
    if (s->to != kFolioToByte) e->words[v] = load_panel(s, column + v * kLanes, left);
  }
  e->is_plain = 0;
  if (s->to != kFolioToByte) return;
  e->codes = make_codes(s, column, count);
  e->is_plain = e->codes.is_plain && count == 64;
  if (s->add) e->add = make_code_add(s, e->is_plain);
}

/* All but plain bytes. */
static __attribute__((noinline)) void end_others(const Ending* e, const VI* sum,
                                                 const uint8_t* addend, char* to) {
  const FolioSums* s = e->s;
  if (s->to != kFolioToByte) {
    for (int64_t v = 0; v * kLanes < e->count; ++v) {
      store_words(s, &e->words[v], sum[v], to + v * 64);
    }
  } else if (s->add) {
    store_four_added__x86_avx512vnni(&e->codes, &e->add, sum, {1, 0, 0, addend, to});
  } else {
    store_codes<4, 0, 0>(&e->codes, sum, to);
  }
}

VFN void end_pixel(const Ending* e, const VI* products, const uint8_t* addend, char* to) {
  VI sum[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) sum[v] = _mm512_add_epi32(products[v], e->offset[v]);
  if (e->is_plain && !addend) {
    store_codes<4, 1, 1>(&e->codes, sum, to);
  } else {
    end_others(e, sum, addend, to);
  }
}

#include "core/kernels/vector/winograd_bytes.inl"

#include "core/kernels/vector/word_products.inl"

void folio_fill_winograd__x86_avx512vnni(FolioKernels* table) {
  fill_winograd_bytes(table);
  fill_word_products(table);
}
