/* Transforms of Winograd's F(4x4, 3x3), F(4, 3) and F(4, 4); see winograd.h.
 *
 * One vector of channels of one tile at a time: down its columns, then along its rows. Points come
 * in pairs +-a, whose sums share their even and their odd part. */

constexpr float kPointA = 0.75f;
constexpr float kPointB = 1.5f;

/* Half a V of doubles: as many bytes as V. */
typedef double VD __attribute__((vector_size(4 * kLanes)));
typedef float VDFloats __attribute__((vector_size(2 * kLanes)));

VFN VD vd_load(const float* p) {
  VDFloats floats;
  __builtin_memcpy(&floats, p, sizeof(floats));
  return __builtin_convertvector(floats, VD);
}
VFN void vd_store(float* p, VD a) {
  const VDFloats floats = __builtin_convertvector(a, VDFloats);
  __builtin_memcpy(p, &floats, sizeof(floats));
}

/* r[0], r[step], ...; without fused multiply-adds, as all of this project is compiled. */
VFN void winograd_filter_line(VD g0, VD g1, VD g2, VD* r, int step) {
  constexpr double a = kPointA;
  constexpr double b = kPointB;
  constexpr double f0 = 64.0 / 81.0;
  constexpr double fa = -128.0 / 243.0;
  constexpr double fb = 32.0 / 243.0;
  const VD e = g0 + a * a * g2;
  const VD o = a * g1;
  const VD p = g0 + b * b * g2;
  const VD q = b * g1;
  r[0] = f0 * g0;
  r[step] = fa * (e + o);
  r[2 * step] = fa * (e - o);
  r[3 * step] = fb * (p + q);
  r[4 * step] = fb * (p - q);
  r[5 * step] = g2;
}

/* Of four taps. */
VFN void winograd_filter_four(VD g0, VD g1, VD g2, VD g3, VD* r) {
  const VD e = g0 + 0.25 * g2;
  const VD o = 0.5 * g1 + 0.125 * g3;
  const VD p = g0 + g2;
  const VD q = g1 + g3;
  r[0] = -2.0 * g0;
  r[1] = 16.0 / 9.0 * (e + o);
  r[2] = 16.0 / 15.0 * (e - o);
  r[3] = -2.0 / 3.0 * (p + q);
  r[4] = -2.0 / 9.0 * (p - q);
  r[5] = 2.0 / 45.0 * ((g0 + 4.0 * g2) + (2.0 * g1 + 8.0 * g3));
  r[6] = g3;
}

template <int kTaps>
VFN void winograd_filter_lines(const FolioWinogradFilter* args) {
  const int64_t tap = args->tap_stride;
  for (int64_t i = 0; i < args->channels * FOLIO_F32P16_COLUMNS; i += kDoubles) {
    const float* g = args->g + i;
    VD row[kTaps + 3];
    const VD g0 = vd_load(g);
    const VD g1 = vd_load(g + tap);
    const VD g2 = vd_load(g + 2 * tap);
    if (kTaps == 3) winograd_filter_line(g0, g1, g2, row, 1);
    if (kTaps == 4) winograd_filter_four(g0, g1, g2, vd_load(g + (kTaps - 1) * tap), row);
#pragma GCC unroll 7
    for (int j = 0; j < kTaps + 3; ++j) vd_store(args->u + j * args->plane_stride + i, row[j]);
  }
}

static void FOLIO_LEVEL(winograd_filter_f32)(const FolioWinogradFilter* args) {
  if (args->line_taps == 3) return winograd_filter_lines<3>(args);
  if (args->line_taps == 4) return winograd_filter_lines<4>(args);
  const int64_t tap = args->tap_stride;
  for (int64_t i = 0; i < args->channels * FOLIO_F32P16_COLUMNS; i += kDoubles) {
    const float* g = args->g + i;
    VD down[18];
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) {
      winograd_filter_line(vd_load(g + k * tap), vd_load(g + (3 + k) * tap),
                           vd_load(g + (6 + k) * tap), down + k, 3);
    }
#pragma GCC unroll 6
    for (int k = 0; k < 6; ++k) {
      VD row[6];
      winograd_filter_line(down[3 * k], down[3 * k + 1], down[3 * k + 2], row, 1);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) vd_store(args->u + (6 * k + j) * args->plane_stride + i, row[j]);
    }
  }
}

/* o = B d. */
VFN void winograd_input_line(const V* d, V* o) {
  const V a = v_set1(kPointA);
  const V b = v_set1(kPointB);
  const V a2 = v_set1(kPointA * kPointA);
  const V b2 = v_set1(kPointB * kPointB);
  const V product = v_set1(kPointA * kPointA * kPointB * kPointB);
  const V sum = v_set1(kPointA * kPointA + kPointB * kPointB);
  const V even_a = v_fnma(b2, d[2], d[4]);
  const V odd_a = v_fnma(b2, d[1], d[3]);
  const V even_b = v_fnma(a2, d[2], d[4]);
  const V odd_b = v_fnma(a2, d[1], d[3]);
  o[0] = v_fma(product, d[0], v_fnma(sum, d[2], d[4]));
  o[1] = v_fma(a, odd_a, even_a);
  o[2] = v_fnma(a, odd_a, even_a);
  o[3] = v_fma(b, odd_b, even_b);
  o[4] = v_fnma(b, odd_b, even_b);
  o[5] = v_fma(product, d[1], v_fnma(sum, d[3], d[5]));
}

/* The same of four taps: differences by c first, as all points but c have them. */
VFN void winograd_input_seven(const V* d, V* o) {
  V u[6];
#pragma GCC unroll 6
  for (int k = 0; k < 6; ++k) u[k] = v_fnma(v_set1(2.0f), d[k], d[k + 1]);
  const V quarter = v_set1(0.25f);
  const V sum = v_set1(1.25f);
  const V odd_a = v_sub(u[3], u[1]);
  const V even_a = v_sub(u[4], u[2]);
  const V odd_b = v_fnma(quarter, u[1], u[3]);
  const V even_b = v_fnma(quarter, u[2], u[4]);
  o[0] = v_fma(quarter, u[0], v_fnma(sum, u[2], u[4]));
  o[1] = v_fma(v_set1(0.5f), odd_a, even_a);
  o[2] = v_fnma(v_set1(0.5f), odd_a, even_a);
  o[3] = v_add(even_b, odd_b);
  o[4] = v_sub(even_b, odd_b);
  o[5] = v_fma(quarter, d[1], v_fnma(sum, d[3], d[5]));
  o[6] = v_fma(quarter, u[1], v_fnma(sum, u[3], u[5]));
}

VFN void winograd_output_seven(const V* m, V* y) {
  const V sum_a = v_add(m[1], m[2]);
  const V odd_a = v_sub(m[1], m[2]);
  const V sum_b = v_add(m[3], m[4]);
  const V odd_b = v_sub(m[3], m[4]);
  y[0] = v_add(v_add(m[0], m[5]), v_add(sum_a, sum_b));
  y[1] = v_fma(v_set1(2.0f), m[5], v_fma(v_set1(0.5f), odd_a, odd_b));
  y[2] = v_fma(v_set1(4.0f), m[5], v_fma(v_set1(0.25f), sum_a, sum_b));
  y[3] = v_add(v_fma(v_set1(8.0f), m[5], v_fma(v_set1(0.125f), odd_a, odd_b)), m[6]);
}

/* y = A m. */
VFN void winograd_output_line(const V* m, V* y) {
  const V sum_a = v_add(m[1], m[2]);
  const V odd_a = v_sub(m[1], m[2]);
  const V sum_b = v_add(m[3], m[4]);
  const V odd_b = v_sub(m[3], m[4]);
  y[0] = v_add(v_add(m[0], sum_a), sum_b);
  y[1] = v_fma(v_set1(kPointB), odd_b, v_mul(v_set1(kPointA), odd_a));
  y[2] = v_fma(v_set1(kPointB * kPointB), sum_b, v_mul(v_set1(kPointA * kPointA), sum_a));
  y[3] = v_fma(v_set1(kPointB * kPointB * kPointB), odd_b,
               v_fma(v_set1(kPointA * kPointA * kPointA), odd_a, m[5]));
}

/* kWhole: the mask takes every lane. */
template <int kWhole>
VFN V winograd_load(const float* p, VM mask) {
  return kWhole ? v_load(p) : v_load_masked(p, mask);
}
template <int kWhole>
VFN void winograd_store(float* p, VM mask, V v) {
  if (kWhole) {
    v_store(p, v);
  } else {
    v_store_masked(p, mask, v);
  }
}

template <int kWhole>
VFN void winograd_input_lanes(const float* const* x, int64_t c, VM mask, float* v,
                              int64_t plane_stride) {
  V half[6][6]; /* [column][row] */
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    V d[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) d[i] = winograd_load<kWhole>(x[6 * i + j] + c, mask);
    winograd_input_line(d, half[j]);
  }
#pragma GCC unroll 6
  for (int i = 0; i < 6; ++i) {
    V d[6];
    V o[6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) d[j] = half[j][i];
    winograd_input_line(d, o);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      winograd_store<kWhole>(v + (6 * i + j) * plane_stride + c, mask, o[j]);
    }
  }
}

template <int kTaps, int kWhole>
VFN void winograd_input_line_lanes(const float* const* x, int64_t c, VM mask, float* v,
                                   int64_t plane_stride) {
  V d[FOLIO_WINOGRAD_LINE];
  V o[FOLIO_WINOGRAD_LINE];
#pragma GCC unroll 7
  for (int j = 0; j < kTaps + 3; ++j) d[j] = winograd_load<kWhole>(x[j] + c, mask);
  if (kTaps == 3) winograd_input_line(d, o);
  if (kTaps == 4) winograd_input_seven(d, o);
#pragma GCC unroll 7
  for (int j = 0; j < kTaps + 3; ++j) {
    winograd_store<kWhole>(v + j * plane_stride + c, mask, o[j]);
  }
}

/* kTaps: of a line; 0: squares. */
template <int kTaps>
VFN void winograd_inputs(const FolioWinogradInput* args) {
  constexpr int64_t pixels = kTaps ? kTaps + 3 : FOLIO_WINOGRAD_PLANES;
  const int64_t whole = args->channels / kLanes * kLanes;
  const int64_t stride = args->plane_stride;
  const VM tail = v_first(args->channels - whole);
  for (int64_t t = 0; t < args->tiles; ++t) {
    const float* const* x = args->x + t * pixels;
    float* v = args->v + t * args->row_stride;
    for (int64_t c = 0; c < whole; c += kLanes) {
      if (kTaps) winograd_input_line_lanes<kTaps, 1>(x, c, tail, v, stride);
      if (!kTaps) winograd_input_lanes<1>(x, c, tail, v, stride);
    }
    if (whole == args->channels) continue;
    if (kTaps) winograd_input_line_lanes<kTaps, 0>(x, whole, tail, v, stride);
    if (!kTaps) winograd_input_lanes<0>(x, whole, tail, v, stride);
  }
}

static void FOLIO_LEVEL(winograd_input_f32)(const FolioWinogradInput* args) {
  if (args->line_taps == 3) return winograd_inputs<3>(args);
  if (args->line_taps == 4) return winograd_inputs<4>(args);
  winograd_inputs<0>(args);
}

typedef struct WinogradChannels {
  V scale, bias;
  VM mask;
} WinogradChannels;

template <int kWhole>
VFN void winograd_end(const FolioWinogradOutput* args, const WinogradChannels* channels,
                      int64_t pixel, int64_t c, V y) {
  V v = args->scale ? v_fma(y, channels->scale, channels->bias) : v_add(y, channels->bias);
  if (args->addend) {
    const float* addend = args->addend + pixel * args->addend_step + c;
    v = v_add(v, winograd_load<kWhole>(addend, channels->mask));
  }
  winograd_store<kWhole>(args->y + pixel * args->y_step + c, channels->mask,
                         v_activate(v, args->activation, args->clip_lo, args->clip_hi));
}

template <int kWhole>
VFN WinogradChannels winograd_channels(const FolioWinogradOutput* args, int64_t c, VM mask) {
  WinogradChannels channels;
  channels.mask = mask;
  channels.scale = args->scale ? winograd_load<kWhole>(args->scale + c, mask) : v_zero();
  channels.bias = args->bias ? winograd_load<kWhole>(args->bias + c, mask) : v_zero();
  return channels;
}

/* Four outputs, channel c on. */
template <int kWhole>
VFN void winograd_end_line(const FolioWinogradOutput* args, const WinogradChannels* channels,
                           const int64_t* pixels, int64_t c, const V* y) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    if (pixels[j] >= 0) winograd_end<kWhole>(args, channels, pixels[j], c, y[j]);
  }
}

/* Of a last vector that is not whole: not in line, which would be as much code again. */
static __attribute__((noinline)) void winograd_end_tail(const FolioWinogradOutput* args,
                                                        const WinogradChannels* channels,
                                                        const int64_t* pixels, int64_t c,
                                                        const V* y) {
  winograd_end_line<0>(args, channels, pixels, c, y);
}

/* Gives their sum. */
template <int kWhole>
VFN V winograd_end_outputs(const FolioWinogradOutput* args, const WinogradChannels* channels,
                           const int64_t* pixels, int64_t c, const V* y) {
  if (kWhole) {
    winograd_end_line<1>(args, channels, pixels, c, y);
  } else {
    winograd_end_tail(args, channels, pixels, c, y);
  }
  return v_add(v_add(y[0], y[1]), v_add(y[2], y[3]));
}

template <int kTaps, int kWhole>
VFN V winograd_output_line_lanes(const FolioWinogradOutput* args, int64_t t, int64_t c, VM mask) {
  const float* m = args->m + t * args->row_stride + c;
  const WinogradChannels channels = winograd_channels<kWhole>(args, c, mask);
  V d[FOLIO_WINOGRAD_LINE];
  V y[4];
#pragma GCC unroll 7
  for (int i = 0; i < kTaps + 3; ++i) {
    d[i] = winograd_load<kWhole>(m + i * args->plane_stride, mask);
  }
  if (kTaps == 3) winograd_output_line(d, y);
  if (kTaps == 4) winograd_output_seven(d, y);
  return winograd_end_outputs<kWhole>(args, &channels, args->pixels + t * FOLIO_WINOGRAD_SIDE, c,
                                      y);
}

/* Gives the sum of all outputs, not finite when one is not. */
template <int kWhole>
VFN V winograd_output_lanes(const FolioWinogradOutput* args, int64_t t, int64_t c, VM mask) {
  const float* m = args->m + t * args->row_stride + c;
  const int64_t* pixels = args->pixels + t * FOLIO_WINOGRAD_OUTPUTS;
  const WinogradChannels channels = winograd_channels<kWhole>(args, c, mask);
  V half[6][4]; /* [column][row] */
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    V d[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      d[i] = winograd_load<kWhole>(m + (6 * i + j) * args->plane_stride, mask);
    }
    winograd_output_line(d, half[j]);
  }
  V total = v_zero();
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    V d[6];
    V y[4];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) d[j] = half[j][i];
    winograd_output_line(d, y);
    total = v_add(total, winograd_end_outputs<kWhole>(args, &channels, pixels + 4 * i, c, y));
  }
  return total;
}

template <int kTaps>
VFN int32_t winograd_outputs(const FolioWinogradOutput* args) {
  const int64_t whole = args->channels / kLanes * kLanes;
  const VM tail = v_first(args->channels - whole);
  V bad = v_zero(); /* NaN for ever after the first sum that is not finite */
  for (int64_t t = 0; t < args->tiles; ++t) {
    for (int64_t c = 0; c < whole; c += kLanes) {
      const V sum = kTaps ? winograd_output_line_lanes<kTaps, 1>(args, t, c, tail)
                          : winograd_output_lanes<1>(args, t, c, tail);
      bad = v_fma(sum, v_zero(), bad);
    }
    if (whole == args->channels) continue;
    const V sum = kTaps ? winograd_output_line_lanes<kTaps, 0>(args, t, whole, tail)
                        : winograd_output_lanes<0>(args, t, whole, tail);
    bad = v_fma(sum, v_zero(), bad);
  }
  return !v_any(v_is_nan(bad));
}

static int32_t FOLIO_LEVEL(winograd_output_f32)(const FolioWinogradOutput* args) {
  if (args->line_taps == 3) return winograd_outputs<3>(args);
  return args->line_taps == 4 ? winograd_outputs<4>(args) : winograd_outputs<0>(args);
}

static void fill_winograd(FolioKernels* table) {
  table->winograd_filter_f32 = FOLIO_LEVEL(winograd_filter_f32);
  table->winograd_input_f32 = FOLIO_LEVEL(winograd_input_f32);
  table->winograd_output_f32 = FOLIO_LEVEL(winograd_output_f32);
}
