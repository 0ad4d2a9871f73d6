#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(QuantizeLinear, RoundsTiesToEvenAndSaturates) {
  OpTester t("QuantizeLinear", 10);
  t.input<float>({6}, {0, 2, 3, 1000, -254, -1000});
  t.input<float>({}, {2});
  t.input<uint8_t>({}, {128});
  t.expect<uint8_t>(0, {6}, {128, 129, 130, 255, 1, 0});
  t.run();
}

TEST(QuantizeLinear, ScalesAlongAnAxis) {
  OpTester t("QuantizeLinear", 13);
  t.attr("axis", 0);
  t.input<float>({2, 2}, {2, 4, 20, 40});
  t.input<float>({2}, {2, 10});
  t.input<int8_t>({2}, {0, 1});
  t.expect<int8_t>(0, {2, 2}, {1, 2, 3, 5});
  t.run();
}

TEST(DequantizeLinear, BlocksMayEndShort) {
  OpTester t("DequantizeLinear", 21);
  t.attr("axis", 1).attr("block_size", 2);
  t.input<uint8_t>({1, 3}, {3, 4, 5});
  t.input<float>({1, 2}, {2, 10});
  t.input<uint8_t>({1, 2}, {1, 0});
  t.expect<float>(0, {1, 3}, {4, 6, 50});
  t.run();
}

TEST(DequantizeLinear, ReadsInt4LowBitsFirst) {
  OpTester t("DequantizeLinear", 21);
  t.input_value(make_raw_tensor(DType::kInt4, {3}, {0xF1, 0x08}));
  t.input<float>({}, {2});
  t.expect<float>(0, {3}, {2, -2, -16});
  t.run();
}

TEST(DequantizeLinear, ScaleOfAnotherLengthIsAnError) {
  OpTester t("DequantizeLinear", 13);
  t.input<uint8_t>({2, 2}, {1, 2, 3, 4});
  t.input<float>({3}, {1, 2, 3});
  t.outputs(1).fails("is neither a scalar nor [2]");
}

TEST(DynamicQuantizeLinear, FollowsTheSpecExample) {
  OpTester t("DynamicQuantizeLinear", 11);
  t.input<float>({6}, {0, 2, -3, -2.5f, 1.34f, 0.5f});
  t.expect<uint8_t>(0, {6}, {153, 255, 0, 26, 221, 179});
  t.expect<float>(1, {}, {0.0196078438f}, 1e-7);
  t.expect<uint8_t>(2, {}, {153});
  t.run();
}

TEST(MatMulInteger, FollowsTheSpecExample) {
  OpTester t("MatMulInteger", 10);
  t.input<uint8_t>({4, 3}, {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0});
  t.input<uint8_t>({3, 2}, {1, 4, 2, 5, 3, 6});
  t.input<uint8_t>({1}, {12});
  t.input<uint8_t>({1}, {0});
  t.expect<int32_t>(0, {4, 2}, {-38, -83, -44, -98, -50, -113, -56, -128});
  t.run();
}

TEST(MatMulInteger, IsExactBeyondFloatsMantissa) {
  // 600 products of 255 * 255 need 26 bits.
  OpTester t("MatMulInteger", 10);
  t.input<uint8_t>({1, 600}, std::vector<uint8_t>(600, 255));
  t.input<uint8_t>({600, 1}, std::vector<uint8_t>(600, 255));
  t.expect<int32_t>(0, {1, 1}, {600 * 255 * 255});
  t.run();
}

}  // namespace
}  // namespace folio
