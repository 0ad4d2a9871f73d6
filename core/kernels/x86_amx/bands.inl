/* Products of a band: 33 to 64 rows, which stay as parts, and the panels of B come by. A step of a
 * panel is made into parts in the first cache, beside the products of the step before, meets all
 * rows there, and is forgotten: B is made once, and none of it goes to the second cache and back.
 * More rows would make it again for each band. See float.inl, which includes this.
 *
 * Tiles: sums of three row tiles are 0 to 2. With a fourth one, which is 3, two tiles hold rows in
 *        turn, 6 those of the fourth and 7 the panel; else rows have 3 to 5 and panels 6 and 7.
 * Bits:  float.inl's.
 * Time:  49 rows, B in the third cache, as items and as a band: 160 columns of a depth of 960 take
 *        96 and 86 us, 960 of 160 105 and 82, 512 of 2048 634 and 566. */

namespace {

constexpr int64_t kBandTiles = 4; /* of rows, at most */
constexpr int64_t kBandRows = kBandTiles * kTile;
constexpr int64_t kBandAhead = 4096; /* bytes of B that are fetched before they are read */

VFN int64_t band_tiles(const FolioGemmF32* args) { return divide_up(args->m, kTile); }

struct Band {
  const FolioGemmF32* args;
  int64_t p, depth, steps; /* of the block */
  char* parts;             /* of rows: [tile][step][part] */
  int64_t tile_bytes;      /* of all steps */
  char* ring;              /* of columns: two steps */
  int64_t made;            /* steps of columns so far: where the next one is in the ring */
  float* sums;             /* [kBandRows][kWide] */
  Rows makers[2];
  Bad bad[2]; /* of rows */
  Pending pending;
  bool is_busy; /* there is work beside products */
};

/* A step of columns: rows of a panel, and how many there are; or null. */
struct BandLines {
  const char* b;
  int64_t left;
};

/* What a group of a step has: parts of A and of B, and how many groups before it had that of A. */
struct InUse {
  int a, b, turn;
};
template <int kParts>
constexpr InUse in_use(int group) {
  InUse use = {};
  for (int i = 0; i <= group; ++i) {
    const Group& at = Groups<kParts>::kAll[i];
    use.turn = at.a >= 0 ? 0 : use.turn + 1;
    if (at.a >= 0) use.a = at.a;
    if (at.b >= 0) use.b = at.b;
  }
  return use;
}

/* One of the rows' tiles of a group: in the order in which they are multiplied. */
template <int kParts, int kTiles, int kGroup, int kAt>
VFN void multiply_band_tile(const char* a, int64_t tile_bytes) {
  constexpr InUse use = in_use<kParts>(kGroup);
  a += use.a * kTileBytes;
  if constexpr (kTiles == 3) {
    if constexpr (use.turn == 0) tile_load<3 + kAt, true>(a + kAt * tile_bytes, FOLIO_TILE_BYTES);
    tile_dot_bf16<kAt, 3 + kAt, use.b == 0 ? 6 : 7>();
  } else {
    /* The last two of a turn are there in the next one. */
    constexpr int kRow = (use.turn + kAt) % 3;
    constexpr int kHeld = 4 + (use.turn + kAt) % 2;
    if constexpr (use.turn == 0 || kAt == 2) {
      tile_load<kHeld, use.a == 2>(a + kRow * tile_bytes, FOLIO_TILE_BYTES);
    }
    tile_dot_bf16<kRow, kHeld, 7>();
  }
}

template <int kParts, int kTiles, int kGroup>
VFN void multiply_band_group(const char* a, int64_t tile_bytes, const char* b) {
  constexpr InUse use = in_use<kParts>(kGroup);
  constexpr bool is_new = Groups<kParts>::kAll[kGroup].b >= 0;
  if constexpr (kTiles == 4 && is_new) {
    tile_load<7>(b + use.b * kTileBytes, FOLIO_TILE_BYTES);
  } else if constexpr (kTiles == 3 && is_new && (use.b > 0 || kGroup == 0)) {
    tile_load<use.b == 0 ? 6 : 7>(b + use.b * kTileBytes, FOLIO_TILE_BYTES);
  }
  multiply_band_tile<kParts, kTiles, kGroup, 0>(a, tile_bytes);
  multiply_band_tile<kParts, kTiles, kGroup, 1>(a, tile_bytes);
  multiply_band_tile<kParts, kTiles, kGroup, 2>(a, tile_bytes);
  if constexpr (kTiles == 4) {
    if constexpr (use.turn == 0) {
      tile_load<6>(a + 3 * tile_bytes + use.a * kTileBytes, FOLIO_TILE_BYTES);
    }
    tile_dot_bf16<3, 6, 7>();
  }
}

/* Steps of rows that are left to be made behind `steps`. */
VFN bool lacks_rows(const Band& band, const Rows& rows, int64_t steps) {
  return rows.units > rows.lines * (band.steps - steps);
}

/* Rows of so many steps; at most so many turns. */
template <int kParts>
static void make_band_rows(Band* band, int64_t steps, int64_t turns) {
  if (steps > band->steps) steps = band->steps;
  for (Rows& rows : band->makers) {
    for (; turns > 0 && lacks_rows(*band, rows, steps); --turns) {
      make_steps<kParts>(band->args, &rows);
    }
  }
}

/* What stands beside a group's products in step s. */
template <int kParts>
static __attribute__((noinline)) void do_beside(Band* band, int64_t s) {
  if (band->pending.units > 0) {
    finish_rows(band->args, &band->pending);
  } else {
    constexpr int64_t kTurns = kBandRows / kTurnSteps;
    make_band_rows<kParts>(band, s + 2, divide_up(kTurns, kGroupsOf<kParts>));
  }
  band->is_busy = band->pending.units + band->makers[0].units + band->makers[1].units > 0;
}

/* Lines [kFrom, kTo) of a step. */
template <int kParts, int kFrom, int kTo>
VFN void make_band_lines(const char* b, Range* range, char* to) {
#pragma GCC unroll 16
  for (int i = kFrom; i < kTo; ++i) {
    const char* const line = b + i * 2 * 4 * kTile;
    _mm_prefetch(line + kBandAhead, _MM_HINT_T0);
    _mm_prefetch(line + kBandAhead + 4 * kTile, _MM_HINT_T0);
    make_line<kParts>(line, true, range, to + kPlaceOfPair[i] * FOLIO_TILE_BYTES);
  }
}

/* All lines of a step that may have fewer rows. */
template <int kParts>
static __attribute__((noinline)) void make_all_lines(const BandLines& step, Range* range,
                                                     char* to) {
  for (int i = 0; i < kTile; ++i) {
    make_last_line<kParts>(step.b + i * 2 * 4 * kTile, step.left - 2 * i, range,
                           to + kPlaceOfPair[i] * FOLIO_TILE_BYTES);
  }
}

template <int kParts>
VFN char* ring_at(const Band& band, int64_t made) {
  return band.ring + made % 2 * kParts * kTileBytes;
}

/* A step of a panel, and the lines of the next one beside it. */
template <int kParts, int kTiles, bool kMakes, int kGroup = 0>
VFN void multiply_band_step(Band* band, int64_t s, const char* a, const char* b, const char* next,
                            Range* range, char* to) {
  if constexpr (kGroup < kGroupsOf<kParts>) {
    if (__builtin_expect(band->is_busy, 0)) do_beside<kParts>(band, s);
    if constexpr (kMakes) {
      make_band_lines<kParts, kTile * kGroup / kGroupsOf<kParts>,
                      kTile*(kGroup + 1) / kGroupsOf<kParts>>(next, range, to);
    }
    multiply_band_group<kParts, kTiles, kGroup>(a, band->tile_bytes, b);
    multiply_band_step<kParts, kTiles, kMakes, kGroup + 1>(band, s, a, b, next, range, to);
  }
}

/* Steps [first, end) of a panel, whose lines of `first` have been made. */
struct BandWalk {
  int64_t first, end;
  const char* b;  /* the panel's rows of the block */
  BandLines next; /* behind the end */
  Range range;    /* of what was made */
  Bad* bad;       /* of the panel */
};

VFN void end_band_reach(Range* range, int64_t reach, Bad* bad) {
  if (!is_exact(*range)) {
    bad->of[reach] = 1;
    bad->any = 1;
  }
  *range = no_range();
}

template <int kParts, int kTiles>
static void multiply_panel(Band* band, BandWalk* walk, float* sums, bool are_there) {
  constexpr int64_t kStride = kWide * (int64_t)sizeof(float);
  const int64_t tile_floats = kTile * kWide;
  if (are_there) {
    tile_load<0>(sums, kStride);
    tile_load<1>(sums + tile_floats, kStride);
    tile_load<2>(sums + 2 * tile_floats, kStride);
    if constexpr (kTiles == 4) tile_load<3>(sums + 3 * tile_floats, kStride);
  } else {
    zero_sums(); /* of three tiles, the fourth is loaded before it is used */
  }
  for (int64_t s = walk->first; s < walk->end; ++s) {
    const char* const a = band->parts + s * kParts * kTileBytes;
    const char* const b = ring_at<kParts>(*band, band->made);
    char* const to = ring_at<kParts>(*band, ++band->made);
    const bool is_last = s + 1 == walk->end;
    const BandLines next =
        is_last ? walk->next
                : BandLines{walk->b + (s + 1) * kStep * 4 * kTile, band->depth - (s + 1) * kStep};
    if ((s + 1) % (kReach / kStep) == 0 || is_last) {
      end_band_reach(&walk->range, s / (kReach / kStep), walk->bad);
    }
    if (next.b && next.left >= kStep) {
      multiply_band_step<kParts, kTiles, true>(band, s, a, b, next.b, &walk->range, to);
    } else {
      if (next.b) make_all_lines<kParts>(next, &walk->range, to);
      multiply_band_step<kParts, kTiles, false>(band, s, a, b, nullptr, nullptr, nullptr);
    }
    make_band_rows<kParts>(band, s + 2, kNoMore);
  }
  finish_rest(band->args, &band->pending);
  tile_store<0>(sums, kStride);
  tile_store<1>(sums + tile_floats, kStride);
  tile_store<2>(sums + 2 * tile_floats, kStride);
  if constexpr (kTiles == 4) tile_store<3>(sums + 3 * tile_floats, kStride);
}

template <int kParts>
static void multiply_panel(Band* band, BandWalk* walk, float* sums, bool are_there) {
  if (band_tiles(band->args) == kBandTiles) {
    multiply_panel<kParts, 4>(band, walk, sums, are_there);
  } else {
    multiply_panel<kParts, 3>(band, walk, sums, are_there);
  }
}

/* The first step of what comes, with nothing beside it. */
template <int kParts>
static void make_first_step(const Band& band, const BandLines& first, Range* range) {
  make_all_lines<kParts>(first, range, ring_at<kParts>(band, band.made));
}

VFN BandLines band_lines(const Band& band, int64_t column, int64_t step) {
  if (column >= band.args->n) return {nullptr, 0};
  const int64_t done = step * kStep;
  return {panel_row(band.args, column, band.p + done), at_most(band.depth - done, kStep)};
}

/* A panel with numbers that parts cannot hold, or with rows that have some: reach by reach. */
template <int kParts>
static __attribute__((noinline)) void redo_band(Band* band, int64_t column, float* sums,
                                                bool are_there) {
  const FolioGemmF32* args = band->args;
  float before[kBandRows * kWide];
  const int64_t columns = at_most(args->n - column, kTile);
  if (are_there) {
    copy_sums(args->c + column, args->c_row_stride, args->m, columns, sums, kWide);
  }
  Bad bad = {};
  for (int64_t done = 0, reach = 0; done < band->depth; done += kReach, ++reach) {
    const int64_t depth = at_most(band->depth - done, kReach);
    if (are_there) {
      copy_sums(sums, kWide, args->m, kTile, before, kWide);
    } else {
      __builtin_memset(before, 0, sizeof before);
    }
    BandWalk walk = {};
    walk.first = done / kStep;
    walk.end = walk.first + steps_of(depth);
    walk.b = panel_row(args, column, band->p);
    walk.range = no_range();
    walk.bad = &bad;
    make_first_step<kParts>(*band, band_lines(*band, column, walk.first), &walk.range);
    multiply_panel<kParts>(band, &walk, sums, are_there);
    are_there = true;
    for (int64_t half = 0; half < 2; ++half) {
      const Bad& rows = band->bad[half];
      if (!rows.of[reach] && !bad.of[reach]) continue;
      Meeting here = {};
      here.row = half * kWide;
      here.rows = at_most(args->m - half * kWide, kWide);
      here.column = column;
      here.columns = columns;
      here.bad_rows = &rows;
      here.bad_columns = &bad;
      const int64_t at = half * kWide * kWide;
      redo_sums(args, here, reach, band->p + done, depth, before + at, sums + at);
    }
  }
}

/* Of the last rows' tiles fewer, maybe. */
static void shape_band(const FolioGemmF32* args) {
  TileShapes shapes = whole_tiles();
  const int64_t last = band_tiles(args) - 1;
  const int held = last == 3 ? 6 : 5;
  shapes.rows[last] = shapes.rows[held] = (uint8_t)(args->m - last * kTile);
  tiles_configure(&shapes);
}

/* A band over a block of the depth. */
template <int kParts>
static void run_block(Band* band) {
  const FolioGemmF32* args = band->args;
  const bool are_there = band->p > 0 || args->accumulate;
  const bool is_last = band->p + band->depth == args->k;
  for (int64_t half = 0; half < 2; ++half) {
    const Item item = {band->parts + half * 2 * band->tile_bytes, band->tile_bytes,
                       &band->bad[half]};
    begin_rows(args, half * kWide, band->p, band->depth, item, &band->makers[half]);
  }
  make_band_rows<kParts>(band, 1, kNoMore);
  band->is_busy = true;
  BandWalk walk = {};
  Bad bad[2] = {};
  walk.range = no_range();
  walk.end = band->steps;
  make_first_step<kParts>(*band, band_lines(*band, 0, 0), &walk.range);
  for (int64_t column = 0; column < args->n; column += kTile) {
    float* const sums = band->sums + column % kWide;
    const int64_t columns = at_most(args->n - column, kTile);
    if (are_there) {
      finish_rest(args, &band->pending);
      copy_sums(args->c + column, args->c_row_stride, args->m, columns, sums, kWide);
    }
    const int64_t which = column / kTile % 2;
    bad[which] = {};
    walk.b = panel_row(args, column, band->p);
    walk.next = band_lines(*band, column + kTile, 0);
    walk.bad = &bad[which];
    multiply_panel<kParts>(band, &walk, sums, are_there);
    if (bad[which].any || band->bad[0].any || band->bad[1].any) {
      redo_band<kParts>(band, column, sums, are_there);
      walk.range = no_range();
      if (walk.next.b) make_first_step<kParts>(*band, walk.next, &walk.range);
    }
    if (column + kTile < args->n && which == 0) continue;
    const int64_t first = column - column % kWide;
    const int64_t width = column + columns - first;
    if (is_last) {
      band->pending = {args->m, band->sums, 0, first, width, ends_plainly(args, width)};
      band->is_busy = true;
    } else {
      copy_sums(band->sums, kWide, args->m, width, args->c + first, args->c_row_stride);
    }
  }
}

static bool is_band(const FolioGemmF32* args) {
  const int64_t tiles = band_tiles(args);
  return tiles == 3 || tiles == kBandTiles;
}

template <int kParts>
static void multiply_band(const FolioGemmF32* args, char* memory, int64_t bytes) {
  constexpr int64_t kCopy = kWide * kStep + kLanes;
  constexpr int64_t kReachBytes = kBandTiles * kParts * kTileBytes * (kReach / kStep);
  constexpr int64_t kOthers =
      2 * kParts * kTileBytes + (kBandRows * kWide + 2 * kCopy) * (int64_t)sizeof(float);
  static_assert(kOthers % FOLIO_TILE_BYTES == 0 && kOthers + kReachBytes <= kStackBytes, "a block");
  Band band;
  band.args = args;
  band.pending = {};
  band.made = 0;
  band.ring = memory;
  band.sums = (float*)(memory + 2 * kParts * kTileBytes);
  for (int64_t i = 0; i < 2; ++i) {
    band.makers[i].copy = band.sums + kBandRows * kWide + i * kCopy;
  }
  band.parts = memory + kOthers;
  const int64_t reaches = divide_up(args->k, kReach);
  const int64_t blocks = divide_up(reaches, at_most((bytes - kOthers) / kReachBytes, kMostReaches));
  const int64_t depth = divide_up(reaches, blocks) * kReach;
  shape_band(args);
  for (band.p = 0; band.p < args->k; band.p += band.depth) {
    band.depth = at_most(args->k - band.p, depth);
    band.steps = steps_of(band.depth);
    band.tile_bytes = band.steps * kParts * kTileBytes;
    run_block<kParts>(&band);
  }
  finish_rest(args, &band.pending);
  tiles_release();
}

}  // namespace
