/* gemm_f64: tiles of rows times a panel of two vectors, blocks of k and of columns of B, which are
 * made into panels, and of rows of A, which are made contiguous. Sums rest in C between blocks of
 * k.
 *
 * Every sum is one chain of fused multiply-adds in the order of k: its bits do not depend on which
 * of the ways below it goes, nor on the rows and columns beside it. */

constexpr int64_t kDoubleDepth = FOLIO_F64_DEPTH;
constexpr int64_t kDoubleRows = 6; /* of a tile: 12 of 16 registers hold sums */
constexpr int64_t kDoublePanel = 2 * kDoubles;

struct DoubleTile {
  int64_t depth;
  int64_t columns; /* of the panel that C has */
  const double* a;
  int64_t a_stride;
  const double* panel; /* [depth, kDoublePanel] */
  double* c;
  int64_t c_stride;
  double alpha;
  int is_first; /* C holds no sums yet */
};

template <int kRows>
VFN void sum_doubles(const DoubleTile* tile, double* c, int64_t c_stride) {
  VD sum[kRows][2];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    const double* row = c + i * c_stride;
    sum[i][0] = tile->is_first ? vd_zero() : vd_load(row);
    sum[i][1] = tile->is_first ? vd_zero() : vd_load(row + kDoubles);
  }
  const double* a[kRows];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) a[i] = tile->a + i * tile->a_stride;
  const double* b = tile->panel;
  /* What the next tile begins with. */
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) __builtin_prefetch(c + (kRows + i) * c_stride);
#pragma GCC unroll 2
  for (int64_t q = 0; q < tile->depth; ++q, b += kDoublePanel) {
    const VD left = vd_load(b);
    const VD right = vd_load(b + kDoubles);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const VD x = vd_set1(a[i][q]);
      sum[i][0] = vd_fma(x, left, sum[i][0]);
      sum[i][1] = vd_fma(x, right, sum[i][1]);
    }
  }
  const VD alpha = vd_set1(tile->alpha);
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    vd_store(c + i * c_stride, vd_mul(alpha, sum[i][0]));
    vd_store(c + i * c_stride + kDoubles, vd_mul(alpha, sum[i][1]));
  }
}

template <int kRows>
static void double_tile(const DoubleTile* tile) {
  double whole[kRows * kDoublePanel];
  const int is_whole = tile->columns == kDoublePanel;
  double* c = is_whole ? tile->c : whole;
  for (int64_t i = 0; !is_whole && !tile->is_first && i < kRows; ++i) {
    for (int64_t j = 0; j < kDoublePanel; ++j) {
      whole[i * kDoublePanel + j] = j < tile->columns ? tile->c[i * tile->c_stride + j] : 0;
    }
  }
  sum_doubles<kRows>(tile, c, is_whole ? tile->c_stride : kDoublePanel);
  for (int64_t i = 0; !is_whole && i < kRows; ++i) {
    for (int64_t j = 0; j < tile->columns; ++j) {
      tile->c[i * tile->c_stride + j] = whole[i * kDoublePanel + j];
    }
  }
}

static void (*const kDoubleTiles[kDoubleRows + 1])(const DoubleTile* tile) = {
    nullptr,        double_tile<1>, double_tile<2>, double_tile<3>,
    double_tile<4>, double_tile<5>, double_tile<6>};

/* y[r * y_stride + c] = x[c * x_col + r]. */
static void turn_doubles(int64_t rows, int64_t cols, const double* x, int64_t x_col, double* y,
                         int64_t y_stride) {
  int64_t c = 0;
  for (; c + 4 <= cols; c += 4, x += 4 * x_col, y += 4) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      __m256 four[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) four[u] = _mm256_loadu_ps((const float*)(x + u * x_col + r));
      turn4x4_b64(four);
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) _mm256_storeu_ps((float*)(y + (r + u) * y_stride), four[u]);
    }
    for (; r < rows; ++r) {
      for (int u = 0; u < 4; ++u) y[r * y_stride + u] = x[u * x_col + r];
    }
  }
  for (; c < cols; ++c, x += x_col, ++y) {
    for (int64_t r = 0; r < rows; ++r) y[r * y_stride] = x[r];
  }
}

/* y[r * y_stride + c] = x[r * x_row + c * x_col]. */
static void place_doubles(int64_t rows, int64_t cols, const double* x, int64_t x_row, int64_t x_col,
                          double* y, int64_t y_stride) {
  if (x_col != 1 && x_row == 1) return turn_doubles(rows, cols, x, x_col, y, y_stride);
  for (int64_t r = 0; r < rows; ++r, x += x_row, y += y_stride) {
    int64_t c = 0;
    for (; x_col == 1 && c + kDoubles <= cols; c += kDoubles) vd_store(y + c, vd_load(x + c));
    for (; c < cols; ++c) y[c] = x[c * x_col];
  }
}

/* Columns [0, n) of B as a panel, zeros behind the last one. */
static void fill_double_panel(const FolioGemmF64* args, int64_t depth, const double* b, int64_t n,
                              double* panel) {
  if (n == kDoublePanel && args->b_col_stride == 1) {
    for (int64_t q = 0; q < depth; ++q, b += args->b_row_stride, panel += kDoublePanel) {
      const VD left = vd_load(b);
      vd_store(panel + kDoubles, vd_load(b + kDoubles));
      vd_store(panel, left);
    }
    return;
  }
  for (int64_t i = 0; n < kDoublePanel && i < kDoublePanel * depth; ++i) panel[i] = 0;
  place_doubles(depth, n, b, args->b_row_stride, args->b_col_stride, panel, kDoublePanel);
}

/* Rows [row, row + rows) of A, and how far they are apart. */
struct DoubleRows {
  const double* at;
  int64_t stride, first, count;
};

/* Those rows times a block of B in panels. */
static void multiply_doubles(const FolioGemmF64* args, const DoubleRows* rows, DoubleTile* tile,
                             const double* panels, int64_t first_column, int64_t columns) {
  const int64_t tiles = (rows->count + kDoubleRows - 1) / kDoubleRows;
  tile->a_stride = rows->stride;
  for (int64_t j = 0; j < columns; j += kDoublePanel) {
    const int64_t left = columns - j;
    tile->columns = left < kDoublePanel ? left : kDoublePanel;
    tile->panel = panels + j * tile->depth;
    for (int64_t t = 0; t < tiles; ++t) { /* of almost equal height */
      const int64_t begin = rows->count * t / tiles;
      const int64_t end = rows->count * (t + 1) / tiles;
      tile->a = rows->at + begin * rows->stride;
      tile->c = args->c + (rows->first + begin) * args->c_row_stride + first_column + j;
      kDoubleTiles[end - begin](tile);
    }
  }
}

/* Columns [first, first + columns) of B, as panels one block of k after the other. */
static void gemm_double_columns(const FolioGemmF64* args, int64_t first, int64_t columns,
                                double* panels, double* copies) {
  const int64_t blocks = (args->m + FOLIO_F64_ROWS - 1) / FOLIO_F64_ROWS;
  /* Rows that are a multiple of 4 KiB apart lie in one set of L1, which a panel is in, too. */
  const int crowds = args->a_row_stride % 512 == 0 && columns > 4 * kDoublePanel;
  const int copies_rows = args->a_col_stride != 1 || crowds;
  DoubleTile tile = {};
  tile.c_stride = args->c_row_stride;
  for (int64_t p = 0; p < args->k; p += kDoubleDepth) {
    tile.depth = args->k - p < kDoubleDepth ? args->k - p : kDoubleDepth;
    tile.is_first = p == 0;
    tile.alpha = p + tile.depth == args->k ? args->alpha : 1.0;
    const double* b = args->b + p * args->b_row_stride + first * args->b_col_stride;
    for (int64_t j = 0; j < columns; j += kDoublePanel, b += kDoublePanel * args->b_col_stride) {
      const int64_t n = columns - j < kDoublePanel ? columns - j : kDoublePanel;
      fill_double_panel(args, tile.depth, b, n, panels + j * tile.depth);
    }
    for (int64_t block = 0; block < blocks; ++block) {
      DoubleRows rows;
      rows.first = args->m * block / blocks;
      rows.count = args->m * (block + 1) / blocks - rows.first;
      rows.at = args->a + rows.first * args->a_row_stride + p * args->a_col_stride;
      rows.stride = args->a_row_stride;
      if (copies_rows) {
        place_doubles(rows.count, tile.depth, rows.at, args->a_row_stride, args->a_col_stride,
                      copies, FOLIO_F64_ROW_STRIDE);
        rows.at = copies;
        rows.stride = FOLIO_F64_ROW_STRIDE;
      }
      multiply_doubles(args, &rows, &tile, panels, first, columns);
    }
  }
}

/* ---- Rows of B in place: kDepth of them at a time over columns whose sums rest in C. */

template <int kDepth>
VFN void add_double_rows(const FolioGemmF64* args, int64_t row, int64_t p, int64_t first,
                         int64_t columns) {
  const double* a = args->a + row * args->a_row_stride + p * args->a_col_stride;
  const double* b = args->b + p * args->b_row_stride + first;
  double* c = args->c + row * args->c_row_stride + first;
  VD x[kDepth];
#pragma GCC unroll 4
  for (int d = 0; d < kDepth; ++d) x[d] = vd_set1(a[d * args->a_col_stride]);
  int64_t j = 0;
  for (; j + kDoubles <= columns; j += kDoubles) {
    VD sum = vd_load(c + j);
#pragma GCC unroll 4
    for (int d = 0; d < kDepth; ++d) {
      sum = vd_fma(x[d], vd_load(b + d * args->b_row_stride + j), sum);
    }
    vd_store(c + j, sum);
  }
  for (; j < columns; ++j) {
    for (int d = 0; d < kDepth; ++d) {
      c[j] = __builtin_fma(a[d * args->a_col_stride], b[d * args->b_row_stride + j], c[j]);
    }
  }
}

static void gemm_few_doubles(const FolioGemmF64* args) {
  constexpr int64_t kStrip = 1024; /* columns whose sums stay in L1 */
  for (int64_t first = 0; first < args->n; first += kStrip) {
    const int64_t columns = args->n - first < kStrip ? args->n - first : kStrip;
    for (int64_t i = 0; i < args->m; ++i) {
      for (int64_t j = 0; j < columns; ++j) args->c[i * args->c_row_stride + first + j] = 0;
    }
    int64_t p = 0;
    for (; p + 4 <= args->k; p += 4) {
      for (int64_t i = 0; i < args->m; ++i) add_double_rows<4>(args, i, p, first, columns);
    }
    for (; p < args->k; ++p) {
      for (int64_t i = 0; i < args->m; ++i) add_double_rows<1>(args, i, p, first, columns);
    }
    for (int64_t i = 0; i < args->m; ++i) {
      double* c = args->c + i * args->c_row_stride + first;
      for (int64_t j = 0; j < columns; ++j) c[j] = args->alpha * c[j];
    }
  }
}

/* ---- Few rows times columns that are contiguous, eight of them turned in registers. */

/* sums[i] of eight columns; rows of A that are not there repeat the last one. */
template <int kRows>
VFN void sum_turned(const FolioGemmF64* args, const double* const b[8], double sums[][8]) {
  const int64_t k = args->k, a_step = args->a_col_stride;
  const double* a[kRows];
  __m256d sum[kRows][2];
  for (int64_t i = 0; i < kRows; ++i) {
    a[i] = args->a + (i < args->m ? i : args->m - 1) * args->a_row_stride;
    sum[i][0] = sum[i][1] = _mm256_setzero_pd();
  }
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) { /* sums and four vectors fit into 16 registers */
      __m256 r[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) r[u] = _mm256_loadu_ps((const float*)(b[4 * half + u] + p));
      turn4x4_b64(r);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u) {
          const __m256d x = _mm256_set1_pd(a[i][(p + u) * a_step]);
          sum[i][half] = _mm256_fmadd_pd(x, _mm256_castps_pd(r[u]), sum[i][half]);
        }
      }
    }
  }
  for (int64_t i = 0; i < kRows; ++i) {
    _mm256_storeu_pd(sums[i], sum[i][0]);
    _mm256_storeu_pd(sums[i] + 4, sum[i][1]);
    for (int64_t q = p; q < k; ++q) {
      for (int64_t u = 0; u < 8; ++u) sums[i][u] = __builtin_fma(a[i][q * a_step], b[u][q], sums[i][u]);
    }
  }
}

/* C[i, j] = c[i * c_row + j * c_col]. */
static void gemm_turned_doubles(const FolioGemmF64* args, int64_t c_row, int64_t c_col) {
  for (int64_t j = 0; j < args->n; j += 8) {
    const double* b[8]; /* the last column in place of those that are not there */
    for (int64_t u = 0; u < 8; ++u) {
      b[u] = args->b + (j + u < args->n ? j + u : args->n - 1) * args->b_col_stride;
    }
    double sums[FOLIO_F64_FEW_ROWS][8];
    if (args->m == 1) {
      sum_turned<1>(args, b, sums);
    } else {
      sum_turned<FOLIO_F64_FEW_ROWS>(args, b, sums);
    }
    for (int64_t i = 0; i < args->m; ++i) {
      double* c = args->c + i * c_row + j * c_col;
      for (int64_t u = 0; u < 8 && j + u < args->n; ++u) c[u * c_col] = args->alpha * sums[i][u];
    }
  }
}

/* C transposed: of B's columns and A's rows. */
static void gemm_few_columns(const FolioGemmF64* args) {
  FolioGemmF64 turned = *args;
  turned.m = args->n;
  turned.n = args->m;
  turned.a = args->b;
  turned.a_row_stride = args->b_col_stride;
  turned.a_col_stride = args->b_row_stride;
  turned.b = args->a;
  turned.b_row_stride = args->a_col_stride;
  turned.b_col_stride = args->a_row_stride;
  if (turned.b_row_stride == 1) return gemm_turned_doubles(&turned, 1, args->c_row_stride);
  turned.c_row_stride = args->m;
  gemm_few_doubles(&turned);
}

static void FOLIO_LEVEL(gemm_f64)(const FolioGemmF64* args) {
  if (args->m == 0 || args->n == 0) return;
  if (args->k == 0 || folio_f64_few_rows(args)) return gemm_few_doubles(args);
  if (folio_f64_few_turned(args)) return gemm_turned_doubles(args, args->c_row_stride, 1);
  if (folio_f64_few_columns(args)) return gemm_few_columns(args);
  const int64_t parts = (args->n + FOLIO_F64_COLUMNS - 1) / FOLIO_F64_COLUMNS;
  const int64_t panels = (args->n + kDoublePanel - 1) / kDoublePanel;
  const int64_t rows = args->m < FOLIO_F64_ROWS ? args->m : FOLIO_F64_ROWS;
  double* const copies = (double*)args->scratch;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = panels * part / parts * kDoublePanel;
    const int64_t end = panels * (part + 1) / parts * kDoublePanel;
    gemm_double_columns(args, begin, (end < args->n ? end : args->n) - begin,
                        copies + rows * FOLIO_F64_ROW_STRIDE, copies);
  }
}

static void fill_gemm_doubles(FolioKernels* table) { table->gemm_f64 = FOLIO_LEVEL(gemm_f64); }
