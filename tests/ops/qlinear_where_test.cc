#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(QLinearWhere, GivesTheCodeOfTheChosenNumber) {
  OpTester t("QLinearWhere", 1, "com.microsoft");
  t.input<bool>({2, 1}, {true, false});
  t.input<uint8_t>({3}, {10, 128, 255}).input<float>({}, {0.5f}).input<uint8_t>({}, {128});
  t.input<uint8_t>({1, 3}, {0, 7, 200}).input<float>({}, {2.0f}).input<uint8_t>({}, {5});
  t.input<float>({}, {1.0f}).input<uint8_t>({}, {100});
  // x: -59, 0, 63.5 (to even: 64); y: -10, 4, 390 (saturates)
  t.expect<uint8_t>(0, {2, 3}, {41, 100, 164, 90, 104, 255});
  t.expect_inferred(0, "tensor(uint8)[2,3]");
  t.run();
}

TEST(QLinearWhere, TakesSignedCodes) {
  OpTester t("QLinearWhere", 1, "com.microsoft");
  t.input<bool>({2}, {false, true});
  t.input<int8_t>({2}, {-128, 127}).input<float>({1}, {1.0f}).input<int8_t>({1}, {-1});
  t.input<int8_t>({2}, {-100, 3}).input<float>({1}, {0.5f}).input<int8_t>({1}, {0});
  t.input<float>({1}, {2.0f}).input<int8_t>({1}, {1});
  t.expect<int8_t>(0, {2}, {-24, 65});
  t.run();
}

TEST(QLinearWhere, RefusesMixedTypesAndShapes) {
  OpTester t("QLinearWhere", 1, "com.microsoft");
  t.input<bool>({2}, {false, true});
  t.input<int8_t>({2}, {-128, 127}).input<float>({1}, {1.0f}).input<int8_t>({1}, {-1});
  t.input<uint8_t>({2}, {1, 3}).input<float>({1}, {0.5f}).input<uint8_t>({1}, {0});
  t.input<float>({1}, {2.0f}).input<int8_t>({1}, {1});
  t.outputs(1).fails("uint8");
  OpTester u("QLinearWhere", 1, "com.microsoft");
  u.input<bool>({2}, {false, true});
  u.input<int8_t>({3}, {1, 2, 3}).input<float>({1}, {1.0f}).input<int8_t>({1}, {-1});
  u.input<int8_t>({1}, {1}).input<float>({1}, {0.5f}).input<int8_t>({1}, {0});
  u.input<float>({1}, {2.0f}).input<int8_t>({1}, {1});
  u.outputs(1).fails("broadcast");
}

OpTester mean_of(const std::vector<int64_t>& axes, int keepdims) {
  OpTester t("QLinearReduceMean", 1, "com.microsoft");
  t.attr_ints("axes", axes).attr("keepdims", keepdims);
  t.input<uint8_t>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 255, 0, 255, 0, 252, 3});
  t.input<float>({}, {0.5f}).input<uint8_t>({}, {2}).input<float>({}, {0.25f});
  t.input<uint8_t>({}, {10});
  return t;
}

TEST(QLinearReduceMean, AveragesOverAnyAxes) {
  // Means of the codes less 2, times 2, plus 10.
  OpTester middle = mean_of({1}, 1);
  middle.expect<uint8_t>(0, {2, 1, 2}, {12, 14, 255, 8});
  middle.expect_inferred(0, "tensor(uint8)[2,1,2]");
  middle.run();
  OpTester outer = mean_of({0, -1}, 0);
  outer.expect<uint8_t>(0, {3}, {135, 137, 139});
  outer.expect_inferred(0, "tensor(uint8)[3]");
  outer.run();
  OpTester all = mean_of({}, 0);
  all.expect<uint8_t>(0, {}, {137});
  all.run();
}

TEST(QLinearReduceMean, RefusesAxesOutsideAndMeansOfNothing) {
  mean_of({3}, 1).outputs(1).fails("axis 3");
  OpTester t("QLinearReduceMean", 1, "com.microsoft");
  t.attr_ints("axes", {0});
  t.input<int8_t>({0, 2}, {}).input<float>({}, {1.0f}).input<int8_t>({}, {0});
  t.input<float>({}, {1.0f}).input<int8_t>({}, {0});
  t.outputs(1).fails("the mean of no element");
}

}  // namespace
}  // namespace folio
