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

// Along whichever axis the elements are read, some at a time.
TEST(Einsum, SumsRowsColumnsAndAll) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kColumns = 600;  // more than are taken at a time
  std::vector<int32_t> x;
  std::vector<int32_t> rows(kRows), columns(kColumns), weights(kColumns), weighted(kRows);
  int32_t all = 0;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const auto row = static_cast<size_t>(i / kColumns);
    const auto column = static_cast<size_t>(i % kColumns);
    x.push_back(static_cast<int32_t>(i * 37 % 101) - 50);
    weights[column] = static_cast<int32_t>(column * 13 % 7) - 3;
    rows[row] += x.back();
    columns[column] += x.back();
    weighted[row] += x.back() * weights[column];
    all += x.back();
  }
  const auto sum = [&](const char* equation, const Shape& shape, std::vector<int32_t> expected) {
    OpTester t("Einsum", 12);
    t.attr("equation", equation).input<int32_t>({kRows, kColumns}, x);
    t.expect<int32_t>(0, shape, std::move(expected));
    return t;
  };
  sum("ij->i", {kRows}, rows).run();
  sum("ij->j", {kColumns}, columns).run();
  sum("ij->", {}, {all}).run();
  OpTester two("Einsum", 12);
  two.attr("equation", "ij,j->i").input<int32_t>({kRows, kColumns}, x);
  two.input<int32_t>({kColumns}, weights).expect<int32_t>(0, {kRows}, weighted).run();
  std::vector<int32_t> turned(x.size());
  for (size_t i = 0; i < x.size(); ++i) turned[i % kColumns * kRows + i / kColumns] = x[i];
  sum("ij->ji", {kColumns, kRows}, turned).run();
}

TEST(Einsum, MultipliesWithoutSums) {
  OpTester outer("Einsum", 12);
  outer.attr("equation", "i,j->ij").input<float>({2}, {1, 2}).input<float>({3}, {3, 4, 5});
  outer.expect<float>(0, {2, 3}, {3, 4, 5, 6, 8, 10}).run();
  OpTester scalars("Einsum", 12);
  scalars.attr("equation", ",->").input<double>({}, {3}).input<double>({}, {4});
  scalars.expect<double>(0, {}, {12}).run();
  OpTester nothing("Einsum", 12);
  nothing.attr("equation", "ij->i").input<float>({2, 0}, {}).expect<float>(0, {2}, {0, 0}).run();
  OpTester columns("Einsum", 12);
  columns.attr("equation", "ij,j->j").input<double>({0, 2}, {}).input<double>({2}, {1, 2});
  columns.expect<double>(0, {2}, {0, 0}).run();
}

// Operands whose labels stand in another order, lack some, or broadcast; of each way to multiply.
template <typename T>
void check_products() {
  OpTester turned("Einsum", 12);
  turned.attr("equation", "ab,ca->abc");
  turned.input<T>({2, 3}, {1, 2, 3, 4, 5, 6}).template input<T>({2, 2}, {1, 2, 3, 4});
  turned.expect<T>(0, {2, 3, 2}, {1, 3, 2, 6, 3, 9, 8, 16, 10, 20, 12, 24}).run();
  OpTester both("Einsum", 12);
  both.attr("equation", "ba,ab->ab");
  both.input<T>({3, 2}, {1, 2, 3, 4, 5, 6}).template input<T>({2, 3}, {1, 2, 3, 4, 5, 6});
  both.expect<T>(0, {2, 3}, {1, 6, 15, 8, 20, 36}).run();
  OpTester ones("Einsum", 12);
  ones.attr("equation", "ab,ab->ab");
  ones.input<T>({1, 3}, {1, 2, 3}).template input<T>({2, 3}, {1, 1, 1, 2, 2, 2});
  ones.expect<T>(0, {2, 3}, {1, 2, 3, 2, 4, 6}).run();
  OpTester diagonal("Einsum", 12);
  diagonal.attr("equation", "aa,b->ab");
  diagonal.input<T>({2, 2}, {1, 9, 9, 2}).template input<T>({2}, {3, 4});
  diagonal.expect<T>(0, {2, 2}, {3, 4, 6, 8}).run();
}

TEST(Einsum, MultipliesWhatBroadcastsInAnyOrder) {
  check_products<float>();
  check_products<double>();
  check_products<int32_t>();
  check_products<uint64_t>();
  check_products<int8_t>();
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
