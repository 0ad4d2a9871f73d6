#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(BitCast, KeepsTheBits) {
  OpTester t("BitCast", 26);
  t.attr("to", 6).input<float>({2}, {1, -0.0F}).expect<int32_t>(0, {2}, {0x3f800000, INT32_MIN});
  t.run();
  OpTester size("BitCast", 26);
  size.attr("to", 7).input<float>({1}, {1}).outputs(1).fails("float cannot be seen as int64");
  OpTester strings("BitCast", 26);
  strings.attr("to", 8).input<float>({1}, {1}).outputs(1).fails("string");
}

}  // namespace
}  // namespace folio
