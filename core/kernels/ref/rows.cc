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

// Where integers wrap, and what rows of floats are joined in.
template <typename T>
struct Joined {
  using Sum = T;
};
template <>
struct Joined<float> {
  using Sum = double;
};
template <>
struct Joined<int32_t> {
  using Sum = uint32_t;
};
template <>
struct Joined<int64_t> {
  using Sum = uint64_t;
};

// One element joined to what was before; A is T or the wider type of sums.
template <FolioReduce kHow, typename T, typename A>
static A join(A acc, T x) {
  using Sum = typename Joined<T>::Sum;
  if (kHow == kFolioReduceMax) return acc != acc || acc > x ? acc : x;
  if (kHow == kFolioReduceMin) return acc != acc || acc < x ? acc : x;
  const auto sum = static_cast<Sum>(acc);
  const auto next = static_cast<Sum>(x);
  if (kHow == kFolioReduceSquares) return static_cast<A>(sum + next * next);
  if (kHow == kFolioReduceMagnitudes) return static_cast<A>(sum + (x < 0 ? 0 - next : next));
  if (kHow == kFolioReduceProd) return static_cast<A>(sum * next);
  return static_cast<A>(sum + next);
}

template <FolioReduce kHow, typename T, typename A>
static void reduce_rows__ref(int64_t rows, int64_t n, const T* x, int64_t x_stride, T* acc) {
  for (int64_t i = 0; i < rows; ++i) {
    A joined = acc[i];
    for (int64_t j = 0; j < n; ++j) joined = join<kHow, T>(joined, x[i * x_stride + j]);
    acc[i] = static_cast<T>(joined);
  }
}

template <FolioReduce kHow, typename T>
static void reduce_columns__ref(int64_t rows, int64_t n, const T* x, int64_t x_stride, T* acc) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; ++j) acc[j] = join<kHow, T>(acc[j], x[i * x_stride + j]);
  }
}

template <FolioReduce kHow>
static void fill_reduction(FolioKernels* table) {
  table->reduce_rows_f32[kHow] = reduce_rows__ref<kHow, float, double>;
  table->reduce_columns_f32[kHow] = reduce_columns__ref<kHow, float>;
  table->reduce_rows_f64[kHow] = reduce_rows__ref<kHow, double, double>;
  table->reduce_columns_f64[kHow] = reduce_columns__ref<kHow, double>;
  table->reduce_rows_s32[kHow] = reduce_rows__ref<kHow, int32_t, int32_t>;
  table->reduce_columns_s32[kHow] = reduce_columns__ref<kHow, int32_t>;
  table->reduce_rows_s64[kHow] = reduce_rows__ref<kHow, int64_t, int64_t>;
  table->reduce_columns_s64[kHow] = reduce_columns__ref<kHow, int64_t>;
}

static void shifted_sum_f32__ref(int64_t n, int64_t taps, const float* w, const int64_t* offsets,
                                 const float* x, float bias, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    float sum = bias;
    for (int64_t t = 0; t < taps; ++t) sum += w[t] * x[offsets[t] + i];
    y[i] = sum;
  }
}

// n elements that stand so far apart.
static float strided_max(int64_t n, const float* x, int64_t stride) {
  float max = x[0];
  for (int64_t i = 1; i < n; ++i) max = join<kFolioReduceMax, float>(max, x[i * stride]);
  return max;
}

static void softmax_columns_f32__ref(int64_t n, int64_t columns, const float* x, int64_t x_stride,
                                     float* y, int64_t y_stride) {
  for (int64_t c = 0; c < columns && n > 0; ++c) {
    const float max = strided_max(n, x + c, x_stride);
    float sum = 0.0f;
    for (int64_t i = 0; i < n; ++i) {
      y[i * y_stride + c] = expf(x[i * x_stride + c] - max);
      sum += y[i * y_stride + c];
    }
    for (int64_t i = 0; i < n; ++i) y[i * y_stride + c] /= sum;
  }
}

static void log_softmax_columns_f32__ref(int64_t n, int64_t columns, const float* x,
                                         int64_t x_stride, float* y, int64_t y_stride) {
  for (int64_t c = 0; c < columns && n > 0; ++c) {
    const float max = strided_max(n, x + c, x_stride);
    float sum = 0.0f;
    for (int64_t i = 0; i < n; ++i) sum += expf(x[i * x_stride + c] - max);
    const float log_sum = logf(sum);
    for (int64_t i = 0; i < n; ++i) {
      y[i * y_stride + c] = x[i * x_stride + c] - max - log_sum;
    }
  }
}

static void softmax_f32__ref(int64_t rows, int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < rows; ++i) softmax_columns_f32__ref(n, 1, x + i * n, 1, y + i * n, 1);
}

static void log_softmax_f32__ref(int64_t rows, int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < rows; ++i) log_softmax_columns_f32__ref(n, 1, x + i * n, 1, y + i * n, 1);
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
  table->softmax_columns_f32 = softmax_columns_f32__ref;
  table->log_softmax_columns_f32 = log_softmax_columns_f32__ref;
  table->layer_norm_f32 = layer_norm_f32__ref;
  table->rms_norm_f32 = rms_norm_f32__ref;
}
