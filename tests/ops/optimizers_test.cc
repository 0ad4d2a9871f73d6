#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

OpTester trainer(const char* type) { return OpTester(type, 1, "ai.onnx.preview.training"); }

OpTester& step(OpTester& t, float rate, int64_t count) {
  return t.input<float>({}, {rate}).input<int64_t>({}, {count});
}

TEST(Adagrad, DividesByTheRootOfSummedSquares) {
  OpTester t = trainer("Adagrad");
  t.attr("norm_coefficient", 1.0F).attr("epsilon", 1.0F).attr("decay_factor", 0.5F);
  step(t, 4, 2);                     // rate 4 / (1 + 2 * 0.5) = 2
  t.input<float>({2}, {1, -1});      // X
  t.input<float>({2}, {2, 1});       // G: regularized 3, 0
  t.input<float>({2}, {16, 4});      // H: 25, 4
  t.expect<float>(0, {2}, {0, -1});  // 1 - 2 * 3 / (5 + 1)
  t.expect<float>(1, {2}, {25, 4});
  t.expect_inferred(1, "tensor(float)[2]").run();
}

TEST(Adam, CorrectsBothAveragesByTheCount) {
  OpTester t = trainer("Adam");
  t.attr("alpha", 0.5F).attr("beta", 0.75F).attr("norm_coefficient_post", 0.5F);
  t.attr("epsilon", 0.0F);
  step(t, 3, 1);  // rate 3 * sqrt(1 - 0.75) / (1 - 0.5) = 3
  t.input<double>({1}, {10}).input<double>({1}, {2}).input<double>({1}, {6}).input<double>({1},
                                                                                           {4});
  t.expect<double>(0, {1}, {2});  // V 4, H 4: (10 - 3 * 4 / 2) / 2
  t.expect<double>(1, {1}, {4}).expect<double>(2, {1}, {4});
  t.run();
}

TEST(Adam, UpdatesManyTensorsOfTheirOwnShapesAndTypes) {
  OpTester t = trainer("Adam");
  t.attr("alpha", 0.0F).attr("beta", 0.0F).attr("epsilon", 0.0F);
  step(t, 1, 0);
  t.input<float>({1}, {5}).input<double>({2}, {7, 8});   // X
  t.input<float>({1}, {3}).input<double>({2}, {-2, 4});  // G
  t.input<float>({1}, {9}).input<double>({2}, {9, 9});   // V
  t.input<float>({1}, {9}).input<double>({2}, {9, 9});   // H
  t.expect<float>(0, {1}, {4}).expect<double>(1, {2}, {8, 7});
  t.expect<float>(2, {1}, {3}).expect<double>(3, {2}, {-2, 4});
  t.expect<float>(4, {1}, {9}).expect<double>(5, {2}, {4, 16});
  t.run();
}

// epsilon is 1e-6 by default (onnx/defs/training/defs.cc; Operators.md rounds it to 0).
TEST(Optimizers, WithoutAGradientNothingChanges) {
  OpTester adagrad = trainer("Adagrad");
  step(adagrad, 1, 0);
  adagrad.input<float>({1}, {5}).input<float>({1}, {0}).input<float>({1}, {0});
  adagrad.expect<float>(0, {1}, {5}).expect<float>(1, {1}, {0}).run();
  OpTester adam = trainer("Adam");
  step(adam, 1, 0);
  adam.input<float>({1}, {5}).input<float>({1}, {0}).input<float>({1}, {0}).input<float>({1}, {0});
  adam.expect<float>(0, {1}, {5}).expect<float>(1, {1}, {0}).expect<float>(2, {1}, {0}).run();
}

TEST(Momentum, TheFirstStepTakesTheGradientWhole) {
  for (const int64_t count : {0, 1}) {
    OpTester t = trainer("Momentum");
    t.attr("alpha", 0.5F).attr("beta", 0.25F).attr("norm_coefficient", 0.0F);
    t.attr("mode", "standard");
    step(t, 2, count);
    t.input<float>({1}, {10}).input<float>({1}, {4}).input<float>({1}, {2});
    const float v = count == 0 ? 5.0F : 2.0F;
    t.expect<float>(0, {1}, {10 - 2 * v}).expect<float>(1, {1}, {v}).run();
  }
}

TEST(Momentum, NesterovLooksAhead) {
  OpTester t = trainer("Momentum");
  t.attr("alpha", 0.5F).attr("beta", 1.0F).attr("norm_coefficient", 1.0F);
  t.attr("mode", "nesterov");
  step(t, 1, 3);
  t.input<float>({1}, {10}).input<float>({1}, {-6}).input<float>({1}, {2});
  t.expect<float>(0, {1}, {3.5F}).expect<float>(1, {1}, {5}).run();  // 10 - (4 + 0.5 * 5)
}

TEST(Momentum, ModesAndAttributesAreChecked) {
  OpTester mode = trainer("Momentum");
  mode.attr("alpha", 0.5F).attr("beta", 1.0F).attr("norm_coefficient", 0.0F).attr("mode", "other");
  step(mode, 1, 0).input<float>({1}, {0}).input<float>({1}, {0}).input<float>({1}, {0});
  mode.outputs(2).fails("'mode' is 'other'");
  OpTester missing = trainer("Momentum");
  missing.attr("mode", "standard").attr("alpha", 0.5F).attr("norm_coefficient", 0.0F);
  step(missing, 1, 0).input<float>({1}, {0}).input<float>({1}, {0}).input<float>({1}, {0});
  missing.outputs(2).fails("'beta'");
}

TEST(Adagrad, InputsThatDoNotFitAreErrors) {
  OpTester shape = trainer("Adagrad");
  step(shape, 1, 0).input<float>({2}, {0, 0}).input<float>({1}, {0}).input<float>({2}, {0, 0});
  shape.outputs(2).fails("input 3 has shape [1], expected that of input 2, [2]");
  OpTester type = trainer("Adagrad");
  step(type, 1, 0).input<float>({1}, {0}).input<float>({1}, {0}).input<double>({1}, {0});
  type.outputs(2).fails("double");
  OpTester rate = trainer("Adagrad");
  rate.input<float>({2}, {1, 1}).input<int64_t>({}, {0});
  rate.input<float>({1}, {0}).input<float>({1}, {0}).input<float>({1}, {0});
  rate.outputs(2).fails("R has shape [2]");
  OpTester count = trainer("Adagrad");
  step(count, 1, 0).input<float>({1}, {0}).input<float>({1}, {0}).input<float>({1}, {0});
  count.input<float>({1}, {0}).outputs(2).fails("has 6 inputs and 2 outputs");
  OpTester outputs = trainer("Adagrad");
  step(outputs, 1, 0).input<float>({1}, {0}).input<float>({1}, {0}).input<float>({1}, {0});
  outputs.outputs(3).fails("has 5 inputs and 3 outputs");
}

}  // namespace
}  // namespace folio
