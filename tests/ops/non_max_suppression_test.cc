#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kCorners = {0, 0,    1, 1,    0, 0.1F,  1, 1.1F,  0, -0.1F, 1, 0.9F,
                                     0, 10.F, 1, 11.F, 0, 10.1F, 1, 11.1F, 0, 100.F, 1, 101.F};
const std::vector<float> kScores = {0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F};

OpTester boxes(int64_t count, float overlap, const std::vector<float>& scores) {
  OpTester t("NonMaxSuppression", 11);
  t.input<float>({1, 6, 4}, kCorners).input<float>({1, 1, 6}, scores);
  t.input<int64_t>({1}, {count}).input<float>({1}, {overlap});
  return t;
}

TEST(NonMaxSuppression, KeepsTheBestOfEachHeap) {
  OpTester t = boxes(3, 0.5F, kScores);
  t.input<float>({1}, {0.4F}).expect<int64_t>(0, {2, 3}, {0, 0, 3, 0, 0, 0}).run();
  OpTester limited = boxes(1, 0.5F, kScores);
  limited.expect<int64_t>(0, {1, 3}, {0, 0, 3}).expect_inferred(0, "tensor(int64)[?,3]").run();
}

TEST(NonMaxSuppression, IsEmptyByDefault) {
  OpTester t("NonMaxSuppression", 10);
  t.input<float>({1, 6, 4}, kCorners).input<float>({1, 1, 6}, kScores);
  t.expect<int64_t>(0, {0, 3}, {}).run();
}

TEST(NonMaxSuppression, TakesCornersInAnyOrderAndCenters) {
  OpTester flipped("NonMaxSuppression", 11);
  flipped.input<float>({1, 2, 4}, {1, 1, 0, 0, 0, 0.1F, 1, 1.1F}).input<float>({1, 1, 2}, {1, 2});
  flipped.input<int64_t>({}, {9}).input<float>({}, {0.5F}).expect<int64_t>(0, {1, 3}, {0, 0, 1});
  flipped.run();
  OpTester center("NonMaxSuppression", 11);
  center.attr("center_point_box", 1).input<float>({1, 2, 4}, {0.5F, 0.5F, 1, 1, 0.5F, 0.6F, 1, 1});
  center.input<float>({1, 1, 2}, {2, 2}).input<int64_t>({}, {9}).input<float>({}, {0.5F});
  center.expect<int64_t>(0, {1, 3}, {0, 0, 0}).run();
}

TEST(NonMaxSuppression, LeavesOutWhatHasNoScore) {
  OpTester t = boxes(9, 0.5F, {NAN, -INFINITY, NAN, NAN, NAN, 1});
  t.expect<int64_t>(0, {2, 3}, {0, 0, 5, 0, 0, 1}).run();
}

TEST(NonMaxSuppression, RefusesShapesThatDoNotFit) {
  OpTester t("NonMaxSuppression", 11);
  t.input<float>({1, 1, 4}, {0, 0, 1, 1}).input<float>({1, 1, 2}, {1, 2}).outputs(1);
  t.fails("expected [b,n,4] and [b,c,n]");
  OpTester two = boxes(1, 0.5F, kScores);
  two.input<float>({2}, {0, 0}).outputs(1).fails("input 4 has 2 elements");
}

}  // namespace
}  // namespace folio
