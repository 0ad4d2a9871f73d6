#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

TEST(LSTM, OneUnitFollowsTheFormula) {
  OpTester t("LSTM", 14);
  t.attr("hidden_size", 1);
  t.input<float>({1, 1, 1}, {0.5F});
  t.input<float>({1, 4, 1}, {1, 2, 3, 4});  // i, o, f, c
  t.input<float>({1, 4, 1}, {0, 0, 0, 0});
  t.input_absent().input_absent().input_absent();
  t.input<float>({1, 1, 1}, {0.5F});
  const float c = sigmoid(1.5F) * 0.5F + sigmoid(0.5F) * std::tanh(2.0F);
  const float h = sigmoid(1.0F) * std::tanh(c);
  t.expect<float>(0, {1, 1, 1, 1}, {h}, 1e-6);
  t.expect<float>(1, {1, 1, 1}, {h}, 1e-6);
  t.expect<float>(2, {1, 1, 1}, {c}, 1e-6);
  t.run();
}

TEST(LSTM, UnknownActivationsAreRefused) {
  OpTester t("LSTM", 14);
  t.attr_strings("activations", {"Sigmoid", "Tanh", "Frob"});
  t.input<float>({1, 1, 1}, {0.5F});
  t.input<float>({1, 4, 1}, {1, 2, 3, 4});
  t.input<float>({1, 4, 1}, {0, 0, 0, 0});
  t.outputs(1).fails("unknown activation 'Frob'");
}

}  // namespace
}  // namespace folio
