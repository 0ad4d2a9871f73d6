#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Gemm, TransposesScalesAndBroadcastsC) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16}) {
    OpTester t("Gemm", 13);
    t.attr("transA", 1).attr("transB", 1).attr("alpha", 2.0F).attr("beta", 0.5F);
    t.input_as(dtype, {2, 1}, {3, 4});
    t.input_as(dtype, {3, 2}, {1, 2, 3, 4, 5, 6});
    t.input_as(dtype, {1, 1}, {10});
    t.expect_as(0, dtype, {1, 3}, {27, 55, 83});
    t.run();
  }
}

TEST(Gemm, AnEmptySumIsC) {
  OpTester t("Gemm", 13);
  t.input<float>({2, 0}, {});
  t.input<float>({0, 2}, {});
  t.input<float>({2}, {1, 2});
  t.expect<float>(0, {2, 2}, {1, 2, 1, 2});
  t.run();
}

TEST(Gemm, DepthsThatDifferAreAnError) {
  OpTester t("Gemm", 13);
  t.input<float>({1, 2}, {1, 2});
  t.input<float>({3, 1}, {1, 2, 3});
  t.outputs(1).fails("k is 2 and 3");
}

TEST(FusedGemm, AppliesTheActivationAfterC) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16}) {
    OpTester t("FusedGemm", 1, "com.microsoft");
    t.attr("activation", "LeakyRelu").attr("activation_alpha", 0.125F).attr("beta", 2.0F);
    t.input_as(dtype, {1, 1}, {1});
    t.input_as(dtype, {1, 2}, {3, 4});
    t.input_as(dtype, {2}, {-6.5, 1});
    t.expect_as(0, dtype, {1, 2}, {-1.25, 6});
    t.run();
  }
}

TEST(FusedGemm, RefusesIntegers) {
  OpTester t("FusedGemm", 1, "com.microsoft");
  t.attr("activation", "Relu");
  t.input<int32_t>({1, 1}, {1});
  t.input<int32_t>({1, 1}, {1});
  t.outputs(1).fails("int32");
}

// C has rows without a number.
TEST(Gemm, OfNoColumnsThereIsNothing) {
  OpTester t("Gemm", 13);
  t.input<double>({2, 3}, {1, 2, 3, 4, 5, 6}).input<double>({3, 0}, {}).input<double>({1, 0}, {});
  t.expect<double>(0, {2, 0}, {}).run();
}

}  // namespace
}  // namespace folio
