// Matrix product and all that only moves data. Tiles of 14 x 32: 28 of 32 registers hold sums.
#include "core/kernels/x86_avx512/x86_avx512.h"

#include "core/kernels/x86_avx512/vec.h"

#include "core/kernels/vector/math.inl"

#include "core/kernels/vector/turn.inl"

#include "core/kernels/vector/move.inl"

#include "core/kernels/vector/pack_bytes.inl"

constexpr int64_t kTileRows = 14;
constexpr int64_t kTilePanels = 2;
#include "core/kernels/vector/gemm_tile.inl"
/* Sums that rest in C at every 256 steps took 3 to 10 % longer (512 x 512 x 512, k of 768; Zen 5);
 * fewer rows of more than 768 pass panels from memory more often. */
constexpr int64_t kPlacedK = 3 * kBlockK;
constexpr int32_t kPlainRows = 64; /* more repay panels */
constexpr int64_t kPlacedFloats = kBlockRows * kPlacedK;

#define FOLIO_TILES(panels, a)                                                          \
  {                                                                                     \
    nullptr, gemm_tile<1, panels, a>, gemm_tile<2, panels, a>, gemm_tile<3, panels, a>, \
        gemm_tile<4, panels, a>, gemm_tile<5, panels, a>, gemm_tile<6, panels, a>,      \
        gemm_tile<7, panels, a>, gemm_tile<8, panels, a>, gemm_tile<9, panels, a>,      \
        gemm_tile<10, panels, a>, gemm_tile<11, panels, a>, gemm_tile<12, panels, a>,   \
        gemm_tile<13, panels, a>, gemm_tile<14, panels, a>                              \
  }
/* [how A is read][panels - 1][rows] */
static const TileFn kTiles[3][kTilePanels][kTileRows + 1] = {
    {FOLIO_TILES(1, kPackedA), FOLIO_TILES(2, kPackedA)},
    {FOLIO_TILES(1, kRowsA), FOLIO_TILES(2, kRowsA)},
    {FOLIO_TILES(1, kEvenA), FOLIO_TILES(2, kEvenA)},
};
#undef FOLIO_TILES

#define FOLIO_HALF_TILES(panels, a)                                                            \
  {                                                                                            \
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, gemm_tile<7, panels, a, 1>, \
        gemm_tile<8, panels, a, 1>, gemm_tile<9, panels, a, 1>, gemm_tile<10, panels, a, 1>,   \
        gemm_tile<11, panels, a, 1>, gemm_tile<12, panels, a, 1>, gemm_tile<13, panels, a, 1>, \
        gemm_tile<14, panels, a, 1>                                                            \
  }
/* The same, of half a panel less. */
static const TileFn kHalfPanelTiles[3][kTilePanels][kTileRows + 1] = {
    {},
    {FOLIO_HALF_TILES(1, kRowsA), FOLIO_HALF_TILES(2, kRowsA)},
    {FOLIO_HALF_TILES(1, kEvenA), FOLIO_HALF_TILES(2, kEvenA)},
};
#undef FOLIO_HALF_TILES

static const TileFn kVectorTiles[kVectorRows][4] = {
    {gemm_tile<1, 1, kStridedA>, gemm_tile<1, 2, kStridedA>, gemm_tile<1, 4, kStridedA>,
     gemm_tile<1, 8, kStridedA>},
    {gemm_tile<2, 1, kStridedA>, gemm_tile<2, 2, kStridedA>, gemm_tile<2, 4, kStridedA>,
     gemm_tile<2, 8, kStridedA>},
    {gemm_tile<3, 1, kStridedA>, gemm_tile<3, 2, kStridedA>, gemm_tile<3, 4, kStridedA>, nullptr},
    {gemm_tile<4, 1, kStridedA>, gemm_tile<4, 2, kStridedA>, gemm_tile<4, 4, kStridedA>, nullptr},
};
#include "core/kernels/vector/gemv_half.inl"

/* [is_bfloat16][rows - 1][log2(panels)] */
static const HalfTileFn kHalfTiles[2][kVectorRows][4] = {
    {{half_tile<1, 1, 0>, half_tile<1, 2, 0>, half_tile<1, 4, 0>, half_tile<1, 8, 0>},
     {half_tile<2, 1, 0>, half_tile<2, 2, 0>, half_tile<2, 4, 0>, half_tile<2, 8, 0>},
     {half_tile<3, 1, 0>, half_tile<3, 2, 0>, half_tile<3, 4, 0>, nullptr},
     {half_tile<4, 1, 0>, half_tile<4, 2, 0>, half_tile<4, 4, 0>, nullptr}},
    {{half_tile<1, 1, 1>, half_tile<1, 2, 1>, half_tile<1, 4, 1>, half_tile<1, 8, 1>},
     {half_tile<2, 1, 1>, half_tile<2, 2, 1>, half_tile<2, 4, 1>, half_tile<2, 8, 1>},
     {half_tile<3, 1, 1>, half_tile<3, 2, 1>, half_tile<3, 4, 1>, nullptr},
     {half_tile<4, 1, 1>, half_tile<4, 2, 1>, half_tile<4, 4, 1>, nullptr}},
};
#include "core/kernels/vector/gemm_rows.inl"

#include "core/kernels/vector/gemm.inl"

#include "core/kernels/vector/gemm_doubles.inl"

void gemm_f32_narrow__x86_avx512(const FolioGemmF32* args) { gemm_any(args, 1); }

#include "core/kernels/x86_avx512/gemm_links.inl"

void gemm_f32_linked__x86_avx512(const FolioGemmF32* args) { gemm_linked(args); }

void folio_fill_gemm__x86_avx512(FolioKernels* table) {
  fill_gemm(table);
  fill_gemm_doubles(table);
  fill_move(table);
  fill_pack_bytes(table);
}
