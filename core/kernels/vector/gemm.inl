/* gemm_f32 around the tiles of gemm_tile.inl: blocks of k and of rows, packing of A.
 *
 * The including file defines before: kTileRows; kTiles[panels - 1][rows], packed A;
 * kVectorTiles[rows - 1][log2(panels)], A in place, null where there is none. */

/* dst[p][row] = a[row][p] of one tile. Blocks at the edges overlap their neighbours. */
template <int kSide>
VFN void pack_tile_blocks(int64_t rows, int64_t depth, const float* const* a, float* dst) {
  for (int64_t i = 0; i < rows; i += kSide) {
    const int64_t r = i + kSide <= rows ? i : rows - kSide;
    for (int64_t p = 0; p < depth; p += kSide) {
      const int64_t q = p + kSide <= depth ? p : depth - kSide;
      float* to = dst + q * rows + r;
      if (kSide == 8) {
        __m256 x[8];
        for (int64_t e = 0; e < 8; ++e) x[e] = _mm256_loadu_ps(a[r + e] + q);
        store_transposed8x8(x, (char*)to, 4 * rows);
      } else {
        __m128 x0 = _mm_loadu_ps(a[r] + q);
        __m128 x1 = _mm_loadu_ps(a[r + 1] + q);
        __m128 x2 = _mm_loadu_ps(a[r + 2] + q);
        __m128 x3 = _mm_loadu_ps(a[r + 3] + q);
        _MM_TRANSPOSE4_PS(x0, x1, x2, x3);
        _mm_storeu_ps(to, x0);
        _mm_storeu_ps(to + rows, x1);
        _mm_storeu_ps(to + 2 * rows, x2);
        _mm_storeu_ps(to + 3 * rows, x3);
      }
    }
  }
}

/* Rows that lie anywhere, each contiguous. */
static void pack_tile_rows(int64_t rows, int64_t depth, const float* const* a, float* dst) {
  if (rows >= 8 && depth >= 8) {
    pack_tile_blocks<8>(rows, depth, a, dst);
  } else if (rows >= 4 && depth >= 4) {
    pack_tile_blocks<4>(rows, depth, a, dst);
  } else {
    for (int64_t p = 0; p < depth; ++p) {
      for (int64_t i = 0; i < rows; ++i) dst[p * rows + i] = a[i][p];
    }
  }
}

/* n <= kTileRows. */
VFN void copy_row(int64_t n, const float* from, float* to) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const VM m = v_first(n - i < kLanes ? n - i : kLanes);
    v_store_masked(to + i, m, v_load_masked(from + i, m));
  }
}

/* A[row + i, p + q], i < rows, q < depth, as dst[q][i]. */
static void pack_tile(const FolioGemmF32* args, int64_t row, int64_t rows, int64_t p, int64_t depth,
                      float* dst) {
  if (args->a_rows) {
    while (depth > 0) {
      const int64_t at = p % args->a_run;
      const int64_t n = args->a_run - at < depth ? args->a_run - at : depth;
      const float* const* first = args->a_rows + p / args->a_run * args->m + row;
      const float* from[kTileRows];
      for (int64_t i = 0; i < rows; ++i) from[i] = first[i] + at;
      pack_tile_rows(rows, n, from, dst);
      p += n;
      depth -= n;
      dst += n * rows;
    }
    return;
  }
  const int64_t a_row = args->a_row_stride;
  const int64_t a_col = args->a_col_stride;
  const float* a = args->a + row * a_row + p * a_col;
  if (a_row == 1) {
    for (int64_t q = 0; q < depth; ++q) copy_row(rows, a + q * a_col, dst + q * rows);
  } else if (a_col == 1) {
    const float* from[kTileRows];
    for (int64_t i = 0; i < rows; ++i) from[i] = a + i * a_row;
    pack_tile_rows(rows, depth, from, dst);
  } else {
    for (int64_t q = 0; q < depth; ++q) {
      for (int64_t i = 0; i < rows; ++i) dst[q * rows + i] = a[i * a_row + q * a_col];
    }
  }
}

/* One block of A against all of B: tiles of almost equal height. */
static void gemm_block(Tile* tile, int64_t rows, int64_t p, float* packed_a) {
  const FolioGemmF32* args = tile->args;
  const int64_t first_row = tile->row;
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  /* For k = 0, a may be null: no address of it is made. */
  for (int64_t t = 0; t < tiles && tile->depth > 0; ++t) {
    const int64_t begin = rows * t / tiles;
    const int64_t end = rows * (t + 1) / tiles;
    pack_tile(args, first_row + begin, end - begin, p, tile->depth,
              packed_a + begin * tile->depth);
  }
  const int64_t wide = kTilePanels * FOLIO_F32P16_COLUMNS;
  for (int64_t j = 0; j < args->n; j += wide) {
    const int64_t left = args->n - j;
    tile->column = j;
    tile->columns = left < wide ? left : wide;
    tile->b = args->b + j * args->k + p * FOLIO_F32P16_COLUMNS;
    const int panels = left <= wide - FOLIO_F32P16_COLUMNS ? 1 : kTilePanels;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = rows * t / tiles;
      const int64_t end = rows * (t + 1) / tiles;
      tile->row = first_row + begin;
      tile->a = packed_a + begin * tile->depth;
      kTiles[panels - 1][end - begin](tile);
    }
  }
}

static void gemm_blocks(const FolioGemmF32* args, float* packed_a, int64_t rows_max) {
  const int64_t blocks = (args->m + rows_max - 1) / rows_max;
  Tile tile = {};
  tile.args = args;
  int64_t p = 0;
  do { /* once for k = 0: C is the epilogue of an empty sum */
    tile.depth = args->k - p < kBlockK ? args->k - p : kBlockK;
    tile.is_first = p == 0;
    tile.is_last = p + tile.depth == args->k;
    for (int64_t block = 0; block < blocks; ++block) {
      tile.row = args->m * block / blocks;
      gemm_block(&tile, args->m * (block + 1) / blocks - tile.row, p, packed_a);
    }
    p += tile.depth;
  } while (p < args->k);
}

static __attribute__((noinline)) void gemm_on_stack(const FolioGemmF32* args) {
  alignas(64) float packed_a[kStackRows * kBlockK];
  gemm_blocks(args, packed_a, kStackRows);
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
  int size = 3; /* 8 panels */
  while (kVectorTiles[args->m - 1][size] == nullptr) --size;
  while (tile.column < args->n) {
    const int64_t left = args->n - tile.column;
    const int64_t panels = (left + FOLIO_F32P16_COLUMNS - 1) / FOLIO_F32P16_COLUMNS;
    while ((int64_t)1 << size > panels) --size;
    const int64_t columns = ((int64_t)1 << size) * FOLIO_F32P16_COLUMNS;
    tile.columns = left < columns ? left : columns;
    tile.b = args->b + tile.column * args->k;
    kVectorTiles[args->m - 1][size](&tile);
    tile.column += columns;
  }
}

static void FOLIO_LEVEL(gemm_f32)(const FolioGemmF32* args) {
  if (args->m == 0 || args->n == 0) return;
  if (args->m <= kVectorRows && !args->a_rows) {
    gemm_vector(args);
  } else if (args->scratch && args->m > kStackRows) {
    gemm_blocks(args, (float*)args->scratch, kBlockRows);
  } else {
    gemm_on_stack(args);
  }
}

static void fill_gemm(FolioKernels* table) {
  table->gemm_f32 = FOLIO_LEVEL(gemm_f32);
  table->gemm_f32_scratch_bytes = sizeof(float) * kBlockRows * kBlockK;
}
