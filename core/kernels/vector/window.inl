/* Rows of pixels with channels side by side; see FolioWindowF32.
 *
 * One vector of channels at a time over all pixels: the weights of up to kHeldTaps taps stay in
 * registers, and a pixel's lines are read whole. */

constexpr int kHeldTaps = kLanes == 16 ? 25 : 9;

enum WindowKind { kDepthwise, kMaxWindow, kSumWindow };

VFN V window_activate(const FolioWindowF32* args, V v) {
  if (args->activation == kFolioActRelu) return v_relu(v);
  if (args->activation == kFolioActClip) {
    return v_clip(v, v_set1(args->clip_lo), v_set1(args->clip_hi));
  }
  return v;
}

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

VFN V window_end(const FolioWindowF32* args, int kind, V v) {
  if (kind == kDepthwise) return window_activate(args, v);
  if (kind == kSumWindow) return v_mul(v, v_set1(args->scale));
  return v;
}

template <int kWhole>
VFN V window_load(const float* p, VM mask) {
  return kWhole ? v_load(p) : v_load_masked(p, mask);
}

/* kTaps > 0: that many, known to the compiler; 0: args->taps. kWhole: the mask takes every lane. */
template <int kKind, int kTaps, int kWhole>
VFN void window_lanes(const FolioWindowF32* args, int64_t c, VM mask) {
  const int64_t taps = kTaps > 0 ? kTaps : args->taps;
  const V start = window_start(args, kKind, c, mask);
  V held[kTaps > 0 && kKind == kDepthwise ? kTaps : 1];
  if (kTaps > 0 && kKind == kDepthwise) {
    for (int t = 0; t < kTaps; ++t) held[t] = window_load<kWhole>(args->w[t] + c, mask);
  }
  for (int64_t i = 0; i < args->pixels; ++i) {
    const int64_t at = i * args->x_step + c;
    V sum = start;
#pragma GCC unroll 25
    for (int64_t t = 0; t < taps; ++t) {
      V w = v_zero();
      if (kKind == kDepthwise) {
        w = kTaps > 0 ? held[kTaps > 0 ? t : 0] : window_load<kWhole>(args->w[t] + c, mask);
      }
      sum = window_step(kKind, sum, w, window_load<kWhole>(args->x[t] + at, mask));
    }
    float* y = args->y + i * args->y_step + c;
    const V result = window_end(args, kKind, sum);
    if (kWhole) {
      v_store(y, result);
    } else {
      v_store_masked(y, mask, result);
    }
  }
}

template <int kKind, int kWhole>
VFN void window_part(const FolioWindowF32* args, int64_t c, VM mask) {
  if (args->taps == 9) {
    window_lanes<kKind, 9, kWhole>(args, c, mask);
  } else if (args->taps == kHeldTaps) {
    window_lanes<kKind, kHeldTaps, kWhole>(args, c, mask);
  } else {
    window_lanes<kKind, 0, kWhole>(args, c, mask);
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
