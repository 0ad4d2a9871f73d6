#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Gemm, TransposesScalesAndBroadcastsC) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16}) {
    OpTester t("Gemm", 13);
    t.attr("transA", 1).attr("transB", 1).attr("alpha", 2.0F).attr("beta", 0.5F);
    t.input_as(dtype, {2, 1}, {3, 4});
    t.input_as(dtype, {3, 2}, {1, 2, 3, 4, 5, 6});
    t.input_as(dtype, {1, 1}, {10});
    t.expect_as(0, dtype, {1, 3}, {27, 55, 83});
    t.run();
  }
}

TEST(Gemm, AnEmptySumIsC) {
  OpTester t("Gemm", 13);
  t.input<float>({2, 0}, {});
  t.input<float>({0, 2}, {});
  t.input<float>({2}, {1, 2});
  t.expect<float>(0, {2, 2}, {1, 2, 1, 2});
  t.run();
}

TEST(Gemm, DepthsThatDifferAreAnError) {
  OpTester t("Gemm", 13);
  t.input<float>({1, 2}, {1, 2});
  t.input<float>({3, 1}, {1, 2, 3});
  t.outputs(1).fails("k is 2 and 3");
}

TEST(FusedGemm, AppliesTheActivationAfterC) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16}) {
    OpTester t("FusedGemm", 1, "com.microsoft");
    t.attr("activation", "LeakyRelu").attr("activation_alpha", 0.125F).attr("beta", 2.0F);
    t.input_as(dtype, {1, 1}, {1});
    t.input_as(dtype, {1, 2}, {3, 4});
    t.input_as(dtype, {2}, {-6.5, 1});
    t.expect_as(0, dtype, {1, 2}, {-1.25, 6});
    t.run();
  }
}

// Results of ONNX Runtime 1.30, which takes these alone.
TEST(FusedGemm, HasTheFunctionsOfOnnxRuntime) {
  struct Function {
    const char* name;
    std::vector<float> y;  // of -3, -1.2857, 0.42857, 3 with alpha 1.5, beta 0.7, gamma 1.3
  };
  const Function functions[] = {
      {"Celu", {-1.296997F, -0.8634408F, 0.4285714F, 3}},
      {"Elu", {-1.4253194F, -1.0853205F, 0.4285714F, 3}},
      {"HardSigmoid", {0, 0, 1, 1}},
      {"LeakyRelu", {-4.5F, -1.9285715F, 0.4285714F, 3}},
      {"ParametricSoftplus", {0.1732793F, 0.5117309F, 1.2815329F, 3.3232791F}},
      {"Relu", {0, 0, 0.4285714F, 3}},
      {"ScaledTanh", {-1.4556779F, -1.0744468F, 0.43696895F, 1.4556779F}},
      {"Selu", {-1.8529152F, -1.4109166F, 0.5571429F, 3.9F}},
      {"Sigmoid", {0.04742587F, 0.2165791F, 0.6055325F, 0.9525741F}},
      {"Softplus", {0.04858736F, 0.2440852F, 0.9302185F, 3.0485873F}},
      {"Softsign", {-0.75F, -0.5625F, 0.3F, 0.75F}},
      {"Tanh", {-0.9950547F, -0.85799998F, 0.40412676F, 0.9950547F}},
      {"ThresholdedRelu", {0, 0, 0, 3}},
  };
  const std::vector<double> x = {-3, -9.0 / 7, 3.0 / 7, 3};
  for (const Function& function : functions) {
    for (const DType dtype : {DType::kFloat, DType::kDouble}) {
      OpTester t("FusedGemm", 1, "com.microsoft");
      t.attr("activation", function.name).attr("activation_alpha", 1.5F);
      t.attr("activation_beta", 0.7F).attr("activation_gamma", 1.3F);
      t.input_as(dtype, {4, 1}, x).input_as(dtype, {1, 1}, {1});
      t.expect_as(0, dtype, {4, 1}, {function.y.begin(), function.y.end()}, 1e-6);
      t.run();
    }
  }
  OpTester t("FusedGemm", 1, "com.microsoft");
  t.attr("activation", "Mish").input<float>({1, 1}, {1}).input<float>({1, 1}, {1});
  t.outputs(1).fails("unknown activation 'Mish'");
}

TEST(FusedGemm, RefusesIntegers) {
  OpTester t("FusedGemm", 1, "com.microsoft");
  t.attr("activation", "Relu");
  t.input<int32_t>({1, 1}, {1});
  t.input<int32_t>({1, 1}, {1});
  t.outputs(1).fails("int32");
}

// C has rows without a number.
TEST(Gemm, OfNoColumnsThereIsNothing) {
  OpTester t("Gemm", 13);
  t.input<double>({2, 3}, {1, 2, 3, 4, 5, 6}).input<double>({3, 0}, {}).input<double>({1, 0}, {});
  t.expect<double>(0, {2, 0}, {}).run();
}

}  // namespace
}  // namespace folio
