/* Matrix product of floats in tiles of bfloat16: a number is the sum of three parts of 8 bits, h + m
 * + l, each the part before it rounded away (to nearest), so that nothing is left. The including
 * file gives the words for tiles before.
 *
 *   highest  hl + hm + mm + mh + lh + hh: what is left out is 2^-24 of |A| |B| at most, twice, and C
 *            is rounded 6 times for 32 products, not 32 times
 *   high     hm + mh + hh of two parts;   medium  hh
 *
 * Bits: an element of C is one chain over steps of 32 of the depth, in this order of parts, whatever
 *       rows and columns are computed with it; between blocks of kDepth it rests in C.
 * Range: parts are exact from 2^-102 on, sums of products are finite below 2^56 (Inf, NaN and what
 *       lies outside would spoil a tile). A row of A, or a panel of B, with another number in a
 *       block of kDepth counts as zeros there, and its products are added one by one instead. Below
 *       2^-134 a number is zero. Tiles take sums below 2^-126 for zeros.
 * What it should take, in cycles of a Xeon: a step of 32 x 32 sums is 24 products of 16 for
 *       highest, 14 loads of tiles of 8, and the parts of B for the next stripe, some 350 cycles of
 *       vectors, which stand between the products of the last rows of a block. A's parts, made
 *       once for a block of rows, stand between nothing: 5000 for 64 x 256. */

#include "core/kernels/x86_amx/x86_amx.h"
#include "core/kernels/x86_avx512/vec.h"
#include "core/kernels/x86_avx512/x86_avx512.h"

#include "core/kernels/vector/math.inl"

#include "core/kernels/vector/gemm_rows.inl"

namespace {

constexpr int64_t kTile = FOLIO_TILE_ROWS; /* rows of A, columns of B, pairs of the depth */
constexpr int64_t kTileBytes = kTile * FOLIO_TILE_BYTES;
constexpr int64_t kStep = 2 * kTile; /* of the depth */
constexpr int64_t kDepth = FOLIO_GEMM_ONE_SUM;
constexpr int64_t kSteps = kDepth / kStep;
constexpr int64_t kRows = 192;    /* of a block of A, divided by its parts: 96 KiB */
constexpr int64_t kPair = 32;     /* of them: two tiles */
constexpr int64_t kStripe = 32;   /* columns: two panels */
constexpr int64_t kChains = 8;    /* sums that are added to side by side */
constexpr int64_t kPairsAhead = 6; /* of B's rows between four products */
static_assert(FOLIO_F32P16_COLUMNS == kTile && kTile == 16, "a panel is as wide as a tile");

/* Magnitudes of some bfloat16 numbers as bits: the largest, and the smallest but zeros less 1. */
struct Range {
  VI most, least;
};

VFN Range no_range() { return {vi_set1(0), vi_set1(-1)}; }

VFN void note_range(Range* range, VI parts) {
  const VI size = vi_and(parts, vi_set1(0x7fff7fff));
  range->most = _mm512_max_epu16(range->most, size);
  range->least = _mm512_min_epu16(range->least, _mm512_sub_epi16(size, vi_set1(0x00010001)));
}

static bool is_exact(const Range& range) {
  constexpr uint16_t kBeyond = (127 + 56) << 7;
  constexpr uint16_t kLeast = (127 - 102) << 7;
  const VI most = vi_set1_words(kBeyond);
  const VI least = vi_set1_words(kLeast - 1);
  return _mm512_cmplt_epu16_mask(range.most, most) == ~UINT32_C(0) &&
         _mm512_cmpge_epu16_mask(range.least, least) == ~UINT32_C(0);
}

/* The next of kParts parts of *x, as a float; what is left stays in *x. The third is all that the
 * others left. */
template <int kPart>
VFN V take_part(V* x) {
  if constexpr (kPart == 2) return *x;
  const VI rounded = vi_add(vi_from_bits(*x), vi_set1(0x8000));
  const V part = v_from_bits(vi_and(rounded, vi_set1(-0x10000)));
  *x = v_sub(*x, part);
  return part;
}

/* What both operands of a block are made into, and where the walk over B has come to. */
template <int kParts>
struct Block {
  const FolioGemmF32* args;
  int64_t row, rows;
  int64_t p, depth;
  int64_t column, panels;
  uint32_t bad_rows[kRows / kPair]; /* a bit each */
  uint32_t bad_panels;
  alignas(64) char a[kRows / kParts / kTile][kSteps][kParts][kTileBytes];
  alignas(64) char b[2][kSteps][kParts][kTileBytes];
  alignas(64) float sums[kPair * kStripe];
};

/* Parts of a stripe of B, made pair of rows by pair of rows. */
struct Ahead {
  const float* b; /* the stripe's rows of this depth, or null: no stripe comes */
  int64_t panel;  /* floats between panels */
  int64_t panels, depth;
  int64_t next, units; /* pairs of rows of a panel, step by step */
  Range range[2];
};

static int64_t steps_of(int64_t depth) { return (depth + kStep - 1) / kStep; }

/* ---- A */

/* The line of each part's tile for 32 numbers of a row, part by part. */
template <int kParts, int kPart = 0>
VFN void split_line(V x0, V x1, Range* range, char* to) {
  alignas(64) static const uint16_t kUpper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                  23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                  45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  const VI y0 = vi_from_bits(take_part<kPart>(&x0));
  const VI y1 = vi_from_bits(take_part<kPart>(&x1));
  const VI line = _mm512_permutex2var_epi16(y0, _mm512_load_si512(kUpper), y1);
  if constexpr (kPart == 0) note_range(range, line);
  _mm512_store_si512(to, line);
  if constexpr (kPart + 1 < kParts) split_line<kParts, kPart + 1>(x0, x1, range, to + kTileBytes);
}

/* Row i of the block; false, and zeros, when a number is out of range. */
template <int kParts>
static bool split_row(Block<kParts>* block, int64_t i, const float* x) {
  char* const to = block->a[i / kTile][0][0] + i % kTile * FOLIO_TILE_BYTES;
  const int64_t steps = steps_of(block->depth);
  Range range = no_range();
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t left = block->depth - s * kStep;
    V x0, x1;
    if (left >= kStep) {
      x0 = v_load(x + s * kStep);
      x1 = v_load(x + s * kStep + kLanes);
    } else {
      x0 = v_load_masked(x + s * kStep, v_first(left < kLanes ? left : kLanes));
      x1 = left > kLanes ? v_load_masked(x + s * kStep + kLanes, v_first(left - kLanes)) : v_zero();
    }
    split_line<kParts>(x0, x1, &range, to + s * kParts * kTileBytes);
  }
  if (is_exact(range)) return true;
  for (int64_t line = 0; line < steps * kParts; ++line) {
    _mm512_store_si512(to + line * kTileBytes, _mm512_setzero_si512());
  }
  return false;
}

template <int kParts>
static void split_rows(Block<kParts>* block) {
  float copy[kDepth + kLanes];
  for (uint32_t& bad : block->bad_rows) bad = 0;
  for (int64_t i = 0; i < block->rows; ++i) {
    const float* x = row_at(block->args, block->row + i, block->p, block->depth, copy);
    if (!split_row(block, i, x)) block->bad_rows[i / kPair] |= uint32_t{1} << i % kPair;
  }
}

/* ---- B */

static void begin_ahead(Ahead* ahead, const FolioGemmF32* args, int64_t column, int64_t p,
                        int64_t depth) {
  const int64_t left = args->n - column;
  ahead->panel = args->k * FOLIO_F32P16_COLUMNS;
  ahead->b = args->b + column * args->k + p * FOLIO_F32P16_COLUMNS;
  ahead->panels = left > kTile ? 2 : 1;
  ahead->depth = depth;
  ahead->next = 0;
  ahead->units = steps_of(depth) * ahead->panels * kTile;
  ahead->range[0] = ahead->range[1] = no_range();
}

/* The line of each part's tile for two rows of a panel, part by part. */
template <int kParts, int kPart = 0>
VFN void split_lines(V x0, V x1, Range* range, char* to) {
  const VI even = vi_from_bits(take_part<kPart>(&x0));
  const VI odd = vi_from_bits(take_part<kPart>(&x1));
  const VI line = vi_or(vi_shift_right(even, 16), odd);
  if constexpr (kPart == 0) note_range(range, line);
  _mm512_store_si512(to, line);
  if constexpr (kPart + 1 < kParts) split_lines<kParts, kPart + 1>(x0, x1, range, to + kTileBytes);
}

template <int kParts>
VFN void split_pair(Block<kParts>* block, Ahead* ahead) {
  const int64_t pair = ahead->next & 15;
  const int64_t panel = ahead->next >> 4 & (ahead->panels - 1);
  const int64_t step = ahead->next >> (3 + ahead->panels);
  const int64_t p = step * kStep + 2 * pair;
  const float* b = ahead->b + panel * ahead->panel + p * FOLIO_F32P16_COLUMNS;
  const V x0 = p < ahead->depth ? v_load(b) : v_zero();
  const V x1 = p + 1 < ahead->depth ? v_load(b + FOLIO_F32P16_COLUMNS) : v_zero();
  char* to = block->b[panel][step][0] + pair * FOLIO_TILE_BYTES;
  split_lines<kParts>(x0, x1, &ahead->range[panel], to);
  ++ahead->next;
}

/* At most `count` pairs more, none from `end` on. */
template <int kParts>
VFN void split_pairs(Block<kParts>* block, Ahead* ahead, int64_t count, int64_t end) {
  end = end < ahead->units ? end : ahead->units;
  count = count < end - ahead->next ? count : end - ahead->next;
  for (int64_t i = 0; i < count; ++i) split_pair(block, ahead);
}

/* The stripe that was made ahead becomes the block's; panels with a number out of range are zeros. */
template <int kParts>
static void take_stripe(Block<kParts>* block, Ahead* ahead, int64_t column) {
  split_pairs(block, ahead, ahead->units, ahead->units);
  block->column = column;
  block->panels = ahead->panels;
  block->bad_panels = 0;
  for (int64_t v = 0; v < ahead->panels; ++v) {
    if (is_exact(ahead->range[v])) continue;
    block->bad_panels |= 1u << v;
    char* tiles = block->b[v][0][0];
    for (int64_t at = 0; at < steps_of(block->depth) * kParts * kTileBytes; at += 64) {
      _mm512_store_si512(tiles + at, _mm512_setzero_si512());
    }
  }
  ahead->b = nullptr;
  ahead->next = ahead->units = 0;
}

/* ---- products */

/* Tiles: C[h][v] is 2 h + v, A[h] 4 + h, B[v] 6 + v. */
static TileShapes shapes_of(int64_t rows) {
  TileShapes shapes = {};
  shapes.palette = 1;
  const int64_t upper = rows < kTile ? rows : kTile;
  const int64_t lower = rows > kTile ? rows - kTile : upper;
  const int64_t counts[FOLIO_TILE_COUNT] = {upper, upper, lower, lower, upper, lower, kTile, kTile};
  for (int i = 0; i < FOLIO_TILE_COUNT; ++i) {
    shapes.rows[i] = (uint8_t)counts[i];
    shapes.row_bytes[i] = FOLIO_TILE_BYTES;
  }
  return shapes;
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

template <int kParts, int kHalves>
VFN void load_a(const Block<kParts>* block, int64_t first, int64_t step, int part) {
  tile_load<4>(block->a[first][step][part], FOLIO_TILE_BYTES);
  if constexpr (kHalves == 2) tile_load<5>(block->a[first + 1][step][part], FOLIO_TILE_BYTES);
}

template <int kParts, int kPanels>
VFN void load_b(const Block<kParts>* block, int64_t step, int part) {
  tile_load<6>(block->b[0][step][part], FOLIO_TILE_BYTES);
  if constexpr (kPanels == 2) tile_load<7>(block->b[1][step][part], FOLIO_TILE_BYTES);
}

/* Products of the parts that are loaded; then some parts of what comes. */
template <int kParts, int kHalves, int kPanels>
VFN void multiply_part(Block<kParts>* block, Ahead* ahead, int64_t step) {
  tile_dot_bf16<0, 4, 6>();
  if constexpr (kPanels == 2) tile_dot_bf16<1, 4, 7>();
  if constexpr (kHalves == 2) tile_dot_bf16<2, 5, 6>();
  if constexpr (kHalves == 2 && kPanels == 2) tile_dot_bf16<3, 5, 7>();
  /* What this step reads is overwritten in the next. */
  if (ahead) split_pairs(block, ahead, kPairsAhead, step * ahead->panels * kTile);
}

/* A step of the depth, the smallest products first. `first`: the tile of A's rows. */
template <int kParts, int kHalves, int kPanels>
VFN void multiply_step(Block<kParts>* block, Ahead* ahead, int64_t first, int64_t step) {
  if constexpr (kParts == 3) {
    load_a<kParts, kHalves>(block, first, step, 0);
    load_b<kParts, kPanels>(block, step, 2);
    multiply_part<kParts, kHalves, kPanels>(block, ahead, step); /* hl */
    load_b<kParts, kPanels>(block, step, 1);
    multiply_part<kParts, kHalves, kPanels>(block, ahead, step); /* hm */
    load_a<kParts, kHalves>(block, first, step, 1);
    multiply_part<kParts, kHalves, kPanels>(block, ahead, step); /* mm */
    load_b<kParts, kPanels>(block, step, 0);
    multiply_part<kParts, kHalves, kPanels>(block, ahead, step); /* mh */
    load_a<kParts, kHalves>(block, first, step, 2);
    multiply_part<kParts, kHalves, kPanels>(block, ahead, step); /* lh */
    load_a<kParts, kHalves>(block, first, step, 0);
  } else if constexpr (kParts == 2) {
    load_a<kParts, kHalves>(block, first, step, 0);
    load_b<kParts, kPanels>(block, step, 1);
    multiply_part<kParts, kHalves, kPanels>(block, ahead, step); /* hm */
    load_a<kParts, kHalves>(block, first, step, 1);
    load_b<kParts, kPanels>(block, step, 0);
    multiply_part<kParts, kHalves, kPanels>(block, ahead, step); /* mh */
    load_a<kParts, kHalves>(block, first, step, 0);
  } else {
    load_a<kParts, kHalves>(block, first, step, 0);
    load_b<kParts, kPanels>(block, step, 0);
  }
  multiply_part<kParts, kHalves, kPanels>(block, ahead, step); /* hh */
}

/* Adds the products of a stripe and of a pair of tiles of rows to `before` (null: zeros), to `after`. */
template <int kParts, int kHalves, int kPanels>
static void multiply_pair(Block<kParts>* block, Ahead* ahead, int64_t pair,
                          const float* before, float* after, int64_t stride) {
  if (before) {
    load_sums<kHalves, kPanels>(before, stride);
  } else {
    zero_sums();
  }
  const int64_t steps = steps_of(block->depth);
  for (int64_t s = 0; s < steps; ++s) {
    multiply_step<kParts, kHalves, kPanels>(block, ahead, pair * 2, s);
  }
  store_sums<kHalves, kPanels>(after, stride);
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

/* The products that count as zeros in the parts, in `rows` rows of a pair of tiles. */
template <int kParts>
static __attribute__((noinline)) void add_left_out(Block<kParts>* block, int64_t pair,
                                                   int64_t rows) {
  const FolioGemmF32* args = block->args;
  float copies[kChains][kDepth + kLanes];
  const float* x[kChains];
  float* sums[kChains];
  for (int64_t v = 0; v < block->panels; ++v) {
    const bool all = block->bad_panels >> v & 1;
    const float* b = args->b + (block->column + v * kTile) * args->k +
                     block->p * FOLIO_F32P16_COLUMNS;
    int64_t count = 0;
    for (int64_t i = 0; i < rows; ++i) {
      if (!all && !(block->bad_rows[pair] >> i & 1)) continue;
      const int64_t row = block->row + pair * kPair + i;
      x[count] = row_at(args, row, block->p, block->depth, copies[count]);
      sums[count] = block->sums + i * kStripe + v * kTile;
      if (++count < kChains) continue;
      add_chains<kChains>(x, block->depth, b, sums);
      count = 0;
    }
    for (int64_t i = 0; i < count; ++i) add_chains<1>(x + i, block->depth, b, sums + i);
  }
}

/* ---- what becomes of the sums */

/* Rows of C, `columns` of each, to or from the block's sums. */
static void copy_sums(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                      float* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      const VM m = v_first(columns - j < kLanes ? columns - j : kLanes);
      v_store_masked(to + i * to_stride + j, m, v_load_masked(from + i * from_stride + j, m));
    }
  }
}

/* The last block of the depth: from sums to C. */
static void finish_sums(const FolioGemmF32* args, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, const float* sums) {
  for (int64_t j = 0; j < columns; j += kLanes) {
    const VM m = v_first(columns - j < kLanes ? columns - j : kLanes);
    V scale = v_set1(args->alpha);
    if (args->col_scale) scale = v_mul(scale, v_load_masked(args->col_scale + column + j, m));
    const V bias = args->col_bias ? v_load_masked(args->col_bias + column + j, m) : v_zero();
    for (int64_t i = 0; i < rows; ++i) {
      V sum = v_mul(scale, v_load(sums + i * kStripe + j));
      if (args->col_bias) sum = v_add(sum, bias);
      if (args->row_bias) sum = v_add(sum, v_set1(args->row_bias[row + i]));
      if (args->addend) {
        const float* addend = args->addend + (row + i) * args->addend_row_stride + column + j;
        sum = v_add(sum, v_load_masked(addend, m));
      }
      sum = v_activate(sum, args->activation, args->clip_lo, args->clip_hi);
      v_store_masked(args->c + (row + i) * args->c_row_stride + column + j, m, sum);
    }
  }
}

/* ---- the loops */

template <int kParts>
static void run_pair(Block<kParts>* block, Ahead* ahead, int64_t pair, int64_t rows) {
  const FolioGemmF32* args = block->args;
  const int64_t row = block->row + pair * kPair;
  const int64_t beside = args->n - block->column;
  const int64_t columns = beside < kStripe ? beside : kStripe;
  const bool is_last = block->p + block->depth == args->k;
  const bool adds = block->p > 0 || args->accumulate;
  const uint32_t bad_rows = block->bad_rows[pair];
  const bool is_plain = columns % kTile == 0 && !bad_rows && !block->bad_panels;
  float* const c = args->c + row * args->c_row_stride + block->column;
  const bool rests = is_plain && !is_last; /* sums go to C as they are */
  const float* before = adds ? c : nullptr;
  int64_t stride = args->c_row_stride;
  if (adds && !rests) {
    copy_sums(c, args->c_row_stride, rows, columns, block->sums, kStripe);
    before = block->sums;
  }
  float* const after = rests ? c : block->sums;
  if (!rests) stride = kStripe;
  if (rows > kTile) {
    if (block->panels == 2) {
      multiply_pair<kParts, 2, 2>(block, ahead, pair, before, after, stride);
    } else {
      multiply_pair<kParts, 2, 1>(block, ahead, pair, before, after, stride);
    }
  } else if (block->panels == 2) {
    multiply_pair<kParts, 1, 2>(block, ahead, pair, before, after, stride);
  } else {
    multiply_pair<kParts, 1, 1>(block, ahead, pair, before, after, stride);
  }
  if (bad_rows || block->bad_panels) add_left_out(block, pair, rows);
  if (is_last) {
    finish_sums(args, row, rows, block->column, columns, block->sums);
  } else if (!rests) {
    copy_sums(block->sums, kStripe, rows, columns, c, args->c_row_stride);
  }
}

/* The rows of a block times all stripes, over a part of the depth. */
template <int kParts>
static void run_block(Block<kParts>* block, Ahead* ahead, int64_t* shaped) {
  const FolioGemmF32* args = block->args;
  const int64_t pairs = (block->rows + kPair - 1) / kPair;
  split_rows(block);
  for (int64_t column = 0; column < args->n; column += kStripe) {
    take_stripe(block, ahead, column);
    if (column + kStripe < args->n) {
      begin_ahead(ahead, args, column + kStripe, block->p, block->depth);
    } else {
      const int64_t p = block->p + block->depth < args->k ? block->p + block->depth : 0;
      const bool more = p > 0 || block->row + block->rows < args->m;
      if (more) begin_ahead(ahead, args, 0, p, args->k - p < kDepth ? args->k - p : kDepth);
    }
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const int64_t left = block->rows - pair * kPair;
      const int64_t rows = left < kPair ? left : kPair;
      if (rows != *shaped) {
        const TileShapes shapes = shapes_of(rows);
        tiles_configure(&shapes);
        *shaped = rows;
      }
      run_pair(block, ahead->b && pair + 1 == pairs ? ahead : nullptr, pair, rows);
    }
  }
}

template <int kParts>
static __attribute__((noinline)) void multiply_parts(const FolioGemmF32* args) {
  Block<kParts> block;
  static_assert(sizeof block <= 150 * 1024, "on the stack; kernels.h promises 160 KiB in all");
  Ahead ahead;
  block.args = args;
  int64_t shaped = 0;
  begin_ahead(&ahead, args, 0, 0, args->k < kDepth ? args->k : kDepth);
  for (block.row = 0; block.row < args->m; block.row += block.rows) {
    const int64_t left = args->m - block.row;
    block.rows = left < kRows / kParts ? left : kRows / kParts;
    for (block.p = 0; block.p < args->k; block.p += block.depth) {
      block.depth = args->k - block.p < kDepth ? args->k - block.p : kDepth;
      run_block(&block, &ahead, &shaped);
    }
  }
  tiles_release();
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
