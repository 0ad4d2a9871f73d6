#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kValues = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

TEST(TopK, GivesTheLargestFirst) {
  OpTester t("TopK", 11);
  t.attr("axis", 1).input<float>({3, 4}, kValues).input<int64_t>({1}, {3});
  t.expect<float>(0, {3, 3}, {3, 2, 1, 7, 6, 5, 11, 10, 9});
  t.expect<int64_t>(1, {3, 3}, {3, 2, 1, 3, 2, 1, 3, 2, 1}).run();
}

TEST(TopK, TakesKAsAnAttributeBeforeOpset10) {
  OpTester t("TopK", 1);
  t.attr("axis", 0).attr("k", 1).input<float>({3, 4}, kValues);
  t.expect<float>(0, {1, 4}, {8, 9, 10, 11}).expect<int64_t>(1, {1, 4}, {2, 2, 2, 2}).run();
}

TEST(TopK, GivesTheSmallestOfAMiddleAxis) {
  OpTester t("TopK", 11);
  t.attr("axis", -2).attr("largest", 0).input<int8_t>({1, 3, 2}, {5, -1, 3, 2, 4, -7});
  t.constant<int64_t>({1}, {2});
  t.expect<int8_t>(0, {1, 2, 2}, {3, -7, 4, -1}).expect<int64_t>(1, {1, 2, 2}, {1, 2, 2, 0});
  t.expect_inferred(0, "tensor(int8)[1,2,2]").run();
}

TEST(TopK, PutsTheLowerIndexFirstAndNanAboveAll) {
  OpTester ties("TopK", 11);
  ties.input<uint8_t>({5}, {1, 3, 3, 0, 3}).input<int64_t>({1}, {2});
  ties.expect<uint8_t>(0, {2}, {3, 3}).expect<int64_t>(1, {2}, {1, 2}).run();
  const float nan = std::nanf("");
  OpTester largest("TopK", 11);
  largest.input<float>({4}, {1, nan, INFINITY, nan}).input<int64_t>({1}, {3});
  largest.expect<float>(0, {3}, {nan, nan, INFINITY}).expect<int64_t>(1, {3}, {1, 3, 2}).run();
  OpTester smallest("TopK", 11);
  smallest.attr("largest", 0).input<float>({3}, {nan, 2, 1}).input<int64_t>({1}, {3});
  smallest.expect<float>(0, {3}, {1, 2, nan}).expect<int64_t>(1, {3}, {2, 1, 0}).run();
}

TEST(TopK, OfNoneIsEmpty) {
  OpTester t("TopK", 11);
  t.input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<int64_t>({1}, {0});
  t.expect<float>(0, {2, 0}, {}).expect<int64_t>(1, {2, 0}, {}).run();
}

TEST(TopK, RefusesMoreThanThereAre) {
  OpTester more("TopK", 11);
  more.input<float>({2}, {1, 2}).input<int64_t>({1}, {3}).outputs(2).fails("k is 3");
  OpTester less("TopK", 11);
  less.input<float>({2}, {1, 2}).input<int64_t>({1}, {-1}).outputs(2).fails("k is -1");
  OpTester type("TopK", 11);
  type.input<bool>({2}, {true, false}).input<int64_t>({1}, {1}).outputs(2).fails("bool");
  OpTester scalar("TopK", 11);
  scalar.input<float>({}, {1}).input<int64_t>({1}, {1}).outputs(2).fails("axis -1");
}

}  // namespace
}  // namespace folio
