// Lines of pixels with channels side by side: filters of one channel each, and pooling. Planes
// under a filter.
#include <math.h>

#include "core/kernels/ref/ref.h"

// The floats of one tap of a pixel.
static const float* tap_at(const FolioWindowF32* args, int64_t line, int64_t pixel, int64_t tap) {
  return args->x[tap] + line * args->x_line + pixel * args->x_step;
}

static void depthwise_pixel(const FolioWindowF32* args, int64_t line, int64_t pixel, float* y) {
  for (int64_t c = 0; c < args->channels; ++c) {
    float v = args->bias ? args->bias[c] : 0.0f;
    for (int64_t t = 0; t < args->taps; ++t) v += args->w[t][c] * tap_at(args, line, pixel, t)[c];
    y[c] = activate(args->activation, args->clip_lo, args->clip_hi, v);
  }
}

static void grouped_pixel(const FolioWindowF32* args, int64_t line, int64_t pixel, float* y) {
  for (int64_t c = 0; c < args->channels; ++c) {
    float v = args->bias ? args->bias[c] : 0.0f;
    for (int64_t t = 0; t < args->taps; ++t) {
      const float* x = tap_at(args, line, pixel, t) + c / args->group * args->group;
      const float* w = args->w[t] + c / 16 * args->w_panel + c % 16;
      for (int64_t s = 0; s < args->group; ++s) v += w[16 * s] * x[s];
    }
    y[c] = activate(args->activation, args->clip_lo, args->clip_hi, v);
  }
}

typedef float (*JoinFn)(float joined, float x);
static float join_max(float joined, float x) { return joined != joined || joined > x ? joined : x; }
static float join_sum(float joined, float x) { return joined + x; }

static void max_pixel(const FolioWindowF32* args, int64_t line, int64_t pixel, float* y) {
  for (int64_t c = 0; c < args->channels; ++c) {
    float best = -INFINITY;
    for (int64_t t = 0; t < args->taps; ++t) best = join_max(best, tap_at(args, line, pixel, t)[c]);
    y[c] = best;
  }
}

static void sum_pixel(const FolioWindowF32* args, int64_t line, int64_t pixel, float* y) {
  for (int64_t c = 0; c < args->channels; ++c) {
    float sum = 0.0f;
    for (int64_t t = 0; t < args->taps; ++t) sum += tap_at(args, line, pixel, t)[c];
    y[c] = sum * args->scale;
  }
}

typedef void (*PixelFn)(const FolioWindowF32* args, int64_t line, int64_t pixel, float* y);

static void each_pixel(const FolioWindowF32* args, PixelFn pixel) {
  for (int64_t l = 0; l < args->lines; ++l) {
    for (int64_t i = 0; i < args->pixels; ++i) {
      pixel(args, l, i, args->y + l * args->y_line + i * args->y_step);
    }
  }
}

static void depthwise_f32__ref(const FolioWindowF32* args) { each_pixel(args, depthwise_pixel); }
static void grouped_f32__ref(const FolioWindowF32* args) { each_pixel(args, grouped_pixel); }
static void max_window_f32__ref(const FolioWindowF32* args) { each_pixel(args, max_pixel); }
static void sum_window_f32__ref(const FolioWindowF32* args) { each_pixel(args, sum_pixel); }

// Of the rows of a line, the float that is `at` floats from the begin of each.
static float joined_rows(const FolioLinesF32* args, const float* x, const int64_t* rows,
                         int64_t count, int64_t at, JoinFn join, float start) {
  float joined = start;
  const int is_inside = at >= 0 && at < args->x_pixels;
  for (int64_t r = 0; is_inside && r < count; ++r) joined = join(joined, x[rows[r] + at]);
  return joined;
}

static void join_plane(const FolioLinesF32* args, const float* x, JoinFn join, float start,
                       float* y) {
  const int64_t* rows = args->rows;
  for (int64_t l = 0; l < args->lines; ++l) {
    for (int64_t i = 0; i < args->pixels; ++i) {
      float joined = start;
      for (int64_t t = 0; t < args->taps; ++t) {
        const int64_t at = i * args->pixel_step + t * args->tap_step - args->left;
        joined = join(joined, joined_rows(args, x, rows, args->counts[l], at, join, start));
      }
      const float by = join == join_sum ? args->by_lines[l] * args->by_pixels[i] : 1.0f;
      y[l * args->pixels + i] = joined / by;
    }
    rows += args->counts[l];
  }
}

static void each_plane(const FolioLinesF32* args, JoinFn join, float start) {
  for (int64_t p = 0; p < args->planes; ++p) {
    join_plane(args, args->x + p * args->x_plane, join, start, args->y + p * args->y_plane);
  }
}

static void max_lines_f32__ref(const FolioLinesF32* args) { each_plane(args, join_max, -INFINITY); }
static void sum_lines_f32__ref(const FolioLinesF32* args) { each_plane(args, join_sum, 0.0f); }

static float plane_at(const FolioPlaneF32* args, int64_t plane, int64_t line, int64_t pixel) {
  const int is_inside = line >= 0 && line < args->x_lines && pixel >= 0 && pixel < args->x_pixels;
  return is_inside ? args->x[plane * args->x_plane + line * args->x_pixels + pixel] : 0.0f;
}

static float plane_sum(const FolioPlaneF32* args, int64_t line, int64_t pixel) {
  float sum = args->bias;
  const float* w = args->w;
  for (int64_t q = 0; q < args->planes; ++q) {
    for (int64_t r = 0; r < args->rows; ++r) {
      for (int64_t c = 0; c < args->columns; ++c, ++w) {
        sum += *w * plane_at(args, q, line * args->line_step + r * args->row_step - args->top,
                             pixel * args->pixel_step + c * args->column_step - args->left);
      }
    }
  }
  return sum;
}

static void filter_plane_f32__ref(const FolioPlaneF32* args) {
  for (int64_t l = 0; l < args->lines; ++l) {
    for (int64_t i = 0; i < args->pixels; ++i) {
      args->y[l * args->pixels + i] =
          activate(args->activation, args->clip_lo, args->clip_hi, plane_sum(args, l, i));
    }
  }
}

void fill_window__ref(FolioKernels* table) {
  table->depthwise_f32 = depthwise_f32__ref;
  table->grouped_f32 = grouped_f32__ref;
  table->max_lines_f32 = max_lines_f32__ref;
  table->sum_lines_f32 = sum_lines_f32__ref;
  table->max_window_f32 = max_window_f32__ref;
  table->sum_window_f32 = sum_window_f32__ref;
  table->filter_plane_f32 = filter_plane_f32__ref;
}
