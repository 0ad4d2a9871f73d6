#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(MatMulBnb4, HighBitsHoldTheFirstOfTwoCodes) {
  for (const int64_t nf4 : {0, 1}) {
    OpTester t("MatMulBnb4", 1, "com.microsoft");
    t.attr("K", 2).attr("N", 2).attr("block_size", 16).attr("quant_type", nf4);
    t.input<float>({1, 2}, {10, 1});
    // FP4: 1, 0.5 and -1, 0.25; NF4: 1, -1 and 0, 1
    using Bytes = std::vector<uint8_t>;
    t.input<uint8_t>({2}, nf4 ? Bytes{0xf0, 0x7f} : Bytes{0x35, 0xb7});
    t.input<float>({1}, {2});
    using Floats = std::vector<float>;
    t.expect<float>(0, {1, 2}, nf4 ? Floats{18, 2} : Floats{21, -19.5f}, 1e-6);
    t.run();
  }
}

TEST(MatMulBnb4, MayMultiplyByTheWeightAsItStands) {
  OpTester t("MatMulBnb4", 1, "com.microsoft");
  t.attr("K", 2).attr("N", 2).attr("block_size", 16).attr("quant_type", 0).attr("transB", 0);
  t.input<float>({1, 2}, {10, 1});
  t.input<uint8_t>({2}, {0x35, 0xb7});
  t.input<float>({1}, {2});
  t.expect<float>(0, {1, 2}, {18, 10.5f}, 1e-6);
  t.run();
}

TEST(MatMulBnb4, SizesThatDoNotFitAreRefused) {
  OpTester t("MatMulBnb4", 1, "com.microsoft");
  t.attr("K", 2).attr("N", 1 << 29).attr("block_size", 16).attr("quant_type", 0);
  t.input<float>({1, 2}, {10, 1});
  t.input<uint8_t>({2}, {0x35, 0xb7});
  t.input<float>({1}, {2});
  t.outputs(1).fails("B has 2 bytes");
}

}  // namespace
}  // namespace folio
