#include <gtest/gtest.h>

#include <cmath>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(MaxPool, GivesIndicesOfTheWholeTensor) {
  OpTester t("MaxPool", 12);
  t.attr_ints("kernel_shape", {2}).attr_ints("strides", {2});
  t.input<float>({1, 2, 4}, {1, 5, 3, 2, 9, 8, 0, 7});
  t.expect<float>(0, {1, 2, 2}, {5, 3, 9, 7});
  t.expect<int64_t>(1, {1, 2, 2}, {1, 2, 4, 7});
  t.run();
}

TEST(AveragePool, CountsPaddingOnlyWhenAsked) {
  for (const int count : {0, 1}) {
    OpTester t("AveragePool", 11);
    t.attr_ints("kernel_shape", {2}).attr_ints("pads", {1, 0}).attr("count_include_pad", count);
    t.input<float>({1, 1, 2}, {4, 6});
    t.expect<float>(0, {1, 1, 2}, {count ? 2.0F : 4.0F, 5});
    t.run();
  }
}

TEST(GlobalAveragePool, TakesAllSpatialDims) {
  OpTester t("GlobalAveragePool", 1);
  t.input_as(DType::kFloat16, {1, 2, 1, 2}, {1, 3, 5, 9});
  t.expect_as(0, DType::kFloat16, {1, 2, 1, 1}, {2, 7});
  t.run();
}

TEST(GlobalMaxPool, IsNanWhereAnyElementIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x(3 * 40);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 11) % 37) - 50.0F;
  x[45] = nan;
  x[80] = 7;
  OpTester t("GlobalMaxPool", 1);
  t.input<float>({1, 3, 5, 8}, x).outputs(1).run();
  const std::vector<float> y = t.output_values<float>(0);
  EXPECT_EQ(y[0], *std::max_element(x.begin(), x.begin() + 40));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 7);
}

TEST(LpPool, IsTheNormOfAWindow) {
  OpTester t("LpPool", 18);
  t.attr_ints("kernel_shape", {2});
  t.input<double>({1, 1, 2}, {3, 4});
  t.expect<double>(0, {1, 1, 1}, {5});
  t.run();
}

// The spec's ceil((2 - 3) / 2 + 1) is 1 window, which hangs over the end; its floor is none.
TEST(MaxPool, CeilModeCountsAWindowThatHangsOver) {
  OpTester t("MaxPool", 10);
  t.attr_ints("kernel_shape", {3}).attr_ints("strides", {2}).attr("ceil_mode", 1);
  t.input<float>({1, 1, 2}, {3, 5}).expect<float>(0, {1, 1, 1}, {5}).run();
}

TEST(AveragePool, CeilModeCountsWhatAWindowThatHangsOverHas) {
  for (const int count_pad : {0, 1}) {
    OpTester t("AveragePool", 19);
    t.attr_ints("kernel_shape", {3}).attr_ints("strides", {2}).attr("ceil_mode", 1);
    t.attr("count_include_pad", count_pad);
    t.input<float>({1, 1, 2}, {3, 5}).expect<float>(0, {1, 1, 1}, {4}).run();
  }
}

TEST(MaxPool, CeilModeNeedsAWindowThatBeginsBeforeTheEnd) {
  OpTester t("MaxPool", 10);
  t.attr_ints("kernel_shape", {4}).attr_ints("strides", {2}).attr("ceil_mode", 1);
  t.input<float>({1, 1, 2}, {3, 5}).outputs(1).fails("the window does not fit");
}

TEST(MaxPool, WindowsLargerThanTheInputAreAnError) {
  OpTester t("MaxPool", 12);
  t.attr_ints("kernel_shape", {3});
  t.input<float>({1, 1, 2}, {1, 2});
  t.outputs(1).fails("the window does not fit");
}

// Windows of every kind over lines: doubles go window by window, floats line by line.
TEST(MaxPool, OfFloatsAgreesWithDoubles) {
  struct Case {
    std::vector<int64_t> kernel, strides, dilations, pads;
  };
  const Case cases[] = {
      {{3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}}, {{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
      {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, {{5, 2}, {1, 3}, {1, 2}, {2, 1, 0, 1}},
      {{1, 4}, {3, 1}, {1, 1}, {0, 3, 0, 2}}, {{2, 3}, {1, 5}, {3, 2}, {1, 0, 1, 2}}};
  for (const Case& c : cases) {
    for (const char* type : {"MaxPool", "AveragePool"}) {
      for (const int ceil_mode : {0, 1}) {
        std::vector<float> x;
        for (int64_t i = 0; i < 3 * 11 * 19; ++i)
          x.push_back(static_cast<float>(i * 7919 % 101) - 60);
        if (type[0] == 'M') x[100] = std::numeric_limits<float>::quiet_NaN();
        const auto with = [&](auto tag) {
          using T = decltype(tag);
          auto t = std::make_unique<OpTester>(type, 19);
          t->attr_ints("kernel_shape", c.kernel).attr_ints("strides", c.strides);
          t->attr_ints("dilations", c.dilations)
              .attr_ints("pads", c.pads)
              .attr("ceil_mode", ceil_mode);
          t->template input<T>({1, 3, 11, 19}, std::vector<T>(x.begin(), x.end())).outputs(1).run();
          return t->template output_values<T>(0);
        };
        const std::vector<float> got = with(float{});
        const std::vector<double> want = with(double{});
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) {
          if (std::isnan(want[i])) {
            ASSERT_TRUE(std::isnan(got[i])) << type << ' ' << i;
          } else {
            ASSERT_NEAR(got[i], want[i], 1e-4) << type << ' ' << i;
          }
        }
      }
    }
  }
}

// A window of some kind over an image of 1 to 3 dims, from a sequence of numbers that repeats.
struct PoolCase {
  std::vector<int64_t> shape, kernel, strides, dilations, pads;
  int count_pad = 0;
  int ceil_mode = 0;

  std::string text() const {
    std::string out;
    for (const auto* list : {&shape, &kernel, &strides, &dilations, &pads}) {
      for (const int64_t value : *list) out += std::to_string(value) + ' ';
      out += "| ";
    }
    return out + std::to_string(count_pad) + std::to_string(ceil_mode);
  }
};

PoolCase some_case(uint32_t seed) {
  uint32_t state = seed * 2654435761U + 12345;
  const auto below = [&](uint32_t n) {
    state = state * 1664525U + 1013904223U;
    return static_cast<int64_t>((state >> 16) % n);
  };
  PoolCase c;
  const int64_t rank = 1 + below(3);
  c.shape = {1 + below(2), 1 + below(3)};
  c.pads.resize(static_cast<size_t>(2 * rank));
  for (int64_t axis = 0; axis < rank; ++axis) {
    c.kernel.push_back(1 + below(below(5) == 0 ? 40 : 5));
    c.strides.push_back(1 + below(3));
    c.dilations.push_back(1 + below(2));
    const int64_t span = (c.kernel.back() - 1) * c.dilations.back() + 1;
    const auto side = static_cast<uint32_t>(below(2) == 0 ? 1 : span);
    c.pads[static_cast<size_t>(axis)] = below(side);
    c.pads[static_cast<size_t>(axis + rank)] = below(side);
    const int64_t longest = rank == 3 ? 12 : axis == 0 ? 40 : 150;
    const int64_t padding =
        c.pads[static_cast<size_t>(axis)] + c.pads[static_cast<size_t>(axis + rank)];
    c.shape.push_back(std::max<int64_t>(1, span - padding) + below(static_cast<uint32_t>(longest)));
  }
  c.count_pad = static_cast<int>(below(2));
  c.ceil_mode = static_cast<int>(below(2));
  return c;
}

template <typename T>
std::vector<T> pooled(const char* type, const PoolCase& c, const std::vector<float>& x) {
  OpTester t(type, 19);
  t.attr_ints("kernel_shape", c.kernel).attr_ints("strides", c.strides);
  t.attr_ints("dilations", c.dilations).attr_ints("pads", c.pads).attr("ceil_mode", c.ceil_mode);
  if (type[0] == 'A') t.attr("count_include_pad", c.count_pad);
  t.input<T>(Shape(Span<const int64_t>(c.shape)), std::vector<T>(x.begin(), x.end()))
      .outputs(1)
      .run();
  return t.output_values<T>(0);
}

// Doubles go window by window; floats many windows at a time. Sums of these floats are exact.
void expect_as_doubles(const PoolCase& c, size_t nan_every) {
  size_t count = 1;
  for (const int64_t dim : c.shape) count *= static_cast<size_t>(dim);
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 7919 % 101) - 60;
  for (size_t i = nan_every; nan_every > 0 && i < count; i += nan_every) {
    x[i] = std::numeric_limits<float>::quiet_NaN();
  }
  for (const char* type : {"MaxPool", "AveragePool"}) {
    const std::vector<float> got = pooled<float>(type, c, x);
    const std::vector<double> want = pooled<double>(type, c, x);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const auto expected = static_cast<float>(want[i]);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(got[i]) : got[i] == expected)
          << type << ' ' << c.text() << " at " << i << ": " << got[i] << ", not " << expected;
    }
  }
}

TEST(Pool, OfFloatsIsThatOfDoubles) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    expect_as_doubles(some_case(seed), seed % 3 == 0 ? 37 : 0);
    if (HasFatalFailure()) return;
  }
}

TEST(Pool, TakesManyRowsOfWidePlanes) {
  const PoolCase cases[] = {
      {{1, 2, 70, 300}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{1, 1, 90, 300}, {3, 2}, {2, 2}, {1, 1}, {1, 0, 0, 1}},
      {{1, 1, 3, 9000}, {2, 50}, {1, 3}, {1, 2}, {1, 20, 1, 20}},
      {{1, 2, 5, 40, 200}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}},
      {{2, 3, 9000}, {4}, {2}, {1}, {1, 2}}};
  for (const PoolCase& c : cases) {
    expect_as_doubles(c, 1001);
    if (HasFatalFailure()) return;
  }
}

TEST(Pool, OfPaddingOnlyIsNeutral) {
  // The outer windows of a row of 2 see nothing of it; with no row at all, none does.
  for (const int64_t rows : {1, 0}) {
    OpTester max("MaxPool", 12);
    max.attr_ints("kernel_shape", {1, 1}).attr_ints("pads", {0, 1, 1 - rows, 1});
    const float low = -std::numeric_limits<float>::infinity();
    std::vector<float> x;
    if (rows == 1) x = {3, 5};
    max.input<float>({1, 1, rows, 2}, x);
    max.expect<float>(0, {1, 1, 1, 4}, {low, rows ? 3 : low, rows ? 5 : low, low}).run();
    OpTester average("AveragePool", 19);
    average.attr_ints("kernel_shape", {1, 1}).attr_ints("pads", {0, 1, 1 - rows, 1});
    average.input<float>({1, 1, rows, 2}, x);
    average.expect<float>(0, {1, 1, 1, 4}, {0, rows ? 3.0F : 0, rows ? 5.0F : 0, 0}).run();
  }
}

TEST(Pool, OfNoImageIsEmpty) {
  for (const char* type : {"MaxPool", "AveragePool"}) {
    OpTester t(type, 12);
    t.attr_ints("kernel_shape", {2, 2});
    t.input<float>({1, 0, 3, 3}, {}).expect<float>(0, {1, 0, 2, 2}, {}).run();
  }
}

TEST(QLinearAveragePool, AveragesWhatTheBytesMean) {
  OpTester t("QLinearAveragePool", 1, "com.microsoft");
  t.attr_ints("kernel_shape", {2});
  t.input<uint8_t>({1, 1, 2}, {2, 4}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<float>({}, {0.5F}).input<uint8_t>({}, {1});
  t.expect<uint8_t>(0, {1, 1, 1}, {7});
  t.run();
}

// As ONNX Runtime 1.30 does: AveragePool counts what lies inside of image and padding.
TEST(QLinearAveragePool, CountsAllOfAWindowWithItsPadding) {
  const std::vector<float> image = {9, 18, 27, 36, 45, 54, 63, 72, 81};
  for (const int64_t last : {0, 1}) {
    OpTester t("QLinearAveragePool", 1, "com.microsoft");
    t.attr_ints("kernel_shape", {2, 2}).attr_ints("strides", {2, 2});
    t.attr("ceil_mode", 1).attr("count_include_pad", 1).attr("channels_last", last);
    const Shape x = last != 0 ? Shape{1, 3, 3, 1} : Shape{1, 1, 3, 3};
    const Shape y = last != 0 ? Shape{1, 2, 2, 1} : Shape{1, 1, 2, 2};
    t.input<uint8_t>(x, {9, 18, 27, 36, 45, 54, 63, 72, 81});
    t.input<float>({}, {1}).input<uint8_t>({}, {0}).input<float>({}, {0.25F});
    t.input<uint8_t>({}, {0}).expect<uint8_t>(0, y, {108, 81, 135, 81}).run();
  }
  OpTester floats("AveragePool", 19);
  floats.attr_ints("kernel_shape", {2, 2}).attr_ints("strides", {2, 2});
  floats.attr("ceil_mode", 1).attr("count_include_pad", 1);
  floats.input<float>({1, 1, 3, 3}, image);
  floats.expect<float>(0, {1, 1, 2, 2}, {27, 40.5F, 67.5F, 81}).run();
}

// Windows that overlap and reach over the border, of channels first and last.
TEST(QLinearAveragePool, WindowsOfEveryChannel) {
  constexpr int64_t kImages = 2, kSide = 5, kChannels = 3;
  const auto code = [](int64_t image, int64_t channel, int64_t h, int64_t v) {
    return static_cast<int8_t>((image * 31 + channel * 53 + h * 17 + v * 7) % 200 - 100);
  };
  for (const int64_t last : {0, 1}) {
    std::vector<int8_t> x;
    std::vector<int8_t> y;
    for (const int64_t side : {kSide, int64_t{3}}) {
      for (int64_t i = 0; i < kImages * kChannels * side * side; ++i) {
        const int64_t area = side * side;
        const int64_t image = i / (kChannels * area);
        const int64_t channel = last != 0 ? i % kChannels : i / area % kChannels;
        const int64_t pixel = last != 0 ? i / kChannels % area : i % area;
        const int64_t h = pixel / side;
        const int64_t v = pixel % side;
        if (side == kSide) {
          x.push_back(code(image, channel, h, v));
          continue;
        }
        int32_t sum = 0;
        int32_t count = 0;
        for (int64_t r = 2 * h - 1; r < 2 * h + 2; ++r) {
          for (int64_t c = 2 * v - 1; c < 2 * v + 2; ++c) {
            if (r < 0 || c < 0 || r >= kSide || c >= kSide) continue;
            sum += code(image, channel, r, c) + 4;
            ++count;
          }
        }
        const float mean = static_cast<float>(sum) / static_cast<float>(count) * 0.5F;
        y.push_back(static_cast<int8_t>(std::nearbyint(mean / 0.75F) + 9));
      }
    }
    const auto shape = [&](int64_t side) {
      return last != 0 ? Shape{kImages, side, side, kChannels}
                       : Shape{kImages, kChannels, side, side};
    };
    OpTester t("QLinearAveragePool", 1, "com.microsoft");
    t.attr_ints("kernel_shape", {3, 3}).attr_ints("strides", {2, 2});
    t.attr_ints("pads", {1, 1, 1, 1}).attr("channels_last", last);
    t.input<int8_t>(shape(kSide), x).input<float>({}, {0.5F}).input<int8_t>({}, {-4});
    t.input<float>({}, {0.75F}).input<int8_t>({}, {9});
    t.expect<int8_t>(0, shape(3), y);
    t.run();
  }
}

TEST(QLinearGlobalAveragePool, TakesChannelsLast) {
  OpTester t("QLinearGlobalAveragePool", 1, "com.microsoft");
  t.attr("channels_last", 1);
  t.input<uint8_t>({1, 2, 2}, {1, 10, 3, 30}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<float>({}, {1}).input<uint8_t>({}, {0});
  t.expect<uint8_t>(0, {1, 1, 2}, {2, 20});
  t.run();
}

// Whole images of channels last, of more pixels and channels than are summed at once.
template <typename T>
void expect_means(int64_t height, int64_t width, T zero) {
  constexpr int64_t kImages = 2;
  constexpr int64_t kChannels = 70;
  const int64_t pixels = height * width;
  std::vector<T> x;
  for (int64_t i = 0; i < kImages * pixels * kChannels; ++i) {
    x.push_back(static_cast<T>(i * 89 % 251 - 120));
  }
  std::vector<T> y;
  for (int64_t at = 0; at < kImages * kChannels; ++at) {
    int32_t sum = 0;
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t pixel = at / kChannels * pixels + p;
      sum += x[static_cast<size_t>(pixel * kChannels + at % kChannels)] - zero;
    }
    const float mean = static_cast<float>(sum) / static_cast<float>(pixels) * 0.5F;
    y.push_back(static_cast<T>(std::nearbyint(mean / 0.75F) + 9));
  }
  OpTester t("QLinearGlobalAveragePool", 1, "com.microsoft");
  t.attr("channels_last", 1);
  t.input<T>({kImages, height, width, kChannels}, x).template input<float>({}, {0.5F});
  t.template input<T>({}, {zero}).template input<float>({}, {0.75F}).template input<T>({}, {9});
  t.expect<T>(0, {kImages, 1, 1, kChannels}, y);
  t.run();
}

TEST(QLinearGlobalAveragePool, SumsColumnsOfBytes) {
  for (const auto& [height, width] :
       {std::pair<int64_t, int64_t>{1, 1}, {7, 7}, {8, 8}, {5, 13}, {10, 20}}) {
    expect_means<uint8_t>(height, width, 3);
    expect_means<int8_t>(height, width, -7);
  }
}

// The largest code of each window of 3 x 3, by the definition.
template <typename T>
void expect_largest_bytes(int64_t height, int64_t width, int64_t stride, int64_t dilation) {
  std::vector<T> x;
  for (int64_t i = 0; i < 2 * height * width; ++i) x.push_back(static_cast<T>(i * 89 % 251 - 120));
  const int64_t reach = 2 * dilation + 1;
  const int64_t rows = (height + 2 - reach) / stride + 1;
  const int64_t cols = (width + 2 - reach) / stride + 1;
  std::vector<T> y;
  for (int64_t at = 0; at < 2 * rows * cols; ++at) {
    T best = std::numeric_limits<T>::lowest();
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t h = at / cols % rows * stride - 1 + tap / 3 * dilation;
      const int64_t v = at % cols * stride - 1 + tap % 3 * dilation;
      if (h < 0 || h >= height || v < 0 || v >= width) continue;
      const int64_t from = (at / cols / rows * height + h) * width + v;
      best = std::max(best, x[static_cast<size_t>(from)]);
    }
    y.push_back(best);
  }
  OpTester t("MaxPool", 12);
  t.attr_ints("kernel_shape", {3, 3}).attr_ints("pads", {1, 1, 1, 1});
  t.attr_ints("strides", {stride, stride}).attr_ints("dilations", {dilation, dilation});
  t.input<T>({1, 2, height, width}, x);
  t.expect<T>(0, {1, 2, rows, cols}, y);
  t.run();
}

TEST(MaxPool, OfBytesIsTheLargestOfEachWindow) {
  expect_largest_bytes<uint8_t>(9, 70, 2, 1);
  expect_largest_bytes<int8_t>(9, 70, 2, 1);
  expect_largest_bytes<int8_t>(8, 40, 1, 2);
  expect_largest_bytes<uint8_t>(2, 2, 1, 1);
}

}  // namespace
}  // namespace folio
