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
