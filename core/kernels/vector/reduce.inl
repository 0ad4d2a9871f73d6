/* Reductions of many rows, or of columns, at once. The order in which a row is joined depends on its
 * length only: up to 8 elements one after the other; shorter than 8 vectors by one vector, longer
 * ones by four, whose lanes are then joined half by half. */

constexpr float row_start(FolioReduce how) {
  return how == kFolioReduceProd  ? 1.0f
         : how == kFolioReduceMax ? -__builtin_inff()
         : how == kFolioReduceMin ? __builtin_inff()
                                  : 0.0f;
}

/* Of two results; NaN stays, which is what the second operand of the instructions is for. */
template <FolioReduce kHow>
VFN V v_join(V a, V b) {
  if (kHow == kFolioReduceProd) return v_mul(a, b);
  if (kHow == kFolioReduceMax) return v_pick_max(a, b);
  if (kHow == kFolioReduceMin) return v_pick_min(a, b);
  return v_add(a, b);
}
template <FolioReduce kHow>
VFN __m256 join8(__m256 a, __m256 b) {
  if (kHow == kFolioReduceProd) return _mm256_mul_ps(a, b);
  if (kHow != kFolioReduceMax && kHow != kFolioReduceMin) return _mm256_add_ps(a, b);
  const __m256 best = kHow == kFolioReduceMax ? _mm256_max_ps(a, b) : _mm256_min_ps(a, b);
  return _mm256_blendv_ps(best, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
template <FolioReduce kHow>
VFN __m128 join4(__m128 a, __m128 b) {
  if (kHow == kFolioReduceProd) return _mm_mul_ps(a, b);
  if (kHow != kFolioReduceMax && kHow != kFolioReduceMin) return _mm_add_ps(a, b);
  const __m128 best = kHow == kFolioReduceMax ? _mm_max_ps(a, b) : _mm_min_ps(a, b);
  return _mm_blendv_ps(best, a, _mm_cmpunord_ps(a, a));
}

/* An element into a result. */
template <FolioReduce kHow>
VFN V v_step(V acc, V x) {
  if (kHow == kFolioReduceSquares) return v_fma(x, x, acc);
  return v_join<kHow>(acc, kHow == kFolioReduceMagnitudes ? v_abs(x) : x);
}
template <FolioReduce kHow>
VFN __m256 step8(__m256 acc, __m256 x) {
  if (kHow == kFolioReduceSquares) return _mm256_fmadd_ps(x, x, acc);
  if (kHow == kFolioReduceMagnitudes) x = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
  return join8<kHow>(acc, x);
}

template <FolioReduce kHow>
VFN __m128 to_four(V a) {
  const __m256 half = kLanes == 16 ? join8<kHow>(v_low8(a), v_high8(a)) : v_low8(a);
  return join4<kHow>(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}
/* The lanes of a, of b, ... joined, side by side. */
template <FolioReduce kHow>
VFN __m128 join_lanes(__m128 a, __m128 b, __m128 c, __m128 d) {
  const __m128 ab = join4<kHow>(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a));
  const __m128 cd = join4<kHow>(_mm_movelh_ps(c, d), _mm_movehl_ps(d, c));
  return join4<kHow>(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xdd));
}

/* Eight rows of 1 to 8 elements as columns. */
template <FolioReduce kHow>
VFN __m256 join_turned(__m256 joined, __m256 r[8], int64_t n) {
  turn8x8(r);
#pragma GCC unroll 8
  for (int64_t j = 0; j < 8; ++j) {
    if (j < n) joined = step8<kHow>(joined, r[j]);
  }
  return joined;
}

template <FolioReduce kHow>
VFN void reduce_short_rows(int64_t rows, int64_t n, const float* x, int64_t x_stride, float* acc) {
  const __m256i used = first8(n);
  int64_t i = 0;
  /* With eight more rows behind them, all eight lanes of each can be read. */
  for (; x_stride > 0 && i + 16 <= rows; i += 8) {
    const float* row = x + i * x_stride;
    __m256 r[8];
#pragma GCC unroll 8
    for (int64_t u = 0; u < 8; ++u) r[u] = _mm256_loadu_ps(row + u * x_stride);
    _mm256_storeu_ps(acc + i, join_turned<kHow>(_mm256_loadu_ps(acc + i), r, n));
  }
  /* The last ones are read again in place of those that are not there. */
  for (; i < rows; i += 8) {
    const int64_t left = rows - i;
    __m256 r[8];
#pragma GCC unroll 8
    for (int64_t u = 0; u < 8; ++u) {
      r[u] = _mm256_maskload_ps(x + (i + (u < left ? u : left - 1)) * x_stride, used);
    }
    const __m256i kept = first8(left < 8 ? left : 8);
    const __m256 before = _mm256_maskload_ps(acc + i, kept);
    _mm256_maskstore_ps(acc + i, kept, join_turned<kHow>(before, r, n));
  }
}

/* Four rows at a time, a vector each. */
template <FolioReduce kHow>
VFN void reduce_middle_rows(int64_t rows, int64_t n, const float* x, int64_t x_stride, float* acc) {
  const V start = v_set1(row_start(kHow));
  for (int64_t i = 0; i < rows; i += 4) {
    const int64_t left = rows - i;
    const float* row[4];
    V joined[4];
#pragma GCC unroll 4
    for (int64_t u = 0; u < 4; ++u) {
      row[u] = x + (i + (u < left ? u : left - 1)) * x_stride;
      joined[u] = start;
    }
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) joined[u] = v_step<kHow>(joined[u], v_load(row[u] + j));
    }
    if (j < n) {
      const VM m = v_first(n - j);
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        joined[u] = v_step<kHow>(joined[u], v_select(m, v_load_masked(row[u] + j, m), start));
      }
    }
    const __m128 four = join_lanes<kHow>(to_four<kHow>(joined[0]), to_four<kHow>(joined[1]),
                                         to_four<kHow>(joined[2]), to_four<kHow>(joined[3]));
    const __m128i kept = _mm256_castsi256_si128(first8(left < 4 ? left : 4));
    _mm_maskstore_ps(acc + i, kept, join4<kHow>(_mm_maskload_ps(acc + i, kept), four));
  }
}

template <FolioReduce kHow>
VFN float reduce_long_row(int64_t n, const float* x) {
  const V start = v_set1(row_start(kHow));
  V joined[4] = {start, start, start, start};
  int64_t j = 0;
  for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) joined[u] = v_step<kHow>(joined[u], v_load(x + j + u * kLanes));
  }
  for (; j < n; j += kLanes) {
    joined[0] = v_step<kHow>(joined[0], v_row_part(x, j, n, row_start(kHow)));
  }
  const __m128 four = to_four<kHow>(
      v_join<kHow>(v_join<kHow>(joined[0], joined[1]), v_join<kHow>(joined[2], joined[3])));
  return _mm_cvtss_f32(join_lanes<kHow>(four, four, four, four));
}

template <FolioReduce kHow>
static void reduce_rows(int64_t rows, int64_t n, const float* x, int64_t x_stride, float* acc) {
  if (n <= 8) {
    if (n > 0) reduce_short_rows<kHow>(rows, n, x, x_stride, acc);
  } else if (n < 8 * kLanes) {
    reduce_middle_rows<kHow>(rows, n, x, x_stride, acc);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      const __m128 joined = _mm_set_ss(reduce_long_row<kHow>(n, x + i * x_stride));
      acc[i] = _mm_cvtss_f32(join4<kHow>(_mm_set_ss(acc[i]), joined));
    }
  }
}

/* kRows rows while the results of a vector of columns are in a register. */
template <FolioReduce kHow, int kRows>
VFN void reduce_some_rows(int64_t n, const float* x, int64_t x_stride, float* acc) {
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    V joined = v_load(acc + j);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) joined = v_step<kHow>(joined, v_load(x + r * x_stride + j));
    v_store(acc + j, joined);
  }
  if (j < n) {
    const VM m = v_first(n - j);
    V joined = v_load_masked(acc + j, m);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      joined = v_step<kHow>(joined, v_load_masked(x + r * x_stride + j, m));
    }
    v_store_masked(acc + j, m, joined);
  }
}

template <FolioReduce kHow>
static void reduce_columns(int64_t rows, int64_t n, const float* x, int64_t x_stride, float* acc) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) reduce_some_rows<kHow, 4>(n, x + i * x_stride, x_stride, acc);
  for (; i < rows; ++i) reduce_some_rows<kHow, 1>(n, x + i * x_stride, x_stride, acc);
}

template <FolioReduce kHow>
VFN void fill_reduction(FolioKernels* table) {
  table->reduce_rows_f32[kHow] = reduce_rows<kHow>;
  table->reduce_columns_f32[kHow] = reduce_columns<kHow>;
}

static void fill_reductions(FolioKernels* table) {
  fill_reduction<kFolioReduceSum>(table);
  fill_reduction<kFolioReduceSquares>(table);
  fill_reduction<kFolioReduceMagnitudes>(table);
  fill_reduction<kFolioReduceProd>(table);
  fill_reduction<kFolioReduceMax>(table);
  fill_reduction<kFolioReduceMin>(table);
}
