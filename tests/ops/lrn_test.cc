// LRN of every type and size against its definition.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

struct Case {
  int64_t batch, channels, places, size;
  float beta;
};

template <typename T>
void expect_definition(const Case& c, double tolerance) {
  constexpr float kAlpha = 0.7F;
  constexpr float kBias = 1.5F;
  std::vector<T> x;
  for (int64_t i = 0; i < c.batch * c.channels * c.places; ++i) {
    x.push_back(static_cast<T>(3 * std::sin(0.37 * static_cast<double>(i))));
  }
  std::vector<T> y;
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t channel = i / c.places % c.channels;
    double sum = 0;
    for (int64_t k = channel - (c.size - 1) / 2; k <= channel + c.size / 2; ++k) {
      if (k < 0 || k >= c.channels) continue;
      sum += std::pow(double{x[static_cast<size_t>(i + (k - channel) * c.places)]}, 2);
    }
    const double base = kBias + double{kAlpha} / static_cast<double>(c.size) * sum;
    y.push_back(static_cast<T>(x[static_cast<size_t>(i)] / std::pow(base, double{c.beta})));
  }
  OpTester t("LRN", 13);
  t.attr("size", c.size).attr("alpha", kAlpha).attr("beta", c.beta).attr("bias", kBias);
  t.input<T>({c.batch, c.channels, c.places}, x);
  t.template expect<T>(0, {c.batch, c.channels, c.places}, y, tolerance);
  t.run();
}

TEST(Lrn, IsItsDefinitionForAllSizes) {
  for (const int64_t channels : {1, 3, 40}) {
    for (const int64_t places : {1, 15, 16, 17, 300, 3000}) {  // rows of a slot, parts of rows
      for (const int64_t size : {1, 2, 5, 7}) {
        for (const float beta : {0.75F, 0.5F, 1.0F}) {
          SCOPED_TRACE(std::to_string(channels) + " x " + std::to_string(places) + ", size " +
                       std::to_string(size));
          expect_definition<float>({2, channels, places, size, beta}, 2e-6);
          if (places == 16) expect_definition<double>({2, channels, places, size, beta}, 1e-6);
        }
      }
    }
  }
}

TEST(Lrn, TakesMoreChannelsThanABlockHolds) {
  expect_definition<float>({1, 5000, 16, 5, 0.75F}, 2e-6);
}

TEST(Lrn, SumsSquaresOfNeighbouringChannels) {
  // size 2: channels [c, c + 1]; y = x / (1 + s).
  OpTester t("LRN", 13);
  t.attr("size", 2).attr("alpha", 2.0f).attr("beta", 1.0f);
  t.input<float>({1, 3, 1}, {1, 2, 3});
  t.expect<float>(0, {1, 3, 1}, {1.0f / 6, 2.0f / 14, 3.0f / 10}, 1e-6);
  t.run();
}

TEST(Lrn, SumsOverNeighbouringChannels) {
  OpTester t("LRN", 13);
  t.attr("size", 3).attr("alpha", 3.0F).attr("beta", 1.0F).attr("bias", 1.0F);
  t.input<float>({1, 3, 1, 1}, {1, 2, 3});
  t.expect<float>(0, {1, 3, 1, 1}, {1.0F / 6, 2.0F / 15, 3.0F / 14}, 1e-6);
  t.run();
}

TEST(Lrn, SizesBelowOneAreRefused) {
  OpTester t("LRN", 13);
  t.attr("size", 0);
  t.input<float>({1, 3, 1, 1}, {1, 2, 3});
  t.outputs(1).fails("attribute 'size' is 0");
}

}  // namespace
}  // namespace folio
