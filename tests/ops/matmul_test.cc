#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(MatMul, BroadcastsBatches) {
  OpTester t("MatMul", 13);
  t.input<float>({2, 1, 2}, {1, 2, 3, 4});
  t.input<float>({2, 1}, {10, 1});
  t.expect<float>(0, {2, 1, 1}, {12, 34});
  t.run();
}

TEST(MatMul, VectorsDropTheirDim) {
  OpTester t("MatMul", 13);
  t.input<int32_t>({2}, {1, 2});
  t.input<int32_t>({2, 2}, {1, 2, 3, 4});
  t.expect<int32_t>(0, {2}, {7, 10});
  t.run();
}

TEST(MatMul, ScalarsAreAnError) {
  OpTester t("MatMul", 13);
  t.input<float>({}, {1});
  t.input<float>({1}, {1});
  t.outputs(1).fails("scalar");
}

TEST(FusedMatMul, TransposesBothAndScales) {
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    OpTester t("FusedMatMul", 1, "com.microsoft");
    t.attr("transA", 1).attr("transB", 1).attr("alpha", 0.5F);
    t.input_as(dtype, {2, 2, 1}, {2, 4, 6, 8});
    t.input_as(dtype, {1, 2}, {1, 10});
    t.expect_as(0, dtype, {2, 1, 1}, {21, 43});
    t.run();
  }
}

TEST(FusedMatMul, TransBatchPutsDimZeroBeforeTheLast) {
  // A [m=2, batch=2, k=1] is read as [batch, m, k].
  OpTester t("FusedMatMul", 1, "com.microsoft");
  t.attr("transBatchA", 1);
  t.input<float>({2, 2, 1}, {1, 2, 3, 4});
  t.input<float>({2, 1, 1}, {10, 100});
  t.expect<float>(0, {2, 2, 1}, {10, 30, 200, 400});
  t.run();
}

TEST(FusedMatMul, RefusesIntegers) {
  OpTester t("FusedMatMul", 1, "com.microsoft");
  t.input<int32_t>({1, 1}, {1});
  t.input<int32_t>({1, 1}, {1});
  t.outputs(1).fails("int32");
}

}  // namespace
}  // namespace folio
