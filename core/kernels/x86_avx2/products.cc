// Products of bytes. vpmaddubsw saturates its sums of two products at 16 bits, so what it
// multiplies with are weights of which that is known: the kernel looks at the bytes that it is
// about to use, once for many rows, and takes a group of weights that may saturate in two halves.
// So nothing that was written down with the weights has to be believed.
#include "core/kernels/x86_avx2/x86_avx2.h"

#include "core/kernels/x86_avx2/vec.h"

constexpr int kTileRows = 4;
constexpr int64_t kBlockDepth = 512; /* 8 KiB of a panel, 16 in halves */
constexpr int kLists = 1;

/* What every other weight of a vector is. */
VFN VI even_weights(VI w) { return vi_and(w, _mm256_set1_epi16(0xff)); }
VFN VI odd_weights(VI w) { return vi_andnot(_mm256_set1_epi16(0xff), w); }

/* Products of unsigned a and signed w, four by four, added to *sum. Without kAnyWeights w is such
 * as split_groups makes. */
template <int kAnyWeights>
VFN void dot4(VI* sum, VI a, VI w) {
  const VI ones = _mm256_set1_epi16(1);
  if constexpr (kAnyWeights) {
    const VI even = _mm256_maddubs_epi16(a, even_weights(w));
    const VI odd = _mm256_maddubs_epi16(a, odd_weights(w));
    *sum = vi_add(*sum, vi_add(_mm256_madd_epi16(even, ones), _mm256_madd_epi16(odd, ones)));
  } else {
    *sum = vi_add(*sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, w), ones));
  }
}

/* Lanes of 16 bits where a sum of two products may saturate. */
VFN VI may_saturate(VI w) {
  const VI both = _mm256_maddubs_epi16(_mm256_set1_epi8(1), w);
  return _mm256_cmpgt_epi16(_mm256_abs_epi16(both), _mm256_set1_epi16(128));
}

int64_t split_groups__x86_avx2(const char* b, int64_t groups, int32_t* at, char* split) {
  int64_t count = 0;
  int is_whole = 1;
  for (int64_t g = 0; g < groups; ++g, b += FOLIO_S8P16K4_GROUP) {
    const VI low = vi_load(b);
    const VI high = vi_load(b + 32);
    const int saturates = v_any(vi_or(may_saturate(low), may_saturate(high)));
    if (saturates && is_whole) {
      __builtin_memcpy(split, b - g * FOLIO_S8P16K4_GROUP, (size_t)(g * FOLIO_S8P16K4_GROUP));
      is_whole = 0;
    }
    at[count] = (int32_t)(4 * g);
    char* to = split + count * FOLIO_S8P16K4_GROUP;
    ++count;
    if (is_whole) continue;
    vi_store(to, saturates ? even_weights(low) : low);
    vi_store(to + 32, saturates ? even_weights(high) : high);
    if (!saturates) continue;
    vi_store(to + 64, odd_weights(low));
    vi_store(to + 96, odd_weights(high));
    at[count++] = (int32_t)(4 * g);
  }
  return count;
}

typedef struct StepsRoom {
  alignas(64) char split[2 * kBlockDepth / 4 * FOLIO_S8P16K4_GROUP];
  int32_t at[2 * kBlockDepth / 4 + 1];
} StepsRoom;

#include "core/kernels/vector/gemm_bytes.inl"

static Steps list_steps(const char* b, int64_t groups, StepsRoom* room) {
  const int64_t count = split_groups__x86_avx2(b, groups, room->at, room->split);
  room->at[count] = INT32_MAX;
  return {count == groups ? b : room->split, room->at};
}

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
