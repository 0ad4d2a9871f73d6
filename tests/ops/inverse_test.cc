#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

TEST(Inverse, TakesBatchesOfMatrices) {
  OpTester t("Inverse", 1, kMs);
  t.input<float>({2, 2, 2}, {1, 2, 3, 4, 0, 1, 2, 0});
  t.expect<float>(0, {2, 2, 2}, {-2, 1, 1.5F, -0.5F, 0, 0.5F, 1, 0}, 1e-6);
  t.run();
}

TEST(Inverse, TakesDoubleAndHalf) {
  for (const DType dtype : {DType::kDouble, DType::kFloat16}) {
    OpTester t("Inverse", 1, kMs);
    t.input_as(dtype, {3, 3}, {0, 0, 4, 2, 0, 0, 0, 1, 0});
    t.expect_as(0, dtype, {3, 3}, {0, 0.5, 0, 0, 0, 1, 0.25, 0, 0});
    t.run();
  }
}

TEST(Inverse, SingularMatricesDivideByZero) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  OpTester t("Inverse", 1, kMs);
  t.input<double>({2, 2}, {1, 2, 2, 4});
  t.outputs(1).run();
  EXPECT_EQ(t.output_values<double>(0), (std::vector<double>{-kInf, kInf, kInf, -kInf}));
}

TEST(Inverse, OfNoElements) {
  OpTester t("Inverse", 1, kMs);
  t.input<float>({2, 0, 0}, {}).expect<float>(0, {2, 0, 0}, {});
  t.run();
}

TEST(Inverse, RefusesOtherShapesAndTypes) {
  OpTester t("Inverse", 1, kMs);
  t.input<float>({1, 2}, {1, 2}).outputs(1).fails("X [1,2] must be [..., n, n]");
  OpTester row("Inverse", 1, kMs);
  row.input<float>({2}, {1, 2}).outputs(1).fails("rank 1");
  OpTester type("Inverse", 1, kMs);
  type.input<int32_t>({1, 1}, {1}).outputs(1).fails("input 0 is int32");
}

}  // namespace
}  // namespace folio
