#include <gtest/gtest.h>

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

TEST(LayerNormalization, AScaleOfAnotherSizeIsRefused) {
  OpTester t("LayerNormalization", 17);
  t.input<float>({1, 3}, {1, 2, 3});
  t.input<float>({2}, {1, 1});
  t.outputs(1).fails("expected 3");
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

}  // namespace
}  // namespace folio
