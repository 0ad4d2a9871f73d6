/* gemm_f32: register tiles of kTileRows x (kTilePanels * 16) over F32P16 panels.
 *
 * Order: every element of C is one chain of fused multiply-adds in the order of p; between blocks of
 *        k it rests in C, which loses nothing. So blocking, tile sizes, and how callers split rows
 *        and columns do not change a bit, and both ISAs agree.
 * Cache: a B panel pair of a k block (kBlockK * 32 floats = 32 KiB) stays in L1 while all tiles of an
 *        A block (kBlockRows x kBlockK, packed as [tile][p][row]) stream from L2. A is packed because
 *        rows that lie a multiple of 4 KiB apart share few L1 sets.
 * m <= kVectorRows: A is read in place and B exactly once, kVectorPanels panels side by side. */

constexpr int64_t kPanelVectors = FOLIO_F32P16_COLUMNS / kLanes;
constexpr int64_t kBlockK = 256;
constexpr int64_t kBlockRows = 168; /* a multiple of 14 and of 6; A block: 168 KiB of L2 */
constexpr int64_t kStackRows = 56;  /* without scratch: 56 KiB of stack */
constexpr int64_t kVectorRows = 4;

/* Where a tile lies and what comes before and after it. */
typedef struct Tile {
  const FolioGemmF32* args;
  int64_t row, column;
  int64_t columns; /* of C in this tile: less than kPanels * 16 at the right edge */
  int64_t depth;   /* of this k block */
  int64_t a_row_stride, a_col_stride;
  const float* a;
  const float* b;
  int is_first, is_last; /* of the k blocks */
} Tile;

VFN V activate(const FolioGemmF32* args, V v) {
  if (args->activation == kFolioActRelu) return v_relu(v);
  if (args->activation == kFolioActClip) {
    return v_clip(v, v_set1(args->clip_lo), v_set1(args->clip_hi));
  }
  return v;
}

VFN VM tile_mask(const Tile* tile, int vector) {
  const int64_t left = tile->columns - vector * kLanes;
  return v_first(left < 0 ? 0 : left < kLanes ? left : kLanes);
}

/* kPackedA: a[p][row] of exactly kRows rows; else a with the strides of the tile. */
template <int kRows, int kPanels, int kPackedA>
static void gemm_tile(const Tile* tile) {
  constexpr int64_t kVectors = kPanels * kPanelVectors;
  const FolioGemmF32* args = tile->args;
  const int64_t c_stride = args->c_row_stride;
  float* c = args->c + tile->row * c_stride + tile->column;
  const int is_whole = tile->columns == kPanels * FOLIO_F32P16_COLUMNS;
  V sum[kRows][kVectors];
  if (tile->is_first && !args->accumulate) {
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sum[i][v] = v_zero();
    }
  } else {
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = is_whole ? v_load(c + i * c_stride + v * kLanes)
                             : v_load_masked(c + i * c_stride + v * kLanes, tile_mask(tile, v));
      }
    }
  }

  const float* a = tile->a;
  const int64_t a_row = kPackedA ? 1 : tile->a_row_stride;
  const int64_t a_col = kPackedA ? kRows : tile->a_col_stride;
  const int64_t panel = args->k * FOLIO_F32P16_COLUMNS;
  const float* b = tile->b;
  for (int64_t p = 0; p < tile->depth; ++p) {
    V row[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      row[v] = v_load(b + v / kPanelVectors * panel + v % kPanelVectors * kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V scale = v_set1(a[i * a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[i][v] = v_fma(scale, row[v], sum[i][v]);
    }
    a += a_col;
    b += FOLIO_F32P16_COLUMNS;
  }

  if (tile->is_last) {
    const V alpha = v_set1(args->alpha);
    for (int v = 0; v < kVectors; ++v) {
      V bias = v_zero();
      if (args->col_bias) {
        bias = v_load_masked(args->col_bias + tile->column + v * kLanes, tile_mask(tile, v));
      }
      for (int i = 0; i < kRows; ++i) {
        V x = v_mul(alpha, sum[i][v]);
        if (args->col_bias) x = v_add(x, bias);
        if (args->row_bias) x = v_add(x, v_set1(args->row_bias[tile->row + i]));
        sum[i][v] = activate(args, x);
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      if (is_whole) {
        v_store(c + i * c_stride + v * kLanes, sum[i][v]);
      } else {
        v_store_masked(c + i * c_stride + v * kLanes, tile_mask(tile, v), sum[i][v]);
      }
    }
  }
}

typedef void (*TileFn)(const Tile* tile);
