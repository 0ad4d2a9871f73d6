#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Shape shape_of(const std::vector<int64_t>& dims) {
  return Shape(Span<const int64_t>(dims.data(), dims.size()));
}

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

// As ONNX's own shape inference has it.
TEST(Reduce, NoOtherNumberThanOneKeepsDims) {
  for (const int64_t keepdims : {-1, 2, 128}) {
    OpTester t("ReduceSum", 13);
    t.attr("keepdims", keepdims);
    t.input<float>({3, 2, 2}, twelve());
    t.constant<int64_t>({1}, {1});
    t.expect<float>(0, {3, 2}, {4, 6, 12, 14, 20, 22});
    t.run();
  }
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

// Every choice of the axes of [5, 9, 7, 40] (short and long rows, few and many columns), of each
// type that has loops of its own, beside plain loops over the elements.
template <typename T>
void check_all_axes(const char* type, T (*join)(T, T), T start) {
  const std::vector<int64_t> dims = {5, 9, 7, 40};
  std::vector<T> x;
  for (int64_t i = 0; i < 5 * 9 * 7 * 40; ++i) x.push_back(static_cast<T>((i * 37) % 101) - 30);
  for (int mask = 1; mask < 16; ++mask) {
    std::vector<int64_t> axes, shape;
    for (int d = 0; d < 4; ++d) {
      if (mask >> d & 1) axes.push_back(d);
      shape.push_back(mask >> d & 1 ? 1 : dims[static_cast<size_t>(d)]);
    }
    int64_t outputs = 1;
    for (const int64_t dim : shape) outputs *= dim;
    std::vector<T> want(static_cast<size_t>(outputs), start);
    for (int64_t i = 0; i < 5 * 9 * 7 * 40; ++i) {
      const int64_t index[4] = {i / (9 * 7 * 40), i / (7 * 40) % 9, i / 40 % 7, i % 40};
      int64_t o = 0;
      for (int d = 0; d < 4; ++d) {
        o = o * shape[static_cast<size_t>(d)] + (mask >> d & 1 ? 0 : index[d]);
      }
      T& to = want[static_cast<size_t>(o)];
      to = join(to, x[static_cast<size_t>(i)]);
    }
    OpTester t(type, 18);
    t.template input<T>(shape_of(dims), x);
    t.template input<int64_t>({static_cast<int64_t>(axes.size())}, axes);
    t.template expect<T>(0, shape_of(shape), want);
    t.run();
  }
}
template <typename T>
void check_sums_and_extremes() {
  check_all_axes<T>(
      "ReduceSum", [](T a, T b) { return static_cast<T>(a + b); }, T{0});
  check_all_axes<T>(
      "ReduceL1", [](T a, T b) { return static_cast<T>(a + (b < 0 ? -b : b)); }, T{0});
  check_all_axes<T>(
      "ReduceSumSquare", [](T a, T b) { return static_cast<T>(a + b * b); }, T{0});
  check_all_axes<T>(
      "ReduceMax", [](T a, T b) { return std::max(a, b); }, static_cast<T>(-31));
  check_all_axes<T>(
      "ReduceMin", [](T a, T b) { return std::min(a, b); }, static_cast<T>(101));
}

TEST(Reduce, EveryChoiceOfAxesOfFloats) { check_sums_and_extremes<float>(); }
TEST(Reduce, EveryChoiceOfAxesOfDoubles) { check_sums_and_extremes<double>(); }
TEST(Reduce, EveryChoiceOfAxesOfInt32) { check_sums_and_extremes<int32_t>(); }
TEST(Reduce, EveryChoiceOfAxesOfInt64) { check_sums_and_extremes<int64_t>(); }
TEST(Reduce, EveryChoiceOfAxesOfInt8) {
  check_all_axes<int8_t>(
      "ReduceMax", [](int8_t a, int8_t b) { return std::max(a, b); }, int8_t{-31});
}

// Rows and columns of bytes, from less than a vector to several, whose extreme stands anywhere.
template <typename T>
void check_bytes(const char* type, T usual, T extreme) {
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 63, 64, 65, 96, 127, 128, 131, 300}) {
    for (const int64_t rows : {1, 4, 7}) {
      for (int64_t at = 0; at < n; at += n < 32 ? 1 : 5) {
        std::vector<T> x(static_cast<size_t>(rows * n), usual);
        std::vector<T> of_rows(static_cast<size_t>(rows), usual);
        std::vector<T> of_columns(static_cast<size_t>(n), usual);
        x[static_cast<size_t>((rows - 1) * n + at)] = extreme;
        of_rows[static_cast<size_t>(rows - 1)] = extreme;
        of_columns[static_cast<size_t>(at)] = extreme;
        OpTester t(type, 20);
        t.attr("keepdims", 0).input<T>({rows, n}, x).template input<int64_t>({1}, {1});
        t.template expect<T>(0, {rows}, of_rows).run();
        OpTester columns(type, 20);
        columns.attr("keepdims", 0).input<T>({rows, n}, x).template input<int64_t>({1}, {0});
        columns.template expect<T>(0, {n}, of_columns).run();
      }
    }
  }
}

TEST(Reduce, ExtremesOfBytesOfAllLengths) {
  check_bytes<uint8_t>("ReduceMax", 127, 128);
  check_bytes<uint8_t>("ReduceMin", 128, 127);
  check_bytes<int8_t>("ReduceMax", -1, 0);
  check_bytes<int8_t>("ReduceMin", 0, -1);
}

TEST(Reduce, UnsignedIntegersUseTheirTopBit) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const std::vector<uint64_t> x = {1, kMost, kMost - 4, 7, 3, kMost - 1};
  for (const auto& [type, want] :
       {std::pair<const char*, std::vector<uint64_t>>{"ReduceMax", {kMost, kMost - 1}},
        {"ReduceMin", {1, 3}},
        {"ReduceL1", {kMost - 4, kMost + 9}},
        {"ReduceMean", {(kMost - 4) / 3, (kMost + 9) / 3}}}) {
    OpTester t(type, 18);
    t.attr("keepdims", 0).input<uint64_t>({2, 3}, x).input<int64_t>({1}, {1});
    t.expect<uint64_t>(0, {2}, want).run();
  }
  OpTester t("ReduceMax", 18);
  t.attr("keepdims", 0).input<uint32_t>({3}, {5, 0x80000000U, 9}).input<int64_t>({1}, {0});
  t.expect<uint32_t>(0, {}, {0x80000000U}).run();
}

TEST(Reduce, NanIsTheExtremeOfDoublesAtEveryPlace) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const char* type : {"ReduceMax", "ReduceMin"}) {
    for (size_t at = 0; at < 2 * 19; ++at) {
      std::vector<double> x(2 * 19, 1.0);
      x[0] = std::numeric_limits<double>::infinity();
      x[at] = kNan;
      OpTester rows(type, 18);
      const double first = type[7] == 'a' ? x[0] : 1.0;
      rows.attr("keepdims", 0).input<double>({2, 19}, x).input<int64_t>({1}, {1});
      rows.expect<double>(0, {2}, {at < 19 ? kNan : first, at < 19 ? 1.0 : kNan}).run();
      std::vector<double> want(19, 1.0);
      if (type[7] == 'a') want[0] = std::numeric_limits<double>::infinity();
      want[at % 19] = kNan;
      OpTester columns(type, 18);
      columns.attr("keepdims", 0).input<double>({2, 19}, x).input<int64_t>({1}, {0});
      columns.expect<double>(0, {19}, want).run();
    }
  }
}

// Fractions are cut off, however near to the next whole number.
TEST(Reduce, MeansOfIntegersAreExact) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  constexpr uint32_t kMostUnsigned = std::numeric_limits<uint32_t>::max();
  OpTester t("ReduceMean", 13);
  t.attr_ints("axes", {1});
  t.input<int32_t>({3, 3}, {kMost, kMost, kMost - 1, -kMost, -kMost, 1 - kMost, -1, -1, 0});
  t.expect<int32_t>(0, {3, 1}, {kMost - 1, 1 - kMost, 0});
  t.run();
  OpTester u("ReduceMean", 13);
  u.attr_ints("axes", {1});
  u.input<uint32_t>({2, 3}, {kMostUnsigned, kMostUnsigned, kMostUnsigned - 1, 3, 3, 2});
  u.expect<uint32_t>(0, {2, 1}, {kMostUnsigned - 1, 2});
  u.run();
}

TEST(Reduce, SumsOfUnsignedIntegersWrap) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  for (const char* op : {"ReduceSum", "ReduceL1"}) {
    OpTester t(op, 11);
    t.attr_ints("axes", {1});
    t.input<uint32_t>({1, 3}, {kMost, kMost, 7});
    t.expect<uint32_t>(0, {1, 1}, {5});
    t.run();
  }
}

TEST(Reduce, EmptySetOfIntegersGivesTheTypesBounds) {
  OpTester low("ReduceMax", 20);
  low.input<int8_t>({2, 0}, {}).constant<int64_t>({1}, {1});
  low.expect<int8_t>(0, {2, 1}, {-128, -128}).run();
  OpTester high("ReduceMin", 20);
  high.input<uint32_t>({0, 2}, {}).constant<int64_t>({1}, {0});
  high.expect<uint32_t>(0, {1, 2}, {0xffffffffU, 0xffffffffU}).run();
  OpTester most("ReduceMin", 20);
  most.input<uint64_t>({0, 2}, {}).constant<int64_t>({1}, {0});
  most.expect<uint64_t>(0, {1, 2}, {~uint64_t{0}, ~uint64_t{0}}).run();
}

TEST(Reduce, LogSumExpOfIntegersBelowZero) {
  OpTester rows("ReduceLogSumExp", 18);
  rows.attr("keepdims", 0).input<int64_t>({2, 3}, {-3, -90, -80, 5, 5, -7});
  rows.constant<int64_t>({1}, {1}).expect<int64_t>(0, {2}, {-3, 5}).run();  // log 2 is cut off
  OpTester columns("ReduceLogSumExp", 18);
  columns.attr("keepdims", 0).input<int32_t>({2, 2}, {-3, 7, -90, -7});
  columns.constant<int64_t>({1}, {0}).expect<int32_t>(0, {2}, {-3, 7}).run();
}

// Rows and columns with shifts of their own.
TEST(Reduce, LogSumExpOfEveryAxis) {
  const std::vector<int64_t> dims = {6, 5, 70};
  std::vector<float> x;
  for (int64_t i = 0; i < 6 * 5 * 70; ++i) x.push_back(static_cast<float>((i * 31) % 97) * 2 - 90);
  for (int64_t axis = 0; axis < 3; ++axis) {
    std::vector<int64_t> shape = dims;
    shape[static_cast<size_t>(axis)] = 1;
    const int64_t inner = axis == 0 ? 350 : axis == 1 ? 70 : 1;
    const int64_t n = dims[static_cast<size_t>(axis)];
    std::vector<float> want;
    for (int64_t o = 0; o < 6 * 5 * 70 / n; ++o) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        sum += std::exp(double{x[static_cast<size_t>((o / inner * n + i) * inner + o % inner)]});
      }
      want.push_back(static_cast<float>(std::log(sum)));
    }
    OpTester t("ReduceLogSumExp", 18);
    t.input<float>(shape_of(dims), x).input<int64_t>({1}, {axis});
    t.expect<float>(0, shape_of(shape), want, 2e-6).run();
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

TEST(Reduce, AScalarHasTheAxes0AndMinus1) {
  for (const int64_t axis : {0, -1}) {
    OpTester t("ReduceSum", 13);
    t.input<float>({}, {3});
    t.constant<int64_t>({1}, {axis});
    t.expect<float>(0, {}, {3});
    t.run();
  }
  OpTester other("ReduceSum", 13);
  other.input<float>({}, {3});
  other.constant<int64_t>({1}, {1});
  other.outputs(1).fails("axis 1 is outside");
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
