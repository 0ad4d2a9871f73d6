#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(ArgMax, FollowsTheSpecExample) {
  OpTester t("ArgMax", 13);
  t.attr("axis", 1);
  t.input<float>({2, 2}, {2, 1, 3, 10});
  t.expect<int64_t>(0, {2, 1}, {0, 1});
  t.run();
}

TEST(ArgMax, MaySelectTheLastIndex) {
  for (const int last : {0, 1}) {
    OpTester t("ArgMax", 13);
    t.attr("axis", 0).attr("keepdims", 0).attr("select_last_index", last);
    t.input<int32_t>({3}, {5, 1, 5});
    t.expect<int64_t>(0, {}, {last ? 2 : 0});
    t.run();
  }
}

TEST(ArgMax, NoOtherNumberThanOneKeepsTheDim) {
  OpTester t("ArgMax", 13);
  t.attr("axis", 1).attr("keepdims", 2);
  t.input<float>({2, 2}, {2, 1, 3, 10});
  t.expect<int64_t>(0, {2}, {0, 1});
  t.run();
}

TEST(ArgMin, TakesTheSmallest) {
  OpTester t("ArgMin", 13);
  t.attr("axis", -1).attr("keepdims", 0);
  t.input<double>({2, 3}, {3, 1, 2, -1, 0, -2});
  t.expect<int64_t>(0, {2}, {1, 2});
  t.run();
}

// Rows and columns of all lengths, with equal elements and NaN, beside the definition.
template <typename T>
void check_arg(bool is_max, bool last, int64_t outer, int64_t n, int64_t inner, bool has_nan) {
  std::vector<T> x;
  for (int64_t i = 0; i < outer * n * inner; ++i) {
    x.push_back(static_cast<T>((i * 7919 + i / 13) % (n / 2 + 2)));
    if (has_nan && i % 29 == 3) x.back() = std::numeric_limits<T>::quiet_NaN();
  }
  std::vector<int64_t> want;
  for (int64_t column = 0; column < outer * inner; ++column) {
    const auto at = [&](int64_t i) {
      return x[static_cast<size_t>((column / inner * n + i) * inner + column % inner)];
    };
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i) {
      const bool is_better = is_max ? at(i) > at(best) : at(i) < at(best);
      if (is_better || (last && at(i) == at(best))) best = i;
    }
    want.push_back(best);
  }
  OpTester t(is_max ? "ArgMax" : "ArgMin", 13);
  t.attr("axis", 1).attr("select_last_index", last ? 1 : 0);
  t.input<T>({outer, n, inner}, x);
  t.expect<int64_t>(0, {outer, 1, inner}, want);
  t.run();
}

template <typename T>
void check_args() {
  for (const bool is_max : {true, false}) {
    for (const bool last : {true, false}) {
      for (const bool has_nan : {true, false}) {
        if (has_nan && !std::numeric_limits<T>::has_quiet_NaN) continue;
        for (const int64_t n : {1, 2, 5, 15, 16, 17, 100}) {
          check_arg<T>(is_max, last, 5, n, 1, has_nan);
          for (const int64_t inner : {2, 4, 7, 21}) {
            check_arg<T>(is_max, last, 2, n, inner, has_nan);
          }
          check_arg<T>(is_max, last, 1, n, 530, has_nan);
        }
        check_arg<T>(is_max, last, 700, 5, 1, has_nan);
        check_arg<T>(is_max, last, 2, 5000, 1, has_nan);
      }
    }
  }
}
TEST(ArgMax, OfFloatsFollowsTheDefinition) { check_args<float>(); }
TEST(ArgMax, OfDoublesFollowsTheDefinition) { check_args<double>(); }
TEST(ArgMax, OfInt32FollowsTheDefinition) { check_args<int32_t>(); }
TEST(ArgMax, OfInt64FollowsTheDefinition) { check_args<int64_t>(); }

TEST(ArgMax, EmptyAxesAreAnError) {
  OpTester t("ArgMax", 13);
  t.input<float>({0, 2}, {});
  t.outputs(1).fails("is empty");
}

}  // namespace
}  // namespace folio
