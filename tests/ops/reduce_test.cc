#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// 1 .. 12 as [3, 2, 2].
std::vector<float> twelve() { return {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; }

TEST(Reduce, SumOverTheMiddleAxis) {
  OpTester t("ReduceSum", 13);
  t.attr("keepdims", 0);
  t.input<float>({3, 2, 2}, twelve());
  t.constant<int64_t>({1}, {1});
  t.expect<float>(0, {3, 2}, {4, 6, 12, 14, 20, 22});
  t.run();
}

TEST(Reduce, MeanOverFirstAndLastAxis) {
  OpTester t("ReduceMean", 11);
  t.attr_ints("axes", {0, -1});
  t.input<float>({3, 2, 2}, twelve());
  t.expect<float>(0, {1, 2, 1}, {5.5, 7.5});
  t.run();
}

// Outputs in several groups, of a few elements and of many each.
TEST(Reduce, SumsAndExtremesOfShortAndLongRows) {
  for (const int64_t n : {2, 7, 8, 40}) {
    std::vector<float> x, sums, least;
    for (int64_t i = 0; i < 6 * n; ++i) x.push_back(static_cast<float>((i * 7) % 23) - 11.0F);
    for (int64_t a : {0, 1, 2}) {  // of [3, 2, n]
      float sum = 0;
      float low = x[static_cast<size_t>(2 * a * n)];
      for (int64_t i = 0; i < 2 * n; ++i) {
        sum += x[static_cast<size_t>(2 * a * n + i)];
        low = std::min(low, x[static_cast<size_t>(2 * a * n + i)]);
      }
      sums.push_back(sum);
      least.push_back(low);
    }
    OpTester t("ReduceSum", 13);
    t.attr("keepdims", 0).input<float>({3, 2, n}, x).input<int64_t>({2}, {1, 2});
    t.expect<float>(0, {3}, sums);
    t.run();
    OpTester low("ReduceMin", 18);
    low.attr("keepdims", 0).input<float>({3, 2, n}, x).input<int64_t>({2}, {1, 2});
    low.expect<float>(0, {3}, least);
    low.run();
    // The middle axis stays: groups are not neighbours in memory.
    std::vector<float> middle(2, 0.0F);
    for (int64_t i = 0; i < 6 * n; ++i)
      middle[static_cast<size_t>(i / n % 2)] += x[static_cast<size_t>(i)];
    OpTester apart("ReduceSum", 13);
    apart.attr("keepdims", 0).input<float>({3, 2, n}, x).input<int64_t>({2}, {0, 2});
    apart.expect<float>(0, {2}, middle);
    apart.run();
  }
}

TEST(Reduce, NoAxesMeansAll) {
  OpTester t("ReduceMax", 13);
  t.input<float>({3, 2, 2}, twelve());
  t.expect<float>(0, {1, 1, 1}, {12});
  t.run();
}

TEST(Reduce, NoAxesWithNoopKeepsTheInput) {
  OpTester t("ReduceSum", 13);
  t.attr("noop_with_empty_axes", 1);
  t.input<float>({2, 2}, {1, 2, 3, 4});
  t.expect<float>(0, {2, 2}, {1, 2, 3, 4});
  t.run();
}

TEST(Reduce, EmptySetGivesNeutralElements) {
  for (const auto& [type, value] : {std::pair<const char*, float>{"ReduceSum", 0},
                                    {"ReduceProd", 1},
                                    {"ReduceMax", -kInf},
                                    {"ReduceMin", kInf},
                                    {"ReduceLogSumExp", -kInf}}) {
    OpTester t(type, 20);
    t.input<float>({2, 0, 2}, {});
    t.constant<int64_t>({1}, {1});
    t.expect<float>(0, {2, 1, 2}, {value, value, value, value});
    t.run();
  }
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  OpTester t("ReduceLogSumExp", 18);
  t.attr("keepdims", 0);
  t.input<float>({2, 2}, {1000, 1000, -1000, -1000});
  t.constant<int64_t>({1}, {1});
  t.expect<float>(0, {2}, {1000.6931f, -999.3069f}, 1e-6);
  t.run();
}

TEST(Reduce, L2OfColumns) {
  OpTester t("ReduceL2", 18);
  t.attr("keepdims", 0);
  t.input<float>({2, 2}, {3, 1, 4, 1});
  t.constant<int64_t>({1}, {0});
  t.expect<float>(0, {2}, {5, std::sqrt(2.0f)}, 1e-6);
  t.run();
}

TEST(Reduce, IntegerSumWraps) {
  OpTester t("ReduceSum", 13);
  t.attr("keepdims", 0);
  t.input<int32_t>({2}, {std::numeric_limits<int32_t>::max(), 1});
  t.constant<int64_t>({1}, {0});
  t.expect<int32_t>(0, {}, {std::numeric_limits<int32_t>::min()});
  t.run();
}

TEST(Reduce, AxisOutOfRangeIsNamed) {
  OpTester t("ReduceSum", 13);
  t.input<float>({2}, {1, 2});
  t.constant<int64_t>({1}, {3});
  t.outputs(1).fails("axis 3 is outside");
}

TEST(Clip, BoundsAreInputsAndNanStays) {
  OpTester t("Clip", 13);
  t.input<float>({4}, {-2, 0, 2, std::nanf("")});
  t.input<float>({}, {-1});
  t.input<float>({}, {1});
  t.expect<float>(0, {4}, {-1, 0, 1, std::nanf("")});
  t.run();
}

TEST(Clip, BoundsAreAttributesBeforeOpset11) {
  OpTester t("Clip", 6);
  t.attr("max", 1.0f);
  t.input<float>({2}, {-5, 5});
  t.expect<float>(0, {2}, {-5, 1});
  t.run();
}

TEST(Clip, IntegersTakeOnlyAnUpperBound) {
  OpTester t("Clip", 12);
  t.input<int8_t>({3}, {-128, 0, 127});
  t.input_absent();
  t.input<int8_t>({}, {5});
  t.expect<int8_t>(0, {3}, {-128, 0, 5});
  t.run();
}

}  // namespace
}  // namespace folio
