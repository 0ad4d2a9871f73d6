// Rows of pixels with channels side by side: filters of one channel each, and pooling.
#include <math.h>

#include "core/kernels/ref/ref.h"

static void depthwise_f32__ref(const FolioWindowF32* args) {
  for (int64_t i = 0; i < args->pixels; ++i) {
    for (int64_t c = 0; c < args->channels; ++c) {
      float v = args->bias ? args->bias[c] : 0.0f;
      for (int64_t t = 0; t < args->taps; ++t) v += args->w[t][c] * args->x[t][i * args->x_step + c];
      args->y[i * args->y_step + c] =
          activate(args->activation, args->clip_lo, args->clip_hi, v);
    }
  }
}

static void max_window_f32__ref(const FolioWindowF32* args) {
  for (int64_t i = 0; i < args->pixels; ++i) {
    for (int64_t c = 0; c < args->channels; ++c) {
      float best = -INFINITY;
      for (int64_t t = 0; t < args->taps; ++t) {
        const float x = args->x[t][i * args->x_step + c];
        best = best != best || best > x ? best : x;
      }
      args->y[i * args->y_step + c] = best;
    }
  }
}

static void sum_window_f32__ref(const FolioWindowF32* args) {
  for (int64_t i = 0; i < args->pixels; ++i) {
    for (int64_t c = 0; c < args->channels; ++c) {
      float sum = 0.0f;
      for (int64_t t = 0; t < args->taps; ++t) sum += args->x[t][i * args->x_step + c];
      args->y[i * args->y_step + c] = sum * args->scale;
    }
  }
}

void fill_window__ref(FolioKernels* table) {
  table->depthwise_f32 = depthwise_f32__ref;
  table->max_window_f32 = max_window_f32__ref;
  table->sum_window_f32 = sum_window_f32__ref;
}
