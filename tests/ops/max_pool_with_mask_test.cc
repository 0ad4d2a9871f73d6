#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";
constexpr float kLowest = std::numeric_limits<float>::lowest();

TEST(MaxpoolWithMask, AWindowEndsWhereTheMaskHides) {
  OpTester t("MaxpoolWithMask", 1, kMs);
  t.attr_ints("kernel_shape", {3}).attr_ints("strides", {3});
  t.input<float>({1, 2, 6}, {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1});
  t.input<int32_t>({1, 1, 6}, {1, 1, 0, 0, 1, 1});
  t.expect<float>(0, {1, 2, 2}, {2, kLowest, 6, kLowest});
  t.expect_inferred(0, "tensor(float)[1,2,2]");
  t.run();
}

TEST(MaxpoolWithMask, RowsEndOneByOneAndTheFirstElementIsNeverHidden) {
  OpTester t("MaxpoolWithMask", 1, kMs);
  t.attr_ints("kernel_shape", {2, 2}).attr_ints("pads", {0, 0, 0, 1});
  t.input<float>({1, 1, 2, 2}, {9, 8, 1, 2}).input<int32_t>({1, 1, 2, 2}, {0, 0, 1, 1});
  t.expect<float>(0, {1, 1, 1, 2}, {9, 2}).run();
}

TEST(MaxpoolWithMask, RefusesMasksThatDoNotFit) {
  OpTester dims("MaxpoolWithMask", 1, kMs);
  dims.attr_ints("kernel_shape", {1}).input<float>({1, 2, 2}, {1, 2, 3, 4});
  dims.input<int32_t>({1, 1, 3}, {1, 1, 1}).outputs(1).fails("mask is [1,1,3]");
  OpTester rank("MaxpoolWithMask", 1, kMs);
  rank.attr_ints("kernel_shape", {1}).input<float>({1, 2, 2}, {1, 2, 3, 4});
  rank.input<int32_t>({2}, {1, 1}).outputs(1).fails("mask is [2]");
  OpTester planes("MaxpoolWithMask", 1, kMs);
  planes.attr_ints("kernel_shape", {1}).input<float>({1, 2, 2}, {1, 2, 3, 4});
  planes.input<int32_t>({1, 2, 2}, {1, 1, 1, 1}).outputs(1).fails("a mask of several planes");
}

}  // namespace
}  // namespace folio
