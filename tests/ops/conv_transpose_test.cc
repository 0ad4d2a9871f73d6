#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(ConvTranspose, FollowsTheSpecExample) {
  OpTester t("ConvTranspose", 11);
  t.input<float>({1, 1, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  t.input<float>({1, 1, 3, 3}, std::vector<float>(9, 1.0F));
  t.expect<float>(0, {1, 1, 5, 5}, {0,  1,  3, 3,  2,  3,  8,  15, 12, 7,  9,  21, 36,
                                    27, 15, 9, 20, 33, 24, 13, 6,  13, 21, 15, 8});
  t.run();
}

TEST(ConvTranspose, OutputPaddingHoldsTheBias) {
  OpTester t("ConvTranspose", 11);
  t.attr_ints("strides", {3}).attr_ints("output_padding", {1});
  t.input<float>({1, 1, 2}, {1, 2});
  t.input<float>({1, 1, 2}, {1, 10});
  t.input<float>({1}, {100});
  t.expect<float>(0, {1, 1, 6}, {101, 110, 100, 102, 120, 100});
  t.run();
}

TEST(ConvTranspose, SameUpperKeepsInputTimesStride) {
  OpTester t("ConvTranspose", 11);
  t.attr("auto_pad", "SAME_UPPER").attr_ints("strides", {2});
  t.input<float>({1, 1, 2}, {1, 2});
  t.input<float>({1, 1, 3}, {1, 10, 100});
  t.expect<float>(0, {1, 1, 4}, {1, 10, 102, 20});
  t.run();
}

TEST(ConvTranspose, GroupsAndDoubleAgreeWithFloat) {
  const std::vector<double> x = {1, 2, 3, 4};
  const std::vector<double> w = {1, -1, 2, 5};
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16}) {
    OpTester t("ConvTranspose", 11);
    t.attr("group", 2);
    t.input_as(dtype, {1, 2, 2}, x);
    t.input_as(dtype, {2, 1, 2}, w);
    t.expect_as(0, dtype, {1, 2, 3}, {1, 1, -2, 6, 23, 20});
    t.run();
  }
}

// Strides of 2 write two taps at a time; doubles go one by one.
TEST(ConvTranspose, StridesOfTwoAgreeWithDouble) {
  struct Case {
    int64_t kernel, pad_begin, pad_end, dilation, padding;
  };
  for (const Case& c : {Case{4, 1, 1, 1, 0},
                        {2, 0, 0, 1, 0},
                        {3, 1, 1, 1, 1},
                        {5, 4, 0, 1, 0},
                        {1, 0, 0, 1, 1},
                        {4, 3, 3, 1, 0},
                        {3, 0, 2, 2, 0}}) {
    std::vector<double> x, w;
    for (int64_t i = 0; i < 2 * 3 * 13; ++i) x.push_back(static_cast<double>(i * 37 % 19 - 9));
    for (int64_t i = 0; i < 2 * 3 * 2 * c.kernel; ++i) w.push_back(static_cast<double>(i % 7 - 3));
    const auto with = [&](auto tag) {
      using T = decltype(tag);
      OpTester t("ConvTranspose", 11);
      t.attr_ints("strides", {1, 2}).attr_ints("dilations", {1, c.dilation});
      t.attr_ints("pads", {0, c.pad_begin, 0, c.pad_end})
          .attr_ints("output_padding", {0, c.padding});
      t.template input<T>({1, 2, 3, 13}, std::vector<T>(x.begin(), x.end()));
      t.template input<T>({2, 3, 2, c.kernel}, std::vector<T>(w.begin(), w.end()));
      t.template input<T>({3}, {T{1}, T{2}, T{3}}).outputs(1).run();
      const std::vector<T> y = t.template output_values<T>(0);
      return std::vector<double>(y.begin(), y.end());
    };
    EXPECT_EQ(with(float{}), with(double{})) << c.kernel << ' ' << c.pad_begin;
  }
}

// Filters over one channel each are plain filters of every place between two strides.
TEST(ConvTranspose, FiltersOfOneChannelAgreeWithDouble) {
  uint32_t state = 54;
  const auto below = [&](int64_t n) {
    state = state * 1664525U + 1013904223U;
    return static_cast<int64_t>((state >> 16) % static_cast<uint32_t>(n));
  };
  for (int i = 0; i < 200; ++i) {
    const int64_t batch = 1 + below(2), group = 1 + below(3), filters = 1 + below(2);
    std::vector<int64_t> in, kernel, strides, pads(4), padding;
    for (size_t axis = 0; axis < 2; ++axis) {
      in.push_back(1 + below(axis == 0 ? 6 : 40));
      kernel.push_back(1 + below(below(4) == 0 ? 17 : 4));
      strides.push_back(1 + below(below(4) == 0 ? 9 : 3));
      padding.push_back(below(strides.back()));
      const int64_t whole = (in.back() - 1) * strides.back() + kernel.back() + padding.back();
      pads[axis] = below(std::min(whole, kernel.back() + 2));
      pads[axis + 2] = below(std::min(whole - pads[axis], kernel.back() + 2));
    }
    std::vector<double> x, w, b;
    for (int64_t j = 0; j < batch * group * in[0] * in[1]; ++j) {
      x.push_back(static_cast<double>(j * 37 % 19 - 9));
    }
    for (int64_t j = 0; j < group * filters * kernel[0] * kernel[1]; ++j) {
      w.push_back(static_cast<double>(j % 7 - 3));
    }
    for (int64_t j = 0; j < group * filters; ++j) b.push_back(static_cast<double>(j + 1));
    const auto with = [&](auto tag) {
      using T = decltype(tag);
      const auto of = [](const std::vector<double>& v) {
        return std::vector<T>(v.begin(), v.end());
      };
      OpTester t("ConvTranspose", 11);
      t.attr_ints("strides", strides).attr_ints("pads", pads).attr_ints("output_padding", padding);
      t.attr("group", group);
      t.template input<T>({batch, group, in[0], in[1]}, of(x));
      t.template input<T>({group, filters, kernel[0], kernel[1]}, of(w));
      t.template input<T>({group * filters}, of(b)).outputs(1).run();
      const std::vector<T> y = t.template output_values<T>(0);
      return std::vector<double>(y.begin(), y.end());
    };
    ASSERT_EQ(with(float{}), with(double{})) << i << ": " << in[0] << " x " << in[1];
  }
}

TEST(ConvTransposeWithDynamicPads, CutsWhatItsPadsSay) {
  const auto tester = [] {
    OpTester t("ConvTransposeWithDynamicPads", 1, "com.microsoft");
    t.attr_ints("strides", {2})
        .input<float>({1, 1, 2}, {1, 2})
        .input<float>({1, 1, 3}, {1, 10, 100});
    return t;
  };
  OpTester whole = tester();
  whole.expect<float>(0, {1, 1, 5}, {1, 10, 102, 20, 200}).run();
  OpTester padded = tester();
  padded.input<int64_t>({2}, {1, 2}).input<float>({1}, {0.5F});
  padded.expect<float>(0, {1, 1, 2}, {10.5F, 102.5F}).run();
  OpTester empty = tester();
  empty.input<int64_t>({0}, {}).expect<float>(0, {1, 1, 5}, {1, 10, 102, 20, 200}).run();
  OpTester negative = tester();
  negative.input<int64_t>({2}, {-1, 0}).outputs(1).fails("input Pads holds -1");
  OpTester count = tester();
  count.input<int64_t>({3}, {1, 1, 1}).outputs(1).fails("one entry per spatial dim");
  OpTester many = tester();
  many.input<int64_t>({8}, {1, 1, 1, 1, 1, 1, 1, 1}).outputs(1).fails("input Pads has 8 elements");
  OpTester large = tester();
  large.input<int64_t>({2}, {4, 4}).outputs(1).fails("the pads leave -3");
}

TEST(ConvTranspose, HugeStridesAreRefusedNotComputed) {
  OpTester t("ConvTranspose", 11);
  t.attr_ints("strides", {int64_t{1} << 40});
  t.input<float>({1, 1, 2}, {1, 2});
  t.input<float>({1, 1, 2}, {1, 1});
  t.outputs(1).fails("strides");
}

TEST(ConvTranspose, OfAnImageWithoutPixelsThereIsTheBias) {
  OpTester t("ConvTranspose", 11);
  t.input<float>({1, 1, 0}, {}).input<float>({1, 1, 3}, {1, 2, 3}).input<float>({1}, {5});
  t.expect<float>(0, {1, 1, 2}, {5, 5}).run();
  OpTester wide("ConvTranspose", 11);
  wide.input<double>({1, 1, 0}, {}).input<double>({1, 1, 3}, {1, 2, 3}).input<double>({1}, {5});
  wide.expect<double>(0, {1, 1, 2}, {5, 5}).run();
}

}  // namespace
}  // namespace folio
