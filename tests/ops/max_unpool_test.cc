#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(MaxUnpool, PutsElementsBack) {
  OpTester t("MaxUnpool", 9);
  t.attr_ints("kernel_shape", {2, 2}).attr_ints("strides", {2, 2}).input<float>({1, 1, 1, 1}, {5});
  t.input<int64_t>({1, 1, 1, 1}, {2}).expect<float>(0, {1, 1, 2, 2}, {0, 0, 5, 0}).run();
  OpTester larger("MaxUnpool", 11);
  larger.attr_ints("kernel_shape", {2}).input<float>({1, 1, 1}, {5}).input<int64_t>({1, 1, 1}, {1});
  larger.constant<int64_t>({3}, {1, 1, 3}).expect<float>(0, {1, 1, 3}, {0, 5, 0}).run();
  OpTester outside("MaxUnpool", 11);
  outside.attr_ints("kernel_shape", {2}).input<float>({1, 1, 1}, {5});
  outside.input<int64_t>({1, 1, 1}, {2}).outputs(1).fails("index 2 is outside");
  OpTester huge("MaxUnpool", 11);
  huge.attr_ints("kernel_shape", {INT64_MAX}).input<float>({1, 1, 2}, {5, 6});
  huge.input<int64_t>({1, 1, 2}, {0, 1}).outputs(1).fails("overflows");
}

}  // namespace
}  // namespace folio
