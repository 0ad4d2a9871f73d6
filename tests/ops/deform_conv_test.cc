#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(DeformConv, ReadsBetweenPixels) {
  OpTester t("DeformConv", 19);
  t.input<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  t.input<float>({1, 1, 1, 1}, {10});
  // y offsets, then x offsets: half a row down, one column left, outside, not a number.
  t.input<float>({1, 2, 2, 2}, {0.5F, 0, -7, 0, 0, -1, 0, NAN});
  t.input<float>({1}, {1});
  t.input<float>({1, 1, 2, 2}, {1, 2, 1, 1});
  t.expect<float>(0, {1, 1, 2, 2}, {21, 21, 1, 1});
  t.run();
}

TEST(DeformConv, OffsetGroupsShareTheirChannels) {
  OpTester t("DeformConv", 19);
  t.attr("offset_group", 2);
  t.input<float>({1, 2, 1, 2}, {1, 2, 3, 4});
  t.input<float>({1, 2, 1, 1}, {1, 1});
  t.input<float>({1, 4, 1, 2}, {0, 0, 0, 0, 0, 0, 1, -1});
  t.expect<float>(0, {1, 1, 1, 2}, {5, 5});
  t.run();
}

TEST(DeformConv, OffsetsOfOtherShapeAreAnError) {
  OpTester t("DeformConv", 19);
  t.input<float>({1, 1, 1, 1}, {1});
  t.input<float>({1, 1, 1, 1}, {1});
  t.input<float>({1, 1, 1, 1}, {0});
  t.outputs(1).fails("input 2 is [1,1,1,1], expected [1,2,1,1]");
}

}  // namespace
}  // namespace folio
