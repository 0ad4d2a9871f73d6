#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Einsum, MultipliesMatricesInAnyOrder) {
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    OpTester t("Einsum", 12);
    t.attr("equation", "bij, bkj -> kbi");
    t.input_as(dtype, {1, 2, 2}, {1, 2, 3, 4});
    t.input_as(dtype, {1, 3, 2}, {1, 0, 0, 1, 1, 1});
    t.expect_as(0, dtype, {3, 1, 2}, {1, 3, 2, 4, 3, 7});
    t.run();
  }
}

TEST(Einsum, SumsDiagonalsWithoutAnArrow) {
  OpTester t("Einsum", 12);
  t.attr("equation", "...ii");
  t.input<int32_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.expect<int32_t>(0, {2}, {5, 13});
  t.run();
}

TEST(Einsum, EllipsesBroadcast) {
  OpTester t("Einsum", 12);
  t.attr("equation", "...i,...i->...");
  t.input<float>({2, 1, 2}, {1, 2, 3, 4});
  t.input<float>({2, 2}, {1, 1, 10, 0});
  t.expect<float>(0, {2, 2}, {3, 10, 7, 30});
  t.run();
}

TEST(Einsum, TakesThreeOperands) {
  OpTester t("Einsum", 12);
  t.attr("equation", "i,j,k->ik");
  t.input<float>({2}, {1, 2}).input<float>({2}, {3, 4}).input<float>({1}, {10});
  t.expect<float>(0, {2, 1}, {70, 140});
  t.run();
}

TEST(Einsum, RefusesNonsense) {
  OpTester t("Einsum", 12);
  t.attr("equation", "i%->i");
  t.input<float>({2}, {1, 2});
  t.outputs(1).fails("where a label is expected");
  OpTester other("Einsum", 12);
  other.attr("equation", "ij,jk->ik");
  other.input<float>({1, 2}, {1, 2}).input<float>({3, 1}, {1, 2, 3});
  other.outputs(1).fails("the same label is");
}

}  // namespace
}  // namespace folio
