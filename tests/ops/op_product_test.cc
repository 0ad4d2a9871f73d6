#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// Products that cross the edges of tiles, of panels and of parts of the depth are those of a loop,
// bit by bit: every sum is one chain in the order of the depth.
template <typename T>
void expect_as_loops(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b) {
  std::vector<T> a, b, y(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m * k; ++i) a.push_back(static_cast<T>(i * 7919 % 2003 - 1000) / 3);
  for (int64_t i = 0; i < k * n; ++i) b.push_back(static_cast<T>(i * 104729 % 3001 - 1500) / 7);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += a[static_cast<size_t>(trans_a ? p * m + i : i * k + p)] *
               b[static_cast<size_t>(trans_b ? j * k + p : p * n + j)];
      }
      y[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  OpTester t("Gemm", 13);
  t.attr("transA", trans_a ? 1 : 0).attr("transB", trans_b ? 1 : 0);
  t.input<T>(trans_a ? Shape{k, m} : Shape{m, k}, a);
  t.input<T>(trans_b ? Shape{n, k} : Shape{k, n}, b);
  t.expect<T>(0, {m, n}, y).run();
}

template <typename T>
void expect_all_as_loops() {
  const int64_t sizes[][3] = {{1, 1, 1},   {1, 600, 3}, {2, 513, 257}, {3, 7, 256}, {4, 4, 300},
                              {5, 9, 515}, {9, 17, 33}, {2, 0, 3},     {2, 3, 0}};
  for (const auto& [m, n, k] : sizes) {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) expect_as_loops<T>(m, n, k, trans_a, trans_b);
    }
  }
}

TEST(NumberProduct, OfDoublesIsThatOfALoop) { expect_all_as_loops<double>(); }
TEST(NumberProduct, OfIntegersIsThatOfALoop) {
  expect_all_as_loops<int32_t>();
  expect_all_as_loops<uint64_t>();
}

TEST(NumberProduct, OfMatricesWithBatches) {
  OpTester t("MatMul", 13);
  t.input<double>({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.input<double>({2, 2, 1}, {1, 10, 100, 1000});
  t.expect<double>(0, {2, 2, 2, 1}, {21, 43, 2100, 4300, 65, 87, 6500, 8700}).run();
  OpTester wraps("MatMul", 13);
  constexpr int32_t kMost = 2147483647;
  wraps.input<int32_t>({1, 2}, {kMost, kMost}).input<int32_t>({2}, {1, 1});
  wraps.expect<int32_t>(0, {1}, {-2}).run();
}

}  // namespace
}  // namespace folio
