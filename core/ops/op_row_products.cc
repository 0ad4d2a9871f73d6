#include "core/ops/op_row_products.h"

#include <algorithm>

#include "core/ops/op_product.h"

namespace folio {
namespace {

// Of both norms times n: a distance below that has lost digits that a float would have.
constexpr double kLost = 0x1p-30;
constexpr int64_t kFewRows = 4;             // to widen b and multiply repays more
constexpr int64_t kBlockDoubles = 1 << 16;  // of b that are widened at a time

// Of a row and kColumns rows of b at a time: each is a chain.
template <int kColumns, bool kDistances, typename T>
void one_by_one(const T* a, const float* b, int64_t n, double* out) {
  double sum[kColumns] = {};
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(a[i]);
#pragma GCC unroll 4  // or the sums would wait in memory
    for (int c = 0; c < kColumns; ++c) {
      const auto y = static_cast<double>(b[c * n + i]);
      sum[c] += kDistances ? (x - y) * (x - y) : x * y;
    }
  }
  std::copy_n(sum, kColumns, out);
}

template <bool kDistances, typename T>
void one_row(const T* a, int64_t k, const float* b, int64_t n, double* out) {
  int64_t j = 0;
  for (; j + 4 <= k; j += 4) one_by_one<4, kDistances>(a, b + j * n, n, out + j);
  for (; j < k; ++j) one_by_one<1, kDistances>(a, b + j * n, n, out + j);
}

template <typename T>
void few_rows(int64_t m, const T* a, int64_t k, const float* b, int64_t n, bool distances,
              double* out) {
  const auto row = distances ? one_row<true, T> : one_row<false, T>;
  for (int64_t i = 0; i < m; ++i) row(a + i * n, k, b, n, out + i * k);
}

// norms[i] = |x[i]|^2 of kRows rows at a time: each is a chain.
template <int kRows>
void find_some_norms(int64_t n, const double* x, double* norms) {
  double sum[kRows] = {};
  for (int64_t j = 0; j < n; ++j) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum[r] += x[r * n + j] * x[r * n + j];
  }
  std::copy_n(sum, kRows, norms);
}

void find_norms(int64_t rows, int64_t n, const double* x, double* norms) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) find_some_norms<4>(n, x + i * n, norms + i);
  for (; i < rows; ++i) find_some_norms<1>(n, x + i * n, norms + i);
}

}  // namespace

template <typename T>
Status row_products(OpRun& run, int64_t m, const T* a, int64_t k, const float* b, int64_t n,
                    bool distances, double* out) {
  if (m <= kFewRows) {
    few_rows(m, a, k, b, n, distances, out);
    return Status::ok();
  }
  const int64_t most = std::clamp<int64_t>(kBlockDoubles / std::max<int64_t>(1, n), 1, k);
  const auto doubles = static_cast<size_t>(m * n + most * n + m * most + m + most);
  FOLIO_TRY(uint8_t * bytes, run.scratch(doubles * sizeof(double)));
  auto* const rows = reinterpret_cast<double*>(bytes);
  double* const columns = rows + m * n;
  double* const products = columns + most * n;
  double* const row_norms = products + m * most;
  double* const column_norms = row_norms + m;
  const double lost = kLost * static_cast<double>(n);
  std::copy_n(a, m * n, rows);
  if (distances) find_norms(m, n, rows, row_norms);
  for (int64_t first = 0; first < k; first += most) {
    const int64_t count = std::min(most, k - first);
    std::copy_n(b + first * n, count * n, columns);
    FOLIO_RETURN_IF_ERROR(multiply_numbers(
        run, NumberProduct<double>{m, count, n, rows, n, 1, columns, 1, n, products, 1}));
    if (distances) find_norms(count, n, columns, column_norms);
    for (int64_t i = 0; i < m; ++i) {
      const double* from = products + i * count;
      double* to = out + i * k + first;
      if (!distances) {
        std::copy_n(from, count, to);
        continue;
      }
      for (int64_t j = 0; j < count; ++j) to[j] = row_norms[i] + column_norms[j] - 2 * from[j];
      for (int64_t j = 0; j < count; ++j) {
        const double least = lost * (row_norms[i] + column_norms[j]);
        if (!(to[j] >= least)) few_rows(1, a + i * n, 1, b + (first + j) * n, n, true, to + j);
      }
    }
  }
  run.give_back(bytes);
  return Status::ok();
}

template Status row_products(OpRun&, int64_t, const float*, int64_t, const float*, int64_t, bool,
                             double*);
template Status row_products(OpRun&, int64_t, const double*, int64_t, const float*, int64_t, bool,
                             double*);

}  // namespace folio
