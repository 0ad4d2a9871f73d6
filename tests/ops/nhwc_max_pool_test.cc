#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(NhwcMaxPool, PoolsEachChannel) {
  OpTester t("NhwcMaxPool", 1, "com.microsoft");
  t.attr_ints("kernel_shape", {2, 2}).attr_ints("pads", {0, 0, 1, 1});
  t.attr_ints("strides", {2, 2});
  // 3 x 3 pixels of two channels
  t.input<int8_t>({1, 3, 3, 2}, {1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8, 9, -9});
  t.expect<int8_t>(0, {1, 2, 2, 2}, {5, -1, 6, -3, 8, -7, 9, -9});
  t.run();
}

TEST(NhwcMaxPool, FloatsAreRefused) {
  OpTester t("NhwcMaxPool", 1, "com.microsoft");
  t.attr_ints("kernel_shape", {1});
  t.input<float>({1, 1, 1}, {0});
  t.outputs(1).fails("channels last");
}

}  // namespace
}  // namespace folio
