#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Clip, BoundsComeFromInputsOrAttributes) {
  OpTester t("Clip", 13);
  t.input<float>({3}, {-2, 0, 2});
  t.input<float>({}, {-1});
  t.input<float>({}, {1});
  t.expect<float>(0, {3}, {-1, 0, 1});
  t.run();
  OpTester old("Clip", 6);
  old.attr("min", -1.0f).attr("max", 1.0f);
  old.input<float>({3}, {-2, 0, 2});
  old.expect<float>(0, {3}, {-1, 0, 1});
  old.run();
}

TEST(Clip, AbsentBoundsDoNotBind) {
  OpTester t("Clip", 13);
  t.input<int8_t>({3}, {-128, 0, 127});
  t.input_absent();
  t.input<int8_t>({}, {5});
  t.expect<int8_t>(0, {3}, {-128, 0, 5});
  t.run();
}

TEST(Clip, AMinimumAboveTheMaximumGivesTheMaximum) {
  OpTester t("Clip", 13);
  t.input<float>({3}, {-2, 0, 6});
  t.input<float>({}, {2});
  t.input<float>({}, {1});
  t.expect<float>(0, {3}, {1, 1, 1});
  t.run();
}

TEST(Clip, KeepsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OpTester t("Clip", 13);
  t.input<float>({1}, {nan});
  t.input<float>({}, {-1});
  t.expect<float>(0, {1}, {nan});
  t.run();
}

TEST(Clip, ABoundThatIsNoScalarIsRefused) {
  OpTester t("Clip", 13);
  t.input<float>({1}, {0});
  t.input<float>({2}, {-1, -2});
  t.outputs(1).fails("expected a scalar");
}

}  // namespace
}  // namespace folio
