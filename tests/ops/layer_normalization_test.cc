#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(LayerNormalization, NormalizesFromAxisOn) {
  OpTester t("LayerNormalization", 17);
  t.attr("epsilon", 0.0f);
  t.input<float>({2, 2}, {1, 3, 2, 6});
  t.input<float>({2}, {2, 2});
  t.input<float>({2}, {0, 1});
  t.expect<float>(0, {2, 2}, {-2, 3, -2, 3}, 1e-5);
  t.expect<float>(1, {2, 1}, {2, 4}, 1e-6);
  t.expect<float>(2, {2, 1}, {1, 0.5f}, 1e-6);
  t.run();
}

TEST(RmsNormalization, DividesByTheRootMeanSquare) {
  OpTester t("RMSNormalization", 23);
  t.attr("epsilon", 0.0f);
  t.input<float>({1, 2}, {1, 7});
  t.input<float>({2}, {5, 5});
  t.expect<float>(0, {1, 2}, {1, 7}, 1e-5);
  t.run();
}

TEST(SimplifiedLayerNormalization, GivesTheTypeOfItsScale) {
  OpTester t("SimplifiedLayerNormalization", 1);
  t.attr("epsilon", 0.0f);
  t.input_as(DType::kFloat16, {1, 2}, {1, 7});
  t.input<float>({2}, {5, 10});
  t.expect<float>(0, {1, 2}, {1, 14}, 1e-5);
  t.run();
}

// The scale has as few numbers as x, and a row of x has some.
TEST(LayerNormalization, OfNothingReadsNoScale) {
  for (const char* type : {"LayerNormalization", "RMSNormalization"}) {
    OpTester t(type, type[0] == 'L' ? 17 : 23);
    t.attr("axis", 2).input<float>({2, 0, 3}, {}).input<float>({0, 3}, {});
    t.expect<float>(0, {2, 0, 3}, {}).run();
  }
}

TEST(LayerNormalization, AScaleOfAnotherSizeIsRefused) {
  OpTester t("LayerNormalization", 17);
  t.input<float>({1, 3}, {1, 2, 3});
  t.input<float>({2}, {1, 1});
  t.outputs(1).fails("[2], which do not broadcast to [1,3]");
}

TEST(RMSNormalization, AScaleOfAsManyNumbersInOtherDimsIsRefused) {
  for (const Shape& scale : {Shape{3, 2}, Shape{6}, Shape{1, 1, 2, 3}}) {
    OpTester t("RMSNormalization", 23);
    t.attr("axis", -2);
    t.input<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
    t.input<float>(scale, {1, 2, 3, 4, 5, 6});
    t.outputs(1).fails("do not broadcast to [1,2,3]");
  }
}

// The spec: "Scale and B should be unidirectional broadcastable to tensor X".
TEST(LayerNormalization, BroadcastsScaleAndBiasToAllOfX) {
  const std::vector<float> x = {-1, 1, 1, -1, -3, 3, 5, -5};  // rows of mean 0 and deviation |x|
  const auto norm = [&](int axis, float epsilon, const Shape& scale, std::vector<float> scales,
                        const Shape& bias, std::vector<float> biases) {
    OpTester t("LayerNormalization", 17);
    t.attr("axis", axis).attr("epsilon", epsilon).input<float>({2, 2, 2}, x);
    t.input<float>(scale, std::move(scales)).input<float>(bias, std::move(biases));
    return t;
  };
  // As many as a row has, but one for each row.
  norm(-1, 0, {2, 1}, {2, 3}, {2}, {10, 20})
      .expect<float>(0, {2, 2, 2}, {8, 22, 13, 17, 8, 22, 13, 17}, 1e-6)
      .run();
  norm(-1, 0, {2, 1, 1}, {2, 3}, {1, 2, 1}, {10, 20})
      .expect<float>(0, {2, 2, 2}, {8, 12, 22, 18, 7, 13, 23, 17}, 1e-6)
      .run();
  norm(-1, 0, {2}, {2, 3}, {2, 2, 2}, {0, 10, 20, 30, 40, 50, 60, 70})
      .expect<float>(0, {2, 2, 2}, {-2, 13, 22, 27, 38, 53, 62, 67}, 1e-6)
      .run();
  // Of two dims that are normalized, one.
  OpTester channels = norm(1, 0, {2, 1}, {1, 10}, {2}, {0, 100});
  const float far = std::sqrt(17.0F);
  channels
      .expect<float>(0, {2, 2, 2},
                     {-1, 101, 10, 90, -3 / far, 100 + 3 / far, 50 / far, 100 - 50 / far}, 1e-5)
      .run();
  OpTester rms("RMSNormalization", 23);
  rms.attr("epsilon", 0.0F).input<double>({2, 2}, {-1, 1, -3, 3}).input<double>({2, 1}, {2, 4});
  rms.expect<double>(0, {2, 2}, {-2, 2, -4, 4}, 1e-12).run();
}

TEST(LayerNormalization, AnAxisOutsideIsRefused) {
  OpTester t("LayerNormalization", 17);
  t.attr("axis", 5);
  t.input<float>({1, 3}, {1, 2, 3});
  t.input<float>({3}, {1, 1, 1});
  t.outputs(1);
  // Without a rank the axis is judged when the operator runs.
  t.fails("axis 5");
}

TEST(LayerNormalization, OfDoublesIsComputedInDouble) {
  OpTester t("LayerNormalization", 17);
  // The difference of 1e-9 would be lost in float.
  t.attr("epsilon", 0.0F);
  t.input<double>({2, 2}, {1, 1 + 2e-9, 3, 5})
      .input<double>({2}, {1, 2})
      .input<double>({2}, {0, 1});
  t.outputs(3);
  t.expect<double>(0, {2, 2}, {-1, 3, -1, 3}, 1e-6);
  t.expect<float>(1, {2, 1}, {1, 4});
  t.expect<float>(2, {2, 1}, {1e9F, 1}, 1e-6);
  t.run();
}

TEST(RMSNormalization, GivesTheTypeOfTheScale) {
  OpTester t("RMSNormalization", 23);
  t.input<float>({1, 2}, {1, 7}).input<double>({}, {5});
  t.expect<double>(0, {1, 2}, {1, 7}, 1e-6).run();
  OpTester narrow("RMSNormalization", 23);
  narrow.input<double>({1, 2}, {1, 7}).input_as(DType::kFloat16, {2}, {5, 10});
  narrow.expect_as(0, DType::kFloat16, {1, 2}, {1, 14}, 1e-3).run();
}

TEST(LayerNormalization, MeanAndInvStdDevHaveTheTypeThatStashTypeNames) {
  OpTester t("LayerNormalization", 17);
  t.attr("stash_type", 16).attr("epsilon", 0.0F);
  t.input<float>({1, 2}, {1, 3}).input<float>({2}, {1, 1}).outputs(3);
  t.expect<float>(0, {1, 2}, {-1, 1}, 1e-6);
  t.expect_as(1, DType::kBfloat16, {1, 1}, {2}).expect_as(2, DType::kBfloat16, {1, 1}, {1});
  t.run();
  OpTester odd("LayerNormalization", 17);
  odd.attr("stash_type", 7).input<float>({1, 2}, {1, 3}).input<float>({2}, {1, 1}).outputs(1);
  odd.fails("'stash_type' is 7");
}

}  // namespace
}  // namespace folio
