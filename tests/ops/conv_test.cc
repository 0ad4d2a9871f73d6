#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST(Conv, FollowsTheSpecExampleWithPadding) {
  OpTester t("Conv", 11);
  t.attr_ints("kernel_shape", {3, 3}).attr_ints("pads", {1, 1, 1, 1});
  t.input<float>({1, 1, 5, 5}, counting(25));
  t.input<float>({1, 1, 3, 3}, std::vector<float>(9, 1.0F));
  t.expect<float>(0, {1, 1, 5, 5}, {12,  21, 27, 33,  24,  33,  54,  63, 72,  51,  63,  99, 108,
                                    117, 81, 93, 144, 153, 162, 111, 72, 111, 117, 123, 84});
  t.run();
}

TEST(Conv, GroupsSeeTheirOwnChannels) {
  OpTester t("Conv", 11);
  t.attr("group", 2);
  t.input<float>({1, 4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.input<float>({2, 2, 1, 1}, {1, 10, 1, -1});
  t.input<float>({2}, {100, 0});
  t.expect<float>(0, {1, 2, 1, 2}, {131, 142, -2, -2});
  t.run();
}

TEST(Conv, ChannelsThatDisagreeAreAnError) {
  OpTester t("Conv", 11);
  t.input<float>({1, 3, 4}, counting(12));
  t.input<float>({2, 2, 1}, {1, 2, 3, 4});
  t.outputs(1).fails("do not agree on channels");
}

TEST(FusedConv, AddsZBeforeTheActivation) {
  OpTester t("FusedConv", 1, "com.microsoft");
  t.attr("activation", "LeakyRelu").attr_floats("activation_params", {0.5F});
  t.input<float>({1, 1, 3}, {1, 2, 3});
  t.input<float>({1, 1, 1}, {2});
  t.input<float>({1}, {1});
  t.input<float>({1, 1, 3}, {-7, 0, -9});
  t.expect<float>(0, {1, 1, 3}, {-2, 5, -1});
  t.run();
}

TEST(FusedConv, ClipsInsideTheProduct) {
  OpTester t("FusedConv", 1, "com.microsoft");
  t.attr("activation", "Clip").attr_floats("activation_params", {0, 6});
  t.input<float>({1, 2, 1, 2}, {1, -2, 3, 4});
  t.input<float>({1, 2, 1, 1}, {1, 2});
  t.expect<float>(0, {1, 1, 1, 2}, {6, 6});
  t.run();
}

TEST(FusedConv, UnknownActivationIsAnError) {
  OpTester t("FusedConv", 1, "com.microsoft");
  t.attr("activation", "Frob");
  t.input<float>({1, 1, 1}, {1});
  t.input<float>({1, 1, 1}, {1});
  t.outputs(1).fails("unknown activation 'Frob'");
}

}  // namespace
}  // namespace folio
