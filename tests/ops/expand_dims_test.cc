#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

TEST(ExpandDims, PutsAOneAtAPlaceOfTheResult) {
  OpTester t("ExpandDims", 1, kMs);
  t.input<float>({2, 1}, {1, 2}).input<int32_t>({}, {1}).expect<float>(0, {2, 1, 1}, {1, 2});
  t.run();
  OpTester last("ExpandDims", 1, kMs);
  last.input<std::string>({2}, {"a", "b"}).constant<int32_t>({1}, {-1});
  last.expect<std::string>(0, {2, 1}, {"a", "b"}).expect_inferred(0, "tensor(string)[2,1]");
  last.run();
  OpTester first("ExpandDims", 1, kMs);
  first.input<float>({2}, {1, 2}).input<int32_t>({}, {-2}).expect<float>(0, {1, 2}, {1, 2});
  first.run();
}

TEST(ExpandDims, KeepsKnownContents) {
  OpTester t("ExpandDims", 1, kMs);
  t.input<int64_t>({}, {3}).constant<int32_t>({}, {0}).expect<int64_t>(0, {1}, {3});
  t.run();
}

TEST(ExpandDims, RefusesOtherAxes) {
  OpTester outside("ExpandDims", 1, kMs);
  outside.input<float>({2}, {1, 2}).input<int32_t>({}, {2}).outputs(1).fails("axis 2 is outside");
  OpTester twice("ExpandDims", 1, kMs);
  twice.input<float>({2}, {1, 2}).input<int32_t>({2}, {0, 1});
  twice.outputs(1).fails("axis [2] must be one number");
  OpTester type("ExpandDims", 1, kMs);
  type.input<float>({2}, {1, 2}).input<int64_t>({}, {0});
  type.outputs(1).fails("input 1 is int64, expected int32");
  OpTester deep("ExpandDims", 1, kMs);
  deep.input<float>(Shape(std::vector<int64_t>(16, 1)), {1}).input<int32_t>({}, {0});
  deep.outputs(1).fails("more than 16 dims");
}

}  // namespace
}  // namespace folio
