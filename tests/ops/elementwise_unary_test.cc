#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// Bit by bit, signs of zeros included.
TEST(ElementwiseUnary, WholeDoublesAreThoseOfTheCLibrary) {
  std::vector<double> x = {
      0.0,          0.49999999999999994, 0.5,    1.5,   2.5,    0x1p52,  0x1p52 + 1,
      0x1p51 + 0.5, 4503599627370495.5,  0x1p53, 1e300, 5e-324, INFINITY};
  for (int i = 0; i < 200; ++i) x.push_back(i * 0.173);
  for (size_t i = x.size(); i-- > 0;) x.push_back(-x[i]);
  const auto n = static_cast<int64_t>(x.size());
  struct Case {
    const char* op;
    double (*f)(double);
  };
  for (const Case& each :
       {Case{"Floor", std::floor}, {"Ceil", std::ceil}, {"Round", std::nearbyint}}) {
    OpTester t(each.op, 13);
    t.input<double>({n}, x).outputs(1).run();
    const std::vector<double> y = t.output_values<double>(0);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = each.f(x[i]);
      EXPECT_EQ(y[i], expected) << each.op << ' ' << x[i];
      EXPECT_EQ(std::signbit(y[i]), std::signbit(expected)) << each.op << ' ' << x[i];
    }
    OpTester nan(each.op, 13);
    nan.input<double>({1}, {NAN}).expect<double>(0, {1}, {NAN}).run();
  }
}

TEST(ElementwiseUnary, KeepsIntegersAndWrapsTheLowest) {
  OpTester abs("Abs", 13);
  abs.input<int8_t>({3}, {-128, -1, 5});
  abs.expect<int8_t>(0, {3}, {-128, 1, 5});
  abs.run();
  OpTester sign("Sign", 13);
  sign.input<uint16_t>({2}, {0, 9});
  sign.expect<uint16_t>(0, {2}, {0, 1});
  sign.run();
  OpTester relu("Relu", 14);
  relu.input<int32_t>({2}, {-7, 7});
  relu.expect<int32_t>(0, {2}, {0, 7});
  relu.run();
}

TEST(ElementwiseUnary, RoundsTiesToEven) {
  OpTester t("Round", 22);
  t.input<double>({5}, {0.5, 1.5, 2.5, -0.5, -1.5});
  t.expect<double>(0, {5}, {0, 2, 2, 0, -2});
  t.run();
}

TEST(ElementwiseUnary, ComputesHalfInFloat) {
  OpTester t("Sqrt", 13);
  t.input_as(DType::kFloat16, {2}, {4, 2});
  t.expect_as(0, DType::kFloat16, {2}, {2, 1.4140625}, 1e-4);
  t.run();
}

TEST(ElementwiseUnary, TakesParametersFromAttributes) {
  OpTester t("HardSigmoid", 22);
  t.attr("alpha", 0.5f).attr("beta", 0.6f);
  t.input<float>({3}, {-1, 0, 1});
  t.expect<float>(0, {3}, {0.1f, 0.6f, 1}, 1e-6);
  t.run();
}

TEST(ElementwiseUnary, SpecialValuesFollowTheFormula) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OpTester t("Sigmoid", 13);
  t.input<float>({4}, {-inf, 0, inf, nan});
  t.expect<float>(0, {4}, {0, 0.5f, 1, nan}, 1e-6);
  t.run();
}

TEST(Gelu, HasTwoForms) {
  for (const bool tanh : {false, true}) {
    OpTester t("Gelu", 20);
    t.attr("approximate", tanh ? "tanh" : "none");
    t.input<float>({3}, {-1, 0, 1});
    const float at_one = tanh ? 0.841192f : 0.8413447f;
    t.expect<float>(0, {3}, {at_one - 1, 0, at_one}, 1e-6);
    t.run();
  }
  OpTester fused("Gelu", 1, "com.microsoft");
  fused.input<float>({1}, {1});
  fused.expect<float>(0, {1}, {0.8413447f}, 1e-6);
  fused.run();
}

TEST(QuickGelu, IsXTimesSigmoidOfAlphaX) {
  for (const float alpha : {1.702f, 1.0f}) {
    std::vector<float> x;
    std::vector<float> y;
    for (int i = 0; i < 300; ++i) {  // more than one piece
      x.push_back(static_cast<float>(i) / 30 - 5);
      y.push_back(x.back() / (1 + std::exp(-alpha * x.back())));
    }
    OpTester t("QuickGelu", 1, "com.microsoft");
    if (alpha == 1.0f) t.attr("alpha", alpha);
    t.input<float>({300}, x);
    t.expect<float>(0, {300}, y, 1e-5);
    t.run();
  }
}

TEST(ElementwiseUnary, RefusesTypesThatTheFunctionLacks) {
  OpTester t("Exp", 13);
  t.input<int64_t>({1}, {1});
  t.outputs(1).fails("does not take");
}

TEST(ExperimentalActivations, AreAsOldExportersWroteThem) {
  OpTester affine("Affine", 1);
  affine.attr("alpha", 2.0F).attr("beta", 1.0F);
  affine.input<float>({3}, {-1, 0, 3}).expect<float>(0, {3}, {-1, 1, 7});
  affine.run();
  OpTester same("Affine", 8);
  same.input<double>({2}, {-1, 3}).expect<double>(0, {2}, {-1, 3});
  same.run();
  OpTester tanh("ScaledTanh", 1);
  tanh.attr("alpha", 2.0F).attr("beta", 0.5F);
  tanh.input<float>({2}, {0, 2}).expect<float>(0, {2}, {0, 1.5231883F}, 1e-6);
  tanh.run();
  OpTester softplus("ParametricSoftplus", 1);
  softplus.attr("alpha", 2.0F).attr("beta", 0.5F);
  softplus.input<float>({4}, {0, 4, -1000, 1000});
  softplus.expect<float>(0, {4}, {1.3862944F, 4.253856F, 0, 1000}, 1e-6);
  softplus.run();
  OpTester relu("ThresholdedRelu", 1);
  relu.input<float>({3}, {1, 2, -1}).expect<float>(0, {3}, {0, 2, 0});
  relu.run();
}

TEST(ExperimentalActivations, NeedTheirParameters) {
  for (const char* type : {"ScaledTanh", "ParametricSoftplus"}) {
    OpTester alpha(type, 1);
    alpha.attr("beta", 1.0F).input<float>({1}, {1}).outputs(1).fails("'alpha'");
    OpTester beta(type, 1);
    beta.attr("alpha", 1.0F).input<float>({1}, {1}).outputs(1).fails("'beta'");
  }
}

TEST(Erf, OfIntegersIsTruncated) {
  OpTester t("Erf", 13);
  t.input<int8_t>({5}, {-128, -1, 0, 1, 7}).expect<int8_t>(0, {5}, {-1, 0, 0, 0, 1}).run();
  OpTester wide("Erf", 9);
  wide.input<uint64_t>({2}, {UINT64_MAX, 5}).expect<uint64_t>(0, {2}, {1, 0}).run();
}

}  // namespace
}  // namespace folio
