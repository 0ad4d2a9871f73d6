/* gemm_f32 of pixels of a line whose pieces are a few floats each, as the first layer of an image
 * has them (its channels in planes): a pointer for each tap, next to which the pixels of a tile
 * stand at distances that are known to the compiler. In gemm_tile() each piece costs as much as
 * its products. The order of each sum is the same, so are its bits. */

constexpr int64_t kMostTaps = 256;
constexpr int64_t kLongPiece = 12; /* floats: three times kSteps */
constexpr int64_t kFewTapRows = kTileRows / 2;

/* Next to a tap: row i stands at x[i * kStride]. */
template <int kStride>
struct TapRows {
  const float* x;
  __attribute__((always_inline)) float at(int i, int64_t) const { return x[i * kStride]; }
};

/* kHalf: as gemm_tile()'s. */
template <int kRows, int kPanels, int kStride, int kHalf>
static void tap_tile(Tile* tile, const float* const* taps) {
  constexpr int kNarrow = kHalf && kPanelVectors == 1;
  constexpr int kVectors = kPanels * kPanelVectors - (kHalf && !kNarrow);
  const FolioGemmF32* args = tile->args;
  const int64_t panel = args->k * FOLIO_F32P16_COLUMNS;
  const int64_t at = tile->row * kStride;
  const float* b = tile->b;
  V sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sum[i][v] = v_zero();
  }
  for (int64_t p = 0; p < args->k; ++p, b += FOLIO_F32P16_COLUMNS) {
    TapRows<kStride> rows = {taps[p] + at};
    __asm__("" : "+r"(rows.x)); /* or each row would have a register for its distance */
    tile_step<kRows, kVectors, kNarrow>(sum, rows, p, b, panel);
  }
  float* c = args->c + tile->row * args->c_row_stride + tile->column;
  tile_end<kRows, kVectors, kNarrow>(tile, c, sum);
}

typedef void (*TapTileFn)(Tile* tile, const float* const* taps);

/* [leaves half a panel][is small]. Static: or one level would have the tiles of another. */
template <int kPanels, int kStride>
static constexpr TapTileFn kTapTiles[2][2] = {
    {tap_tile<kTileRows, kPanels, kStride, 0>, tap_tile<kFewTapRows, kPanels, kStride, 0>},
    {tap_tile<kTileRows, kPanels, kStride, 1>, tap_tile<kFewTapRows, kPanels, kStride, 1>}};

template <int kPanels>
static const TapTileFn* tap_tiles(int64_t stride, int leaves_half) {
  return stride == 1   ? kTapTiles<kPanels, 1>[leaves_half]
         : stride == 2 ? kTapTiles<kPanels, 2>[leaves_half]
                       : kTapTiles<kPanels, 4>[leaves_half];
}

VFN int fits_taps(const FolioGemmF32* args) {
  const int64_t stride = args->a_row_stride;
  return args->a_lines && args->a_run < kLongPiece && args->k <= kMostTaps &&
         (stride == 1 || stride == 2 || stride == 4) && args->m >= kFewTapRows &&
         !args->accumulate && !args->addend;
}

/* Rows that are too few for a tile are computed with some of those before them, once more. */
static __attribute__((noinline)) void gemm_taps(const FolioGemmF32* args, int is_narrow) {
  const float* taps[kMostTaps];
  for (int64_t p = 0; p < args->k; p += args->a_run) {
    for (int64_t q = 0; q < args->a_run; ++q) taps[p + q] = args->a_lines[p / args->a_run] + q;
  }
  Tile tile = {};
  tile.args = args;
  tile.is_last = 1;
  const int64_t wide = kTilePanels * FOLIO_F32P16_COLUMNS;
  for (int64_t j = 0; j < args->n; j += wide) {
    const int64_t left = args->n - j;
    const int64_t panels = tile_panels(left);
    const int leaves_half = (is_narrow || kPanelVectors > 1) && lacks_half(left, panels);
    const TapTileFn* const tiles = panels == 1
                                       ? tap_tiles<1>(args->a_row_stride, leaves_half)
                                       : tap_tiles<kTilePanels>(args->a_row_stride, leaves_half);
    place_columns(&tile, j, left, panels, leaves_half);
    tile.b = args->b + j * args->k;
    for (int64_t i = 0; i < args->m;) {
      const int64_t rest = args->m - i;
      const int is_small = rest <= kFewTapRows || args->m < kTileRows;
      const int64_t rows = is_small ? kFewTapRows : kTileRows;
      tile.row = rest < rows ? args->m - rows : i;
      tiles[is_small](&tile, taps);
      i = tile.row + rows;
    }
  }
}
