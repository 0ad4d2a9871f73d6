#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(GatherBlockQuantized, WidensTheRowsItPicks) {
  // rows of 17: a block of 16 and one of 1
  OpTester t("GatherBlockQuantized", 1, "com.microsoft");
  t.attr("bits", 8).attr("block_size", 16);
  std::vector<uint8_t> data(34, 130);
  data[16] = 129;
  data[17] = 128;
  t.input<uint8_t>({2, 17}, data);
  t.input<int64_t>({2}, {1, -2});
  t.input<float>({2, 2}, {0.5f, 10, 1, 100});
  std::vector<float> expected(34, 2);
  expected[0] = 0;
  expected[16] = 200;
  std::fill(expected.begin() + 17, expected.begin() + 33, 1.0f);
  expected[33] = 10;
  t.expect<float>(0, {2, 17}, expected);
  t.run();
}

TEST(GatherBlockQuantized, UnpacksBytesAndZeroPoints) {
  OpTester t("GatherBlockQuantized", 1, "com.microsoft");
  t.attr("bits", 4).attr("block_size", 16);
  std::vector<uint8_t> data(16, 0x21);  // rows of 16 codes: 1, 2, 1, 2 ...
  t.input<uint8_t>({2, 8}, data);
  t.input<int32_t>({1}, {0});
  t.input<float>({2, 1}, {2, 3});
  t.input<uint8_t>({2, 1}, {0xf1, 0xf0});
  std::vector<float> expected;
  for (int i = 0; i < 8; ++i) expected.insert(expected.end(), {0, 2});
  t.expect<float>(0, {1, 16}, expected);
  t.run();
}

TEST(GatherBlockQuantized, ScalesMayBeHalves) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    OpTester t("GatherBlockQuantized", 1, "com.microsoft");
    t.attr("bits", 4).attr("block_size", 16);
    t.input<uint8_t>({2, 17}, std::vector<uint8_t>(34, 0x6A));  // rows of 34 codes: 10, 6, ...
    t.input<int64_t>({1}, {1});
    t.input_as(dtype, {2, 3}, {1, 1, 1, 0.5, 4, -1});
    std::vector<double> expected;
    for (int i = 0; i < 34; ++i) {
      expected.push_back((i % 2 == 0 ? 2 : -2) * (i < 16 ? 0.5 : i < 32 ? 4 : -1));
    }
    t.expect_as(0, dtype, {1, 34}, expected);
    t.run();
  }
}

TEST(GatherBlockQuantized, BlocksMayRunAlongAnotherAxis) {
  OpTester t("GatherBlockQuantized", 1, "com.microsoft");
  t.attr("gather_axis", 1).attr("quantize_axis", 0).attr("block_size", 16);
  t.input_value(make_raw_tensor(DType::kInt4, {2, 2}, {0xf1, 0x72}));  // 1, -1, 2, 7
  t.input<int64_t>({}, {1});
  t.input<float>({1, 2}, {1, 10});
  t.expect<float>(0, {2}, {-10, 70});
  t.run();
}

TEST(GatherBlockQuantized, IndicesOutsideGiveZeros) {
  OpTester t("GatherBlockQuantized", 1, "com.microsoft");
  t.attr("bits", 8).attr("block_size", 16);
  t.input<uint8_t>({1, 1}, {129});
  t.input<int64_t>({3}, {INT64_MAX, 0, INT64_MIN});
  t.input<float>({1, 1}, {1});
  t.expect<float>(0, {3, 1}, {0, 1, 0});
  t.run();
}

TEST(GatherBlockQuantized, ScalesMustFitTheBlocks) {
  OpTester t("GatherBlockQuantized", 1, "com.microsoft");
  t.attr("bits", 8).attr("block_size", 16);
  t.input<uint8_t>({1, 17}, std::vector<uint8_t>(17, 0));
  t.input<int64_t>({1}, {0});
  t.input<float>({1, 1}, {1});
  t.outputs(1).fails("expected [1,2]");
}

}  // namespace
}  // namespace folio
