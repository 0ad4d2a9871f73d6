#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(ZipMap, MakesAMapOfEachRow) {
  OpTester t("ZipMap", 1, "ai.onnx.ml");
  t.attr_strings("classlabels_strings", {"a", "b"});
  t.input<float>({2, 2}, {1, 2, 3, 4});
  const Tensor keys = make_tensor<std::string>({2}, {"a", "b"});
  t.expect_value(
      0, make_sequence(DType::kUndefined, {make_map(keys, make_tensor<float>({2}, {1, 2})),
                                           make_map(keys, make_tensor<float>({2}, {3, 4}))}));
  t.run();
}

TEST(ZipMap, ColumnsWithoutALabelAreAnError) {
  OpTester t("ZipMap", 1, "ai.onnx.ml");
  t.attr_ints("classlabels_int64s", {1, 2});
  t.input<float>({1, 3}, {1, 2, 3});
  t.outputs(1).fails("must have 2 columns");
}

}  // namespace
}  // namespace folio
