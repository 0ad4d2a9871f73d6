#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

TEST(UnfoldTensor, SlicesOverlapAlongTheLastAxis) {
  OpTester t("UnfoldTensor", 1, kMs);
  t.attr("size", 3).input<int32_t>({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  t.expect<int32_t>(0, {2, 2, 3}, {0, 1, 2, 1, 2, 3, 4, 5, 6, 5, 6, 7});
  t.expect_inferred(0, "tensor(int32)[2,2,3]");
  t.run();
}

TEST(UnfoldTensor, PutsTheSliceBehindWhatFollowsItsAxis) {
  OpTester t("UnfoldTensor", 1, kMs);
  t.attr("dim", 0).attr("size", 2).attr("step", 2);
  t.input<std::string>({5, 2}, {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"});
  t.expect<std::string>(0, {2, 2, 2}, {"a", "c", "b", "d", "e", "g", "f", "h"}).run();
}

TEST(UnfoldTensor, TakesHugeStepsAndNothing) {
  OpTester t("UnfoldTensor", 1, kMs);
  t.attr("size", 2).attr("step", INT64_MAX).input<float>({3}, {1, 2, 3});
  t.expect<float>(0, {1, 2}, {1, 2}).run();
  OpTester none("UnfoldTensor", 1, kMs);
  none.attr("size", 2).input<float>({0, 3}, {}).expect<float>(0, {0, 2, 2}, {}).run();
}

TEST(UnfoldTensor, RefusesWhatDoesNotFit) {
  OpTester size("UnfoldTensor", 1, kMs);
  size.attr("size", 4)
      .input<float>({3}, {1, 2, 3})
      .outputs(1)
      .fails("size is 4 along an axis of 3");
  OpTester step("UnfoldTensor", 1, kMs);
  step.attr("size", 1).attr("step", 0).input<float>({1}, {1}).outputs(1).fails("step 0");
  OpTester axis("UnfoldTensor", 1, kMs);
  axis.attr("size", 1).attr("dim", 1).input<float>({1}, {1}).outputs(1).fails("1");
  OpTester none("UnfoldTensor", 1, kMs);
  none.input<float>({1}, {1}).outputs(1).fails("size");
}

}  // namespace
}  // namespace folio
