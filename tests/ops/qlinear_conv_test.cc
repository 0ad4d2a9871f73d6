#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(QLinearConv, QuantizesSumsWithBias) {
  OpTester t("QLinearConv", 10);
  t.input<uint8_t>({1, 1, 2, 2}, {1, 2, 3, 4});
  t.input<float>({}, {0.5F});
  t.input<uint8_t>({}, {1});
  t.input<uint8_t>({1, 1, 1, 1}, {3});
  t.input<float>({}, {2});
  t.input<uint8_t>({}, {1});
  t.input<float>({}, {2});
  t.input<uint8_t>({}, {10});
  t.input<int32_t>({1}, {4});
  t.expect<uint8_t>(0, {1, 1, 2, 2}, {12, 13, 14, 15});
  t.run();
}

TEST(QLinearConv, ScalesEachOutputChannel) {
  OpTester t("QLinearConv", 10);
  t.input<int8_t>({1, 1, 2}, {-10, 10});
  t.input<float>({1}, {1});
  t.input<int8_t>({1}, {0});
  t.input<int8_t>({2, 1, 1}, {2, 3});
  t.input<float>({2}, {1, 10});
  t.input<int8_t>({2}, {0, 1});
  t.input<float>({}, {2});
  t.input<int8_t>({}, {0});
  t.expect<int8_t>(0, {1, 2, 2}, {-10, 10, -100, 100});
  t.run();
}

TEST(QLinearConv, ScalesThatFitNoChannelAreAnError) {
  OpTester t("QLinearConv", 10);
  t.input<uint8_t>({1, 1, 2}, {1, 2});
  t.input<float>({}, {1});
  t.input<uint8_t>({}, {0});
  t.input<uint8_t>({1, 1, 1}, {1});
  t.input<float>({3}, {1, 2, 3});
  t.input<uint8_t>({}, {0});
  t.input<float>({}, {1});
  t.input<uint8_t>({}, {0});
  t.outputs(1).fails("does not fit");
}

TEST(ConvInteger, IsExactBeyondFloatsMantissa) {
  // 300 products of 255 * 255 need 25 bits.
  OpTester t("ConvInteger", 10);
  t.input<uint8_t>({1, 300, 2}, std::vector<uint8_t>(600, 255));
  t.input<uint8_t>({1, 300, 1}, std::vector<uint8_t>(300, 255));
  t.expect<int32_t>(0, {1, 1, 2}, {300 * 255 * 255, 300 * 255 * 255});
  t.run();
}

TEST(ConvInteger, PadsWithTheZeroPoint) {
  OpTester t("ConvInteger", 10);
  t.attr_ints("pads", {1, 1}).attr("group", 2);
  t.input<uint8_t>({1, 2, 2}, {2, 3, 4, 5});
  t.input<uint8_t>({2, 1, 3}, {1, 10, 100, 1, 1, 1});
  t.input<uint8_t>({}, {1});
  t.expect<int32_t>(0, {1, 2, 2}, {210, 21, 7, 7});
  t.run();
}

}  // namespace
}  // namespace folio
