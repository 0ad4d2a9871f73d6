#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Normalizer, DividesRowsByTheirNorm) {
  OpTester t("Normalizer", 1, "ai.onnx.ml");
  t.attr("norm", "L2");
  t.input<int32_t>({2, 2}, {3, -4, 0, 0});
  t.expect<float>(0, {2, 2}, {0.6F, -0.8F, 0, 0}, 1e-6);
  t.run();
}

TEST(Normalizer, TheMaximumIsThatOfTheNumbersThemselves) {
  OpTester t("Normalizer", 1, "ai.onnx.ml");
  t.attr("norm", "MAX");
  t.input<float>({3, 2}, {2, -4, -2, -8, 0, -3});
  t.expect<float>(0, {3, 2}, {1, -2, 1, 4, 0, -3});
  t.run();
}

TEST(Scaler, TakesOneNumberOrOnePerColumn) {
  OpTester t("Scaler", 1, "ai.onnx.ml");
  t.attr_floats("offset", {1}).attr_floats("scale", {2, 3});
  t.input<double>({1, 2}, {2, 3});
  t.expect<float>(0, {1, 2}, {2, 6});
  t.run();
}

TEST(Scaler, OffsetsThatFitNoColumnAreAnError) {
  OpTester t("Scaler", 1, "ai.onnx.ml");
  t.attr_floats("offset", {1, 2, 3});
  t.input<float>({1, 2}, {2, 3});
  t.outputs(1).fails("has 2 features");
}

TEST(Binarizer, KeepsTheType) {
  OpTester t("Binarizer", 1, "ai.onnx.ml");
  t.attr("threshold", 1.0F);
  t.input<int64_t>({3}, {0, 1, 2});
  t.expect<int64_t>(0, {3}, {0, 0, 1});
  t.run();
}

TEST(Imputer, ReplacesNaN) {
  OpTester t("Imputer", 1, "ai.onnx.ml");
  t.attr_floats("imputed_value_floats", {7, 8}).attr("replaced_value_float", NAN);
  t.input<float>({2, 2}, {NAN, 1, 2, NAN});
  t.expect<float>(0, {2, 2}, {7, 1, 2, 8});
  t.run();
}

TEST(FeatureVectorizer, CutsAndFills) {
  OpTester t("FeatureVectorizer", 1, "ai.onnx.ml");
  t.attr_ints("inputdimensions", {1, 2});
  t.input<float>({2, 2}, {1, 2, 3, 4});
  t.input<int64_t>({2, 1}, {5, 6});
  t.expect<float>(0, {2, 3}, {1, 5, 0, 3, 6, 0});
  t.run();
}

}  // namespace
}  // namespace folio
