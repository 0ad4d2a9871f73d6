#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kSix = {0, 1, 2, 3, 4, 5};

TEST(Reshape, ZeroCopiesAndMinusOneTakesTheRest) {
  OpTester t("Reshape", 13);
  t.input<float>({2, 3}, kSix).input<int64_t>({3}, {0, -1, 1}).expect<float>(0, {2, 3, 1}, kSix);
  t.run();
}

TEST(Reshape, ConstantShapeWithOneUnknownIsInferred) {
  OpTester t("Reshape", 5);
  t.input<float>({2, 3}, kSix).constant<int64_t>({2}, {-1, 2}).expect<float>(0, {3, 2}, kSix);
  t.expect_inferred(0, "tensor(float)[3,2]");
  t.run();
}

TEST(Reshape, TakesItsShapeFromAnAttributeBeforeOpset5) {
  OpTester t("Reshape", 1);
  t.attr_ints("shape", {3, -1}).input<float>({2, 3}, kSix).expect<float>(0, {3, 2}, kSix);
  t.run();
}

TEST(Reshape, EmptyBatchKeepsTheWildcardMeaningful) {
  OpTester t("Reshape", 13);
  t.input<float>({0, 2, 3}, {}).input<int64_t>({2}, {0, -1}).expect<float>(0, {0, 6}, {});
  t.run();
}

TEST(Reshape, AllowzeroTakesZeroByItsWord) {
  OpTester t("Reshape", 14);
  t.attr("allowzero", 1).input<float>({0, 3}, {}).input<int64_t>({3}, {3, 4, 0});
  t.expect<float>(0, {3, 4, 0}, {});
  t.run();
}

TEST(Reshape, ToScalarAndBack) {
  OpTester down("Reshape", 13);
  down.input<int64_t>({1}, {7}).input<int64_t>({0}, {}).expect<int64_t>(0, {}, {7});
  down.run();
  OpTester up("Reshape", 13);
  up.input<int64_t>({}, {7}).input<int64_t>({1}, {-1}).expect<int64_t>(0, {1}, {7});
  up.run();
}

TEST(Reshape, RefusesCountsThatDiffer) {
  OpTester t("Reshape", 13);
  t.input<float>({2, 3}, kSix).input<int64_t>({2}, {4, 2}).fails("cannot reshape [2,3] to [4,2]");
  OpTester rest("Reshape", 13);
  rest.input<float>({2, 3}, kSix).input<int64_t>({2}, {-1, 4}).fails("do not divide");
}

TEST(Reshape, RefusesHostileDims) {
  OpTester twice("Reshape", 13);
  twice.input<float>({2, 3}, kSix).input<int64_t>({2}, {-1, -1}).fails("-1 twice");
  OpTester negative("Reshape", 13);
  negative.input<float>({2, 3}, kSix).input<int64_t>({2}, {-2, -3}).fails("negative");
  OpTester nothing("Reshape", 13);
  nothing.input<float>({6}, kSix).input<int64_t>({2}, {6, 0}).fails("no dim to copy");
  OpTester huge("Reshape", 13);
  huge.input<float>({6}, kSix).input<int64_t>({2}, {INT64_MAX, INT64_MAX}).fails("overflow");
  OpTester deep("Reshape", 13);
  deep.input<float>({1}, {1}).input<int64_t>({17}, std::vector<int64_t>(17, 1)).fails("17 dims");
}

TEST(Flatten, SplitsAtTheAxis) {
  OpTester t("Flatten", 11);
  t.attr("axis", -1).input<float>({1, 2, 3}, kSix).expect<float>(0, {2, 3}, kSix);
  t.expect_inferred(0, "tensor(float)[2,3]");
  t.run();
  OpTester zero("Flatten", 1);
  zero.attr("axis", 0).input<float>({2, 3}, kSix).expect<float>(0, {1, 6}, kSix);
  zero.run();
  OpTester end("Flatten", 13);
  end.attr("axis", 2).input<float>({2, 3}, kSix).expect<float>(0, {6, 1}, kSix);
  end.run();
}

TEST(Flatten, RefusesAnAxisOutside) {
  OpTester t("Flatten", 13);
  t.attr("axis", 3).input<float>({2, 3}, kSix).fails("axis 3 is outside [-2, 2]");
}

}  // namespace
}  // namespace folio
