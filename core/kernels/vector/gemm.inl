/* gemm_f32 around the tiles of gemm_tile.inl: blocks of k and of rows, packing of A.
 *
 * The including file defines before: kTileRows; kPlacedK, the most of k that rows in place sum at
 * once; kPlacedFloats, the most numbers of A that these have in a block, for L2;
 * kTiles[kPacks, kPieces or kEven][panels - 1][rows];
 * kHalfPanelTiles, the same for half a panel less, but for kPacks and few rows;
 * kVectorTiles[rows - 1][log2(panels)], A in place, null where there is none. */

constexpr int64_t kCopyStride = kBlockK + 16; /* of copied rows: a line more, for other sets */

/* Rows in place of a block of A whose k block is `depth`, at most kPlacedK. */
VFN int64_t placed_rows(int64_t depth) {
  if (depth <= kBlockK) return kBlockRows;
  return kPlacedFloats / depth / kTileRows * kTileRows;
}

#include "core/kernels/vector/gemm_taps.inl"

/* How a product reads A. */
enum Source {
  kPacks,  /* made into kPackedA */
  kPieces, /* where it stands: kRowsA, */
  kEven,   /*   kEvenA */
  kCopies  /* made into kEvenA, kCopyStride apart */
};

VFN void copy_row(int64_t n, const float* from, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) v_store(to + i, v_load(from + i));
  if (i < n) v_store_masked(to + i, v_first(n - i), v_load_masked(from + i, v_first(n - i)));
}

/* A[row + i, p + q], i < rows, q < depth, as dst[q][i]. */
static void pack_tile(const FolioGemmF32* args, int64_t row, int64_t rows, int64_t p, int64_t depth,
                      float* dst) {
  const int64_t a_row = args->a_row_stride;
  const float* a = args->a + row * a_row + p * args->a_col_stride;
  for (int64_t q = 0; q < depth; ++q, a += args->a_col_stride) {
    for (int64_t i = 0; i < rows; ++i) dst[q * rows + i] = a[i * a_row];
  }
}

/* The same of all tiles, whose rows are neighbours in A: a line of memory is read once for all of
 * them, as those of the depth may lie in one set of a cache. Of a tile that has fewer rows than a
 * vector, what is too much is written over by the next; what is read too much is later in A. */
static void pack_tiles(const Tile* tile, int64_t rows, int64_t tiles, float* made) {
  const FolioGemmF32* args = tile->args;
  const int64_t a_col = args->a_col_stride, depth = tile->depth, p = tile->first_depth;
  const float* a = args->a + tile->row + p * a_col;
  const int64_t reach = a_col > 0 ? (kLanes + a_col - 1) / a_col : args->k; /* rows of a vector */
  int64_t begins[kStackRows + 1];
  for (int64_t t = 0; t <= tiles; ++t) begins[t] = rows * t / tiles;
  for (int64_t q = 0; q < depth; ++q, a += a_col) {
    const int is_inside = p + q + reach < args->k;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = begins[t], n = begins[t + 1] - begin;
      float* dst = made + begin * depth + q * n;
      if (is_inside && n < kLanes && (depth - q) * n >= kLanes) {
        v_store(dst, v_load(a + begin));
      } else {
        copy_row(n, a + begin, dst);
      }
    }
  }
}

/* Rows that are contiguous are read where they stand, whatever lies between them: faster than any
 * packing, as each line serves 16 steps. */
VFN Source source_of(const FolioGemmF32* args) {
  return args->a_rows ? kPieces : args->a_lines || args->a_col_stride == 1 ? kEven : kPacks;
}

/* Rows that are a multiple of 4 KiB apart lie in one set of L1: one that has 8 ways holds no tile's
 * 14 then, and each step waits for L2. (Of 12 ways: Intel's gain nothing from copies,
 * Zen 5's do while others use the caches, too.) */
VFN int crowds(const FolioGemmF32* args) {
  constexpr int64_t kSets = 4096;
  constexpr int64_t kOff = 4; /* bytes; times a tile's rows: within a line */
  if (args->m <= kTileRows / 2 || args->k == 0) return 0;
  int64_t apart = args->a_row_stride * (int64_t)sizeof(float);
  if (args->a_rows) { /* not at an image's border */
    const float* const* rows = args->a_rows + args->k / args->a_run / 2 * args->m + args->m / 2;
    apart = (int64_t)((intptr_t)rows[0] - (intptr_t)rows[-1]);
  }
  const int is_near = -kOff <= apart && apart <= kOff; /* rows of one line, one float apart */
  return !is_near && ((apart + kOff) & (kSets - 1)) <= 2 * kOff;
}

/* Rows [tile->row, tile->row + rows) of this k block as tiles of almost equal height read them. */
static void make_rows(const Tile* tile, Source source, int64_t rows, int64_t tiles, float* made) {
  const FolioGemmF32* args = tile->args;
  const int64_t p = tile->first_depth;
  if (source == kPacks && args->a_row_stride == 1) return pack_tiles(tile, rows, tiles, made);
  if (source == kPacks) {
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = rows * t / tiles;
      const int64_t end = rows * (t + 1) / tiles;
      pack_tile(args, tile->row + begin, end - begin, p, tile->depth, made + begin * tile->depth);
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    float* const to = made + i * kCopyStride;
    const float* x = row_at(args, tile->row + i, p, tile->depth, to);
    if (x != to) copy_row(tile->depth, x, to);
  }
}

/* The tile's row `begin` of those that were made, or where it stands. For k = 0, a may be null: no
 * address of it is made. */
VFN void place_rows(Tile* tile, Source source, int64_t begin, const float* made) {
  const FolioGemmF32* args = tile->args;
  tile->a = nullptr;
  tile->a_row_stride = source == kCopies ? kCopyStride : args->a_row_stride;
  if (source == kPacks) {
    tile->a = made + begin * tile->depth;
  } else if (source == kCopies) {
    tile->a = made + begin * kCopyStride;
  } else if (source == kEven && !args->a_lines && tile->depth > 0) {
    tile->a = args->a + tile->row * args->a_row_stride + tile->first_depth;
  }
}

/* One block of A against all of B: tiles of almost equal height. */
static void gemm_block(Tile* tile, Source source, int64_t rows, float* made) {
  const FolioGemmF32* args = tile->args;
  const int64_t first_row = tile->row;
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  if (made && tile->depth > 0) make_rows(tile, source, rows, tiles, made);
  const int64_t wide = kTilePanels * FOLIO_F32P16_COLUMNS;
  const Source reads = source == kCopies ? kEven : source;
  const int halves = !tile->b_row_stride && (tile->is_narrow || kPanelVectors > 1) && source != kPacks &&
                     rows / tiles >= kTileRows / 2;
  for (int64_t j = 0; j < args->n; j += wide) {
    const int64_t left = args->n - j;
    const int64_t panels = tile_panels(left);
    const int leaves_half = halves && lacks_half(left, panels);
    const TileFn* fns = (leaves_half ? kHalfPanelTiles : kTiles)[reads][panels - 1];
    place_columns(tile, j, left, panels, leaves_half);
    tile->b = args->b + j * args->k + tile->first_depth * FOLIO_F32P16_COLUMNS;
    const float* next = nullptr;
    if (tile->b_row_stride) {
      tile->b = args->b + tile->first_depth * tile->b_row_stride + j;
      next = left > wide ? tile->b : nullptr;
    } else if (args->next) {
      /* B was just made: it is there */
    } else if (left >= 2 * wide) {
      next = tile->b + wide * args->k;
    } else if (!tile->is_last) {
      next = args->b + (tile->first_depth + tile->depth) * FOLIO_F32P16_COLUMNS;
    } else if (args->b_goes_on) {
      next = args->b + args->n * args->k;
    }
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = rows * t / tiles;
      const int64_t end = rows * (t + 1) / tiles;
      tile->row = first_row + begin;
      plan_ahead(tile, next, t, tiles);
      place_rows(tile, source, begin, made);
      fns[end - begin](tile);
    }
  }
}

static void gemm_blocks(const FolioGemmF32* args, Source source, int is_narrow, float* made,
                        int64_t rows_max, int64_t depth_max, int64_t b_row_stride = 0) {
  const int64_t blocks = (args->m + rows_max - 1) / rows_max;
  Tile tile = {};
  tile.args = args;
  tile.is_narrow = is_narrow;
  tile.b_row_stride = b_row_stride;
  plan_next(&tile);
  int64_t p = 0;
  do { /* once for k = 0: C is the epilogue of an empty sum */
    tile.depth = args->k - p < depth_max ? args->k - p : depth_max;
    tile.first_depth = p;
    tile.is_first = p == 0;
    tile.is_last = p + tile.depth == args->k;
    for (int64_t block = 0; block < blocks; ++block) {
      tile.row = args->m * block / blocks;
      gemm_block(&tile, source, args->m * (block + 1) / blocks - tile.row, made);
    }
    p += tile.depth;
  } while (p < args->k);
}

static __attribute__((noinline)) void gemm_made(const FolioGemmF32* args, Source source,
                                                int is_narrow) {
  alignas(64) float made[kStackRows * kCopyStride];
  gemm_blocks(args, source, is_narrow, made, kStackRows, kBlockK);
}

/* A part of a matrix that is larger than L2 has more than this. */
constexpr int64_t kFetchFloats = 1 << 16;

/* The next group of 1 << *size panels, fewer where there are no more. */
VFN void place_group(Tile* tile, int* size) {
  const int64_t left = tile->args->n - tile->column;
  const int64_t panels = (left + FOLIO_F32P16_COLUMNS - 1) / FOLIO_F32P16_COLUMNS;
  while ((int64_t)1 << *size > panels) --*size;
  place_columns(tile, tile->column, left, (int64_t)1 << *size);
}

/* m <= kVectorRows: groups of panels, halved towards the right edge. */
static void gemm_vector(const FolioGemmF32* args) {
  Tile tile = {};
  tile.args = args;
  tile.depth = args->k;
  tile.a = args->a;
  tile.a_row_stride = args->a_row_stride;
  tile.a_col_stride = args->a_col_stride;
  tile.is_first = 1;
  tile.is_last = 1;
  const int is_near = args->k * args->n < kFetchFloats;
  tile.fetches = is_near ? kInCache : args->b_is_far ? kFromFar : kFromL2;
  int size = 3; /* 8 panels */
  while (kVectorTiles[args->m - 1][size] == nullptr) --size;
  while (tile.column < args->n) {
    place_group(&tile, &size);
    tile.b = args->b + tile.column * args->k;
    kVectorTiles[args->m - 1][size](&tile);
    tile.column += FOLIO_F32P16_COLUMNS << size;
  }
}

/* is_narrow: a CPU of level x86_avx512l1: L1 has few ways, and on Zen 4 a product of 8 lanes takes
 * half as long as one of 16. */
VFN void gemm_any(const FolioGemmF32* args, int is_narrow) {
  if (args->m == 0 || args->n == 0) return;
  if (args->m <= kVectorRows && !args->a_rows && !args->a_lines) return gemm_vector(args);
  const Source source = source_of(args);
  if (source == kPacks) return gemm_made(args, source, is_narrow);
  if (fits_taps(args)) return gemm_taps(args, is_narrow);
  if (is_narrow && crowds(args)) return gemm_made(args, kCopies, is_narrow);
  const int64_t depth = args->k < kPlacedK ? args->k : kPlacedK;
  gemm_blocks(args, source, is_narrow, nullptr, placed_rows(depth), depth);
}

void FOLIO_LEVEL(gemm_f32)(const FolioGemmF32* args) { gemm_any(args, 0); }

/* ---- B in place: a few rows of it at a time over all columns, sums resting in C between them, so
 * that memory is read in order. */

constexpr int kGemvDepth = 8;

/* kIsFar: B comes from memory, where it is read in order by fetching the rows that follow; out of a
 * cache that takes longer. */
template <int kRows, int kDepth, int kIsFar>
VFN void gemv_columns(const FolioGemmF32* args, const V* a, const float* b, int64_t b_stride,
                      int64_t j, int64_t p) {
  const int64_t left = args->n - j;
  const VM m = v_first(left < kLanes ? left : kLanes);
  const int is_whole = left >= kLanes;
  V sum[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    const float* c = args->c + i * args->c_row_stride + j;
    sum[i] = p == 0 && !args->accumulate ? v_zero() : is_whole ? v_load(c) : v_load_masked(c, m);
  }
#pragma GCC unroll 8
  for (int d = 0; d < kDepth; ++d) {
    const float* from = b + d * b_stride + j;
    if (kIsFar) __builtin_prefetch(from + kDepth * b_stride, 0, 2);
    const V row = is_whole ? v_load(from) : v_load_masked(from, m);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sum[i] = v_fma(a[d * kRows + i], row, sum[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    float* c = args->c + i * args->c_row_stride + j;
    if (is_whole) {
      v_store(c, sum[i]);
    } else {
      v_store_masked(c, m, sum[i]);
    }
  }
}

/* What becomes of the sums, which are in C. */
static void gemv_end(const FolioGemmF32* args) {
  if (!has_end(args)) return;
  Tile tile = {};
  tile.args = args;
  for (int64_t j = 0; j < args->n; j += FOLIO_F32P16_COLUMNS) {
    place_columns(&tile, j, args->n - j, 1);
    finish_kept<kPanelVectors>(&tile, args->m, args->c + j, args->c_row_stride, args->c + j);
  }
}

template <int kRows, int kDepth, int kIsFar = 0>
static void gemv_block(const FolioGemmF32* args, const float* b, int64_t b_stride, int64_t p) {
  V a[kDepth * kRows + 1]; /* of depth 0 too; in registers, where there are so many */
#pragma GCC unroll 8
  for (int d = 0; d < kDepth; ++d) {
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      a[d * kRows + i] = v_set1(args->a[i * args->a_row_stride + (p + d) * args->a_col_stride]);
    }
  }
  for (int64_t j = 0; j < args->n; j += kLanes) {
    gemv_columns<kRows, kDepth, kIsFar>(args, a, b + p * b_stride, b_stride, j, p);
  }
}

/* One row times a B of so few columns that their sums stay in registers: B in the order of memory. */
template <int kVectors>
static void gemv_narrow(const FolioGemmF32* args, const float* b, int64_t b_stride) {
  constexpr int64_t kAhead = 16; /* rows */
  VM mask[kVectors];
  V sum[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t left = args->n - v * kLanes;
    mask[v] = v_first(left < 0 ? 0 : left < kLanes ? left : kLanes);
    sum[v] = args->accumulate ? v_load_masked(args->c + v * kLanes, mask[v]) : v_zero();
  }
  for (int64_t p = 0; p < args->k; ++p, b += b_stride) {
    const V a = v_set1(args->a[p * args->a_col_stride]);
    const float* ahead = b + (p + kAhead < args->k ? kAhead * b_stride : 0);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      __builtin_prefetch(ahead + v * kLanes, 0, 3);
      sum[v] = v_fma(a, v_load_masked(b + v * kLanes, mask[v]), sum[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) v_store_masked(args->c + v * kLanes, mask[v], sum[v]);
  gemv_end(args);
}

template <int kRows>
static void gemv_rows(const FolioGemmF32* args, const float* b, int64_t b_stride) {
  if constexpr (kRows == 1) {
    const int64_t vectors = (args->n + kLanes - 1) / kLanes;
    if (args->k > kGemvDepth && vectors <= 4) return gemv_narrow<4>(args, b, b_stride);
    if (args->k > kGemvDepth && vectors <= 8) return gemv_narrow<8>(args, b, b_stride);
  }
  int64_t p = 0;
  for (; p + kGemvDepth <= args->k; p += kGemvDepth) {
    if (args->b_is_far) {
      gemv_block<kRows, kGemvDepth, 1>(args, b, b_stride, p);
    } else {
      gemv_block<kRows, kGemvDepth>(args, b, b_stride, p);
    }
  }
  for (; p < args->k; ++p) gemv_block<kRows, 1>(args, b, b_stride, p);
  if (args->k == 0) gemv_block<kRows, 0>(args, b, b_stride, 0);
  gemv_end(args);
}

static void FOLIO_LEVEL(gemm_plain_f32)(const FolioGemmF32* args, const void* b, int64_t b_row_stride) {
  const float* rows = (const float*)b; /* read by vector loads alone */
  if (args->m == 1) gemv_rows<1>(args, rows, b_row_stride);
  if (args->m == 2) gemv_rows<2>(args, rows, b_row_stride);
  if (args->m == 3) gemv_rows<3>(args, rows, b_row_stride);
  if (args->m == 4) gemv_rows<4>(args, rows, b_row_stride);
  if (args->m <= kVectorRows) return;
  FolioGemmF32 plain = *args;
  plain.b = rows;
  const int64_t depth = args->k < kPlacedK ? args->k : kPlacedK;
  gemm_blocks(&plain, kEven, 0, nullptr, placed_rows(depth), depth, b_row_stride);
}

/* As gemm_vector. */
static void FOLIO_LEVEL(gemv_b16)(const FolioGemmF32* args, const void* b, int32_t is_bfloat16) {
  if (args->m == 0) return;
  Tile tile = {};
  tile.args = args;
  tile.is_first = 1;
  tile.is_last = 1;
  const HalfTileFn* tiles = kHalfTiles[is_bfloat16 != 0][args->m - 1];
  const int64_t rows = is_bfloat16 ? folio_bf16p16_rows(args->k) : args->k;
  int size = 3; /* 8 panels */
  while (tiles[size] == nullptr) --size;
  while (tile.column < args->n) {
    place_group(&tile, &size);
    tiles[size](&tile, (const char*)b + tile.column * rows * 2);
    tile.column += FOLIO_F32P16_COLUMNS << size;
  }
}

#include "core/kernels/vector/dots.inl"

static void fill_gemm(FolioKernels* table) {
  table->gemm_f32 = FOLIO_LEVEL(gemm_f32);
  table->dots_f32 = FOLIO_LEVEL(dots_f32);
  table->gemm_plain_f32 = FOLIO_LEVEL(gemm_plain_f32);
  table->gemv_b16 = FOLIO_LEVEL(gemv_b16);
  table->plain_rows = kPlainRows;
  table->sum_depth = kPlacedK;
}
