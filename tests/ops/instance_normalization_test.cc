#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(InstanceNormalization, FollowsTheSpecExample) {
  OpTester t("InstanceNormalization", 6);
  t.input<float>({1, 2, 1, 3}, {-1, 0, 1, 2, 3, 4});
  t.input<float>({2}, {1, 1.5f});
  t.input<float>({2}, {0, 1});
  t.expect<float>(0, {1, 2, 1, 3}, {-1.2247356f, 0, 1.2247356f, -0.8371034f, 1, 2.8371034f}, 1e-5);
  t.run();
}

TEST(GroupNormalization, ScaleIsPerGroupBeforeOpset21) {
  for (const int version : {18, 21}) {
    OpTester t("GroupNormalization", version);
    t.attr("num_groups", 1);
    t.input<float>({1, 2, 1}, {1, 3});
    using Floats = std::vector<float>;
    const bool per_channel = version == 21;
    const int64_t count = per_channel ? 2 : 1;
    t.input<float>({count}, per_channel ? Floats{1, 2} : Floats{5});
    t.input<float>({count}, per_channel ? Floats{0, 1} : Floats{0});
    t.expect<float>(0, {1, 2, 1}, per_channel ? Floats{-1, 3} : Floats{-5, 5}, 1e-4);
    t.run();
  }
}

TEST(GroupNormalization, ChannelsMustDivideIntoGroups) {
  OpTester t("GroupNormalization", 21);
  t.attr("num_groups", 2);
  t.input<float>({1, 3}, {1, 2, 3});
  t.input<float>({3}, {1, 1, 1});
  t.input<float>({3}, {0, 0, 0});
  t.outputs(1).fails("do not divide");
}

TEST(LpNormalization, ZeroVectorsStayZero) {
  OpTester t("LpNormalization", 22);
  t.input<float>({2, 2}, {3, 4, 0, 0});
  t.expect<float>(0, {2, 2}, {0.6f, 0.8f, 0, 0}, 1e-6);
  t.run();
}

TEST(MeanVarianceNormalization, NormalizesOverTheGivenAxes) {
  OpTester t("MeanVarianceNormalization", 13);
  t.attr_ints("axes", {0});
  t.input<float>({2, 2}, {1, 5, 3, 5});
  t.expect<float>(0, {2, 2}, {-1, 0, 1, 0}, 1e-6);
  t.run();
}

}  // namespace
}  // namespace folio
