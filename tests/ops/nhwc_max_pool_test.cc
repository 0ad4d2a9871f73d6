#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(NhwcMaxPool, PoolsEachChannel) {
  OpTester t("NhwcMaxPool", 1, "com.microsoft");
  t.attr_ints("kernel_shape", {2, 2}).attr_ints("pads", {0, 0, 1, 1});
  t.attr_ints("strides", {2, 2});
  // 3 x 3 pixels of two channels
  t.input<int8_t>({1, 3, 3, 2}, {1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8, 9, -9});
  t.expect<int8_t>(0, {1, 2, 2, 2}, {5, -1, 6, -3, 8, -7, 9, -9});
  t.run();
}

// Against a loop over the taps of each output.
template <typename T>
void expect_largest(int64_t channels, int64_t kernel, int64_t stride, int64_t pad,
                    int64_t dilation) {
  constexpr int64_t kHeight = 7, kWidth = 23;
  const auto outputs = [&](int64_t in) {
    return (in + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  };
  const auto at = [&](int64_t h, int64_t v, int64_t c) {
    return static_cast<T>(h * 37 + v * 91 + c * 53 + h * v);
  };
  std::vector<T> x, y;
  for (int64_t h = 0; h < kHeight; ++h) {
    for (int64_t v = 0; v < kWidth; ++v) {
      for (int64_t c = 0; c < channels; ++c) x.push_back(at(h, v, c));
    }
  }
  const auto largest = [&](int64_t h, int64_t v, int64_t c) {
    T best = std::numeric_limits<T>::lowest();
    for (int64_t i = 0; i < kernel * kernel; ++i) {
      const int64_t row = h * stride - pad + i / kernel * dilation;
      const int64_t column = v * stride - pad + i % kernel * dilation;
      const bool inside = row >= 0 && row < kHeight && column >= 0 && column < kWidth;
      if (inside) best = std::max(best, at(row, column, c));
    }
    return best;
  };
  for (int64_t h = 0; h < outputs(kHeight); ++h) {
    for (int64_t v = 0; v < outputs(kWidth); ++v) {
      for (int64_t c = 0; c < channels; ++c) y.push_back(largest(h, v, c));
    }
  }
  SCOPED_TRACE(testing::Message() << channels << " channels, kernel " << kernel << ", stride "
                                  << stride << ", pad " << pad << ", dilation " << dilation);
  OpTester t("NhwcMaxPool", 1, "com.microsoft");
  t.attr_ints("kernel_shape", {kernel, kernel}).attr_ints("pads", {pad, pad, pad, pad});
  t.attr_ints("strides", {stride, stride}).attr_ints("dilations", {dilation, dilation});
  t.input<T>({1, kHeight, kWidth, channels}, x);
  t.expect<T>(0, {1, outputs(kHeight), outputs(kWidth), channels}, y);
  t.run();
}

TEST(NhwcMaxPool, WindowsOfAllKinds) {
  for (const int64_t channels : {1, 3, 31, 32, 70}) {
    for (const int64_t stride : {1, 2, 3}) {
      expect_largest<uint8_t>(channels, 3, stride, 1, 1);
      expect_largest<int8_t>(channels, 3, stride, 1, 1);
      expect_largest<int8_t>(channels, 1, stride, 0, 1);
      expect_largest<uint8_t>(channels, 2, stride, 0, 1);
      expect_largest<int8_t>(channels, 3, stride, 2, 3);
      expect_largest<uint8_t>(channels, 6, stride, 5, 1);  // more taps than are taken at once
    }
  }
}

TEST(NhwcMaxPool, WindowsWiderThanTheImage) {
  expect_largest<int8_t>(5, 7, 2, 6, 1);
  expect_largest<uint8_t>(5, 2, 1, 13, 24);
}

TEST(NhwcMaxPool, FloatsAreRefused) {
  OpTester t("NhwcMaxPool", 1, "com.microsoft");
  t.attr_ints("kernel_shape", {1});
  t.input<float>({1, 1, 1}, {0});
  t.outputs(1).fails("channels last");
}

}  // namespace
}  // namespace folio
