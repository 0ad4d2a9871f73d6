#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Squeeze, TakesGivenAxesFromAttributeOrInput) {
  OpTester old("Squeeze", 11);
  old.attr_ints("axes", {0, -1}).input<float>({1, 2, 1}, {1, 2}).expect<float>(0, {2}, {1, 2});
  old.run();
  OpTester t("Squeeze", 13);
  t.input<float>({1, 2, 1}, {1, 2}).input<int64_t>({1}, {-1}).expect<float>(0, {1, 2}, {1, 2});
  t.run();
}

TEST(Squeeze, WithoutAxesTakesEveryOne) {
  OpTester t("Squeeze", 13);
  t.input<float>({1, 2, 1}, {1, 2}).expect<float>(0, {2}, {1, 2});
  t.expect_inferred(0, "tensor(float)[2]");
  t.run();
}

TEST(Squeeze, KeepsKnownContents) {
  OpTester t("Squeeze", 13);
  t.input<int64_t>({1}, {5}).constant<int64_t>({1}, {0}).expect<int64_t>(0, {}, {5});
  t.run();
}

TEST(Squeeze, RefusesOtherDims) {
  OpTester t("Squeeze", 13);
  t.input<float>({1, 2}, {1, 2}).input<int64_t>({1}, {1}).fails("dim 1 is not 1");
  OpTester range("Squeeze", 13);
  range.input<float>({1, 2}, {1, 2}).input<int64_t>({1}, {2}).fails("axis 2 is outside");
}

TEST(Unsqueeze, PutsOnesAtPlacesOfTheResult) {
  OpTester t("Unsqueeze", 13);
  t.input<float>({2}, {1, 2}).input<int64_t>({2}, {2, 0}).expect<float>(0, {1, 2, 1}, {1, 2});
  t.run();
  OpTester old("Unsqueeze", 1);
  old.attr_ints("axes", {1}).input<float>({2}, {1, 2}).expect<float>(0, {2, 1}, {1, 2});
  old.run();
  OpTester scalar("Unsqueeze", 13);
  scalar.input<int64_t>({}, {3}).constant<int64_t>({1}, {0}).expect<int64_t>(0, {1}, {3});
  scalar.run();
}

TEST(Unsqueeze, RefusesAxesTwiceOrOutside) {
  OpTester twice("Unsqueeze", 13);
  twice.input<float>({2}, {1, 2}).input<int64_t>({2}, {0, -3}).fails("given twice");
  OpTester outside("Unsqueeze", 13);
  outside.input<float>({2}, {1, 2}).input<int64_t>({1}, {2}).fails("axis 2 is outside");
  OpTester deep("Unsqueeze", 13);
  deep.input<float>({2}, {1, 2}).input<int64_t>({16}, std::vector<int64_t>(16, 0)).fails("16 dims");
}

TEST(Shape, GivesDimsBetweenStartAndEnd) {
  OpTester t("Shape", 15);
  t.attr("start", -3).attr("end", -1);
  t.input<float>({1, 2, 3, 0}, {}).expect<int64_t>(0, {2}, {2, 3});
  t.run();
  OpTester past("Shape", 15);
  past.attr("start", 2).attr("end", 1).input<float>({1, 2}, {1, 2}).expect<int64_t>(0, {0}, {});
  past.run();
  OpTester all("Shape", 1);
  all.input<std::string>({2, 1}, {"", ""}).expect<int64_t>(0, {2}, {2, 1});
  all.run();
}

TEST(Shape, SurvivesExtremeAttributes) {
  OpTester t("Shape", 15);
  t.attr("start", INT64_MIN).attr("end", INT64_MAX);
  t.input<float>({1, 2}, {1, 2}).expect<int64_t>(0, {2}, {1, 2});
  t.run();
}

TEST(Size, CountsElements) {
  OpTester t("Size", 13);
  t.input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).expect<int64_t>(0, {}, {6});
  t.run();
}

}  // namespace
}  // namespace folio
