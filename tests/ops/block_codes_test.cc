#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

OpTester codes(DType dtype, const Shape& shape, const std::vector<uint8_t>& bytes, int trans,
               int row_bytes) {
  OpTester t("BlockCodes", 1, "folio");
  t.attr("trans", trans).attr("row_bytes", row_bytes);
  t.input_value(Value(make_raw_tensor(dtype, shape, bytes)));
  return t;
}

TEST(BlockCodes, PacksRowsOfEveryWidth) {
  // uint4 [2, 3]: 1 2 3 | 4 5 6
  OpTester rows = codes(DType::kUint4, {2, 3}, {0x21, 0x43, 0x65}, 0, 3);
  rows.expect<uint8_t>(0, {2, 3}, {0x21, 0x03, 0, 0x54, 0x06, 0}).run();
  OpTester columns = codes(DType::kUint4, {2, 3}, {0x21, 0x43, 0x65}, 1, 1);
  columns.expect<uint8_t>(0, {3, 1}, {0x41, 0x52, 0x63}).run();
  // int4: -8 and 7 become 0 and 15; int2: 0 1 -2 -1 become 2 3 0 1; int8: by 128
  codes(DType::kInt4, {1, 2}, {0x78}, 0, 1).expect<uint8_t>(0, {1, 1}, {0xf0}).run();
  codes(DType::kInt2, {1, 4}, {0xe4}, 0, 1).expect<uint8_t>(0, {1, 1}, {0x4e}).run();
  codes(DType::kInt8, {2, 1}, {0x80, 0x7f}, 1, 2).expect<uint8_t>(0, {1, 2}, {0, 255}).run();
}

TEST(BlockCodes, RefusesWhatDoesNotFit) {
  codes(DType::kUint4, {2, 3}, {1, 2, 3}, 0, 1).outputs(1).fails("3 codes do not fit rows of 1");
  codes(DType::kUint4, {6}, {1, 2, 3}, 0, 3).outputs(1).fails("two dims");
  codes(DType::kUint8, {1, 1}, {1}, 0, -1).outputs(1).fails("row_bytes");
  OpTester t("BlockCodes", 1, "folio");
  t.attr("row_bytes", 8);
  t.input<float>({1, 1}, {1.0f});
  t.outputs(1).fails("float");
}

}  // namespace
}  // namespace folio
