#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(TensorScatter, WritesEachItemAtItsPlace) {
  OpTester t("TensorScatter", 24);
  t.input<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}).input<float>({2, 1, 1}, {8, 9});
  t.input<int64_t>({2}, {0, 2}).expect<float>(0, {2, 3, 1}, {8, 2, 3, 4, 5, 9}).run();
  OpTester around("TensorScatter", 24);
  around.attr("mode", "circular").attr("axis", 1).input<float>({1, 3}, {1, 2, 3});
  around.input<float>({1, 2}, {8, 9}).input<int64_t>({1}, {2}).expect<float>(0, {1, 3}, {9, 2, 8});
  around.run();
  OpTester beyond("TensorScatter", 24);
  beyond.attr("axis", 1).input<float>({1, 3}, {1, 2, 3}).input<float>({1, 2}, {8, 9});
  beyond.input<int64_t>({1}, {2}).outputs(1).fails("write index is 2, expected 0 to 1");
  OpTester wide("TensorScatter", 24);
  wide.attr("axis", 1).input<float>({1, 1}, {1}).input<float>({1, 2}, {8, 9}).outputs(1);
  wide.fails("does not fit");
}

}  // namespace
}  // namespace folio
