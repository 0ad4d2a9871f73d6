#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(ByteTable, TakesEachByteFromTheTable) {
  std::vector<uint8_t> table;
  for (int i = 0; i < 256; ++i) table.push_back(static_cast<uint8_t>(255 - i));
  OpTester t("ByteTable", 1, "folio");
  t.input<int8_t>({2, 2}, {0, -1, 127, -128}).input<uint8_t>({256}, table);
  t.expect<uint8_t>(0, {2, 2}, {255, 0, 128, 127});
  t.expect_inferred(0, "tensor(uint8)[2,2]");
  t.run();
}

TEST(ByteTable, RefusesOtherSizesAndTypes) {
  OpTester t("ByteTable", 1, "folio");
  t.input<int8_t>({1}, {0}).input<uint8_t>({255}, std::vector<uint8_t>(255));
  t.outputs(1).fails("a table of 255");
  OpTester u("ByteTable", 1, "folio");
  u.input<int16_t>({1}, {0}).input<uint8_t>({256}, std::vector<uint8_t>(256));
  u.outputs(1).fails("int16");
}

}  // namespace
}  // namespace folio
