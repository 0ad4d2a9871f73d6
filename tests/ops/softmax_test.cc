#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Softmax, FollowsTheSpecExample) {
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    OpTester t("Softmax", 13);
    t.input_as(dtype, {1, 3}, {-1, 0, 1});
    t.expect_as(0, dtype, {1, 3}, {0.09003058, 0.24472848, 0.66524094}, 1e-6);
    t.run();
  }
}

TEST(Softmax, TakesAnyAxisWithLargeNumbers) {
  OpTester t("Softmax", 13);
  t.attr("axis", 0);
  t.input<float>({2, 2}, {10000, 0, 10000, 10000});
  t.expect<float>(0, {2, 2}, {0.5F, 0, 0.5F, 1});
  t.run();
}

TEST(Softmax, FlattensBeforeOpset13) {
  OpTester t("Softmax", 11);
  t.input<float>({1, 2, 2}, {0, 0, 0, 0});
  t.expect<float>(0, {1, 2, 2}, {0.25F, 0.25F, 0.25F, 0.25F});
  t.run();
}

TEST(LogSoftmax, IsTheLogarithm) {
  OpTester t("LogSoftmax", 13);
  t.input<float>({2}, {0, 0});
  t.expect<float>(0, {2}, {-std::log(2.0F), -std::log(2.0F)}, 1e-6);
  t.run();
}

TEST(Hardmax, TakesTheFirstMaximum) {
  OpTester t("Hardmax", 13);
  t.input<float>({1, 4}, {3, 1, 3, 2});
  t.expect<float>(0, {1, 4}, {1, 0, 0, 0});
  t.run();
}

TEST(Softmax, AxesOutsideAreAnError) {
  OpTester t("Softmax", 13);
  t.attr("axis", 2);
  t.input<float>({1, 2}, {0, 0});
  t.outputs(1).fails("axis 2 is outside");
}

}  // namespace
}  // namespace folio
