#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(InstanceNormalization, FollowsTheSpecExample) {
  OpTester t("InstanceNormalization", 6);
  t.input<float>({1, 2, 1, 3}, {-1, 0, 1, 2, 3, 4});
  t.input<float>({2}, {1, 1.5f});
  t.input<float>({2}, {0, 1});
  t.expect<float>(0, {1, 2, 1, 3}, {-1.2247356f, 0, 1.2247356f, -0.8371034f, 1, 2.8371034f}, 1e-5);
  t.run();
}

TEST(GroupNormalization, ScaleIsPerGroupBeforeOpset21) {
  for (const int version : {18, 21}) {
    OpTester t("GroupNormalization", version);
    t.attr("num_groups", 1);
    t.input<float>({1, 2, 1}, {1, 3});
    using Floats = std::vector<float>;
    const bool per_channel = version == 21;
    const int64_t count = per_channel ? 2 : 1;
    t.input<float>({count}, per_channel ? Floats{1, 2} : Floats{5});
    t.input<float>({count}, per_channel ? Floats{0, 1} : Floats{0});
    t.expect<float>(0, {1, 2, 1}, per_channel ? Floats{-1, 3} : Floats{-5, 5}, 1e-4);
    t.run();
  }
}

// Groups of several parts, which threads share where there are fewer groups than threads.
TEST(GroupNormalization, LargeGroupsHaveTheSameBitsWhoeverSumsThem) {
  for (const auto& [channels, inner] :
       {std::pair<int64_t, int64_t>{1, 40000}, {2, 20001}, {100, 400}, {3, 16384}}) {
    std::vector<float> x;
    for (int64_t i = 0; i < channels * inner; ++i) {
      x.push_back(static_cast<float>(i * 37 % 101) * 0.25F + 3.0F);
    }
    std::vector<float> scale;
    for (int64_t c = 0; c < channels; ++c) scale.push_back(1.0F + 0.5F * static_cast<float>(c));
    std::vector<std::vector<float>> y;
    for (const int threads : {1, 2, 8}) {
      OpTester t("GroupNormalization", 21);
      t.attr("num_groups", 1).input<float>({1, channels, inner}, x);
      t.input<float>({channels}, scale).input<float>({channels}, scale);
      t.threads(threads).outputs(1).run();
      y.push_back(t.output_values<float>(0));
      EXPECT_EQ(y.back(), y.front()) << channels << " x " << inner << ", " << threads;
    }
    double sum = 0;
    double squares = 0;
    for (const float v : x) sum += v;
    const double mean = sum / static_cast<double>(x.size());
    for (const float v : x) squares += (v - mean) * (v - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
    for (size_t i = 0; i < x.size(); ++i) {
      const double by = scale[i / static_cast<size_t>(inner)];
      ASSERT_NEAR(y[0][i], (x[i] - mean) * factor * by + by, 1e-5 * by) << i;
    }
  }
}

TEST(GroupNormalization, ChannelsMustDivideIntoGroups) {
  OpTester t("GroupNormalization", 21);
  t.attr("num_groups", 2);
  t.input<float>({1, 3}, {1, 2, 3});
  t.input<float>({3}, {1, 1, 1});
  t.input<float>({3}, {0, 0, 0});
  t.outputs(1).fails("do not divide");
}

TEST(LpNormalization, ZeroVectorsStayZero) {
  OpTester t("LpNormalization", 22);
  t.input<float>({2, 2}, {3, 4, 0, 0});
  t.expect<float>(0, {2, 2}, {0.6f, 0.8f, 0, 0}, 1e-6);
  t.run();
}

TEST(MeanVarianceNormalization, NormalizesOverTheGivenAxes) {
  OpTester t("MeanVarianceNormalization", 13);
  t.attr_ints("axes", {0});
  t.input<float>({2, 2}, {1, 5, 3, 5});
  t.expect<float>(0, {2, 2}, {-1, 0, 1, 0}, 1e-6);
  t.run();
}

// What goes by kernels in float against plain loops in double.
template <typename T>
std::vector<T> normalized(const char* type, int version, const Shape& shape,
                          const std::vector<int64_t>& axes, int64_t groups) {
  std::vector<T> x;
  for (int64_t i = 0; i < shape.count(); ++i) x.push_back(static_cast<T>(i * 7919 % 101 - 37));
  OpTester t(type, version);
  t.input<T>(shape, x).outputs(1);
  const std::string_view name = type;
  if (name == "LpNormalization") t.attr("axis", axes[0]).attr("p", axes.size() > 1 ? 1 : 2);
  if (name == "MeanVarianceNormalization") t.attr_ints("axes", axes);
  if (name == "GroupNormalization") t.attr("num_groups", groups);
  if (name == "GroupNormalization" || name == "InstanceNormalization" ||
      name == "BatchNormalization") {
    for (int64_t input = 0; input < (name[0] == 'B' ? 4 : 2); ++input) {
      std::vector<T> values;
      for (int64_t c = 0; c < shape[1]; ++c) values.push_back(static_cast<T>(c % 5 + 1 + input));
      t.input<T>({shape[1]}, values);
    }
  }
  t.run();
  return t.output_values<T>(0);
}

void expect_normalized_as_doubles(const char* type, int version, const Shape& shape,
                                  const std::vector<int64_t>& axes = {}, int64_t groups = 1) {
  const std::vector<float> got = normalized<float>(type, version, shape, axes, groups);
  const std::vector<double> want = normalized<double>(type, version, shape, axes, groups);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 2e-5 * (1 + std::abs(want[i]))) << type << ' ' << i;
  }
}

TEST(Normalizations, OfFloatsAgreeWithDoubles) {
  for (const int64_t n : {1, 2, 15, 16, 17, 33, 1023, 1025, 2049, 5000}) {
    expect_normalized_as_doubles("BatchNormalization", 15, {2, 3, n});
    expect_normalized_as_doubles("LpNormalization", 22, {3, n}, {1});
    expect_normalized_as_doubles("LpNormalization", 22, {3, n}, {1, 1});
    expect_normalized_as_doubles("LpNormalization", 22, {3, n}, {0});
    expect_normalized_as_doubles("LpNormalization", 22, {2, 3, n}, {1, 1});
    if (n < 15) continue;  // variances near epsilon
    expect_normalized_as_doubles("InstanceNormalization", 22, {2, 3, n});
    expect_normalized_as_doubles("GroupNormalization", 21, {2, 4, n}, {}, 2);
    expect_normalized_as_doubles("MeanVarianceNormalization", 13, {2, 3, 1, n}, {0, 2, 3});
    expect_normalized_as_doubles("MeanVarianceNormalization", 13, {7, n}, {0});
    expect_normalized_as_doubles("MeanVarianceNormalization", 13, {7, 3, n}, {0, 1});
  }
}

}  // namespace
}  // namespace folio
