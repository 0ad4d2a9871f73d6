/* gemm_f32: register tiles of kTileRows x (kTilePanels * 16) over F32P16 panels.
 *
 * Order: every element of C is one chain of fused multiply-adds in the order of p; between blocks
 *        of k it rests in C, which loses nothing. So blocking, tile sizes, and how callers split
 *        rows and columns do not change a bit, and both ISAs agree.
 * Cache: the panels of a k block stay in L1, or where it is deeper in L2, while rows stream from
 *        L2: where they stand when each is contiguous, else packed as [tile][p][row] in blocks of
 *        kStackRows x kBlockK, or copied (gemm.inl, crowds). Meanwhile the next panels come from
 *        memory to L2, or what the caller wants next: without that the first tile over it would
 *        wait for most of it.
 *        m <= kVectorRows: A is read in place and B exactly once, kVectorPanels panels side by
 *        side. */

constexpr int64_t kPanelVectors = FOLIO_F32P16_COLUMNS / kLanes;
constexpr int64_t kBlockK = FOLIO_GEMM_ONE_SUM;
constexpr int64_t kBlockRows = 168; /* a multiple of 14 and of 6; kBlockK of each: 168 KiB of L2 */
constexpr int64_t kStackRows = 56;  /* of packed or copied A: 60 KiB of stack */
constexpr int64_t kVectorRows = 4;
constexpr int64_t kHalfPanel = FOLIO_F32P16_COLUMNS / 2;
constexpr int kSteps = 4;
constexpr int kMostVectors = 8 * kPanelVectors; /* of a tile's row */

/* Where B is when few rows read it. */
enum FetchB { kInCache, kFromL2, kFromFar };

/* Where a tile lies and what comes before and after it. */
typedef struct Tile {
  const FolioGemmF32* args;
  int64_t row, column;
  int is_whole;               /* all columns that it has; else the right edge */
  VM mask[kMostVectors];      /* of the columns */
  int64_t first_depth, depth; /* of this k block */
  int64_t a_row_stride, a_col_stride;
  const float* a; /* of this tile and k block; null: rows of pieces, as args has them */
  const float* b;
  int64_t b_row_stride;  /* 0: panels; else B stands as it is */
  int is_first, is_last; /* of the k blocks */
  int is_narrow;         /* the CPU: see gemm_any() */
  int fetches;           /* FetchB: m <= kVectorRows */
  const float* ahead;    /* rows of the next panels that this tile fetches, or null */
  int ahead_rows;        /* per kSteps */
  const char* next;      /* lines of args->next still to come: the next one, its row's end */
  const char* next_end;
  int64_t next_rows;  /* from this one on */
  int64_t next_lines; /* per kSteps */
} Tile;

/* Panels from `column` on of B, which has `left` columns there; of the last panel, its first half
 * alone. */
VFN void place_columns(Tile* tile, int64_t column, int64_t left, int64_t panels,
                       int leaves_half = 0) {
  tile->column = column;
  tile->is_whole = left >= panels * FOLIO_F32P16_COLUMNS - leaves_half * kHalfPanel;
  for (int64_t v = 0; v < panels * kPanelVectors; ++v, left -= kLanes) {
    tile->mask[v] = v_first(left < 0 ? 0 : left < kLanes ? left : kLanes);
  }
}

/* Of a tile over the first of the columns that are left: its panels, and whether the second half of
 * the last one has no columns. */
VFN int64_t tile_panels(int64_t left) {
  return left <= (kTilePanels - 1) * FOLIO_F32P16_COLUMNS ? 1 : kTilePanels;
}
VFN int lacks_half(int64_t left, int64_t panels) {
  return left <= panels * FOLIO_F32P16_COLUMNS - kHalfPanel;
}

/* Rows of the next panels that each of so many tiles fetches per kSteps. */
VFN int rows_ahead(int64_t tiles) { return tiles >= kSteps ? 1 : tiles > 1 ? kSteps / 2 : kSteps; }

/* The tiles over some panels fetch the next ones: as few tiles as can, never more than kSteps rows
 * per kSteps. */
VFN void plan_ahead(Tile* tile, const float* next, int64_t index, int64_t tiles) {
  tile->ahead_rows = rows_ahead(tiles);
  const int64_t first = index * tile->ahead_rows * (tile->depth / kSteps);
  tile->ahead = next && first < tile->depth ? next + first * FOLIO_F32P16_COLUMNS : nullptr;
}

/* A row of a panel is one cache line. Into L2; into L1 on Zen 4, where products of 49 rows whose
 * panels come from memory are 2 to 5 % faster so, and others the same (2026-11). */
VFN const float* fetch_ahead(const Tile* tile, const float* ahead, int64_t panel) {
  for (int i = 0; i < tile->ahead_rows; ++i, ahead += FOLIO_F32P16_COLUMNS) {
    for (int64_t v = 0; v < kTilePanels; ++v) {
      if (tile->is_narrow) {
        __builtin_prefetch(ahead + v * panel, 0, 3);
      } else {
        __builtin_prefetch(ahead + v * panel, 0, 2);
      }
    }
  }
  return ahead;
}

/* Lines of args->next in as many portions as there are steps over all of A, B and k. */
VFN void plan_next(Tile* tile) {
  const FolioGemmF32* args = tile->args;
  const int64_t lines = args->next_rows * (args->next_bytes / 64 + 1);
  const int64_t tiles =
      (args->m + kTileRows - 1) / kTileRows *
      ((args->n + kTilePanels * FOLIO_F32P16_COLUMNS - 1) / (kTilePanels * FOLIO_F32P16_COLUMNS));
  const int64_t portions = tiles * (args->k / kSteps);
  tile->next = args->next;
  tile->next_end = args->next + args->next_bytes;
  tile->next_rows = args->next_rows;
  tile->next_lines = args->next && portions > 0 ? (lines + portions - 1) / portions : 0;
}

VFN void fetch_next(Tile* tile) {
  for (int64_t i = 0; i < tile->next_lines; ++i) {
    __builtin_prefetch(tile->next, 0, 2);
    tile->next += 64;
    if (tile->next < tile->next_end) continue;
    tile->next_end += tile->args->next_stride;
    tile->next = tile->next_end - tile->args->next_bytes;
    if (--tile->next_rows == 0) tile->next_lines = 0;
  }
}

/* Rows of C and D that the end of a tile is going to touch: fetched while it sums, one every kSteps.
 * A sum too short for that does without: asking at once for all takes longer than waiting. */
typedef struct TileEnd {
  const float* c; /* null: in L1 already */
  const float* d; /* null: none */
  int rows;       /* still to come */
} TileEnd;

template <int kPanels>
VFN void fetch_end(const FolioGemmF32* args, TileEnd* end) {
  if (end->c) {
#pragma GCC unroll 8
    for (int v = 0; v < kPanels; ++v) {
      __builtin_prefetch(end->c + v * FOLIO_F32P16_COLUMNS, 1, 3);
    }
    end->c += args->c_row_stride;
  }
  if (end->d) {
#pragma GCC unroll 8
    for (int v = 0; v < kPanels; ++v) {
      __builtin_prefetch(end->d + v * FOLIO_F32P16_COLUMNS, 0, 3);
    }
    end->d += args->addend_row_stride;
  }
}

VFN TileEnd plan_end(const Tile* tile, int rows) {
  const FolioGemmF32* args = tile->args;
  TileEnd end = {};
  if (tile->depth < rows * kSteps) return end;
  if (tile->is_first && !args->accumulate) {
    end.c = args->c + tile->row * args->c_row_stride + tile->column;
  } else if (kPanelVectors > 1 && tile->row + rows < args->m) { /* where the next tile begins */
    end.c = args->c + (tile->row + rows) * args->c_row_stride + tile->column;
  }
  if (tile->is_last && args->addend) {
    end.d = args->addend + tile->row * args->addend_row_stride + tile->column;
  }
  end.rows = end.c || end.d ? rows : 0;
  return end;
}

/* How a tile reads A. */
enum TileA {
  kStridedA, /* a with the strides of the tile */
  kPackedA,  /* a[p][row] of exactly kRows rows */
  kRowsA,    /* where it stands: rows made of contiguous pieces, each anywhere */
  kEvenA     /* the same, but the rows of a piece are a_row_stride apart */
};

/* Where the elements of a tile's rows are: at(row, q) of the piece that find() or next() came to,
 * which return how much of it there is. */
template <int kRows>
struct TileRows {
  static constexpr int kMoves = 0;
  const float* row[kRows];
  const float* const* piece;

  /* The piece that the tile's k block begins in, from there on. */
  __attribute__((always_inline)) int64_t find(const Tile* tile) {
    const FolioGemmF32* args = tile->args;
    const int64_t index = tile->first_depth / args->a_run;
    const int64_t skipped = tile->first_depth - index * args->a_run;
    piece = args->a_rows + index * args->m + tile->row;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) row[i] = piece[i] + skipped;
    return args->a_run - skipped;
  }
  __attribute__((always_inline)) int64_t next(const FolioGemmF32* args, int64_t) {
    piece += args->m;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) row[i] = piece[i];
    return args->a_run;
  }
  __attribute__((always_inline)) float at(int i, int64_t q) const { return row[i][q]; }
  __attribute__((always_inline)) void advance(int64_t) {}
};

/* The address of three rows is one register and a multiple of the stride: there are fewer registers
 * than rows, and a compiler that keeps addresses in vector registers takes the units of the
 * multiply-adds for them. */
template <int kRows>
struct EvenRows {
  static constexpr int kMoves = 1; /* with q */
  const char* base[(kRows + 2) / 3];
  int64_t stride; /* in bytes */
  const float* const* piece;

  __attribute__((always_inline)) void begin(const float* row, int64_t first) {
    base[0] = (const char*)row + first * stride;
#pragma GCC unroll 16
    for (int g = 1; g < (kRows + 2) / 3; ++g) base[g] = base[g - 1] + 3 * stride;
  }
  __attribute__((always_inline)) int64_t find(const Tile* tile) {
    const FolioGemmF32* args = tile->args;
    stride = tile->a_row_stride * (int64_t)sizeof(float);
    piece = nullptr;
    if (tile->a) {
      begin(tile->a, 0);
      return tile->depth;
    }
    const int64_t index = tile->first_depth / args->a_run;
    const int64_t skipped = tile->first_depth - index * args->a_run;
    piece = args->a_lines + index;
    begin(*piece + skipped, tile->row);
    return args->a_run - skipped;
  }
  __attribute__((always_inline)) int64_t next(const FolioGemmF32* args, int64_t first) {
    begin(*++piece, first);
    return args->a_run;
  }
  __attribute__((always_inline)) float at(int i, int64_t q) const {
    return *(const float*)(base[i / 3] + i % 3 * stride + q * (int64_t)sizeof(float));
  }
  __attribute__((always_inline)) void advance(int64_t n) {
#pragma GCC unroll 16
    for (int g = 0; g < (kRows + 2) / 3; ++g) base[g] += n * (int64_t)sizeof(float);
  }
};

/* A tile's last vector, where kNarrow: half of it, which takes half of a product's time where
 * vectors of 16 lanes are made in two steps. */
template <int kVectors, int kNarrow>
constexpr bool is_half(int v) {
  return kNarrow && v == kVectors - 1;
}

/* Vector v of a whole tile's row. */
template <int kVectors, int kNarrow>
VFN V load_part(int v, const float* from) {
  return is_half<kVectors, kNarrow>(v) ? v_load8(from) : v_load(from);
}
template <int kVectors, int kNarrow>
VFN void store_part(int v, float* to, V a) {
  if (is_half<kVectors, kNarrow>(v)) {
    v_store8(to, a);
  } else {
    v_store(to, a);
  }
}

/* sum[i] += a row's element times one row of B. */
template <int kRows, int kVectors, int kNarrow, typename Rows>
VFN void tile_step(V (*sum)[kVectors], const Rows& rows, int64_t q, const float* b, int64_t panel) {
  V row[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    row[v] = v_load(b + v / kPanelVectors * panel + v % kPanelVectors * kLanes);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const float element = rows.at(i, q);
    const V scale = is_half<kVectors, kNarrow>(0) ? v_set8(element) : v_set1(element);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      if (is_half<kVectors, kNarrow>(v)) {
        sum[i][v] = v_fma8(scale, row[v], sum[i][v]);
      } else {
        v_add_product(&sum[i][v], scale, row[v]);
      }
    }
  }
}

/* Of a k block, A read by rows. Several steps for one look at a row's address. */
template <int kRows, int kVectors, int kNarrow, typename Rows>
VFN void tile_sum_rows(Tile* tile, V (*sum)[kVectors]) {
  const FolioGemmF32* args = tile->args;
  const int64_t panel = args->k * FOLIO_F32P16_COLUMNS;
  const float* b = tile->b;
  const float* ahead = tile->ahead;
  TileEnd after = plan_end(tile, kRows);
  const int64_t end = tile->first_depth + tile->depth;
  Rows rows;
  int64_t p = tile->first_depth;
  if (p == end) return;
  for (int64_t n = rows.find(tile);; n = rows.next(args, tile->row)) {
    n = n < end - p ? n : end - p;
    p += n;
    int64_t q = 0;
    for (; q + kSteps <= n; q += kSteps) {
      if (ahead) ahead = fetch_ahead(tile, ahead, panel);
      fetch_next(tile);
      if (after.rows > 0) {
        fetch_end<(kVectors + kPanelVectors - 1) / kPanelVectors>(args, &after);
        --after.rows;
      }
#pragma GCC unroll 16
      for (int u = 0; u < kSteps; ++u, b += FOLIO_F32P16_COLUMNS) {
        tile_step<kRows, kVectors, kNarrow>(sum, rows, Rows::kMoves ? u : q + u, b, panel);
      }
      rows.advance(kSteps);
    }
    for (; q < n; ++q, b += FOLIO_F32P16_COLUMNS) {
      tile_step<kRows, kVectors, kNarrow>(sum, rows, Rows::kMoves ? 0 : q, b, panel);
      rows.advance(1);
    }
    if (p == end) return;
  }
}

/* The same of a B that stands as it is, A by rows. Its lines for the next columns are fetched by
 * the first tile over these: a processor does not see that they come. */
template <int kRows, int kVectors>
VFN void tile_sum_plain(const Tile* tile, V (*sum)[kVectors]) {
  if (tile->depth == 0) return;
  const int64_t stride = tile->b_row_stride;
  const float* b = tile->b;
  const float* ahead = tile->ahead ? b + kVectors * kLanes : b;
  EvenRows<kRows> rows;
  rows.find(tile);
  for (int64_t p = 0; p < tile->depth; ++p, b += stride, ahead += stride) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; v += kPanelVectors) {
      __builtin_prefetch(ahead + v * kLanes, 0, 3);
    }
    V row[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) row[v] = v_load_masked(b + v * kLanes, tile->mask[v]);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V scale = v_set1(rows.at(i, 0));
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) v_add_product(&sum[i][v], scale, row[v]);
    }
    rows.advance(1);
  }
}

/* What of panels is read some steps later: the processor's own prefetching ends at each page. What
 * comes from far into L2, as L1 has too few lines in flight; of less than four panels that is
 * slower. (2026-11, Zen 4: 1 to 8 KiB ahead in one to eight panels.) */
template <int kPanels, int kIsFar>
struct PanelsAhead {
  static constexpr int kToL2 = kIsFar && kPanels >= 4;
  static constexpr int64_t kBytes = kToL2 ? 1024 : 2048; /* of a panel */
  uintptr_t at;                                          /* a number, as panels may end before it */
  int64_t panel;                                         /* bytes */

  PanelsAhead(const void* panels, int64_t panel_bytes)
      : at((uintptr_t)panels + kBytes), panel(panel_bytes) {}

  /* `left` rows from the one that is read now. Where panels end, the next ones begin. */
  __attribute__((always_inline)) void fetch(int64_t left, int64_t row) {
    if (left == kBytes / row) at += (kPanels - 1) * panel;
#pragma GCC unroll 16
    for (int v = 0; v < kPanels; ++v) {
      __builtin_prefetch((const void*)(at + v * panel), 0, kToL2 ? 2 : 3);
    }
    at += row;
  }
};

/* The same, A packed or with strides. */
template <int kRows, int kVectors, int kA, int kFetches>
VFN void tile_sum_strided(const Tile* tile, V (*sum)[kVectors]) {
  const int64_t panel = tile->args->k * FOLIO_F32P16_COLUMNS;
  const float* a = tile->a;
  const float* b = tile->b;
  const int64_t a_row = kA == kPackedA ? 1 : tile->a_row_stride;
  const int64_t a_col = kA == kPackedA ? kRows : tile->a_col_stride;
  constexpr int64_t kRowBytes = FOLIO_F32P16_COLUMNS * sizeof(float);
  PanelsAhead<kVectors / kPanelVectors, kFetches == kFromFar> ahead(b, panel * sizeof(float));
  for (int64_t p = 0; p < tile->depth; ++p) {
    if (kFetches != kInCache) ahead.fetch(tile->depth - p, kRowBytes);
    V row[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      row[v] = v_load(b + v / kPanelVectors * panel + v % kPanelVectors * kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V scale = v_set1(a[i * a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) v_add_product(&sum[i][v], scale, row[v]);
    }
    a += a_col;
    b += FOLIO_F32P16_COLUMNS;
  }
}

/* All loops over sums are unrolled, so that these stay in registers from begin to end. */
template <int kRows, int kVectors>
VFN void tile_begin(const Tile* tile, const float* c, V (*sum)[kVectors]) {
  const FolioGemmF32* args = tile->args;
  if (tile->is_first && !args->accumulate) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[i][v] = v_zero();
    }
    return;
  }
  /* Addresses are made here alone: g++ would make all of them before it knows that they are used,
   * and keep them in vector registers. */
  int64_t stride = args->c_row_stride;
  __asm__("" : "+r"(c), "+r"(stride));
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += stride) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const float* from = c + v * kLanes;
      if (kPanelVectors > 1 && tile->is_whole) {
        sum[i][v] = v_load(from);
      } else { /* of one vector a panel, masks cost nothing */
        sum[i][v] = v_load_masked(from, tile->mask[v]);
      }
    }
  }
}

template <int kRows, int kVectors, int kActivation>
VFN void tile_activate(const FolioGemmF32* args, V (*sum)[kVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      sum[i][v] = v_activate(sum[i][v], kActivation, args->clip_lo, args->clip_hi);
    }
  }
}

/* Of the last k block: what becomes of the sums, one thing after the other. */
template <int kRows, int kVectors>
VFN void tile_finish(const Tile* tile, V (*sum)[kVectors]) {
  const FolioGemmF32* args = tile->args;
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = tile->column + v * kLanes;
    const VM m = tile->mask[v];
    if (args->col_scale || args->alpha != 1.0f) {
      V scale = v_set1(args->alpha);
      if (args->col_scale) scale = v_mul(scale, v_load_masked(args->col_scale + column, m));
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) sum[i][v] = v_mul(scale, sum[i][v]);
    }
    if (args->col_bias) {
      const V bias = v_load_masked(args->col_bias + column, m);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) sum[i][v] = v_add(sum[i][v], bias);
    }
    if (args->row_bias) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        sum[i][v] = v_add(sum[i][v], v_set1(args->row_bias[tile->row + i]));
      }
    }
    if (args->addend) {
      const float* addend = args->addend + tile->row * args->addend_row_stride + column;
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i, addend += args->addend_row_stride) {
        sum[i][v] = v_add(sum[i][v], v_load_masked(addend, m));
      }
    }
  }
  switch (args->activation) {
    case kFolioActRelu:
      return tile_activate<kRows, kVectors, kFolioActRelu>(args, sum);
    case kFolioActClip:
      return tile_activate<kRows, kVectors, kFolioActClip>(args, sum);
    case kFolioActLeakyRelu:
      return tile_activate<kRows, kVectors, kFolioActLeakyRelu>(args, sum);
    default:
      return;
  }
}

template <int kRows, int kVectors, int kNarrow = 0>
VFN void tile_store(const Tile* tile, float* c, V (*sum)[kVectors]) {
  int64_t stride = tile->args->c_row_stride;
  if (tile->is_whole) {
    __asm__("" : "+r"(c), "+r"(stride)); /* as above */
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += stride) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        store_part<kVectors, kNarrow>(v, c + v * kLanes, sum[i][v]);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += stride) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) v_store_masked(c + v * kLanes, tile->mask[v], sum[i][v]);
  }
}

/* The same of rows of sums that stand in memory, `stride` floats apart, perhaps in C: for ends that
 * are so rare that tiles have no code for them. What is not there is -0, which added to anything
 * gives that. */
template <int kVectors, int kActivation>
static void finish_rows(const Tile* tile, int64_t rows, const float* sum, int64_t stride,
                        float* c) {
  const FolioGemmF32* args = tile->args;
  const V none = v_set1(-0.0f);
  V scale[kVectors], bias[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = tile->column + v * kLanes;
    const VM m = tile->mask[v];
    scale[v] = v_set1(args->alpha);
    if (args->col_scale) scale[v] = v_mul(scale[v], v_load_masked(args->col_scale + column, m));
    bias[v] = args->col_bias ? v_load_masked(args->col_bias + column, m) : none;
  }
  const float* d =
      args->addend ? args->addend + tile->row * args->addend_row_stride + tile->column : nullptr;
  const float* e = args->row_bias ? args->row_bias + tile->row : nullptr;
  for (int64_t i = 0; i < rows; ++i, sum += stride, c += args->c_row_stride) {
    const V more = e ? v_set1(e[i]) : none;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const VM m = tile->mask[v];
      V y = v_mul(scale[v], v_load_masked(sum + v * kLanes, m));
      y = v_add(v_add(y, bias[v]), more);
      if (d) y = v_add(y, v_load_masked(d + v * kLanes, m));
      v_store_masked(c + v * kLanes, m, v_activate(y, kActivation, args->clip_lo, args->clip_hi));
    }
    if (d) d += args->addend_row_stride;
  }
}

template <int kVectors>
static __attribute__((noinline)) void finish_kept(const Tile* tile, int64_t rows, const float* sum,
                                                  int64_t stride, float* c) {
  switch (tile->args->activation) {
    case kFolioActRelu:
      return finish_rows<kVectors, kFolioActRelu>(tile, rows, sum, stride, c);
    case kFolioActClip:
      return finish_rows<kVectors, kFolioActClip>(tile, rows, sum, stride, c);
    case kFolioActLeakyRelu:
      return finish_rows<kVectors, kFolioActLeakyRelu>(tile, rows, sum, stride, c);
    default:
      return finish_rows<kVectors, kFolioActNone>(tile, rows, sum, stride, c);
  }
}

/* Rows of sums, side by side in memory, into the columns that there are. */
template <int kVectors>
static __attribute__((noinline)) void store_kept(const Tile* tile, int64_t rows, const float* sum,
                                                 float* c) {
  for (int64_t i = 0; i < rows; ++i, sum += kVectors * kLanes, c += tile->args->c_row_stride) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      v_store_masked(c + v * kLanes, tile->mask[v], v_load(sum + v * kLanes));
    }
  }
}

/* Whether anything becomes of sums. */
VFN int has_end(const FolioGemmF32* args) {
  return args->alpha != 1.0f || args->col_scale || args->col_bias || args->row_bias ||
         args->addend || args->activation != kFolioActNone;
}

/* Whether tile_end_rows() does all of it. */
VFN int ends_by_rows(const FolioGemmF32* args) {
  const int is_bounded = args->activation == kFolioActRelu || args->activation == kFolioActClip;
  return (is_bounded || args->activation == kFolioActNone) && !args->row_bias && !args->col_scale &&
         (args->alpha == 1.0f || !args->col_bias);
}

/* Scale or bias, addend, bounds and store of one row after the other: what a row needs and the
 * stores of those before it are on different units, and the next tile's products can begin. The
 * bias is added by products by 1, as the units of sums have the bounds to do. */
template <int kRows, int kVectors, int kNarrow>
VFN void tile_end_rows(const Tile* tile, float* c, V (*sum)[kVectors]) {
  const FolioGemmF32* args = tile->args;
  const int64_t stride = args->c_row_stride;
  const float* d =
      args->addend ? args->addend + tile->row * args->addend_row_stride + tile->column : nullptr;
  const int is_clip = args->activation == kFolioActClip;
  const V lo = v_set1(is_clip ? args->clip_lo : 0.0f);
  const V hi = v_set1(is_clip ? args->clip_hi : __builtin_inff());
  const V scale = v_set1(args->alpha);
  V bias[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    bias[v] = v_set1(-0.0f); /* added to anything, gives that */
    if (!args->col_bias) continue;
    bias[v] = load_part<kVectors, kNarrow>(v, args->col_bias + tile->column + v * kLanes);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += stride) {
    int32_t activation = args->activation;
    __asm__("" : "+r"(d), "+r"(activation) : : "memory"); /* or there would be code for each case */
    V y[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) y[v] = v_fma(sum[i][v], scale, bias[v]);
    if (d) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        y[v] = v_add(y[v], load_part<kVectors, kNarrow>(v, d + v * kLanes));
      }
      d += args->addend_row_stride;
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      if (activation != kFolioActNone) y[v] = v_clip(y[v], lo, hi);
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) store_part<kVectors, kNarrow>(v, c + v * kLanes, y[v]);
  }
}

/* What becomes of the sums, and C. Of 16 registers none is left for what ends rows. */
template <int kRows, int kVectors, int kNarrow = 0>
VFN void tile_end(const Tile* tile, float* c, V (*sum)[kVectors]) {
  if constexpr (kPanelVectors > 1) {
    if (tile->is_last) tile_finish<kRows, kVectors>(tile, sum);
    return tile_store<kRows, kVectors, kNarrow>(tile, c, sum);
  }
  const int has = tile->is_last && has_end(tile->args);
  if (has && tile->is_whole && ends_by_rows(tile->args)) {
    return tile_end_rows<kRows, kVectors, kNarrow>(tile, c, sum);
  }
  if (!has && tile->is_whole) return tile_store<kRows, kVectors, kNarrow>(tile, c, sum);
  alignas(64) float kept[kRows * kVectors * kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) v_store(kept + (i * kVectors + v) * kLanes, sum[i][v]);
  }
  if (has) return finish_kept<kVectors>(tile, kRows, kept, kVectors * kLanes, c);
  store_kept<kVectors>(tile, kRows, kept, c);
}

/* kHalf: of the last panel, its first half alone; A read by rows. */
template <int kRows, int kPanels, int kA, int kHalf = 0>
static void gemm_tile(Tile* tile) {
  constexpr int kNarrow = kHalf && kPanelVectors == 1;
  constexpr int kVectors = kPanels * kPanelVectors - (kHalf && !kNarrow);
  const FolioGemmF32* args = tile->args;
  float* c = args->c + tile->row * args->c_row_stride + tile->column;
  V sum[kRows][kVectors];
  tile_begin<kRows, kVectors>(tile, c, sum);
  if constexpr (kA == kRowsA) {
    tile_sum_rows<kRows, kVectors, kNarrow, TileRows<kRows>>(tile, sum);
  } else if (kA == kEvenA && !kHalf && tile->b_row_stride) {
    tile_sum_plain<kRows, kVectors>(tile, sum);
  } else if constexpr (kA == kEvenA) {
    tile_sum_rows<kRows, kVectors, kNarrow, EvenRows<kRows>>(tile, sum);
  } else if (kA == kStridedA && tile->fetches == kFromFar) {
    tile_sum_strided<kRows, kVectors, kA, kFromFar>(tile, sum);
  } else if (kA == kStridedA && tile->fetches == kFromL2) {
    tile_sum_strided<kRows, kVectors, kA, kFromL2>(tile, sum);
  } else {
    tile_sum_strided<kRows, kVectors, kA, kInCache>(tile, sum);
  }
  tile_end<kRows, kVectors, kNarrow>(tile, c, sum);
}

typedef void (*TileFn)(Tile* tile);
