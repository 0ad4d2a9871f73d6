#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

std::vector<double> cumulated(const char* type, int exclusive, int reverse) {
  OpTester t(type, 28);
  t.attr("exclusive", exclusive).attr("reverse", reverse);
  t.input<double>({4}, {1, 2, 3, 4}).input<int32_t>({}, {0}).outputs(1).run();
  return t.output_values<double>(0);
}

TEST(CumSum, SumsWhatComesBefore) {
  EXPECT_EQ(cumulated("CumSum", 0, 0), (std::vector<double>{1, 3, 6, 10}));
  EXPECT_EQ(cumulated("CumSum", 1, 0), (std::vector<double>{0, 1, 3, 6}));
  EXPECT_EQ(cumulated("CumSum", 0, 1), (std::vector<double>{10, 9, 7, 4}));
  EXPECT_EQ(cumulated("CumSum", 1, 1), (std::vector<double>{9, 7, 4, 0}));
}

TEST(CumProd, MultipliesWhatComesBefore) {
  EXPECT_EQ(cumulated("CumProd", 0, 0), (std::vector<double>{1, 2, 6, 24}));
  EXPECT_EQ(cumulated("CumProd", 1, 1), (std::vector<double>{24, 12, 4, 1}));
}

TEST(CumSum, GoesAlongAnyAxis) {
  OpTester rows("CumSum", 14);
  rows.input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<int64_t>({1}, {-2});
  rows.expect<float>(0, {2, 3}, {1, 2, 3, 5, 7, 9}).run();
  OpTester wraps("CumSum", 14);
  wraps.input<int8_t>({2}, {127, 1}).input<int64_t>({}, {0}).expect<int8_t>(0, {2}, {127, -128});
  wraps.run();
  OpTester empty("CumSum", 11);
  empty.input<float>({0, 2}, {}).input<int64_t>({}, {0}).expect<float>(0, {0, 2}, {}).run();
}

// Columns side by side.
template <typename T>
void check_columns(const char* type, int exclusive, int reverse, int64_t columns) {
  constexpr int64_t kOuter = 2;
  constexpr int64_t kRows = 5;
  std::vector<T> x, want(static_cast<size_t>(kOuter * kRows * columns));
  for (int64_t i = 0; i < kOuter * kRows * columns; ++i) x.push_back(static_cast<T>(i % 5 + 1));
  const bool is_product = type[3] == 'P';
  for (int64_t column = 0; column < kOuter * columns; ++column) {
    T sum = is_product ? T{1} : T{0};
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t row = reverse ? kRows - 1 - i : i;
      const auto at =
          static_cast<size_t>((column / columns * kRows + row) * columns + column % columns);
      if (exclusive) want[at] = sum;
      sum = static_cast<T>(is_product ? sum * x[at] : sum + x[at]);
      if (!exclusive) want[at] = sum;
    }
  }
  OpTester t(type, 28);
  t.attr("exclusive", exclusive).attr("reverse", reverse);
  t.template input<T>({kOuter, kRows, columns}, x).template input<int64_t>({}, {1});
  t.template expect<T>(0, {kOuter, kRows, columns}, want).run();
}

TEST(CumSum, CarriesColumnsSideBySide) {
  for (const char* type : {"CumSum", "CumProd"}) {
    for (const int exclusive : {0, 1}) {
      for (const int reverse : {0, 1}) {
        // Few of them, whose sums are carried otherwise, and more than are carried at a time.
        for (const int64_t columns : {1, 3, 4, 23, 56, 128, 129, 1100}) {
          check_columns<float>(type, exclusive, reverse, columns);
          check_columns<int32_t>(type, exclusive, reverse, columns);
        }
      }
    }
  }
}

TEST(CumSum, RefusesAxesOutside) {
  OpTester outside("CumSum", 14);
  outside.input<float>({2}, {1, 2}).input<int64_t>({}, {1}).outputs(1).fails("axis 1 is outside");
  OpTester two("CumSum", 14);
  two.input<float>({2}, {1, 2}).input<int64_t>({2}, {0, 0}).outputs(1).fails("2 elements");
  OpTester type("CumSum", 14);
  type.input<bool>({1}, {true}).input<int64_t>({}, {0}).outputs(1).fails("bool");
}

}  // namespace
}  // namespace folio
