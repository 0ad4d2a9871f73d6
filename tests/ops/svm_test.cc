#include <gtest/gtest.h>

#include <cmath>

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

TEST(SVMRegressor, HasEveryKernelOfManyRows) {
  constexpr int64_t kRows = 130, kVectors = 70, kFeatures = 9;
  std::vector<float> x, vectors, coefficients;
  for (int64_t i = 0; i < kRows * kFeatures; ++i) {
    x.push_back(std::sin(0.3F * static_cast<float>(i)));
  }
  for (int64_t i = 0; i < kVectors * kFeatures; ++i) {
    vectors.push_back(std::cos(0.7F * static_cast<float>(i)));
  }
  for (int64_t i = 0; i < kVectors; ++i) {
    coefficients.push_back(std::sin(1.1F * static_cast<float>(i)));
  }
  const auto expected = [&](const std::string& kernel, float degree, int64_t row) {
    double sum = 0.25;
    for (int64_t v = 0; v < kVectors; ++v) {
      double dot = 0, distance = 0;
      for (int64_t i = 0; i < kFeatures; ++i) {
        const double a = x[static_cast<size_t>(row * kFeatures + i)];
        const double b = vectors[static_cast<size_t>(v * kFeatures + i)];
        dot += a * b;
        distance += (a - b) * (a - b);
      }
      const double inner = 0.5 * dot + 0.125;
      const double k = kernel == "RBF"       ? std::exp(-0.5 * distance)
                       : kernel == "POLY"    ? std::pow(inner, degree)
                       : kernel == "SIGMOID" ? std::tanh(inner)
                                             : dot;
      sum += coefficients[static_cast<size_t>(v)] * k;
    }
    return sum;
  };
  for (const std::string kernel : {"LINEAR", "POLY", "RBF", "SIGMOID"}) {
    for (const float degree : {2.0F, 3.0F, 4.0F}) {
      OpTester t("SVMRegressor", 1, "ai.onnx.ml");
      t.attr("kernel_type", kernel.c_str()).attr_floats("kernel_params", {0.5F, 0.125F, degree});
      t.attr("n_supports", kVectors).attr_floats("support_vectors", vectors);
      t.attr_floats("coefficients", coefficients).attr_floats("rho", {0.25F});
      t.input<float>({kRows, kFeatures}, x).outputs(1).run();
      const std::vector<float> got = t.output_values<float>(0);
      for (int64_t row = 0; row < kRows; ++row) {
        const double want = expected(kernel, degree, row);
        ASSERT_NEAR(got[static_cast<size_t>(row)], want, 1e-5) << kernel << ' ' << row;
      }
    }
  }
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
