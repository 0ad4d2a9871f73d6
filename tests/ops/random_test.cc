#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(RandomUniform, StaysInItsRangeAndRepeatsWithASeed) {
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    OpTester t("RandomUniform", 1);
    t.attr("low", 2.0F).attr("high", 3.0F).attr("seed", 7.0F).attr_ints("shape", {1000});
    t.outputs(1).run();
    const std::vector<float> values = t.output_values<float>(0);
    ASSERT_EQ(values.size(), 1000U);
    for (const float value : values) {
      EXPECT_GE(value, 2.0F);
      EXPECT_LE(value, 3.0F);
    }
    EXPECT_NE(values[0], values[1]);
    if (round == 1) {
      EXPECT_EQ(values, first);
    }
    first = values;
  }
}

TEST(RandomNormalLike, HasItsMeanAndSpread) {
  OpTester t("RandomNormalLike", 1);
  t.attr("mean", 5.0F).attr("scale", 2.0F).attr("seed", 1.0F);
  t.input<double>({4000}, std::vector<double>(4000));
  t.outputs(1).run();
  double sum = 0;
  double squares = 0;
  for (const double value : t.output_values<double>(0)) {
    sum += value;
    squares += (value - 5) * (value - 5);
  }
  EXPECT_NEAR(sum / 4000, 5, 0.2);
  EXPECT_NEAR(std::sqrt(squares / 4000), 2, 0.2);
}

TEST(Bernoulli, IsCertainAtZeroAndOne) {
  OpTester t("Bernoulli", 15);
  t.attr("dtype", 9);
  t.input<float>({2}, {0, 1});
  t.expect<bool>(0, {2}, {false, true});
  t.run();
}

TEST(Multinomial, DrawsWhatIsLikely) {
  OpTester t("Multinomial", 7);
  t.attr("sample_size", 3);
  t.input<float>({1, 3}, {-1000, 0, -1000});
  t.expect<int32_t>(0, {1, 3}, {1, 1, 1});
  t.run();
}

TEST(RandomUniform, NegativeDimsAreRefused) {
  OpTester t("RandomUniform", 1);
  t.attr_ints("shape", {-1});
  t.outputs(1).fails("negative");
}

TEST(RandomNormal, MissesItsShape) {
  OpTester t("RandomNormal", 1);
  t.outputs(1).fails("'shape' is required but missing");
}

}  // namespace
}  // namespace folio
