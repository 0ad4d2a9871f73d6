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

TEST(QuantizeLinear, RoundsToFloat8AsCastDoes) {
  // e4m3fn: 1 is 0x38, ties between 16 and 18 go to 16 (0x58), 448 (0x7e) is the largest.
  for (const int saturate : {1, 0}) {
    OpTester t("QuantizeLinear", 19);
    t.attr("saturate", saturate);
    t.input<float>({4}, {2, 34, -2, 2000});
    t.input<float>({}, {2});
    t.input_value(make_raw_tensor(DType::kFloat8E4M3FN, {}, {0}));
    const uint8_t most = saturate ? 0x7e : 0x7f;
    t.expect_value(0, make_raw_tensor(DType::kFloat8E4M3FN, {4}, {0x38, 0x58, 0xb8, most}));
    t.run();
  }
}

TEST(QuantizeLinear, Float8HasAnOffsetAndScalesAlongAnAxis) {
  OpTester t("QuantizeLinear", 19);
  t.attr("axis", 0);
  t.input<float>({2, 2}, {2, 4, 20, 40});
  t.input<float>({2}, {2, 10});
  t.input_value(make_raw_tensor(DType::kFloat8E5M2, {2}, {0x3c, 0}));  // 1, 0
  t.expect_value(0, make_raw_tensor(DType::kFloat8E5M2, {2, 2}, {0x40, 0x42, 0x40, 0x44}));
  t.run();
}

TEST(QuantizeLinear, PacksFloat4LowBitsFirst) {
  // 1 is 2, -6 is 15, 0.5 is 1, and what is above 6 is 7.
  OpTester t("QuantizeLinear", 23);
  t.attr("output_dtype", static_cast<int64_t>(DType::kFloat4E2M1));
  t.input<float>({5}, {2, -12, 1, 100, 2});
  t.input<float>({}, {2});
  t.expect_value(0, make_raw_tensor(DType::kFloat4E2M1, {5}, {0xf2, 0x71, 0x02}));
  t.expect_inferred(0, "tensor(float4e2m1)[5]").run();
}

TEST(QuantizeLinear, AnOutputTypeOtherThanTheZeroPointsIsAnError) {
  OpTester t("QuantizeLinear", 21);
  t.attr("output_dtype", static_cast<int64_t>(DType::kInt8));
  t.input<float>({1}, {2}).input<float>({}, {2}).input<uint8_t>({}, {0});
  t.outputs(1).fails("the zero point is uint8, output_dtype is int8");
  OpTester scale("QuantizeLinear", 24);
  scale.attr("output_dtype", static_cast<int64_t>(DType::kFloat8E8M0));
  scale.input<float>({1}, {2}).input<float>({}, {2});
  scale.outputs(1).fails("cannot quantize to float8e8m0");
}

TEST(DequantizeLinear, WidensFloat8AndFloat4) {
  OpTester eight("DequantizeLinear", 19);
  eight.input_value(make_raw_tensor(DType::kFloat8E4M3FN, {3}, {0x38, 0xd8, 0x7e}));
  eight.input<float>({}, {2});
  eight.expect<float>(0, {3}, {2, -32, 896}).run();
  OpTester four("DequantizeLinear", 23);
  four.attr("axis", 0).attr("block_size", 2);
  four.input_value(make_raw_tensor(DType::kFloat4E2M1, {3}, {0xf2, 0x07}));  // 1, -6, 6
  four.input<float>({2}, {2, 10});
  four.input_value(make_raw_tensor(DType::kFloat4E2M1, {2}, {0x02}));  // 1, 0
  four.expect<float>(0, {3}, {0, -14, 60}).run();
}

TEST(DequantizeLinear, ScalesMayBePowersOfTwo) {
  OpTester t("DequantizeLinear", 24);
  t.attr("axis", 0).attr("block_size", 1).attr("output_dtype", static_cast<int64_t>(DType::kFloat));
  t.input<int8_t>({2}, {3, -5});
  t.input_value(make_raw_tensor(DType::kFloat8E8M0, {2}, {128, 126}));  // 2, 0.5
  t.expect<float>(0, {2}, {6, -2.5F}).run();
  OpTester untyped("DequantizeLinear", 24);
  untyped.input<int8_t>({1}, {3});
  untyped.input_value(make_raw_tensor(DType::kFloat8E8M0, {}, {128}));
  untyped.outputs(1).fails("cannot dequantize to float8e8m0");
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
