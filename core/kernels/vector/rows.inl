/* Functions of one row: four sums side by side, joined in a fixed order, so that a result depends
 * on n and the values only. */

VFN V v_row_part(const float* x, int64_t i, int64_t n, float fill) {
  if (n - i >= kLanes) return v_load(x + i);
  const VM m = v_first(n - i);
  return v_select(m, v_load_masked(x + i, m), v_set1(fill));
}

VFN V v_add_value(V sum, V x) { return v_add(sum, x); }
VFN V v_add_square(V sum, V x) { return v_fma(x, x, sum); }

template <V (*kStep)(V, V)>
VFN float row_sum(int64_t n, const float* x) {
  V sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) sum[u] = kStep(sum[u], v_load(x + i + u * kLanes));
  }
  for (; i < n; i += kLanes) sum[0] = kStep(sum[0], v_row_part(x, i, n, 0.0f));
  return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])));
}

static float FOLIO_LEVEL(sum_f32)(int64_t n, const float* x) { return row_sum<v_add_value>(n, x); }
static float FOLIO_LEVEL(sum_squares_f32)(int64_t n, const float* x) {
  return row_sum<v_add_square>(n, x);
}

static float FOLIO_LEVEL(dot_f32)(int64_t n, const float* a, const float* b) {
  V sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      sum[u] = v_fma(v_load(a + i + u * kLanes), v_load(b + i + u * kLanes), sum[u]);
    }
  }
  for (; i < n; i += kLanes) {
    sum[0] = v_fma(v_row_part(a, i, n, 0.0f), v_row_part(b, i, n, 0.0f), sum[0]);
  }
  return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])));
}

/* The instructions drop NaN, so every x is also added to a sum of x * 0: NaN in, or inf, makes that
 * NaN, and only then the row is searched. */
template <V (*kPick)(V, V), float (*kLane)(V)>
VFN float row_best(int64_t n, const float* x, float start) {
  V best[4];
  V doubts[4];
#pragma GCC unroll 4
  for (int u = 0; u < 4; ++u) {
    best[u] = v_set1(start);
    doubts[u] = v_zero();
  }
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      const V a = v_load(x + i + u * kLanes);
      best[u] = kPick(a, best[u]);
      doubts[u] = v_fma(a, v_zero(), doubts[u]);
    }
  }
  for (; i < n; i += kLanes) {
    const V a = v_row_part(x, i, n, start);
    best[0] = kPick(a, best[0]);
    doubts[0] = v_fma(v_row_part(x, i, n, 0.0f), v_zero(), doubts[0]);
  }
  const V doubt = v_add(v_add(doubts[0], doubts[1]), v_add(doubts[2], doubts[3]));
  if (v_any(v_is_nan(doubt))) {
    for (int64_t j = 0; j < n; ++j) {
      if (x[j] != x[j]) return x[j];
    }
  }
  return kLane(kPick(kPick(best[0], best[1]), kPick(best[2], best[3])));
}

static float FOLIO_LEVEL(max_f32)(int64_t n, const float* x) {
  return row_best<v_max, v_max_lane>(n, x, -__builtin_inff());
}
static float FOLIO_LEVEL(min_f32)(int64_t n, const float* x) {
  return row_best<v_min, v_min_lane>(n, x, __builtin_inff());
}

/* kVectors sums side by side, so that their chains of additions overlap. */
template <int kVectors>
VFN void shifted_sums(int64_t taps, const float* w, const int64_t* offsets, const float* x,
                      float bias, float* y) {
  V sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = v_set1(bias);
  for (int64_t t = 0; t < taps; ++t) {
    const V scale = v_set1(w[t]);
    const float* from = x + offsets[t];
    for (int v = 0; v < kVectors; ++v) sum[v] = v_fma(scale, v_load(from + v * kLanes), sum[v]);
  }
  for (int v = 0; v < kVectors; ++v) v_store(y + v * kLanes, sum[v]);
}

static void FOLIO_LEVEL(shifted_sum_f32)(int64_t n, int64_t taps, const float* w,
                                         const int64_t* offsets, const float* x, float bias,
                                         float* y) {
  int64_t i = 0;
  for (; i + 8 * kLanes <= n; i += 8 * kLanes)
    shifted_sums<8>(taps, w, offsets, x + i, bias, y + i);
  for (; i + 2 * kLanes <= n; i += 2 * kLanes)
    shifted_sums<2>(taps, w, offsets, x + i, bias, y + i);
  for (; i < n; i += kLanes) {
    const VM m = v_first(n - i < kLanes ? n - i : kLanes);
    V sum = v_set1(bias);
    for (int64_t t = 0; t < taps; ++t) {
      sum = v_fma(v_set1(w[t]), v_load_masked(x + offsets[t] + i, m), sum);
    }
    v_store_masked(y + i, m, sum);
  }
}

/* x * gamma + beta, of which there may be none. */
template <int kGamma, int kBeta>
VFN V shape_normal(V x, V gamma, V beta) {
  if (kGamma && kBeta) return v_fma(x, gamma, beta);
  return kGamma ? v_mul(x, gamma) : kBeta ? v_add(x, beta) : x;
}

/* y = (x - shift) * scale * gamma + beta, where gamma and beta may be absent. */
template <int kGamma, int kBeta>
VFN void row_normalize(int64_t n, const float* x, float shift, float scale, const float* gamma,
                       const float* beta, float* y) {
  const V shifts = v_set1(shift);
  const V scales = v_set1(scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = v_mul(v_sub(v_load(x + i), shifts), scales);
    const V by = kGamma ? v_load(gamma + i) : shifts;
    v_store(y + i, shape_normal<kGamma, kBeta>(v, by, kBeta ? v_load(beta + i) : shifts));
  }
  if (i < n) {
    const VM m = v_first(n - i);
    const V v = v_mul(v_sub(v_load_masked(x + i, m), shifts), scales);
    const V by = kGamma ? v_load_masked(gamma + i, m) : shifts;
    const V more = kBeta ? v_load_masked(beta + i, m) : shifts;
    v_store_masked(y + i, m, shape_normal<kGamma, kBeta>(v, by, more));
  }
}

static void normalize(int64_t n, const float* x, float shift, float scale, const float* gamma,
                      const float* beta, float* y) {
  if (gamma && beta) {
    row_normalize<1, 1>(n, x, shift, scale, gamma, beta, y);
  } else if (gamma) {
    row_normalize<1, 0>(n, x, shift, scale, gamma, beta, y);
  } else if (beta) {
    row_normalize<0, 1>(n, x, shift, scale, gamma, beta, y);
  } else {
    row_normalize<0, 0>(n, x, shift, scale, gamma, beta, y);
  }
}

VFN float inverse_root(float squares, int64_t n, float eps) {
  return 1.0f / __builtin_sqrtf(squares / (float)n + eps);
}

static void FOLIO_LEVEL(layer_norm_f32)(int64_t n, const float* x, const float* gamma,
                                        const float* beta, float eps, float* y, float* mean_out,
                                        float* inv_std_out) {
  const float mean = FOLIO_LEVEL(sum_f32)(n, x) / (float)n;
  const V center = v_set1(mean);
  V sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      const V d = v_sub(v_load(x + i + u * kLanes), center);
      sum[u] = v_fma(d, d, sum[u]);
    }
  }
  for (; i < n; i += kLanes) {
    const V d = v_sub(v_row_part(x, i, n, mean), center);
    sum[0] = v_fma(d, d, sum[0]);
  }
  const V all = v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
  const float inv_std = inverse_root(v_sum(all), n, eps);
  normalize(n, x, mean, inv_std, gamma, beta, y);
  if (mean_out) *mean_out = mean;
  if (inv_std_out) *inv_std_out = inv_std;
}

static void FOLIO_LEVEL(rms_norm_f32)(int64_t n, const float* x, const float* gamma, float eps,
                                      float* y, float* inv_rms_out) {
  const float inv_rms = inverse_root(FOLIO_LEVEL(sum_squares_f32)(n, x), n, eps);
  normalize(n, x, 0.0f, inv_rms, gamma, nullptr, y);
  if (inv_rms_out) *inv_rms_out = inv_rms;
}

static void fill_rows(FolioKernels* table) {
  table->sum_f32 = FOLIO_LEVEL(sum_f32);
  table->sum_squares_f32 = FOLIO_LEVEL(sum_squares_f32);
  table->dot_f32 = FOLIO_LEVEL(dot_f32);
  table->max_f32 = FOLIO_LEVEL(max_f32);
  table->min_f32 = FOLIO_LEVEL(min_f32);
  table->shifted_sum_f32 = FOLIO_LEVEL(shifted_sum_f32);
  table->layer_norm_f32 = FOLIO_LEVEL(layer_norm_f32);
  table->rms_norm_f32 = FOLIO_LEVEL(rms_norm_f32);
}
