#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(SkipLayerNormalization, NormalizesTheSum) {
  OpTester t("SkipLayerNormalization", 1, "com.microsoft");
  t.input<float>({2, 1, 2}, {1, 2, 0, 0});
  t.input<float>({1, 1, 2}, {2, 5});  // for both batches
  t.input<float>({2}, {2, 2});
  t.input<float>({2}, {1, 1});
  t.input<float>({2}, {0, 2});
  t.outputs(4);
  t.expect<float>(0, {2, 1, 2}, {-1, 3, -1, 3}, 1e-5);
  t.expect<float>(3, {2, 1, 2}, {3, 9, 2, 7});
  t.run();
}

TEST(SkipSimplifiedLayerNormalization, HasNeitherMeanNorBeta) {
  OpTester t("SkipSimplifiedLayerNormalization", 1, "com.microsoft");
  t.input<float>({1, 2}, {1, 3});
  t.input<float>({1, 2}, {0, 4});
  t.input<float>({2}, {5, 10});
  t.expect<float>(0, {1, 2}, {1, 14}, 1e-5);
  t.run();
}

TEST(SkipLayerNormalization, ASkipOfAnotherShapeIsRefused) {
  OpTester t("SkipLayerNormalization", 1, "com.microsoft");
  t.input<float>({2, 1, 2}, {1, 2, 0, 0});
  t.input<float>({3, 1, 2}, {2, 5, 0, 0, 0, 0});
  t.input<float>({2}, {2, 2});
  t.outputs(1).fails("does not fit");
}

TEST(SkipLayerNormalization, WithoutGammaIsRefused) {
  OpTester of_floats("SkipLayerNormalization", 1, "com.microsoft");
  of_floats.input<float>({1, 2}, {1, 3}).input<float>({1, 2}, {0, 0}).input_absent();
  of_floats.outputs(1).fails("input 2 is missing");
  OpTester of_doubles("SkipLayerNormalization", 1, "com.microsoft");
  of_doubles.input<double>({1, 2}, {1, 3}).input<double>({1, 2}, {0, 0}).input_absent();
  of_doubles.outputs(1).fails("input 2 is missing");
}

TEST(SkipLayerNormalization, OfDoublesIsComputedInDouble) {
  OpTester t("SkipLayerNormalization", 1, "com.microsoft");
  // The difference of 1e-9 would be lost in float.
  t.attr("epsilon", 0.0F);
  t.input<double>({1, 2}, {1, 1}).input<double>({1, 2}, {0, 1e-9});
  t.input<double>({2}, {1, 2}).input<double>({2}, {0, 1}).input<double>({2}, {2, 2});
  t.outputs(4);
  t.expect<double>(0, {1, 2}, {-1, 3}, 1e-6);
  t.expect<float>(1, {1, 1}, {3}, 1e-6);
  t.expect<float>(2, {1, 1}, {2e9F}, 1e-6);
  t.expect<double>(3, {1, 2}, {3, 3 + 1e-9}, 1e-15);
  t.run();
  OpTester rms("SkipSimplifiedLayerNormalization", 1, "com.microsoft");
  rms.input<double>({1, 2}, {1, 3}).input<double>({1, 2}, {0, 4}).input<double>({2}, {5, 10});
  rms.expect<double>(0, {1, 2}, {1, 14}, 1e-9).run();
}

}  // namespace
}  // namespace folio
