/* Operands of a product in tiles of bfloat16: floats as sums of parts, made a line at a time, and
 * what becomes of sums. See float.inl, which includes this; the words for tiles come before. */

#include "core/kernels/x86_amx/split.inl"

namespace {

constexpr int64_t kStep = 2 * kTile; /* of the depth */
constexpr int64_t kReach = FOLIO_GEMM_ONE_SUM;
constexpr int64_t kMostReaches = 4;  /* of a block */
constexpr int64_t kWide = 2 * kTile; /* rows, or columns, of an item: two tiles */
/* What is made at a time: rows of a step, lines of both panels, rows of sums. Fewer keep account
 * too often; more at once leave products waiting. */
constexpr int64_t kTurnSteps = 4;
constexpr int64_t kTurnLines = 2;
constexpr int64_t kTurnRows = 8;
static_assert(kTile % kTurnSteps == 0, "rows of one tile");
static_assert(FOLIO_F32P16_COLUMNS == kTile && kTile == 16, "a panel is as wide as a tile");

/* 32 neighbours in a row of A: in each quarter of the line two pairs of x0, then two of x1. (Of one
 * part pairs stand as they come.) */
struct JoinNeighbours {
  static VI join(VI x0, VI x1) {
    return _mm512_packus_epi32(vi_shift_right(x0, 16), vi_shift_right(x1, 16));
  }
};
/* Where pair q of 32 neighbours is then. */
constexpr int8_t kPlaceOfPair[kTile] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};

template <int kParts>
VFN int64_t place_of_pair(int64_t pair) {
  return kParts == 1 ? pair : kPlaceOfPair[pair];
}

VFN int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }
VFN int64_t steps_of(int64_t depth) { return divide_up(depth, kStep); }
VFN int64_t items_of(int64_t count) { return divide_up(count, kWide); }
VFN int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows or columns that parts cannot hold in each reach of a block's depth: a bit for each row, or
 * for each panel. */
struct Bad {
  uint32_t of[kMostReaches];
  uint32_t any;
};

/* An item's tiles: [half or panel][step of the depth][part]. */
struct Item {
  char* tiles;
  int64_t half_bytes;
  Bad* bad;
};

/* Rows of A that are made, step by step: of all rows, then the next. They are read where they
 * stand, or a copy of a step is. */
struct Rows {
  int64_t units;         /* left: a step of a row */
  const float* x[kWide]; /* of each row the stretch: what stands side by side in the reach */
  int64_t at, left;      /* the step, in floats of the stretch; from there on */
  int64_t line, lines;   /* the next row; rows */
  char* to;              /* tiles of the step */
  int64_t row, p, depth; /* the first row; of the depth */
  int64_t done;          /* of that, with the stretch */
  Item item;
  float* copy; /* [kWide][kStep], and a vector */
  Range range; /* of the reach */
  bool stands, by_pieces;
  int64_t piece, skipped; /* where the next stretch is */
};

/* Columns of B that are made, in lines of both panels. Those that are bfloat16 in pairs
 * already are tiles where they stand, and are fetched only, but for the last step of a depth that
 * fills no tile. */
struct Columns {
  int64_t units; /* left */
  const char* b;
  int64_t row; /* bytes of one of a panel */
  bool stands, is_short;
  char* to;
  int64_t line;  /* of the reach */
  int64_t left;  /* of the depth, from the line on */
  int64_t panel; /* bytes between panels, or 0 where there is one */
  int64_t reach;
  Item item;
  Range range[2];
};

/* Sums that wait to go to C, in rows. */
struct Pending {
  int64_t units; /* left */
  const float* sums;
  int64_t row, column, columns;
  bool is_plain; /* all columns of an item, and nothing that finish_plain() does not know */
};

/* The next stretch, and how long it is. */
VFN int64_t find_stretch(const FolioGemmF32* args, Rows* rows) {
  const int64_t rest = at_most(rows->depth - rows->done, kReach - rows->done % kReach);
  const int64_t p = rows->p + rows->done;
  if (rows->by_pieces) {
    const int64_t run = at_most(args->a_run - rows->skipped, rest);
    for (int64_t i = 0; i < rows->lines; ++i) {
      const int64_t row = rows->row + i;
      rows->x[i] = (args->a_rows ? args->a_rows[rows->piece * args->m + row]
                                 : args->a_lines[rows->piece] + row * args->a_row_stride) +
                   rows->skipped;
    }
    rows->skipped += run;
    if (rows->skipped == args->a_run) {
      rows->skipped = 0;
      ++rows->piece;
    }
    return run;
  }
  if (rows->stands) {
    const float* x = args->a + rows->row * args->a_row_stride + p;
    for (int64_t i = 0; i < rows->lines; ++i, x += args->a_row_stride) rows->x[i] = x;
    return rest;
  }
  const int64_t run = at_most(rest, kStep);
  for (int64_t i = 0; i < rows->lines; ++i) {
    rows->x[i] = row_at(args, rows->row + i, p, run, rows->copy + i * kStep);
  }
  return run;
}

VFN void begin_stretch(const FolioGemmF32* args, Rows* rows) {
  rows->at = 0;
  rows->left = find_stretch(args, rows);
  rows->done += rows->left;
}

/* Which rows of the reach that ends at `done` have numbers that parts cannot hold. */
static __attribute__((noinline)) void find_bad_rows(const FolioGemmF32* args, const Rows& rows) {
  float copy[kReach + kLanes];
  const int64_t reach = (rows.done - 1) / kReach;
  const int64_t depth = rows.done - reach * kReach;
  uint32_t bad = 0;
  for (int64_t i = 0; i < rows.lines; ++i) {
    const float* x = row_at(args, rows.row + i, rows.p + reach * kReach, depth, copy);
    Range range = no_range();
    for (int64_t q = 0; q < depth; q += kLanes) {
      VI part[2];
      const V number = v_load_masked(x + q, v_first(at_most(depth - q, kLanes)));
      split<2, JoinNeighbours>(number, v_zero(), &range, part);
    }
    if (!is_exact(range)) bad |= UINT32_C(1) << i;
  }
  rows.item.bad->of[reach] = bad;
  rows.item.bad->any |= bad;
}

template <int kParts>
static __attribute__((noinline)) void end_stretch(const FolioGemmF32* args, Rows* rows) {
  if (rows->done % kReach == 0 || rows->done == rows->depth) {
    if (kParts > 1 && !is_exact(rows->range)) find_bad_rows(args, *rows);
    rows->range = no_range();
  }
  if (rows->units > 0) begin_stretch(args, rows);
}

static void begin_rows(const FolioGemmF32* args, int64_t row, int64_t p, int64_t depth, Item item,
                       Rows* rows) {
  const bool in_pieces = args->a_rows || args->a_lines;
  rows->lines = at_most(args->m - row, kWide);
  rows->units = rows->lines * steps_of(depth);
  rows->line = 0;
  rows->to = item.tiles;
  rows->row = row;
  rows->p = p;
  rows->depth = depth;
  rows->done = 0;
  rows->item = item;
  rows->range = no_range();
  rows->stands = !in_pieces && args->a_col_stride == 1;
  rows->by_pieces = in_pieces && args->a_run % kStep == 0;
  rows->piece = rows->by_pieces ? p / args->a_run : 0;
  rows->skipped = p - rows->piece * args->a_run;
  *item.bad = {};
  begin_stretch(args, rows);
}

template <int kParts>
VFN void make_step(V x0, V x1, Range* range, char* to) {
  if constexpr (kParts == 1) {
    _mm512_store_si512(to, round_words(x0, x1));
  } else {
    split_line<kParts, JoinNeighbours>(x0, x1, range, to);
  }
}

/* The same of rows at the end of a stretch that fills no step. */
template <int kParts>
static __attribute__((noinline)) void make_last_steps(const float* const* x, int64_t at,
                                                      int64_t count, int64_t left, Range* range,
                                                      char* to) {
  const VM first = v_first(at_most(left, kLanes));
  const VM second = v_first(left > kLanes ? at_most(left - kLanes, kLanes) : 0);
  for (int64_t i = 0; i < count; ++i) {
    const V x0 = v_load_masked(x[i] + at, first);
    const V x1 = left > kLanes ? v_load_masked(x[i] + at + kLanes, second) : v_zero();
    make_step<kParts>(x0, x1, range, to + i * FOLIO_TILE_BYTES);
  }
}

/* The next rows of a step; how many. */
template <int kParts>
static __attribute__((noinline)) int64_t make_steps(const FolioGemmF32* args, Rows* rows) {
  const int64_t line = rows->line;
  const int64_t count = at_most(rows->lines - line, kTurnSteps);
  const float* const* x = rows->x + line;
  const int64_t at = rows->at;
  char* to = rows->to + line / kTile * rows->item.half_bytes + line % kTile * FOLIO_TILE_BYTES;
  if (count == kTurnSteps && rows->left >= kStep) {
    Range range = rows->range;
#pragma GCC unroll 4
    for (int64_t i = 0; i < kTurnSteps; ++i) {
      make_step<kParts>(v_load(x[i] + at), v_load(x[i] + at + kLanes), &range,
                        to + i * FOLIO_TILE_BYTES);
    }
    rows->range = range;
  } else {
    make_last_steps<kParts>(x, at, count, rows->left, &rows->range, to);
  }
  rows->units -= count;
  rows->line += count;
  if (rows->line < rows->lines) return count;
  rows->line = 0;
  rows->to += kParts * kTileBytes;
  rows->at += kStep;
  rows->left -= kStep;
  if (rows->left <= 0) end_stretch<kParts>(args, rows);
  return count;
}

template <int kParts>
static void make_rest(const FolioGemmF32* args, Rows* rows) {
  while (rows->units > 0) make_steps<kParts>(args, rows);
}

static void begin_columns(const FolioGemmF32* args, int64_t column, int64_t p, int64_t depth,
                          Item item, Columns* columns) {
  columns->row = panel_row_bytes(args);
  columns->stands = args->b_is_bfloat16 != 0;
  const int64_t panel = panel_rows(args) * columns->row;
  columns->units = steps_of(depth) * kTile;
  columns->b = panel_row(args, column, p);
  columns->to = item.tiles;
  columns->line = 0;
  columns->left = depth;
  columns->panel = args->n - column > kTile ? panel : 0;
  columns->reach = 0;
  columns->item = item;
  *item.bad = {};
  columns->range[0] = columns->range[1] = no_range();
}

template <int kParts>
VFN void end_reach(Columns* columns) {
  if (kParts == 1) return;
  const uint32_t bad =
      (is_exact(columns->range[0]) ? 0U : 1U) | (is_exact(columns->range[1]) ? 0U : 2U);
  columns->item.bad->of[columns->reach++] = bad;
  columns->item.bad->any |= bad;
  columns->range[0] = columns->range[1] = no_range();
}

/* A line of a panel: two of its rows, or the last one and zeros. */
template <int kParts>
VFN void make_line(const char* b, bool is_whole, Range* range, char* to) {
  const V x0 = v_load((const float*)b);
  const V x1 = is_whole ? v_load((const float*)b + kTile) : v_zero();
  if constexpr (kParts == 1) {
    _mm512_store_si512(to, join_words(round_words(x0, x1)));
  } else {
    split_line<kParts, JoinRows>(x0, x1, range, to);
  }
}

/* A line that stands as tiles have it: fetched, or copied where it is one of a tile's first lines
 * and the depth has no more. */
VFN void take_line(const Columns* columns, const char* b, char* to) {
  if (columns->is_short) {
    _mm512_store_si512(to, vi_load(b));
  } else {
    _mm_prefetch(b, _MM_HINT_T0);
  }
}

/* The same of a panel that has so many rows from b on: behind them are zeros. */
template <int kParts>
VFN void make_last_line(const char* b, int64_t left, Range* range, char* to) {
  if (left > 0) {
    make_line<kParts>(b, left > 1, range, to);
    return;
  }
  for (int part = 0; part < kParts; ++part) {
    _mm512_store_si512(to + part * kTileBytes, _mm512_setzero_si512());
  }
}

/* Lines behind the depth, or at its end. */
template <int kParts>
static __attribute__((noinline)) void make_last_lines(Columns* columns, const char* b, Range* range,
                                                      char* to) {
  for (int64_t i = 0; i < kTurnLines; ++i) {
    make_last_line<kParts>(b + i * 2 * columns->row, columns->left - 2 * i, range,
                           to + i * FOLIO_TILE_BYTES);
  }
}

/* The next lines of a panel. */
template <int kParts>
VFN void make_panel_lines(Columns* columns, const char* b, Range* range, char* to) {
  if (__builtin_expect(columns->left < 2 * kTurnLines, 0)) {
    make_last_lines<kParts>(columns, b, range, to);
    return;
  }
  Range all = *range;
#pragma GCC unroll 2
  for (int64_t i = 0; i < kTurnLines; ++i) {
    make_line<kParts>(b + i * 2 * 4 * kTile, true, &all, to + i * FOLIO_TILE_BYTES);
  }
  *range = all;
}

/* The same of panels that stand as tiles have them. */
VFN void take_lines(Columns* columns, char* to) {
  if (columns->line % kTile == 0) columns->is_short = columns->left < kStep;
  for (int64_t i = 0; i < kTurnLines; ++i, to += FOLIO_TILE_BYTES) {
    const char* b = columns->b + i * 2 * columns->row;
    if (columns->left - 2 * i <= 0) {
      _mm512_store_si512(to, _mm512_setzero_si512());
      _mm512_store_si512(to + columns->item.half_bytes, _mm512_setzero_si512());
      continue;
    }
    take_line(columns, b, to);
    if (columns->panel) take_line(columns, b + columns->panel, to + columns->item.half_bytes);
  }
}

/* The next lines of a tile for each panel, which stand side by side there too; how many. Behind the
 * depth they are zeros. */
template <int kParts>
static __attribute__((noinline)) int64_t make_lines(Columns* columns) {
  char* const to = columns->to + place_of_pair<kParts>(columns->line % kTile) * FOLIO_TILE_BYTES;
  if (kParts == 1 && columns->stands) {
    take_lines(columns, to);
  } else {
    make_panel_lines<kParts>(columns, columns->b, &columns->range[0], to);
    if (columns->panel) {
      make_panel_lines<kParts>(columns, columns->b + columns->panel, &columns->range[1],
                               to + columns->item.half_bytes);
    }
  }
  columns->units -= kTurnLines;
  columns->b += kTurnLines * 2 * columns->row;
  columns->left -= kTurnLines * 2;
  columns->line += kTurnLines;
  if (columns->line % kTile != 0) return kTurnLines;
  columns->to += kParts * kTileBytes;
  if (columns->units == 0 || columns->line == kReach / 2) {
    columns->line = 0;
    end_reach<kParts>(columns);
  }
  return kTurnLines;
}

template <int kParts>
static void make_rest(Columns* columns) {
  while (columns->units > 0) make_lines<kParts>(columns);
}

/* Rows of two whole vectors each: as finish_row. */
template <bool kScales, bool kAdds>
VFN void finish_plain(const FolioGemmF32* args, const Pending& pending, int64_t rows) {
  const int64_t column = pending.column;
  const bool is_clip = args->activation == kFolioActClip;
  const bool is_bounded = args->activation != kFolioActNone;
  const V lo = v_set1(is_clip ? args->clip_lo : is_bounded ? 0.0f : -__builtin_inff());
  const V hi = v_set1(is_clip ? args->clip_hi : __builtin_inff());
  V scale[2], bias[2];
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    if (kScales) scale[v] = v_load(args->col_scale + column + v * kLanes);
    /* -0.0 added to anything gives that. */
    bias[v] = args->col_bias ? v_load(args->col_bias + column + v * kLanes) : v_set1(-0.0f);
  }
  const float* sums = pending.sums;
  float* c = args->c + pending.row * args->c_row_stride + column;
  const float* d = kAdds ? args->addend + pending.row * args->addend_row_stride + column : nullptr;
  for (int64_t i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      V sum = v_load(sums + v * kLanes);
      if (kScales) sum = v_mul(scale[v], sum);
      sum = v_add(sum, bias[v]);
      if (kAdds) sum = v_add(sum, v_load(d + v * kLanes));
      v_store(c + v * kLanes, v_clip(sum, lo, hi));
    }
    sums += kWide;
    c += args->c_row_stride;
    if (kAdds) d += args->addend_row_stride;
  }
}

VFN void finish_plain(const FolioGemmF32* args, const Pending& pending, int64_t rows) {
  if (args->col_scale) {
    if (args->addend) return finish_plain<true, true>(args, pending, rows);
    return finish_plain<true, false>(args, pending, rows);
  }
  if (args->addend) return finish_plain<false, true>(args, pending, rows);
  return finish_plain<false, false>(args, pending, rows);
}

VFN bool ends_plainly(const FolioGemmF32* args, int64_t columns) {
  return columns == kWide && args->alpha == 1.0f && !args->row_bias &&
         (args->activation == kFolioActNone || args->activation == kFolioActRelu ||
          args->activation == kFolioActClip);
}

/* A row of sums, as the end of the depth. */
VFN void finish_row(const FolioGemmF32* args, const Pending& pending, int64_t row,
                    const float* sums) {
  float* c = args->c + row * args->c_row_stride + pending.column;
  for (int64_t j = 0; j < pending.columns; j += kLanes) {
    const int64_t column = pending.column + j;
    const VM m = pending.columns - j < kLanes ? v_first(pending.columns - j) : (VM)~0;
    V scale = v_set1(args->alpha);
    if (args->col_scale) scale = v_mul(scale, v_load_masked(args->col_scale + column, m));
    V sum = v_mul(scale, v_load(sums + j));
    if (args->col_bias) sum = v_add(sum, v_load_masked(args->col_bias + column, m));
    if (args->row_bias) sum = v_add(sum, v_set1(args->row_bias[row]));
    if (args->addend) {
      const float* addend = args->addend + row * args->addend_row_stride + column;
      sum = v_add(sum, v_load_masked(addend, m));
    }
    sum = v_activate(sum, args->activation, args->clip_lo, args->clip_hi);
    v_store_masked(c + j, m, sum);
  }
}

/* The next rows; how many. */
static __attribute__((noinline)) int64_t finish_rows(const FolioGemmF32* args, Pending* pending) {
  const int64_t rows = at_most(pending->units, kTurnRows);
  if (pending->is_plain) {
    finish_plain(args, *pending, rows);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      finish_row(args, *pending, pending->row + i, pending->sums + i * kWide);
    }
  }
  pending->row += rows;
  pending->sums += rows * kWide;
  pending->units -= rows;
  return rows;
}

static void finish_rest(const FolioGemmF32* args, Pending* pending) {
  while (pending->units > 0) finish_rows(args, pending);
}

}  // namespace
