#include <gtest/gtest.h>

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
