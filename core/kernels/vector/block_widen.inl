/* Weights of small integers in blocks as F32P16 panels.
 *
 * 4, 8 or 16 bytes of each of 16 columns are turned into quads, vectors of four bytes of a column a
 * lane: a code of each column after the other comes out of their low bits.
 *
 * The including file defines after: the functions that are only declared here. */

constexpr int kPanelVectors = FOLIO_F32P16_COLUMNS / kLanes;

/* quads[d][v]: in lane c bytes 4 d to 4 d + 3 at rows[v * kLanes + c] + at; kQuads is 1, 2 or 4. */
template <int kQuads>
VFN void load_quads(const uint8_t* const* rows, int64_t at, VI (*quads)[kPanelVectors]);

/* The codes in the low bits of each lane. */
template <int kBits>
VFN V low_code_floats(VI quads);

/* Of every lane levels[the low 4 bits]. */
VFN V look_up_levels(const float* levels, VI quads);

/* p[lane * stride] of any alignment, 16 * stride < 2^31. */
VFN V gather_floats(const void* p, int64_t stride);

/* 4 to 16 bytes of one row of 16. */
template <int kQuads>
VFN __m128i load_row(const uint8_t* p) {
  if constexpr (kQuads == 4) {
    return _mm_loadu_si128((const __m128i*)p);
  } else if constexpr (kQuads == 2) {
    return _mm_loadl_epi64((const __m128i*)p);
  } else {
    return _mm_loadu_si32(p);
  }
}

typedef struct PanelScales {
  const float* levels; /* or null */
  V zeros[kPanelVectors];
  V scales[kPanelVectors];
} PanelScales;

/* Of one block of 16 columns, the last of which stand for those that are not there. */
VFN PanelScales load_scales(const FolioBlockWeights* w, int64_t blocks, int64_t column,
                            int64_t block) {
  PanelScales of;
  of.levels = w->levels;
  const int64_t at = column * blocks + block;
  if (column + FOLIO_F32P16_COLUMNS <= w->n && blocks < INT32_MAX / FOLIO_F32P16_COLUMNS) {
#pragma GCC unroll 2
    for (int v = 0; v < kPanelVectors; ++v) {
      const int64_t first = at + v * kLanes * blocks;
      of.scales[v] = gather_floats((const char*)w->scales + 4 * first, blocks);
      of.zeros[v] =
          w->zeros ? gather_floats(w->zeros + first, blocks) : v_set1((float)(1 << (w->bits - 1)));
    }
    return of;
  }
  float zeros[FOLIO_F32P16_COLUMNS] = {0};
  float scales[FOLIO_F32P16_COLUMNS] = {0};
  for (int64_t j = 0; column + j < w->n; ++j) {
    scales[j] = load_scale(w, at + j * blocks);
    zeros[j] = w->zeros ? w->zeros[at + j * blocks] : (float)(1 << (w->bits - 1));
  }
  for (int v = 0; v < kPanelVectors; ++v) {
    of.scales[v] = v_load(scales + v * kLanes);
    of.zeros[v] = v_load(zeros + v * kLanes);
  }
  return of;
}

/* Weights in the low bits of each lane, of vector v of a panel. */
template <int kKind>
VFN V weigh_codes(VI quads, const PanelScales& of, int v) {
  if constexpr (kKind == kFolioBlockLevels) {
    return v_mul(look_up_levels(of.levels, quads), of.scales[v]);
  } else {
    return v_mul(v_sub(low_code_floats<kKind>(quads), of.zeros[v]), of.scales[v]);
  }
}

/* The elements of so many quads, at most `count`: rows of a panel from dst on. */
template <int kKind, int kQuads>
VFN void widen_quads(const uint8_t* const* rows, int64_t at, const PanelScales& of, int64_t count,
                     float* dst) {
  constexpr int kBits = bits_of_codes(kKind);
  constexpr int kCodes = 32 / kBits;
  VI quads[kQuads][kPanelVectors];
  load_quads<kQuads>(rows, at, quads);
#pragma GCC unroll 4
  for (int d = 0; d < kQuads; ++d) {
#pragma GCC unroll 16
    for (int code = 0; code < kCodes; ++code, dst += FOLIO_F32P16_COLUMNS) {
      if (count-- <= 0) return;
#pragma GCC unroll 2
      for (int v = 0; v < kPanelVectors; ++v) {
        VI low = quads[d][v];
        if (kKind == kFolioBlockLevels && code % 2 == 0) low = vi_shift_right(low, kBits);
        v_store(dst + v * kLanes, weigh_codes<kKind>(low, of, v));
        if (kKind != kFolioBlockLevels) {
          quads[d][v] = vi_shift_right(quads[d][v], kBits);
        } else if (code % 2 == 1) { /* a byte holds the first in its high bits */
          quads[d][v] = vi_shift_right(quads[d][v], 2 * kBits);
        }
      }
    }
  }
}

/* Elements [first, end) of up to 16 columns. */
template <int kKind, int kQuads>
static void widen_panel(const FolioBlockWeights* w, const BlockShape& s, int64_t column,
                        int64_t first, int64_t end, float* dst) {
  constexpr int64_t kPlaces = 8 / bits_of_codes(kKind);
  const uint8_t* rows[FOLIO_F32P16_COLUMNS];
  for (int64_t j = 0; j < FOLIO_F32P16_COLUMNS; ++j) {
    const int64_t n = column + j < w->n ? column + j : w->n - 1;
    rows[j] = (const uint8_t*)w->codes + n * s.bytes;
  }
  int64_t p = first;
  while (p < end) {
    const int64_t block = p / w->block;
    const PanelScales of = load_scales(w, s.blocks, column, block);
    const int64_t stop = end < (block + 1) * w->block ? end : (block + 1) * w->block;
    for (; p < stop; p += 4 * kQuads * kPlaces) {
      widen_quads<kKind, kQuads>(rows, p / kPlaces, of, stop - p,
                                 dst + (p - first) * FOLIO_F32P16_COLUMNS);
    }
  }
}

template <int kKind>
static auto panel_widener(int64_t blob) {
  if constexpr (kKind == kFolioBlockLevels) {
    return widen_panel<kKind, 4>;
  } else {
    return blob >= 16  ? widen_panel<kKind, 4>
           : blob == 8 ? widen_panel<kKind, 2>
                       : widen_panel<kKind, 1>;
  }
}

template <int kKind>
static void widen_panels(const FolioBlockWeights* w, int64_t first, int64_t depth, float* dst) {
  const BlockShape s = block_shape(w->k, w->block, bits_of_codes(kKind));
  const auto panel = panel_widener<kKind>(s.blob);
  for (int64_t n = 0; n < w->n; n += FOLIO_F32P16_COLUMNS, dst += depth * FOLIO_F32P16_COLUMNS) {
    panel(w, s, n, first, first + depth, dst);
  }
}

static void FOLIO_LEVEL(block_widen_f32p16)(const FolioBlockWeights* w, int64_t first,
                                            int64_t depth, float* dst) {
  if (w->levels) {
    widen_panels<kFolioBlockLevels>(w, first, depth, dst);
  } else if (w->bits == 2) {
    widen_panels<2>(w, first, depth, dst);
  } else if (w->bits == 4) {
    widen_panels<4>(w, first, depth, dst);
  } else {
    widen_panels<8>(w, first, depth, dst);
  }
}
