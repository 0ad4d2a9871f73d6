/* dots_f32: products with a few columns, each element a sum over neighbours in memory.
 *
 * A panel of F32P16 is 16 columns wide, whatever is in them; here a vector is kLanes neighbours in a
 * row of A times as many of a column of B, and an element's lanes are added at its end.
 * Order: lane l of an element adds the products l, l + kLanes, ... of each piece, piece after piece;
 *        the lanes are added as v_sums4() does. Which rows and columns are computed together
 *        does not change a bit. */

constexpr int64_t kDotRows = 16; /* whose sums wait for what becomes of them */
constexpr int kDotColumns = kLanes == 16 ? 4 : 2; /* at once: 4 rows of them are in registers */

/* One vector of each of kColumns columns, which are `k` floats apart, times that of kRows rows. */
template <int kRows, int kColumns, int kWhole>
VFN void dots_step(const float* w, int64_t k, const float* const* x, int64_t q, VM m,
                   V (*sum)[kRows]) {
  V column_part[kColumns];
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j) {
    const float* from = w + j * k + q;
    column_part[j] = kWhole ? v_load(from) : v_load_masked(from, m);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const V part = kWhole ? v_load(x[i] + q) : v_load_masked(x[i] + q, m);
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) sum[j][i] = v_fma(column_part[j], part, sum[j][i]);
  }
}

/* Of rows [row, row + kRows) and columns [column, column + kColumns). */
template <int kRows, int kColumns>
VFN void dots_sum(const FolioGemmF32* args, int64_t row, int64_t column, V (*sum)[kRows]) {
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum[j][i] = v_zero();
  }
  const int in_pieces = args->a_rows || args->a_lines;
  const int64_t run = in_pieces ? args->a_run : args->k;
  const VM last = v_first(run % kLanes);
  const float* w = args->b + column * args->k;
  for (int64_t p = 0; p < args->k; p += run, w += run) {
    const float* x[kRows];
    const float* from = args->a_lines ? args->a_lines[p / run] : args->a;
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      x[i] = args->a_rows ? args->a_rows[p / run * args->m + row + i]
                          : from + (row + i) * args->a_row_stride;
    }
    int64_t q = 0;
    for (; q + kLanes <= run; q += kLanes) {
      dots_step<kRows, kColumns, 1>(w, args->k, x, q, last, sum);
    }
    if (q < run) dots_step<kRows, kColumns, 0>(w, args->k, x, q, last, sum);
  }
}

/* `to`: of element [row, column], in rows of n. */
template <int kRows, int kColumns>
static void dots_tile(const FolioGemmF32* args, int64_t row, int64_t column, float* to) {
  V sum[kColumns][kRows];
  dots_sum<kRows, kColumns>(args, row, column, sum);
  for (int j = 0; j < kColumns; ++j) {
    for (int i = 0; i < kRows; i += 4) {
      float got[4];
      const int last = kRows - 1; /* one row: four times the same */
      v_sums4(sum[j][i], sum[j][i + 1 < kRows ? i + 1 : last], sum[j][i + 2 < kRows ? i + 2 : last],
              sum[j][i + 3 < kRows ? i + 3 : last], got);
      for (int r = 0; r < 4 && i + r < kRows; ++r) to[(i + r) * args->n + j] = got[r];
    }
  }
}

/* The rows that follow the next ones, which no hardware asks for ahead of the page they begin. */
static void dots_fetch(const FolioGemmF32* args, int64_t row, int64_t rows) {
  for (int64_t i = row; i < row + rows && i < args->m; ++i) {
    const float* from = args->a + i * args->a_row_stride;
    for (int64_t q = 0; q < args->k; q += 16) __builtin_prefetch(from + q, 0, 3);
  }
}

template <int kColumns>
static void dots_rows(const FolioGemmF32* args, int64_t row, int64_t rows, int64_t column,
                      float* to) {
  constexpr int kMost = kColumns == 1 ? 8 : 4;
  int64_t i = 0;
  const int fetches = column == 0 && !args->a_rows && !args->a_lines;
  for (; i + kMost <= rows; i += kMost) {
    if (fetches) dots_fetch(args, row + i + kDotRows, kMost);
    dots_tile<kMost, kColumns>(args, row + i, column, to + i * args->n);
  }
  for (; i < rows; ++i) dots_tile<1, kColumns>(args, row + i, column, to + i * args->n);
}

/* What becomes of `count` sums, the first of them element [row, 0]; factors and biases as often as
 * there are rows. */
static void dots_end(const FolioGemmF32* args, int64_t row, int64_t count, const float* sums,
                     const float* factors, const float* biases) {
  const int64_t first = row * args->n;
  for (int64_t i = 0; i < count; i += kLanes) {
    const VM m = v_first(count - i < kLanes ? count - i : kLanes);
    V v = v_load_masked(sums + i, m);
    if (args->col_scale || args->alpha != 1.0f) v = v_mul(v_load_masked(factors + i, m), v);
    if (args->col_bias) v = v_add(v, v_load_masked(biases + i, m));
    if (args->addend) v = v_add(v, v_load_masked(args->addend + first + i, m));
    v = v_activate(v, args->activation, args->clip_lo, args->clip_hi);
    v_store_masked(args->c + first + i, m, v);
  }
}

/* Short rows, one after the other, times one column, which is in registers: row after row, as a
 * processor that sees the order fetches ahead, and the lines behind those. The same sums. */
template <int kVectors>
static int64_t dots_short(const FolioGemmF32* args, float* sums, const float* factors,
                          const float* biases) {
  constexpr int64_t kAhead = 2 * kDotRows;
  V w[kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kVectors; ++q) w[q] = v_load(args->b + q * kLanes);
  int64_t row = 0;
  for (; row + kDotRows <= args->m; row += kDotRows) {
    for (int64_t i = 0; i < kDotRows; i += 4) {
      V sum[4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const float* x = args->a + (row + i + r) * args->a_row_stride;
        const float* next = x + (row + kAhead < args->m ? kAhead * args->a_row_stride : 0);
        sum[r] = v_zero();
#pragma GCC unroll 8
        for (int q = 0; q < kVectors; ++q) {
          __builtin_prefetch(next + q * kLanes, 0, 3);
          sum[r] = v_fma(w[q], v_load(x + q * kLanes), sum[r]);
        }
      }
      v_sums4(sum[0], sum[1], sum[2], sum[3], sums + i);
    }
    dots_end(args, row, kDotRows, sums, factors, biases);
  }
  return row;
}

/* The rows that dots_short() has computed. */
static int64_t dots_begin(const FolioGemmF32* args, float* sums, const float* factors,
                          const float* biases) {
  if (args->n != 1 || args->a_rows || args->a_lines) return 0;
  if (args->k == 2 * kLanes) return dots_short<2>(args, sums, factors, biases);
  if (args->k == 4 * kLanes) return dots_short<4>(args, sums, factors, biases);
  if (args->k == 6 * kLanes) return dots_short<6>(args, sums, factors, biases);
  if (args->k == 8 * kLanes) return dots_short<8>(args, sums, factors, biases);
  return 0;
}

static void FOLIO_LEVEL(dots_f32)(const FolioGemmF32* args) {
  const int64_t n = args->n;
  alignas(64) float sums[kDotRows * FOLIO_MOST_DOTS];
  float factors[kDotRows * FOLIO_MOST_DOTS];
  float biases[kDotRows * FOLIO_MOST_DOTS];
  for (int64_t i = 0; i < kDotRows && i < args->m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      factors[i * n + j] = args->col_scale ? args->alpha * args->col_scale[j] : args->alpha;
      if (args->col_bias) biases[i * n + j] = args->col_bias[j];
    }
  }
  for (int64_t row = dots_begin(args, sums, factors, biases); row < args->m; row += kDotRows) {
    const int64_t rows = args->m - row < kDotRows ? args->m - row : kDotRows;
    for (int64_t j = 0; j < n;) {
      const int64_t columns = n - j < kDotColumns ? n - j : kDotColumns;
      if (columns == 1) dots_rows<1>(args, row, rows, j, sums + j);
      if (columns == 2) dots_rows<2>(args, row, rows, j, sums + j);
      if constexpr (kDotColumns == 4) {
        if (columns == 3) dots_rows<3>(args, row, rows, j, sums + j);
        if (columns == 4) dots_rows<4>(args, row, rows, j, sums + j);
      }
      j += columns;
    }
    dots_end(args, row, rows * n, sums, factors, biases);
  }
}
