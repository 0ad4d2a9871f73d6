// Normalizations with channels last, beside their formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

struct Case {
  int64_t batch, height, width, channels, groups;  // groups 0: instances
  float offset;                                    // of all pixels
  const char* activation;
};

// As the spec says, in double.
std::vector<float> formula(const Case& c, const std::vector<float>& x,
                           const std::vector<float>& scale, const std::vector<float>& bias) {
  const int64_t pixels = c.height * c.width;
  const int64_t together = c.groups == 0 ? 1 : c.channels / c.groups;
  std::vector<float> y(x.size());
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t first = 0; first < c.channels; first += together) {
      const auto each = [&](auto&& body) {
        for (int64_t p = 0; p < pixels; ++p) {
          for (int64_t j = first; j < first + together; ++j) {
            body(static_cast<size_t>((n * pixels + p) * c.channels + j), static_cast<size_t>(j));
          }
        }
      };
      double mean = 0;
      double variance = 0;
      const auto count = static_cast<double>(pixels * together);
      each([&](size_t at, size_t) { mean += static_cast<double>(x[at]) / count; });
      each([&](size_t at, size_t) { variance += std::pow(x[at] - mean, 2) / count; });
      each([&](size_t at, size_t j) {
        double value = (x[at] - mean) / std::sqrt(variance + 1e-3) * scale[j] + bias[j];
        if (std::string_view(c.activation) == "Relu") value = std::max(value, 0.0);
        if (std::string_view(c.activation) == "Sigmoid") value = 1 / (1 + std::exp(-value));
        y[at] = static_cast<float>(value);
      });
    }
  }
  return y;
}

void check(const Case& c, int threads) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  const auto random = [&](int64_t count, float offset) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& value : out) value = normal(engine) + offset;
    return out;
  };
  const Shape shape{c.batch, c.height, c.width, c.channels};
  const std::vector<float> x = random(shape.count(), c.offset);
  const std::vector<float> scale = random(c.channels, 0);
  const std::vector<float> bias = random(c.channels, 0);
  OpTester t(c.groups == 0 ? "InstanceNormalization" : "GroupNormalization", 1, "folio.nhwc");
  t.attr("epsilon", 1e-3F);
  if (c.groups > 0) t.attr("num_groups", c.groups);
  if (*c.activation) t.attr("activation", c.activation);
  t.input<float>(shape, x);
  t.input<float>({c.channels}, scale);
  t.input<float>({c.channels}, bias);
  // A mean of 100 is off by half of 2^-17 at most, and the numbers by as much.
  const double tolerance = c.offset == 0 ? 4e-6 : 4e-5;
  t.threads(threads).expect<float>(0, shape, formula(c, x, scale, bias), tolerance);
  t.run();
}

TEST(NhwcNormalization, FollowsTheFormula) {
  const Case cases[] = {
      {2, 5, 7, 3, 0, 0, ""},      {1, 30, 41, 32, 0, 0, "Relu"},
      {1, 3, 3, 5000, 0, 0, ""},   {3, 20, 20, 40, 8, 0, ""},
      {1, 33, 70, 64, 1, 0, ""},   {2, 9, 9, 24, 24, 0, "Sigmoid"},
      {1, 64, 64, 16, 4, 100, ""}, {1, 64, 64, 16, 0, 100, ""},
      {1, 1, 2, 33, 3, 0, ""},     {2, 17, 19, 130, 13, 0, "Relu"},
  };
  for (const Case& c : cases) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(testing::Message() << "case " << &c - cases << ", " << threads << " threads");
      check(c, threads);
    }
  }
}

TEST(NhwcNormalization, RefusesWhatDoesNotFit) {
  OpTester groups("GroupNormalization", 1, "folio.nhwc");
  groups.attr("num_groups", 4);
  groups.input<float>({1, 1, 1, 6}, std::vector<float>(6, 1));
  groups.input<float>({6}, std::vector<float>(6, 1));
  groups.input<float>({6}, std::vector<float>(6, 1));
  groups.outputs(1).fails("6 channels do not divide into 4 groups");
  OpTester scale("InstanceNormalization", 1, "folio.nhwc");
  scale.input<float>({1, 1, 1, 6}, std::vector<float>(6, 1));
  scale.input<float>({5}, std::vector<float>(5, 1));
  scale.input<float>({6}, std::vector<float>(6, 1));
  scale.outputs(1).fails("expected [6]");
}

}  // namespace
}  // namespace folio
