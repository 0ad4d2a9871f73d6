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

// One element joined to what was before; the wider type of sums is the caller's.
template <FolioReduce kHow, typename A>
static A join(A acc, float x) {
  if (kHow == kFolioReduceSum) return acc + x;
  if (kHow == kFolioReduceSquares) return acc + static_cast<A>(x) * x;
  if (kHow == kFolioReduceMagnitudes) return acc + static_cast<A>(fabsf(x));
  if (kHow == kFolioReduceProd) return acc * x;
  if (kHow == kFolioReduceMax) return acc != acc || acc > x ? acc : x;
  return acc != acc || acc < x ? acc : x;
}

template <FolioReduce kHow>
static void reduce_rows_f32__ref(int64_t rows, int64_t n, const float* x, int64_t x_stride,
                                 float* acc) {
  for (int64_t i = 0; i < rows; ++i) {
    double joined = acc[i];
    for (int64_t j = 0; j < n; ++j) joined = join<kHow>(joined, x[i * x_stride + j]);
    acc[i] = static_cast<float>(joined);
  }
}

template <FolioReduce kHow>
static void reduce_columns_f32__ref(int64_t rows, int64_t n, const float* x, int64_t x_stride,
                                    float* acc) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; ++j) acc[j] = join<kHow>(acc[j], x[i * x_stride + j]);
  }
}

template <FolioReduce kHow>
static void fill_reduction(FolioKernels* table) {
  table->reduce_rows_f32[kHow] = reduce_rows_f32__ref<kHow>;
  table->reduce_columns_f32[kHow] = reduce_columns_f32__ref<kHow>;
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
  fill_reduction<kFolioReduceSum>(table);
  fill_reduction<kFolioReduceSquares>(table);
  fill_reduction<kFolioReduceMagnitudes>(table);
  fill_reduction<kFolioReduceProd>(table);
  fill_reduction<kFolioReduceMax>(table);
  fill_reduction<kFolioReduceMin>(table);
  table->shifted_sum_f32 = shifted_sum_f32__ref;
  table->softmax_f32 = softmax_f32__ref;
  table->log_softmax_f32 = log_softmax_f32__ref;
  table->layer_norm_f32 = layer_norm_f32__ref;
  table->rms_norm_f32 = rms_norm_f32__ref;
}
