#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(BatchNormalization, ScalesEachChannel) {
  OpTester t("BatchNormalization", 15);
  t.attr("epsilon", 0.0F);
  t.input<float>({1, 2, 1, 2}, {1, 3, 10, 20});
  t.input<float>({2}, {1, 2}).input<float>({2}, {0, 1});
  t.input<float>({2}, {1, 10}).input<float>({2}, {4, 25});
  t.expect<float>(0, {1, 2, 1, 2}, {0, 1, 1, 5}, 1e-6);
  t.run();
}

TEST(BatchNormalization, ParametersOfOtherLengthAreAnError) {
  OpTester t("BatchNormalization", 15);
  t.input<float>({1, 2, 1}, {1, 3});
  t.input<float>({1}, {1}).input<float>({2}, {0, 1});
  t.input<float>({2}, {1, 10}).input<float>({2}, {4, 25});
  t.outputs(1).fails("expected 2");
}

TEST(BatchNormalization, TrainingNormalizesByItsOwnStatistics) {
  OpTester t("BatchNormalization", 15);
  t.attr("epsilon", 0.0F).attr("momentum", 0.5F).attr("training_mode", 1);
  // Channel 0: 1, 3, 5, 7, of mean 4 and variance 5; channel 1: 10, 20, 10, 20.
  t.input<float>({2, 2, 2}, {1, 3, 10, 20, 5, 7, 10, 20});
  t.input<float>({2}, {2.236068F, 5}).input<float>({2}, {0, 1});
  t.input<float>({2}, {2, 5}).input<double>({2}, {1, 75});
  t.expect<float>(0, {2, 2, 2}, {-3, -1, -4, 6, 1, 3, -4, 6}, 1e-6);
  t.expect<float>(1, {2}, {3, 10}).expect<double>(2, {2}, {3, 50});
  t.expect_inferred(2, "tensor(double)[2]").run();
}

// 2^61 rows of no elements: nothing to do, at once.
TEST(BatchNormalization, EmptyRowsTakeNoTimeHoweverMany) {
  for (const int64_t training : {0, 1}) {
    OpTester t("BatchNormalization", 15);
    t.attr("training_mode", training);
    t.input<float>({int64_t{1} << 61, 1, 0}, {});
    for (int i = 0; i < 4; ++i) t.input<float>({1}, {1});
    t.expect<float>(0, {int64_t{1} << 61, 1, 0}, {});
    t.run();
  }
}

TEST(BatchNormalization, StatisticsWithoutTrainingAreAnError) {
  for (const int version : {9, 15}) {
    OpTester t("BatchNormalization", version);
    t.input<float>({1, 1, 2}, {1, 3});
    for (int i = 0; i < 4; ++i) t.input<float>({1}, {1});
    t.outputs(2).fails(version == 9 ? "before opset 14" : "which only training_mode = 1 gives");
  }
}

TEST(LayerNormalization, GivesMeanAndInverseDeviation) {
  OpTester t("LayerNormalization", 17);
  t.attr("epsilon", 0.0F);
  t.input<float>({2, 2}, {1, 3, -2, 2});
  t.input<float>({2}, {1, 10});
  t.input<float>({2}, {0, 1});
  t.expect<float>(0, {2, 2}, {-1, 11, -1, 11}, 1e-6);
  t.expect<float>(1, {2, 1}, {2, 0}, 1e-6);
  t.expect<float>(2, {2, 1}, {1, 0.5F}, 1e-6);
  t.run();
}

TEST(LayerNormalization, AxesOutsideAreAnError) {
  OpTester t("LayerNormalization", 17);
  t.attr("axis", 5);
  t.input<float>({2, 2}, {1, 3, -2, 2}).input<float>({2}, {1, 10});
  t.outputs(1).fails("axis 5 is outside");
}

TEST(RMSNormalization, DividesByTheRoot) {
  OpTester t("RMSNormalization", 23);
  t.attr("epsilon", 0.0F);
  t.input<float>({1, 2}, {3, 4}).input<float>({2}, {1, 2});
  const float rms = std::sqrt(12.5F);
  t.expect<float>(0, {1, 2}, {3 / rms, 8 / rms}, 1e-6);
  t.run();
}

}  // namespace
}  // namespace folio
