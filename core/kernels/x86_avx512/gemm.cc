// Matrix product and all that only moves data. Tiles of 14 x 32: 28 of 32 registers hold sums.
#include "core/kernels/vector/math.inl"
#include "core/kernels/vector/move.inl"
#include "core/kernels/x86_avx512/vec.h"
#include "core/kernels/x86_avx512/x86_avx512.h"

constexpr int64_t kTileRows = 14;
constexpr int64_t kTilePanels = 2;
#include "core/kernels/vector/gemm_tile.inl"

#define FOLIO_TILES(panels)                                                             \
  {                                                                                     \
    nullptr, gemm_tile<1, panels, 1>, gemm_tile<2, panels, 1>, gemm_tile<3, panels, 1>, \
        gemm_tile<4, panels, 1>, gemm_tile<5, panels, 1>, gemm_tile<6, panels, 1>,      \
        gemm_tile<7, panels, 1>, gemm_tile<8, panels, 1>, gemm_tile<9, panels, 1>,      \
        gemm_tile<10, panels, 1>, gemm_tile<11, panels, 1>, gemm_tile<12, panels, 1>,   \
        gemm_tile<13, panels, 1>, gemm_tile<14, panels, 1>                              \
  }
static const TileFn kTiles[kTilePanels][kTileRows + 1] = {
    FOLIO_TILES(1),
    FOLIO_TILES(2),
};
#undef FOLIO_TILES

static const TileFn kVectorTiles[kVectorRows][4] = {
    {gemm_tile<1, 1, 0>, gemm_tile<1, 2, 0>, gemm_tile<1, 4, 0>, gemm_tile<1, 8, 0>},
    {gemm_tile<2, 1, 0>, gemm_tile<2, 2, 0>, gemm_tile<2, 4, 0>, gemm_tile<2, 8, 0>},
    {gemm_tile<3, 1, 0>, gemm_tile<3, 2, 0>, gemm_tile<3, 4, 0>, nullptr},
    {gemm_tile<4, 1, 0>, gemm_tile<4, 2, 0>, gemm_tile<4, 4, 0>, nullptr},
};
#include "core/kernels/vector/gemm.inl"

void folio_fill_gemm__x86_avx512(FolioKernels* table) {
  fill_gemm(table);
  fill_move(table);
}
