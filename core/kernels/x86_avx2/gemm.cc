// Matrix product and all that only moves data. Tiles of 6 x 16: 12 of 16 registers hold sums.
#include "core/kernels/x86_avx2/x86_avx2.h"

#include "core/kernels/x86_avx2/vec.h"

#include "core/kernels/vector/math.inl"

#include "core/kernels/vector/turn.inl"

#include "core/kernels/vector/move.inl"

#include "core/kernels/vector/pack_bytes.inl"

constexpr int64_t kTileRows = 6;
constexpr int64_t kTilePanels = 1;
#include "core/kernels/vector/gemm_tile.inl"
/* Sums that rest in C at every 256 steps took 2 to 6 % longer (1024 x 1024 x 1024, Zen 4). */
constexpr int64_t kPlacedK = 4 * kBlockK;
constexpr int32_t kPlainRows = 16; /* more repay panels */
constexpr int64_t kPlacedFloats = kBlockRows * kBlockK;

#define FOLIO_TILES(panels, a)                                                          \
  {                                                                                     \
    nullptr, gemm_tile<1, panels, a>, gemm_tile<2, panels, a>, gemm_tile<3, panels, a>, \
        gemm_tile<4, panels, a>, gemm_tile<5, panels, a>, gemm_tile<6, panels, a>       \
  }
/* [how A is read][panels - 1][rows] */
static const TileFn kTiles[3][kTilePanels][kTileRows + 1] = {
    {FOLIO_TILES(1, kPackedA)},
    {FOLIO_TILES(1, kRowsA)},
    {FOLIO_TILES(1, kEvenA)},
};
#undef FOLIO_TILES

#define FOLIO_HALF_TILES(a)                                                  \
  {                                                                          \
    nullptr, nullptr, nullptr, gemm_tile<3, 1, a, 1>, gemm_tile<4, 1, a, 1>, \
        gemm_tile<5, 1, a, 1>, gemm_tile<6, 1, a, 1>                         \
  }
/* The same, of half a panel. */
static const TileFn kHalfPanelTiles[3][kTilePanels][kTileRows + 1] = {
    {}, {FOLIO_HALF_TILES(kRowsA)}, {FOLIO_HALF_TILES(kEvenA)}};
#undef FOLIO_HALF_TILES

static const TileFn kVectorTiles[kVectorRows][4] = {
    {gemm_tile<1, 1, kStridedA>, gemm_tile<1, 2, kStridedA>, gemm_tile<1, 4, kStridedA>, nullptr},
    {gemm_tile<2, 1, kStridedA>, gemm_tile<2, 2, kStridedA>, nullptr, nullptr},
    {gemm_tile<3, 1, kStridedA>, gemm_tile<3, 2, kStridedA>, nullptr, nullptr},
    {gemm_tile<4, 1, kStridedA>, nullptr, nullptr, nullptr},
};
#include "core/kernels/vector/gemv_half.inl"

/* [is_bfloat16][rows - 1][log2(panels)] */
static const HalfTileFn kHalfTiles[2][kVectorRows][4] = {
    {{half_tile<1, 1, 0>, half_tile<1, 2, 0>, half_tile<1, 4, 0>, nullptr},
     {half_tile<2, 1, 0>, half_tile<2, 2, 0>, nullptr, nullptr},
     {half_tile<3, 1, 0>, half_tile<3, 2, 0>, nullptr, nullptr},
     {half_tile<4, 1, 0>, nullptr, nullptr, nullptr}},
    {{half_tile<1, 1, 1>, half_tile<1, 2, 1>, half_tile<1, 4, 1>, nullptr},
     {half_tile<2, 1, 1>, half_tile<2, 2, 1>, nullptr, nullptr},
     {half_tile<3, 1, 1>, half_tile<3, 2, 1>, nullptr, nullptr},
     {half_tile<4, 1, 1>, nullptr, nullptr, nullptr}},
};
#include "core/kernels/vector/gemm_rows.inl"

#include "core/kernels/vector/gemm.inl"

#include "core/kernels/vector/gemm_doubles.inl"

#include "core/kernels/x86_avx2/gemm_short.inl"

void folio_fill_gemm__x86_avx2(FolioKernels* table) {
  fill_gemm(table);
  table->gemm_f32 = gemm_short_or_any;
  fill_gemm_doubles(table);
  fill_move(table);
  fill_pack_bytes(table);
}
