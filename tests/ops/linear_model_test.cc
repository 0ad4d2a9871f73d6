#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(LinearClassifier, GivesTheClassOfTheHighestScore) {
  OpTester t("LinearClassifier", 1, "ai.onnx.ml");
  t.attr_floats("coefficients", {1, 0, 0, 1}).attr_floats("intercepts", {0, 0.5F});
  t.attr_strings("classlabels_strings", {"a", "b"});
  t.input<int64_t>({2, 2}, {3, 1, 1, 3});
  t.expect<std::string>(0, {2}, {"a", "b"});
  t.expect<float>(1, {2, 2}, {3, 1.5F, 1, 3.5F});
  t.run();
}

TEST(LinearClassifier, OneScoreMakesTwoProbabilities) {
  OpTester t("LinearClassifier", 1, "ai.onnx.ml");
  t.attr_floats("coefficients", {1}).attr_floats("intercepts", {0});
  t.attr_ints("classlabels_ints", {5, 6}).attr("post_transform", "LOGISTIC");
  t.input<float>({1, 1}, {1});
  t.expect<int64_t>(0, {1}, {6});
  t.expect<float>(1, {1, 2}, {0.268941F, 0.731058F}, 1e-5);
  t.run();
}

TEST(LinearClassifier, TheOnlyClassOfStringsIsTheLabelOfEveryRow) {
  OpTester t("LinearClassifier", 1, "ai.onnx.ml");
  t.attr_floats("coefficients", {1}).attr_floats("intercepts", {0});
  t.attr_strings("classlabels_strings", {"yes"}).input<float>({2, 1}, {-1, 3});
  t.expect<std::string>(0, {2}, {"yes", "yes"}).expect<float>(1, {2, 1}, {-1, 3}).run();
}

TEST(LinearClassifier, FeaturesThatDoNotFitAreAnError) {
  OpTester t("LinearClassifier", 1, "ai.onnx.ml");
  t.attr_floats("coefficients", {1, 2}).attr_floats("intercepts", {0, 0});
  t.attr_ints("classlabels_ints", {0, 1});
  t.input<float>({1, 3}, {1, 2, 3});
  t.outputs(2).fails("do not fit 3 features");
}

TEST(LinearRegressor, AddsIntercepts) {
  OpTester t("LinearRegressor", 1, "ai.onnx.ml");
  t.attr_floats("coefficients", {1, 2, 3, 4})
      .attr_floats("intercepts", {10, 20})
      .attr("targets", 2);
  t.input<double>({1, 2}, {1, 1});
  t.expect<float>(0, {1, 2}, {13, 27});
  t.run();
}

}  // namespace
}  // namespace folio
