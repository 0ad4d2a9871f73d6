#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kImage = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

TEST(Crop, TakesBordersAway) {
  OpTester t("Crop", 1);
  t.attr_ints("border", {1, 0, 2, 1}).input<float>({1, 1, 3, 4}, kImage);
  t.expect<float>(0, {1, 1, 2, 1}, {1, 5}).expect_inferred(0, "tensor(float)[1,1,2,1]");
  t.run();
}

TEST(Crop, ScaleIsTheSizeBehindLeftAndTop) {
  OpTester t("Crop", 1);
  t.attr_ints("border", {1, 1, 0, 0}).attr_ints("scale", {2, 2});
  t.input<float>({1, 1, 3, 4}, kImage).expect<float>(0, {1, 1, 2, 2}, {5, 6, 9, 10});
  t.run();
  OpTester planes("Crop", 1);
  planes.attr_ints("border", {0, 1, 0, 0}).attr_ints("scale", {1, 2});
  planes.input<double>({2, 1, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  planes.expect<double>(0, {2, 1, 1, 2}, {2, 3, 6, 7});
  planes.run();
}

TEST(Crop, RefusesWhatReachesBeyond) {
  OpTester t("Crop", 1);
  t.attr_ints("border", {2, 0, 3, 0}).input<float>({1, 1, 3, 4}, kImage);
  t.outputs(1).fails("borders of 2 and 3 do not fit into 4 columns");
  OpTester huge("Crop", 1);
  huge.attr_ints("border", {0, INT64_MAX, 0, INT64_MAX}).input<float>({1, 1, 3, 4}, kImage);
  huge.outputs(1).fails("do not fit into 3 rows");
  OpTester scale("Crop", 1);
  scale.attr_ints("border", {0, 2, 0, 0}).attr_ints("scale", {2, 1});
  scale.input<float>({1, 1, 3, 4}, kImage).outputs(1).fails("scale 2 behind a border of 2");
  OpTester few("Crop", 1);
  few.attr_ints("border", {1, 1}).input<float>({1, 1, 3, 4}, kImage);
  few.outputs(1).fails("border has 2 numbers, expected 4");
  OpTester negative("Crop", 1);
  negative.attr_ints("border", {-1, 0, 0, 0}).input<float>({1, 1, 3, 4}, kImage);
  negative.outputs(1).fails("-1, expected 0 or more");
  OpTester rank("Crop", 1);
  rank.attr_ints("border", {0, 0, 0, 0}).input<float>({3, 4}, kImage);
  rank.outputs(1).fails("rank 2, expected 4");
}

}  // namespace
}  // namespace folio
