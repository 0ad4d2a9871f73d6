#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(QLinearMatMul, FollowsTheSpecExample) {
  OpTester t("QLinearMatMul", 10);
  t.input<uint8_t>({2, 4}, {208, 236, 0, 238, 3, 214, 255, 29});
  t.input<float>({1}, {0.0066F});
  t.input<uint8_t>({1}, {113});
  t.input<uint8_t>({4, 3}, {152, 51, 244, 60, 26, 255, 0, 127, 246, 127, 254, 247});
  t.input<float>({1}, {0.00705F});
  t.input<uint8_t>({1}, {114});
  t.input<float>({1}, {0.0107F});
  t.input<uint8_t>({1}, {118});
  t.expect<uint8_t>(0, {2, 3}, {168, 115, 255, 1, 66, 151});
  t.run();
}

TEST(QLinearMatMul, ZeroPointsOfTwoElementsForOneRowAreAnError) {
  OpTester t("QLinearMatMul", 10);
  t.input<uint8_t>({1, 1}, {1});
  t.input<float>({}, {1});
  t.input<uint8_t>({2}, {1, 2});
  t.input<uint8_t>({1, 1}, {1});
  t.input<float>({}, {1});
  t.input<uint8_t>({}, {0});
  t.input<float>({}, {1});
  t.input<uint8_t>({}, {0});
  t.outputs(1).fails("does not fit");
}

OpTester qgemm() {
  OpTester t("QGemm", 1, "com.microsoft");
  t.attr("transB", 1);
  t.input<uint8_t>({1, 2}, {2, 3});
  t.input<float>({}, {0.5F});
  t.input<uint8_t>({}, {1});
  t.input<int8_t>({1, 2}, {4, 5});
  t.input<float>({}, {2});
  t.input<int8_t>({}, {0});
  t.input<int32_t>({1}, {6});
  return t;
}

TEST(QGemm, GivesFloatsWithoutYScale) { qgemm().expect<float>(0, {1, 1}, {20}).run(); }

TEST(QGemm, QuantizesWithYScale) {
  OpTester t = qgemm();
  t.input<float>({}, {4});
  t.input<uint8_t>({}, {3});
  t.expect<uint8_t>(0, {1, 1}, {8});
  t.run();
}

TEST(DynamicQuantizeMatMul, QuantizesAByItsRange) {
  OpTester t("DynamicQuantizeMatMul", 1, "com.microsoft");
  t.input<float>({1, 2}, {0, 255});
  t.input<int8_t>({2, 1}, {1, 2});
  t.input<float>({1}, {0.5F});
  t.input_absent();
  t.input<float>({1}, {1});
  t.expect<float>(0, {1, 1}, {256});
  t.run();
}

TEST(MatMulIntegerToFloat, ScalesEachColumn) {
  OpTester t("MatMulIntegerToFloat", 1, "com.microsoft");
  t.input<uint8_t>({1, 1}, {3});
  t.input<uint8_t>({1, 2}, {5, 6});
  t.input<float>({}, {0.5F});
  t.input<float>({2}, {1, 10});
  t.input<uint8_t>({}, {1});
  t.input<uint8_t>({2}, {1, 2});
  t.expect<float>(0, {1, 2}, {4, 40});
  t.run();
}

TEST(MatMulIntegerToFloat, TakesScalesOf16Bits) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    OpTester t("MatMulIntegerToFloat", 1, "com.microsoft");
    t.input<uint8_t>({1, 1}, {3});
    t.input<int8_t>({1, 2}, {5, -6});
    t.input_as(dtype, {}, {0.5});
    t.input_as(dtype, {2}, {1, 10});
    t.input<uint8_t>({}, {1});
    t.input_absent();
    t.input_as(dtype, {2}, {0.5, 2});
    t.expect_as(0, dtype, {1, 2}, {5.5, -58});
    t.run();
  }
}

TEST(MatMulIntegerToFloat, RefusesScalesOfSeveralTypes) {
  OpTester t("MatMulIntegerToFloat", 1, "com.microsoft");
  t.input<uint8_t>({1, 1}, {3});
  t.input<uint8_t>({1, 1}, {5});
  t.input<float>({}, {0.5F});
  t.input_as(DType::kFloat16, {}, {0.5});
  t.outputs(1).fails("float16");
}

}  // namespace
}  // namespace folio
