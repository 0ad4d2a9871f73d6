/* Depthwise filters where registers are few: kPixels neighbours at a time, whose sums take turns,
 * so that the units need not wait for one sum's chain; what is loaded of the image serves all taps
 * of a row that see it. Of one sum at a time, Zen 3 has 6 in flight: half of what its units can.
 * The order of each sum is that of filter_lanes: equal bits. */

constexpr int64_t kGroupPixels = 8;
constexpr int kPairVectors = 2; /* a cache line of channels */

/* Columns of a row, if it has rows of 3, 5 or 7; else 0. */
static int64_t row_columns(const FolioWindowF32* args) {
  for (int64_t columns = 3; columns <= 7; columns += 2) {
    if (has_rows(args, columns)) return columns;
  }
  return 0;
}

/* Sums of kPixels pixels from x[t] + at on, and their end. kStride: columns from one window to the
 * next; 0: anything else than 1 and 2. */
template <int kColumns, int kStride, int kPixels>
VFN void filter_group(const FolioWindowF32* args, int64_t step, int64_t c, int64_t at,
                      WindowEnd end, float* y) {
  V sum[kPixels];
  const V start = args->bias ? v_load(args->bias + c) : v_zero();
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) sum[i] = start;
  for (int64_t t = 0; t < args->taps; t += kColumns) {
    V w[kColumns];
#pragma GCC unroll 8
    for (int k = 0; k < kColumns; ++k) w[k] = v_load(args->w[t + k] + c);
    const float* from = args->x[t] + at;
    if constexpr (kStride == 0) {
#pragma GCC unroll 8
      for (int k = 0; k < kColumns; ++k, from += step) {
#pragma GCC unroll 8
        for (int i = 0; i < kPixels; ++i) {
          v_add_product(&sum[i], w[k], v_load(from + i * args->x_step));
        }
      }
    } else {
#pragma GCC unroll 24
      for (int j = 0; j < (kPixels - 1) * kStride + kColumns; ++j, from += step) {
        const V x = v_load(from);
#pragma GCC unroll 8
        for (int k = 0; k < kColumns; ++k) {
          const int seen = j - k; /* from the first column of pixel seen / kStride */
          if (seen < 0 || seen % kStride != 0 || seen / kStride >= kPixels) continue;
          v_add_product(&sum[seen / kStride], w[k], x);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) v_store(y + i * args->y_step, v_clip(sum[i], end.lo, end.hi));
}

template <int kColumns, int kStride, int kPixels>
VFN void filter_vectors(const FolioWindowF32* args, int64_t step, int64_t c, int vectors,
                        int64_t line, int64_t pixel, WindowEnd end) {
  int64_t at = line * args->x_line + pixel * args->x_step + c;
  float* y = args->y + line * args->y_line + pixel * args->y_step + c;
  for (int v = 0; v < vectors; ++v, at += kLanes, c += kLanes, y += kLanes) {
    filter_group<kColumns, kStride, kPixels>(args, step, c, at, end, y);
  }
}

/* Pixels that are too few for a group are computed with some of those before them, once more. */
template <int kColumns, int kStride>
static void filter_by_rows(const FolioWindowF32* args, int64_t step) {
  constexpr int64_t kHalf = kGroupPixels / 2;
  const WindowEnd end = window_bounds(args->activation, args->clip_lo, args->clip_hi);
  const int64_t pixels = args->pixels;
  for (int64_t c = 0, left = args->channels / kLanes; left > 0; left -= kPairVectors) {
    const int vectors = left < kPairVectors ? (int)left : kPairVectors;
    for (int64_t l = 0; l < args->lines; ++l) {
      int64_t i = 0;
      while (i < pixels) {
        const int64_t rest = pixels - i;
        if (pixels >= kGroupPixels && rest > kHalf) {
          i = rest < kGroupPixels ? pixels - kGroupPixels : i;
          filter_vectors<kColumns, kStride, kGroupPixels>(args, step, c, vectors, l, i, end);
          i += kGroupPixels;
        } else if (pixels >= kHalf) {
          i = rest < kHalf ? pixels - kHalf : i;
          filter_vectors<kColumns, kStride, kHalf>(args, step, c, vectors, l, i, end);
          i += kHalf;
        } else {
          filter_vectors<kColumns, kStride, 1>(args, step, c, vectors, l, i, end);
          ++i;
        }
      }
    }
    c += vectors * kLanes;
  }
}

template <int kColumns>
VFN void filter_columns(const FolioWindowF32* args) {
  const int64_t step = args->x[1] - args->x[0];
  if (args->x_step == step) return filter_by_rows<kColumns, 1>(args, step);
  if (args->x_step == 2 * step) return filter_by_rows<kColumns, 2>(args, step);
  filter_by_rows<kColumns, 0>(args, step);
}

/* Whole vectors of channels; 0: this filter is none that it knows. */
VFN int filter_rows(const FolioWindowF32* args) {
  if (args->activation == kFolioActLeakyRelu) return 0;
  switch (row_columns(args)) {
    case 3:
      filter_columns<3>(args);
      return 1;
    case 5:
      filter_columns<5>(args);
      return 1;
    case 7:
      filter_columns<7>(args);
      return 1;
    default:
      return 0;
  }
}
