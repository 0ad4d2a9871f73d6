#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(DictVectorizer, PutsValuesWhereTheVocabularySays) {
  OpTester t("DictVectorizer", 1, "ai.onnx.ml");
  t.attr_strings("string_vocabulary", {"a", "b", "c"});
  t.input_value(
      make_map(make_tensor<std::string>({2}, {"c", "a"}), make_tensor<float>({2}, {3, 1})));
  t.expect<float>(0, {1, 3}, {1, 0, 3});
  t.run();
}

TEST(DictVectorizer, ATensorIsNoMap) {
  OpTester t("DictVectorizer", 1, "ai.onnx.ml");
  t.attr_ints("int64_vocabulary", {1});
  t.input<float>({1}, {1});
  t.outputs(1).fails("not a map");
}

TEST(CastMap, StandsDenseByKey) {
  OpTester t("CastMap", 1, "ai.onnx.ml");
  t.attr("cast_to", "TO_INT64");
  t.input_value(
      make_map(make_tensor<int64_t>({2}, {9, 2}), make_tensor<std::string>({2}, {"7", "-3"})));
  t.expect<int64_t>(0, {1, 2}, {-3, 7});
  t.run();
}

TEST(CastMap, KeysBeyondMaxMapAreAnError) {
  OpTester t("CastMap", 1, "ai.onnx.ml");
  t.attr("map_form", "SPARSE").attr("max_map", 2);
  t.input_value(make_map(make_tensor<int64_t>({1}, {2}), make_tensor<float>({1}, {1})));
  t.outputs(1).fails("key 2 is outside");
}

}  // namespace
}  // namespace folio
