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

TEST(MatMulBnb4, OfNoRowsIsNothing) {
  OpTester t("MatMulBnb4", 1, "com.microsoft");
  t.attr("K", 64).attr("N", 2).attr("block_size", 64).attr("quant_type", 1);
  t.input<float>({0, 64}, {}).input<uint8_t>({64}, std::vector<uint8_t>(64));
  t.input<float>({2}, {1, 2});
  t.expect<float>(0, {0, 2}, {});
  t.run();
}

// In rows of whole blocks and in others, of few rows and of many: what code after code gives.
TEST(MatMulBnb4, EveryFormIsTheSumOfItsProducts) {
  struct Form {
    int64_t k, n, block, trans = 1;
  };
  for (const auto& [k, n, block, trans] : {Form{64, 5, 64},
                                           {192, 37, 32},
                                           {640, 70, 128},
                                           {48, 20, 16},
                                           {33, 6, 32},
                                           {96, 4, 64},
                                           {415, 37, 64},
                                           {37, 45, 16, 0},
                                           {64, 3, 32, 0},
                                           {5, 130, 64, 0}}) {
    const int64_t depth = trans != 0 ? k : n;
    const int64_t width = trans != 0 ? n : k;
    for (const int64_t rows : {1, 2, 3, 4, 5, 40}) {
      SCOPED_TRACE(testing::Message() << k << " x " << n << " in blocks of " << block << ", "
                                      << rows << " rows, transB " << trans);
      std::vector<float> a(static_cast<size_t>(rows * depth));
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 19) - 9;
      std::vector<uint8_t> codes(static_cast<size_t>((k * n + 1) / 2));
      for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 37 + i / 7);
      std::vector<float> scales(static_cast<size_t>((k * n + block - 1) / block));
      for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<float>(1 + i % 5);
      // FP4, in twelfths, but for 1/192.
      const double levels[8] = {0, 1.0 / 192, 8.0 / 12, 1, 4.0 / 12, 0.5, 2.0 / 12, 0.25};
      std::vector<float> want;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < width; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < depth; ++p) {
            const auto at = static_cast<size_t>(trans != 0 ? j * k + p : p * k + j);
            const int code = at % 2 == 0 ? codes[at / 2] >> 4 : codes[at / 2] & 15;
            const double level = code < 8 ? levels[code] : -levels[code - 8];
            sum += static_cast<double>(a[static_cast<size_t>(i * depth + p)]) * level *
                   static_cast<double>(scales[at / static_cast<size_t>(block)]);
          }
          want.push_back(static_cast<float>(sum));
        }
      }
      OpTester t("MatMulBnb4", 1, "com.microsoft");
      t.attr("K", k).attr("N", n).attr("block_size", block).attr("quant_type", 0);
      t.attr("transB", trans);
      t.input<float>({rows, depth}, a);
      t.input<uint8_t>({static_cast<int64_t>(codes.size())}, codes);
      t.input<float>({static_cast<int64_t>(scales.size())}, scales);
      t.expect<float>(0, {rows, width}, want, 1e-2);
      t.run();
    }
  }
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
