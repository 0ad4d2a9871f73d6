// Matrix product of bytes: tiles of 6 x 64 or 12 x 32, 24 of 32 registers hold sums. A is read in
// place, row by row wherever rows lie: a broadcast of four bytes serves 64 columns. B passes in
// blocks of four panels that stay in the first cache while rows pass; sums wait between the blocks
// of a long depth. The block after this one is fetched meanwhile. Plain bytes leave 64 at a time:
// of one row, or of two or four that are narrow.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

constexpr int kTileRows = 6;
constexpr int kTallRows = 12; /* of one or two panels */
constexpr int kTilePanels = 4;
constexpr int kLinkRows = 4;         /* of a tile that ends the one before it */
constexpr int64_t kBlockRows = 96;   /* for one block of B; whole tiles */
constexpr int64_t kBlockDepth = 576; /* bytes of a column: 36 KiB of B */
constexpr int64_t kWaiting = kBlockRows * kTilePanels;

/* Four panels or fewer and what all tiles of them share. */
typedef struct Block {
  const FolioGemmU8* args;
  int64_t column;
  int64_t panel;        /* bytes */
  int64_t from, to;     /* depth, `from` a multiple of 4 */
  int64_t run;          /* bytes of a piece of a row */
  int64_t piece, first; /* that `from` lies in, and where */
  __m512i offset[kTilePanels], b_zero[kTilePanels];
  Codes codes;                  /* to bytes */
  CodeAdd add;                  /* to sums of bytes */
  int is_plain;                 /* to plain bytes that are not added to others */
  int is_whole;                 /* n is not in the middle of a panel */
  int is_dense;                 /* and rows of C end where the next begins */
  PanelSums words[kTilePanels]; /* to the others */
} Block;

/* Lines of the next panels that a tile fetches every two groups: few rows fetch all of them, or
 * they would wait for memory; of many, whose tiles pass over the same panels, each has a share. */
constexpr int64_t kFewRows = 4;
constexpr int64_t fetched_lines(int64_t rows, int64_t panels) {
  return rows <= kFewRows && 2 * panels > rows ? 2 * panels / rows : 1;
}

template <int kLines>
VFN const char* fetch_lines(const char* from) {
  _mm_prefetch(from, _MM_HINT_T1);
  if constexpr (kLines > 1) return fetch_lines<kLines - 1>(from + 64);
  return from + 64;
}

/* Adds the products of a group of four rows of B, `w`. p: where its bytes of a row begin. */
template <int kRows, int kPanels>
VFN void add_group(__m512i (&sum)[kRows][kPanels], const uint8_t* const (&row)[kRows], int64_t p,
                   const __m512i (&w)[kPanels]) {
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    int32_t four;
    __builtin_memcpy(&four, row[i] + p, 4);
    const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) dot4(&sum[i][v], x, w[v]);
  }
}

/* Adds `groups` groups of four rows of B. */
template <int kRows, int kPanels>
VFN void add_run(__m512i (&sum)[kRows][kPanels], const uint8_t* const (&a)[kRows], const char* b,
                 int64_t panel, int64_t groups, const char** ahead) {
  const uint8_t* row[kRows];
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) row[i] = a[i];
  const char* last = b + (kPanels - 1) * panel;
  const char* fetch = *ahead;
  int64_t p = 0;
  const int64_t pairs = groups / 2 * 8;
  while (p < pairs) {
    /* Keeps g++ from making one pointer of several: it would run out of registers. */
    __asm__("" : "+r"(b), "+r"(last), "+r"(p));
#pragma GCC unroll 12
    for (int i = 0; kRows <= kTileRows && i < kRows; ++i) __asm__("" : "+r"(row[i]));
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
      __m512i w[kPanels];
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) {
        w[v] = _mm512_load_si512((v == kPanels - 1 ? last : b + v * panel) + 64 * g);
      }
      add_group(sum, row, p + 4 * g, w);
    }
    fetch = fetch_lines<fetched_lines(kRows, kPanels)>(fetch);
    p += 8;
    b += 2 * FOLIO_S8P16K4_GROUP;
    last += 2 * FOLIO_S8P16K4_GROUP;
  }
  *ahead = fetch;
  if (groups % 2 == 0) return;
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    int32_t four;
    __builtin_memcpy(&four, row[i] + p, 4);
    const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) dot4(&sum[i][v], x, _mm512_load_si512(b + v * panel));
  }
}

/* The last rows of B when they are fewer than four. */
template <int kRows, int kPanels>
VFN void add_tail(__m512i (&sum)[kRows][kPanels], const FolioGemmU8* args, int64_t row,
                  const char* b, int64_t panel) {
  const int64_t p = args->k / 4 * 4;
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    const uint8_t* a = args->a + (row + i) * args->a_row_stride + p;
    uint32_t last = 0;
    for (int64_t t = 0; t < args->k - p; ++t) last |= (uint32_t)a[t] << (8 * t);
    const __m512i x = _mm512_set1_epi32((int)last);
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) dot4(&sum[i][v], x, _mm512_load_si512(b + v * panel));
  }
}

/* What FolioSums says of the columns of `block`. */
static void begin_block(Block* block) {
  const FolioSums* s = &block->args->sums;
  const int64_t n = block->args->n;
  for (int64_t v = 0; v < kTilePanels; ++v) {
    const int64_t j = block->column + v * kColumns;
    const __mmask16 mask = first_lanes(n > j ? n - j : 0);
    block->offset[v] = load_offset(s, j, n > j ? n - j : 0);
    block->b_zero[v] =
        s->row_sum ? _mm512_maskz_loadu_epi32(mask, s->b_zero + j) : _mm512_setzero_si512();
    if (s->to != kFolioToByte) block->words[v] = load_panel(s, j, n > j ? n - j : 0);
  }
  block->is_plain = 0;
  if (s->to != kFolioToByte) return;
  block->codes = make_codes(s, block->column, n - block->column);
  block->is_plain = block->codes.is_plain && !s->add;
  if (s->add) block->add = make_code_add(s, block->codes.is_plain && block->is_whole);
}

template <int kRows, int kPanels>
VFN void begin_sums(const Block* block, int64_t row, __m512i (&sum)[kRows][kPanels]) {
  const int32_t* row_sum = block->args->sums.row_sum;
#pragma GCC unroll 4
  for (int v = 0; v < kPanels; ++v) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) sum[i][v] = block->offset[v];
    if (!row_sum) continue;
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const __m512i times = _mm512_set1_epi32(row_sum[row + i]);
      sum[i][v] = _mm512_sub_epi32(sum[i][v], _mm512_mullo_epi32(times, block->b_zero[v]));
    }
  }
}

/* 64 bytes of kCount narrow rows, kPanels * kCount = 4. */
template <int kPanels, int kCount, int kWhole>
VFN void store_narrow(const Block* block, const __m512i* sum, char* to) {
  const Codes* c = &block->codes;
  const int64_t stride = block->args->c_row_stride;
  __m512i code[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) code[v] = round_code<1>(c, sum[v], c->scale[v % kPanels]);
  const __m512i bytes = in_order(pack_codes<1>(c, code));
  if (block->is_dense) {
    _mm512_storeu_si512(to, bytes);
  } else if (kCount == 2) {
    const __m256i row[2] = {_mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64(bytes, 1)};
    for (int i = 0; i < 2; ++i, to += stride) {
      if (kWhole) _mm256_storeu_si256((__m256i*)(void*)to, row[i]);
      if (!kWhole) _mm256_mask_storeu_epi8(to, (__mmask32)c->mask, row[i]);
    }
  } else {
    const __m128i row[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                            _mm512_extracti32x4_epi32(bytes, 2),
                            _mm512_extracti32x4_epi32(bytes, 3)};
    for (int i = 0; i < 4; ++i, to += stride) {
      if (kWhole) _mm_storeu_si128((__m128i*)(void*)to, row[i]);
      if (!kWhole) _mm_mask_storeu_epi8(to, (__mmask16)c->mask, row[i]);
    }
  }
}

template <int kRows, int kPanels, int kWhole>
VFN void finish_plain(const Block* block, int64_t row, const __m512i (&sum)[kRows][kPanels]) {
  const int64_t stride = block->args->c_row_stride;
  char* c = (char*)block->args->c + row * stride + block->column;
  constexpr int kCount = kPanels <= 2 ? 4 / kPanels : 1;
  constexpr int kTogether = kCount == 1 ? 0 : kRows / kCount * kCount;
#pragma GCC unroll 12
  for (int i = 0; i < kTogether; i += kCount) {
    __m512i four[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) four[v] = sum[(i + v / kPanels) % kRows][v % kPanels];
    store_narrow<kPanels, kCount, kWhole>(block, four, c + i * stride);
  }
#pragma GCC unroll 12
  for (int i = kTogether; i < kRows; ++i) {
    store_codes<kPanels, 1, kWhole>(&block->codes, sum[i], c + i * stride);
  }
}

/* sums: [rows][panels]. */
static __attribute__((noinline)) void finish_others(const Block* block, int64_t row, int64_t rows,
                                                    int64_t panels, const __m512i* sums) {
  const FolioGemmU8* args = block->args;
  const FolioSums* s = &args->sums;
  const int64_t size = s->to == kFolioToByte ? 1 : 4;
  char* c = (char*)args->c + (row * args->c_row_stride + block->column) * size;
  for (int64_t i = 0; i < rows; ++i, sums += panels, c += args->c_row_stride * size) {
    if (s->to != kFolioToByte) {
      for (int64_t v = 0; v < panels; ++v) store_words(s, &block->words[v], sums[v], c + v * 64);
      continue;
    }
    __m512i four[4] = {};
    for (int64_t v = 0; v < panels; ++v) four[v] = sums[v];
    store_codes<4, 0, 0>(&block->codes, four, c);
  }
}

/* To float; of whole panels. */
template <int kPanels>
static __attribute__((noinline)) void finish_floats(const Block* block, int64_t row, int64_t rows,
                                                    const __m512i* sums) {
  const int64_t stride = block->args->c_row_stride;
  float* c = (float*)block->args->c + row * stride + block->column;
  const int has_bias = block->args->sums.bias != nullptr;
  __m512 scale[kPanels], bias[kPanels];
#pragma GCC unroll 4
  for (int v = 0; v < kPanels; ++v) {
    scale[v] = block->words[v].scale;
    bias[v] = block->words[v].bias;
  }
  for (int64_t i = 0; i < rows; ++i, sums += kPanels, c += stride) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) {
      __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[v]), scale[v]);
      if (has_bias) value = _mm512_add_ps(value, bias[v]);
      _mm512_storeu_ps(c + v * kColumns, value);
    }
  }
}

void store_four_added__x86_avx512vnni(const Codes* c, const CodeAdd* add, const __m512i* sums,
                                      const AddedRows& r) {
  store_sums_of_codes<4>(c, add, sums, r);
}

/* Bytes that are added to others. */
template <int kPanels>
static __attribute__((noinline)) void finish_added(const Block* block, int64_t row, int64_t rows,
                                                   const __m512i* sums) {
  const FolioGemmU8* args = block->args;
  const FolioSums* s = &args->sums;
  char* c = (char*)args->c + row * args->c_row_stride + block->column;
  const uint8_t* addend = s->addend + row * s->addend_row_stride + block->column;
  const AddedRows r = {rows, s->addend_row_stride, args->c_row_stride, addend, c};
  if constexpr (kPanels == 4) {
    store_four_added__x86_avx512vnni(&block->codes, &block->add, sums, r);
  } else {
    store_sums_of_codes<kPanels>(&block->codes, &block->add, sums, r);
  }
}

/* `waiting`: sums between blocks of depth, [kRows][kPanels]. */
template <int kRows, int kPanels>
static void gemm_tile(const Block* block, int64_t row, __m512i* waiting, const char* ahead) {
  const FolioGemmU8* args = block->args;
  const int64_t panel = block->panel;
  const char* b = (const char*)args->b + block->column / kColumns * panel;
  __m512i sum[kRows][kPanels];
  if (block->from == 0) {
    begin_sums(block, row, sum);
  } else {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) sum[i][v] = waiting[i * kPanels + v];
    }
  }
  const int64_t run = block->run;
  int64_t piece = block->piece;
  int64_t first = block->first;
  for (int64_t p = block->from; p + 4 <= block->to; ++piece) {
    const int64_t most = run - first;
    const int64_t depth = block->to - p < most ? block->to - p : most;
    const uint8_t* a[kRows];
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      a[i] = (args->a_rows ? args->a_rows[piece * args->m + row + i]
                           : args->a + (row + i) * args->a_row_stride) +
             first;
    }
    add_run(sum, a, b + p / 4 * FOLIO_S8P16K4_GROUP, panel, depth / 4, &ahead);
    p += depth;
    first = 0;
  }
  if (block->to < args->k) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) waiting[i * kPanels + v] = sum[i][v];
    }
    return;
  }
  if (args->k % 4 != 0) {
    add_tail(sum, args, row, b + args->k / 4 * FOLIO_S8P16K4_GROUP, panel);
  }
  if (block->is_plain && block->is_whole) {
    finish_plain<kRows, kPanels, 1>(block, row, sum);
    return;
  }
  if (block->is_plain) {
    finish_plain<kRows, kPanels, 0>(block, row, sum);
    return;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) waiting[i * kPanels + v] = sum[i][v];
  }
  if (args->sums.to == kFolioToFloat && block->is_whole) {
    finish_floats<kPanels>(block, row, kRows, waiting);
  } else if (args->sums.add) {
    finish_added<kPanels>(block, row, kRows, waiting);
  } else {
    finish_others(block, row, kRows, kPanels, waiting);
  }
}

typedef void (*TileFn)(const Block*, int64_t row, __m512i* waiting, const char* ahead);

#define FOLIO_TILES(panels)                                                    \
  {                                                                            \
    nullptr, gemm_tile<1, panels>, gemm_tile<2, panels>, gemm_tile<3, panels>, \
        gemm_tile<4, panels>, gemm_tile<5, panels>, gemm_tile<6, panels>       \
  }
static const TileFn kTiles[kTilePanels + 1][kTileRows + 1] = {
    {}, FOLIO_TILES(1), FOLIO_TILES(2), FOLIO_TILES(3), FOLIO_TILES(4)};
#undef FOLIO_TILES
static const TileFn kTallTiles[kTilePanels + 1] = {nullptr, gemm_tile<kTallRows, 1>,
                                                   gemm_tile<kTallRows, 2>, nullptr, nullptr};

/* ---- short sums to bytes
 *
 * What becomes of sums that are added to other bytes takes as many operations as some 64 of the
 * depth do, and half as many where they are not, but other units: rows of the tile before are ended
 * between the products of this one. One after the other, they would not overlap, as a processor
 * looks a hundred or two such operations ahead. */

/* Sums of kLinkRows rows and all panels that are to be ended. */
typedef struct Link {
  __m512i sum[kLinkRows][kTilePanels];
  int64_t row; /* below 0: none */
} Link;

constexpr int kNotAdded = 4; /* plain bytes, instead of an AddForm */

/* Where rows that end come from and go to. */
typedef struct LinkEnds {
  const __m512i* sum; /* null: there are none */
  const uint8_t* addend;
  char* c;
} LinkEnds;

VFN LinkEnds begin_ends(const FolioGemmU8* args, int64_t column, const Link* done) {
  if (done->row < 0) return {};
  const uint8_t* addend = args->sums.addend;
  if (addend) addend += done->row * args->sums.addend_row_stride + column;
  return {done->sum[0], addend, (char*)args->c + done->row * args->c_row_stride + column};
}

template <int kForm>
VFN void end_row(const Block* block, LinkEnds* ends) {
  const FolioGemmU8* args = block->args;
  if constexpr (kForm == kNotAdded) {
    store_codes<kTilePanels, 1, 1>(&block->codes, ends->sum, ends->c);
  } else {
    store_added<kTilePanels, kForm>(&block->codes, &block->add, ends->sum, ends->addend, ends->c);
    ends->addend += args->sums.addend_row_stride;
  }
  ends->sum += kTilePanels;
  ends->c += args->c_row_stride;
}

/* Of a tile of four panels the products of group kAt from `b` and byte `p` of the rows on. */
template <int kAt>
VFN void add_link_group(__m512i (&sum)[kLinkRows][kTilePanels],
                        const uint8_t* const (&row)[kLinkRows], int64_t p, const char* b,
                        int64_t panel) {
  const char* at = b + kAt * FOLIO_S8P16K4_GROUP;
  const __m512i w[kTilePanels] = {_mm512_load_si512(at), _mm512_load_si512(at + panel),
                                  _mm512_load_si512(at + 2 * panel),
                                  _mm512_load_si512(at + 3 * panel)};
  add_group(sum, row, p + 4 * kAt, w);
}

/* The whole depth of kLinkRows rows of one piece each, to `next`; the rows of `done` are ended, one
 * after each part of it. What this counts stays in registers: where K is 64, a part and the row
 * that ends after it are some 200 operations, of which the multiplications take 38 cycles. */
template <int kForm>
VFN void gemm_link(const Block* block, const Link* done, Link* next, const char* ahead) {
  const FolioGemmU8* args = block->args;
  int64_t panel = block->panel;
  const char* b = (const char*)args->b + block->column / kColumns * panel;
  __m512i sum[kLinkRows][kTilePanels];
  begin_sums(block, next->row, sum);
  const uint8_t* row[kLinkRows];
#pragma GCC unroll 4
  for (int i = 0; i < kLinkRows; ++i) {
    row[i] =
        args->a_rows ? args->a_rows[next->row + i] : args->a + (next->row + i) * args->a_row_stride;
  }
  LinkEnds ends = begin_ends(args, block->column, done);
  const int64_t part = args->k / (8 * kLinkRows) * 8; /* of a row's bytes */
  int64_t p = 0;
  for (int64_t end = part; end <= kLinkRows * part; end += part) {
    while (p < end) {
      __asm__("" : "+r"(b), "+r"(p), "+r"(panel));
      add_link_group<0>(sum, row, p, b, panel);
      add_link_group<1>(sum, row, p, b, panel);
      _mm_prefetch(ahead, _MM_HINT_T1);
      ahead += 64;
      p += 8;
      b += 2 * FOLIO_S8P16K4_GROUP;
    }
    if (ends.sum) end_row<kForm>(block, &ends);
  }
  for (; p < args->k; p += 4, b += FOLIO_S8P16K4_GROUP) add_link_group<0>(sum, row, p, b, panel);
#pragma GCC unroll 4
  for (int i = 0; i < kLinkRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kTilePanels; ++v) next->sum[i][v] = sum[i][v];
  }
}

/* Whether tiles end those before them. Of long sums the end does not matter. */
VFN int links_tiles(const Block* block, int64_t panels) {
  constexpr int64_t kLongest = 512;
  static_assert(kLongest <= kBlockDepth, "sums do not wait");
  const FolioGemmU8* args = block->args;
  const int ends_fast = block->is_plain ? block->is_whole
                                        : args->sums.to == kFolioToByte && args->sums.add &&
                                              block->add.form != kAnyAdd;
  return ends_fast && panels == kTilePanels && args->k >= 32 && args->k <= kLongest &&
         args->k % 4 == 0 && block->run >= args->k;
}

/* Lines of the block after this one. */
typedef struct Ahead {
  const char* from; /* its first panel; null: nothing to fetch */
  int64_t panels, lines;
  int64_t panel, line; /* the next */
} Ahead;

/* Where a tile that fetches `count` lines begins; null when there are no more. */
VFN const char* take_lines(Ahead* ahead, int64_t count, int64_t panel_bytes) {
  if (!ahead->from || ahead->panel >= ahead->panels) return nullptr;
  const char* at = ahead->from + ahead->panel * panel_bytes + ahead->line * 64;
  ahead->line += count;
  while (ahead->line >= ahead->lines) {
    ahead->line -= ahead->lines;
    ++ahead->panel;
  }
  return at;
}

/* Rows [row, end) as far as tiles that end those before them go; returns the first that is left. */
template <int kForm>
static int64_t gemm_links(const Block* block, int64_t row, int64_t end, Ahead* ahead) {
  Link links[2];
  links[0].row = -1;
  const char* nothing = (const char*)block->args->b;
  /* One or two rows wait for their own products: they are left together with four others. */
  const int64_t over = (end - row) % kLinkRows;
  if (over == 1 || over == 2) end -= kLinkRows + over;
  int turn = 0;
  for (; row + kLinkRows <= end; row += kLinkRows, turn ^= 1) {
    const char* at = take_lines(ahead, block->args->k / 8, block->panel);
    links[turn ^ 1].row = row;
    gemm_link<kForm>(block, &links[turn], &links[turn ^ 1], at ? at : nothing);
  }
  LinkEnds ends = begin_ends(block->args, block->column, &links[turn]);
  for (int i = 0; i < kLinkRows && ends.sum; ++i) end_row<kForm>(block, &ends);
  return row;
}

static int64_t gemm_links_any(const Block* block, int64_t row, int64_t end, Ahead* ahead) {
  if (block->is_plain) return gemm_links<kNotAdded>(block, row, end, ahead);
  switch (block->add.form) {
    case kFastAdd:
      return gemm_links<0>(block, row, end, ahead);
    case kFastAdd + 1:
      return gemm_links<1>(block, row, end, ahead);
    case kFastAdd + 2:
      return gemm_links<2>(block, row, end, ahead);
    default:
      return gemm_links<3>(block, row, end, ahead);
  }
}

/* Rows [row, end) with one block of B: tall tiles, then even ones. */
static void gemm_block(const Block* block, int64_t row, int64_t end, int64_t panels, Ahead ahead,
                       __m512i* waiting) {
  const TileFn* fns = kTiles[panels];
  const TileFn tall = kTallTiles[panels];
  const char* nothing = (const char*)block->args->b;
  const int64_t fetched = (block->to - block->from) / 8;
  if (links_tiles(block, panels)) row = gemm_links_any(block, row, end, &ahead);
  for (; tall && row + kTallRows <= end; row += kTallRows, waiting += kTallRows * panels) {
    const char* at = take_lines(&ahead, fetched, block->panel);
    tall(block, row, waiting, at ? at : nothing);
  }
  int64_t tiles = (end - row + kTileRows - 1) / kTileRows;
  for (; tiles > 0; --tiles) {
    const int64_t rows = (end - row + tiles - 1) / tiles;
    const char* at = take_lines(&ahead, fetched * fetched_lines(rows, panels), block->panel);
    fns[rows](block, row, waiting, at ? at : nothing);
    waiting += rows * panels;
    row += rows;
  }
}

/* Rows of a block: even, whole tiles of most of them. */
static int64_t block_rows(int64_t m) {
  if (m <= kBlockRows) return m;
  const int64_t blocks = (m + kBlockRows - 1) / kBlockRows;
  const int64_t even = (m + blocks - 1) / blocks;
  return (even + kTallRows - 1) / kTallRows * kTallRows;
}

/* Panels of the next block of `left`: whole vectors of results where they can be. One panel alone
 * takes as many loads as products: only where results cost more than those. */
static int64_t block_panels(int64_t left, int64_t k) {
  if (left <= kTilePanels) return left;
  return left == kTilePanels + 1 && k > 64 ? kTilePanels - 1 : kTilePanels;
}

/* The depth from block->to on. */
static void next_depth(Block* block, int64_t depth) {
  const int64_t k = block->args->k;
  block->from = block->to;
  block->to = k - block->from <= depth ? k : block->from + depth;
  block->piece = block->run > 0 ? block->from / block->run : 0;
  block->first = block->from - block->piece * block->run;
}

void gemm_u8__x86_avx512vnni(const FolioGemmU8* args) {
  if (args->m == 0) return;
  __m512i waiting[kWaiting];
  Block block = {};
  block.args = args;
  block.panel = (args->k + 3) / 4 * FOLIO_S8P16K4_GROUP;
  block.run = args->a_rows ? args->a_run : args->k;
  const int64_t rows = block_rows(args->m);
  const int64_t panels = (args->n + kColumns - 1) / kColumns;
  const int64_t most = args->m <= kFewRows ? args->k : kBlockDepth; /* one tile alone reads B */
  const int64_t depths = args->k > most ? (args->k + most - 1) / most : 1;
  const int64_t depth = ((args->k + depths - 1) / depths + 3) / 4 * 4;
  for (int64_t first = 0, count = 0; first < panels; first += count) {
    count = block_panels(panels - first, args->k);
    block.column = first * kColumns;
    block.is_whole = (first + count) * kColumns <= args->n;
    begin_block(&block);
    block.is_dense = args->c_row_stride == args->n && args->n == count * kColumns;
    for (int64_t row = 0; row < args->m; row += rows) {
      const int64_t end = args->m - row < rows ? args->m : row + rows;
      block.to = 0;
      do {
        next_depth(&block, depth);
        const int is_last = block.to == args->k;
        const char* b = (const char*)args->b;
        Ahead ahead = {nullptr, count, depth > 0 ? depth / 4 : 1, 0, 0};
        if (!is_last && row == 0) {
          ahead.from = b + first * block.panel + block.to / 4 * FOLIO_S8P16K4_GROUP;
        } else if (is_last && end == args->m && first + count < panels) {
          ahead.from = b + (first + count) * block.panel;
        }
        gemm_block(&block, row, end, count, ahead, waiting);
      } while (block.to < args->k);
    }
  }
}

void folio_fill_gemm__x86_avx512vnni(FolioKernels* table) {
  table->gemm_u8 = gemm_u8__x86_avx512vnni;
}
