/* Lines of pixels with channels side by side; see FolioWindowF32.
 *
 * Filters: one vector of channels at a time over all pixels, of which kTogether take turns: what one
 * line read of the image is in L1 when the next one reads it. Maxima and sums have no weights: all
 * channels of a pixel, in the order of memory. */

constexpr int kTogether = 8; /* sums: of one alone, each product would wait for the one before */

enum WindowKind { kMaxWindow, kSumWindow };

VFN V filter_start(const FolioWindowF32* args, int64_t c, VM mask) {
  return args->bias ? v_load_masked(args->bias + c, mask) : v_zero();
}

/* Of a depthwise filter every function but LeakyRelu clamps: nothing to decide at each pixel, and
 * the bits of v_activate. */
typedef struct WindowEnd {
  V lo, hi;
} WindowEnd;

VFN WindowEnd window_bounds(int32_t activation, float lo, float hi) {
  const float inf = __builtin_inff();
  const int is_clip = activation == kFolioActClip;
  const int is_relu = activation == kFolioActRelu;
  const WindowEnd end = {v_set1(is_clip ? lo : is_relu ? 0.0f : -inf), v_set1(is_clip ? hi : inf)};
  return end;
}

template <int kWhole>
VFN V window_load(const float* p, VM mask) {
  return kWhole ? v_load(p) : v_load_masked(p, mask);
}

/* kPixels neighbours from x[t] + at on; kWhole: the mask takes every lane. */
template <int kPixels, int kWhole>
VFN void filter_pixels_at(const FolioWindowF32* args, int64_t c, int64_t at, VM mask, V start,
                          WindowEnd end, float* y) {
  const int64_t x_step = args->x_step;
  V sum[kPixels];
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) sum[i] = start;
  for (int64_t t = 0; t < args->taps; ++t) {
    const V w = window_load<kWhole>(args->w[t] + c, mask);
    const float* from = args->x[t] + at;
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i, from += x_step) {
      sum[i] = v_fma(w, window_load<kWhole>(from, mask), sum[i]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i, y += args->y_step) {
    sum[i] = args->activation == kFolioActLeakyRelu
                 ? v_activate(sum[i], kFolioActLeakyRelu, args->clip_lo, 0.0f)
                 : v_clip(sum[i], end.lo, end.hi);
    if (kWhole) {
      v_store(y, sum[i]);
    } else {
      v_store_masked(y, mask, sum[i]);
    }
  }
}

template <int kCount>
struct Count {
  static constexpr int value = kCount;
};

/* Pixels that are too few for a group are computed with some of those before them, once more. */
template <int kWhole>
static void filter_lanes(const FolioWindowF32* args, int64_t c, VM mask) {
  const int64_t pixels = args->pixels;
  const V start = filter_start(args, c, mask);
  const WindowEnd end = window_bounds(args->activation, args->clip_lo, args->clip_hi);
  for (int64_t l = 0; l < args->lines; ++l) {
    const int64_t line = l * args->x_line + c;
    float* y = args->y + l * args->y_line + c;
    const auto filter = [&](auto count, int64_t i) {
      constexpr int kPixels = decltype(count)::value;
      i = i + kPixels <= pixels ? i : pixels - kPixels;
      filter_pixels_at<kPixels, kWhole>(args, c, line + i * args->x_step, mask, start, end,
                                        y + i * args->y_step);
      return i + kPixels;
    };
    for (int64_t i = 0; i < pixels;) {
      const int64_t left = pixels - i;
      if (pixels < kTogether / 2) {
        i = filter(Count<1>{}, i);
      } else if (pixels < kTogether || left <= kTogether / 2) {
        i = filter(Count<kTogether / 2>{}, i);
      } else {
        i = filter(Count<kTogether>{}, i);
      }
    }
  }
}

/* One vector of y: of what a window takes together, and for a maximum whether a NaN is among it. */
template <int kKind, int kWhole>
VFN void window_store(const FolioWindowF32* args, V value, VM bad, VM mask, float* y) {
  value = kKind == kSumWindow ? v_mul(value, v_set1(args->scale))
                              : v_select(bad, v_set1(__builtin_nanf("")), value);
  if (kWhole) {
    v_store(y, value);
  } else {
    v_store_masked(y, mask, value);
  }
}

/* The maximum, or sum, over the taps at x[t] + at of kVectors vectors, the last one masked. A
 * maximum passes by a NaN: whether two numbers have one is asked beside it. */
template <int kKind, int kTaps, int kVectors, int kWhole>
VFN void window_at(const FolioWindowF32* args, const float* const* x, int64_t at, VM mask,
                   float* y) {
  const int64_t taps = kTaps > 0 ? kTaps : args->taps;
  V sum[kVectors], before[kVectors];
  VM bad[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    sum[v] = kKind == kMaxWindow ? v_set1(-__builtin_inff()) : v_zero();
    before[v] = sum[v];
    bad[v] = v_unordered(sum[v], sum[v]);
  }
#pragma GCC unroll 9
  for (int64_t t = 0; t < taps; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V next = window_load<kWhole>(x[t] + at + v * kLanes, mask);
      if (kKind == kSumWindow) {
        sum[v] = v_add(sum[v], next);
        continue;
      }
      sum[v] = v_max(next, sum[v]);
      if (t % 2 == 1) bad[v] = v_either(bad[v], v_unordered(before[v], next));
      before[v] = next;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    if (kKind == kMaxWindow && taps % 2 == 1) bad[v] = v_either(bad[v], v_is_nan(before[v]));
    window_store<kKind, kWhole>(args, sum[v], bad[v], mask, y + v * kLanes);
  }
}

template <int kKind, int kTaps>
VFN void window_pixels(const FolioWindowF32* args) {
  constexpr int kVectors = kTaps > 0 ? 1 : 4; /* of many taps: sums side by side */
  const int64_t channels = args->channels, pixels = args->pixels;
  const int64_t x_step = args->x_step, y_step = args->y_step;
  const VM all = v_first(kLanes);
  const float* known[kTaps > 0 ? kTaps : 1];
  for (int t = 0; t < kTaps; ++t) known[t] = args->x[t];
  const float* const* x = kTaps > 0 ? known : args->x;
  for (int64_t l = 0; l < args->lines; ++l) {
    int64_t at = l * args->x_line;
    float* y = args->y + l * args->y_line;
    for (int64_t i = 0; i < pixels; ++i, at += x_step, y += y_step) {
      int64_t c = 0;
      for (; c + kVectors * kLanes <= channels; c += kVectors * kLanes) {
        window_at<kKind, kTaps, kVectors, 1>(args, x, at + c, all, y + c);
      }
      for (; kVectors > 1 && c + kLanes <= channels; c += kLanes) {
        window_at<kKind, kTaps, 1, 1>(args, x, at + c, all, y + c);
      }
      if (c == channels) continue;
      window_at<kKind, kTaps, 1, 0>(args, x, at + c, v_first(channels - c), y + c);
    }
  }
}

/* Whether the taps are rows of so many columns, which are x[1] - x[0] apart; rows lie anywhere. */
static int has_rows(const FolioWindowF32* args, int64_t columns) {
  if (args->taps < columns || args->taps % columns != 0) return 0;
  const int64_t step = args->x[1] - args->x[0];
  for (int64_t t = 0; t < args->taps; ++t) {
    if (args->x[t] != args->x[t - t % columns] + t % columns * step) return 0;
  }
  return 1;
}

/* The step between the three columns of a filter of 3 x 3; 0 if the taps are no such filter. */
static int64_t column_step(const FolioWindowF32* args) {
  return args->taps == 9 && has_rows(args, 3) ? args->x[1] - args->x[0] : 0;
}

/* Some pixels of each line. */
typedef struct PixelRange {
  int64_t from, count;
} PixelRange;

/* Filters of 3 x 3 whose windows are kStride columns, and rows, from each other: each float of the
 * image is loaded once for kLines lines, and is in a register for the next pixels. The order of the
 * sum is that of filter_lanes. */
template <int kStride, int kLines, int kWhole>
VFN void filter_3x3(const FolioWindowF32* args, int64_t first_line, PixelRange range, int64_t c,
                    VM mask) {
  constexpr int kRows = kStride * (kLines - 1) + 3;
  const int64_t pixels = range.count, y_step = args->y_step, y_line = args->y_line;
  const int64_t column = args->x[1] - args->x[0];
  const V start = filter_start(args, c, mask);
  const WindowEnd end = window_bounds(args->activation, args->clip_lo, args->clip_hi);
  V w[9];
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) w[t] = window_load<kWhole>(args->w[t] + c, mask);
  const int64_t line = first_line * args->x_line + range.from * args->x_step + c;
  const float* row[kRows];
#pragma GCC unroll 9
  for (int r = 0; r < kRows; ++r) {
    row[r] = r < 3 ? args->x[3 * r] + line : row[r - kStride] + args->x_line;
  }
  float* y = args->y + first_line * y_line + range.from * y_step + c;
  V x[kRows][3];
#pragma GCC unroll 9
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 9
    for (int k = 0; k < 3 - kStride; ++k) {
      x[r][k + kStride] = window_load<kWhole>(row[r] + k * column, mask);
    }
  }
  for (int64_t i = 0, at = (3 - kStride) * column; i < pixels; ++i, y += y_step) {
#pragma GCC unroll 9
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 9
      for (int k = 0; k < 3 - kStride; ++k) x[r][k] = x[r][k + kStride];
#pragma GCC unroll 9
      for (int k = 0; k < kStride; ++k) {
        x[r][3 - kStride + k] = window_load<kWhole>(row[r] + at + k * column, mask);
      }
    }
    at += kStride * column;
#pragma GCC unroll 9
    for (int l = 0; l < kLines; ++l) {
      V sum = start;
#pragma GCC unroll 9
      for (int t = 0; t < 9; ++t) sum = v_fma(w[t], x[kStride * l + t / 3][t % 3], sum);
      sum = v_clip(sum, end.lo, end.hi);
      if (kWhole) {
        v_store(y + l * y_line, sum);
      } else {
        v_store_masked(y + l * y_line, mask, sum);
      }
    }
  }
}

/* How many pixels of kLines lines, and what they see, stay in L1 for the next lines. Columns that
 * are a power of two of cache lines from each other share few of its sets. */
template <int kStride, int kLines>
VFN int64_t pixels_in_l1(int64_t column) {
  constexpr int64_t kSets = 64, kWays = 8, kLineFloats = 16;
  constexpr int64_t kRows = kStride * (kLines - 1) + 3;
  constexpr int64_t kFewest = 12; /* a range begins with loads that the ones before had */
  int64_t sets = kSets;
  for (int64_t step = column / kLineFloats; step % 2 == 0 && sets > 1; step /= 2) sets /= 2;
  const int64_t pixels = (kWays * sets - 2 * kRows) / (kRows * kStride + kLines);
  return pixels < kFewest ? INT64_MAX : pixels;
}

/* Whether the rows that a line sees are as far from each other, and those of the next line kStride
 * of them further: then lines share rows. */
template <int kStride>
VFN int are_even_lines(const FolioWindowF32* args) {
  return args->x[3] - args->x[0] == args->x[6] - args->x[3] &&
         kStride * (args->x[3] - args->x[0]) == args->x_line;
}

template <int kStride>
static constexpr int kLinesAtOnce = kStride == 1 ? 3 : 2;

/* Pixels of all lines that filter_lines() computes before it goes on to the next ones. */
template <int kStride>
VFN int64_t pixels_at_once(const FolioWindowF32* args) {
  const int64_t pixels = args->pixels;
  if (args->lines <= kLinesAtOnce<kStride> || !are_even_lines<kStride>(args)) return pixels;
  const int64_t most = pixels_in_l1<kStride, kLinesAtOnce<kStride>>(args->x[1] - args->x[0]);
  if (pixels <= most) return pixels;
  const int64_t ranges = (pixels + most - 1) / most;
  return (pixels + ranges - 1) / ranges;
}

template <int kStride, int kWhole>
VFN void filter_lines(const FolioWindowF32* args, int64_t at_once, int64_t c, VM mask) {
  constexpr int kLines = kLinesAtOnce<kStride>;
  const int64_t lines = args->lines, pixels = args->pixels;
  const int are_even = are_even_lines<kStride>(args);
  for (int64_t from = 0; from < pixels; from += at_once) {
    const PixelRange range = {from, pixels - from < at_once ? pixels - from : at_once};
    int64_t l = 0;
    for (; are_even && l + kLines <= lines; l += kLines) {
      filter_3x3<kStride, kLines, kWhole>(args, l, range, c, mask);
    }
    for (; l < lines; ++l) filter_3x3<kStride, 1, kWhole>(args, l, range, c, mask);
  }
}

/* Of 3 x 3 taps, those that pixels at a border see. */
constexpr int kSideTaps = 6;
constexpr int kCornerTaps = 4;

/* Pixel after pixel, channel after channel. One of each line, as at the image's sides: what is made
 * for all pixels of a channel is not made for one. Or all of them under one tap, a scale and a
 * shift: in the order of memory. kTaps > 0: that many, known to the compiler. */
template <int kTaps>
VFN void filter_line_of_pixels(const FolioWindowF32* args, int64_t line, float* y) {
  const int64_t taps = kTaps > 0 ? kTaps : args->taps;
  const WindowEnd end = window_bounds(args->activation, args->clip_lo, args->clip_hi);
  const int64_t channels = args->channels;
  const float* w[kTaps + 1];
  for (int t = 0; t < kTaps; ++t) w[t] = args->w[t];
  const float* x[kTaps + 1];
  for (int64_t i = 0; i < args->pixels; ++i, line += args->x_step, y += args->y_step) {
    for (int t = 0; t < kTaps; ++t) x[t] = args->x[t] + line;
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) {
      V sum = args->bias ? v_load(args->bias + c) : v_zero();
#pragma GCC unroll 9
      for (int64_t t = 0; t < taps; ++t) {
        const float* from = kTaps > 0 ? x[kTaps > 0 ? t : 0] : args->x[t] + line;
        const float* weights = kTaps > 0 ? w[kTaps > 0 ? t : 0] : args->w[t];
        sum = v_fma(v_load(weights + c), v_load(from + c), sum);
      }
      v_store(y + c, v_clip(sum, end.lo, end.hi));
    }
    if (c == channels) continue;
    const VM m = v_first(channels - c);
    V sum = filter_start(args, c, m);
    for (int64_t t = 0; t < taps; ++t) {
      sum = v_fma(v_load_masked(args->w[t] + c, m), v_load_masked(args->x[t] + line + c, m), sum);
    }
    v_store_masked(y + c, m, v_clip(sum, end.lo, end.hi));
  }
}

template <int kTaps>
static void filter_pixels(const FolioWindowF32* args) {
  for (int64_t l = 0; l < args->lines; ++l) {
    filter_line_of_pixels<kTaps>(args, l * args->x_line, args->y + l * args->y_line);
  }
}

/* How many columns windows of 3 x 3 are from each other; 0: they are others. */
static int filter_stride(const FolioWindowF32* args) {
  const int64_t column = column_step(args);
  if (column == 0) return 0;
  return args->x_step == column ? 1 : args->x_step == 2 * column ? 2 : 0;
}

template <int kWhole>
VFN void filter_part(const FolioWindowF32* args, int stride, int64_t at_once, int64_t c, VM mask) {
  if (stride == 1) {
    filter_lines<1, kWhole>(args, at_once, c, mask);
  } else if (stride == 2) {
    filter_lines<2, kWhole>(args, at_once, c, mask);
  } else {
    filter_lanes<kWhole>(args, c, mask);
  }
}

#include "core/kernels/vector/filter_rows.inl"

/* Taps beyond which the pixels at a side take turns, too: a few are soon added, unless there are
 * lines enough, for each of which all channels' weights would be read again. */
constexpr int64_t kFewTaps = 9;
constexpr int64_t kFewLines = kTogether / 2;

static void FOLIO_LEVEL(depthwise_f32)(const FolioWindowF32* args) {
  const int takes_turns = args->taps > kFewTaps || args->lines >= kFewLines;
  if (args->pixels == 1 && args->lines > 1 && takes_turns) {
    FolioWindowF32 line = *args; /* of one pixel of each line, as at the image's sides */
    line.lines = 1;
    line.pixels = args->lines;
    line.x_step = args->x_line;
    line.y_step = args->y_line;
    return FOLIO_LEVEL(depthwise_f32)(&line);
  }
  const int is_leaky = args->activation == kFolioActLeakyRelu;
  if ((args->pixels == 1 || args->taps == 1) && !is_leaky) {
    if (args->taps == 1) return filter_pixels<1>(args);
    if (args->taps == kSideTaps) return filter_pixels<kSideTaps>(args);
    if (args->taps == kCornerTaps) return filter_pixels<kCornerTaps>(args);
    return filter_pixels<0>(args);
  }
  const int stride = kLanes == 16 && !is_leaky ? filter_stride(args) : 0;
  const int64_t at_once = stride == 1   ? pixels_at_once<1>(args)
                          : stride == 2 ? pixels_at_once<2>(args)
                                        : 0;
  const VM all = v_first(kLanes);
  int64_t c = 0;
  if (kLanes == 8 && filter_rows(args)) c = args->channels / kLanes * kLanes;
  for (; c + kLanes <= args->channels; c += kLanes) filter_part<1>(args, stride, at_once, c, all);
  if (c < args->channels) filter_part<0>(args, stride, at_once, c, v_first(args->channels - c));
}

/* One or three of what a window takes together, and for maxima whether a NaN is among them. */
typedef struct WindowPart {
  V value;
  VM bad;
} WindowPart;

template <int kKind>
VFN WindowPart window_join(WindowPart a, WindowPart b) {
  WindowPart both = a;
  both.value = kKind == kSumWindow ? v_add(a.value, b.value) : v_max(a.value, b.value);
  if (kKind == kMaxWindow) both.bad = v_either(a.bad, b.bad);
  return both;
}

/* Three of one column of the image. */
template <int kKind, int kWhole>
VFN WindowPart window_column(const float* const* rows, int64_t at, VM mask) {
  V x[3];
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) x[r] = window_load<kWhole>(rows[r] + at, mask);
  WindowPart column;
  if (kKind == kSumWindow) {
    column.value = v_add(v_add(x[0], x[1]), x[2]);
    column.bad = mask;
  } else {
    column.value = v_max(v_max(x[0], x[1]), x[2]);
    column.bad = v_either(v_unordered(x[0], x[1]), v_is_nan(x[2]));
  }
  return column;
}

/* Windows of 3 x 3 that are kStride columns from each other, kVectors vectors of channels side by
 * side: each float is loaded once for a line, and its column of three is one for all windows. */
template <int kKind, int kStride, int kVectors, int kWhole>
VFN void window_3x3(const FolioWindowF32* args, int64_t l, int64_t c, VM mask) {
  const int64_t column = args->x[1] - args->x[0], line = l * args->x_line + c;
  const float* const rows[3] = {args->x[0] + line, args->x[3] + line, args->x[6] + line};
  float* y = args->y + l * args->y_line + c;
  WindowPart part[3][kVectors];
  int64_t at = 0;
#pragma GCC unroll 2
  for (int k = kStride; k < 3; ++k, at += column) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      part[k][v] = window_column<kKind, kWhole>(rows, at + v * kLanes, mask);
    }
  }
  for (int64_t i = 0; i < args->pixels; ++i, y += args->y_step) {
#pragma GCC unroll 2
    for (int k = 0; k < 3 - kStride; ++k) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) part[k][v] = part[k + kStride][v];
    }
#pragma GCC unroll 2
    for (int k = 3 - kStride; k < 3; ++k, at += column) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        part[k][v] = window_column<kKind, kWhole>(rows, at + v * kLanes, mask);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const WindowPart all =
          window_join<kKind>(window_join<kKind>(part[0][v], part[1][v]), part[2][v]);
      window_store<kKind, kWhole>(args, all.value, all.bad, mask, y + v * kLanes);
    }
  }
}

template <int kKind, int kStride>
static void windows_3x3(const FolioWindowF32* args) {
  constexpr int kVectors = kLanes == 16 ? 4 : 1; /* as many as registers hold */
  const VM all = v_first(kLanes);
  for (int64_t l = 0; l < args->lines; ++l) {
    int64_t c = 0;
    for (; c + kVectors * kLanes <= args->channels; c += kVectors * kLanes) {
      window_3x3<kKind, kStride, kVectors, 1>(args, l, c, all);
    }
    for (; kVectors > 1 && c + kLanes <= args->channels; c += kLanes) {
      window_3x3<kKind, kStride, 1, 1>(args, l, c, all);
    }
    if (c < args->channels) {
      window_3x3<kKind, kStride, 1, 0>(args, l, c, v_first(args->channels - c));
    }
  }
}

template <int kKind>
VFN void window_of(const FolioWindowF32* args) {
  constexpr int64_t kFewPixels = 3; /* share no columns worth it */
  const int64_t column = args->pixels >= kFewPixels ? column_step(args) : 0;
  if (column != 0 && args->x_step == column) return windows_3x3<kKind, 1>(args);
  if (column != 0 && args->x_step == 2 * column) return windows_3x3<kKind, 2>(args);
  if (args->taps == 4) return window_pixels<kKind, 4>(args);
  if (args->taps == 9) return window_pixels<kKind, 9>(args);
  window_pixels<kKind, 0>(args);
}

static void FOLIO_LEVEL(max_window_f32)(const FolioWindowF32* args) { window_of<kMaxWindow>(args); }
static void FOLIO_LEVEL(sum_window_f32)(const FolioWindowF32* args) { window_of<kSumWindow>(args); }

#include "core/kernels/vector/planes.inl"

#include "core/kernels/vector/lines.inl"

#include "core/kernels/vector/grouped.inl"

static void fill_window(FolioKernels* table) {
  table->depthwise_f32 = FOLIO_LEVEL(depthwise_f32);
  table->grouped_f32 = FOLIO_LEVEL(grouped_f32);
  table->max_window_f32 = FOLIO_LEVEL(max_window_f32);
  table->sum_window_f32 = FOLIO_LEVEL(sum_window_f32);
  table->max_lines_f32 = FOLIO_LEVEL(max_lines_f32);
  table->sum_lines_f32 = FOLIO_LEVEL(sum_lines_f32);
  table->filter_plane_f32 = FOLIO_LEVEL(filter_plane_f32);
}
