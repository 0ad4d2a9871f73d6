#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

TEST(CDist, SquaredDistancesOfAllRows) {
  OpTester t("CDist", 1, kMs);
  t.input<float>({2, 2}, {0, 0, 3, 4}).input<float>({3, 2}, {3, 4, 0, 0, 6, 8});
  t.expect<float>(0, {2, 3}, {25, 0, 100, 0, 25, 25});
  t.expect_inferred(0, "tensor(float)[2,3]");
  t.run();
}

TEST(CDist, EuclideanIsTheRoot) {
  OpTester t("CDist", 1, kMs);
  t.attr("metric", "euclidean");
  t.input<double>({2, 2}, {0, 0, 3, 4}).input<double>({3, 2}, {3, 4, 0, 0, 6, 8});
  t.expect<double>(0, {2, 3}, {5, 0, 10, 0, 5, 5});
  t.run();
}

// Blocks of rows of both; near, far and equal rows, and what is no number.
TEST(CDist, OfManyRowsIsTheSumOfSquaredDifferences) {
  constexpr int64_t kRows = 150, kColumns = 700, kDepth = 100;
  const auto wave = [](int64_t count, float step, float offset) {
    std::vector<float> out;
    for (int64_t i = 0; i < count; ++i) {
      out.push_back(offset + std::sin(step * static_cast<float>(i)));
    }
    return out;
  };
  std::vector<float> a = wave(kRows * kDepth, 0.37F, 100.0F);
  const std::vector<float> b = wave(kColumns * kDepth, 0.37F, 100.0F);  // begins with a's rows
  a[5 * kDepth + 3] = std::numeric_limits<float>::infinity();
  a[7 * kDepth + 2] = std::numeric_limits<float>::quiet_NaN();
  OpTester t("CDist", 1, kMs);
  t.input<float>({kRows, kDepth}, a).input<float>({kColumns, kDepth}, b).outputs(1).run();
  const std::vector<float> got = t.output_values<float>(0);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      double want = 0;
      for (int64_t p = 0; p < kDepth; ++p) {
        const double d = static_cast<double>(a[static_cast<size_t>(i * kDepth + p)]) -
                         b[static_cast<size_t>(j * kDepth + p)];
        want += d * d;
      }
      const float y = got[static_cast<size_t>(i * kColumns + j)];
      if (i == 5 || i == 7) {
        EXPECT_TRUE(i == 5 ? std::isinf(y) : std::isnan(y)) << i << ' ' << j;
      } else {
        ASSERT_NEAR(y, want, 1e-6 * want) << i << ' ' << j;
        ASSERT_TRUE(i != j || y == 0) << i;
      }
    }
  }
}

TEST(CDist, OfNoRows) {
  OpTester t("CDist", 1, kMs);
  t.input<float>({0, 2}, {}).input<float>({1, 2}, {3, 4}).expect<float>(0, {0, 1}, {});
  t.run();
}

TEST(CDist, RefusesOtherMetricsShapesAndTypes) {
  OpTester metric("CDist", 1, kMs);
  metric.attr("metric", "cosine").input<float>({1, 1}, {1}).input<float>({1, 1}, {1});
  metric.outputs(1).fails("metric is 'cosine', expected sqeuclidean or euclidean");
  OpTester columns("CDist", 1, kMs);
  columns.input<float>({1, 2}, {1, 2}).input<float>({1, 1}, {1});
  columns.outputs(1).fails("A [1,2] and B [1,1]");
  OpTester rank("CDist", 1, kMs);
  rank.input<float>({1}, {1}).input<float>({1, 1}, {1}).outputs(1).fails("input 0 has rank 1");
  OpTester type("CDist", 1, kMs);
  type.input<float>({1, 1}, {1}).input<double>({1, 1}, {1});
  type.outputs(1).fails("input 1 is double, expected float");
}

}  // namespace
}  // namespace folio
