/* Operands of a product in tiles of bfloat16: floats as sums of parts, made a line at a time, and
 * what becomes of sums. See float.inl, which includes this; the words for tiles come before. */

#include "core/kernels/x86_amx/split.inl"

namespace {

constexpr int64_t kStep = 2 * kTile; /* of the depth */
constexpr int64_t kReach = FOLIO_GEMM_ONE_SUM;
constexpr int64_t kMostReaches = 4;  /* of a block */
constexpr int64_t kWide = 2 * kTile; /* rows, or columns, of an item: two tiles */
constexpr int64_t kFetchRows = 64;   /* ahead in a panel of B, which comes from memory */
/* What is made at a time: steps of a row, lines of both panels, rows of sums. Fewer keep account
 * too often (512^3 878 us, 906 with one line); more at once leave products waiting (944 with four
 * steps of a row, 883 to 900 with four to eight lines). */
constexpr int64_t kTurnSteps = 2;
constexpr int64_t kTurnLines = 2;
constexpr int64_t kTurnRows = 2;
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

/* Rows of A that are made, in steps of one. */
struct Rows {
  int64_t units; /* left */
  const float* x;
  char* to;
  int64_t left, rest;     /* of the reach's depth: from x on, and behind that */
  int64_t row, line;      /* the first; of the item */
  int64_t p, depth, done; /* of the row's depth */
  Item item;
  float* copy; /* [kReach + kLanes] */
  Range range;
  /* Rows of pieces that end where steps do are read where they stand. */
  bool by_pieces;
  int64_t piece, skipped;             /* where x + left is */
  int64_t first_piece, first_skipped; /* where p is */
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

/* Of the reach, what stands side by side. */
VFN void begin_stretch(const FolioGemmF32* args, Rows* rows) {
  const int64_t row = rows->row + rows->line;
  if (rows->by_pieces) {
    rows->x = (args->a_rows ? args->a_rows[rows->piece * args->m + row]
                            : args->a_lines[rows->piece] + row * args->a_row_stride) +
              rows->skipped;
    rows->left = at_most(args->a_run - rows->skipped, rows->rest);
    rows->skipped += rows->left;
    if (rows->skipped == args->a_run) {
      rows->skipped = 0;
      ++rows->piece;
    }
  } else {
    rows->x = row_at(args, row, rows->p + rows->done, rows->rest, rows->copy);
    rows->left = rows->rest;
  }
  rows->rest -= rows->left;
}

/* Of a row, from `done` on. */
VFN void begin_reach(const FolioGemmF32* args, Rows* rows) {
  rows->rest = at_most(rows->depth - rows->done, kReach);
  rows->range = no_range();
  begin_stretch(args, rows);
}

VFN void begin_row(const FolioGemmF32* args, Rows* rows) {
  rows->to = rows->item.tiles + rows->line / kTile * rows->item.half_bytes +
             rows->line % kTile * FOLIO_TILE_BYTES;
  rows->done = 0;
  rows->piece = rows->first_piece;
  rows->skipped = rows->first_skipped;
  begin_reach(args, rows);
}

template <int kParts>
static void end_stretch(const FolioGemmF32* args, Rows* rows) {
  if (rows->rest > 0) return begin_stretch(args, rows);
  if (kParts > 1 && !is_exact(rows->range)) {
    rows->item.bad->of[rows->done / kReach] |= UINT32_C(1) << rows->line;
    rows->item.bad->any = 1;
  }
  if (rows->units == 0) return;
  rows->done += kReach;
  if (rows->done < rows->depth) {
    begin_reach(args, rows);
  } else {
    ++rows->line;
    begin_row(args, rows);
  }
}

static void begin_rows(const FolioGemmF32* args, int64_t row, int64_t p, int64_t depth, Item item,
                       Rows* rows) {
  rows->units = at_most(args->m - row, kWide) * steps_of(depth);
  rows->row = row;
  rows->line = 0;
  rows->p = p;
  rows->depth = depth;
  rows->item = item;
  rows->by_pieces = (args->a_rows || args->a_lines) && args->a_run % kStep == 0;
  rows->first_piece = rows->by_pieces ? p / args->a_run : 0;
  rows->first_skipped = p - rows->first_piece * args->a_run;
  *item.bad = {};
  begin_row(args, rows);
}

template <int kParts>
VFN void make_step(V x0, V x1, Range* range, char* to) {
  if constexpr (kParts == 1) {
    _mm512_store_si512(to, round_words(x0, x1));
  } else {
    split_line<kParts, JoinNeighbours>(x0, x1, range, to);
  }
}

/* The next steps of a row; how many. */
template <int kParts>
static __attribute__((noinline)) int64_t make_steps(const FolioGemmF32* args, Rows* rows) {
  const int64_t left = rows->left;
  const float* x = rows->x;
  char* to = rows->to;
  Range range = rows->range;
  int64_t steps = at_most(left / kStep, kTurnSteps);
  if (steps == kTurnSteps) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < kTurnSteps; ++i) {
      make_step<kParts>(v_load(x + i * kStep), v_load(x + i * kStep + kLanes), &range,
                        to + i * kParts * kTileBytes);
    }
  } else if (steps > 0) {
    steps = 1;
    make_step<kParts>(v_load(x), v_load(x + kLanes), &range, to);
  } else {
    steps = 1;
    const V x0 = v_load_masked(x, v_first(at_most(left, kLanes)));
    const V x1 = left > kLanes ? v_load_masked(x + kLanes, v_first(left - kLanes)) : v_zero();
    make_step<kParts>(x0, x1, &range, to);
  }
  rows->units -= steps;
  rows->x = x + steps * kStep;
  rows->to = to + steps * kParts * kTileBytes;
  rows->left = left - steps * kStep;
  rows->range = range;
  if (rows->left <= 0) end_stretch<kParts>(args, rows);
  return steps;
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
  _mm_prefetch(b + kFetchRows * 4 * kTile, _MM_HINT_T0);
  _mm_prefetch(b + (kFetchRows + 1) * 4 * kTile, _MM_HINT_T0);
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

/* Lines behind the depth, or at its end. */
template <int kParts>
static __attribute__((noinline)) void make_last_lines(Columns* columns, const char* b, Range* range,
                                                      char* to) {
  for (int64_t i = 0; i < kTurnLines; ++i, to += FOLIO_TILE_BYTES) {
    const int64_t left = columns->left - 2 * i;
    if (left > 0) {
      make_line<kParts>(b + i * 2 * columns->row, left > 1, range, to);
      continue;
    }
    for (int part = 0; part < kParts; ++part) {
      _mm512_store_si512(to + part * kTileBytes, _mm512_setzero_si512());
    }
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

/* A row of two whole vectors: as finish_row. */
VFN void finish_plain(const FolioGemmF32* args, const Pending& pending, float* c) {
  const int64_t column = pending.column;
  const float* addend =
      args->addend ? args->addend + pending.row * args->addend_row_stride + column : nullptr;
  const bool is_clip = args->activation == kFolioActClip;
  const V lo = v_set1(is_clip ? args->clip_lo : 0.0f);
  const V hi = v_set1(is_clip ? args->clip_hi : __builtin_inff());
#pragma GCC unroll 2
  for (int64_t j = 0; j < kWide; j += kLanes) {
    V sum = v_load(pending.sums + j);
    if (args->col_scale) sum = v_mul(v_load(args->col_scale + column + j), sum);
    if (args->col_bias) sum = v_add(sum, v_load(args->col_bias + column + j));
    if (addend) sum = v_add(sum, v_load(addend + j));
    if (args->activation != kFolioActNone) sum = v_clip(sum, lo, hi);
    v_store(c + j, sum);
  }
}

VFN bool ends_plainly(const FolioGemmF32* args, int64_t columns) {
  return columns == kWide && args->alpha == 1.0f && !args->row_bias &&
         (args->activation == kFolioActNone || args->activation == kFolioActRelu ||
          args->activation == kFolioActClip);
}

/* The next row of sums, as the end of the depth. */
VFN void finish_row(const FolioGemmF32* args, Pending* pending) {
  float* c = args->c + pending->row * args->c_row_stride + pending->column;
  if (pending->is_plain) {
    finish_plain(args, *pending, c);
    ++pending->row;
    pending->sums += kWide;
    --pending->units;
    return;
  }
  for (int64_t j = 0; j < pending->columns; j += kLanes) {
    const int64_t column = pending->column + j;
    const VM m = pending->columns - j < kLanes ? v_first(pending->columns - j) : (VM)~0;
    V scale = v_set1(args->alpha);
    if (args->col_scale) scale = v_mul(scale, v_load_masked(args->col_scale + column, m));
    V sum = v_mul(scale, v_load(pending->sums + j));
    if (args->col_bias) sum = v_add(sum, v_load_masked(args->col_bias + column, m));
    if (args->row_bias) sum = v_add(sum, v_set1(args->row_bias[pending->row]));
    if (args->addend) {
      const float* addend = args->addend + pending->row * args->addend_row_stride + column;
      sum = v_add(sum, v_load_masked(addend, m));
    }
    sum = v_activate(sum, args->activation, args->clip_lo, args->clip_hi);
    v_store_masked(c + j, m, sum);
  }
  ++pending->row;
  pending->sums += kWide;
  --pending->units;
}

/* The next rows; how many. */
static __attribute__((noinline)) int64_t finish_rows(const FolioGemmF32* args, Pending* pending) {
  const int64_t rows = at_most(pending->units, kTurnRows);
  for (int64_t i = 0; i < rows; ++i) finish_row(args, pending);
  return rows;
}

static void finish_rest(const FolioGemmF32* args, Pending* pending) {
  while (pending->units > 0) finish_rows(args, pending);
}

}  // namespace
