// Convolutions of deep images by few filters: floats, which go plane by plane, against doubles,
// which go element by element.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

struct Deep {
  std::vector<int64_t> image{6, 7, 40};
  std::vector<int64_t> kernel{3, 3, 3};
  std::vector<int64_t> pads{1, 1, 1, 1, 1, 1};
  std::vector<int64_t> strides{1, 1, 1};
  std::vector<int64_t> dilations{1, 1, 1};
  int64_t channels = 5;
  int64_t filters = 5;
  const char* activation = "Relu";
  bool has_addend = false;
};

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& each : out) each = static_cast<float>(random() % 2001) / 1000 - 1;
  return out;
}

int64_t out_dim(const Deep& d, size_t axis) {
  const int64_t reach = (d.kernel[axis] - 1) * d.dilations[axis] + 1;
  return (d.image[axis] + d.pads[axis] + d.pads[axis + 3] - reach) / d.strides[axis] + 1;
}

template <typename T>
OpTester tester(const Deep& d) {
  OpTester t("FusedConv", 1, "com.microsoft");
  t.attr_ints("pads", d.pads).attr_ints("strides", d.strides).attr_ints("dilations", d.dilations);
  t.attr("activation", d.activation);
  if (std::string_view(d.activation) == "LeakyRelu") t.attr_floats("activation_params", {0.25F});
  uint32_t seed = 0;
  const auto input = [&](const Shape& shape) {
    const std::vector<float> all = numbers(static_cast<size_t>(shape.count()), ++seed);
    t.input<T>(shape, std::vector<T>(all.begin(), all.end()));
  };
  const std::vector<int64_t>&k = d.kernel, &x = d.image;
  input({2, d.channels, x[0], x[1], x[2]});
  input({d.filters, d.channels, k[0], k[1], k[2]});
  input({d.filters});
  if (d.has_addend) input({2, d.filters, out_dim(d, 0), out_dim(d, 1), out_dim(d, 2)});
  t.outputs(1);
  return t;
}

void expect_exact_sums(const Deep& d) {
  OpTester narrow = tester<float>(d);
  OpTester wide = tester<double>(d);
  ASSERT_EQ(narrow.survives(), 4) << narrow.refusal();
  ASSERT_EQ(wide.survives(), 4) << wide.refusal();
  const std::vector<float> got = narrow.output_values<float>(0);
  const std::vector<double> expected = wide.output_values<double>(0);
  ASSERT_EQ(got.size(), expected.size());
  // A sum of k products of numbers up to 1 is off by no more than k roundings of what it comes by.
  const double k = static_cast<double>(d.channels * d.kernel[0] * d.kernel[1] * d.kernel[2]) + 4;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], k * k * 0x1p-24) << "element " << i;
  }
}

TEST(DeepPlanes, GiveTheSumsOfDoubles) {
  expect_exact_sums({});
  expect_exact_sums({.dilations = {2, 2, 2}});
  expect_exact_sums({.pads = {0, 0, 0, 0, 0, 0}});
  expect_exact_sums({.pads = {2, 0, 3, 1, 2, 0}, .dilations = {2, 1, 3}});
  expect_exact_sums({.strides = {2, 3, 1}});
  expect_exact_sums({.image = {3, 200, 33}, .channels = 1, .filters = 4});
  expect_exact_sums({.kernel = {5, 1, 4}, .channels = 8, .filters = 1});
  expect_exact_sums({.kernel = {2, 2, 2}, .activation = "LeakyRelu"});
  expect_exact_sums({.activation = "Sigmoid", .has_addend = true});
}

// Planes of depths that no tap of the filter reaches are the bias.
TEST(DeepPlanes, FarInThePaddingThereIsTheBias) {
  expect_exact_sums({.image = {1, 3, 40}, .kernel = {2, 3, 3}, .pads = {5, 1, 1, 4, 1, 1}});
  expect_exact_sums({.image = {2, 3, 40}, .pads = {9, 1, 1, 9, 1, 1}, .dilations = {4, 1, 1}});
}

}  // namespace
}  // namespace folio
