/* gemm_f32 of short sums on CPUs that begin two products of 16 lanes in a cycle (Zen 5): what
 * becomes of a tile's sums takes them as long as three or four steps of its products do, and they
 * look too few operations ahead to begin the next tile meanwhile. So the sums of a tile wait in
 * memory, and some of its rows end after some steps of the next one's products. Tiles are low, as
 * two loads begin in a cycle, too, and of one to three panels; of the last panel's first half,
 * two rows share a vector.
 *
 * The same order of each sum, so the same bits. */

constexpr int64_t kShortestLinked = 14;
constexpr int64_t kLongestLinked = kBlockK; /* sums that no k block cuts: D may be C */
constexpr int64_t kFewestLinkedRows = 28;
constexpr int64_t kFewestLinkedColumns = 24;

/* Of a tile: of kFull panels and, if kHalf, of 8 columns. */
template <int kRows, int kFull, int kHalf>
struct LinkSums {
  V full[kRows][kFull];
  V half[(kRows + 1) / 2]; /* of a row, then of the next */
};

/* Those that end while the next tile is made, of up to kRows rows. */
template <int kRows, int kFull, int kHalf>
struct LinkKept : LinkSums<kRows, kFull, kHalf> {
  int rows;
};

/* What ends sums, in memory, as registers are few. */
typedef struct LinkEnd {
  V bias[4]; /* of panels, then of the half one, twice */
  V lo, hi;
} LinkEnd;

/* Where rows that end go. */
typedef struct LinkOut {
  float* c;
  int64_t stride;
  const float* d; /* or null */
  int64_t d_stride;
} LinkOut;

/* Columns that tiles of one shape pass over, and what these share. */
typedef struct Link {
  const FolioGemmF32* args;
  const float* a;
  const float* b;
  int64_t column;
  const char* ahead; /* what comes next, fetched so many lines whenever a row ends */
  const char* ahead_end;
  int64_t lines;
  LinkEnd end;
} Link;

/* Lanes 0 to 7 of a, 8 to 15 of b. */
VFN V join_halves(V a, V b) { return _mm512_mask_blend_ps(0xff00, a, b); }
VFN V load_twice(const float* p) { return _mm512_broadcast_f32x8(_mm256_loadu_ps(p)); }

template <int kRows, int kFull, int kHalf>
VFN void link_step(LinkSums<kRows, kFull, kHalf>* sum, const EvenRows<kRows>& rows, const float* b,
                   int64_t panel) {
  V w[kFull + 1];
#pragma GCC unroll 4
  for (int v = 0; v < kFull; ++v) w[v] = v_load(b + v * panel);
  if (kHalf) w[kFull] = load_twice(b + kFull * panel);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; i += 1 + kHalf) {
    const V x = v_set1(rows.at(i, 0));
#pragma GCC unroll 4
    for (int v = 0; v < kFull; ++v) v_add_product(&sum->full[i][v], x, w[v]);
    if (!kHalf) continue;
    const V y = v_set1(rows.at(i + kHalf, 0));
#pragma GCC unroll 4
    for (int v = 0; v < kFull; ++v) v_add_product(&sum->full[i + kHalf][v], y, w[v]);
    v_add_product(&sum->half[i / 2], join_halves(x, y), w[kFull]);
  }
}

template <int kFull>
VFN void link_end_row(const V (&sum)[kFull], const LinkEnd* end, const LinkOut* out) {
#pragma GCC unroll 4
  for (int v = 0; v < kFull; ++v) {
    V y = v_add(sum[v], end->bias[v]);
    if (out->d) y = v_add(y, v_load(out->d + v * kLanes));
    v_store(out->c + v * kLanes, v_clip(y, end->lo, end->hi));
  }
}

/* 8 columns of two rows. */
VFN void link_end_half(V sum, int64_t column, V bias, const LinkEnd* end, const LinkOut* out) {
  V y = v_add(sum, bias);
  if (out->d) {
    const float* d = out->d + column;
    y = v_add(y, _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(d)),
                                    _mm256_loadu_ps(d + out->d_stride), 1));
  }
  y = v_clip(y, end->lo, end->hi);
  float* c = out->c + column;
  _mm256_storeu_ps(c, _mm512_castps512_ps256(y));
  _mm256_storeu_ps(c + out->stride, _mm512_extractf32x8_ps(y, 1));
}

/* Row i, or i and i + 1. */
template <int kRows, int kFull, int kHalf>
VFN void link_end(const LinkSums<kRows, kFull, kHalf>& kept, int i, const Link* link,
                  LinkOut* out) {
  const LinkEnd* end = &link->end;
  __asm__("" : "+r"(end)); /* or its vectors would be kept in registers */
  if (kHalf) link_end_half(kept.half[i / 2], kFull * kLanes, end->bias[kFull], end, out);
#pragma GCC unroll 2
  for (int r = 0; r <= kHalf; ++r) {
    link_end_row(kept.full[i + r], end, out);
    out->c += out->stride;
    if (out->d) out->d += out->d_stride;
  }
}

/* A row's lines that its end is going to touch. (Stores that wait for L2 hold up those of the next
 * sums: with C in L2 784 x 96 x 16 took 12.3 or 15.5 us, by its address, with this 11.5.) */
template <int kLines>
VFN void link_fetch_row(LinkOut* out) {
#pragma GCC unroll 4
  for (int v = 0; v < kLines; ++v) __builtin_prefetch(out->c + v * kLanes, 1, 3);
  out->c += out->stride;
  if (!out->d) return;
#pragma GCC unroll 4
  for (int v = 0; v < kLines; ++v) __builtin_prefetch(out->d + v * kLanes, 0, 3);
  out->d += out->d_stride;
}

/* The sums of the rows from `row` on, to `kept`; those that are there go to `out` meanwhile.
 * `next`: where these will go. */
template <int kRows, int kMost, int kFull, int kHalf>
VFN void link_tile(Link* link, int64_t row, LinkKept<kMost, kFull, kHalf>* kept, LinkOut out,
                   LinkOut next) {
  const int64_t panel = link->args->k * FOLIO_F32P16_COLUMNS;
  const float* b = link->b;
  EvenRows<kRows> rows;
  rows.stride = link->args->a_row_stride * (int64_t)sizeof(float);
  rows.begin(link->a, row);
  LinkSums<kRows, kFull, kHalf> sum;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kFull; ++v) sum.full[i][v] = v_zero();
    if (kHalf) sum.half[i / 2] = v_zero();
  }
  const auto add_steps = [&](const float* to) __attribute__((always_inline)) {
    for (; b != to; b += FOLIO_F32P16_COLUMNS) {
      link_step(&sum, rows, b, panel);
      rows.advance(1);
    }
  };
  const float* const last = b + panel;
  const int64_t part = link->args->k / (kRows / (1 + kHalf)) * FOLIO_F32P16_COLUMNS;
  const int ends = kept->rows > 0;
  for (int i = 0; i < kRows; i += 1 + kHalf) {
    add_steps(b + part);
    if (ends) link_end(*kept, i, link, &out);
    for (int r = 0; r <= kHalf; ++r) link_fetch_row<kFull + kHalf>(&next);
    for (int64_t l = 0; l < link->lines && link->ahead < link->ahead_end; ++l, link->ahead += 64) {
      __builtin_prefetch(link->ahead, 0, 2);
    }
  }
  add_steps(last);
  if (kMost > kRows && kept->rows > kRows) link_end(*kept, kMost - 1, link, &out);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kFull; ++v) kept->full[r][v] = sum.full[r][v];
    if (kHalf) kept->half[r / 2] = sum.half[r / 2];
  }
  kept->rows = kRows;
}

/* Tiles of kRows rows, some of one more, so that few are left; returns the first of those. */
template <int kRows, int kFull, int kHalf>
static int64_t link_tiles(Link* link) {
  constexpr int kHigh = kRows + 1 - kHalf;
  const FolioGemmF32* args = link->args;
  const int64_t over = args->m % kRows;
  int64_t higher = over * kHigh <= args->m ? over : 0;
  const float* d = args->addend ? args->addend + link->column : nullptr;
  LinkKept<kHigh, kFull, kHalf> kept;
  kept.rows = 0;
  LinkOut out = {};
  int64_t row = 0;
  do {
    const LinkOut next = {args->c + row * args->c_row_stride + link->column, args->c_row_stride,
                          d ? d + row * args->addend_row_stride : nullptr, args->addend_row_stride};
    if (kHigh > kRows && --higher >= 0) {
      link_tile<kHigh>(link, row, &kept, out, next);
    } else {
      link_tile<kRows>(link, row, &kept, out, next);
    }
    out = next;
    row += kept.rows;
  } while (row + kRows <= args->m);
  for (int i = 0; i < kept.rows; i += 1 + kHalf) link_end(kept, i, link, &out);
  return row;
}

/* Of so many panels and perhaps 8 columns more. */
typedef struct LinkShape {
  int rows, full, half;
  int64_t (*tiles)(Link*);
} LinkShape;

template <int kRows, int kFull, int kHalf>
static constexpr LinkShape kLinkShape = {kRows, kFull, kHalf, link_tiles<kRows, kFull, kHalf>};

/* What the first columns of `left`, a multiple of 8 and at least 24, are; null if the panels that
 * half of L1 holds are too few. (16 columns alone are bound by loads.) */
VFN const LinkShape* link_shape(int64_t left, int64_t k) {
  constexpr int64_t kHeldRows = 384; /* of panels: 24 KiB */
  const int64_t panels = left / FOLIO_F32P16_COLUMNS;
  const int half = left % FOLIO_F32P16_COLUMNS != 0;
  const LinkShape* shape = &kLinkShape<7, 2, 0>;
  if (panels >= 5 || (panels == 3 && !half) || (panels == 4 && half)) shape = &kLinkShape<7, 3, 0>;
  if (panels == 2 && half) shape = &kLinkShape<8, 2, 1>;
  if (panels == 1) shape = &kLinkShape<14, 1, 1>;
  if (k * shape->full <= kHeldRows) return shape;
  return panels > 3 && 2 * k <= kHeldRows ? &kLinkShape<7, 2, 0> : nullptr;
}

/* Rows that are too few for a tile. */
static void link_rest(const Link* link, const LinkShape* shape, int64_t row) {
  const int64_t wide = kTilePanels * FOLIO_F32P16_COLUMNS;
  const int64_t columns = shape->full * FOLIO_F32P16_COLUMNS + shape->half * kHalfPanel;
  Tile tile = {};
  tile.args = link->args;
  tile.depth = tile.args->k;
  tile.is_first = 1;
  tile.is_last = 1;
  tile.row = row;
  for (int64_t j = 0; j < columns; j += wide) {
    const int64_t panels = tile_panels(columns - j);
    place_columns(&tile, link->column + j, columns - j, panels);
    tile.b = link->b + j * tile.args->k;
    place_rows(&tile, kEven, 0, nullptr);
    kTiles[kEven][panels - 1][tile.args->m - row](&tile);
  }
}

/* What is read after the columns before `end`: the lines of args->next in as many portions as there
 * are columns, else the panels behind those. */
VFN void plan_link_ahead(Link* link, const LinkShape* shape, int64_t end) {
  const FolioGemmF32* args = link->args;
  const int64_t ends = args->m / (1 + shape->half); /* of rows, as many as there are nearly */
  int64_t lines = 0;
  link->lines = 0;
  if (args->next) {
    lines = args->next_bytes / 64 * (end - link->column) / args->n;
    link->ahead = args->next + args->next_bytes / 64 * link->column / args->n * 64;
  } else if (end + FOLIO_F32P16_COLUMNS <= args->n || args->b_goes_on) {
    lines = shape->full * args->k;
    link->ahead = (const char*)(args->b + end * args->k);
  }
  link->ahead_end = link->ahead + lines * 64;
  if (lines > 0) link->lines = (lines + ends - 1) / ends;
}

VFN void set_link_bounds(const FolioGemmF32* args, LinkEnd* end) {
  const int is_bounded = args->activation != kFolioActNone;
  const int is_clip = args->activation == kFolioActClip;
  end->lo = v_set1(is_clip ? args->clip_lo : is_bounded ? 0.0f : -__builtin_inff());
  end->hi = v_set1(is_clip ? args->clip_hi : __builtin_inff());
}

VFN void begin_link(Link* link, const LinkShape* shape) {
  const FolioGemmF32* args = link->args;
  for (int v = 0; v < 4; ++v) link->end.bias[v] = v_set1(-0.0f); /* added to anything, gives that */
  link->b = args->b + link->column * args->k;
  if (!args->col_bias) return;
  const float* bias = args->col_bias + link->column;
  for (int v = 0; v < shape->full; ++v) link->end.bias[v] = v_load(bias + v * kLanes);
  if (shape->half) link->end.bias[shape->full] = load_twice(bias + shape->full * kLanes);
}

/* Whether tiles may be linked. */
VFN int fits_links(const FolioGemmF32* args) {
  return args->k >= kShortestLinked && args->k <= kLongestLinked && args->m >= kFewestLinkedRows &&
         args->n >= kFewestLinkedColumns && ends_by_rows(args) && args->alpha == 1.0f &&
         !args->accumulate && (!args->next || args->next_rows == 1);
}

/* All columns but those of a last panel that is neither whole nor half. */
static void gemm_links(const FolioGemmF32* args) {
  Link link = {};
  link.args = args;
  link.a = args->a_lines ? args->a_lines[0] : args->a;
  set_link_bounds(args, &link.end);
  const int64_t panels = args->n / FOLIO_F32P16_COLUMNS * FOLIO_F32P16_COLUMNS;
  const int64_t whole = args->n % kHalfPanel == 0 ? args->n : panels;
  while (whole - link.column >= kFewestLinkedColumns) {
    const LinkShape* shape = link_shape(whole - link.column, args->k);
    if (!shape) break;
    const int64_t end = link.column + shape->full * FOLIO_F32P16_COLUMNS + shape->half * kHalfPanel;
    begin_link(&link, shape);
    plan_link_ahead(&link, shape, end);
    const int64_t row = shape->tiles(&link);
    if (row < args->m) link_rest(&link, shape, row);
    link.column = end;
  }
  if (link.column == args->n) return;
  FolioGemmF32 rest = *args;
  rest.n -= link.column;
  rest.b += link.column * args->k;
  rest.c += link.column;
  if (rest.col_bias) rest.col_bias += link.column;
  if (rest.addend) rest.addend += link.column;
  gemm_any(&rest, 1);
}

static void gemm_linked(const FolioGemmF32* args) {
  const int is_even = args->a_lines ? args->a_run == args->k : args->a_col_stride == 1;
  if (args->a_rows || !is_even || !fits_links(args) || crowds(args)) return gemm_any(args, 1);
  gemm_links(args);
}
