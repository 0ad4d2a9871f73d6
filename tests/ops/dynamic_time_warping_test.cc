#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

TEST(DynamicTimeWarping, GoesWhereItIsCheap) {
  for (const Shape& shape : {Shape{3, 4}, Shape{1, 3, 4}}) {
    OpTester t("DynamicTimeWarping", 1, kMs);
    t.input<float>(shape, {1, 1, 9, 9, 9, 9, 1, 9, 9, 9, 9, 1});
    t.expect<int32_t>(0, {2, 4}, {0, 0, 1, 2, 0, 1, 2, 3});
    t.expect_inferred(0, "tensor(int32)[2,?]");
    t.run();
  }
}

// Of equal costs the step along the row before it, unless going both ways is cheaper than each.
TEST(DynamicTimeWarping, StaysInTheRowWhereCostsAreEqual) {
  OpTester t("DynamicTimeWarping", 1, kMs);
  t.input<float>({2, 3}, {0, 0, 0, 0, 0, 0});
  t.expect<int32_t>(0, {2, 4}, {0, 1, 1, 1, 0, 0, 1, 2}).run();
}

TEST(DynamicTimeWarping, EndsWhateverTheCostsAre) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  OpTester t("DynamicTimeWarping", 1, kMs);
  t.input<float>({2, 2}, {nan, -inf, inf, nan});
  t.expect<int32_t>(0, {2, 2}, {1, 1, 0, 1}).run();
  OpTester none("DynamicTimeWarping", 1, kMs);
  none.input<float>({0, 3}, {}).expect<int32_t>(0, {2, 0}, {}).run();
}

TEST(DynamicTimeWarping, RefusesOtherShapes) {
  OpTester one("DynamicTimeWarping", 1, kMs);
  one.input<float>({3}, {1, 2, 3}).outputs(1).fails("input 0");
  OpTester two("DynamicTimeWarping", 1, kMs);
  two.input<float>({2, 1, 1}, {1, 2}).outputs(1).fails("expected [m,n] or [1,m,n]");
}

}  // namespace
}  // namespace folio
