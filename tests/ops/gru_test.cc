#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

// One unit, one input: Wz, Wr, Wh = 1, 2, 3; R alike; biases zero but Rb_h.
OpTester one_unit(int linear_before_reset) {
  OpTester t("GRU", 14);
  t.attr("hidden_size", 1).attr("linear_before_reset", linear_before_reset);
  t.input<float>({1, 1, 1}, {0.5F});
  t.input<float>({1, 3, 1}, {1, 2, 3});
  t.input<float>({1, 3, 1}, {1, 2, 3});
  t.input<float>({1, 6}, {0, 0, 0, 0, 0, 0.25F});
  t.input_absent();
  t.input<float>({1, 1, 1}, {0.1F});
  return t;
}

TEST(GRU, ResetsBeforeOrAfterTheProduct) {
  const float z = sigmoid(0.6F);
  const float r = sigmoid(1.2F);
  const float before = std::tanh(1.5F + r * 0.1F * 3 + 0.25F);
  const float after = std::tanh(1.5F + r * (0.1F * 3 + 0.25F));
  for (const int linear : {0, 1}) {
    const float h = (1 - z) * (linear ? after : before) + z * 0.1F;
    OpTester t = one_unit(linear);
    t.expect<float>(0, {1, 1, 1, 1}, {h}, 1e-6);
    t.expect<float>(1, {1, 1, 1}, {h}, 1e-6);
    t.run();
  }
}

TEST(RNN, FinishedSequencesKeepTheirState) {
  OpTester t("RNN", 14);
  t.attr("hidden_size", 1).attr_strings("activations", {"Relu"});
  t.input<float>({2, 2, 1}, {1, 10, 2, 20});
  t.input<float>({1, 1, 1}, {1});
  t.input<float>({1, 1, 1}, {1});
  t.input_absent();
  t.input<int32_t>({2}, {2, 1});
  t.expect<float>(0, {2, 1, 2, 1}, {1, 10, 3, 0});
  t.expect<float>(1, {1, 2, 1}, {3, 10});
  t.run();
}

TEST(RNN, ReverseStartsAtTheEnd) {
  OpTester t("RNN", 14);
  t.attr("direction", "reverse").attr_strings("activations", {"Relu"});
  t.input<float>({2, 1, 1}, {1, 2});
  t.input<float>({1, 1, 1}, {1});
  t.input<float>({1, 1, 1}, {10});
  t.expect<float>(0, {2, 1, 1, 1}, {21, 2});
  t.run();
}

TEST(GRU, WeightsOfOtherSizeAreAnError) {
  OpTester t("GRU", 14);
  t.input<float>({1, 1, 1}, {0.5F});
  t.input<float>({1, 2, 1}, {1, 2});
  t.input<float>({1, 3, 1}, {1, 2, 3});
  t.outputs(1).fails("W has shape");
}

}  // namespace
}  // namespace folio
