#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Concat, JoinsAlongTheAxis) {
  OpTester t("Concat", 13);
  t.attr("axis", -1).input<float>({2, 1}, {1, 4}).input<float>({2, 2}, {2, 3, 5, 6});
  t.input<float>({2, 0}, {}).expect<float>(0, {2, 3}, {1, 2, 3, 4, 5, 6});
  t.expect_inferred(0, "tensor(float)[2,3]");
  t.run();
}

// More rows than are held at once, of single elements and of blocks.
TEST(Concat, JoinsManyShortRows) {
  constexpr int64_t kRows = 5000;
  std::vector<float> one, two, joined;
  for (int64_t i = 0; i < kRows; ++i) {
    const auto x = static_cast<float>(i);
    one.push_back(x);
    two.insert(two.end(), {x + 0.25F, x + 0.5F});
    joined.insert(joined.end(), {x, x + 0.25F, x + 0.5F, x});
  }
  OpTester t("Concat", 13);
  t.attr("axis", 1).input<float>({kRows, 1}, one).input<float>({kRows, 2}, two);
  t.input<float>({kRows, 1}, one).expect<float>(0, {kRows, 4}, joined);
  t.run();
}

TEST(Concat, JoinsStringsAndOne) {
  OpTester t("Concat", 4);
  t.attr("axis", 0).input<std::string>({1}, {"a"}).input<std::string>({2}, {"b", "c"});
  t.expect<std::string>(0, {3}, {"a", "b", "c"});
  t.run();
  OpTester one("Concat", 11);
  one.attr("axis", 0).input<int8_t>({2}, {1, 2}).expect<int8_t>(0, {2}, {1, 2});
  one.run();
}

TEST(Concat, AxisIsOneByDefaultInOpset1Only) {
  OpTester t("Concat", 1);
  t.input<float>({1, 1}, {1}).input<float>({1, 1}, {2}).expect<float>(0, {1, 2}, {1, 2});
  t.run();
  OpTester missing("Concat", 4);
  missing.input<float>({1, 1}, {1}).fails("'axis' is required");
}

TEST(Concat, JoinsKnownContents) {
  OpTester t("Concat", 13);
  t.attr("axis", 0).input<int64_t>({1}, {3}).constant<int64_t>({1}, {-1}).input<int64_t>({1}, {8});
  t.expect<int64_t>(0, {3}, {3, -1, 8});
  t.run();
}

TEST(Concat, RefusesWhatDoesNotFit) {
  OpTester dims("Concat", 13);
  dims.attr("axis", 0).input<float>({1, 2}, {1, 2}).input<float>({1, 3}, {1, 2, 3});
  dims.fails("expected 2");
  OpTester rank("Concat", 13);
  rank.attr("axis", 0).input<float>({1}, {1}).input<float>({1, 1}, {1}).fails("rank 2");
  OpTester type("Concat", 13);
  type.attr("axis", 0).input<float>({1}, {1}).input<int64_t>({1}, {1}).fails("is int64");
  OpTester scalar("Concat", 13);
  scalar.attr("axis", 0).input<float>({}, {1}).fails("axis 0 is outside");
}

TEST(Concat, WhatIsKnownToBeEmptyNeedsNoDimsThatFit) {
  OpTester rank("Concat", 13);
  rank.attr("axis", 1).constant<float>({0}, {}).constant<float>({2, 1}, {1, 2});
  rank.constant<float>({2, 0, 7}, {}).input<float>({2, 1}, {3, 4});
  rank.expect<float>(0, {2, 2}, {1, 3, 2, 4});
  rank.run();
  OpTester dims("Concat", 13);
  dims.attr("axis", 0).constant<float>({1, 2}, {1, 2}).constant<float>({2, 0}, {});
  dims.expect<float>(0, {1, 2}, {1, 2});
  dims.run();
  OpTester nothing_else("Concat", 13);
  nothing_else.attr("axis", 0).constant<float>({0, 2}, {}).constant<float>({3, 0}, {});
  nothing_else.fails("expected");
}

TEST(Split, CutsBySizesOfEveryVersion) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  OpTester input("Split", 13);
  input.attr("axis", -1).input<float>({2, 3}, x).input<int64_t>({2}, {1, 2});
  input.expect<float>(0, {2, 1}, {1, 4}).expect<float>(1, {2, 2}, {2, 3, 5, 6});
  input.run();
  OpTester attribute("Split", 2);
  attribute.attr_ints("split", {4, 2}).input<float>({6}, x);
  attribute.expect<float>(0, {4}, {1, 2, 3, 4}).expect<float>(1, {2}, {5, 6});
  attribute.expect_inferred(1, "tensor(float)[2]");
  attribute.run();
}

TEST(Split, CutsEquallyWithASmallerLastPieceFromOpset18) {
  OpTester t("Split", 13);
  t.input<int32_t>({4}, {1, 2, 3, 4}).expect<int32_t>(0, {2}, {1, 2});
  t.expect<int32_t>(1, {2}, {3, 4});
  t.run();
  OpTester uneven("Split", 18);
  uneven.attr("num_outputs", 3).input<int32_t>({7}, {1, 2, 3, 4, 5, 6, 7});
  uneven.expect<int32_t>(0, {3}, {1, 2, 3}).expect<int32_t>(1, {3}, {4, 5, 6});
  uneven.expect<int32_t>(2, {1}, {7});
  uneven.run();
}

TEST(Split, RefusesSizesThatDoNotAddUp) {
  OpTester sum("Split", 13);
  sum.outputs(2).input<float>({3}, {1, 2, 3}).input<int64_t>({2}, {1, 1}).fails("add up to 2");
  OpTester negative("Split", 13);
  negative.outputs(2).input<float>({3}, {1, 2, 3}).input<int64_t>({2}, {4, -1}).fails("size of -1");
  OpTester count("Split", 13);
  count.outputs(1).input<float>({3}, {1, 2, 3}).input<int64_t>({2}, {1, 2}).fails("2 sizes for 1");
  OpTester uneven("Split", 13);
  uneven.outputs(2).input<float>({3}, {1, 2, 3}).fails("does not divide into 2");
  OpTester none("Split", 18);
  none.outputs(1).attr("num_outputs", 0).input<float>({3}, {1, 2, 3}).fails("num_outputs is 0");
}

}  // namespace
}  // namespace folio
