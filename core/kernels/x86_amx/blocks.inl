/* Weights of small integers in blocks times many rows, in tiles. The including file gives the words
 * for tiles before.
 *
 * A product of tiles makes D of one block for 16 columns and 16 rows, columns first: weights are
 * its left operand, where the codes of a column stand together as they do in memory, rows of A its
 * right one. Then, for 16 rows at a time,
 *
 *   sum[column] = fma(D[column], scale[column] * a_scale, sum[column])
 *
 *   block_dots_s8   rows are bytes with scales, D a whole number: the chains of block_weights.h,
 *                   with the same bits as at every level
 *   block_dots_f32  rows are floats, without a_scale. Each is three bfloat16 numbers, which lose
 *                   nothing (split.inl): D is as many products, one after the other into the same
 *                   sums, the smallest numbers first. Weights are the codes less their zeros, which
 *                   bfloat16 holds, so that nothing else is rounded but sums. A row with a number
 *                   that parts cannot hold is computed again by the level below.
 *   the same of one part (kFolioMedium)
 *                   rows are rounded to bfloat16, and so are the weights themselves, codes times
 *                   scales, all blocks of 32 columns at a time: sums stay in tiles from the first
 *                   block to the last. To unpack a block of a column takes an addition of a table
 *                   of 16 weights to what its codes take.
 *
 * A batch of rows is put in the order of tiles; then 32 columns after the other are unpacked, four
 * blocks of a chain at a time into L1, for products with all of these rows.
 *
 * What it costs (Xeon with AMX at 3.3 GHz, 2026-11, a block of 32 for 16 x 16): an operation of
 * floats takes a cycle while tiles are in use instead of half a one, as if one of two ports were
 * gone (shuffles and additions of integers do not suffer). Bytes want 48, 16 of them to convert D,
 * and 18 ns were the least that was seen; with their codes as bfloat16, which gives D as floats, 32
 * and 12 ns. That is why blocks of up to 32 codes of 4 bits are not multiplied as bytes; longer
 * ones are, and codes of 8 bits, which take long to unpack as bfloat16, unless zeros make them
 * differences of 9 bits. 16 cycles of a product, and 16 of a store of a tile, can be done
 * meanwhile.
 *
 * There it was 14 to 15.5 ns when nothing else was done, with rows from L2, and 19 among the rest,
 * with 1.8 to 3 for unpacking with 128 rows. What more would stand in L1 at the same time is paid
 * twice: unpacking the next columns between the products of these, into a second buffer, took 23.6
 * ns instead of 20.3 one after the other, and eight blocks instead of four in a flight 27 instead
 * of 15. So did fetching rows into L1 ahead (19 instead of 15.7), and two loads of tiles for each
 * product, for chains that stay in registers over eight blocks (31). Therefore rows are loaded past
 * L1 (kPassing): three parts take 46 to 58 ns instead of 53 to 66 where they are 3072 deep.
 *
 * Three parts want 16 operations, and two products more, and take 54 to 62 ns at 2.3 GHz (58 to 70
 * where each unit loaded its rows' parts, not every second): 29 where rows are in L1 and nothing is
 * unpacked, 15 more for rows from L2, 15 for unpacking with 64 rows. Unpacking all four chains of a
 * line of memory at once is no faster, beside the products 8 % slower. One part wants no operation
 * and takes 22 to 25, 4.4 of them unpacking with 128 rows. (Widening weights to floats, splitting
 * those and multiplying six times took 77 ns at 3.3 GHz.) Chunks of the depth whose unpacked
 * weights L1 keeps, with sums that come and go, take one part 5 to 8 % longer.
 *
 * A store of a tile waits for its product, 52 cycles, and what is behind it with it; so a tile is
 * stored when its turn comes again, four products later (7.0 ns a product with its loads and
 * stores, without sums, instead of 11.1), and read a flight later. */

#include "core/kernels/x86_amx/x86_amx.h"
#include "core/kernels/x86_avx512/vec.h"
#include "core/kernels/x86_avx512/x86_avx512.h"
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

constexpr int64_t kTilePanels = 1;
#include "core/kernels/vector/block_panels.inl"

#include "core/kernels/x86_amx/split.inl"
#include "core/kernels/x86_avx512vnni/turn_columns.inl"

#include "core/kernels/x86_amx/block_operands.inl"

namespace {

/* Fewer rows fill less than half of what is multiplied at a time: the level below is faster (16
 * rows x 4096 x 4096, blocks of 32: 281 GOP/s, here 263). */
constexpr int64_t kFewRows = 16;

/* ---- products and sums */

/* Tiles: D of unit j is j. Columns 4 and 5, rows 6 and 7; of three parts, columns 4 and rows the
 * others. */
TileShapes shapes_of(const Cut& cut, int parts) {
  TileShapes shapes = {};
  shapes.palette = 1;
  for (int i = 0; i < FOLIO_TILE_COUNT; ++i) {
    const bool is_columns = i == 4 || (i == 5 && parts < 3);
    const bool is_rows = i > 4 && !is_columns;
    shapes.rows[i] = (uint8_t)(is_rows ? cut.row / 4 : kTile);
    shapes.row_bytes[i] = (uint16_t)(is_columns ? cut.row : FOLIO_TILE_BYTES);
  }
  return shapes;
}

/* What a flight multiplies. */
struct Next {
  const uint8_t* columns; /* codes of Places */
  const uint8_t* rows[kSide];
  int64_t bytes, row_bytes; /* of a block of a tile */
};

/* What the flight before it is multiplied by and added to. */
struct Sums {
  const float* scales;            /* [block][kPanel] */
  const float* row_scales[kSide]; /* [block][kTile], of rounded rows */
  float* chains;                  /* [unit][kTile][kTile] */
};

/* Which side a unit has of columns, and of rows: units with the same rows, whose parts are loaded
 * once, or with the same columns come one after the other. */
template <typename W>
constexpr int side_of_columns(int unit) {
  return W::kParts > 0 ? unit % kSide : unit / kSide;
}
template <typename W>
constexpr int side_of_rows(int unit) {
  return W::kParts > 0 ? unit / kSide : unit % kSide;
}

/* Three parts of rows, the smallest first. */
VFN void load_parts(const uint8_t* rows) {
  tile_load<7, true>(rows + 2 * kTileBytes, FOLIO_TILE_BYTES);
  tile_load<6, true>(rows + kTileBytes, FOLIO_TILE_BYTES);
  tile_load<5, true>(rows, FOLIO_TILE_BYTES);
}
template <int kC>
VFN void multiply_parts() {
  tile_dot_bf16<kC, 4, 7>();
  tile_dot_bf16<kC, 4, 6>();
  tile_dot_bf16<kC, 4, 5>();
}

/* Unit kJ of block kF where a block is one piece. Tiles are loaded a unit ahead: 15.2 instead of
 * 15.7 ns a product. */
template <typename W, int kF, int kJ>
VFN void multiply_piece(const Next& next, const uint8_t* columns, const uint8_t* rows) {
  constexpr int kBytes = W::kBytes;
  constexpr int kRow = kBytes / kTile;
  if (kF == 0 && kJ == 0) {
    tile_load<4>(columns, kRow);
    tile_load<6, true>(rows, FOLIO_TILE_BYTES);
  }
  tile_dot_ss<kJ, 4 + kJ / 2, 6 + kJ % 2>();
  if (kJ == 0) tile_load<7, true>(next.rows[1] + kF * W::kRowBytes, FOLIO_TILE_BYTES);
  if (kJ == 1) tile_load<5>(columns + kBytes, kRow);
  if constexpr (kF + 1 < kFlight && kJ == 3) {
    tile_load<4>(columns + kBytes, kRow);
    tile_load<6, true>(next.rows[0] + (kF + 1) * W::kRowBytes, FOLIO_TILE_BYTES);
  }
}

/* Likewise where it is two pieces or more, which are whole tiles. */
template <int kJ>
VFN void multiply_pieces(const uint8_t* columns, const uint8_t* rows, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 2 * kTileBytes) {
    tile_load<4>(columns + at, FOLIO_TILE_BYTES);
    tile_load<6, true>(rows + at, FOLIO_TILE_BYTES);
    tile_dot_ss<kJ, 4, 6>();
    tile_load<5>(columns + at + kTileBytes, FOLIO_TILE_BYTES);
    tile_load<7, true>(rows + at + kTileBytes, FOLIO_TILE_BYTES);
    tile_dot_ss<kJ, 5, 7>();
  }
}

/* Units kJ and kJ + 1, of the same rows, where a block is two pieces or more. */
template <int kJ>
VFN void multiply_pieces_in_parts(const uint8_t* columns, const uint8_t* rows, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kTileBytes, rows += 3 * kTileBytes) {
    load_parts(rows);
    tile_load<4>(columns + at, FOLIO_TILE_BYTES);
    multiply_parts<kJ>();
    tile_load<4>(columns + bytes + at, FOLIO_TILE_BYTES);
    multiply_parts<kJ + 1>();
  }
}

/* Stores what tile kJ holds, unit kJ of a block before. */
template <int kJ>
VFN void store_unit(uint8_t* before) {
  tile_store<kJ>(before, FOLIO_TILE_BYTES);
  tile_zero<kJ>();
}

/* Stores what tile kJ holds, `before` with `step` to the next one's, and makes unit kJ of block
 * kF. */
template <typename W, int kF, int kJ>
VFN void next_unit(const Next& next, uint8_t* before, int64_t step) {
  const int64_t bytes = W::kBytes ? W::kBytes : next.bytes;
  const int64_t row_bytes = W::kBytes ? W::kRowBytes : next.row_bytes;
  const uint8_t* columns = next.columns + (kF * kSide + side_of_columns<W>(kJ)) * bytes;
  const uint8_t* rows = next.rows[side_of_rows<W>(kJ)] + kF * row_bytes;
  if constexpr (W::kParts > 0 && W::kBytes == 0) {
    if constexpr (kJ % kSide == 0) {
      store_unit<kJ>(before);
      store_unit<kJ + 1>(before + step);
      multiply_pieces_in_parts<kJ>(columns, rows, bytes);
    }
    return;
  }
  store_unit<kJ>(before);
  if constexpr (W::kParts > 0) {
    if (kJ % kSide == 0) load_parts(rows);
    tile_load<4>(columns, W::kBytes / kTile);
    multiply_parts<kJ>();
  } else if constexpr (W::kBytes != 0) {
    multiply_piece<W, kF, kJ>(next, columns, rows);
  } else {
    multiply_pieces<kJ>(columns, rows, bytes);
  }
}

/* chain[column] continued by a block. */
template <typename W>
VFN void add_block(const uint8_t* sums, const float* scales, const float* row_scales,
                   V (&chain)[kTile]) {
  constexpr bool kScaled = W::kParts == 0;
  const V row_scale = kScaled ? v_load(row_scales) : v_zero();
#pragma GCC unroll 16
  for (int i = 0; i < kTile; ++i) {
    const uint8_t* sum = sums + i * FOLIO_TILE_BYTES;
    const V d = kScaled ? v_from_int(vi_load(sum)) : v_load((const float*)sum);
    const V scale = v_set1(scales[i]);
    chain[i] = v_fma(d, kScaled ? v_mul(row_scale, scale) : scale, chain[i]);
  }
}

/* Block kQ of a flight, and unit kQ of the one before it. kOfBlock, kOfUnit: how far what is read
 * stands apart; what is written stands the other way. All offsets are constants: a few instructions
 * more for addresses cost 2 of 17 ns a product. */
template <typename W, int64_t kOfBlock, int64_t kOfUnit, int kQ>
VFN void fly_quarter(const Next& next, const Sums& sums, uint8_t* d) {
  const float* scales = sums.scales + side_of_columns<W>(kQ) * kTile;
  constexpr int64_t kRowStep = W::kParts > 0 ? 0 : kTile;
  const float* row_scales = sums.row_scales[side_of_rows<W>(kQ)];
  float* chains = sums.chains + kQ * kTile * kTile;
  const uint8_t* from = d + kQ * kOfUnit;
  /* In the first quarter the tiles still hold the last blocks of the flight before. */
  constexpr int64_t kTo = kQ == 0 ? (kFlight - 1) * kOfBlock : (kQ - 1) * kOfUnit;
  constexpr int64_t kStep = kQ == 0 ? kOfUnit : kOfBlock;
  V chain[kTile];
#pragma GCC unroll 16
  for (int i = 0; i < kTile; ++i) chain[i] = v_load(chains + i * kTile);
  add_block<W>(from, scales, row_scales, chain);
  next_unit<W, kQ, 0>(next, d + kTo, kStep);
  add_block<W>(from + kOfBlock, scales + kPanel, row_scales + kRowStep, chain);
  next_unit<W, kQ, 1>(next, d + kTo + kStep, kStep);
  add_block<W>(from + 2 * kOfBlock, scales + 2 * kPanel, row_scales + 2 * kRowStep, chain);
  next_unit<W, kQ, 2>(next, d + kTo + 2 * kStep, kStep);
  add_block<W>(from + 3 * kOfBlock, scales + 3 * kPanel, row_scales + 3 * kRowStep, chain);
  next_unit<W, kQ, 3>(next, d + kTo + 3 * kStep, kStep);
#pragma GCC unroll 16
  for (int i = 0; i < kTile; ++i) v_store(chains + i * kTile, chain[i]);
}

/* The products of a flight while the sums of the one before are added to their chains. */
template <typename W, int64_t kOfBlock, int64_t kOfUnit>
__attribute__((noinline)) void fly(const Next& given_next, const Sums& given_sums, uint8_t* d) {
  const Next next = given_next;
  const Sums sums = given_sums;
  fly_quarter<W, kOfBlock, kOfUnit, 0>(next, sums, d);
  fly_quarter<W, kOfBlock, kOfUnit, 1>(next, sums, d);
  fly_quarter<W, kOfBlock, kOfUnit, 2>(next, sums, d);
  fly_quarter<W, kOfBlock, kOfUnit, 3>(next, sums, d);
}

/* What products of both kinds have in common. */
struct Product {
  template <typename Args>
  explicit Product(const Args* args)
      : w(args->w), bias(args->bias), y(args->y), y_row_stride(args->y_row_stride) {}

  const FolioBlockWeights& w;
  const float* bias;
  float* y;
  int64_t y_row_stride;
};

/* Rows of A that are multiplied with all columns before the next ones are arranged. */
struct Batch {
  int64_t first;
  int64_t count;
  int64_t groups() const { return (count + kGroup - 1) / kGroup; }
};

/* sums = the four chains of kUnits units, `chain_floats` apart, which are as they begin then. */
void add_chains(float* chains, int64_t chain_floats, float* sums) {
  for (int64_t i = 0; i < kUnits * kTile; ++i, chains += kTile) {
    const V even = v_add(v_load(chains), v_load(chains + 2 * chain_floats));
    const V odd = v_add(v_load(chains + chain_floats), v_load(chains + 3 * chain_floats));
    v_store(sums + i * kTile, v_add(even, odd));
    for (int64_t chain = 0; chain < kChains; ++chain) {
      v_store(chains + chain * chain_floats, v_zero());
    }
  }
}

/* y of a unit: rows and columns that are there. */
void finish_unit(const Product& product, const float* sums, int64_t row, int64_t rows, int64_t n,
                 int64_t columns) {
  VI turned[kLanes];
  turn_columns(sums, FOLIO_TILE_BYTES, kTile, 0, kTile, turned);
  const VM m = v_first(columns < kTile ? columns : kTile);
  const V bias = product.bias ? v_load_masked(product.bias + n, m) : v_zero();
  for (int64_t i = 0; i < kTile && i < rows; ++i) {
    V y = v_from_bits(turned[i]);
    if (product.bias) y = v_add(y, bias);
    v_store_masked(product.y + (row + i) * product.y_row_stride + n, m, y);
  }
}

/* Sums of all units of a group before the first of them is read again: a load waits for a store
 * that it overlaps. */
template <typename W>
void finish_panel(const Product& product, const Batch& batch, const Side& panel, float* chains) {
  alignas(64) float sums[kUnits * kTile * kTile];
  const int64_t chain_floats = batch.groups() * kGroup * kPanel;
  for (int64_t g = 0; g < batch.groups(); ++g) {
    add_chains(chains + g * kGroup * kPanel, chain_floats, sums);
    for (int j = 0; j < kUnits; ++j) {
      const int64_t row = g * kGroup + side_of_rows<W>(j) * kTile;
      const int64_t column = side_of_columns<W>(j) * kTile;
      if (row >= batch.count || column >= panel.count) continue;
      finish_unit(product, sums + j * kTile * kTile, batch.first + row, batch.count - row,
                  panel.first + column, panel.count - column);
    }
  }
}

/* Flights one after the other, each with the sums of the one before it. */
template <typename W>
struct Flights {
  void fly_next(const Next& next, const Sums& then) {
    if (odd) {
      fly<W, kFar, kNear>(next, sums, d);
    } else {
      fly<W, kNear, kFar>(next, sums, d);
    }
    odd = !odd;
    sums = then;
  }

  Sums sums;
  uint8_t* d; /* kSumsBytes */
  bool odd;
};

/* Where rows and scales of group g are, from block `place` on. */
template <typename W>
VFN void find_group(const Shape& s, const Cut& cut, const Places& places, const Batch& batch,
                    int64_t g, int64_t place, Next* next, Sums* sums) {
  for (int64_t side = 0; side < kSide; ++side) {
    const int64_t tile = g * kSide + side;
    const int64_t last = (batch.count - 1) / kTile;
    const int64_t of = tile < last ? tile : last;
    next->rows[side] = places.row_codes(of) + place * cut.row_bytes;
    sums->row_scales[side] =
        W::kParts > 0 ? places.scales : places.row_scales(s, cut, of) + place * kTile;
  }
}

/* All columns with a batch of rows. */
template <int kBits, typename W>
void multiply_batch(const Product& product, const Shape& s, const Cut& cut, const Places& places,
                    const Batch& batch) {
  alignas(64) uint8_t d[kSumsBytes] = {};
  const int64_t groups = batch.groups();
  const int64_t of_chain = s.padded / kChains;
  const FolioBlockWeights& w = product.w;
  __builtin_memset(places.chains, 0, sizeof(float) * (size_t)(kChains * groups * kGroup * kPanel));
  Side panel = {&w, 0, 0};
  Next next = {places.codes, {}, cut.bytes, cut.row_bytes};
  /* The first flight adds D = 0 with scales of 0. */
  const float* zeros = places.chains + (kChains - 1) * groups * kGroup * kPanel;
  Flights<W> flights = {{zeros, {zeros, zeros}, places.chains}, d, false};
  for (int64_t n = 0; n < w.n; n += kPanel) {
    const Side before = panel;
    const int64_t left = w.n - n;
    panel = {&w, n, left < kPanel ? left : kPanel};
    float* scales = places.scales + n / kPanel % 2 * kPanel * s.padded;
    arrange_scales(s, panel, scales);
    for (int64_t chain = 0; chain < kChains; ++chain) {
      for (int64_t at = 0; at < of_chain; at += kFlight) {
        const int64_t place = chain * of_chain + at;
        if (w.zeros) {
          unpack_flight<kBits, W, true>(s, cut, panel, chain, at, places.codes);
        } else {
          unpack_flight<kBits, W, false>(s, cut, panel, chain, at, places.codes);
        }
        for (int64_t g = 0; g < groups; ++g) {
          Sums sums = {scales + place * kPanel, {}, nullptr};
          sums.chains = places.chains + (chain * groups + g) * kGroup * kPanel;
          find_group<W>(s, cut, places, batch, g, place, &next, &sums);
          flights.fly_next(next, sums);
          if (place == 0 && g == 0 && n > 0) finish_panel<W>(product, batch, before, places.chains);
        }
      }
    }
  }
  flights.fly_next(next, flights.sums);
  finish_panel<W>(product, batch, panel, places.chains);
}

/* Rows of a batch of rounded ones: L2 holds them beside all else. */
int64_t rows_of_batch(const Shape& s, const Cut& cut) {
  constexpr int64_t kBatchBytes = 5 << 18;
  const int64_t groups = kBatchBytes / (s.padded * cut.bytes * kSide);
  const int64_t rows = groups < 1 ? kGroup : groups * kGroup;
  return rows < FOLIO_BLOCK_ROWS ? rows : FOLIO_BLOCK_ROWS;
}

/* Blocks of one piece say how many bytes they have. */
template <int kBits>
void multiply_bytes(const Product& product, const Shape& s, const Cut& cut, const Places& places,
                    const Batch& batch) {
  if (cut.pieces > 1) {
    multiply_batch<kBits, Way<0, 0>>(product, s, cut, places, batch);
  } else if (cut.bytes == kNear) {
    multiply_batch<kBits, Way<0, kNear>>(product, s, cut, places, batch);
  } else if (cut.bytes == kNear / 2) {
    multiply_batch<8, Way<0, kNear / 2>>(product, s, cut, places, batch);
  } else {
    multiply_batch<8, Way<0, kNear / 4>>(product, s, cut, places, batch);
  }
}

template <int kBits>
void multiply_rounded(const FolioBlockDotsS8* args) {
  const Shape s(args->w);
  const Cut cut(args->w, 0);
  const Places places(s, cut, FOLIO_BLOCK_ROWS, args->scratch);
  const TileShapes shapes = shapes_of(cut, 0);
  tiles_configure(&shapes);
  const int64_t rows = rows_of_batch(s, cut);
  for (int64_t row = 0; row < args->m; row += rows) {
    const int64_t left = args->m - row;
    const Batch batch = {row, left < rows ? left : rows};
    for (int64_t i = 0; i < batch.count; i += kTile) {
      const int64_t some = batch.count - i;
      arrange_rows<kBits>(s, cut, Row(s, kBits, (const char*)args->a + (row + i) * s.row),
                          some < kTile ? some : kTile, places.row_codes(i / kTile),
                          places.row_scales(s, cut, i / kTile));
    }
    multiply_bytes<kBits>(Product(args), s, cut, places, batch);
  }
  tiles_release();
}

/* Rows with numbers that parts cannot hold, one after the other. */
void redo_rows(const FolioBlockDotsF32* args, int64_t row, uint32_t bad) {
  for (; bad != 0; bad &= bad - 1) {
    const int64_t i = row + __builtin_ctz(bad);
    FolioBlockDotsF32 one = *args;
    one.m = 1;
    one.a += i * args->a_row_stride;
    one.y += i * args->y_row_stride;
    block_dots_f32__x86_avx512(&one);
  }
}

template <int kBits>
void multiply_three_parts(const Product& product, const Shape& s, const Cut& cut,
                          const Places& places, const Batch& batch) {
  if (cut.pieces > 1) {
    multiply_batch<kBits, Way<3, 0>>(product, s, cut, places, batch);
  } else if (cut.bytes == kNear) {
    multiply_batch<kBits, Way<3, kNear>>(product, s, cut, places, batch);
  } else {
    multiply_batch<kBits, Way<3, kNear / 2>>(product, s, cut, places, batch);
  }
}

/* Sums of a panel with two tiles of rows, over all of the depth in tiles. */
void multiply_group(const Cut& cut, int64_t steps, const uint8_t* columns, const uint8_t* const* x,
                    float* sums) {
  const int64_t row = cut.row;
  const int64_t side = cut.bytes;
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  for (int64_t i = 0; i < steps; ++i) {
    const uint8_t* at = columns + i / cut.pieces * kSide * side + i % cut.pieces * kNear;
    tile_load<4>(at, row);
    tile_load<6, true>(x[0] + i * kTileBytes, FOLIO_TILE_BYTES);
    tile_dot_bf16<0, 4, 6>();
    tile_load<7, true>(x[1] + i * kTileBytes, FOLIO_TILE_BYTES);
    tile_dot_bf16<1, 4, 7>();
    tile_load<5>(at + side, row);
    tile_dot_bf16<2, 5, 6>();
    tile_dot_bf16<3, 5, 7>();
  }
  tile_store<0>(sums, FOLIO_TILE_BYTES);
  tile_store<1>(sums + kTile * kTile, FOLIO_TILE_BYTES);
  tile_store<2>(sums + 2 * kTile * kTile, FOLIO_TILE_BYTES);
  tile_store<3>(sums + 3 * kTile * kTile, FOLIO_TILE_BYTES);
}

/* All columns with a batch of rows in one part. */
template <int kBits>
void multiply_weights(const Product& product, const Shape& s, const Cut& cut, const Places& places,
                      const Batch& batch) {
  alignas(64) float sums[kUnits * kTile * kTile];
  const FolioBlockWeights& w = product.w;
  const int64_t last = (batch.count - 1) / kTile;
  for (int64_t n = 0; n < w.n; n += kPanel) {
    const int64_t left = w.n - n;
    const Side panel = {&w, n, left < kPanel ? left : kPanel};
    if (w.zeros) {
      unpack_panel<kBits, true>(s, cut, panel, places.codes);
    } else {
      unpack_panel<kBits, false>(s, cut, panel, places.codes);
    }
    for (int64_t g = 0; g < batch.groups(); ++g) {
      const int64_t second = g * kSide + 1 < last ? g * kSide + 1 : last;
      const uint8_t* const x[kSide] = {places.row_codes(g * kSide), places.row_codes(second)};
      multiply_group(cut, s.padded * cut.pieces, places.codes, x, sums);
      for (int64_t j = 0; j < kUnits; ++j) {
        const int64_t row = g * kGroup + j % kSide * kTile;
        const int64_t column = j / kSide * kTile;
        if (row >= batch.count || column >= panel.count) continue;
        finish_unit(product, sums + j * kTile * kTile, batch.first + row, batch.count - row,
                    panel.first + column, panel.count - column);
      }
    }
  }
}

/* Rows of each batch where `most` fit: a last one of few would unpack all columns for them. */
int64_t even_rows(int64_t m, int64_t most) {
  const int64_t batches = (m + most - 1) / most;
  return (m + batches * kGroup - 1) / (batches * kGroup) * kGroup;
}

template <int kBits, int kParts>
void multiply_floats(const FolioBlockDotsF32* args) {
  const Shape s(args->w);
  const Cut cut(args->w, kParts);
  const int64_t most = folio_block_float_rows(s.blocks, args->w.block, kParts);
  const Places places =
      kParts == 1 ? Places(s, cut, args->scratch) : Places(s, cut, most, args->scratch);
  const int64_t rows = even_rows(args->m, most);
  const TileShapes shapes = shapes_of(cut, kParts);
  for (int64_t row = 0; row < args->m; row += rows) {
    const int64_t left = args->m - row;
    const Batch batch = {row, left < rows ? left : rows};
    uint32_t bad[FOLIO_BLOCK_ROWS / kTile] = {};
    for (int64_t i = 0; i < batch.count; i += kTile) {
      const int64_t some = batch.count - i;
      bad[i / kTile] = arrange_floats<kBits, kParts>(
          s, cut, args, row + i, some < kTile ? some : kTile, places.row_codes(i / kTile));
    }
    /* Zeros in all tiles: what the batch before left may be NaN. */
    tiles_configure(&shapes);
    if constexpr (kParts == 1) {
      multiply_weights<kBits>(Product(args), s, cut, places, batch);
    } else {
      multiply_three_parts<kBits>(Product(args), s, cut, places, batch);
    }
    tiles_release();
    for (int64_t i = 0; i < batch.count; i += kTile) redo_rows(args, row + i, bad[i / kTile]);
  }
}

template <int kBits>
void multiply_floats(const FolioBlockDotsF32* args) {
  if (folio_block_parts(args->precision) == 1) {
    multiply_floats<kBits, 1>(args);
  } else {
    multiply_floats<kBits, 3>(args);
  }
}

}  // namespace

static void FOLIO_TILE_LEVEL(block_dots_s8)(const FolioBlockDotsS8* args) {
  const FolioBlockWeights& w = args->w;
  /* Tiles of bytes as deep as these are too short, and differences of 9 bits are none. */
  const bool is_left = w.bits == 4 ? w.block <= 32 : w.zeros != nullptr;
  if (is_left || args->m <= kFewRows) {
    block_dots_s8__x86_avx512vnni(args);
  } else if (w.bits == 4) {
    multiply_rounded<4>(args);
  } else {
    multiply_rounded<8>(args);
  }
}

static void FOLIO_TILE_LEVEL(block_dots_f32)(const FolioBlockDotsF32* args) {
  if (args->m <= FOLIO_BLOCK_FEW_ROWS) {
    block_dots_f32__x86_avx512(args);
  } else if (args->w.bits == 4) {
    multiply_floats<4>(args);
  } else {
    multiply_floats<8>(args);
  }
}

void FOLIO_TILE_LEVEL(folio_fill_blocks)(FolioKernels* table) {
  table->block_dots_s8 = FOLIO_TILE_LEVEL(block_dots_s8);
  table->block_dots_f32 = FOLIO_TILE_LEVEL(block_dots_f32);
  table->dots_many_rows = 1;
}
