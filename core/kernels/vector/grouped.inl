/* Filters over small groups of channels that lie side by side; see FolioWindowF32, grouped_f32.
 *
 * A vector of outputs is a vector of channels: each row of weights is multiplied by the one channel
 * that every lane's group has there. Groups smaller than a vector take it from the pixel's own
 * vector by a permutation, larger ones read one number for all lanes. Some pixels side by side,
 * of any lines, share the weights. */

/* Pixels side by side: the more sums, the less often weights are loaded and the longer a sum may
 * take: what fits in the registers. Groups of 16 are two vectors of 8 lanes, which share a pixel's
 * numbers. */
constexpr int kGroupedPixels = 8;
constexpr int kWidePixels = 6; /* of two vectors */

/* Where some pixels stand in x, from the taps on, and in y. */
template <int kPixels>
struct GroupedPlaces {
  int64_t from[kPixels];
  int64_t to[kPixels];
};

/* The next pixel. */
typedef struct GroupedAt {
  int64_t line, pixel;
} GroupedAt;

/* The places of the next kPixels pixels; those beyond the last are the last. */
template <int kPixels>
VFN void grouped_next(const FolioWindowF32* args, GroupedAt* at, GroupedPlaces<kPixels>* places) {
  for (int p = 0; p < kPixels; ++p) {
    places->from[p] = at->line * args->x_line + at->pixel * args->x_step;
    places->to[p] = at->line * args->y_line + at->pixel * args->y_step;
    if (at->pixel + 1 < args->pixels) {
      ++at->pixel;
    } else if (at->line + 1 < args->lines) {
      at->pixel = 0;
      ++at->line;
    }
  }
}

VFN const float* grouped_weights(const FolioWindowF32* args, int64_t t, int64_t c) {
  return args->w[t] + c / FOLIO_F32P16_COLUMNS * args->w_panel + c % FOLIO_F32P16_COLUMNS;
}

/* Groups smaller than a vector: `lane` is where each lane's group begins. */
template <int kPixels>
VFN void grouped_permuted(const FolioWindowF32* args, int64_t c, VM mask, VI lane,
                          const int64_t* from, V* sum) {
  for (int64_t t = 0; t < args->taps; ++t) {
    const float* x = args->x[t] + c;
    V in[kPixels];
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) in[p] = v_load_masked(x + from[p], mask);
    const float* w = grouped_weights(args, t, c);
    VI at = lane;
    for (int64_t s = 0; s < args->group; ++s, w += FOLIO_F32P16_COLUMNS) {
      const V weights = v_load(w);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) v_add_product(&sum[p], weights, v_permute(in[p], at));
      at = vi_add(at, vi_set1(1));
    }
  }
}

/* Groups of a vector or some: all lanes are of one group. */
template <int kPixels, int kVectors>
VFN void grouped_broadcast(const FolioWindowF32* args, int64_t c, const int64_t* from,
                           V (*sum)[kVectors]) {
  const int64_t begin = c / args->group * args->group;
  for (int64_t t = 0; t < args->taps; ++t) {
    const float* x[kPixels];
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) x[p] = args->x[t] + from[p] + begin;
    const float* w = grouped_weights(args, t, c);
    for (int64_t s = 0; s < args->group; s += 8) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i, w += FOLIO_F32P16_COLUMNS) {
        V weights[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) weights[v] = v_load(w + v * kLanes);
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p) {
          const V number = v_set1(x[p][s + i]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) v_add_product(&sum[p][v], weights[v], number);
        }
      }
    }
  }
}

/* A masked store of all lanes takes some of AVX2's CPUs longer than the products before it. */
VFN void grouped_store(const FolioWindowF32* args, V sum, VM mask, int is_whole, float* y) {
  const V end = v_activate(sum, args->activation, args->clip_lo, args->clip_hi);
  if (kLanes == 8 && is_whole) {
    v_store(y, end);
  } else {
    v_store_masked(y, mask, end);
  }
}

/* All pixels share the weights of kVectors whole vectors. */
template <int kPixels, int kVectors>
VFN void grouped_wide(const FolioWindowF32* args, int64_t c, GroupedAt* at) {
  const VM all = v_first(kLanes);
  GroupedPlaces<kPixels> places;
  grouped_next(args, at, &places);
  V sum[kPixels][kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const V start = filter_start(args, c + v * kLanes, all);
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sum[p][v] = start;
  }
  grouped_broadcast<kPixels, kVectors>(args, c, places.from, sum);
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    float* const y = args->y + places.to[p] + c;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) grouped_store(args, sum[p][v], all, 1, y + v * kLanes);
  }
}

template <int kPixels>
VFN void grouped_narrow(const FolioWindowF32* args, int64_t c, VM mask, VI lane, GroupedAt* at) {
  GroupedPlaces<kPixels> places;
  grouped_next(args, at, &places);
  V sum[kPixels];
  const V start = filter_start(args, c, mask);
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) sum[p] = start;
  grouped_permuted<kPixels>(args, c, mask, lane, places.from, sum);
  const int is_whole = c + kLanes <= args->channels;
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    grouped_store(args, sum[p], mask, is_whole, args->y + places.to[p] + c);
  }
}

/* Whether the taps are threes of neighbouring columns, a pixel's step from each other. */
static int has_columns(const FolioWindowF32* args) {
  return args->pixels >= kGroupedPixels && has_rows(args, 3) &&
         args->x[1] - args->x[0] == args->x_step;
}

/* Neighbouring pixels under threes of columns, groups smaller than a vector: what is permuted of a
 * pixel of the image serves three sums. `from` and y are those of the first pixel. */
template <int kPixels>
VFN void grouped_columns(const FolioWindowF32* args, int64_t c, VM mask, VI lane, int64_t from,
                         float* y) {
  const int64_t x_step = args->x_step;
  V sum[kPixels];
  const V start = filter_start(args, c, mask);
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) sum[p] = start;
  for (int64_t t = 0; t < args->taps; t += 3) {
    const float* x = args->x[t] + c + from;
    const float* w0 = grouped_weights(args, t, c);
    const float* w1 = grouped_weights(args, t + 1, c);
    const float* w2 = grouped_weights(args, t + 2, c);
    VI at = lane;
    for (int64_t s = 0; s < args->group; ++s) {
      const V a = v_load(w0 + s * FOLIO_F32P16_COLUMNS);
      const V b = v_load(w1 + s * FOLIO_F32P16_COLUMNS);
      const V d = v_load(w2 + s * FOLIO_F32P16_COLUMNS);
      const float* pixel = x;
#pragma GCC unroll 10
      for (int p = 0; p < kPixels + 2; ++p, pixel += x_step) {
        const V spread = v_permute(v_load_masked(pixel, mask), at);
        if (p >= 2) v_add_product(&sum[p - 2], d, spread);
        if (p >= 1 && p <= kPixels) v_add_product(&sum[p - 1], b, spread);
        if (p < kPixels) v_add_product(&sum[p], a, spread);
      }
      at = vi_add(at, vi_set1(1));
    }
  }
  const int is_whole = c + kLanes <= args->channels;
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) grouped_store(args, sum[p], mask, is_whole, y + p * args->y_step);
}

/* The last pixels of a line are computed with some before them once more. */
VFN void grouped_column_lines(const FolioWindowF32* args, int64_t c, VM mask, VI lane) {
  for (int64_t l = 0; l < args->lines; ++l) {
    const int64_t line = l * args->x_line;
    float* const y = args->y + l * args->y_line + c;
    int64_t i = 0;
    for (; i + kGroupedPixels / 2 < args->pixels; i += kGroupedPixels) {
      i = i + kGroupedPixels <= args->pixels ? i : args->pixels - kGroupedPixels;
      grouped_columns<kGroupedPixels>(args, c, mask, lane, line + i * args->x_step,
                                      y + i * args->y_step);
    }
    if (i >= args->pixels) continue;
    i = args->pixels - kGroupedPixels / 2;
    grouped_columns<kGroupedPixels / 2>(args, c, mask, lane, line + i * args->x_step,
                                        y + i * args->y_step);
  }
}

/* All pixels of some channels, whose weights are in L1 meanwhile. Bits do not depend on how many
 * pixels are side by side. */
template <int kPixels, int kVectors>
VFN void grouped_vectors(const FolioWindowF32* args, int64_t c) {
  int64_t left = args->lines * args->pixels;
  GroupedAt at = {0, 0};
  for (; left > kPixels / 2; left -= kPixels) grouped_wide<kPixels, kVectors>(args, c, &at);
  if (left > 2) {
    grouped_wide<kPixels / 2, kVectors>(args, c, &at);
  } else if (left > 0) {
    grouped_wide<2, kVectors>(args, c, &at);
  }
}

VFN void grouped_lanes(const FolioWindowF32* args, int64_t c, VM mask, VI lane) {
  int64_t left = args->lines * args->pixels;
  GroupedAt at = {0, 0};
  for (; left > kGroupedPixels / 2; left -= kGroupedPixels) {
    grouped_narrow<kGroupedPixels>(args, c, mask, lane, &at);
  }
  if (left > 2) {
    grouped_narrow<kGroupedPixels / 2>(args, c, mask, lane, &at);
  } else if (left > 0) {
    grouped_narrow<2>(args, c, mask, lane, &at);
  }
}

static void FOLIO_LEVEL(grouped_f32)(const FolioWindowF32* args) {
  constexpr int64_t kPair = 2 * kLanes;
  if (args->group % kLanes == 0) {
    if (kPair == FOLIO_F32P16_COLUMNS && args->group % kPair == 0) {
      for (int64_t c = 0; c < args->channels; c += kPair) grouped_vectors<kWidePixels, 2>(args, c);
    } else {
      for (int64_t c = 0; c < args->channels; c += kLanes) {
        grouped_vectors<kGroupedPixels, 1>(args, c);
      }
    }
    return;
  }
  int32_t begins[kLanes];
  for (int i = 0; i < kLanes; ++i) begins[i] = (int32_t)(i / args->group * args->group);
  const VI lane = vi_load(begins);
  const int columns = has_columns(args);
  for (int64_t c = 0; c < args->channels; c += kLanes) {
    const int64_t left = args->channels - c;
    const VM mask = v_first(left < kLanes ? left : kLanes);
    if (columns) {
      grouped_column_lines(args, c, mask, lane);
    } else {
      grouped_lanes(args, c, mask, lane);
    }
  }
}
