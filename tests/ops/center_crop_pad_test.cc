#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(CenterCropPad, CutsAndFills) {
  OpTester t("CenterCropPad", 18);
  t.input<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}).constant<int64_t>({2}, {3, 2});
  t.expect<float>(0, {3, 2}, {2, 3, 6, 7, 0, 0}).expect_inferred(0, "tensor(float)[3,2]").run();
  OpTester axes("CenterCropPad", 18);
  axes.attr_ints("axes", {-1}).input<std::string>({1, 1}, {"a"}).input<int64_t>({1}, {3});
  axes.expect<std::string>(0, {1, 3}, {"", "a", ""}).run();
  OpTester negative("CenterCropPad", 18);
  negative.input<float>({1}, {1}).input<int64_t>({1}, {-1}).outputs(1).fails("negative");
  OpTester count("CenterCropPad", 18);
  count.input<float>({1}, {1}).input<int64_t>({2}, {1, 1}).outputs(1).fails("2 entries for 1 axes");
}

TEST(CenterCropPad, OfNothingThereAreZeros) {
  OpTester t("CenterCropPad", 18);
  t.input<float>({0, 8}, {}).input<int64_t>({2}, {2, 3});
  t.expect<float>(0, {2, 3}, {0, 0, 0, 0, 0, 0}).run();
}

}  // namespace
}  // namespace folio
