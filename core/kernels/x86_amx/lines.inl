/* Products of short pieces of lines, as first layers have them: a piece is some neighbours in a
 * line of pixels, and the next row's begins a stride further. See float.inl, which includes this.
 *
 * Four lines stand pixel by pixel side by side, as parts: then what a row of A has of 8 taps of
 * them is 64 bytes, and 16 rows, a stride apart, are a tile where they stand. A line is made into
 * parts once, not once for each row that sees it. Taps behind a piece's end meet zeros in B.
 *
 * Numbers that parts cannot hold would spoil rows that do not have them, or meet those zeros: they
 * count as zeros, and rows and panels that have some are computed again, one product after the
 * other. So an element's bits do not depend on what is computed with it. */

namespace {

constexpr int64_t kTaps = 8;      /* of a piece, at most */
constexpr int64_t kLeastTaps = 4; /* fewer are mostly zeros */
constexpr int64_t kTogether = 4;  /* lines in a step of the depth */
constexpr int64_t kPixelBytes = kTogether * 2;
constexpr int64_t kMostPixels = 512;
constexpr int64_t kLineBytes = kMostPixels * kPixelBytes; /* of a part of a step */
constexpr int64_t kMostPanels = 64;
static_assert(kTaps * kTogether == kStep && kTaps * kPixelBytes == FOLIO_TILE_BYTES, "a row");
static_assert(3 * kReach / kLeastTaps / kTogether * (kLineBytes + 2 * kTileBytes) <= kStackBytes,
              "lines and an item of columns");

/* How a call is cut, and where what it makes stands. */
struct LinePlan {
  int64_t pieces, steps;
  int64_t rows, columns; /* at a time */
  char *a, *b;           /* [step][part][line]; [panel][step][part] of tiles */
  /* Pixels of all lines, and panels, with numbers that parts cannot hold: a bit each. */
  uint16_t bad_pixels[kMostPixels / kLanes];
  uint64_t bad_panels;
  bool has_bad_pixels;
};

/* Rows and columns of a call that are computed together. */
struct Block {
  int64_t row, rows, column, columns;
};

static bool is_by_lines(const FolioGemmF32* args) {
  return args->a_lines && !args->b_is_bfloat16 && !args->accumulate && !args->addend &&
         args->a_run >= kLeastTaps && args->a_run <= kTaps && args->a_row_stride > 0 &&
         args->a_row_stride <= kTaps && args->k <= kReach;
}

template <int kParts>
static LinePlan plan_lines(const FolioGemmF32* args, char* memory, int64_t bytes) {
  LinePlan plan = {};
  plan.pieces = args->k / args->a_run;
  plan.steps = divide_up(plan.pieces, kTogether);
  plan.rows = ((kMostPixels - kTaps) / args->a_row_stride + 1) / kWide * kWide;
  plan.a = memory;
  plan.b = memory + plan.steps * kParts * kLineBytes;
  const int64_t panels = (memory + bytes - plan.b) / (plan.steps * kParts * kTileBytes);
  plan.columns = at_most(panels, kMostPanels) / 2 * kWide;
  return plan;
}

/* x without numbers that parts cannot hold (one part: without infinity and NaN), which it notes. */
template <int kParts>
VFN V held(V x, uint32_t* bad) {
  const VI size = vi_and(vi_from_bits(x), vi_set1(0x7fffffff));
  const VI least = vi_set1(kParts == 1 ? 0 : kLeastExact << 16);
  const VI width = vi_set1(kParts == 1 ? 0x7f800000 : (kBeyondExact - kLeastExact) << 16);
  const VM is_held = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(size, least), width) |
                     _mm512_testn_epi32_mask(size, size);
  *bad |= (uint16_t)~is_held;
  return _mm512_maskz_mov_ps(is_held, x);
}

/* Pairs of numbers of x0 and of x1, of each part. */
template <int kParts>
VFN void split_pairs(V x0, V x1, uint32_t* bad, VI (&pairs)[kParts]) {
  Range unused = no_range();
  x0 = held<kParts>(x0, bad);
  x1 = held<kParts>(x1, bad);
  if constexpr (kParts == 1) {
    pairs[0] = join_words(round_words(x0, x1));
  } else {
    split<kParts, JoinRows>(x0, x1, &unused, pairs);
  }
}

/* 16 numbers of a line that has `floats`, from x on; zeros behind them. */
VFN V line_at(const float* line, int64_t x, int64_t floats) {
  const int64_t left = line ? floats - x : 0;
  if (left >= kLanes) return v_load(line + x);
  return left > 0 ? v_load_masked(line + x, v_first(left)) : v_zero();
}

template <int kParts>
static void make_line_tiles(const FolioGemmF32* args, const Block& block, LinePlan* plan) {
  alignas(64) static const int32_t kFirst[16] = {0, 16, 1, 17, 2, 18, 3, 19,
                                                 4, 20, 5, 21, 6, 22, 7, 23};
  const VI first = vi_load(kFirst);
  const VI second = vi_add(first, vi_set1(8));
  const int64_t floats = (block.rows - 1) * args->a_row_stride + args->a_run;
  const int64_t pixels = (block.rows - 1) * args->a_row_stride + kTaps;
  __builtin_memset(plan->bad_pixels, 0, sizeof plan->bad_pixels);
  uint32_t any = 0;
  for (int64_t step = 0; step < plan->steps; ++step) {
    const float* lines[kTogether];
    for (int64_t i = 0; i < kTogether; ++i) {
      const int64_t piece = step * kTogether + i;
      lines[i] =
          piece < plan->pieces ? args->a_lines[piece] + block.row * args->a_row_stride : nullptr;
    }
    char* to = plan->a + step * kParts * kLineBytes;
    for (int64_t x = 0; x < pixels; x += kLanes, to += kLanes * kPixelBytes) {
      VI upper[kParts], lower[kParts];
      uint32_t bad = 0;
      split_pairs<kParts>(line_at(lines[0], x, floats), line_at(lines[1], x, floats), &bad, upper);
      split_pairs<kParts>(line_at(lines[2], x, floats), line_at(lines[3], x, floats), &bad, lower);
#pragma GCC unroll 3
      for (int i = 0; i < kParts; ++i) {
        char* const at = to + i * kLineBytes;
        _mm512_store_si512(at, _mm512_permutex2var_epi32(upper[i], first, lower[i]));
        _mm512_store_si512(at + 64, _mm512_permutex2var_epi32(upper[i], second, lower[i]));
      }
      plan->bad_pixels[x / kLanes] |= (uint16_t)bad;
      any |= bad;
    }
  }
  plan->has_bad_pixels = any != 0;
}

/* B in that order: line 2 t + h of a tile has tap t of lines 2 h and 2 h + 1 of the step. */
template <int kParts>
static void make_filter_tiles(const FolioGemmF32* args, const Block& block, LinePlan* plan) {
  plan->bad_panels = 0;
  char* to = plan->b;
  for (int64_t j = 0; j < block.columns; j += kTile) {
    const auto* b = (const float*)panel_row(args, block.column + j, 0);
    uint32_t bad = 0;
    for (int64_t step = 0; step < plan->steps; ++step, to += kParts * kTileBytes) {
      for (int64_t line = 0; line < kTile; ++line) {
        const int64_t tap = line / 2;
        const int64_t piece = step * kTogether + line % 2 * 2;
        const auto row = [&](int64_t at) {
          const bool is_there = at < plan->pieces && tap < args->a_run;
          return is_there ? v_load(b + (at * args->a_run + tap) * kTile) : v_zero();
        };
        VI pairs[kParts];
        split_pairs<kParts>(row(piece), row(piece + 1), &bad, pairs);
#pragma GCC unroll 3
        for (int i = 0; i < kParts; ++i) {
          _mm512_store_si512(to + i * kTileBytes + line * FOLIO_TILE_BYTES, pairs[i]);
        }
      }
    }
    if (bad) plan->bad_panels |= UINT64_C(1) << j / kTile;
  }
}

/* 32 rows and columns of a block, or fewer, from `row` and `column` of it on; sums that wait are
 * finished beside the first products. */
template <int kParts, int kHalves, int kPanels>
static void multiply_lines(const FolioGemmF32* args, const LinePlan& plan, int64_t row,
                           int64_t column, Pending* pending, float* sums) {
  const int64_t stride = args->a_row_stride * kPixelBytes;
  const int64_t panel = plan.steps * kParts * kTileBytes;
  const char* a = plan.a + row * stride;
  const char* b = plan.b + column / kTile * panel;
  zero_sums();
  for (int64_t step = 0; step < plan.steps; ++step) {
    for (const Group& group : Groups<kParts>::kAll) {
      if (group.a >= 0) load_a<kHalves>(a + group.a * kLineBytes, kTile * stride, stride);
      if (group.b >= 0) load_b<kPanels>(b + group.b * kTileBytes, panel);
      multiply_group<kHalves, kPanels>();
    }
    finish_rest(args, pending);
    a += kParts * kLineBytes;
    b += kParts * kTileBytes;
  }
  store_sums<kHalves, kPanels>(sums, kWide);
}

template <int kParts>
static void multiply_block(const FolioGemmF32* args, const LinePlan& plan, const Block& block) {
  alignas(64) float sums[2][kWide * kWide];
  Pending pending = {};
  int free_sums = 0;
  shape_tiles();
  for (int64_t i = 0; i < block.rows; i += kWide) {
    const int64_t rows = at_most(block.rows - i, kWide);
    for (int64_t j = 0; j < block.columns; j += kWide) {
      const int64_t columns = at_most(block.columns - j, kWide);
      const auto multiply = rows > kTile      ? columns > kTile ? multiply_lines<kParts, 2, 2>
                                                                : multiply_lines<kParts, 2, 1>
                                 : columns > kTile ? multiply_lines<kParts, 1, 2>
                                              : multiply_lines<kParts, 1, 1>;
      multiply(args, plan, i, j, &pending, sums[free_sums]);
      pending = {rows,          sums[free_sums],
                 block.row + i, block.column + j,
                 columns,       ends_plainly(args, columns)};
      free_sums = 1 - free_sums;
    }
  }
  finish_rest(args, &pending);
}

/* A part of the block as a chain, as if parts had not been there. */
static void redo_block(const FolioGemmF32* args, const LinePlan& plan, const Block& part) {
  const float* lines[kReach / kLeastTaps];
  for (int64_t i = 0; i < plan.pieces; ++i) {
    lines[i] = args->a_lines[i] + part.row * args->a_row_stride;
  }
  FolioGemmF32 chain = *args;
  chain.m = part.rows;
  chain.n = part.columns;
  chain.a_lines = lines;
  chain.b = (const float*)panel_row(args, part.column, 0);
  chain.c += part.row * args->c_row_stride + part.column;
  if (chain.col_scale) chain.col_scale += part.column;
  if (chain.col_bias) chain.col_bias += part.column;
  if (chain.row_bias) chain.row_bias += part.row;
  chain.precision = kFolioChain;
  chain.next = nullptr;
  chain.scratch = nullptr;
  gemm_f32__x86_avx512(&chain);
}

static __attribute__((noinline)) void redo_bad(const FolioGemmF32* args, const LinePlan& plan,
                                               const Block& block) {
  for (int64_t j = 0; j < block.columns; j += kTile) {
    if (!(plan.bad_panels >> j / kTile & 1)) continue;
    const int64_t columns = at_most(block.columns - j, kTile);
    redo_block(args, plan, {block.row, block.rows, block.column + j, columns});
  }
  for (int64_t i = 0; plan.has_bad_pixels && i < block.rows; ++i) {
    bool bad = false;
    for (int64_t x = i * args->a_row_stride; x < i * args->a_row_stride + args->a_run; ++x) {
      bad = bad || (plan.bad_pixels[x / kLanes] >> x % kLanes & 1);
    }
    if (bad) redo_block(args, plan, {block.row + i, 1, block.column, block.columns});
  }
}

template <int kParts>
static void multiply_by_lines(const FolioGemmF32* args, char* memory, int64_t bytes) {
  LinePlan plan = plan_lines<kParts>(args, memory, bytes);
  for (int64_t column = 0; column < args->n; column += plan.columns) {
    for (int64_t row = 0; row < args->m; row += plan.rows) {
      const Block block = {row, at_most(args->m - row, plan.rows), column,
                           at_most(args->n - column, plan.columns)};
      if (row == 0) make_filter_tiles<kParts>(args, block, &plan);
      make_line_tiles<kParts>(args, block, &plan);
      multiply_block<kParts>(args, plan, block);
      if (plan.has_bad_pixels || plan.bad_panels) redo_bad(args, plan, block);
    }
  }
  tiles_release();
}

}  // namespace
