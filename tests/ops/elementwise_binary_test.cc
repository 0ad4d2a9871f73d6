#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(ElementwiseBinary, AddBroadcastsBothWays) {
  OpTester t("Add", 14);
  t.input<float>({2, 1}, {10, 20});
  t.input<float>({1, 3}, {1, 2, 3});
  t.expect<float>(0, {2, 3}, {11, 12, 13, 21, 22, 23});
  t.run();
}

TEST(ElementwiseBinary, MulBroadcastsChannelsInTheMiddle) {
  OpTester t("Mul", 14);
  t.input<float>({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.input<float>({2, 1, 1}, {2, 10});
  t.expect<float>(0, {1, 2, 2, 2}, {2, 4, 6, 8, 50, 60, 70, 80});
  t.run();
}

TEST(ElementwiseBinary, SubOfIntegersWraps) {
  OpTester t("Sub", 14);
  t.input<int32_t>({2}, {std::numeric_limits<int32_t>::min(), 5});
  t.input<int32_t>({}, {1});
  t.expect<int32_t>(0, {2}, {std::numeric_limits<int32_t>::max(), 4});
  t.run();
}

TEST(ElementwiseBinary, IntegerDivTruncatesAndLowestByMinusOneWraps) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  OpTester t("Div", 14);
  t.input<int64_t>({3}, {-7, 7, kLowest});
  t.input<int64_t>({3}, {2, -2, -1});
  t.expect<int64_t>(0, {3}, {-3, -3, kLowest});
  t.run();
}

// Many quotients of one divisor are products: exact next to every multiple.
TEST(ElementwiseBinary, DivOfInt32ByOneNumberIsExact) {
  constexpr int64_t kLowest = INT32_MIN;
  std::vector<int64_t> divisors = {kLowest, kLowest + 1, INT32_MAX, 46340, 46341, 715827883};
  for (int64_t i = 1; i <= 100; ++i) divisors.push_back(i);
  for (int bit = 7; bit < 31; ++bit) {
    for (int64_t step = -1; step <= 1; ++step) divisors.push_back((int64_t{1} << bit) + step);
  }
  const size_t half = divisors.size();
  for (size_t i = 2; i < half; ++i) divisors.push_back(-divisors[i]);
  for (const int64_t divisor : divisors) {
    std::vector<int32_t> x, y;
    for (const int64_t times :
         {0, 1, 2, 3, 5, 1000, 46341, 65537, 16777217, 715827882, INT32_MAX}) {
      const int64_t most = std::min<int64_t>(times, INT32_MAX / std::abs(divisor));
      for (const int64_t near : {most * divisor, -most * divisor, kLowest, int64_t{INT32_MAX}}) {
        for (int64_t step = -1; step <= 1; ++step) {
          const int64_t value = std::clamp<int64_t>(near + step, kLowest, INT32_MAX);
          x.push_back(static_cast<int32_t>(value));
          y.push_back(static_cast<int32_t>(static_cast<uint32_t>(value / divisor)));
        }
      }
    }
    const auto n = static_cast<int64_t>(x.size());
    SCOPED_TRACE(divisor);
    OpTester t("Div", 14);
    t.input<int32_t>({n}, x).input<int32_t>({1}, {static_cast<int32_t>(divisor)});
    t.expect<int32_t>(0, {n}, y).run();
  }
}

TEST(ElementwiseBinary, IntegerDivisionByZeroIsAnError) {
  OpTester t("Div", 14);
  t.input<int32_t>({2}, {1, 2});
  t.input<int32_t>({2}, {1, 0});
  t.outputs(1).fails("division by zero");
}

TEST(ElementwiseBinary, TheFirstInputKeepsItsDimsBeforeOpset7) {
  OpTester t("Mul", 6);
  t.attr("broadcast", 1);
  t.input<float>({1, 1}, {1}).input<float>({3, 1}, {1, 2, 3});
  t.outputs(1).fails("does not broadcast to input 0 [1,1]");
}

TEST(ElementwiseBinary, LegacyAxisPlacesTheSecondInput) {
  OpTester t("Add", 6);
  t.attr("broadcast", 1).attr("axis", 0);
  t.input<float>({2, 2}, {1, 2, 3, 4});
  t.input<float>({2}, {10, 20});
  t.expect<float>(0, {2, 2}, {11, 12, 23, 24});
  t.run();
}

TEST(ElementwiseBinary, Float16AddsInFloat) {
  OpTester t("Add", 14);
  t.input_as(DType::kFloat16, {2}, {0.5, 65504});
  t.input_as(DType::kFloat16, {}, {0.25});
  t.expect_as(0, DType::kFloat16, {2}, {0.75, 65504});
  t.run();
}

TEST(ElementwiseBinary, EmptyInputGivesEmptyOutput) {
  OpTester t("Mul", 14);
  t.input<float>({0, 3}, {});
  t.input<float>({3}, {1, 2, 3});
  t.expect<float>(0, {0, 3}, {});
  t.run();
}

TEST(ElementwiseBinary, ShapesThatDoNotBroadcastAreNamed) {
  OpTester t("Add", 14);
  t.input<float>({2}, {1, 2});
  t.input<float>({3}, {1, 2, 3});
  t.outputs(1).fails("do not broadcast");
}

TEST(ElementwiseBinary, MaxOfThreeBroadcastsTheFirst) {
  OpTester t("Max", 13);
  t.input<float>({}, {2});
  t.input<float>({2, 1}, {1, 5});
  t.input<float>({1, 2}, {3, 0});
  t.expect<float>(0, {2, 2}, {3, 2, 5, 5});
  t.run();
}

TEST(ElementwiseBinary, MinIsNanWhenAnyInputIs) {
  OpTester t("Min", 13);
  t.input<double>({3}, {kNaN, 1, 2});
  t.input<double>({3}, {0, kNaN, 3});
  t.expect<double>(0, {3}, {kNaN, kNaN, 2});
  t.run();
}

TEST(ElementwiseBinary, MeanDividesByTheInputCount) {
  OpTester t("Mean", 13);
  t.input<float>({3}, {3, 0, 2});
  t.input<float>({3}, {1, 3, 4});
  t.input<float>({3}, {2, 6, 6});
  t.expect<float>(0, {3}, {2, 3, 4});
  t.run();
}

TEST(Pow, SquaresAndMixedTypes) {
  OpTester t("Pow", 15);
  t.input<float>({3}, {1, -2, 3});
  t.input<int64_t>({}, {2});
  t.expect<float>(0, {3}, {1, 4, 9});
  t.run();
}

// One exponent of 2 is one product: of doubles rounded as pow is, of integers wrapped.
TEST(Pow, SquaresOfDoublesAndIntegers) {
  OpTester doubles("Pow", 15);
  doubles.input<double>({4}, {-1.5, 1e200, 0.1, -0.0}).input<int32_t>({1, 1}, {2});
  doubles.expect<double>(0, {1, 4}, {2.25, INFINITY, 0.1 * 0.1, 0}).run();
  OpTester integers("Pow", 15);
  integers.input<int32_t>({3}, {-3, 65536, 46341}).input<int64_t>({}, {2});
  integers.expect<int32_t>(0, {3}, {9, 0, -2147479015}).run();
  OpTester floats("Pow", 15);  // a floating point power of integers does not wrap
  floats.input<int32_t>({2}, {-3, 65536}).input<float>({}, {2});
  floats.expect<int32_t>(0, {2}, {9, 2147483647}).run();
}

TEST(Pow, IntegerBaseWithNegativeExponentTruncates) {
  OpTester t("Pow", 15);
  t.input<int32_t>({4}, {2, 1, -1, 3});
  t.input<int32_t>({4}, {-1, -5, -3, 4});
  t.expect<int32_t>(0, {4}, {0, 1, -1, 81});
  t.run();
}

TEST(Comparison, EqualTakesStrings) {
  OpTester t("Equal", 19);
  t.input<std::string>({2}, {"a", "b"});
  t.input<std::string>({1}, {"b"});
  t.expect<bool>(0, {2}, {false, true});
  t.run();
}

// Short rows of other types are copied side by side.
TEST(Comparison, StringsBroadcastAsNumbersDo) {
  for (const int64_t rows : {3, 200}) {
    for (const bool is_column : {false, true}) {
      std::vector<std::string> a;
      for (int64_t i = 0; i < rows * 2; ++i) a.push_back(cat("a string of letters ", i % 3));
      const std::vector<std::string> row{"a string of letters 0", "a string of letters 1"};
      std::vector<std::string> column;
      for (int64_t i = 0; i < rows; ++i) column.push_back(cat("a string of letters ", i % 2));
      std::vector<bool> expected;
      for (size_t i = 0; i < a.size(); ++i) {
        expected.push_back(a[i] == (is_column ? column[i / 2] : row[i % 2]));
      }
      OpTester t("Equal", 19);
      t.input<std::string>({rows, 2}, a);
      if (is_column) t.input<std::string>({rows, 1}, column);
      if (!is_column) t.input<std::string>({2}, row);
      t.expect<bool>(0, {rows, 2}, expected);
      t.run();
    }
  }
}

TEST(Comparison, NanIsNeitherLessNorGreaterOrEqual) {
  for (const char* type : {"Less", "GreaterOrEqual"}) {
    OpTester t(type, 16);
    t.input<float>({1}, {kNaN});
    t.input<float>({1}, {1});
    t.expect<bool>(0, {1}, {false});
    t.run();
  }
}

TEST(Logical, XorBroadcasts) {
  OpTester t("Xor", 7);
  t.input<bool>({2, 1}, {true, false});
  t.input<bool>({2}, {true, false});
  t.expect<bool>(0, {2, 2}, {false, true, true, false});
  t.run();
}

TEST(Mod, TakesTheSignOfTheDivisorOrOfTheDividend) {
  for (const int fmod : {0, 1}) {
    OpTester t("Mod", 13);
    t.attr("fmod", fmod);
    t.input<int32_t>({4}, {-4, 7, 5, 4});
    t.input<int32_t>({4}, {3, -3, 8, 2});
    t.expect<int32_t>(0, {4},
                      fmod ? std::vector<int32_t>{-1, 1, 5, 0} : std::vector<int32_t>{2, -2, 5, 0});
    t.run();
  }
}

TEST(Mod, OfFloatsHasTheBitsOfFmod) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  const float edges[] = {
      0.0F,    1.0F,    kInf,      kLeast,      3 * kLeast, 0x1p-126F, 0x1.fffffep127F,
      0x1p24F, 0x1p26F, 0x1.8p25F, 0x1p26F - 4, 3.0F,       1.0F / 3,  0x1.fffffep-1F};
  std::vector<float> a;
  std::vector<float> b;
  const auto add = [&](float x, float y) {
    for (const float sign : {1.0F, -1.0F}) {
      a.insert(a.end(), {sign * x, sign * x});
      b.insert(b.end(), {y, -y});
    }
  };
  for (const float x : edges) {
    for (const float y : edges) add(x, y);
    add(x, kNaN);
    add(kNaN, x);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto number = [&] {
      return std::ldexp(static_cast<float>(random() % (1U << 24)), static_cast<int>(random() % 30));
    };
    const float y = number();
    // Anything, or next to a multiple.
    const float near = y * static_cast<float>(random() % (1U << 20));
    add(random() % 2 == 0 ? number() : std::nextafter(near, random() % 2 == 0 ? kInf : 0), y);
  }
  const auto count = static_cast<int64_t>(a.size());
  OpTester t("Mod", 13);
  t.attr("fmod", 1).input<float>({count}, a).input<float>({count}, b).outputs(1);
  ASSERT_EQ(t.survives(), 4);
  const std::vector<float> got = t.output_values<float>(0);
  for (size_t i = 0; i < a.size(); ++i) {
    const float expected = std::fmod(a[i], b[i]);
    if (std::isnan(expected) && std::isnan(got[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected))
        << a[i] << " mod " << b[i];
  }
}

TEST(BitShift, ByTheWidthGivesZero) {
  OpTester t("BitShift", 11);
  t.attr("direction", "RIGHT");
  t.input<uint8_t>({3}, {16, 255, 255});
  t.input<uint8_t>({3}, {2, 8, 200});
  t.expect<uint8_t>(0, {3}, {4, 0, 0});
  t.run();
}

TEST(PRelu, SlopeIsPerChannelBeforeOpset7) {
  OpTester t("PRelu", 6);
  t.input<float>({1, 2, 2}, {-1, 1, -1, 1});
  t.input<float>({2}, {2, 3});
  t.expect<float>(0, {1, 2, 2}, {-2, 1, -3, 1});
  t.run();
}

// A slope for each element of a row, and one for all; rows that end within a vector.
TEST(PRelu, RowsOfAnyLength) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const int64_t n : {1, 3, 4, 5, 31}) {
    std::vector<float> x, slopes, by_each, by_one;
    for (int64_t i = 0; i < 2 * n; ++i) {
      x.push_back(i % 5 == 4 ? -inf : static_cast<float>(i * 7 % 11) - 5);
      if (i < n) slopes.push_back(static_cast<float>(i % 3) + 0.5F);
      const auto c = static_cast<size_t>(i % n);
      by_each.push_back(x.back() < 0 ? slopes[c] * x.back() : x.back());
      by_one.push_back(x.back() < 0 ? 0.25F * x.back() : x.back());
    }
    OpTester each("PRelu", 16);
    each.input<float>({2, n}, x);
    each.input<float>({n}, slopes);
    each.expect<float>(0, {2, n}, by_each);
    each.run();
    OpTester one("PRelu", 16);
    one.input<float>({2, n}, x);
    one.input<float>({1}, {0.25F});
    one.expect<float>(0, {2, n}, by_one);
    one.run();
    OpTester leaky("LeakyRelu", 16);
    leaky.attr("alpha", 0.25F);
    leaky.input<float>({2, n}, x);
    leaky.expect<float>(0, {2, n}, by_one);
    leaky.run();
  }
}

// More elements than one block takes, one operand repeated and neither, of 1 and of 4 bytes.
TEST(Comparison, RowsOfAnyLength) {
  for (const int64_t n : {31, 32, 33, 100}) {
    std::vector<int32_t> a, b;
    std::vector<uint8_t> small, equal, less, at_least, small_less;
    for (int64_t i = 0; i < n; ++i) {
      a.push_back(static_cast<int32_t>(i * 7 % 11) - 5);
      b.push_back(static_cast<int32_t>(i * 5 % 11) - 5);
      small.push_back(static_cast<uint8_t>(i * 50));
      equal.push_back(a.back() == b.back());
      less.push_back(a.back() < 2);
      at_least.push_back(2 >= b.back());
      small_less.push_back(small.back() < 200);
    }
    const auto expect = [n](const char* type, auto first, auto second,
                            const std::vector<uint8_t>& y) {
      using T = typename decltype(first)::value_type;
      OpTester t(type, 16);
      t.input<T>({static_cast<int64_t>(first.size())}, first);
      t.input<T>({static_cast<int64_t>(second.size())}, second);
      t.expect_value(0, make_raw_tensor(DType::kBool, {n}, y));
      t.run();
    };
    expect("Equal", a, b, equal);
    expect("Less", a, std::vector<int32_t>{2}, less);
    expect("GreaterOrEqual", std::vector<int32_t>{2}, b, at_least);
    expect("Less", small, std::vector<uint8_t>{200}, small_less);
  }
}

// Numbers that differ in their low or in their high halves alone, next to the limits, and no
// number.
template <typename T>
std::vector<T> numbers_to_compare() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all = {T{0}, T{1}, T{2}, Limits::max(), Limits::lowest(), T{7}};
  if (std::is_signed_v<T>) all.push_back(static_cast<T>(-1));
  if (sizeof(T) == 8 && std::is_integral_v<T>) {
    for (const uint64_t bits : {uint64_t{1} << 32, uint64_t{1} << 31, uint64_t{0xFFFFFFFF},
                                (uint64_t{1} << 32) + 1, ~uint64_t{0} << 32, ~uint64_t{0} << 31}) {
      all.push_back(static_cast<T>(bits));
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    all.insert(all.end(), {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T{-0.0}});
  }
  return all;
}

template <typename T>
void expect_relations(const std::vector<T>& a, const std::vector<T>& b) {
  const size_t n = std::max(a.size(), b.size());
  const std::pair<const char*, bool (*)(T, T)> relations[] = {
      {"Equal", [](T x, T y) { return x == y; }},
      {"Less", [](T x, T y) { return x < y; }},
      {"Greater", [](T x, T y) { return x > y; }},
      {"LessOrEqual", [](T x, T y) { return x <= y; }},
      {"GreaterOrEqual", [](T x, T y) { return x >= y; }}};
  for (const auto& [type, relation] : relations) {
    std::vector<bool> want;
    for (size_t i = 0; i < n; ++i) want.push_back(relation(a[i % a.size()], b[i % b.size()]));
    OpTester t(type, 16);
    t.input<T>({static_cast<int64_t>(a.size())}, a)
        .template input<T>({static_cast<int64_t>(b.size())}, b);
    t.expect<bool>(0, {static_cast<int64_t>(n)}, want);
    t.run();
  }
}

template <typename T>
void expect_relations_of_rows() {
  const std::vector<T> numbers = numbers_to_compare<T>();
  for (const size_t n : {1, 15, 16, 17, 31, 32, 33, 200}) {
    std::vector<T> a, b;
    for (size_t i = 0; i < n; ++i) {
      a.push_back(numbers[i % numbers.size()]);
      b.push_back(numbers[(i / numbers.size() + i) % numbers.size()]);
    }
    expect_relations<T>(a, b);
    for (const T one : numbers) {
      expect_relations<T>(a, {one});
      expect_relations<T>({one}, b);
    }
  }
}

TEST(Comparison, EveryRelationOfEveryPlaceInARow) {
  expect_relations_of_rows<float>();
  expect_relations_of_rows<double>();
  expect_relations_of_rows<int32_t>();
  expect_relations_of_rows<int64_t>();
  expect_relations_of_rows<uint64_t>();
  expect_relations_of_rows<int16_t>();
}

// Products wrap, in vectors and behind them, and whatever the halves are.
template <typename T>
void expect_products_and_bounds() {
  const std::vector<T> numbers = numbers_to_compare<T>();
  for (const size_t n : {1, 3, 4, 7, 8, 9, 50}) {
    std::vector<T> a, b, product, most, least;
    for (size_t i = 0; i < n; ++i) {
      a.push_back(static_cast<T>(numbers[i % numbers.size()] + static_cast<T>(i)));
      b.push_back(numbers[i * 5 % numbers.size()]);
      product.push_back(
          static_cast<T>(static_cast<uint64_t>(a.back()) * static_cast<uint64_t>(b.back())));
      most.push_back(std::max(a.back(), b.back()));
      least.push_back(std::min(a.back(), b.back()));
    }
    const auto size = static_cast<int64_t>(n);
    for (const auto& [type, want] : {std::pair{"Mul", product}, {"Max", most}, {"Min", least}}) {
      OpTester t(type, 14);
      t.input<T>({size}, a).template input<T>({size}, b).template expect<T>(0, {size}, want);
      t.run();
    }
    for (size_t i = 0; i < n; ++i) {
      product[i] = static_cast<T>(static_cast<uint64_t>(a[i]) * static_cast<uint64_t>(b[0]));
    }
    for (const bool is_first : {false, true}) {
      OpTester t("Mul", 14);
      t.input<T>({is_first ? 1 : size}, is_first ? std::vector<T>{b[0]} : a);
      t.input<T>({is_first ? size : 1}, is_first ? a : std::vector<T>{b[0]});
      t.expect<T>(0, {size}, product).run();
    }
  }
}

TEST(ElementwiseBinary, ProductsAndBoundsOfIntegersInRowsOfAnyLength) {
  expect_products_and_bounds<int32_t>();
  expect_products_and_bounds<int64_t>();
  // Signed sums of the numbers would wrap: those of unsigned ones may.
  expect_products_and_bounds<uint32_t>();
  expect_products_and_bounds<uint64_t>();
}

// More than a piece that is joined at once, whole and repeated, from left to right.
TEST(ElementwiseBinary, JoinsAnyNumberOfInputsInOrder) {
  constexpr int64_t kCount = 5000;
  std::vector<float> inputs[3];
  std::vector<float> sum, mean, most;
  for (int64_t i = 0; i < kCount; ++i) {
    inputs[0].push_back(i % 7 == 3 ? kNaN : static_cast<float>(i % 11) * 1e7F);
    inputs[1].push_back(static_cast<float>(i % 13) - 1e7F);
    inputs[2].push_back(0.3F * static_cast<float>(i % 3));
    const auto at = static_cast<size_t>(i);
    sum.push_back((inputs[0][at] + inputs[1][at]) + inputs[2][at]);
    mean.push_back(sum.back() / 3.0F);
    const bool is_nan = inputs[0][at] != inputs[0][at];
    most.push_back(is_nan ? kNaN : std::max({inputs[0][at], inputs[1][at], inputs[2][at]}));
  }
  for (const auto& [type, want] : {std::pair{"Sum", sum}, {"Mean", mean}, {"Max", most}}) {
    OpTester t(type, 13);
    for (const std::vector<float>& input : inputs) t.input<float>({kCount}, input);
    t.expect<float>(0, {kCount}, want).run();
  }
  OpTester repeated("Mean", 13);
  repeated.input<float>({2, 1}, {1, 2}).input<float>({2}, {3, 5}).input<float>({1}, {6});
  repeated.expect<float>(0, {2, 2}, {10 / 3.0F, 4, 11 / 3.0F, 13 / 3.0F}).run();
}

// Pairs of int32, some at a time: the quotients of C, and INT_MIN / -1 wraps.
TEST(ElementwiseBinary, DividesPairsOfIntegersAsCDoes) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const int32_t numbers[] = {kLeast, kLeast + 1, -7, -3,    -2,        -1,   1,
                             2,      3,          7,  46341, kMost - 1, kMost};
  std::vector<int32_t> a, b, y;
  for (const int32_t x : numbers) {
    for (const int32_t d : numbers) {
      a.push_back(x);
      b.push_back(d);
      y.push_back(x == kLeast && d == -1 ? kLeast : x / d);
    }
  }
  const auto n = static_cast<int64_t>(a.size());
  OpTester t("Div", 14);
  t.input<int32_t>({n}, a).input<int32_t>({n}, b).expect<int32_t>(0, {n}, y).run();
  OpTester one("Div", 14);
  one.input<int32_t>({1}, {kLeast}).input<int32_t>({5}, {-1, 1, 3, -3, kLeast});
  one.expect<int32_t>(0, {5}, {kLeast, kLeast, -715827882, 715827882, 1}).run();
}

// Whichever input is the larger one, more than are taken at a time.
void expect_smaller_first(const std::function<Tensor(const Shape&, std::vector<double>)>& make) {
  constexpr int64_t kCount = 700;
  std::vector<double> x, most, sum;
  for (int64_t i = 0; i < kCount; ++i) {
    x.push_back(static_cast<double>(i % 50));
    most.push_back(std::max(x.back(), 20.0));
    sum.push_back(x.back() + 20);
  }
  const auto run = [&](const char* op, std::vector<Tensor> inputs, Tensor y) {
    OpTester t(op, 14);
    for (Tensor& input : inputs) t.input_value(Value(std::move(input)));
    t.expect_value(0, Value(std::move(y))).run();
  };
  run("Max", {make({1}, {20}), make({kCount}, x), make({1}, {3})}, make({kCount}, most));
  run("Add", {make({}, {20}), make({7, 100}, x)}, make({7, 100}, sum));
  run("Add", {make({7, 100}, x), make({1, 1}, {20})}, make({7, 100}, sum));
  run("Max", {make({2, 1}, {1, 3}), make({3}, {0, 2, 4})}, make({2, 3}, {1, 2, 4, 3, 3, 4}));
}

template <typename T>
void expect_smaller_first_of() {
  expect_smaller_first([](const Shape& shape, const std::vector<double>& values) {
    return make_tensor<T>(shape, std::vector<T>(values.begin(), values.end()));
  });
}

TEST(ElementwiseBinary, TheFirstInputMayBeTheSmallerOne) {
  expect_smaller_first_of<uint8_t>();
  expect_smaller_first_of<int8_t>();
  expect_smaller_first_of<int64_t>();
  expect_smaller_first_of<double>();
  expect_smaller_first_of<float>();
  for (const DType half : {DType::kFloat16, DType::kBfloat16}) {
    expect_smaller_first([half](const Shape& shape, const std::vector<double>& values) {
      return make_float_tensor(half, shape, values);
    });
  }
}

}  // namespace
}  // namespace folio
