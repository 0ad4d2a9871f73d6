// Filters of one channel each over 64 channels at a time: four taps interleaved are what a dot
// product takes. Vectors q = 0..3 hold channels 16 l + 4 q .. + 3 in lane l of 128 bits, and so do
// weights, offsets and scales; bytes come out in order. Windows of 3 x 3 interleave a column of
// three taps, once for all pixels that it is under.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

constexpr int64_t kBlock = 64;
constexpr int64_t kMaxGroups = FOLIO_MAX_BYTE_TAPS / 4;
constexpr int kPair = 2; /* two pixels of 32 channels in a vector */

typedef struct Lanes {
  __m512i part[4];
} Lanes;

/* Lane l of part q from lane q of part l; its own inverse. */
VFN Lanes swap_lanes(Lanes x) {
  const __m512i a = _mm512_shuffle_i32x4(x.part[0], x.part[1], 0x44);
  const __m512i b = _mm512_shuffle_i32x4(x.part[2], x.part[3], 0x44);
  const __m512i c = _mm512_shuffle_i32x4(x.part[0], x.part[1], 0xee);
  const __m512i d = _mm512_shuffle_i32x4(x.part[2], x.part[3], 0xee);
  Lanes y;
  y.part[0] = _mm512_shuffle_i32x4(a, b, 0x88);
  y.part[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
  y.part[2] = _mm512_shuffle_i32x4(c, d, 0x88);
  y.part[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
  return y;
}

/* 64 values of 32 bits from p on, 0 where there are no more. */
VFN Lanes load_lanes(const void* p, int64_t count) {
  Lanes x;
  for (int l = 0; l < 4; ++l) {
    const int64_t left = count - l * kColumns;
    x.part[l] = left > 0 ? _mm512_maskz_loadu_epi32(first_lanes(left), (const char*)p + l * 64)
                         : _mm512_setzero_si512();
  }
  return swap_lanes(x);
}

typedef struct Block {
  const FolioDepthwiseU8* args;
  int64_t channel, count;
  Lanes weights[kMaxGroups]; /* of four taps, or of a column, of one set after the other */
  Lanes offset;
  Codes codes; /* to bytes */
} Block;

VFN void store_words_of(const Block* block, Lanes sums, int64_t at) {
  const FolioDepthwiseU8* args = block->args;
  const FolioSums* s = &args->sums;
  sums = swap_lanes(sums);
  for (int64_t l = 0; l < 4 && l * kColumns < block->count; ++l) {
    const PanelSums p = load_panel(s, block->channel + l * kColumns, block->count - l * kColumns);
    store_words(s, &p, sums.part[l], (char*)args->y + (at + l * kColumns) * 4);
  }
}

/* kPlain: to bytes that are plain; kPlain > 1: so many channels, without the masks that take
 * longer. */
template <int kPlain>
VFN void store_block(const Block* block, Lanes sums, int64_t pixel) {
  const FolioDepthwiseU8* args = block->args;
  const int64_t at = pixel * args->y_row_stride + block->channel;
  if (!kPlain && args->sums.to != kFolioToByte) {
    store_words_of(block, sums, at);
    return;
  }
  __m512i code[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    code[q] = round_code<kPlain>(&block->codes, sums.part[q], block->codes.scale[q]);
  }
  const __m512i bytes = pack_codes<kPlain>(&block->codes, code);
  if (kPlain == 64) {
    _mm512_storeu_si512((char*)args->y + at, bytes);
  } else if (kPlain == kPair) {
    __m256i* to = (__m256i*)(void*)((char*)args->y + at);
    _mm256_storeu_si256(to, _mm512_castsi512_si256(bytes));
    to = (__m256i*)(void*)((char*)args->y + at + args->y_row_stride);
    _mm256_storeu_si256(to, _mm512_extracti64x4_epi64(bytes, 1));
  } else if (kPlain == 32) {
    _mm256_storeu_si256((__m256i*)(void*)((char*)args->y + at), _mm512_castsi512_si256(bytes));
  } else {
    _mm512_mask_storeu_epi8((char*)args->y + at, block->codes.mask, bytes);
  }
}

VFN Lanes interleave(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i low01 = _mm512_unpacklo_epi8(a, b);
  const __m512i high01 = _mm512_unpackhi_epi8(a, b);
  const __m512i low23 = _mm512_unpacklo_epi8(c, d);
  const __m512i high23 = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
           _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)}};
}

/* Any window. */
static void run_taps(const Block* block) {
  const FolioDepthwiseU8* args = block->args;
  const int64_t taps = args->sets * args->rows * args->columns;
  const __mmask64 mask = ~UINT64_C(0) >> (kBlock - block->count);
  for (int64_t i = 0; i < args->lines * args->pixels; ++i) {
    const int64_t first = i / args->pixels * args->x_line_stride + i % args->pixels * args->step;
    const uint8_t* const* row = args->x + first;
    int64_t c = 0;
    int64_t r = 0;
    Lanes sums = block->offset;
    for (int64_t t = 0; t < taps; t += 4) {
      __m512i x[4];
#pragma GCC unroll 4
      for (int64_t at = 0; at < 4; ++at) {
        x[at] = _mm512_setzero_si512();
        if (t + at >= taps) continue;
        x[at] = _mm512_maskz_loadu_epi8(mask, row[c * args->dilation] + block->channel);
        if (++c < args->columns) continue;
        c = 0;
        row = ++r % args->rows == 0 ? args->x + first : row + args->x_row_stride;
      }
      const Lanes four = interleave(x[0], x[1], x[2], x[3]);
      const Lanes* w = &block->weights[t / 4];
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) dot4(&sums.part[q], four.part[q], w->part[q]);
    }
    store_block<0>(block, sums, i);
  }
}

/* The three taps of a column. */
template <int kPlain>
VFN Lanes load_column(const Block* block, const uint8_t* const* column, __mmask64 mask) {
  const int64_t step = block->args->x_row_stride;
  __m512i x[3];
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    const uint8_t* from = column[r * step] + block->channel;
    if (kPlain == 64) {
      x[r] = _mm512_loadu_si512(from);
    } else if (kPlain == 32) {
      x[r] = _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i*)(const void*)from));
    } else {
      x[r] = _mm512_maskz_loadu_epi8(mask, from);
    }
  }
  return interleave(x[0], x[1], x[2], _mm512_setzero_si512());
}

/* kSets: of weights, for the same taps. */
template <int kPlain, int kSets>
VFN void add_columns(const Block* block, const Lanes* a, const Lanes* b, const Lanes* c,
                     int64_t pixel) {
  const Lanes* w = block->weights;
  Lanes sums = block->offset;
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    dot4(&sums.part[q], a->part[q], w[0].part[q]);
    dot4(&sums.part[q], b->part[q], w[1].part[q]);
    dot4(&sums.part[q], c->part[q], w[2].part[q]);
    if (kSets == 1) continue;
    dot4(&sums.part[q], a->part[q], w[3].part[q]);
    dot4(&sums.part[q], b->part[q], w[4].part[q]);
    dot4(&sums.part[q], c->part[q], w[5].part[q]);
  }
  store_block<kPlain>(block, sums, pixel);
}

/* Windows of 3 x 3 side by side: a pixel brings one column. */
template <int kPlain, int kSets>
static void run_columns(const Block* block) {
  const FolioDepthwiseU8* args = block->args;
  const __mmask64 mask = ~UINT64_C(0) >> (kBlock - block->count);
  int64_t pixel = 0;
  for (int64_t l = 0; l < args->lines; ++l) {
    const uint8_t* const* column = args->x + l * args->x_line_stride;
    const int64_t end = pixel + args->pixels;
    Lanes a = load_column<kPlain>(block, column, mask);
    Lanes b = load_column<kPlain>(block, column + 1, mask);
    for (;; column += 3) {
      Lanes c = load_column<kPlain>(block, column + 2, mask);
      add_columns<kPlain, kSets>(block, &a, &b, &c, pixel);
      if (++pixel == end) break;
      a = load_column<kPlain>(block, column + 3, mask);
      add_columns<kPlain, kSets>(block, &b, &c, &a, pixel);
      if (++pixel == end) break;
      b = load_column<kPlain>(block, column + 4, mask);
      add_columns<kPlain, kSets>(block, &c, &a, &b, pixel);
      if (++pixel == end) break;
    }
  }
}

/* Every second window: a pixel brings two. */
template <int kPlain, int kSets>
static void run_second_columns(const Block* block) {
  const FolioDepthwiseU8* args = block->args;
  const __mmask64 mask = ~UINT64_C(0) >> (kBlock - block->count);
  int64_t pixel = 0;
  for (int64_t l = 0; l < args->lines; ++l) {
    const uint8_t* const* column = args->x + l * args->x_line_stride;
    Lanes a = load_column<kPlain>(block, column, mask);
    for (int64_t i = 0; i < args->pixels; ++i, ++pixel, column += 2) {
      const Lanes b = load_column<kPlain>(block, column + 1, mask);
      const Lanes c = load_column<kPlain>(block, column + 2, mask);
      add_columns<kPlain, kSets>(block, &a, &b, &c, pixel);
      a = c;
    }
  }
}

/* The columns at `column` and right of it, 32 channels of each. */
VFN Lanes load_two_columns(const Block* block, const uint8_t* const* column) {
  const int64_t step = block->args->x_row_stride;
  __m512i x[3];
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    const uint8_t* left = column[r * step] + block->channel;
    const uint8_t* right = column[r * step + 1] + block->channel;
    const __m256i low = _mm256_loadu_si256((const __m256i*)(const void*)left);
    const __m256i high = _mm256_loadu_si256((const __m256i*)(const void*)right);
    x[r] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  return interleave(x[0], x[1], x[2], _mm512_setzero_si512());
}

/* Windows of 3 x 3 side by side over 32 channels, to plain bytes: two pixels in a vector. */
static void run_pairs(const Block* block) {
  const FolioDepthwiseU8* args = block->args;
  Block pair = *block; /* the upper halves say the same of the second pixel */
  Lanes scale;
  for (int q = 0; q < 4; ++q) {
    scale.part[q] = _mm512_castps_si512(block->codes.scale[q]);
    scale.part[q] = _mm512_shuffle_i32x4(scale.part[q], scale.part[q], 0x44);
    pair.codes.scale[q] = _mm512_castsi512_ps(scale.part[q]);
    pair.offset.part[q] = _mm512_shuffle_i32x4(block->offset.part[q], block->offset.part[q], 0x44);
    for (int c = 0; c < 3; ++c) {
      const __m512i w = block->weights[c].part[q];
      pair.weights[c].part[q] = _mm512_shuffle_i32x4(w, w, 0x44);
    }
  }
  for (int64_t l = 0; l < args->lines; ++l) {
    const uint8_t* const* column = args->x + l * args->x_line_stride;
    int64_t pixel = l * args->pixels;
    const int64_t end = pixel + args->pixels;
    if (args->pixels % 2 != 0) {
      const Lanes a = load_column<32>(block, column, 0);
      const Lanes b = load_column<32>(block, column + 1, 0);
      const Lanes c = load_column<32>(block, column + 2, 0);
      add_columns<32, 1>(block, &a, &b, &c, pixel++);
      ++column;
    }
    if (pixel == end) continue;
    Lanes a = load_two_columns(&pair, column);
    for (; pixel < end; pixel += 2, column += 2) {
      const Lanes b = load_two_columns(&pair, column + 1);
      const Lanes c = load_two_columns(&pair, column + 2);
      add_columns<kPair, 1>(&pair, &a, &b, &c, pixel);
      a = c;
    }
  }
}

/* Byte `from` of each word of x, as byte `to`. */
VFN __m512i pick_byte(__m512i x, unsigned from, unsigned to) {
  const __m512i byte = _mm512_and_si512(_mm512_srli_epi32(x, 8 * from), _mm512_set1_epi32(0xff));
  return _mm512_slli_epi32(byte, 8 * to);
}

/* From taps in the order of rows, four by four, to columns of three, nine taps after nine. */
VFN void order_by_columns(Lanes* weights, unsigned sets) {
  Lanes columns[6];
  for (int q = 0; q < 4; ++q) {
    for (unsigned c = 0; c < 3 * sets; ++c) {
      __m512i column = _mm512_setzero_si512();
      for (unsigned r = 0; r < 3; ++r) {
        const unsigned t = c / 3 * 9 + 3 * r + c % 3;
        column = _mm512_or_si512(column, pick_byte(weights[t / 4].part[q], t % 4, r));
      }
      columns[c].part[q] = column;
    }
  }
  for (unsigned c = 0; c < 3 * sets; ++c) weights[c] = columns[c];
}

/* Offsets and scales. */
VFN void begin_block(Block* block) {
  const FolioSums* s = &block->args->sums;
  for (int64_t l = 0; l < 4; ++l) {
    const int64_t left = block->count - l * kColumns;
    block->offset.part[l] = load_offset(s, block->channel + l * kColumns, left > 0 ? left : 0);
  }
  block->offset = swap_lanes(block->offset);
  if (s->to != kFolioToByte) return;
  block->codes = make_codes(s, block->channel, block->count);
  const Lanes scale = load_lanes(s->scale + block->channel, block->count);
  for (int q = 0; q < 4; ++q) block->codes.scale[q] = _mm512_castsi512_ps(scale.part[q]);
}

template <int kPlain>
static void run_three(const Block* block, int sets) {
  if (block->args->step == 1) {
    if (sets == 1) run_columns<kPlain, 1>(block);
    if (sets == 2) run_columns<kPlain, 2>(block);
  } else {
    if (sets == 1) run_second_columns<kPlain, 1>(block);
    if (sets == 2) run_second_columns<kPlain, 2>(block);
  }
}

static int is_three(const FolioDepthwiseU8* args) {
  return args->rows == 3 && args->columns == 3 && args->dilation == 1 && args->step >= 1 &&
         args->step <= 2 && args->sets >= 1 && args->sets <= 2;
}

static void run_block(Block* block) {
  if (!is_three(block->args)) {
    run_taps(block);
    return;
  }
  const int sets = (int)block->args->sets;
  order_by_columns(block->weights, (unsigned)sets);
  if (block->args->sums.to != kFolioToByte || !block->codes.is_plain) {
    run_three<0>(block, sets);
  } else if (block->count == 64) {
    run_three<64>(block, sets);
  } else if (block->count == 32 && sets == 1 && block->args->step == 1) {
    run_pairs(block);
  } else if (block->count == 32) {
    run_three<32>(block, sets);
  } else {
    run_three<1>(block, sets);
  }
}

static void depthwise_u8__x86_avx512vnni(const FolioDepthwiseU8* args) {
  const int64_t groups = (args->sets * args->rows * args->columns + 3) / 4;
  const int64_t panel = groups * FOLIO_S8P16K4_GROUP;
  if (args->lines == 0 || args->pixels == 0) return;
  Block block = {};
  block.args = args;
  for (int64_t channel = 0; channel < args->channels; channel += kBlock) {
    const int64_t left = args->channels - channel;
    block.channel = channel;
    block.count = left < kBlock ? left : kBlock;
    if (left < kBlock && left % kColumns == 0 && channel > 0) { /* some are computed twice */
      block.channel = args->channels - kBlock;
      block.count = kBlock;
    }
    const char* b = (const char*)args->b + block.channel / kColumns * panel;
    begin_block(&block);
    for (int64_t g = 0; g < groups; ++g) {
      Lanes w;
      for (int64_t l = 0; l < 4; ++l) {
        w.part[l] = l * kColumns < block.count
                        ? _mm512_load_si512(b + l * panel + g * FOLIO_S8P16K4_GROUP)
                        : _mm512_setzero_si512();
      }
      block.weights[g] = swap_lanes(w);
    }
    run_block(&block);
  }
}

void folio_fill_depthwise__x86_avx512vnni(FolioKernels* table) {
  table->depthwise_u8 = depthwise_u8__x86_avx512vnni;
}
