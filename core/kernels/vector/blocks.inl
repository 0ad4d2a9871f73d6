/* Weights of small integers in blocks: dot products in f32, rounding of A.
 *
 * The including file defines before: kDotColumns[rows - 1], columns side by side; Decoder<bits>,
 * made of a block's zero and scale, whose decode<place>(VI bytes) gives (code - zero) * scale, and
 * Decoder<kFolioBlockLevels>, made of levels and a scale; those are the kinds of codes.
 */

constexpr int bits_of_codes(int kind) { return kind == kFolioBlockLevels ? 4 : kind; }

typedef struct BlockShape {
  int64_t blob;   /* bytes of a block */
  int64_t blocks; /* of a column */
  int64_t bytes;  /* of a column */
} BlockShape;

VFN BlockShape block_shape(int64_t k, int64_t block, int32_t bits) {
  BlockShape s;
  s.blob = block * bits / 8;
  s.blocks = (k + block - 1) / block;
  s.bytes = s.blob * s.blocks;
  return s;
}

VFN float load_scale(const FolioBlockWeights* w, int64_t i) {
  float scale;
  __builtin_memcpy(&scale, (const char*)w->scales + 4 * i, 4);
  return scale;
}

template <int kCount>
VFN VI load_few_u8(const uint8_t* p) {
  uint64_t bytes = 0;
  __builtin_memcpy(&bytes, p, kCount);
  return vi_widen_u8(_mm_cvtsi64_si128((int64_t)bytes));
}

/* ---- dot products: a column's sum is one chain of fused multiply-adds in each lane */

template <int kPlace, int kRows, int kColumns, class Decode>
VFN void add_place(const FolioBlockDotsF32* args, const Decode* decode, const VI* codes,
                   const float* a, int64_t count, V (*sum)[kRows]) {
  V x[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    const float* row = a + i * args->a_row_stride;
    x[i] = count < kLanes ? v_load_masked(row, v_first(count)) : v_load(row);
  }
#pragma GCC unroll 4
  for (int c = 0; c < kColumns; ++c) {
    const V weight = decode[c].template decode<kPlace>(codes[c]);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sum[c][i] = v_fma(weight, x[i], sum[c][i]);
  }
}

template <int kKind>
VFN void set_decoder(const FolioBlockWeights* w, int64_t at, Decoder<kKind>* decode) {
  if constexpr (kKind == kFolioBlockLevels) {
    decode->set(w->levels, load_scale(w, at));
  } else {
    decode->set(w->zeros ? w->zeros[at] : (float)(1 << (kKind - 1)), load_scale(w, at));
  }
}

/* kTiny: bytes of a block if they are fewer than kLanes, else 0. */
template <int kKind, int kRows, int kColumns, int kTiny>
static void block_dots(const FolioBlockDotsF32* args, int64_t column) {
  constexpr int kBits = bits_of_codes(kKind);
  constexpr int kPlaces = 8 / kBits;
  const FolioBlockWeights* w = &args->w;
  const BlockShape s = block_shape(w->k, w->block, kBits);
  const uint8_t* first = (const uint8_t*)w->codes + column * s.bytes;
  constexpr int64_t step = kTiny ? kTiny : kLanes;
  V sum[kColumns][kRows];
  for (int c = 0; c < kColumns; ++c) {
    for (int i = 0; i < kRows; ++i) sum[c][i] = v_zero();
  }
  /* What the next columns have there is fetched in the order of memory. */
  const char* next = (const char*)first + kColumns * s.bytes;
  const char* next_scales = (const char*)w->scales + 4 * (column + kColumns) * s.blocks;
  for (int64_t block = 0; block < s.blocks; ++block) {
    for (int64_t line = 0; line < kColumns * s.blob; line += 64) {
      _mm_prefetch(next + kColumns * s.blob * block + line, _MM_HINT_T0);
    }
    _mm_prefetch(next_scales + 4 * kColumns * block, _MM_HINT_T0);
    Decoder<kKind> decode[kColumns];
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) set_decoder(w, (column + c) * s.blocks + block, decode + c);
    for (int64_t at = block * s.blob; at < (block + 1) * s.blob; at += step) {
      VI codes[kColumns];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        const uint8_t* from = first + c * s.bytes + at;
        if constexpr (kTiny) {
          codes[c] = load_few_u8<kTiny>(from);
        } else {
          codes[c] = vi_load_u8(from);
        }
      }
      const float* a = args->a + at;
      add_place<0, kRows, kColumns>(args, decode, codes, a, step, sum);
      if constexpr (kPlaces > 1) {
        add_place<1, kRows, kColumns>(args, decode, codes, a + s.bytes, step, sum);
      }
      if constexpr (kPlaces > 2) {
        add_place<2, kRows, kColumns>(args, decode, codes, a + 2 * s.bytes, step, sum);
        add_place<3, kRows, kColumns>(args, decode, codes, a + 3 * s.bytes, step, sum);
      }
    }
  }
  for (int c = 0; c < kColumns; ++c) {
    for (int i = 0; i < kRows; ++i) {
      const float y = v_sum(sum[c][i]);
      args->y[i * args->y_row_stride + column + c] = args->bias ? y + args->bias[column + c] : y;
    }
  }
}

template <int kKind, int kRows, int kTiny>
static void block_dots_columns(const FolioBlockDotsF32* args) {
  constexpr int kColumns = kDotColumns[kRows - 1];
  int64_t n = 0;
  for (; n + kColumns <= args->w.n; n += kColumns) {
    block_dots<kKind, kRows, kColumns, kTiny>(args, n);
  }
  for (; n < args->w.n; ++n) block_dots<kKind, kRows, 1, kTiny>(args, n);
}

template <int kKind, int kRows>
static void block_dots_rows(const FolioBlockDotsF32* args) {
  const int64_t blob = args->w.block * bits_of_codes(kKind) / 8;
  if (kKind == kFolioBlockLevels || blob >= kLanes)
    return block_dots_columns<kKind, kRows, 0>(args);
  if constexpr (kKind == 2 || kKind == 4) {
    if (blob == 8) return block_dots_columns<kKind, kRows, 8>(args);
  }
  if constexpr (kKind == 2) block_dots_columns<kKind, kRows, 4>(args);
}

template <int kKind>
static void block_dots_kind(const FolioBlockDotsF32* args) {
  switch (args->m) {
    case 1:
      return block_dots_rows<kKind, 1>(args);
    case 2:
      return block_dots_rows<kKind, 2>(args);
    case 3:
      return block_dots_rows<kKind, 3>(args);
    case 4:
      return block_dots_rows<kKind, 4>(args);
    default:
      return;
  }
}

void FOLIO_LEVEL(block_dots_f32)(const FolioBlockDotsF32* args) {
  if (args->w.levels) return block_dots_kind<kFolioBlockLevels>(args);
  if (args->w.bits == 2) return block_dots_kind<2>(args);
  if (args->w.bits == 4) return block_dots_kind<4>(args);
  block_dots_kind<8>(args);
}

/* ---- rounding */

/* A block's elements as bytes to their planes; their sum. */
VFN int32_t spread_codes(const int8_t* codes, int64_t block, int32_t bits, int64_t plane,
                         int8_t* to) {
  const __m128i ones8 = _mm_set1_epi8(1);
  const __m128i ones16 = _mm_set1_epi16(1);
  const __m128i places = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  __m128i sum = _mm_setzero_si128();
  for (int64_t i = 0; i < block; i += 16) {
    const __m128i x = _mm_loadu_si128((const __m128i*)(codes + i));
    sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_maddubs_epi16(ones8, x), ones16));
    if (bits == 8) {
      _mm_storeu_si128((__m128i*)(to + i), x);
    } else {
      const __m128i split = _mm_shuffle_epi8(x, places);
      _mm_storel_epi64((__m128i*)(to + i / 2), split);
      _mm_storel_epi64((__m128i*)(to + plane + i / 2), _mm_unpackhi_epi64(split, split));
    }
  }
  sum = _mm_hadd_epi32(sum, sum);
  return _mm_cvtsi128_si32(_mm_hadd_epi32(sum, sum));
}

/* The scale of n elements, rounded to `codes`; zeros up to `block`. */
VFN float round_block(int64_t n, int64_t block, const float* a, int8_t* codes) {
  V max = v_zero();
  V poison = v_zero();
  for (int64_t i = 0; i < n; i += kLanes) {
    const V x = n - i < kLanes ? v_load_masked(a + i, v_first(n - i)) : v_load(a + i);
    max = v_max(v_max(x, v_sub(v_zero(), x)), max); /* a NaN leaves max as it was */
    poison = v_fma(x, v_zero(), poison);
  }
  const float largest = v_max_lane(max);
  const V inverse = v_set1(largest > 1e-36f ? 127.0f / largest : 0.0f);
  for (int64_t i = 0; i < block; i += kLanes) {
    V x = v_zero();
    if (i < n) x = n - i < kLanes ? v_load_masked(a + i, v_first(n - i)) : v_load(a + i);
    vi_store_b8(codes + i, vi_truncate(v_round(v_mul(x, inverse))));
  }
  return largest / 127.0f + v_sum(poison);
}

static void FOLIO_LEVEL(block_round_f32)(int64_t k, int64_t block, int32_t bits, const float* a,
                                         void* row) {
  const BlockShape s = block_shape(k, block, bits);
  const int64_t plane = folio_block_plane_bytes(s.bytes);
  const int64_t places = 8 / bits;
  const int64_t padded = folio_block_padded(s.blocks);
  int8_t* to = (int8_t*)row;
  float* scales = (float*)(to + places * plane);
  int32_t* middles = (int32_t*)(scales + padded);
  alignas(64) int8_t codes[256];
  for (int64_t b = 0; b < s.blocks; ++b) {
    const int64_t left = k - b * block;
    scales[b] = round_block(left < block ? left : block, block, a + b * block, codes);
    middles[b] = -(1 << (bits - 1)) * spread_codes(codes, block, bits, plane, to + b * s.blob);
  }
  for (int64_t b = s.blocks; b < padded; ++b) scales[b] = 0.0f;
  for (int64_t b = s.blocks; b < padded; ++b) middles[b] = 0;
  const size_t rest = (size_t)(plane - s.bytes);
  if (rest == 0) return; /* a row of nothing may be null, which memset must not get */
  for (int64_t j = 0; j < places; ++j) __builtin_memset(to + j * plane + s.bytes, 0, rest);
}

#include "core/kernels/vector/block_widen.inl"

static void fill_blocks(FolioKernels* table) {
  table->block_dots_f32 = FOLIO_LEVEL(block_dots_f32);
  table->block_round_f32 = FOLIO_LEVEL(block_round_f32);
  table->block_widen_f32p16 = FOLIO_LEVEL(block_widen_f32p16);
}
