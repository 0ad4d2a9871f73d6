/* Softmax and its logarithm: of columns, a vector of them side by side; of rows of up to 8
 * elements, which are turned into columns, kLanes rows at a time; of up to 8 vectors, which stay in
 * registers; and of longer ones, in passes. Which of them depends on a row's length only. */

enum Softmax { kSoftmaxItself, kSoftmaxLog };

/* What becomes of x when max and sum of its exponentials are known: exp(x - max) * scale, or
 * x - max - log(sum). */
template <Softmax kWhat>
VFN V softmax_scale(V sum) {
  return kWhat == kSoftmaxLog ? v_log(sum) : v_div(v_set1(1.0f), sum);
}

/* n elements of kLanes rows, lane by lane, in place. */
template <Softmax kWhat>
VFN void softmax_turned(int64_t n, V c[8]) {
  V max = c[0];
#pragma GCC unroll 8
  for (int64_t j = 1; j < 8; ++j) {
    if (j < n) max = v_pick_max(max, c[j]);
  }
  V sum = v_zero();
#pragma GCC unroll 8
  for (int64_t j = 0; j < 8; ++j) {
    if (j >= n) continue;
    c[j] = v_sub(c[j], max);
    const V e = v_exp_bounded(c[j]);
    sum = v_add(sum, e);
    if (kWhat == kSoftmaxItself) c[j] = e;
  }
  const V scale = softmax_scale<kWhat>(sum);
#pragma GCC unroll 8
  for (int64_t j = 0; j < 8; ++j) {
    if (j < n) c[j] = kWhat == kSoftmaxLog ? v_sub(c[j], scale) : v_mul(c[j], scale);
  }
}

/* kLanes rows of 8 elements, turned into columns, and back. */
constexpr int kTurned = (int)(kLanes / 8); /* squares of 8 x 8 */
VFN void turn_softmax(__m256 r[kTurned][8], V c[8]) {
#pragma GCC unroll 2
  for (int s = 0; s < kTurned; ++s) turn8x8(r[s]);
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) c[j] = v_of_8(r[0][j], r[kTurned - 1][j]);
}
VFN void turn_softmax_back(const V c[8], __m256 r[kTurned][8]) {
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    r[0][j] = v_low8(c[j]);
    if (kTurned > 1) r[kTurned - 1][j] = v_high8(c[j]);
  }
#pragma GCC unroll 2
  for (int s = 0; s < kTurned; ++s) turn8x8(r[s]);
}

template <Softmax kWhat>
VFN void softmax_short_rows(int64_t rows, int64_t n, const float* x, float* y) {
  const __m256i used = first8(n);
  __m256 r[kTurned][8];
  V c[8];
  for (int64_t i = 0; i < rows; i += kLanes) {
    const int64_t left = rows - i;
    const float* from = x + i * n;
    float* to = y + i * n;
    /* With 8 more rows behind them, 8 elements of each can be read and, in order, written. */
    const int is_inside = left >= kLanes + 8;
    if (is_inside) {
#pragma GCC unroll 16
      for (int u = 0; u < kLanes; ++u) r[u / 8][u % 8] = _mm256_loadu_ps(from + u * n);
    } else { /* the last one is read again in place of those that are not there */
#pragma GCC unroll 16
      for (int64_t u = 0; u < kLanes; ++u) {
        r[u / 8][u % 8] = _mm256_maskload_ps(from + (u < left ? u : left - 1) * n, used);
      }
    }
    turn_softmax(r, c);
    softmax_turned<kWhat>(n, c);
    turn_softmax_back(c, r);
    if (is_inside) { /* elements of the next row, which y may have from x, are put back */
      const __m256 behind = _mm256_loadu_ps(to + kLanes * n);
#pragma GCC unroll 16
      for (int u = 0; u < kLanes; ++u) _mm256_storeu_ps(to + u * n, r[u / 8][u % 8]);
      _mm256_storeu_ps(to + kLanes * n, behind);
    } else {
#pragma GCC unroll 16
      for (int64_t u = 0; u < kLanes; ++u) {
        if (u < left) _mm256_maskstore_ps(to + u * n, used, r[u / 8][u % 8]);
      }
    }
  }
}

/* exp(x - max) of up to kVectors vectors, their sum, and max, in registers, so that the CPU can be
 * at the next rows before this one is done. False if x is not all finite. */
template <int kVectors>
VFN int raise_middle_row(int64_t n, const float* x, VM m[kVectors], V row[kVectors], float* max,
                         float* sum) {
  V doubt = v_zero();
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t left = n - v * kLanes;
    m[v] = v_first(left < 0 ? 0 : left < kLanes ? left : kLanes);
    const V a = v_load_masked(x + v * kLanes, m[v]);
    doubt = v_fma(a, v_zero(), doubt);
    row[v] = v_select(m[v], a, v_set1(-__builtin_inff()));
  }
  if (v_any(v_is_nan(doubt))) return 0;
  V best = row[0];
#pragma GCC unroll 8
  for (int v = 1; v < kVectors; ++v) best = v_max(row[v], best);
  *max = v_max_lane(best);
  const V top = v_set1(*max);
  V part[2] = {v_zero(), v_zero()};
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    row[v] = v_exp_bounded(v_sub(row[v], top));
    part[v % 2] = v_add(part[v % 2], row[v]);
  }
  *sum = v_sum(v_add(part[0], part[1]));
  return 1;
}

template <int kVectors>
VFN int softmax_middle_row(int64_t n, const float* x, float* y) {
  VM m[kVectors];
  V row[kVectors];
  float max = 0;
  float sum = 0;
  if (!raise_middle_row<kVectors>(n, x, m, row, &max, &sum)) return 0;
  const V scale = v_set1(1.0f / sum);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) v_store_masked(y + v * kLanes, m[v], v_mul(row[v], scale));
  return 1;
}
template <int kVectors>
VFN int sum_middle_row(int64_t n, const float* x, float* max, float* sum) {
  VM m[kVectors];
  V row[kVectors];
  return raise_middle_row<kVectors>(n, x, m, row, max, sum);
}

/* The sum of exp(x - max), stored to y when there is one. */
template <int kStores>
VFN float row_exp_sum(int64_t n, const float* x, float max, float* y) {
  const V top = v_set1(max);
  V sum[2] = {v_zero(), v_zero()};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
#pragma GCC unroll 2
    for (int u = 0; u < 2; ++u) {
      const V e = v_exp_bounded(v_sub(v_load(x + i + u * kLanes), top));
      if (kStores) v_store(y + i + u * kLanes, e);
      sum[u] = v_add(sum[u], e);
    }
  }
  for (; i < n; i += kLanes) {
    const VM m = v_first(n - i < kLanes ? n - i : kLanes);
    const V e = v_exp_bounded(v_sub(v_load_masked(x + i, m), top));
    if (kStores) v_store_masked(y + i, m, e);
    sum[0] = v_add(sum[0], v_select(m, e, v_zero()));
  }
  return v_sum(v_add(sum[0], sum[1]));
}

VFN void scale_row(int64_t n, float by, float* y) {
  const V scale = v_set1(by);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) v_store(y + i, v_mul(v_load(y + i), scale));
  if (i < n) {
    const VM m = v_first(n - i);
    v_store_masked(y + i, m, v_mul(v_load_masked(y + i, m), scale));
  }
}

/* Rows of more than eight vectors. While one is raised, the largest number of the next is already
 * known, and the row before waits no more for its sum. */
static void softmax_long_rows(int64_t rows, int64_t n, const float* x, float* y) {
  float max = rows > 0 ? FOLIO_LEVEL(max_f32)(n, x) : 0;
  float sum_before = 0;
  for (int64_t r = 0; r <= rows; ++r, x += n, y += n) {
    float sum = 0;
    if (r < rows) {
      const float next = r + 1 < rows ? FOLIO_LEVEL(max_f32)(n, x + n) : 0;
      sum = row_exp_sum<1>(n, x, max, y);
      max = next;
    }
    if (r > 0) scale_row(n, 1.0f / sum_before, y - n);
    sum_before = sum;
  }
}

VFN void softmax_row(int64_t n, const float* x, float* y) {
  if (n <= kLanes       ? softmax_middle_row<1>(n, x, y)
      : n <= 2 * kLanes ? softmax_middle_row<2>(n, x, y)
      : n <= 4 * kLanes ? softmax_middle_row<4>(n, x, y)
      : n <= 6 * kLanes ? softmax_middle_row<6>(n, x, y)
                        : softmax_middle_row<8>(n, x, y)) {
    return;
  }
  softmax_long_rows(1, n, x, y);
}

static void FOLIO_LEVEL(softmax_f32)(int64_t rows, int64_t n, const float* x, float* y) {
  if (n == 0) return;
  if (n <= 8) return softmax_short_rows<kSoftmaxItself>(rows, n, x, y);
  if (n > 8 * kLanes) return softmax_long_rows(rows, n, x, y);
  for (int64_t i = 0; i < rows; ++i) softmax_row(n, x + i * n, y + i * n);
}

VFN void sum_row(int64_t n, const float* x, float* max, float* sum) {
  if (n <= kLanes       ? sum_middle_row<1>(n, x, max, sum)
      : n <= 2 * kLanes ? sum_middle_row<2>(n, x, max, sum)
      : n <= 4 * kLanes ? sum_middle_row<4>(n, x, max, sum)
      : n <= 6 * kLanes ? sum_middle_row<6>(n, x, max, sum)
                        : n <= 8 * kLanes && sum_middle_row<8>(n, x, max, sum)) {
    return;
  }
  *max = FOLIO_LEVEL(max_f32)(n, x);
  *sum = row_exp_sum<0>(n, x, *max, nullptr);
}

static void FOLIO_LEVEL(log_softmax_f32)(int64_t rows, int64_t n, const float* x, float* y) {
  if (n == 0) return;
  if (n <= 8) return softmax_short_rows<kSoftmaxLog>(rows, n, x, y);
  /* A vector of rows has one logarithm, while they are in L1. */
  const int64_t most = n <= 512 ? kLanes : 1;
  for (int64_t i = 0; i < rows; i += most) {
    const int64_t count = rows - i < most ? rows - i : most;
    float max[kLanes];
    float sum[kLanes];
    v_store(sum, v_set1(1.0f));
    for (int64_t r = 0; r < count; ++r) sum_row(n, x + (i + r) * n, &max[r], &sum[r]);
    v_store(sum, v_log(v_load(sum)));
    for (int64_t r = 0; r < count; ++r) {
      const float* from = x + (i + r) * n;
      float* to = y + (i + r) * n;
      const V top = v_set1(max[r]);
      const V log_sum = v_set1(sum[r]);
      int64_t j = 0;
      for (; j + kLanes <= n; j += kLanes) {
        v_store(to + j, v_sub(v_sub(v_load(from + j), top), log_sum));
      }
      if (j < n) {
        const VM m = v_first(n - j);
        v_store_masked(to + j, m, v_sub(v_sub(v_load_masked(from + j, m), top), log_sum));
      }
    }
  }
}

/* kVectors vectors of columns, the last of which has the lanes of `last`. */
template <Softmax kWhat, int kVectors>
VFN void softmax_some_columns(int64_t n, VM last, const float* x, int64_t x_stride, float* y,
                              int64_t y_stride) {
  const auto load = [&](const float* from, int v) {
    return v < kVectors - 1 ? v_load(from + v * kLanes) : v_load_masked(from + v * kLanes, last);
  };
  const auto store = [&](float* to, int v, V a) {
    if (v < kVectors - 1) {
      v_store(to + v * kLanes, a);
    } else {
      v_store_masked(to + v * kLanes, last, a);
    }
  };
  V max[kVectors];
  V sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    max[v] = load(x, v);
    sum[v] = v_zero();
  }
  for (int64_t j = 1; j < n; ++j) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) max[v] = v_pick_max(max[v], load(x + j * x_stride, v));
  }
  for (int64_t j = 0; j < n; ++j) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V less = v_sub(load(x + j * x_stride, v), max[v]);
      const V e = v_exp_bounded(less);
      sum[v] = v_add(sum[v], e);
      store(y + j * y_stride, v, kWhat == kSoftmaxLog ? less : e);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sum[v] = softmax_scale<kWhat>(sum[v]);
  for (int64_t j = 0; j < n; ++j) {
    float* to = y + j * y_stride;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V a = load(to, v);
      store(to, v, kWhat == kSoftmaxLog ? v_sub(a, sum[v]) : v_mul(a, sum[v]));
    }
  }
}

template <Softmax kWhat>
static void softmax_columns(int64_t n, int64_t columns, const float* x, int64_t x_stride, float* y,
                            int64_t y_stride) {
  if (n == 0) return;
  int64_t i = 0;
  for (; i + 4 * kLanes <= columns; i += 4 * kLanes) {
    softmax_some_columns<kWhat, 4>(n, v_first(kLanes), x + i, x_stride, y + i, y_stride);
  }
  for (; i < columns; i += kLanes) {
    const VM m = v_first(columns - i < kLanes ? columns - i : kLanes);
    softmax_some_columns<kWhat, 1>(n, m, x + i, x_stride, y + i, y_stride);
  }
}

static void fill_softmax(FolioKernels* table) {
  table->softmax_f32 = FOLIO_LEVEL(softmax_f32);
  table->log_softmax_f32 = FOLIO_LEVEL(log_softmax_f32);
  table->softmax_columns_f32 = softmax_columns<kSoftmaxItself>;
  table->log_softmax_columns_f32 = softmax_columns<kSoftmaxLog>;
}
