#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(SVMRegressor, SumsKernelsOfSupportVectors) {
  OpTester t("SVMRegressor", 1, "ai.onnx.ml");
  t.attr("kernel_type", "POLY").attr_floats("kernel_params", {1, 1, 2}).attr("n_supports", 2);
  t.attr_floats("support_vectors", {1, 0, 0, 1}).attr_floats("coefficients", {1, -1});
  t.attr_floats("rho", {0.5F});
  t.input<float>({1, 2}, {2, 1});
  t.expect<float>(0, {1, 1}, {9 - 4 + 0.5F});
  t.run();
}

TEST(SVMClassifier, PairsVote) {
  // Three classes with one vector each; every pair (i, j) scores x of i minus x of j.
  OpTester t("SVMClassifier", 1, "ai.onnx.ml");
  t.attr_ints("vectors_per_class", {1, 1, 1}).attr_ints("classlabels_ints", {10, 20, 30});
  t.attr_floats("support_vectors", {1, 0, 0, 0, 1, 0, 0, 0, 1});
  t.attr_floats("coefficients", {1, -1, -1, 1, 1, -1}).attr_floats("rho", {0, 0, 0});
  t.input<float>({1, 3}, {1, 5, 2});
  t.expect<int64_t>(0, {1}, {20});
  t.expect<float>(1, {1, 3}, {-4, -1, 3});
  t.run();
}

TEST(SVMClassifier, ProbabilitiesOfAnEvenPairAreHalves) {
  OpTester t("SVMClassifier", 1, "ai.onnx.ml");
  t.attr_ints("vectors_per_class", {1, 1}).attr_strings("classlabels_strings", {"a", "b"});
  t.attr_floats("support_vectors", {1, 1}).attr_floats("coefficients", {1, -1});
  t.attr_floats("rho", {0}).attr_floats("prob_a", {-1}).attr_floats("prob_b", {0});
  t.input<float>({1, 1}, {3});
  t.expect<std::string>(0, {1}, {"b"});
  t.expect<float>(1, {1, 2}, {0.5F, 0.5F}, 1e-6);
  t.run();
}

TEST(SVMClassifier, TooFewCoefficientsAreRefused) {
  OpTester t("SVMClassifier", 1, "ai.onnx.ml");
  t.attr_ints("vectors_per_class", {1, 1}).attr_ints("classlabels_ints", {0, 1});
  t.attr_floats("support_vectors", {1, 1}).attr_floats("coefficients", {1});
  t.attr_floats("rho", {0});
  t.input<float>({1, 1}, {3});
  t.outputs(2).fails("do not fit 2 classes");
}

}  // namespace
}  // namespace folio
