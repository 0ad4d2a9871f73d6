/* gemv_b16: the tiles of gemm_tile.inl for few rows, over panels of 16-bit elements that are widened
 * where they are multiplied. The including file defines before: kHalfTiles[is_bfloat16][rows -
 * 1][log2(panels)], null where there is none. */

template <int kBfloat16>
VFN V v_from_b16(const char* from) {
  /* A NaN need not be made quiet here: the product with it is. */
  return kBfloat16 ? v_from_bits(vi_shift_left(vi_load_u16(from), 16)) : v_from_half(from);
}

template <int kRows, int kPanels, int kBfloat16, int kIsFar>
VFN void half_sum(const FolioGemmF32* args, const char* b, V (*sum)[kPanels * kPanelVectors]) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const int64_t panel = args->k * FOLIO_F32P16_COLUMNS * 2;
  const float* a = args->a;
  constexpr int64_t kRowBytes = FOLIO_F32P16_COLUMNS * 2;
  using Ahead = PanelsAhead<kPanels, kIsFar>;
  Ahead ahead = {b + Ahead::kBytes, panel};
  for (int64_t p = 0; p < args->k; ++p, a += args->a_col_stride, b += kRowBytes) {
    ahead.fetch(args->k - p, kRowBytes);
    V row[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      row[v] = v_from_b16<kBfloat16>(b + v / kPanelVectors * panel +
                                     v % kPanelVectors * kLanes * 2);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V scale = v_set1(a[i * args->a_row_stride]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[i][v] = v_fma(scale, row[v], sum[i][v]);
    }
  }
}

template <int kRows, int kPanels, int kBfloat16>
static void half_tile(Tile* tile, const char* b) {
  constexpr int kVectors = kPanels * kPanelVectors;
  float* c = tile->args->c + tile->column;
  V sum[kRows][kVectors];
  tile_begin<kRows, kVectors>(tile, c, sum);
  if (tile->args->b_is_far) {
    half_sum<kRows, kPanels, kBfloat16, 1>(tile->args, b, sum);
  } else {
    half_sum<kRows, kPanels, kBfloat16, 0>(tile->args, b, sum);
  }
  tile_finish<kRows, kVectors>(tile, sum);
  tile_store<kRows, kVectors>(tile, c, sum);
}

typedef void (*HalfTileFn)(Tile* tile, const char* b);
