// Functions of one row: reductions, softmax, normalisations. Sums run from left to right in double,
// so that what the other levels are held against is nearly exact.
#include <math.h>

#include "core/kernels/ref/ref.h"

static float sum_f32__ref(int64_t n, const float* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return static_cast<float>(sum);
}

static float sum_squares_f32__ref(int64_t n, const float* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return static_cast<float>(sum);
}

static float dot_f32__ref(int64_t n, const float* a, const float* b) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return static_cast<float>(sum);
}

static float max_f32__ref(int64_t n, const float* x) {
  float best = -INFINITY;
  for (int64_t i = 0; i < n; ++i) best = best != best || best > x[i] ? best : x[i];
  return best;
}

static float min_f32__ref(int64_t n, const float* x) {
  float best = INFINITY;
  for (int64_t i = 0; i < n; ++i) best = best != best || best < x[i] ? best : x[i];
  return best;
}

static void shifted_sum_f32__ref(int64_t n, int64_t taps, const float* w, const int64_t* offsets,
                                 const float* x, float bias, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    float sum = bias;
    for (int64_t t = 0; t < taps; ++t) sum += w[t] * x[offsets[t] + i];
    y[i] = sum;
  }
}

static void softmax_f32__ref(int64_t n, const float* x, float* y) {
  const float max = max_f32__ref(n, x);
  float sum = 0.0f;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = expf(x[i] - max);
    sum += y[i];
  }
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}

static void log_softmax_f32__ref(int64_t n, const float* x, float* y) {
  const float max = max_f32__ref(n, x);
  float sum = 0.0f;
  for (int64_t i = 0; i < n; ++i) sum += expf(x[i] - max);
  const float log_sum = logf(sum);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - max - log_sum;
}

static void layer_norm_f32__ref(int64_t n, const float* x, const float* gamma, const float* beta,
                                float eps, float* y, float* mean_out, float* inv_std_out) {
  const float mean = sum_f32__ref(n, x) / static_cast<float>(n);
  float squares = 0.0f;
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const float inv_std = 1.0f / sqrtf(squares / static_cast<float>(n) + eps);
  for (int64_t i = 0; i < n; ++i) {
    const float scaled = (x[i] - mean) * inv_std * (gamma ? gamma[i] : 1.0f);
    y[i] = beta ? scaled + beta[i] : scaled;
  }
  if (mean_out) *mean_out = mean;
  if (inv_std_out) *inv_std_out = inv_std;
}

static void rms_norm_f32__ref(int64_t n, const float* x, const float* gamma, float eps, float* y,
                              float* inv_rms_out) {
  const float inv_rms = 1.0f / sqrtf(sum_squares_f32__ref(n, x) / static_cast<float>(n) + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * inv_rms * (gamma ? gamma[i] : 1.0f);
  if (inv_rms_out) *inv_rms_out = inv_rms;
}

void fill_rows__ref(FolioKernels* table) {
  table->sum_f32 = sum_f32__ref;
  table->sum_squares_f32 = sum_squares_f32__ref;
  table->dot_f32 = dot_f32__ref;
  table->max_f32 = max_f32__ref;
  table->min_f32 = min_f32__ref;
  table->shifted_sum_f32 = shifted_sum_f32__ref;
  table->softmax_f32 = softmax_f32__ref;
  table->log_softmax_f32 = log_softmax_f32__ref;
  table->layer_norm_f32 = layer_norm_f32__ref;
  table->rms_norm_f32 = rms_norm_f32__ref;
}
