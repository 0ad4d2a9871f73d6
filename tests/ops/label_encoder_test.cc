#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(LabelEncoder, VersionOneGoesBothWays) {
  OpTester to("LabelEncoder", 1, "ai.onnx.ml");
  to.attr_strings("classes_strings", {"a", "b"});
  to.input<std::string>({3}, {"b", "a", "c"});
  to.expect<int64_t>(0, {3}, {1, 0, -1});
  to.run();
  OpTester back("LabelEncoder", 1, "ai.onnx.ml");
  back.attr_strings("classes_strings", {"a", "b"});
  back.input<int64_t>({2}, {1, 7});
  back.expect<std::string>(0, {2}, {"b", "_Unused"});
  back.run();
}

TEST(LabelEncoder, NaNIsAKey) {
  OpTester t("LabelEncoder", 2, "ai.onnx.ml");
  t.attr_floats("keys_floats", {1.5F, NAN}).attr_strings("values_strings", {"x", "nan"});
  t.attr("default_string", "?");
  t.input<float>({3}, {NAN, 1.5F, 2});
  t.expect<std::string>(0, {3}, {"nan", "x", "?"});
  t.run();
}

TEST(LabelEncoder, TakesTensors) {
  OpTester t("LabelEncoder", 4, "ai.onnx.ml");
  t.attr("keys_tensor", make_tensor<std::string>({2}, {"a", "b"}));
  t.attr("values_tensor", make_tensor<int16_t>({2}, {10, 20}));
  t.attr("default_tensor", make_tensor<int16_t>({1}, {42}));
  t.input<std::string>({3}, {"b", "z", "a"});
  t.expect<int16_t>(0, {3}, {20, 42, 10});
  t.run();
}

TEST(LabelEncoder, KeysWithoutValuesAreRefused) {
  OpTester t("LabelEncoder", 2, "ai.onnx.ml");
  t.attr_ints("keys_int64s", {1, 2}).attr_ints("values_int64s", {1});
  t.input<int64_t>({1}, {1});
  t.outputs(1).fails("2 keys for 1 values");
}

TEST(CategoryMapper, PairsStringsAndNumbers) {
  OpTester t("CategoryMapper", 1, "ai.onnx.ml");
  t.attr_strings("cats_strings", {"a", "b"}).attr_ints("cats_int64s", {100, 200});
  t.attr("default_int64", 5);
  t.input<std::string>({2}, {"b", "?"});
  t.expect<int64_t>(0, {2}, {200, 5});
  t.run();
}

TEST(OneHotEncoder, AddsADimOfCategories) {
  OpTester t("OneHotEncoder", 1, "ai.onnx.ml");
  t.attr_ints("cats_int64s", {3, 5});
  t.input<float>({3}, {5, 3, 4});
  t.expect<float>(0, {3, 2}, {0, 1, 1, 0, 0, 0});
  t.run();
}

TEST(OneHotEncoder, UnknownCategoriesMayBeAnError) {
  OpTester t("OneHotEncoder", 1, "ai.onnx.ml");
  t.attr_strings("cats_strings", {"a"}).attr("zeros", 0);
  t.input<std::string>({1}, {"b"});
  t.outputs(1).fails("not listed");
}

}  // namespace
}  // namespace folio
