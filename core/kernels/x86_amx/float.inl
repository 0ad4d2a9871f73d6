/* Matrix product of floats in tiles of bfloat16: a number is the sum of three parts of 8 bits, h, m
 * and l, h the nearest bfloat16 and l what m leaves, so that nothing is lost. The including file
 * gives the words for tiles before.
 *
 *   highest  lh, mh, mm, hm, hl, hh: what is left out is 2^-22 of |A| |B| at most, of either sign,
 *            and C is rounded 6 times for 32 products, not 32 times
 *   high     mh, hh, hm of two parts;   medium  hh
 *
 * Bits:  an element of C is one chain over steps of 32 of the depth, in this order of parts,
 *        whatever rows and columns are computed with it; between blocks of the depth it rests in C.
 * Range: parts are exact from 2^-102 on, sums of products are finite below 2^56 (Inf, NaN and what
 *        lies outside would spoil a tile). A row of A, or a panel of B, with another number in
 *        kReach of the depth is computed again there, one product after the other. Below 2^-134 a
 *        number is zero. Tiles take sums below 2^-126 for zeros. One part holds Inf and NaN too; a
 *        finite number that would be rounded to Inf becomes the largest bfloat16.
 * Walk:  an item is 32 rows of A, or 32 columns of B, over a block of the depth. Some items of one
 *        operand stay in the second cache, those of the other come by, each multiplied with all
 *        that stay, back and forth. Making the parts of what comes next, and finishing the sums of
 *        the products before, is work for the vector units. It stands beside the products, turn by
 *        turn before groups of four (do_some).
 * Cache: what goes between the first and the second cache decides, loads of tiles first: a tile
 *        takes 14 ns from there, 12 of them a step as long as the step's products, and a line that
 *        is made another 5. So short items that stay are loaded past the first cache, which has
 *        room for the one that comes by and the sums then (1000 x 64 x 64 43 -> 36 us).
 * Time:  of a group 26 ns at the 2.5 to 2.8 GHz to which tiles of random numbers bring a Xeon down
 *        (tiles of zeros: 19). Parts that are there already leave 88 % of that (512^3); making them
 *        costs 4 ns a line of 32 numbers in arithmetic. Sums that go to C and come back take 250 ns
 *        of two items' 1250 in a depth of 256. So blocks are deep. */

#include "core/kernels/x86_amx/x86_amx.h"
#include "core/kernels/x86_avx512/vec.h"
#include "core/kernels/x86_avx512/x86_avx512.h"

#include "core/kernels/vector/math.inl"

#include "core/kernels/vector/gemm_rows.inl"

#include "core/kernels/x86_amx/parts.inl"

namespace {

constexpr int64_t kMostItems = 26;
constexpr int64_t kSmallItem = 32 * 1024;   /* bytes: stays in the first cache */
constexpr int64_t kStackBytes = 288 * 1024; /* for items, where the caller gives no memory */
constexpr int64_t kChains = 8;              /* sums that are added to side by side */

/* ---- the walk */

/* Where an item's tiles are: the first, and how far on the other half's. */
struct Tiles {
  const char* first;
  int64_t half_bytes;
};

/* What is being multiplied: items that stay, from `first` on, and one of those that come by. */
struct Place {
  int64_t p, depth;
  int64_t first, stay; /* row or column, items */
  int64_t area;        /* where the first that stays is */
  int64_t coming;      /* row or column */
};

/* How the product is cut. Bits do not depend on it. */
struct Cut {
  bool rows_stay;
  bool rows_pass, columns_pass; /* past the first cache, where the other item has room then */
  int64_t depth;                /* of a block */
  int64_t stay;                 /* items */
  int64_t item_bytes;
  double time;
};

template <int kParts>
struct Product {
  const FolioGemmF32* args;
  Cut cut;
  Pending pending;
  Rows rows;
  Columns columns;
  char* tiles; /* of items that stay, then of two that come by */
  Bad bad[kMostItems];
  int current; /* of those that come by */
  alignas(64) float sums[kWide * kWide];
  float copy[kWide * kStep + kLanes];

  int64_t staying_count() const { return cut.rows_stay ? args->m : args->n; }
  int64_t coming_count() const { return cut.rows_stay ? args->n : args->m; }
};

/* With so many reaches in a block and as many items that stay as there is memory for. The time is
 * in some ns for each step of two items: their products take 156. */
template <int kParts>
static Cut cut_of(const FolioGemmF32* args, bool rows_stay, int64_t reaches, int64_t bytes) {
  Cut cut = {};
  cut.rows_stay = rows_stay;
  cut.depth = at_most(args->k, reaches * kReach);
  cut.item_bytes = 2 * steps_of(cut.depth) * kParts * kTileBytes;
  cut.rows_pass = rows_stay && cut.item_bytes <= kSmallItem;
  cut.columns_pass = !rows_stay && cut.item_bytes <= kSmallItem;
  const int64_t room = at_most(bytes / cut.item_bytes, kMostItems) - 2;
  const int64_t items = items_of(rows_stay ? args->m : args->n);
  if (room < 1) return cut;
  const int64_t blocks = divide_up(items, room);
  cut.stay = divide_up(items, blocks);
  const int64_t passes = items_of(rows_stay ? args->n : args->m);
  constexpr double kMade = 24 + 36 * kParts; /* the parts of 32 x 32 numbers */
  constexpr double kFetched = 12;            /* of columns that stand as tiles */
  constexpr double kRests = 250;             /* the way of sums to C and back */
  const double columns = kParts == 1 && args->b_is_bfloat16 ? kFetched : kMade;
  cut.time = (rows_stay ? columns : kMade) / (double)cut.stay +
             (rows_stay ? kMade : columns) / (double)passes + kRests / (double)steps_of(cut.depth);
  return cut;
}

template <int kParts>
static Cut best_cut(const FolioGemmF32* args, int64_t bytes) {
  /* Where both ways take as long, the fewer stay. Rows, if they are: B, which comes from afar, is
   * made little by little then (196 x 256 x 2304 951 -> 928 us, of two parts 650 -> 615). What
   * stands as tiles stays. */
  const bool rows_first = args->m <= args->n && (kParts > 1 || !args->b_is_bfloat16);
  Cut best = {};
  for (int64_t reaches = 1; reaches <= kMostReaches; ++reaches) {
    for (int way = 0; way < 2; ++way) {
      const Cut cut = cut_of<kParts>(args, (way == 0) == rows_first, reaches, bytes);
      if (cut.stay > 0 && (best.stay == 0 || cut.time < best.time)) best = cut;
    }
    if (reaches * kReach >= args->k) break;
  }
  return best;
}

template <int kParts>
static void begin_block(const Product<kParts>& product, Place* at) {
  at->depth = at_most(product.args->k - at->p, product.cut.depth);
  at->stay = at_most(items_of(product.staying_count() - at->first), product.cut.stay);
}

/* To the next item that comes by; false where there is none. */
template <int kParts>
static bool go_on(const Product<kParts>& product, Place* at) {
  at->coming += kWide;
  if (at->coming < product.coming_count()) return true;
  at->coming = 0;
  at->area = (at->area + at->stay) % product.cut.stay;
  at->p += at->depth;
  if (at->p == product.args->k) {
    at->p = 0;
    at->first += at->stay * kWide;
    if (at->first >= product.staying_count()) return false;
  }
  begin_block(product, at);
  return true;
}

template <int kParts>
VFN Item item_at(Product<kParts>* product, int64_t index) {
  return {product->tiles + index * product->cut.item_bytes, product->cut.item_bytes / 2,
          &product->bad[index]};
}
template <int kParts>
VFN Item staying_item(Product<kParts>* product, const Place& at, int64_t item) {
  return item_at(product, (at.area + item) % product->cut.stay);
}
template <int kParts>
VFN Item coming_item(Product<kParts>* product, int which) {
  return item_at(product, product->cut.stay + which);
}

VFN Tiles tiles_of(const Item& item) { return {item.tiles, item.half_bytes}; }

/* Of columns: in their item, or where they stand in B. */
template <int kParts>
VFN Tiles columns_at(const Product<kParts>& product, const Place& at, int64_t column,
                     const Item& item) {
  const FolioGemmF32* args = product.args;
  if (kParts > 1 || !args->b_is_bfloat16) return tiles_of(item);
  const int64_t panel = column + kTile < args->n ? panel_rows(args) * panel_row_bytes(args) : 0;
  return {panel_row(args, column, at.p), panel};
}

template <int kParts>
static void begin_item(Product<kParts>* product, bool is_rows, int64_t first, const Place& at,
                       const Item& item) {
  if (is_rows) {
    begin_rows(product->args, first, at.p, at.depth, item, &product->rows);
  } else {
    begin_columns(product->args, first, at.p, at.depth, item, &product->columns);
  }
}

template <int kParts>
static void begin_staying(Product<kParts>* product, const Place& at, int64_t item) {
  begin_item(product, product->cut.rows_stay, at.first + item * kWide, at,
             staying_item(product, at, item));
}

template <int kParts>
static void begin_coming(Product<kParts>* product, const Place& at, int which) {
  begin_item(product, !product->cut.rows_stay, at.coming, at, coming_item(product, which));
}

template <int kParts>
static void make_rest(Product<kParts>* product, bool is_rows) {
  if (is_rows) {
    make_rest<kParts>(product->args, &product->rows);
  } else {
    make_rest<kParts>(&product->columns);
  }
}

/* ---- products */

/* Rows of C, `columns` of each, to or from sums. */
static void copy_sums(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                      float* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      const VM m = v_first(columns - j < kLanes ? columns - j : kLanes);
      v_store_masked(to + i * to_stride + j, m, v_load_masked(from + i * from_stride + j, m));
    }
  }
}

static TileShapes whole_tiles() {
  TileShapes shapes = {};
  shapes.palette = 1;
  for (int i = 0; i < FOLIO_TILE_COUNT; ++i) {
    shapes.rows[i] = kTile;
    shapes.row_bytes[i] = FOLIO_TILE_BYTES;
  }
  return shapes;
}

/* Tiles: C[h][v] is 2 h + v, A[h] 4 + h, B[v] 6 + v. All are whole: what rows behind the last one
 * give is not read, products of fewer rows take as long, and another shape takes 94 ns. */
static void shape_tiles() {
  const TileShapes shapes = whole_tiles();
  tiles_configure(&shapes);
}

template <int kHalves, int kPanels>
VFN void load_sums(const float* c, int64_t stride) {
  const int64_t bytes = stride * (int64_t)sizeof(float);
  tile_load<0>(c, bytes);
  if constexpr (kPanels == 2) tile_load<1>(c + kTile, bytes);
  if constexpr (kHalves == 2) tile_load<2>(c + kTile * stride, bytes);
  if constexpr (kHalves == 2 && kPanels == 2) tile_load<3>(c + kTile * stride + kTile, bytes);
}

template <int kHalves, int kPanels>
VFN void store_sums(float* c, int64_t stride) {
  const int64_t bytes = stride * (int64_t)sizeof(float);
  tile_store<0>(c, bytes);
  if constexpr (kPanels == 2) tile_store<1>(c + kTile, bytes);
  if constexpr (kHalves == 2) tile_store<2>(c + kTile * stride, bytes);
  if constexpr (kHalves == 2 && kPanels == 2) tile_store<3>(c + kTile * stride + kTile, bytes);
}

VFN void zero_sums() {
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
}

template <int kHalves, bool kPassing = false>
VFN void load_a(const char* a, int64_t half_bytes, int64_t stride = FOLIO_TILE_BYTES) {
  tile_load<4, kPassing>(a, stride);
  if constexpr (kHalves == 2) tile_load<5, kPassing>(a + half_bytes, stride);
}

template <int kPanels, bool kPassing = false>
VFN void load_b(const char* b, int64_t half_bytes) {
  tile_load<6, kPassing>(b, FOLIO_TILE_BYTES);
  if constexpr (kPanels == 2) tile_load<7, kPassing>(b + half_bytes, FOLIO_TILE_BYTES);
}

/* The same as the cut has it. */
template <int kHalves>
VFN void load_a_of(const Cut& cut, const char* a, int64_t half_bytes) {
  if (cut.rows_pass) return load_a<kHalves, true>(a, half_bytes);
  load_a<kHalves>(a, half_bytes);
}
template <int kPanels>
VFN void load_b_of(const Cut& cut, const char* b, int64_t half_bytes) {
  if (cut.columns_pass) return load_b<kPanels, true>(b, half_bytes);
  load_b<kPanels>(b, half_bytes);
}

template <int kHalves, int kPanels>
VFN void multiply_group() {
  tile_dot_bf16<0, 4, 6>();
  if constexpr (kPanels == 2) tile_dot_bf16<1, 4, 7>();
  if constexpr (kHalves == 2) tile_dot_bf16<2, 5, 6>();
  if constexpr (kHalves == 2 && kPanels == 2) tile_dot_bf16<3, 5, 7>();
}

/* Which parts a group of a step loads of A and of B, or -1: what is there stays. */
struct Group {
  int a, b;
};
template <int kParts>
struct Groups;
template <>
struct Groups<3> { /* lh, mh, mm, hm, hl, hh: each loads a part of one operand */
  static constexpr Group kAll[] = {{2, 0}, {1, -1}, {-1, 1}, {0, -1}, {-1, 2}, {-1, 0}};
};
template <>
struct Groups<2> { /* mh, hh, hm */
  static constexpr Group kAll[] = {{1, 0}, {0, -1}, {-1, 1}};
};
template <>
struct Groups<1> {
  static constexpr Group kAll[] = {{0, 0}};
};

template <int kParts>
constexpr int64_t kGroupsOf = sizeof(Groups<kParts>::kAll) / sizeof(Group);

/* Work beside each group of a step, and what is due: steps, lines and rows, times kShare. */
constexpr int64_t kShare = 64;
constexpr int64_t kNoMore = INT64_C(1) << 40; /* as if so much had been done: none is left */

/* Some of what stands beside products; how much. What is needed first comes first. */
template <int kParts>
static __attribute__((noinline)) int64_t do_next(Product<kParts>* product) {
  const FolioGemmF32* args = product->args;
  if (product->pending.units > 0) return finish_rows(args, &product->pending);
  const bool rows_stay = product->cut.rows_stay;
  if (rows_stay && product->rows.units > 0) return make_steps<kParts>(args, &product->rows);
  if (product->columns.units > 0) return make_lines<kParts>(&product->columns);
  if (product->rows.units > 0) return make_steps<kParts>(args, &product->rows);
  return kNoMore;
}

/* What stands beside a group. */
template <int kParts>
VFN void do_some(Product<kParts>* product, int64_t pace, int64_t* due) {
  *due += pace;
  while (*due > 0) *due -= kShare * do_next(product);
}

/* Where an item of rows meets one of columns. */
struct Meeting {
  int64_t row, rows;
  int64_t column, columns;
  Tiles a, b;
  const char* b_last; /* of b's last step, where it does not follow the others; or null */
  const Bad *bad_rows, *bad_columns;
  int64_t pace;
};

template <int kParts, int kHalves, int kPanels, int kGroup = 0>
VFN void multiply_step(Product<kParts>* product, int64_t pace, int64_t* due, const char* a,
                       int64_t a_half, const char* b, int64_t b_half) {
  if constexpr (kGroup < kGroupsOf<kParts>) {
    constexpr Group group = Groups<kParts>::kAll[kGroup];
    const Cut& cut = product->cut;
    if constexpr (group.a >= 0) load_a_of<kHalves>(cut, a + group.a * kTileBytes, a_half);
    if constexpr (group.b >= 0) load_b_of<kPanels>(cut, b + group.b * kTileBytes, b_half);
    do_some(product, pace, due);
    multiply_group<kHalves, kPanels>();
    multiply_step<kParts, kHalves, kPanels, kGroup + 1>(product, pace, due, a, a_half, b, b_half);
  }
}

/* Sums of two items: where they are before, null for zeros, and after; floats between rows. */
struct Sums {
  const float* before;
  int64_t before_stride;
  float* after;
  int64_t after_stride;
};

/* The products of two items over so many steps from `step` on. */
template <int kParts, int kHalves, int kPanels>
static void multiply_items(Product<kParts>* product, const Meeting& here, int64_t step,
                           int64_t steps, const Sums& sums) {
  const char* a = here.a.first + step * (kParts * kTileBytes);
  const char* b = here.b.first + step * (kParts * kTileBytes);
  int64_t b_half = here.b.half_bytes;
  const int64_t pace = here.pace;
  int64_t due = 0;
  if (sums.before) {
    load_sums<kHalves, kPanels>(sums.before, sums.before_stride);
  } else {
    zero_sums();
  }
  for (int64_t s = 0; s < steps; ++s) {
    if (kParts == 1 && here.b_last && s + 1 == steps) {
      b = here.b_last;
      b_half = here.a.half_bytes;
    }
    multiply_step<kParts, kHalves, kPanels>(product, pace, &due, a, here.a.half_bytes, b, b_half);
    a += kParts * kTileBytes;
    b += kParts * kTileBytes;
  }
  finish_rest(product->args, &product->pending);
  store_sums<kHalves, kPanels>(sums.after, sums.after_stride);
}

template <int kParts>
static void multiply(Product<kParts>* product, const Meeting& here, int64_t step, int64_t steps,
                     const Sums& sums) {
  if (here.rows > kTile) {
    if (here.columns > kTile) {
      multiply_items<kParts, 2, 2>(product, here, step, steps, sums);
    } else {
      multiply_items<kParts, 2, 1>(product, here, step, steps, sums);
    }
  } else if (here.columns > kTile) {
    multiply_items<kParts, 1, 2>(product, here, step, steps, sums);
  } else {
    multiply_items<kParts, 1, 1>(product, here, step, steps, sums);
  }
}

/* ---- what parts cannot hold */

/* sums[i][0..16) += the products of `count` rows of A and a panel of B over the block's depth, one
 * after the other. */
template <int kCount>
static void add_chains(const float* const* x, int64_t depth, const float* b, float* const* sums) {
  V sum[kCount];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) sum[i] = v_load(sums[i]);
  for (int64_t q = 0; q < depth; ++q) {
    const V row = v_load(b + q * FOLIO_F32P16_COLUMNS);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) sum[i] = v_fma(v_set1(x[i][q]), row, sum[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) v_store(sums[i], sum[i]);
}

/* Sums of rows and panels with numbers that parts cannot hold, over a reach from p on, again from
 * what they were before. */
static __attribute__((noinline)) void redo_sums(const FolioGemmF32* args, const Meeting& here,
                                                int64_t reach, int64_t p, int64_t depth,
                                                const float* before, float* after) {
  float copies[kChains][kReach + kLanes];
  const float* x[kChains];
  float* sums[kChains];
  const uint32_t bad_rows = here.bad_rows->of[reach];
  for (int64_t v = 0; v * kTile < here.columns; ++v) {
    const bool all = here.bad_columns->of[reach] >> v & 1;
    const auto* b = (const float*)panel_row(args, here.column + v * kTile, p);
    int64_t count = 0;
    for (int64_t i = 0; i < here.rows; ++i) {
      if (!all && !(bad_rows >> i & 1)) continue;
      const int64_t at = i * kWide + v * kTile;
      x[count] = row_at(args, here.row + i, p, depth, copies[count]);
      sums[count] = after + at;
      v_store(sums[count], v_load(before + at));
      if (++count < kChains) continue;
      add_chains<kChains>(x, depth, b, sums);
      count = 0;
    }
    for (int64_t i = 0; i < count; ++i) add_chains<1>(x + i, depth, b, sums + i);
  }
}

/* The meeting reach by reach, where there are such numbers: sums, [kWide][kWide], from `c` (null:
 * zeros) on. */
template <int kParts>
static __attribute__((noinline)) void multiply_by_reaches(Product<kParts>* product,
                                                          const Meeting& here, const Place& at,
                                                          const float* c, float* sums) {
  const FolioGemmF32* args = product->args;
  alignas(64) float before[kWide * kWide] = {};
  if (c) copy_sums(c, args->c_row_stride, here.rows, here.columns, before, kWide);
  for (int64_t done = 0, reach = 0; done < at.depth; done += kReach, ++reach) {
    const int64_t depth = at_most(at.depth - done, kReach);
    multiply(product, here, done / kStep, steps_of(depth), {before, kWide, sums, kWide});
    if (here.bad_rows->of[reach] || here.bad_columns->of[reach]) {
      redo_sums(args, here, reach, at.p + done, depth, before, sums);
    }
    copy_sums(sums, kWide, here.rows, kWide, before, kWide);
  }
}

/* ---- the loops */

template <int kParts>
static void run_meeting(Product<kParts>* product, const Place& at, int64_t item, int64_t pace) {
  const FolioGemmF32* args = product->args;
  const bool rows_stay = product->cut.rows_stay;
  const Item stay = staying_item(product, at, item);
  const Item come = coming_item(product, product->current);
  const int64_t staying = at.first + item * kWide;
  Meeting here;
  here.row = rows_stay ? staying : at.coming;
  here.rows = at_most(args->m - here.row, kWide);
  here.column = rows_stay ? at.coming : staying;
  here.columns = at_most(args->n - here.column, kWide);
  const Item& rows = rows_stay ? stay : come;
  const Item& columns = rows_stay ? come : stay;
  here.bad_rows = rows.bad;
  here.bad_columns = columns.bad;
  here.a = tiles_of(rows);
  here.b = columns_at(*product, at, here.column, columns);
  here.b_last = here.b.first != columns.tiles && at.depth % kStep != 0
                    ? columns.tiles + at.depth / kStep * kTileBytes
                    : nullptr;
  here.pace = pace;
  const bool is_last = at.p + at.depth == args->k;
  const bool is_whole = here.rows % kTile == 0 && here.columns % kTile == 0;
  float* const c = args->c + here.row * args->c_row_stride + here.column;
  const float* const before = at.p > 0 || args->accumulate ? c : nullptr;
  float* const sums = product->sums;
  const bool is_bad = here.bad_rows->any || here.bad_columns->any;
  const bool rests = is_whole && !is_last && !is_bad; /* sums go to C as they are */
  if (is_bad) {
    multiply_by_reaches(product, here, at, before, sums);
  } else {
    Sums way = {before, args->c_row_stride, rests ? c : sums, rests ? args->c_row_stride : kWide};
    if (before && !is_whole) {
      finish_rest(args, &product->pending);
      copy_sums(c, args->c_row_stride, here.rows, here.columns, sums, kWide);
      way.before = sums;
      way.before_stride = kWide;
    }
    multiply(product, here, 0, steps_of(at.depth), way);
  }
  if (is_last) {
    product->pending = {here.rows,   sums,         here.row,
                        here.column, here.columns, ends_plainly(args, here.columns)};
  } else if (!rests) {
    copy_sums(sums, kWide, here.rows, here.columns, c, args->c_row_stride);
  }
}

/* An item that comes by, `next` what comes after it, with all that stay. */
template <int kParts>
static void run_coming(Product<kParts>* product, const Place& at, const Place* next) {
  const bool rows_stay = product->cut.rows_stay;
  const int64_t steps = steps_of(at.depth);
  const bool is_backward = at.coming / kWide % 2 == 1 && next && next->coming > 0;
  if (next) begin_coming(product, *next, 1 - product->current);
  for (int64_t item = 0; item < at.stay; ++item) {
    bool makes = false; /* the next one that stays */
    if (item + 1 < at.stay) {
      makes = at.coming == 0;
      if (makes) begin_staying(product, at, item + 1);
    } else if (next && next->coming == 0 && at.stay > 1) {
      makes = true;
      begin_staying(product, *next, 0);
    }
    const int64_t coming = rows_stay ? product->columns.units : product->rows.units;
    const int64_t staying = rows_stay ? product->rows.units : product->columns.units;
    const int64_t units = product->pending.units + staying + divide_up(coming, at.stay - item);
    const int64_t pace = divide_up(units * kShare, steps * kGroupsOf<kParts>);
    run_meeting(product, at, is_backward ? at.stay - 1 - item : item, pace);
    if (makes) make_rest(product, rows_stay);
  }
  if (next) make_rest(product, !rows_stay);
  product->current = 1 - product->current;
  if (next && next->coming == 0 && at.stay == 1) { /* where the one that stayed was */
    begin_staying(product, *next, 0);
    make_rest(product, rows_stay);
  }
}

template <int kParts>
static void multiply_parts(const FolioGemmF32* args, char* memory, int64_t bytes) {
  Product<kParts> product;
  static_assert(sizeof product <= 16 * 1024, "on the stack; kernels.h promises 320 KiB in all");
  product.args = args;
  product.cut = best_cut<kParts>(args, bytes);
  product.pending = {};
  product.current = 0;
  product.tiles = memory;
  product.rows.copy = product.copy;
  shape_tiles();
  Place at = {};
  begin_block(product, &at);
  begin_staying(&product, at, 0);
  make_rest(&product, product.cut.rows_stay);
  begin_coming(&product, at, product.current);
  make_rest(&product, !product.cut.rows_stay);
  for (bool more = true; more;) {
    Place next = at;
    more = go_on(product, &next);
    run_coming(&product, at, more ? &next : nullptr);
    at = next;
  }
  finish_rest(args, &product.pending);
  tiles_release();
}

}  // namespace

#include "core/kernels/x86_amx/lines.inl"

#include "core/kernels/x86_amx/bands.inl"

namespace {

template <int kParts>
static void multiply_in(const FolioGemmF32* args, char* memory, int64_t bytes) {
  if (is_by_lines(args)) {
    multiply_by_lines<kParts>(args, memory, bytes);
    return;
  }
  if constexpr (kParts > 1) {
    if (is_band(args)) return multiply_band<kParts>(args, memory, bytes);
  }
  multiply_parts<kParts>(args, memory, bytes);
}

template <int kParts>
static __attribute__((noinline)) void multiply_on_stack(const FolioGemmF32* args) {
  alignas(64) char memory[kStackBytes];
  multiply_in<kParts>(args, memory, kStackBytes);
}

template <int kParts>
static void multiply_parts(const FolioGemmF32* args) {
  if (args->scratch) {
    multiply_in<kParts>(args, (char*)args->scratch, FOLIO_GEMM_SCRATCH);
  } else {
    multiply_on_stack<kParts>(args);
  }
}

}  // namespace

static void FOLIO_TILE_LEVEL(gemm_f32)(const FolioGemmF32* args) {
  if (args->m == 0 || args->n == 0) return;
  if (args->k == 0 || args->precision == kFolioChain) {
    gemm_f32__x86_avx512(args);
  } else if (args->precision == kFolioHighest) {
    multiply_parts<3>(args);
  } else if (args->precision == kFolioHigh) {
    multiply_parts<2>(args);
  } else {
    multiply_parts<1>(args);
  }
}

void FOLIO_TILE_LEVEL(folio_fill_float)(FolioKernels* table) {
  table->gemm_f32 = FOLIO_TILE_LEVEL(gemm_f32);
  table->multiplies_parts |= 1 << kFolioHighest | 1 << kFolioHigh | 1 << kFolioMedium;
}
