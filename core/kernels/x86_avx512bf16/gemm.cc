/* Matrix product of floats as bfloat16, in pairs (the precision `medium`): A and B are rounded to
 * the nearest, ties to even, when they are gathered; sums stay in float. All else is left to the
 * level below.
 *
 * Bits:  vdpbf16ps is two fused multiply-adds, of the upper halves first. Pairs hold the first of
 *        two numbers there, so an element of C is one chain in the order of p: what x86_avx512
 *        makes of the rounded numbers, bit by bit, but that numbers below 2^-126 count as zero,
 *        also as sums. How rows, columns and depth are cut does not change a bit.
 *        B may be bfloat16 already: pairs are put together then, the same ones.
 * Range: a finite number that would be rounded to infinity becomes the largest of bfloat16. Inf and
 *        NaN are bfloat16, too.
 * Cache: rows of A of a block of the depth are rounded once (108 KiB of L2); a pair of panels of B
 *        is for these rows (16 KiB of L1), while the next ones come from memory to L2. */
#include "core/kernels/x86_avx512/vec.h"
#include "core/kernels/x86_avx512/x86_avx512.h"
#include "core/kernels/x86_avx512bf16/x86_avx512bf16.h"

#if !defined(__AVX512BF16__)
#error "compile this folder with the flags of its isa.cmake"
#endif

#include "core/kernels/vector/math.inl"

#include "core/kernels/x86_avx512bf16/words.inl"

constexpr int64_t kTileRows = 14;
constexpr int64_t kTilePanels = 2;
#include "core/kernels/vector/gemm_rows.inl"
#include "core/kernels/vector/gemm_tile.inl"

namespace {

constexpr int64_t kRows = 192;                  /* of a block of A: as many as a chunk has */
constexpr int64_t kRowPairs = kBlockK / 2 + 16; /* a line more, so that rows share no sets of L1 */
constexpr int64_t kPanelPairs = kBlockK / 2 * 16;
constexpr int kStepPairs = kSteps / 2;
static_assert(FOLIO_F32P16_COLUMNS == kLanes && kPanelVectors == 1, "a row of a panel is a vector");

/* Both operands of a block of the depth. A pair of bfloat16 is read as a float. */
struct Pairs {
  alignas(64) float a[kRows * kRowPairs];
  alignas(64) float b[kTilePanels * kPanelPairs];
};
static_assert(sizeof(Pairs) <= 150 * 1024, "on the stack; kernels.h promises 320 KiB in all");

/* The words of x0, then those of x1. kBounded: none becomes infinite by rounding. */
template <int kBounded>
VFN VI round_words(V x0, V x1) {
  if (kBounded) {
    x0 = v_bounded(x0);
    x1 = v_bounded(x1);
  }
  return v_to_words(x0, x1);
}

VFN VI larger(VI most, VI words) {
  return _mm512_max_epu16(most, vi_and(words, vi_set1(0x7fff7fff)));
}
/* Whether a word was Inf or NaN. */
VFN bool is_infinite(VI most) { return _mm512_cmpge_epu16_mask(most, vi_set1_words(0x7f80)) != 0; }

/* ---- A */

template <int kBounded>
VFN VI round_row(const float* x, int64_t depth, float* to) {
  VI most = vi_set1(0);
  for (int64_t q = 0; q < depth; q += 2 * kLanes, to += kLanes) {
    const int64_t left = depth - q;
    V x0, x1;
    if (left >= 2 * kLanes) {
      x0 = v_load(x + q);
      x1 = v_load(x + q + kLanes);
    } else {
      x0 = v_load_masked(x + q, v_first(left < kLanes ? left : kLanes));
      x1 = left > kLanes ? v_load_masked(x + q + kLanes, v_first(left - kLanes)) : v_zero();
    }
    const VI words = round_words<kBounded>(x0, x1);
    most = larger(most, words);
    vi_store(to, _mm512_rol_epi32(words, 16));
  }
  return most;
}

/* Rows from `row` on, of the tile's block of the depth. */
static void round_rows(const Tile* tile, int64_t row, int64_t rows, Pairs* pairs) {
  float copy[kBlockK + kLanes];
  for (int64_t i = 0; i < rows; ++i) {
    const float* x = row_at(tile->args, row + i, tile->first_depth, tile->depth, copy);
    float* const to = pairs->a + i * kRowPairs;
    if (is_infinite(round_row<0>(x, tile->depth, to))) round_row<1>(x, tile->depth, to);
  }
}

/* ---- B */

template <int kBounded>
VFN VI round_panel(const float* b, int64_t depth, float* to) {
  VI most = vi_set1(0);
  for (int64_t q = 0; q < depth; q += 2, b += 2 * kLanes, to += kLanes) {
    const V upper = v_load(b);
    const V lower = q + 1 < depth ? v_load(b + kLanes) : v_zero();
    const VI words = round_words<kBounded>(lower, upper);
    most = larger(most, words);
    vi_store(to, join_words(words));
  }
  return most;
}

/* Pairs of rows that are bfloat16 already. */
VFN void pair_panel(const char* b, int64_t depth, float* to) {
  for (int64_t q = 0; q < depth; q += 2, b += 64, to += kLanes) {
    vi_store(to, _mm512_rol_epi32(vi_load(b), 16));
  }
}

static void round_panels(const Tile* tile, int panels, Pairs* pairs) {
  for (int v = 0; v < panels; ++v) {
    if (tile->args->b_is_bfloat16) {
      const int64_t column = tile->column + v * FOLIO_F32P16_COLUMNS;
      pair_panel(panel_row(tile->args, column, tile->first_depth), tile->depth,
                 pairs->b + v * kPanelPairs);
      continue;
    }
    const float* b = tile->b + v * tile->args->k * FOLIO_F32P16_COLUMNS;
    float* const to = pairs->b + v * kPanelPairs;
    if (is_infinite(round_panel<0>(b, tile->depth, to))) round_panel<1>(b, tile->depth, to);
  }
}

/* ---- products */

/* sum += the products of both halves. In words of its own: g++ 12 copies every sum before the
 * intrinsic, and then runs out of registers. */
VFN void dot2(V* sum, V a, V b) { __asm__("vdpbf16ps %2, %1, %0" : "+v"(*sum) : "v"(b), "v"(a)); }

/* A broadcast is for all panels: as an operand of each product it would be loaded as often. */
template <int kHeight, int kPanels>
VFN void pair_step(V (*sum)[kPanels], const float* a, const float* b) {
  V row[kPanels];
#pragma GCC unroll 2
  for (int v = 0; v < kPanels; ++v) row[v] = v_load(b + v * kPanelPairs);
#pragma GCC unroll 16
  for (int i = 0; i < kHeight; ++i) {
    const V pair = v_set1(a[i * kRowPairs]);
#pragma GCC unroll 2
    for (int v = 0; v < kPanels; ++v) dot2(&sum[i][v], pair, row[v]);
  }
}

template <int kHeight, int kPanels>
static void pair_tile(Tile* tile, const float* a, const float* b) {
  const FolioGemmF32* args = tile->args;
  float* c = args->c + tile->row * args->c_row_stride + tile->column;
  V sum[kHeight][kPanels];
  tile_begin<kHeight, kPanels>(tile, c, sum);
  const int64_t panel = panel_rows(args) * panel_row_bytes(args) / (int64_t)sizeof(float);
  const float* ahead = tile->ahead;
  TileEnd after = plan_end(tile, kHeight);
  int64_t left = (tile->depth + 1) / 2;
  for (; left >= kStepPairs; left -= kStepPairs, a += kStepPairs) {
    if (ahead) ahead = fetch_ahead(tile, ahead, panel);
    fetch_next(tile);
    if (after.rows > 0) {
      fetch_end<kPanels>(args, &after);
      --after.rows;
    }
#pragma GCC unroll 2
    for (int u = 0; u < kStepPairs; ++u, b += kLanes) {
      pair_step<kHeight, kPanels>(sum, a + u, b);
    }
  }
  for (; left > 0; --left, ++a, b += kLanes) pair_step<kHeight, kPanels>(sum, a, b);
  if (tile->is_last) tile_finish<kHeight, kPanels>(tile, sum);
  tile_store<kHeight, kPanels>(tile, c, sum);
}

typedef void (*PairTileFn)(Tile* tile, const float* a, const float* b);

#define FOLIO_TILES(panels)                                                                       \
  {                                                                                               \
    nullptr, pair_tile<1, panels>, pair_tile<2, panels>, pair_tile<3, panels>,                    \
        pair_tile<4, panels>, pair_tile<5, panels>, pair_tile<6, panels>, pair_tile<7, panels>,   \
        pair_tile<8, panels>, pair_tile<9, panels>, pair_tile<10, panels>, pair_tile<11, panels>, \
        pair_tile<12, panels>, pair_tile<13, panels>, pair_tile<14, panels>                       \
  }
/* [panels - 1][rows] */
const PairTileFn kPairTiles[kTilePanels][kTileRows + 1] = {FOLIO_TILES(1), FOLIO_TILES(2)};
#undef FOLIO_TILES

/* As plan_ahead; panels of bfloat16 have half as many lines. */
static void plan_panels_ahead(Tile* tile, const char* next, int64_t index, int64_t tiles) {
  const float* const lines = (const float*)(const void*)next;
  plan_ahead(tile, lines, index, tiles);
  const bool halves = tile->args->b_is_bfloat16 != 0;
  if (halves && tile->ahead && 2 * (tile->ahead - lines) >= tile->depth * kLanes) {
    tile->ahead = nullptr;
  }
}

/* Some rows against all of B, over a block of the depth: tiles of almost equal height. */
static void multiply_rows(Tile* tile, int64_t row, int64_t rows, Pairs* pairs) {
  const FolioGemmF32* args = tile->args;
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  const int64_t wide = kTilePanels * FOLIO_F32P16_COLUMNS;
  round_rows(tile, row, rows, pairs);
  for (int64_t j = 0; j < args->n; j += wide) {
    const int64_t left = args->n - j;
    const int panels = left <= wide - FOLIO_F32P16_COLUMNS ? 1 : kTilePanels;
    place_columns(tile, j, left, panels);
    tile->b = (const float*)(const void*)panel_row(args, j, tile->first_depth);
    const char* next = nullptr;
    if (args->next) {
      /* B was just made: it is there */
    } else if (left >= 2 * wide) {
      next = panel_row(args, j + wide, tile->first_depth);
    } else if (!tile->is_last) {
      next = panel_row(args, 0, tile->first_depth + tile->depth);
    }
    round_panels(tile, panels, pairs);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = rows * t / tiles;
      const int64_t end = rows * (t + 1) / tiles;
      tile->row = row + begin;
      plan_panels_ahead(tile, next, t, tiles);
      kPairTiles[panels - 1][end - begin](tile, pairs->a + begin * kRowPairs, pairs->b);
    }
  }
}

static __attribute__((noinline)) void multiply_pairs(const FolioGemmF32* args) {
  Pairs pairs;
  Tile tile = {};
  tile.args = args;
  tile.is_narrow = 1; /* Zen 4 */
  plan_next(&tile);
  const int64_t blocks = (args->m + kRows - 1) / kRows;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t row = args->m * block / blocks;
    const int64_t rows = args->m * (block + 1) / blocks - row;
    for (int64_t p = 0; p < args->k; p += kBlockK) {
      tile.depth = args->k - p < kBlockK ? args->k - p : kBlockK;
      tile.first_depth = p;
      tile.is_first = p == 0;
      tile.is_last = p + tile.depth == args->k;
      multiply_rows(&tile, row, rows, &pairs);
    }
  }
}

}  // namespace

template <void (*kElse)(const FolioGemmF32*)>
static void gemm_pairs_or(const FolioGemmF32* args) {
  if (args->m == 0 || args->n == 0) return;
  if (args->k == 0 || args->precision != kFolioMedium) {
    kElse(args);
  } else {
    multiply_pairs(args);
  }
}

void folio_fill_gemm__x86_avx512bf16(FolioKernels* table) {
  if (table->gemm_f32 == gemm_f32_linked__x86_avx512) {
    table->gemm_f32 = gemm_pairs_or<gemm_f32_linked__x86_avx512>;
  } else if (table->gemm_f32 == gemm_f32_narrow__x86_avx512) {
    table->gemm_f32 = gemm_pairs_or<gemm_f32_narrow__x86_avx512>;
  } else {
    table->gemm_f32 = gemm_pairs_or<gemm_f32__x86_avx512>;
  }
  table->multiplies_parts |= 1 << kFolioMedium;
}
