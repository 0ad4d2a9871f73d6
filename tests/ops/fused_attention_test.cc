#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(FusedAttention, ProjectsAndAttends) {
  OpTester t("Attention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("unidirectional", 1);
  t.input<float>({1, 2, 1}, {1, 3});
  t.input<float>({1, 3}, {0, 2, 1});
  t.input<float>({3}, {0, 0, 0.5f});
  t.expect<float>(0, {1, 2, 1}, {1.5f, 2.5f}, 1e-6);
  t.expect<float>(1, {2, 1, 1, 2, 1}, {2, 6, 1.5f, 3.5f}, 1e-6);
  t.run();
}

TEST(FusedAttention, MaskIndexNamesTheEndOfEachSequence) {
  OpTester t("Attention", 1, "com.microsoft");
  t.attr("num_heads", 1);
  t.input<float>({1, 3, 1}, {1, 3, 100});
  t.input<float>({1, 3}, {0, 0, 1});
  t.input_absent();
  t.input<int32_t>({1}, {2});
  t.expect<float>(0, {1, 3, 1}, {2, 2, 2}, 1e-5);
  t.run();
}

TEST(FusedAttention, ReadsItsPast) {
  OpTester t("Attention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("unidirectional", 1);
  t.input<float>({1, 1, 1}, {4});
  t.input<float>({1, 3}, {0, 1, 1});
  t.input_absent();
  t.input_absent();
  t.input<float>({2, 1, 1, 1, 1}, {7, 2});
  t.expect<float>(0, {1, 1, 1}, {3}, 1e-6);
  t.expect<float>(1, {2, 1, 1, 2, 1}, {7, 4, 2, 4}, 1e-6);
  t.run();
}

// A mask of one column and more keys: ONNX Runtime calls it a dummy, which hides nothing.
TEST(FusedAttention, AMaskOfOneColumnHidesNothing) {
  for (const int64_t rows : {1, 2}) {
    OpTester t("Attention", 1, "com.microsoft");
    t.attr("num_heads", 1);
    t.input<float>({2, 2, 1}, {1, 3, 5, 7});
    t.input<float>({1, 3}, {0, 0, 1});
    t.input_absent();
    t.input<int32_t>({rows, 1}, std::vector<int32_t>(static_cast<size_t>(rows), 0));
    t.expect<float>(0, {2, 2, 1}, {2, 2, 6, 6}, 1e-6);
    t.run();
  }
}

TEST(FusedAttention, AMaskOfOneColumnAndOneKeyIsAMask) {
  OpTester t("Attention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("mask_filter_value", -2.0F);
  t.input<float>({1, 1, 1}, {4});
  t.input<float>({1, 3}, {0, 0, 1});
  t.input_absent();
  t.input<int32_t>({1, 1}, {0});
  t.expect<float>(0, {1, 1, 1}, {4}, 1e-6);
  t.run();
}

TEST(FusedAttention, MasksThatDoNotFitAreRefused) {
  OpTester t("Attention", 1, "com.microsoft");
  t.attr("num_heads", 1);
  t.input<float>({1, 3, 1}, {1, 3, 5});
  t.input<float>({1, 3}, {0, 0, 1});
  t.input_absent();
  t.input<int32_t>({1, 2}, {1, 1});
  t.outputs(1).fails("mask has shape [1,2], which does not fit");
}

TEST(QAttention, ScalesTheProductOfBytes) {
  OpTester t("QAttention", 1, "com.microsoft");
  t.attr("num_heads", 1);
  t.input<uint8_t>({1, 2, 1}, {3, 7});  // (3 - 1) / 2 = 1, (7 - 1) / 2 = 3
  t.input<int8_t>({1, 3}, {4, 4, 6});   // less 4: 0, 0, 2
  t.input<float>({3}, {0, 0, 1});
  t.input<float>({}, {0.5f});
  t.input<float>({3}, {1, 1, 10});
  t.input_absent();
  t.input<uint8_t>({}, {1});
  t.input<int8_t>({}, {4});
  t.expect<float>(0, {1, 2, 1}, {41, 41}, 1e-6);
  t.run();
}

TEST(QAttention, TakesScalesOf16Bits) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    OpTester t("QAttention", 1, "com.microsoft");
    t.attr("num_heads", 1);
    t.input<uint8_t>({1, 2, 1}, {3, 7});
    t.input<int8_t>({1, 3}, {4, 4, 6});
    t.input_as(dtype, {3}, {0, 0, 1});
    t.input_as(dtype, {}, {0.5});
    t.input_as(dtype, {3}, {1, 1, 10});
    t.input_absent();
    t.input<uint8_t>({}, {1});
    t.input<int8_t>({}, {4});
    t.input_as(dtype, {2, 1, 1, 1, 1}, {0, 41});  // past
    t.expect_as(0, dtype, {1, 2, 1}, {41, 41});
    t.expect_as(1, dtype, {2, 1, 1, 3, 1}, {0, 0, 0, 41, 21, 61});
    t.run();
  }
}

TEST(QAttention, RefusesScalesThatAreNoFloats) {
  OpTester t("QAttention", 1, "com.microsoft");
  t.attr("num_heads", 1);
  t.input<uint8_t>({1, 1, 1}, {3});
  t.input<int8_t>({1, 3}, {4, 4, 6});
  t.input<float>({3}, {0, 0, 1});
  t.input<int32_t>({}, {1});
  t.input<float>({}, {1});
  t.outputs(1).fails("int32");
}

TEST(FusedAttention, HeadsThatDoNotDivideAreRefused) {
  OpTester t("Attention", 1, "com.microsoft");
  t.attr("num_heads", 2);
  t.input<float>({1, 1, 1}, {1});
  t.input<float>({1, 3}, {0, 0, 1});
  t.outputs(1).fails("do not fit 2 heads");
}

}  // namespace
}  // namespace folio
