#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(CausalConvWithState, CarriesItsLastInputs) {
  OpTester t("CausalConvWithState", 27);
  t.input<float>({1, 1, 2}, {3, 4});
  t.input<float>({1, 1, 3}, {100, 10, 1});
  t.input<float>({1}, {0.5F});
  t.input<float>({1, 1, 2}, {1, 2});
  t.expect<float>(0, {1, 1, 2}, {123.5F, 234.5F});
  t.expect<float>(1, {1, 1, 2}, {3, 4});
  t.run();
}

TEST(CausalConvWithState, StatesOfOtherSizeAreAnError) {
  OpTester t("CausalConvWithState", 27);
  t.input<float>({1, 1, 2}, {3, 4});
  t.input<float>({1, 1, 3}, {100, 10, 1});
  t.input_absent();
  t.input<float>({1, 1, 1}, {1});
  t.outputs(2).fails("input 3 is [1,1,1], expected [1,1,2]");
}

TEST(LinearAttention, UpdatesByTheDeltaRule) {
  OpTester t("LinearAttention", 27);
  t.attr("q_num_heads", 2).attr("kv_num_heads", 1).attr("scale", 1.0F);
  t.attr("update_rule", "delta");
  t.input<float>({1, 2, 2}, {1, 2, 1, 3});
  t.input<float>({1, 2, 1}, {1, 1});
  t.input<float>({1, 2, 1}, {4, 8});
  t.input_absent().input_absent();
  t.input<float>({1, 2, 1}, {0.5F, 0.5F});
  // S: 0.5 * 4 = 2, then 2 + 0.5 * (8 - 2) = 5.
  t.expect<float>(0, {1, 2, 2}, {2, 4, 5, 15});
  t.expect<float>(1, {1, 1, 1, 1}, {5});
  t.run();
}

TEST(LinearAttention, GatesForgetTheState) {
  OpTester t("LinearAttention", 27);
  t.attr("q_num_heads", 1).attr("kv_num_heads", 1).attr("update_rule", "gated");
  t.input<float>({1, 1, 1}, {1});
  t.input<float>({1, 1, 1}, {1});
  t.input<float>({1, 1, 1}, {3});
  t.input<float>({1, 1, 1, 1}, {8});
  t.input<float>({1, 1, 1}, {std::log(0.25F)});
  t.expect<float>(0, {1, 1, 1}, {5}, 1e-6);
  t.expect<float>(1, {1, 1, 1, 1}, {5}, 1e-6);
  t.run();
}

TEST(LinearAttention, HeadsThatDoNotDivideAreRefused) {
  OpTester t("LinearAttention", 27);
  t.attr("q_num_heads", 3).attr("kv_num_heads", 2);
  t.input<float>({1, 1, 3}, {1, 1, 1});
  t.input<float>({1, 1, 2}, {1, 1});
  t.input<float>({1, 1, 2}, {3, 3});
  t.outputs(2).fails("q_num_heads is 3");
}

TEST(SwiGLU, GatesWithSwish) {
  OpTester t("SwiGLU", 28);
  t.input<float>({2}, {0, 1});
  t.input<float>({2}, {5, 10});
  t.expect<float>(0, {2}, {0, 7.310586F}, 1e-5);
  t.run();
}

TEST(LinearAttention, TheStateKeepsItsOwnType) {
  OpTester t("LinearAttention", 27);
  t.attr("q_num_heads", 1).attr("kv_num_heads", 1).attr("update_rule", "linear");
  t.attr("scale", 1.0F);
  t.input_as(DType::kFloat16, {1, 1, 1}, {2}).input_as(DType::kFloat16, {1, 1, 1}, {1});
  t.input_as(DType::kFloat16, {1, 1, 1}, {3}).input<float>({1, 1, 1, 1}, {0.000030517578125F});
  t.expect_as(0, DType::kFloat16, {1, 1, 1}, {6});
  t.expect<float>(1, {1, 1, 1, 1}, {3.000030517578125F});
  t.run();
}

}  // namespace
}  // namespace folio
