// Pooling of domain folio.nhwc: by hand where small, else against ONNX's pooling between
// transposes.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// One image of one channel looks the same in both forms.
void expect_same(const char* type, const std::vector<int64_t>& kernel,
                 const std::vector<int64_t>& pads, const std::vector<int64_t>& strides,
                 const std::vector<int64_t>& dilations, int ceil_mode, int count_pad) {
  SCOPED_TRACE(std::string(type) + " ceil_mode " + std::to_string(ceil_mode) + " count " +
               std::to_string(count_pad));
  std::vector<float> x;
  for (int i = 0; i < 2 * 7 * 8; ++i) x.push_back(std::sin(0.9F * static_cast<float>(i)));
  const auto set = [&](OpTester* t) {
    t->attr_ints("kernel_shape", kernel).attr_ints("pads", pads).attr_ints("strides", strides);
    t->attr_ints("dilations", dilations).attr("ceil_mode", ceil_mode);
    if (count_pad) t->attr("count_include_pad", 1);
  };
  OpTester plain(type, 19);
  set(&plain);
  plain.input<float>({2, 1, 7, 8}, x).outputs(1).run();
  const Shape out = plain.output(0).tensor().shape();
  OpTester t(type, 1, "folio.nhwc");
  set(&t);
  t.input<float>({2, 7, 8, 1}, x);
  t.expect<float>(0, {out[0], out[2], out[3], 1}, plain.output_values<float>(0), 1e-6);
  t.run();
}

TEST(NhwcPool, IsThePoolingOfOnnx) {
  for (const int ceil_mode : {0, 1}) {
    expect_same("MaxPool", {3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}, ceil_mode, 0);
    expect_same("MaxPool", {2, 3}, {0, 2, 1, 0}, {1, 3}, {2, 1}, ceil_mode, 0);
    // Large windows that overlap: rows first, then columns.
    expect_same("MaxPool", {5, 5}, {2, 2, 2, 2}, {1, 1}, {1, 1}, ceil_mode, 0);
    expect_same("MaxPool", {7, 7}, {3, 3, 3, 3}, {1, 1}, {1, 1}, ceil_mode, 0);
    expect_same("MaxPool", {5, 4}, {4, 1, 0, 2}, {1, 2}, {1, 1}, ceil_mode, 0);
    expect_same("MaxPool", {6, 3}, {3, 0, 3, 2}, {1, 1}, {1, 3}, ceil_mode, 0);
    for (const int count_pad : {0, 1}) {
      expect_same("AveragePool", {3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}, ceil_mode, count_pad);
      expect_same("AveragePool", {3, 2}, {2, 0, 0, 1}, {3, 1}, {1, 2}, ceil_mode, count_pad);
      expect_same("AveragePool", {5, 5}, {2, 2, 2, 2}, {1, 1}, {1, 1}, ceil_mode, count_pad);
      expect_same("AveragePool", {7, 7}, {3, 3, 3, 3}, {1, 1}, {1, 1}, ceil_mode, count_pad);
      expect_same("AveragePool", {5, 4}, {4, 1, 0, 2}, {1, 2}, {1, 1}, ceil_mode, count_pad);
      expect_same("AveragePool", {6, 3}, {3, 0, 3, 2}, {1, 1}, {1, 3}, ceil_mode, count_pad);
    }
  }
}

TEST(NhwcPool, IsNanWhereALargeWindowHasOne) {
  std::vector<float> x(9 * 9 * 3, 1.0F);
  x[(4 * 9 + 2) * 3 + 1] = NAN;  // row 4, column 2, channel 1
  OpTester t("MaxPool", 1, "folio.nhwc");
  t.attr_ints("kernel_shape", {5, 5}).attr_ints("pads", {2, 2, 2, 2});
  t.input<float>({1, 9, 9, 3}, x).outputs(1).run();
  const std::vector<float> y = t.output_values<float>(0);
  for (int i = 0; i < 9; ++i) {
    for (int j = 0; j < 9; ++j) {
      for (int c = 0; c < 3; ++c) {
        const bool sees = c == 1 && i >= 2 && i <= 6 && j <= 4;
        EXPECT_EQ(std::isnan(y[static_cast<size_t>((i * 9 + j) * 3 + c)]), sees) << i << ' ' << j;
      }
    }
  }
}

TEST(NhwcPool, ReducesEachChannelAlone) {
  OpTester max("MaxPool", 1, "folio.nhwc");
  max.attr_ints("kernel_shape", {2});
  max.input<float>({1, 3, 2}, {1, -1, 3, -3, 2, -2});
  max.expect<float>(0, {1, 2, 2}, {3, -1, 3, -2});
  max.run();
  OpTester average("GlobalAveragePool", 1, "folio.nhwc");
  average.input<float>({1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 6, 60});
  average.expect<float>(0, {1, 1, 1, 2}, {3, 30}, 1e-6);
  average.run();
  OpTester most("GlobalMaxPool", 1, "folio.nhwc");
  most.input<float>({1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 6, 60});
  most.expect<float>(0, {1, 1, 1, 2}, {6, 60});
  most.run();
}

TEST(NhwcPool, WindowsLargerThanTheImageAreAnError) {
  OpTester t("MaxPool", 1, "folio.nhwc");
  t.attr_ints("kernel_shape", {3});
  t.input<float>({1, 2, 1}, {1, 2}).outputs(1).fails("the window does not fit");
}

}  // namespace
}  // namespace folio
