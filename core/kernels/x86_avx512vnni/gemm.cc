// Matrix product of bytes: tiles of 12 x 32, 24 of 32 registers hold sums. A is read in place: a
// broadcast of four bytes serves 16 columns. A panel pair stays in cache while all rows pass.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

constexpr int kTileRows = 12;

typedef struct Tile {
  const FolioGemmU8* args;
  int64_t row, column;
} Tile;

template <int kRows, int kPanels>
static void gemm_tile(const Tile* tile) {
  const FolioGemmU8* args = tile->args;
  const int64_t whole = args->k / 4;
  const int64_t tail = args->k % 4;
  const int64_t panel = (args->k + 3) / 4 * FOLIO_S8P16K4_GROUP;
  const int64_t stride = args->a_row_stride;
  const uint8_t* a = args->a + tile->row * stride;
  const char* b = (const char*)args->b + tile->column / kColumns * panel;
  __m512i sum[kRows][kPanels];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) sum[i][v] = _mm512_setzero_si512();
  }
  for (int64_t g = 0; g < whole; ++g) {
    __m512i w[kPanels];
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) w[v] = _mm512_load_si512(b + v * panel);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      int32_t four;
      __builtin_memcpy(&four, a + i * stride, 4);
      const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) dot4(&sum[i][v], x, w[v]);
    }
    a += 4;
    b += FOLIO_S8P16K4_GROUP;
  }
  if (tail != 0) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      uint32_t last = 0;
      for (int64_t t = 0; t < tail; ++t) last |= (uint32_t)a[i * stride + t] << (8 * t);
      const __m512i x = _mm512_set1_epi32((int)last);
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) {
        dot4(&sum[i][v], x, _mm512_load_si512(b + v * panel));
      }
    }
  }
  const int64_t size = args->sums.to == kFolioToByte ? 1 : 4;
  char* c = (char*)args->c + (tile->row * args->c_row_stride + tile->column) * size;
#pragma GCC unroll 4
  for (int v = 0; v < kPanels; ++v) {
    const PanelSums p =
        load_panel(&args->sums, tile->column + v * kColumns, args->n - tile->column - v * kColumns);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      store_panel(&args->sums, &p, sum[i][v], tile->row + i,
                  c + (i * args->c_row_stride + v * kColumns) * size);
    }
  }
}

typedef void (*TileFn)(const Tile* tile);

#define FOLIO_TILES(panels)                                                                       \
  {                                                                                               \
    nullptr, gemm_tile<1, panels>, gemm_tile<2, panels>, gemm_tile<3, panels>,                    \
        gemm_tile<4, panels>, gemm_tile<5, panels>, gemm_tile<6, panels>, gemm_tile<7, panels>,   \
        gemm_tile<8, panels>, gemm_tile<9, panels>, gemm_tile<10, panels>, gemm_tile<11, panels>, \
        gemm_tile<12, panels>                                                                     \
  }
static const TileFn kTiles[2][kTileRows + 1] = {FOLIO_TILES(1), FOLIO_TILES(2)};
#undef FOLIO_TILES

/* Few rows: B is streamed once, four panels side by side. */
constexpr int64_t kVectorRows = 4;
static const TileFn kVectorTiles[kVectorRows + 1] = {nullptr, gemm_tile<1, 4>, gemm_tile<2, 4>,
                                                     gemm_tile<3, 4>, gemm_tile<4, 4>};

static void gemm_u8__x86_avx512vnni(const FolioGemmU8* args) {
  if (args->m == 0) return;
  Tile tile = {args, 0, 0};
  if (args->m <= kVectorRows) {
    /* Four panels that begin inside of B: the last of them may be narrower. */
    for (; args->n - tile.column > 3 * kColumns; tile.column += 4 * kColumns) {
      kVectorTiles[args->m](&tile);
    }
  }
  const int64_t tiles = (args->m + kTileRows - 1) / kTileRows;
  while (tile.column < args->n) {
    const int panels = args->n - tile.column > kColumns ? 2 : 1;
    for (int64_t t = 0; t < tiles; ++t) {
      tile.row = args->m * t / tiles;
      kTiles[panels - 1][args->m * (t + 1) / tiles - tile.row](&tile);
    }
    tile.column += panels * kColumns;
  }
}

void folio_fill_gemm__x86_avx512vnni(FolioKernels* table) {
  table->gemm_u8 = gemm_u8__x86_avx512vnni;
}
