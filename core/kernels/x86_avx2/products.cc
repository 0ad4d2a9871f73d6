// Products of bytes. vpmaddubsw saturates its sums of two products at 16 bits, so what it
// multiplies with are weights of which that is known: the kernel looks at the bytes that it is
// about to use, once for many rows. Where weights are small, as most trained ones are, even two
// such sums fit into 16 bits together; those that fit by no means are multiplied as words. So
// nothing that was written down with the weights has to be believed.
#include "core/kernels/x86_avx2/x86_avx2.h"

#include "core/kernels/x86_avx2/vec.h"

constexpr int kTileRows = 4;
constexpr int64_t kBlockDepth = 4 * kMostByteGroups; /* 8 KiB of a panel, 16 of words */
constexpr int kLists = 1;
/* Sums are ready a cycle later; memory gives most when it is read in its order. */
constexpr int kFlatPanels[2] = {0, 0};
constexpr int64_t kFewRows = 12; /* for which a look at two groups together takes too long */

/* Signed bytes as words. */
VFN VI even_weights(VI w) { return _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8); }
VFN VI odd_weights(VI w) { return _mm256_srai_epi16(w, 8); }

VFN void add_words(VI* sum, VI even, VI odd, VI even_w, VI odd_w) {
  *sum = vi_add(*sum, _mm256_madd_epi16(even, even_w));
  *sum = vi_add(*sum, _mm256_madd_epi16(odd, odd_w));
}

VFN void add_pairs(VI* sum, VI pairs) {
  *sum = vi_add(*sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* Products of unsigned a and signed w, four by four, added to *sum. Without kAnyWeights sums of two
 * of them fit into 16 bits. */
template <int kAnyWeights>
VFN void dot4(VI* sum, VI a, VI w) {
  if constexpr (kAnyWeights) {
    add_words(sum, even_bytes(a), odd_bytes(a), even_weights(w), odd_weights(w));
  } else {
    add_pairs(sum, _mm256_maddubs_epi16(a, w));
  }
}

/* Lanes of 16 bits where a sum of two products may not fit: those of different signs always do. */
VFN VI may_saturate(VI w) {
  const VI both = _mm256_maddubs_epi16(_mm256_set1_epi8(1), w);
  return _mm256_cmpgt_epi16(_mm256_abs_epi16(both), _mm256_set1_epi16(128));
}

/* And of four, two of w and two of u. The sum of their magnitudes and that of themselves, without
 * its sign, are twice what those of one sign are. */
VFN VI may_saturate_together(VI w, VI u) {
  const VI ones = _mm256_set1_epi8(1);
  const VI sum = _mm256_add_epi16(_mm256_maddubs_epi16(ones, w), _mm256_maddubs_epi16(ones, u));
  const VI all = _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(w), ones),
                                  _mm256_maddubs_epi16(_mm256_abs_epi8(u), ones));
  const VI twice = _mm256_add_epi16(all, _mm256_abs_epi16(sum));
  return _mm256_cmpgt_epi16(twice, _mm256_set1_epi16(256));
}

VFN int fit_together(const char* groups) {
  const VI low = may_saturate_together(vi_load(groups), vi_load(groups + 64));
  const VI high = may_saturate_together(vi_load(groups + 32), vi_load(groups + 96));
  return !v_any(vi_or(low, high));
}

VFN void append(FolioByteSteps* list, int kind, FolioByteStep step) {
  list->steps[kind][list->count[kind]++] = step;
}

/* Not inlined: a group in some hundred of trained weights. */
static __attribute__((noinline)) void append_wide(FolioByteSteps* list, FolioByteStep step,
                                                  const char* b) {
  char* words = list->words + list->count[kFolioWide] * 2 * FOLIO_S8P16K4_GROUP;
  for (int v = 0; v < 2; ++v, words += 64) {
    const VI w = vi_load(b + step.b + v * 32);
    vi_store(words, even_weights(w));
    vi_store(words + 32, odd_weights(w));
  }
  append(list, kFolioWide, step);
}

VFN void append_group(FolioByteSteps* list, FolioByteStep step, const char* b) {
  const VI low = vi_load(b + step.b);
  const VI high = vi_load(b + step.b + 32);
  if (v_any(vi_or(may_saturate(low), may_saturate(high)))) {
    append_wide(list, step, b);
  } else {
    append(list, kFolioSingle, step);
  }
}

VFN FolioByteStep next_group(FolioByteStep step) {
  return {step.rows, step.first + 4, step.b + FOLIO_S8P16K4_GROUP};
}

void list_byte_steps__x86_avx2(const char* b, FolioByteStep step, int64_t groups, int joins,
                               FolioByteSteps* list) {
  while (groups > 0) {
    if (joins && groups > 1 && fit_together(b + step.b)) {
      append(list, kFolioJoined, step);
      step = next_group(step);
      --groups;
    } else {
      append_group(list, step, b);
    }
    step = next_group(step);
    --groups;
  }
}

typedef FolioByteSteps StepsRoom;
typedef struct Steps {
  const char* b; /* the part */
  const FolioByteSteps* list;
} Steps;

static Steps list_steps(const FolioGemmU8* args, const char* panel, int64_t from, int64_t to,
                        int64_t rows, StepsRoom* room) {
  for (int64_t& count : room->count) count = 0;
  const char* b = panel + from * 16;
  const int64_t groups = to / 4 - from / 4;
  const int joins = rows >= kFewRows ? 1 : 0;
  if (!args->a_rows) {
    list_byte_steps__x86_avx2(b, {0, from, 0}, groups, joins, room);
    return {b, room};
  }
  int64_t piece = from > 0 ? from / args->a_run : 0; /* of k = 0 a_run may be 0 */
  int64_t first = from - piece * args->a_run;
  for (int64_t g = 0; g < groups; ++piece, first = 0) {
    const int64_t left = (args->a_run - first) / 4;
    const int64_t count = groups - g < left ? groups - g : left;
    const FolioByteStep step = {piece * args->m, first, g * FOLIO_S8P16K4_GROUP};
    list_byte_steps__x86_avx2(b, step, count, joins, room);
    g += count;
  }
  return {b, room};
}

/* With weights in memory: for a fourth vector of them g++ would move a sum there. */
VFN VI far_products(VI a, const char* w) {
  VI pairs;
  __asm__("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(a), "m"(*(const char(*)[32])w));
  return pairs;
}

template <int kRows, int kVectors, typename At>
VFN void add_joined(VI (&sum)[kRows][kVectors], const Steps* steps, At at) {
  const FolioByteStep* step = steps->list->steps[kFolioJoined];
  for (int64_t left = steps->list->count[kFolioJoined]; left > 0; --left, ++step) {
    const char* b = steps->b + step->b;
    VI w[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) w[v] = vi_load(b + v * 32);
    const VI next = vi_load(b + FOLIO_S8P16K4_GROUP);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const uint8_t* a = at(*step, i);
      const VI x = vi_broadcast(a);
      const VI y = vi_broadcast(a + 4);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const VI second = v == 0 ? _mm256_maddubs_epi16(y, next)
                                 : far_products(y, b + FOLIO_S8P16K4_GROUP + v * 32);
        add_pairs(&sum[i][v], _mm256_add_epi16(_mm256_maddubs_epi16(x, w[v]), second));
      }
    }
  }
}

template <int kRows, int kVectors, typename At>
VFN void add_single(VI (&sum)[kRows][kVectors], const Steps* steps, At at) {
  const FolioByteStep* step = steps->list->steps[kFolioSingle];
  for (int64_t left = steps->list->count[kFolioSingle]; left > 0; --left, ++step) {
    const char* b = steps->b + step->b;
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const VI x = vi_broadcast(at(*step, i));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) dot4<0>(&sum[i][v], x, vi_load(b + v * 32));
    }
  }
}

template <int kRows, int kVectors, typename At>
VFN void add_wide(VI (&sum)[kRows][kVectors], const Steps* steps, At at) {
  const FolioByteStep* step = steps->list->steps[kFolioWide];
  const char* w = steps->list->words;
  for (int64_t left = steps->list->count[kFolioWide]; left > 0; --left, ++step) {
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const VI x = vi_broadcast(at(*step, i));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        add_words(&sum[i][v], even_bytes(x), odd_bytes(x), vi_load(w + v * 64),
                  vi_load(w + v * 64 + 32));
      }
    }
    w += 2 * FOLIO_S8P16K4_GROUP;
  }
}

template <int kRows, int kVectors, typename At>
VFN void add_steps(VI (&sum)[kRows][kVectors], const Steps* steps, At at) {
  add_joined(sum, steps, at);
  add_single(sum, steps, at);
  add_wide(sum, steps, at);
}

#include "core/kernels/vector/gemm_bytes.inl"

static int takes_weights(const VI* w, int64_t count) {
  VI any = vi_set1(0);
  for (int64_t i = 0; i < count; ++i) any = vi_or(any, may_saturate(w[i]));
  return !v_any(any);
}

#include "core/kernels/vector/depthwise_bytes.inl"

void folio_fill_products__x86_avx2(FolioKernels* table) {
  table->gemm_u8 = FOLIO_LEVEL(gemm_u8);
  table->depthwise_u8 = FOLIO_LEVEL(depthwise_u8);
}
