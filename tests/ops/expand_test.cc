#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Expand, BroadcastsBothWays) {
  OpTester t("Expand", 13);
  t.input<float>({3, 1}, {1, 2, 3}).input<int64_t>({3}, {2, 1, 2});
  t.expect<float>(0, {2, 3, 2}, {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3});
  t.run();
  OpTester keeps("Expand", 8);
  keeps.input<float>({3, 1}, {1, 2, 3}).constant<int64_t>({1}, {1});
  keeps.expect<float>(0, {3, 1}, {1, 2, 3}).expect_inferred(0, "tensor(float)[3,1]");
  keeps.run();
}

TEST(Expand, TakesScalarsStringsAndZero) {
  OpTester scalar("Expand", 13);
  scalar.input<std::string>({}, {"a"}).input<int64_t>({1}, {2});
  scalar.expect<std::string>(0, {2}, {"a", "a"});
  scalar.run();
  OpTester zero("Expand", 13);
  zero.input<float>({1}, {1}).input<int64_t>({1}, {0}).expect<float>(0, {0}, {});
  zero.run();
}

TEST(Expand, RefusesDimsThatDoNotBroadcast) {
  OpTester t("Expand", 13);
  t.input<float>({2}, {1, 2}).input<int64_t>({1}, {3}).fails("do not broadcast");
  OpTester huge("Expand", 13);
  huge.input<float>({1}, {1}).input<int64_t>({2}, {INT64_MAX, 4}).fails("overflow");
  OpTester negative("Expand", 13);
  negative.input<float>({1}, {1}).input<int64_t>({1}, {-1}).fails("negative");
}

TEST(Tile, RepeatsEveryAxis) {
  OpTester t("Tile", 13);
  t.input<float>({2, 2}, {0, 1, 2, 3}).input<int64_t>({2}, {2, 2});
  t.expect<float>(0, {4, 4}, {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3});
  t.run();
  OpTester none("Tile", 6);
  none.input<float>({2}, {0, 1}).input<int64_t>({1}, {0}).expect<float>(0, {0}, {});
  none.run();
  OpTester old("Tile", 1);
  old.input<float>({1, 2}, {0, 1}).input<int64_t>({1}, {2}).input<int64_t>({1}, {1});
  old.expect<float>(0, {1, 4}, {0, 1, 0, 1});
  old.run();
}

// Blocks that are copied once more from the output, for few and many of them, and some that are
// not.
template <typename T>
void check_tile(const Shape& dims, const std::vector<int64_t>& repeats, int threads) {
  Shape out = dims;
  for (int i = 0; i < dims.rank(); ++i) out[i] *= repeats[static_cast<size_t>(i)];
  std::vector<T> x;
  for (int64_t i = 0; i < dims.count(); ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      x.push_back(std::to_string(i));
    } else {
      x.push_back(static_cast<T>(i % 251));
    }
  }
  std::vector<T> want;
  for (int64_t o = 0; o < out.count(); ++o) {
    int64_t rest = o;
    int64_t at = 0;
    int64_t stride = 1;
    for (int i = dims.rank(); i-- > 0; stride *= dims[i], rest /= out[i]) {
      at += rest % out[i] % dims[i] * stride;
    }
    want.push_back(x[static_cast<size_t>(at)]);
  }
  OpTester t("Tile", 13);
  t.threads(threads);
  t.input(dims, x);
  t.input(Shape{dims.rank()}, repeats);
  t.expect(0, out, want);
  t.run();
}

TEST(Tile, RepeatsBlocksOfAnySize) {
  for (const int threads : {1, 2, 5}) {
    check_tile<float>({4, 9, 40}, {1, 2, 3}, threads);
    check_tile<float>({2, 3, 300}, {3, 2, 2}, threads);
    check_tile<float>({7, 9, 29}, {1, 1, 3}, threads);
    check_tile<uint8_t>({3, 40, 30}, {2, 3, 1}, threads);
    check_tile<double>({3, 2, 10, 70}, {1, 4, 1, 1}, threads);
    check_tile<double>({2, 200, 100}, {1, 2, 1}, threads);  // more than the cache has
    check_tile<std::string>({4, 5, 20}, {1, 2, 2}, threads);
  }
}

TEST(Tile, RefusesBadRepeats) {
  OpTester length("Tile", 13);
  length.input<float>({2}, {0, 1}).input<int64_t>({2}, {1, 1}).fails("2 entries, expected 1");
  OpTester negative("Tile", 13);
  negative.input<float>({2}, {0, 1}).input<int64_t>({1}, {-1}).fails("-1 times");
  OpTester huge("Tile", 13);
  huge.input<float>({2}, {0, 1}).input<int64_t>({1}, {INT64_MAX}).fails("cannot be repeated");
}

TEST(Where, ChoosesWithBroadcasting) {
  OpTester t("Where", 9);
  t.input<bool>({2, 2}, {true, false, true, true}).input<float>({2, 2}, {1, 2, 3, 4});
  t.input<float>({2, 2}, {9, 8, 7, 6}).expect<float>(0, {2, 2}, {1, 8, 3, 4});
  t.expect_inferred(0, "tensor(float)[2,2]");
  t.run();
  OpTester wide("Where", 16);
  wide.input<bool>({2, 1}, {true, false}).input<int64_t>({}, {5}).input<int64_t>({3}, {1, 2, 3});
  wide.expect<int64_t>(0, {2, 3}, {5, 5, 5, 1, 2, 3});
  wide.run();
  OpTester strings("Where", 9);
  strings.input<bool>({}, {false}).input<std::string>({}, {"x"}).input<std::string>({}, {"y"});
  strings.expect<std::string>(0, {}, {"y"});
  strings.run();
}

// Rows longer than a block, of each way to step; any byte but 0 holds.
TEST(Where, ChoosesInRowsOfAnyLength) {
  for (const int64_t n : {31, 32, 77}) {
    std::vector<uint8_t> condition;
    std::vector<int64_t> x, y;
    for (int64_t i = 0; i < n; ++i) {
      condition.push_back(static_cast<uint8_t>(i * i % 3));
      x.push_back(i);
      y.push_back(-i);
    }
    for (const bool whole_x : {false, true}) {
      for (const bool whole_y : {false, true}) {
        std::vector<int64_t> want;
        for (size_t i = 0; i < x.size(); ++i) {
          want.push_back(condition[i] != 0 ? (whole_x ? x[i] : 7) : (whole_y ? y[i] : 9));
        }
        OpTester t("Where", 16);
        t.input_value(make_raw_tensor(DType::kBool, {n}, condition));
        whole_x ? t.input<int64_t>({n}, x) : t.input<int64_t>({}, {7});
        whole_y ? t.input<int64_t>({n}, y) : t.input<int64_t>({}, {9});
        t.expect<int64_t>(0, {n}, want).run();
      }
    }
  }
  for (const bool holds : {false, true}) {
    OpTester t("Where", 16);
    t.input<bool>({1}, {holds}).input<float>({2}, {1, 2}).input<float>({1}, {5});
    t.expect<float>(0, {2}, holds ? std::vector<float>{1, 2} : std::vector<float>{5, 5}).run();
  }
}

TEST(Where, RefusesMixedTypes) {
  OpTester t("Where", 9);
  t.input<bool>({}, {true}).input<float>({}, {1}).input<int64_t>({}, {1}).fails("is int64");
  OpTester condition("Where", 9);
  condition.input<float>({}, {1}).input<float>({}, {1}).input<float>({}, {1}).fails(
      "expected bool");
}

// In opset 1 they have the type of what is repeated.
TEST(Tile, OfOpset1TakesNumbersOfXsType) {
  OpTester t("Tile", 1);
  t.input<float>({1, 2}, {3, 4}).input<float>({}, {2}).input<float>({}, {1});
  t.expect<float>(0, {1, 4}, {3, 4, 3, 4}).run();
  for (const float times : {1.5F, std::nanf(""), 1e30F}) {
    OpTester odd("Tile", 1);
    odd.input<float>({1, 2}, {3, 4}).input<float>({}, {times}).input<float>({}, {1});
    odd.outputs(1).fails("expected a whole number");
  }
}

}  // namespace
}  // namespace folio
