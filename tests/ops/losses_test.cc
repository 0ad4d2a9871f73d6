#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(NegativeLogLikelihoodLoss, WeighsAndIgnores) {
  OpTester t("NegativeLogLikelihoodLoss", 13);
  t.attr("ignore_index", -1);
  t.input<float>({3, 2}, {-1, -2, -3, -4, -5, -6});
  t.input<int64_t>({3}, {0, 1, -1});
  t.input<float>({2}, {1, 3});
  t.expect<float>(0, {}, {(1 + 12) / 4.0F});
  t.run();
}

TEST(SoftmaxCrossEntropyLoss, GivesLogProbabilities) {
  OpTester t("SoftmaxCrossEntropyLoss", 13);
  t.attr("reduction", "none");
  t.input<double>({1, 2, 1}, {0, 0});
  t.input<int32_t>({1, 1}, {1});
  t.expect<double>(0, {1, 1}, {std::log(2.0)}, 1e-9);
  t.expect<double>(1, {1, 2, 1}, {-std::log(2.0), -std::log(2.0)}, 1e-9);
  t.run();
}

TEST(NegativeLogLikelihoodLoss, TargetsThatAreNoClassAreAnError) {
  OpTester t("NegativeLogLikelihoodLoss", 13);
  t.input<float>({1, 2}, {-1, -2});
  t.input<int64_t>({1}, {2});
  t.outputs(1).fails("target 2 is none of 2");
}

}  // namespace
}  // namespace folio
