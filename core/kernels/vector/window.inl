/* Lines of pixels with channels side by side; see FolioWindowF32.
 *
 * One vector of channels at a time over all pixels: the weights of up to kHeldTaps taps stay in
 * registers, and what one line read of the image is in L1 when the next one reads it. */

constexpr int kHeldTaps = kLanes == 16 ? 25 : 9;

enum WindowKind { kDepthwise, kMaxWindow, kSumWindow };

VFN V window_start(const FolioWindowF32* args, int kind, int64_t c, VM mask) {
  if (kind == kMaxWindow) return v_set1(-__builtin_inff());
  if (kind == kDepthwise && args->bias) return v_load_masked(args->bias + c, mask);
  return v_zero();
}

VFN V window_step(int kind, V sum, V w, V x) {
  if (kind == kMaxWindow) return v_select(v_is_nan(sum), sum, v_max(sum, x));
  if (kind == kSumWindow) return v_add(sum, x);
  return v_fma(w, x, sum);
}

/* Of a depthwise filter every function but LeakyRelu clamps: nothing to decide at each pixel, and
 * the bits of v_activate. */
typedef struct WindowEnd {
  V lo, hi;
  V scale; /* of sums */
} WindowEnd;

VFN WindowEnd window_bounds(const FolioWindowF32* args) {
  const float inf = __builtin_inff();
  const int is_clip = args->activation == kFolioActClip;
  const int is_relu = args->activation == kFolioActRelu;
  const WindowEnd end = {v_set1(is_clip ? args->clip_lo : is_relu ? 0.0f : -inf),
                         v_set1(is_clip ? args->clip_hi : inf), v_set1(args->scale)};
  return end;
}

template <int kWhole>
VFN V window_load(const float* p, VM mask) {
  return kWhole ? v_load(p) : v_load_masked(p, mask);
}

/* kTaps > 0: that many, known to the compiler; 0: args->taps. kWhole: the mask takes every lane.
 * What a pixel needs stands in registers: y might alias args as far as a compiler knows. */
template <int kKind, int kTaps, int kWhole, int kIsLeaky>
VFN void window_lanes(const FolioWindowF32* args, int64_t c, VM mask) {
  const int64_t taps = kTaps > 0 ? kTaps : args->taps;
  const int64_t pixels = args->pixels, x_step = args->x_step, y_step = args->y_step;
  const float leak = args->clip_lo;
  const V start = window_start(args, kKind, c, mask);
  const WindowEnd end = window_bounds(args);
  V held[kTaps > 0 && kKind == kDepthwise ? kTaps : 1];
  if (kTaps > 0 && kKind == kDepthwise) {
    for (int t = 0; t < kTaps; ++t) held[t] = window_load<kWhole>(args->w[t] + c, mask);
  }
  const float* x[kTaps > 0 ? kTaps : 1];
  for (int64_t l = 0; l < args->lines; ++l) {
    const int64_t line = l * args->x_line + c;
    for (int t = 0; t < kTaps; ++t) x[t] = args->x[t] + line;
    float* y = args->y + l * args->y_line + c;
    for (int64_t i = 0, at = 0; i < pixels; ++i, at += x_step, y += y_step) {
      V sum = start;
#pragma GCC unroll 25
      for (int64_t t = 0; t < taps; ++t) {
        const float* from = kTaps > 0 ? x[kTaps > 0 ? t : 0] : args->x[t] + line;
        V w = v_zero();
        if (kKind == kDepthwise) {
          w = kTaps > 0 ? held[kTaps > 0 ? t : 0] : window_load<kWhole>(args->w[t] + c, mask);
        }
        sum = window_step(kKind, sum, w, window_load<kWhole>(from + at, mask));
      }
      if (kKind == kSumWindow) sum = v_mul(sum, end.scale);
      if (kIsLeaky) sum = v_activate(sum, kFolioActLeakyRelu, leak, 0.0f);
      if (kKind == kDepthwise && !kIsLeaky) sum = v_clip(sum, end.lo, end.hi);
      if (kWhole) {
        v_store(y, sum);
      } else {
        v_store_masked(y, mask, sum);
      }
    }
  }
}

/* The step between the three columns of a filter of 3 x 3, whose rows lie anywhere; 0 if the taps
 * are no such filter. */
static int64_t column_step(const FolioWindowF32* args) {
  if (args->taps != 9) return 0;
  const int64_t step = args->x[1] - args->x[0];
  for (int t = 0; t < 9; ++t) {
    if (args->x[t] != args->x[t - t % 3] + t % 3 * step) return 0;
  }
  return step;
}

/* Filters of 3 x 3 whose windows are kStride columns, and rows, from each other: each float of the
 * image is loaded once for kLines lines, and is in a register for the next pixels. The order of the
 * sum is that of window_lanes. */
template <int kStride, int kLines, int kWhole>
VFN void filter_3x3(const FolioWindowF32* args, int64_t first_line, int64_t c, VM mask) {
  constexpr int kRows = kStride * (kLines - 1) + 3;
  const int64_t pixels = args->pixels, y_step = args->y_step, y_line = args->y_line;
  const int64_t column = args->x[1] - args->x[0];
  const V start = window_start(args, kDepthwise, c, mask);
  const WindowEnd end = window_bounds(args);
  V w[9];
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) w[t] = window_load<kWhole>(args->w[t] + c, mask);
  const int64_t line = first_line * args->x_line + c;
  const float* row[kRows];
#pragma GCC unroll 9
  for (int r = 0; r < kRows; ++r) {
    row[r] = r < 3 ? args->x[3 * r] + line : row[r - kStride] + args->x_line;
  }
  float* y = args->y + first_line * y_line + c;
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

template <int kStride, int kWhole>
VFN void filter_lines(const FolioWindowF32* args, int64_t c, VM mask) {
  constexpr int kLines = kStride == 1 ? 3 : 2;
  int64_t l = 0;
  if (args->x[3] - args->x[0] == args->x[6] - args->x[3] &&
      kStride * (args->x[3] - args->x[0]) == args->x_line) {
    for (; l + kLines <= args->lines; l += kLines) {
      filter_3x3<kStride, kLines, kWhole>(args, l, c, mask);
    }
  }
  for (; l < args->lines; ++l) filter_3x3<kStride, 1, kWhole>(args, l, c, mask);
}

template <int kKind, int kWhole>
VFN void window_part(const FolioWindowF32* args, int64_t c, VM mask) {
  const int64_t column = kKind == kDepthwise && kLanes == 16 ? column_step(args) : 0;
  if (kKind == kDepthwise && args->activation == kFolioActLeakyRelu) {
    window_lanes<kKind, 0, kWhole, 1>(args, c, mask);
  } else if (column != 0 && args->x_step == column) {
    filter_lines<1, kWhole>(args, c, mask);
  } else if (column != 0 && args->x_step == 2 * column) {
    filter_lines<2, kWhole>(args, c, mask);
  } else if (args->taps == 9) {
    window_lanes<kKind, 9, kWhole, 0>(args, c, mask);
  } else if (args->taps == kHeldTaps) {
    window_lanes<kKind, kHeldTaps, kWhole, 0>(args, c, mask);
  } else {
    window_lanes<kKind, 0, kWhole, 0>(args, c, mask);
  }
}

template <int kKind>
VFN void window_of(const FolioWindowF32* args) {
  int64_t c = 0;
  for (; c + kLanes <= args->channels; c += kLanes) {
    window_part<kKind, 1>(args, c, v_first(kLanes));
  }
  if (c < args->channels) window_part<kKind, 0>(args, c, v_first(args->channels - c));
}

static void FOLIO_LEVEL(depthwise_f32)(const FolioWindowF32* args) { window_of<kDepthwise>(args); }
static void FOLIO_LEVEL(max_window_f32)(const FolioWindowF32* args) { window_of<kMaxWindow>(args); }
static void FOLIO_LEVEL(sum_window_f32)(const FolioWindowF32* args) { window_of<kSumWindow>(args); }

static void fill_window(FolioKernels* table) {
  table->depthwise_f32 = FOLIO_LEVEL(depthwise_f32);
  table->max_window_f32 = FOLIO_LEVEL(max_window_f32);
  table->sum_window_f32 = FOLIO_LEVEL(sum_window_f32);
}
