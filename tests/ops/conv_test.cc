#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST(Conv, FollowsTheSpecExampleWithPadding) {
  OpTester t("Conv", 11);
  t.attr_ints("kernel_shape", {3, 3}).attr_ints("pads", {1, 1, 1, 1});
  t.input<float>({1, 1, 5, 5}, counting(25));
  t.input<float>({1, 1, 3, 3}, std::vector<float>(9, 1.0F));
  t.expect<float>(0, {1, 1, 5, 5}, {12,  21, 27, 33,  24,  33,  54,  63, 72,  51,  63,  99, 108,
                                    117, 81, 93, 144, 153, 162, 111, 72, 111, 117, 123, 84});
  t.run();
}

TEST(Conv, GroupsSeeTheirOwnChannels) {
  OpTester t("Conv", 11);
  t.attr("group", 2);
  t.input<float>({1, 4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.input<float>({2, 2, 1, 1}, {1, 10, 1, -1});
  t.input<float>({2}, {100, 0});
  t.expect<float>(0, {1, 2, 1, 2}, {131, 142, -2, -2});
  t.run();
}

// Groups of a few channels are rows of shifted sums; of many, products.
TEST(Conv, GroupsOfAnySizeAgreeWithLoops) {
  struct Case {
    int64_t in, out, groups, stride, dilation, pad;  // channels of a group
    int64_t width = 21;
  };
  constexpr int64_t kHeight = 9;
  for (const Case& c : {Case{2, 2, 3, 1, 1, 1},
                        {4, 4, 2, 1, 1, 0},
                        {4, 4, 2, 2, 1, 1},
                        {8, 8, 2, 1, 2, 2},
                        {3, 5, 4, 3, 1, 2},
                        {32, 1, 2, 1, 1, 1},
                        {1, 3, 4, 2, 1, 1},
                        {40, 2, 2, 1, 1, 1},
                        {1, 1, 5, 1, 1, 1},
                        {1, 1, 5, 2, 1, 1},
                        {1, 2, 3, 1, 2, 2},
                        {1, 1, 2, 2, 2, 0},
                        {1, 1, 3, 3, 1, 1},
                        {16, 16, 2, 1, 1, 1},
                        {16, 16, 2, 2, 1, 1, 73},  // lines of whole panels, and what is left
                        {3, 16, 1, 3, 1, 2, 99},
                        {3, 16, 1, 2, 2, 0, 70}}) {
    const int64_t x_channels = c.in * c.groups;
    const int64_t y_channels = c.out * c.groups;
    const int64_t rows = (kHeight + 2 * c.pad - 2 * c.dilation - 1) / c.stride + 1;
    const int64_t columns = (c.width + 2 * c.pad - 2 * c.dilation - 1) / c.stride + 1;
    std::vector<float> x, w, b, want;
    for (int64_t i = 0; i < x_channels * kHeight * c.width; ++i) {
      x.push_back(static_cast<float>(i * 37 % 19) - 9);
    }
    for (int64_t i = 0; i < y_channels * c.in * 9; ++i) {
      w.push_back(static_cast<float>(i * 11 % 7) - 3);
    }
    for (int64_t i = 0; i < y_channels; ++i) b.push_back(static_cast<float>(i));
    for (int64_t o = 0; o < y_channels * rows * columns; ++o) {
      const int64_t m = o / (rows * columns);
      float sum = b[static_cast<size_t>(m)];
      for (int64_t t = 0; t < c.in * 9; ++t) {
        const int64_t channel = m / c.out * c.in + t / 9;
        const int64_t h = o / columns % rows * c.stride - c.pad + t / 3 % 3 * c.dilation;
        const int64_t v = o % columns * c.stride - c.pad + t % 3 * c.dilation;
        if (h < 0 || h >= kHeight || v < 0 || v >= c.width) continue;
        sum += w[static_cast<size_t>(m * c.in * 9 + t)] *
               x[static_cast<size_t>((channel * kHeight + h) * c.width + v)];
      }
      want.push_back(sum);  // whole numbers: exact in any order
    }
    OpTester t("Conv", 11);
    t.attr("group", c.groups).attr_ints("pads", {c.pad, c.pad, c.pad, c.pad});
    t.attr_ints("strides", {c.stride, c.stride}).attr_ints("dilations", {c.dilation, c.dilation});
    t.input<float>({1, x_channels, kHeight, c.width}, x);
    t.input<float>({y_channels, c.in, 3, 3}, w).input<float>({y_channels}, b);
    t.expect<float>(0, {1, y_channels, rows, columns}, want).run();
  }
}

// A BatchNormalization may have become one, and takes any image.
TEST(Conv, OneTapOfAnImageWithoutPixelsGivesNone) {
  for (const int64_t stride : {1, 2}) {
    OpTester t("Conv", 11);
    t.attr_ints("strides", {stride, stride});
    t.input<float>({1, 2, 4, 0}, {}).input<float>({3, 2, 1, 1}, counting(6));
    t.expect<float>(0, {1, 3, 4 / stride, 0}, {}).run();
  }
  OpTester t("Conv", 11);
  t.input<float>({1, 2, 4, 0}, {}).input<float>({3, 2, 1, 2}, counting(12));
  t.outputs(1).fails("the window does not fit");
}

TEST(Conv, ChannelsThatDisagreeAreAnError) {
  OpTester t("Conv", 11);
  t.input<float>({1, 3, 4}, counting(12));
  t.input<float>({2, 2, 1}, {1, 2, 3, 4});
  t.outputs(1).fails("do not agree on channels");
}

TEST(FusedConv, AddsZBeforeTheActivation) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16}) {
    OpTester t("FusedConv", 1, "com.microsoft");
    t.attr("activation", "LeakyRelu").attr_floats("activation_params", {0.5F});
    t.input_as(dtype, {1, 1, 3}, {1, 2, 3});
    t.input_as(dtype, {1, 1, 1}, {2});
    t.input_as(dtype, {1}, {1});
    t.input_as(dtype, {1, 1, 3}, {-7, 0, -9});
    t.expect_as(0, dtype, {1, 1, 3}, {-2, 5, -1});
    t.run();
  }
}

TEST(FusedConv, ClipsInsideTheProduct) {
  OpTester t("FusedConv", 1, "com.microsoft");
  t.attr("activation", "Clip").attr_floats("activation_params", {0, 6});
  t.input<float>({1, 2, 1, 2}, {1, -2, 3, 4});
  t.input<float>({1, 2, 1, 1}, {1, 2});
  t.expect<float>(0, {1, 1, 1, 2}, {6, 6});
  t.run();
}

// A product whose rows of A are 4 KiB apart is made of copies, a few rows at a time; one pixel is
// the rows of another product; one row is read as it stands; small groups are read in place.
TEST(Conv, OneTapIsAProductOfAnySize) {
  struct Case {
    int64_t batch, in, out, group, pixels;
  };
  for (const Case& c : {Case{1, 1024, 260, 1, 49},
                        {2, 2048, 20, 2, 131},
                        {3, 40, 18, 1, 1},
                        {2, 64, 36, 2, 1},
                        {2, 7, 1, 1, 30},
                        {2, 32, 48, 8, 49},
                        {1, 24, 3, 3, 50},
                        {3, 160, 300, 4, 17},
                        {0, 8, 8, 1, 4}}) {
    const int64_t in = c.in / c.group;
    std::vector<float> x, w, z, want;
    for (int64_t i = 0; i < c.batch * c.in * c.pixels; ++i) {
      x.push_back(static_cast<float>(i * 37 % 19) - 9);
    }
    for (int64_t i = 0; i < c.out * in; ++i) w.push_back(static_cast<float>(i * 11 % 7) - 3);
    for (int64_t o = 0; o < c.batch * c.out * c.pixels; ++o) {
      const int64_t m = o / c.pixels % c.out;
      z.push_back(static_cast<float>(o % 5));
      float sum = z.back();
      for (int64_t k = 0; k < in; ++k) {
        const int64_t channel = o / c.pixels / c.out * c.in + m / (c.out / c.group) * in + k;
        sum += w[static_cast<size_t>(m * in + k)] *
               x[static_cast<size_t>(channel * c.pixels + o % c.pixels)];
      }
      want.push_back(std::max(sum, 0.0F));  // whole numbers: exact in any order
    }
    OpTester t("PlanesConv", 1, "folio");
    t.attr("group", c.group).attr("activation", "Relu");
    t.input<float>({c.batch, c.in, c.pixels}, x).input<float>({c.out, in, 1}, w);
    t.input<float>({c.out}, std::vector<float>(static_cast<size_t>(c.out), 0.0F));
    t.input<float>({c.batch, c.out, c.pixels}, z);
    t.expect<float>(0, {c.batch, c.out, c.pixels}, want).run();
  }
}

TEST(FusedConv, FiltersOfOneChannelAddZAndAnyFunction) {
  OpTester t("FusedConv", 1, "com.microsoft");
  t.attr("activation", "HardSigmoid").attr_floats("activation_params", {0.5F, 0.0F});
  t.attr("group", 2).attr_ints("pads", {1, 1});
  t.input<float>({1, 2, 3}, {1, 2, 3, -1, 0, 4});
  t.input<float>({2, 1, 3}, {1, 0, 0, 0, 0, 1});
  t.input<float>({2}, {0, 0.5F});
  t.input<float>({1, 2, 3}, {0.5F, 0, -1, 0, -4, 0});
  t.expect<float>(0, {1, 2, 3}, {0.25F, 0.5F, 0.5F, 0.25F, 0.25F, 0.25F});
  t.run();
}

TEST(FusedConv, UnknownActivationIsAnError) {
  OpTester t("FusedConv", 1, "com.microsoft");
  t.attr("activation", "Frob");
  t.input<float>({1, 1, 1}, {1});
  t.input<float>({1, 1, 1}, {1});
  t.outputs(1).fails("unknown activation 'Frob'");
}

}  // namespace
}  // namespace folio
