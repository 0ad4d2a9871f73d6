/* gemm_f32 where k fits one block of rows in place: a tile of 6 x 16 is over after 6 k cycles, and
 * what surrounds its products (gemm_tile.inl, where a tile may be of any kind) is 350 instructions,
 * those of 17 steps. So all tiles of one height over a panel are one call, and nothing but the sums'
 * end is looked at per tile: 170 instructions. The same bits as other tiles: every sum is one chain
 * in the order of k. */

typedef struct ShortTiles {
  const FolioGemmF32* args;
  const float* const* lines; /* pieces of rows, each of `run` floats */
  int64_t pieces, run;
  const float* b; /* the panel */
  int64_t column;
  VM mask[kPanelVectors];
  int is_whole; /* all columns of the panel, or of its half */
  int has_lowest, has_highest;
  V lo, hi;          /* bounds of the result */
  const char* ahead; /* lines of the next panel that are still to be fetched */
  const char* ahead_end;
  int more_ahead; /* lines per kSteps, less one */
} ShortTiles;

/* Rows that are read where they stand, and sums whose end is scales, bias, addend and bounds. */
VFN int is_short(const FolioGemmF32* args) {
  return args->k > 0 && args->k <= kPlacedK && (args->m > kVectorRows || args->a_lines) &&
         !args->accumulate && !args->next && !args->row_bias &&
         args->activation != kFolioActLeakyRelu && source_of(args) == kEven;
}

/* What a tile reads of ShortTiles stands in registers or on the stack: C might alias the struct as
 * far as a compiler knows. */
template <int kRows, int kVectors>
VFN const char* short_sum(const ShortTiles& s, int64_t a_stride, int64_t row, const char* ahead,
                          V (*sum)[kVectors]) {
  const float* b = s.b;
  EvenRows<kRows> rows;
  rows.stride = a_stride;
  for (int64_t piece = 0; piece < s.pieces; ++piece) {
    rows.begin(s.lines[piece], row);
    int64_t left = s.run;
    for (; left >= kSteps; left -= kSteps) {
      if (ahead < s.ahead_end) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += 64;
        for (int more = s.more_ahead; more > 0; --more, ahead += 64) {
          __builtin_prefetch(ahead, 0, 2);
        }
      }
#pragma GCC unroll 16
      for (int u = 0; u < kSteps; ++u, b += FOLIO_F32P16_COLUMNS) {
        tile_step<kRows, kVectors, 0>(sum, rows, u, b, 0);
      }
      rows.advance(kSteps);
    }
    if (left >= 2) {
      tile_step<kRows, kVectors, 0>(sum, rows, 0, b, 0);
      tile_step<kRows, kVectors, 0>(sum, rows, 1, b + FOLIO_F32P16_COLUMNS, 0);
      rows.advance(2);
      b += 2 * FOLIO_F32P16_COLUMNS;
    }
    if (left % 2 == 1) {
      tile_step<kRows, kVectors, 0>(sum, rows, 0, b, 0);
      b += FOLIO_F32P16_COLUMNS;
    }
  }
  return ahead;
}

template <int kRows, int kVectors>
VFN void short_add(const ShortTiles& s, const float* d, int64_t stride, V (*sum)[kVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, d += stride) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const float* from = d + v * kLanes;
      sum[i][v] = v_add(sum[i][v], s.is_whole ? v_load(from) : v_load_masked(from, s.mask[v]));
    }
  }
}

template <int kRows, int kVectors>
VFN void short_store(const ShortTiles& s, float* c, int64_t stride, V (*sum)[kVectors]) {
  if (s.is_whole) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += stride) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) v_store(c + v * kLanes, sum[i][v]);
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += stride) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) v_store_masked(c + v * kLanes, s.mask[v], sum[i][v]);
  }
}

/* `count` tiles from `row` on. */
template <int kRows, int kVectors>
static void short_tiles(ShortTiles* given, int64_t row, int64_t count) {
  const ShortTiles s = *given;
  const FolioGemmF32* args = s.args;
  const int64_t a_stride = args->a_row_stride * (int64_t)sizeof(float);
  const int64_t c_stride = args->c_row_stride, d_stride = args->addend_row_stride;
  float* c = args->c + row * c_stride + s.column;
  const float* d = args->addend ? args->addend + row * d_stride + s.column : nullptr;
  const int is_scaled = args->col_scale || args->alpha != 1.0f;
  V scale[kVectors], bias[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = s.column + v * kLanes;
    scale[v] = v_set1(args->alpha);
    if (args->col_scale) scale[v] = v_mul(scale[v], v_load_masked(args->col_scale + at, s.mask[v]));
    bias[v] = v_set1(-0.0f); /* added to anything, gives that */
    if (args->col_bias) bias[v] = v_load_masked(args->col_bias + at, s.mask[v]);
  }
  const char* ahead = s.ahead;
  for (; count > 0; --count, row += kRows, c += kRows * c_stride) {
    V sum[kRows][kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = v_zero();
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      __builtin_prefetch(c + i * c_stride, 1, 3); /* what the tile's end is going to touch */
      if (d) __builtin_prefetch(d + i * d_stride, 0, 3);
    }
    ahead = short_sum<kRows, kVectors>(s, a_stride, row, ahead, sum);
    if (is_scaled) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] = v_mul(scale[v], sum[i][v]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = v_add(sum[i][v], bias[v]);
    }
    if (d) {
      short_add<kRows, kVectors>(s, d, d_stride, sum);
      d += kRows * d_stride;
    }
    if (s.has_lowest) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] = v_max(s.lo, sum[i][v]);
      }
    }
    if (s.has_highest) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] = v_min(s.hi, sum[i][v]);
      }
    }
    short_store<kRows, kVectors>(s, c, c_stride, sum);
  }
  given->ahead = ahead;
}

typedef void (*ShortFn)(ShortTiles* s, int64_t row, int64_t count);

/* [rows] of a panel, and of half a panel: as many sums. */
static const ShortFn kShortTiles[kTileRows + 1] = {
    nullptr,           short_tiles<1, 2>, short_tiles<2, 2>, short_tiles<3, 2>,
    short_tiles<4, 2>, short_tiles<5, 2>, short_tiles<6, 2>};
static const ShortFn kHalfShortTiles[2 * kTileRows + 1] = {
    nullptr,           short_tiles<1, 1>,  short_tiles<2, 1>,  short_tiles<3, 1>, short_tiles<4, 1>,
    short_tiles<5, 1>, short_tiles<6, 1>,  short_tiles<7, 1>,  short_tiles<8, 1>, short_tiles<9, 1>,
    short_tiles<10, 1>, short_tiles<11, 1>, short_tiles<12, 1>};

static void short_panel(ShortTiles* s, int64_t row, int64_t rows, int is_half) {
  const ShortFn* fns = is_half ? kHalfShortTiles : kShortTiles;
  const int64_t most = is_half ? 2 * kTileRows : kTileRows;
  const int64_t tiles = (rows + most - 1) / most;
  const int64_t height = rows / tiles, higher = rows % tiles;
  s->more_ahead = rows_ahead(tiles) - 1;
  if (higher > 0) fns[height + 1](s, row, higher);
  fns[height](s, row + higher * (height + 1), tiles - higher);
}

static void gemm_short(const FolioGemmF32* args) {
  ShortTiles s = {};
  s.args = args;
  s.lines = args->a_lines ? args->a_lines : &args->a;
  s.run = args->a_lines ? args->a_run : args->k;
  s.pieces = args->k / s.run;
  s.has_highest = args->activation == kFolioActClip;
  s.has_lowest = s.has_highest || args->activation == kFolioActRelu;
  s.lo = v_set1(s.has_highest ? args->clip_lo : 0.0f);
  s.hi = v_set1(args->clip_hi);
  const int64_t most = placed_rows(args->k);
  const int64_t blocks = (args->m + most - 1) / most;
  const int64_t panel = args->k * FOLIO_F32P16_COLUMNS;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t row = args->m * block / blocks;
    const int64_t rows = args->m * (block + 1) / blocks - row;
    for (int64_t j = 0; j < args->n; j += FOLIO_F32P16_COLUMNS) {
      const int64_t left = args->n - j;
      const int is_half = left <= kHalfPanel;
      s.column = j;
      s.b = args->b + j * args->k;
      s.is_whole = left == kHalfPanel || left >= FOLIO_F32P16_COLUMNS;
      for (int64_t v = 0; v < kPanelVectors; ++v) {
        const int64_t lanes = left - v * kLanes;
        s.mask[v] = v_first(lanes < 0 ? 0 : lanes < kLanes ? lanes : kLanes);
      }
      s.ahead = (const char*)(s.b + panel);
      s.ahead_end = left > FOLIO_F32P16_COLUMNS ? (const char*)(s.b + 2 * panel) : s.ahead;
      short_panel(&s, row, rows, is_half);
    }
  }
}

static void gemm_short_or_any(const FolioGemmF32* args) {
  if (is_short(args)) return gemm_short(args);
  gemm_any(args, 0);
}
