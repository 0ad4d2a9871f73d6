#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kValues = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

TEST(TopK, GivesTheLargestFirst) {
  OpTester t("TopK", 11);
  t.attr("axis", 1).input<float>({3, 4}, kValues).input<int64_t>({1}, {3});
  t.expect<float>(0, {3, 3}, {3, 2, 1, 7, 6, 5, 11, 10, 9});
  t.expect<int64_t>(1, {3, 3}, {3, 2, 1, 3, 2, 1, 3, 2, 1}).run();
}

TEST(TopK, TakesKAsAnAttributeBeforeOpset10) {
  OpTester t("TopK", 1);
  t.attr("axis", 0).attr("k", 1).input<float>({3, 4}, kValues);
  t.expect<float>(0, {1, 4}, {8, 9, 10, 11}).expect<int64_t>(1, {1, 4}, {2, 2, 2, 2}).run();
}

TEST(TopK, GivesTheSmallestOfAMiddleAxis) {
  OpTester t("TopK", 11);
  t.attr("axis", -2).attr("largest", 0).input<int8_t>({1, 3, 2}, {5, -1, 3, 2, 4, -7});
  t.constant<int64_t>({1}, {2});
  t.expect<int8_t>(0, {1, 2, 2}, {3, -7, 4, -1}).expect<int64_t>(1, {1, 2, 2}, {1, 2, 2, 0});
  t.expect_inferred(0, "tensor(int8)[1,2,2]").run();
}

TEST(TopK, PutsTheLowerIndexFirstAndNanAboveAll) {
  OpTester ties("TopK", 11);
  ties.input<uint8_t>({5}, {1, 3, 3, 0, 3}).input<int64_t>({1}, {2});
  ties.expect<uint8_t>(0, {2}, {3, 3}).expect<int64_t>(1, {2}, {1, 2}).run();
  const float nan = std::nanf("");
  OpTester largest("TopK", 11);
  largest.input<float>({4}, {1, nan, INFINITY, nan}).input<int64_t>({1}, {3});
  largest.expect<float>(0, {3}, {nan, nan, INFINITY}).expect<int64_t>(1, {3}, {1, 3, 2}).run();
  OpTester smallest("TopK", 11);
  smallest.attr("largest", 0).input<float>({3}, {nan, 2, 1}).input<int64_t>({1}, {3});
  smallest.expect<float>(0, {3}, {1, 2, nan}).expect<int64_t>(1, {3}, {2, 1, 0}).run();
}

// Rows and columns of every length class, with many equal elements, beside a stable sort.
template <typename T>
void check_top_k(int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest) {
  std::vector<T> x;
  uint32_t state = 7;
  for (int64_t i = 0; i < outer * n * inner; ++i) {
    state = state * 1664525U + 1013904223U;
    x.push_back(static_cast<T>(static_cast<int64_t>(state >> 20) % (n + 3)) - static_cast<T>(5));
    if (std::is_floating_point_v<T> && state >> 27 == 3) x.back() = static_cast<T>(-0.0);
    if (std::is_floating_point_v<T> && state >> 27 == 4) x.back() = static_cast<T>(std::nanf(""));
  }
  std::vector<T> values(static_cast<size_t>(outer * k * inner));
  std::vector<int64_t> places(values.size());
  for (int64_t column = 0; column < outer * inner; ++column) {
    const int64_t first = column / inner * n * inner + column % inner;
    const auto at = [&](int64_t i) { return x[static_cast<size_t>(first + i * inner)]; };
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const T left = largest ? at(a) : at(b);
      const T right = largest ? at(b) : at(a);
      if (left != left || right != right) return left != left && right == right;
      return left > right;
    });
    for (int64_t i = 0; i < k; ++i) {
      const auto to = static_cast<size_t>((column / inner * k + i) * inner + column % inner);
      places[to] = order[static_cast<size_t>(i)];
      values[to] = at(places[to]);
    }
  }
  OpTester t("TopK", 11);
  t.attr("axis", 1).attr("largest", largest ? 1 : 0);
  t.template input<T>({outer, n, inner}, x).template input<int64_t>({1}, {k});
  t.template expect<T>(0, {outer, k, inner}, values);
  t.template expect<int64_t>(1, {outer, k, inner}, places).run();
}

template <typename T>
void check_top_ks() {
  for (const bool largest : {true, false}) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1},
                               {5, 5},
                               {33, 1},
                               {40, 16},
                               {40, 17},
                               {40, 40},
                               {300, 7},
                               {300, 20},
                               {500, 100},
                               {500, 499}}) {
      check_top_k<T>(3, n, 1, k, largest);
      check_top_k<T>(2, n, 5, k, largest);
      check_top_k<T>(1, n, 35, k, largest);
    }
  }
}

TEST(TopK, AgreesWithASortOfFloats) { check_top_ks<float>(); }
TEST(TopK, AgreesWithASortOfDoubles) { check_top_ks<double>(); }
TEST(TopK, AgreesWithASortOfIntegers) {
  check_top_ks<int8_t>();
  check_top_ks<uint32_t>();
  check_top_ks<int32_t>();
  check_top_ks<int64_t>();
  check_top_ks<uint64_t>();
}

TEST(TopK, OfNoneIsEmpty) {
  OpTester t("TopK", 11);
  t.input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<int64_t>({1}, {0});
  t.expect<float>(0, {2, 0}, {}).expect<int64_t>(1, {2, 0}, {}).run();
}

TEST(TopK, RefusesMoreThanThereAre) {
  OpTester more("TopK", 11);
  more.input<float>({2}, {1, 2}).input<int64_t>({1}, {3}).outputs(2).fails("k is 3");
  OpTester less("TopK", 11);
  less.input<float>({2}, {1, 2}).input<int64_t>({1}, {-1}).outputs(2).fails("k is -1");
  OpTester type("TopK", 11);
  type.input<bool>({2}, {true, false}).input<int64_t>({1}, {1}).outputs(2).fails("bool");
  OpTester scalar("TopK", 11);
  scalar.input<float>({}, {1}).input<int64_t>({1}, {1}).outputs(2).fails("axis -1");
}

}  // namespace
}  // namespace folio
