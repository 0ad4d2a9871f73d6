/* gemv_b16: the tiles of gemm_tile.inl for few rows, over panels of 16-bit elements that are
 * widened where they are multiplied. The including file defines before:
 * kHalfTiles[is_bfloat16][rows - 1][log2(panels)], null where there is none. */

/* A NaN of B need not be made quiet: the product with it is. */
template <int kRows, int kVectors>
VFN void add_row(const FolioGemmF32* args, const float* a, const V* row, V (*sum)[kVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const V scale = v_set1(a[i * args->a_row_stride]);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sum[i][v] = v_fma(scale, row[v], sum[i][v]);
  }
}

template <int kRows, int kPanels, int kIsFar>
VFN void half_sum(const FolioGemmF32* args, const char* b, V (*sum)[kPanels * kPanelVectors]) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const int64_t panel = args->k * FOLIO_F32P16_COLUMNS * 2;
  const float* a = args->a;
  constexpr int64_t kRowBytes = FOLIO_F32P16_COLUMNS * 2;
  PanelsAhead<kPanels, kIsFar> ahead(b, panel);
  for (int64_t p = 0; p < args->k; ++p, a += args->a_col_stride, b += kRowBytes) {
    ahead.fetch(args->k - p, kRowBytes);
    V row[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      row[v] = v_from_half(b + v / kPanelVectors * panel + v % kPanelVectors * kLanes * 2);
    }
    add_row<kRows, kVectors>(args, a, row, sum);
  }
}

/* Of bfloat16: two rows of B at a time. */
template <int kRows, int kPanels, int kIsFar>
VFN void pair_sum(const FolioGemmF32* args, const char* b, V (*sum)[kPanels * kPanelVectors]) {
  constexpr int kVectors = kPanels * kPanelVectors;
  constexpr int64_t kPairBytes = FOLIO_F32P16_COLUMNS * 4;
  const int64_t pairs = folio_bf16p16_rows(args->k) / 2;
  const int64_t panel = pairs * kPairBytes;
  const float* a = args->a;
  PanelsAhead<kPanels, kIsFar> ahead(b, panel);
  for (int64_t p = 0; p < pairs; ++p, b += kPairBytes) {
    ahead.fetch(pairs - p, kPairBytes);
    VI pair[kVectors];
    V row[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      pair[v] = vi_load(b + v / kPanelVectors * panel + v % kPanelVectors * kLanes * 4);
      row[v] = v_from_bits(vi_shift_left(pair[v], 16));
    }
    add_row<kRows, kVectors>(args, a, row, sum);
    a += args->a_col_stride;
    if (2 * p + 1 == args->k) return;
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) row[v] = v_from_bits(vi_and(pair[v], vi_set1(-0x10000)));
    add_row<kRows, kVectors>(args, a, row, sum);
    a += args->a_col_stride;
  }
}

template <int kRows, int kPanels, int kBfloat16, int kIsFar>
VFN void sum_b16(const FolioGemmF32* args, const char* b, V (*sum)[kPanels * kPanelVectors]) {
  if constexpr (kBfloat16) {
    pair_sum<kRows, kPanels, kIsFar>(args, b, sum);
  } else {
    half_sum<kRows, kPanels, kIsFar>(args, b, sum);
  }
}

template <int kRows, int kPanels, int kBfloat16>
static void half_tile(Tile* tile, const char* b) {
  constexpr int kVectors = kPanels * kPanelVectors;
  float* c = tile->args->c + tile->column;
  V sum[kRows][kVectors];
  tile_begin<kRows, kVectors>(tile, c, sum);
  if (tile->args->b_is_far) {
    sum_b16<kRows, kPanels, kBfloat16, 1>(tile->args, b, sum);
  } else {
    sum_b16<kRows, kPanels, kBfloat16, 0>(tile->args, b, sum);
  }
  tile_end<kRows, kVectors>(tile, c, sum);
}

typedef void (*HalfTileFn)(Tile* tile, const char* b);
