#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(MaxPool, GivesIndicesOfTheWholeTensor) {
  OpTester t("MaxPool", 12);
  t.attr_ints("kernel_shape", {2}).attr_ints("strides", {2});
  t.input<float>({1, 2, 4}, {1, 5, 3, 2, 9, 8, 0, 7});
  t.expect<float>(0, {1, 2, 2}, {5, 3, 9, 7});
  t.expect<int64_t>(1, {1, 2, 2}, {1, 2, 4, 7});
  t.run();
}

TEST(AveragePool, CountsPaddingOnlyWhenAsked) {
  for (const int count : {0, 1}) {
    OpTester t("AveragePool", 11);
    t.attr_ints("kernel_shape", {2}).attr_ints("pads", {1, 0}).attr("count_include_pad", count);
    t.input<float>({1, 1, 2}, {4, 6});
    t.expect<float>(0, {1, 1, 2}, {count ? 2.0F : 4.0F, 5});
    t.run();
  }
}

TEST(GlobalAveragePool, TakesAllSpatialDims) {
  OpTester t("GlobalAveragePool", 1);
  t.input_as(DType::kFloat16, {1, 2, 1, 2}, {1, 3, 5, 9});
  t.expect_as(0, DType::kFloat16, {1, 2, 1, 1}, {2, 7});
  t.run();
}

TEST(LpPool, IsTheNormOfAWindow) {
  OpTester t("LpPool", 18);
  t.attr_ints("kernel_shape", {2});
  t.input<double>({1, 1, 2}, {3, 4});
  t.expect<double>(0, {1, 1, 1}, {5});
  t.run();
}

TEST(MaxPool, WindowsLargerThanTheInputAreAnError) {
  OpTester t("MaxPool", 12);
  t.attr_ints("kernel_shape", {3});
  t.input<float>({1, 1, 2}, {1, 2});
  t.outputs(1).fails("the window does not fit");
}

TEST(QLinearAveragePool, AveragesWhatTheBytesMean) {
  OpTester t("QLinearAveragePool", 1, "com.microsoft");
  t.attr_ints("kernel_shape", {2});
  t.input<uint8_t>({1, 1, 2}, {2, 4}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<float>({}, {0.5F}).input<uint8_t>({}, {1});
  t.expect<uint8_t>(0, {1, 1, 1}, {7});
  t.run();
}

TEST(QLinearGlobalAveragePool, TakesChannelsLast) {
  OpTester t("QLinearGlobalAveragePool", 1, "com.microsoft");
  t.attr("channels_last", 1);
  t.input<uint8_t>({1, 2, 2}, {1, 10, 3, 30}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<float>({}, {1}).input<uint8_t>({}, {0});
  t.expect<uint8_t>(0, {1, 1, 2}, {2, 20});
  t.run();
}

}  // namespace
}  // namespace folio
