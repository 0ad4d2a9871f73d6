// Transforms of Winograd's F(4x4, 3x3), F(4, 3) and F(4, 4), as products with the matrices of
// winograd.h.
#include "core/kernels/ref/ref.h"

static const double kA = 0.75;
static const double kB = 1.5;
static const double kF0 = 64.0 / 81.0;
static const double kFa = -128.0 / 243.0;
static const double kFb = 32.0 / 243.0;

static const float kInput[6][6] = {
    {1.265625f, 0, -2.8125f, 0, 1, 0},    {0, -1.6875f, -2.25f, 0.75f, 1, 0},
    {0, 1.6875f, -2.25f, -0.75f, 1, 0},   {0, -0.84375f, -0.5625f, 1.5f, 1, 0},
    {0, 0.84375f, -0.5625f, -1.5f, 1, 0}, {0, 1.265625f, 0, -2.8125f, 0, 1},
};
static const float kOutput[4][6] = {
    {1, 1, 1, 1, 1, 0},
    {0, 0.75f, -0.75f, 1.5f, -1.5f, 0},
    {0, 0.5625f, 0.5625f, 2.25f, 2.25f, 0},
    {0, 0.421875f, -0.421875f, 3.375f, -3.375f, 1},
};

static const float kInput7[7][7] = {
    {-0.5f, 0.25f, 2.5f, -1.25f, -2, 1, 0}, {0, 1, 1.5f, -2, -1.5f, 1, 0},
    {0, -1, 2.5f, 0, -2.5f, 1, 0},          {0, 0.5f, 0.25f, -2.25f, -1, 1, 0},
    {0, -0.5f, 0.75f, 1.75f, -3, 1, 0},     {0, 0.25f, 0, -1.25f, 0, 1, 0},
    {0, -0.5f, 0.25f, 2.5f, -1.25f, -2, 1},
};
static const float kOutput7[4][7] = {
    {1, 1, 1, 1, 1, 1, 0},
    {0, 0.5f, -0.5f, 1, -1, 2, 0},
    {0, 0.25f, 0.25f, 1, 1, 4, 0},
    {0, 0.125f, -0.125f, 1, -1, 8, 1},
};

/* r = G g of a line of four taps. */
static void filter_four(const double* g, double* r) {
  const double e = g[0] + 0.25 * g[2];
  const double o = 0.5 * g[1] + 0.125 * g[3];
  const double p = g[0] + g[2];
  const double q = g[1] + g[3];
  r[0] = -2.0 * g[0];
  r[1] = 16.0 / 9.0 * (e + o);
  r[2] = 16.0 / 15.0 * (e - o);
  r[3] = -2.0 / 3.0 * (p + q);
  r[4] = -2.0 / 9.0 * (p - q);
  r[5] = 2.0 / 45.0 * ((g[0] + 4.0 * g[2]) + (2.0 * g[1] + 8.0 * g[3]));
  r[6] = g[3];
}

/* r[0], r[step], ... = G (g[0], g[g_step], g[2 g_step]). */
static void filter_line(const double* g, int g_step, double* r, int step) {
  const double g0 = g[0];
  const double g1 = g[g_step];
  const double g2 = g[2 * g_step];
  const double e = g0 + kA * kA * g2;
  const double o = kA * g1;
  const double p = g0 + kB * kB * g2;
  const double q = kB * g1;
  r[0] = kF0 * g0;
  r[step] = kFa * (e + o);
  r[2 * step] = kFa * (e - o);
  r[3 * step] = kFb * (p + q);
  r[4 * step] = kFb * (p - q);
  r[5 * step] = g2;
}

static void winograd_filter_f32__ref(const FolioWinogradFilter* args) {
  const int64_t taps = args->line_taps > 0 ? args->line_taps : 9;
  const int64_t planes = args->line_taps > 0 ? taps + 3 : FOLIO_WINOGRAD_PLANES;
  for (int64_t i = 0; i < args->channels * FOLIO_F32P16_COLUMNS; ++i) {
    double g[9];
    for (int64_t tap = 0; tap < taps; ++tap) g[tap] = args->g[tap * args->tap_stride + i];
    double u[FOLIO_WINOGRAD_PLANES];
    if (args->line_taps == 4) {
      filter_four(g, u);
    } else if (args->line_taps == 3) {
      filter_line(g, 1, u, 1);
    } else {
      double down[6][3];
      for (int k = 0; k < 3; ++k) filter_line(g + k, 3, down[0] + k, 3);
      for (int k = 0; k < 6; ++k) filter_line(down[k], 1, u + 6 * k, 1);
    }
    for (int64_t e = 0; e < planes; ++e) args->u[e * args->plane_stride + i] = (float)u[e];
  }
}

/* to [rows] = T from [columns], steps apart; factors of 0 are left out: 0 * inf is none of the
 * result. */
static void transform_line(const float* t, int rows, int columns, const float* from, int from_step,
                           float* to, int to_step) {
  for (int i = 0; i < rows; ++i) {
    float sum = 0.0f;
    for (int k = 0; k < columns; ++k) {
      if (t[i * columns + k] != 0.0f) sum += t[i * columns + k] * from[k * from_step];
    }
    to[i * to_step] = sum;
  }
}

/* to [rows][rows] = T from [6][6] T'. */
static void transform(const float (*t)[6], int rows, const float* from, float* to) {
  float half[6][6];
  for (int j = 0; j < 6; ++j) transform_line(t[0], rows, 6, from + j, 6, half[0] + j, 6);
  for (int i = 0; i < rows; ++i) transform_line(t[0], rows, 6, half[i], 1, to + i * rows, 1);
}

static void winograd_input_f32__ref(const FolioWinogradInput* args) {
  const int64_t planes = args->line_taps > 0 ? args->line_taps + 3 : FOLIO_WINOGRAD_PLANES;
  for (int64_t t = 0; t < args->tiles; ++t) {
    for (int64_t c = 0; c < args->channels; ++c) {
      float d[FOLIO_WINOGRAD_PLANES];
      float v[FOLIO_WINOGRAD_PLANES];
      for (int64_t e = 0; e < planes; ++e) d[e] = args->x[t * planes + e][c];
      if (args->line_taps == 4) transform_line(kInput7[0], 7, 7, d, 1, v, 1);
      if (args->line_taps == 3) transform_line(kInput[0], 6, 6, d, 1, v, 1);
      if (args->line_taps == 0) transform(kInput, 6, d, v);
      for (int64_t e = 0; e < planes; ++e) {
        args->v[e * args->plane_stride + t * args->row_stride + c] = v[e];
      }
    }
  }
}

static int32_t winograd_output_f32__ref(const FolioWinogradOutput* args) {
  int32_t is_finite = 1;
  const int64_t planes = args->line_taps > 0 ? args->line_taps + 3 : FOLIO_WINOGRAD_PLANES;
  const int64_t outputs = args->line_taps > 0 ? FOLIO_WINOGRAD_SIDE : FOLIO_WINOGRAD_OUTPUTS;
  for (int64_t t = 0; t < args->tiles; ++t) {
    for (int64_t c = 0; c < args->channels; ++c) {
      float m[FOLIO_WINOGRAD_PLANES];
      float y[FOLIO_WINOGRAD_OUTPUTS];
      for (int64_t e = 0; e < planes; ++e) {
        m[e] = args->m[e * args->plane_stride + t * args->row_stride + c];
      }
      if (args->line_taps == 4) transform_line(kOutput7[0], 4, 7, m, 1, y, 1);
      if (args->line_taps == 3) transform_line(kOutput[0], 4, 6, m, 1, y, 1);
      if (args->line_taps == 0) transform(kOutput, 4, m, y);
      for (int64_t k = 0; k < outputs; ++k) {
        if (y[k] - y[k] != 0.0f) is_finite = 0;
        const int64_t at = args->pixels[t * outputs + k];
        if (at < 0) continue;
        float v = args->scale ? y[k] * args->scale[c] : y[k];
        if (args->bias) v += args->bias[c];
        if (args->addend) v += args->addend[at * args->addend_step + c];
        args->y[at * args->y_step + c] =
            activate(args->activation, args->clip_lo, args->clip_hi, v);
      }
    }
  }
  return is_finite;
}

void fill_winograd__ref(FolioKernels* table) {
  table->winograd_filter_f32 = winograd_filter_f32__ref;
  table->winograd_input_f32 = winograd_input_f32__ref;
  table->winograd_output_f32 = winograd_output_f32__ref;
}
