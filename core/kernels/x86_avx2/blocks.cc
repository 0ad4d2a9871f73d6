// Weights of small integers in blocks.
#include "core/kernels/x86_avx2/x86_avx2.h"

#include "core/kernels/x86_avx2/vec.h"

constexpr int kDotColumns[4] = {4, 2, 2, 2};

namespace {

template <int kBits>
struct Decoder {
  V zero, scale;

  [[gnu::always_inline]] void set(float zero_, float scale_) {
    zero = v_set1(zero_);
    scale = v_set1(scale_);
  }
  template <int kPlace>
  [[gnu::always_inline]] V decode(VI bytes) const {
    if constexpr (kPlace > 0) bytes = vi_shift_right(bytes, kPlace * kBits);
    if constexpr (kBits < 8) bytes = vi_and(bytes, vi_set1((1 << kBits) - 1));
    return v_mul(v_sub(v_from_int(bytes), zero), scale);
  }
};

}  // namespace

#include "core/kernels/vector/blocks.inl"

/* ---- 8-bit integers: 32 bytes of a column a step, 8 quads */

constexpr int64_t kStep = 32;

/* Where a step's quads find their block, among those from `first` on. */
typedef struct QuadMap {
  int64_t blocks; /* in a step, at least 1 */
  VI block;       /* of each quad, from 0 on */
} QuadMap;

VFN QuadMap quad_map(int64_t blob) {
  QuadMap map;
  map.blocks = blob < kStep ? kStep / blob : 1;
  const VI quads = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  map.block = blob < kStep ? _mm256_srl_epi32(quads, _mm_cvtsi32_si128(__builtin_ctzll(blob) - 2))
                           : _mm256_setzero_si256();
  return map;
}

VFN V spread(const QuadMap* map, const void* of_blocks, int64_t left) {
  const VM m = v_first(left < map->blocks ? left : map->blocks);
  return _mm256_permutevar8x32_ps(_mm256_maskload_ps((const float*)of_blocks, m), map->block);
}

/* Sums of code * x in each quad. */
template <int kBits>
VFN VI dot_quads(VI codes, const int8_t* x, int64_t plane) {
  const VI low = vi_load(x);
  if constexpr (kBits == 4) {
    const VI mask = _mm256_set1_epi8(15);
    const VI even = _mm256_maddubs_epi16(vi_and(codes, mask), low);
    const VI odd =
        _mm256_maddubs_epi16(vi_and(_mm256_srli_epi16(codes, 4), mask), vi_load(x + plane));
    return _mm256_madd_epi16(_mm256_add_epi16(even, odd), _mm256_set1_epi16(1));
  } else { /* 255 * 127 * 2 overflows 16 bits */
    const VI first = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(codes)),
                                       _mm256_cvtepi8_epi16(_mm256_castsi256_si128(low)));
    const VI last = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(codes, 1)),
                                      _mm256_cvtepi8_epi16(_mm256_extracti128_si256(low, 1)));
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(first, last), 0xD8);
  }
}

template <int kBits, int kRows>
static void s8_column(const FolioBlockDotsS8* args, const int8_t* a, int64_t n, float* y) {
  const FolioBlockWeights* w = &args->w;
  const BlockShape s = block_shape(w->k, w->block, kBits);
  const int64_t plane = folio_block_plane_bytes(s.bytes);
  const int64_t row = folio_block_row_bytes(s.bytes, kBits);
  const QuadMap map = quad_map(s.blob);
  const uint8_t* codes = (const uint8_t*)w->codes + n * s.bytes;
  V sum[kRows];
  for (int i = 0; i < kRows; ++i) sum[i] = v_zero();
  for (int64_t at = 0; at < s.bytes; at += kStep) {
    const int64_t block = at / s.blob;
    const int64_t of = n * s.blocks + block;
    const V scale = spread(&map, (const char*)w->scales + 4 * of, s.blocks - block);
    const V zero = w->zeros ? spread(&map, w->zeros + of, s.blocks - block)
                            : v_set1((float)(1 << (kBits - 1)));
    VI bytes;
    if (s.bytes - at < kStep) { /* a multiple of 8 */
      alignas(32) uint8_t few[kStep] = {};
      __builtin_memcpy(few, codes + at, (size_t)(s.bytes - at));
      bytes = vi_load(few);
    } else {
      bytes = vi_load(codes + at);
    }
    for (int i = 0; i < kRows; ++i) {
      const int8_t* x = a + i * row;
      const float* scales = (const float*)(x + 8 / kBits * plane) + at / 4;
      const V dots = v_from_int(dot_quads<kBits>(bytes, x + at, plane));
      const V exact = v_fnma(zero, v_load(scales + plane / 4), dots);
      sum[i] = v_fma(exact, v_mul(scale, v_load(scales)), sum[i]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    const float v = v_sum(sum[i]);
    y[i * args->y_row_stride] = args->bias ? v + args->bias[n] : v;
  }
}

template <int kBits>
static void s8_rows(const FolioBlockDotsS8* args) {
  const BlockShape s = block_shape(args->w.k, args->w.block, kBits);
  const int64_t row = folio_block_row_bytes(s.bytes, kBits);
  for (int64_t i = 0; i < args->m;) {
    const int8_t* a = (const int8_t*)args->a + i * row;
    float* y = args->y + i * args->y_row_stride;
    const int64_t step = args->m - i >= 4 ? 4 : 1;
    for (int64_t n = 0; n < args->w.n; ++n) {
      if (step == 4) {
        s8_column<kBits, 4>(args, a, n, y + n);
      } else {
        s8_column<kBits, 1>(args, a, n, y + n);
      }
    }
    i += step;
  }
}

static void block_dots_s8__x86_avx2(const FolioBlockDotsS8* args) {
  if (args->w.bits == 4) {
    s8_rows<4>(args);
  } else {
    s8_rows<8>(args);
  }
}

void folio_fill_blocks__x86_avx2(FolioKernels* table) {
  fill_blocks(table);
  table->block_dots_s8 = block_dots_s8__x86_avx2;
}
