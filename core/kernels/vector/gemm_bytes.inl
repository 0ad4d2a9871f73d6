/* gemm_u8 in vectors of 8 sums: two are a panel of S8P16K4. Tiles of kTileRows rows by a panel, or
 * of one or two rows by more panels; A is read in place, four bytes of a row broadcast. Sums wait
 * in memory between blocks of depth, whose part of a panel stays in the first cache while rows
 * pass, and before they become results. Of 8 lanes only.
 *
 * The including file defines before: kTileRows (4 to 6); kBlockDepth (bytes of a column, a multiple
 * of 4); dot4<kAnyWeights>(sum, a, w), which adds to 8 sums four products of unsigned and signed
 * bytes each; kFlatPanels[rows - 1]: log2 of the panels that one or two rows are multiplied with at
 * a time; kLists: 1 if it is worth while to look at weights before many rows use them. Then
 *   Steps says how the groups of a part of a panel are multiplied;
 *   list_steps(args, panel, from, to, rows, room) makes them, of so many bytes of a column, for so
 *     many rows; `room`, a StepsRoom, is what they point to; a step belongs to one piece of rows;
 *   add_steps(sum, steps, at) adds them; at(step, i): the byte of row i where one begins. */

#include "core/kernels/vector/byte_results.inl"

constexpr int64_t kBlockRows = 96; /* for one block of depth */

/* Panels side by side and what all tiles of them share. */
typedef struct Block {
  const FolioGemmU8* args;
  Steps steps; /* of this depth, if they are listed */
  int64_t column, panels;
  int64_t panel;    /* bytes */
  int64_t from, to; /* depth, `from` a multiple of 4 */
  int64_t run;      /* bytes of a piece of a row */
  Results results;
} Block;

/* Adds a group of four rows of B; `p`: where its bytes of a row begin. */
template <int kRows, int kVectors>
VFN void add_group(VI (&sum)[kRows][kVectors], const uint8_t* const (&a)[kRows], int64_t p,
                   const char* b, int64_t panel) {
  VI w[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) w[v] = vi_load(b + v / 2 * panel + v % 2 * 32);
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    const VI x = vi_broadcast(a[i] + p);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) dot4<1>(&sum[i][v], x, w[v]);
  }
}

/* The last 1 to 3 rows of B. */
template <int kRows, int kVectors>
VFN void add_tail(VI (&sum)[kRows][kVectors], const FolioGemmU8* args, int64_t row, const char* b,
                  int64_t panel) {
  const int64_t p = args->k / 4 * 4;
  uint8_t last[kRows][4] = {};
  const uint8_t* a[kRows];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    const uint8_t* from = args->a + (row + i) * args->a_row_stride + p;
    for (int64_t t = 0; t < args->k - p; ++t) last[i][t] = from[t];
    a[i] = last[i];
  }
  add_group(sum, a, 0, b, panel);
}

/* The depth of `block`, as its steps say. */
template <int kRows, int kVectors>
VFN void add_listed(VI (&sum)[kRows][kVectors], const Block* block, int64_t row) {
  const FolioGemmU8* args = block->args;
  if (args->a_rows) {
    const uint8_t* const* rows = args->a_rows + row;
    add_steps(sum, &block->steps,
              [&](const auto& step, int i) { return rows[step.rows + i] + step.first; });
    return;
  }
  const uint8_t* a[kRows];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) a[i] = args->a + (row + i) * args->a_row_stride;
  add_steps(sum, &block->steps, [&](const auto& step, int i) { return a[i] + step.first; });
}

/* The same in order. */
template <int kRows, int kVectors>
VFN void add_depth(VI (&sum)[kRows][kVectors], const Block* block, int64_t row) {
  const FolioGemmU8* args = block->args;
  const int64_t panel = block->panel;
  const char* b = (const char*)args->b + block->column / 16 * panel + block->from * 16;
  const int64_t whole = block->to - block->to % 4;
  int64_t piece = block->from > 0 ? block->from / block->run : 0; /* no division where it is 0 */
  int64_t first = block->from - piece * block->run;               /* byte of it */
  for (int64_t p = block->from; p < whole; ++piece, first = 0) {
    const int64_t depth = whole - p < block->run - first ? whole - p : block->run - first;
    const uint8_t* a[kRows];
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      a[i] = (args->a_rows ? args->a_rows[piece * args->m + row + i]
                           : args->a + (row + i) * args->a_row_stride) +
             first;
    }
    for (int64_t q = 0; q < depth; q += 4, b += FOLIO_S8P16K4_GROUP) {
      add_group(sum, a, q, b, panel);
    }
    p += depth;
  }
}

/* Two rows of 16 bytes or four of 8, or as many as there are. */
template <int kVectors>
VFN void store_plain(VI bytes, int rows, char* c, int64_t stride) {
  const __m128i low = _mm256_castsi256_si128(bytes);
  const __m128i high = _mm256_extracti128_si256(bytes, 1);
  if (kVectors == 2) {
    _mm_storeu_si128((__m128i*)(void*)c, low);
    if (rows > 1) _mm_storeu_si128((__m128i*)(void*)(c + stride), high);
    return;
  }
  _mm_storel_epi64((__m128i*)(void*)c, low);
  if (rows > 1) _mm_storel_epi64((__m128i*)(void*)(c + stride), _mm_unpackhi_epi64(low, low));
  if (rows > 2) _mm_storel_epi64((__m128i*)(void*)(c + 2 * stride), high);
  if (rows > 3) _mm_storel_epi64((__m128i*)(void*)(c + 3 * stride), _mm_unpackhi_epi64(high, high));
}

/* Plain bytes of whole vectors, four of them at a time. */
template <int kAdds, int kRows, int kVectors>
VFN void finish_plain(const Block* block, int64_t row, VI (&sum)[kRows][kVectors]) {
  constexpr int kRowsAtOnce = 4 / kVectors;
  const FolioSums* s = &block->args->sums;
  const Results* r = &block->results;
  const VI zero = kAdds ? r->add.zero_words : vi_set1_words(s->zero);
  const int is_signed = s->lo < 0;
  const int64_t stride = block->args->c_row_stride;
  char* c = (char*)block->args->c + row * stride + block->column;
#pragma GCC unroll 6
  for (int first = 0; first < kRows; first += kRowsAtOnce) {
    VI code[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const int v = q % kVectors;
      const int i = first + q / kVectors < kRows ? first + q / kVectors : first;
      const V value = v_mul(v_from_int(sum[i][v]), r->scale[v]);
      if (kAdds) {
        const int64_t of_row = (row + i) * s->addend_row_stride;
        code[q] = add_plain_codes(r, value, s->addend + of_row + block->column + v * kLanes);
      } else {
        code[q] = vi_nearest(value);
      }
    }
    const VI order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const VI bytes = _mm256_permutevar8x32_epi32(pack_plain(code, zero, is_signed), order);
    store_plain<kVectors>(bytes, kRows - first, c, stride);
    c += kRowsAtOnce * stride;
  }
}

/* Words of whole vectors. */
template <int kRows, int kVectors>
VFN void finish_words(const Block* block, int64_t row, const VI (&sum)[kRows][kVectors]) {
  const int64_t stride = block->args->c_row_stride;
  float* c = (float*)block->args->c + row * stride + block->column;
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i, c += stride) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      v_store(c + v * kLanes, as_words(&block->results, v, sum[i][v]));
    }
  }
}

/* What is neither, by way of memory. */
template <int kRows, int kVectors>
static __attribute__((noinline)) void finish_rows(const Block* block, int64_t row, const VI* sums) {
  const FolioGemmU8* args = block->args;
  const FolioSums* s = &args->sums;
  const int64_t size = s->to == kFolioToByte ? 1 : 4;
  for (int64_t i = row; i < row + kRows; ++i, sums += kVectors) {
    const uint8_t* addend = s->add ? s->addend + i * s->addend_row_stride + block->column : nullptr;
    char* c = (char*)args->c + (i * args->c_row_stride + block->column) * size;
    finish_row(&block->results, sums, addend, c);
  }
}

/* `waiting`: sums between blocks of depth, [kRows][kVectors]. */
template <int kListed, int kRows, int kVectors>
VFN void gemm_tile(const Block* block, int64_t row, VI* waiting) {
  const FolioGemmU8* args = block->args;
  VI sum[kRows][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[i][v] = block->from == 0 ? block->results.offset[v] : waiting[i * kVectors + v];
    }
  }
  if (block->from == 0 && args->sums.row_sum) {
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const VI times = vi_set1(args->sums.row_sum[row + i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = vi_sub(sum[i][v], _mm256_mullo_epi32(times, block->results.b_zero[v]));
      }
    }
  }
  if constexpr (kListed) {
    add_listed(sum, block, row);
  } else {
    add_depth(sum, block, row);
  }
  if (block->to % 4 != 0) {
    const char* b = (const char*)args->b + block->column / 16 * block->panel;
    add_tail(sum, args, row, b + args->k / 4 * FOLIO_S8P16K4_GROUP, block->panel);
  }
  if (block->to >= args->k && block->results.count == kVectors * kLanes) {
    if (args->sums.to != kFolioToByte) return finish_words(block, row, sum);
    if constexpr (kVectors <= 2) {
      if (block->results.is_plain) {
        return args->sums.add ? finish_plain<1>(block, row, sum) : finish_plain<0>(block, row, sum);
      }
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) waiting[i * kVectors + v] = sum[i][v];
  }
  if (block->to >= args->k) finish_rows<kRows, kVectors>(block, row, waiting);
}

/* Tiles below each other. */
template <int kListed, int kRows, int kVectors>
static void gemm_tiles(const Block* block, int64_t row, int64_t tiles, VI* waiting) {
  for (int64_t t = 0; t < tiles; ++t, row += kRows, waiting += kRows * kVectors) {
    gemm_tile<kListed, kRows, kVectors>(block, row, waiting);
  }
}

typedef void (*TilesFn)(const Block*, int64_t row, int64_t tiles, VI* waiting);

#define FOLIO_TILES(vectors)                                                 \
  {                                                                          \
    nullptr, gemm_tiles<kLists, 1, vectors>, gemm_tiles<kLists, 2, vectors>, \
        gemm_tiles<kLists, 3, vectors>, gemm_tiles<kLists, 4, vectors>,      \
        gemm_tiles<kLists, (kTileRows < 5 ? 4 : 5), vectors>,                \
        gemm_tiles<kLists, kTileRows, vectors>                               \
  }
/* [vectors - 1][rows] of one panel or its first half. */
static const TilesFn kTiles[2][7] = {FOLIO_TILES(1), FOLIO_TILES(2)};
#undef FOLIO_TILES
/* One or two rows use weights too seldom for a look at them. */
template <int kRows, int kLog2>
static TilesFn flat_tiles(int log2) {
  if constexpr (kLog2 > 0) {
    if (log2 < kLog2) return flat_tiles<kRows, kLog2 - 1>(log2);
  }
  return gemm_tiles<0, kRows, 2 << kLog2>;
}

static void gemm_flat(const FolioGemmU8* args, Block* block, VI* waiting) {
  const int64_t panels = (args->n + 15) / 16;
  block->to = args->k;
  for (int64_t first = 0, count = 0; first < panels; first += count) {
    int log2 = kFlatPanels[args->m - 1];
    while ((1 << log2) > panels - first) --log2;
    count = 1 << log2;
    block->column = first * 16;
    block->panels = count;
    const int64_t left = args->n - block->column;
    begin_results(&args->sums, block->column, left < 16 * count ? left : 16 * count, 2 * count,
                  &block->results);
    const TilesFn tiles =
        args->m == 1 ? flat_tiles<1, kFlatPanels[0]>(log2) : flat_tiles<2, kFlatPanels[1]>(log2);
    tiles(block, 0, 1, waiting);
  }
}

static void FOLIO_LEVEL(gemm_u8)(const FolioGemmU8* args) {
  if (args->m == 0) return;
  VI waiting[kBlockRows * 2];
  StepsRoom room;
  Block block = {};
  block.args = args;
  block.panel = (args->k + 3) / 4 * FOLIO_S8P16K4_GROUP;
  block.run = args->a_rows ? args->a_run : args->k;
  block.panels = 1;
  if (args->m <= 2) {
    gemm_flat(args, &block, waiting);
    return;
  }
  const int64_t blocks = (args->m + kBlockRows - 1) / kBlockRows;
  const int64_t depths = args->k > kBlockDepth ? (args->k + kBlockDepth - 1) / kBlockDepth : 1;
  const int64_t depth = ((args->k + depths - 1) / depths + 3) / 4 * 4;
  for (int64_t column = 0; column < args->n; column += 16) {
    const char* b = (const char*)args->b + column / 16 * block.panel;
    block.column = column;
    const int64_t left = args->n - column;
    begin_results(&args->sums, column, left < 16 ? left : 16, 2, &block.results);
    const int64_t vectors = left <= kLanes ? 1 : 2;
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t row = args->m * i / blocks;
      const int64_t end = args->m * (i + 1) / blocks;
      block.to = 0;
      do {
        block.from = block.to;
        block.to = args->k - block.from <= depth ? args->k : block.from + depth;
        if (kLists && (i == 0 || depths > 1)) {
          block.steps = list_steps(args, b, block.from, block.to, end - row, &room);
        }
        const int64_t tiles = (end - row + kTileRows - 1) / kTileRows;
        const int64_t height = (end - row) / tiles;
        const int64_t higher = end - row - tiles * height; /* tiles of a row more */
        const TilesFn* of_rows = kTiles[vectors - 1];
        if (higher > 0) of_rows[height + 1](&block, row, higher, waiting);
        const int64_t done = higher * (height + 1);
        of_rows[height](&block, row + done, tiles - higher, waiting + done * vectors);
      } while (block.to < args->k);
    }
  }
}
