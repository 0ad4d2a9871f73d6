#include <gtest/gtest.h>

#include <limits>
#include <random>

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

TEST(QLinearConv, ANumberIsNoImageWithChannelsLast) {
  OpTester t("QLinearConv", 1, "com.microsoft");
  t.attr("channels_last", 1);
  t.input<uint8_t>({}, {1}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<uint8_t>({1, 1, 1, 1}, {1}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<float>({}, {1}).input<uint8_t>({}, {0});
  t.outputs(1).fails("rank");
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

TEST(ConvInteger, CountsTheTapsOfCubesOfOneChannelEach) {
  const int64_t n = 5;
  const size_t channels = 3;
  std::vector<int32_t> want;
  const auto inside = [&](int64_t at) { return at == 0 || at == n - 1 ? 2 : 3; };
  for (size_t c = 0; c < channels; ++c) {
    for (int64_t at = 0; at < n * n * n; ++at) {
      want.push_back(inside(at / n / n) * inside(at / n % n) * inside(at % n));
    }
  }
  OpTester t("ConvInteger", 10);
  t.attr_ints("pads", {1, 1, 1, 1, 1, 1}).attr("group", 3);
  t.input<uint8_t>({1, 3, n, n, n}, std::vector<uint8_t>(channels * 125, 1));
  t.input<uint8_t>({3, 1, 3, 3, 3}, std::vector<uint8_t>(channels * 27, 1));
  t.expect<int32_t>(0, {1, 3, n, n, n}, want);
  t.run();
}

// ---------------------------------------------------------------- sums to floats

// 1 x 1 over channels [2, 3] of two pixels: sums 2 x - y and 3 y, of x and y without zero point 1.
OpTester floats_of_sums(Shape image, std::vector<uint8_t> codes) {
  OpTester t("ConvIntegerToFloat", 1, "folio");
  t.input<uint8_t>(std::move(image), std::move(codes));
  t.input<int8_t>({2, 2, 1, 1}, {3, 0, 1, 4});
  t.input<uint8_t>({}, {1});
  t.input<int8_t>({2}, {1, 1});
  return t;
}

TEST(ConvIntegerToFloat, ScalesSumsAndAddsABias) {
  // (x, y) = (1, 3) and (10, 0): sums -1, 9 and 20, 0.
  for (const bool last : {false, true}) {
    OpTester t = last ? floats_of_sums({1, 1, 2, 2}, {2, 4, 11, 1})
                      : floats_of_sums({1, 2, 1, 2}, {2, 11, 4, 1});
    t.attr("channels_last", last ? 1 : 0);
    t.input<float>({1, 2, 1, 1}, {0.5F, 2});
    t.input<float>({2, 1, 1}, {100, 1000});
    if (last) {
      t.expect<float>(0, {1, 1, 2, 2}, {99.5F, 1018, 110, 1000});
    } else {
      t.expect<float>(0, {1, 2, 1, 2}, {99.5F, 110, 1018, 1000});
    }
    t.run();
  }
}

TEST(ConvIntegerToFloat, TakesOneScaleForAllAndNoBias) {
  OpTester t = floats_of_sums({1, 2, 1, 2}, {2, 11, 4, 1});
  t.input<float>({1}, {0.5F});
  t.expect<float>(0, {1, 2, 1, 2}, {-0.5F, 10, 4.5F, 0});
  t.run();
}

TEST(ConvIntegerToFloat, NumbersOfOtherChannelsAreAnError) {
  OpTester scale = floats_of_sums({1, 2, 1, 2}, {2, 11, 4, 1});
  scale.input<float>({3}, {1, 2, 3});
  scale.outputs(1).fails("does not fit");
  OpTester bias = floats_of_sums({1, 2, 1, 2}, {2, 11, 4, 1});
  bias.input<float>({}, {1});
  bias.input<float>({3}, {1, 2, 3});
  bias.outputs(1).fails("does not fit");
}

// ---------------------------------------------------------------- sums with another image

// y = 3 x + 1 in codes of scale 1 about 10, then (y - 10) / 2 + (z - 4) * 2 about 7.
OpTester sum_with(const Shape& shape, Value z, int64_t channels, int64_t group, bool addend_is_a) {
  OpTester t("QLinearConvAdd", 1, "folio");
  const auto square = static_cast<size_t>(channels * channels / group);
  std::vector<int8_t> w(square, 0);
  for (size_t i = 0; i < w.size(); i += static_cast<size_t>(channels / group) + 1) w[i] = 3;
  if (group == channels) w.assign(square, 3);
  t.attr("group", group).attr("addend_is_a", addend_is_a ? 1 : 0);
  t.input<uint8_t>(shape, {0, 1, 2, 100});
  t.input<float>({}, {1});
  t.input<uint8_t>({}, {0});
  t.input<int8_t>({channels, channels / group, 1, 1}, w);
  t.input<float>({}, {1});
  t.input<int8_t>({}, {0});
  t.input<float>({}, {1});
  t.input<uint8_t>({}, {10});
  t.input<int32_t>({channels}, std::vector<int32_t>(static_cast<size_t>(channels), 1));
  t.input_value(std::move(z));
  t.input<float>({}, {addend_is_a ? 2.0F : 0.5F});
  t.input<uint8_t>({}, {static_cast<uint8_t>(addend_is_a ? 4 : 10)});
  t.input<float>({}, {addend_is_a ? 0.5F : 2.0F});
  t.input<uint8_t>({}, {static_cast<uint8_t>(addend_is_a ? 10 : 4)});
  t.input<float>({}, {1});
  t.input<uint8_t>({}, {7});
  return t;
}

TEST(QLinearConvAdd, RoundsTheConvolutionThenTheSum) {
  for (const bool addend_is_a : {false, true}) {
    for (const auto& [channels, group] :
         {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {2, 2}, {4, 1}}) {
      for (const int64_t last : {0, 1}) {
        SCOPED_TRACE(testing::Message() << channels << ' ' << group << last << addend_is_a);
        const Shape shape =
            last != 0 ? Shape{1, 1, 4 / channels, channels} : Shape{1, channels, 1, 4 / channels};
        OpTester t = sum_with(shape, Value(make_tensor<uint8_t>(shape, {4, 5, 10, 4})), channels,
                              group, addend_is_a);
        t.attr("channels_last", last);
        // The code of 301 is 255: 245 / 2 + 0 = 122.5, to even.
        t.expect<uint8_t>(0, shape, {7, 11, 23, 129});
        t.run();
      }
    }
  }
}

TEST(QLinearConvAdd, RefusesImagesOfOtherShapesOrTypes) {
  const Shape shape{1, 1, 1, 4};
  sum_with(shape, Value(make_tensor<uint8_t>({1, 1, 1, 1}, {0})), 1, 1, false)
      .outputs(1)
      .fails("z [1,1,1,1] must have the result's shape [1,1,1,4]");
  sum_with(shape, Value(make_tensor<int8_t>(shape, {0, 1, 2, 3})), 1, 1, false)
      .outputs(1)
      .fails("int8");
}

// ---------------------------------------------------------------- every form against the formula

struct Form {
  const char* name;
  int64_t channels, filters, group, height, width, kernel, stride, pad, dilation;
};

constexpr Form kForms[] = {
    {"lines of a few channels", 3, 20, 1, 19, 23, 7, 2, 3, 1},
    {"lines too long to copy at once", 5, 18, 1, 9, 9, 7, 1, 3, 1},
    {"pieces", 16, 70, 1, 6, 7, 3, 1, 1, 1},
    {"pieces, dilated", 20, 16, 1, 8, 8, 3, 1, 2, 2},
    {"pieces of groups", 32, 32, 2, 5, 6, 3, 2, 1, 1},
    {"pieces of one tap", 16, 33, 1, 7, 7, 1, 2, 0, 1},
    {"in place", 24, 40, 1, 5, 5, 1, 1, 0, 1},
    {"in place, one channel to one", 1, 1, 1, 6, 5, 1, 1, 0, 1},
    {"taps that are no groups of four", 18, 17, 1, 5, 5, 3, 1, 1, 1},
    {"a channel each", 70, 70, 70, 6, 70, 3, 1, 1, 1},
    {"a channel each, every second", 70, 70, 70, 9, 12, 3, 2, 1, 1},
    {"a channel each, dilated", 20, 20, 20, 8, 9, 3, 1, 2, 2},
    {"a channel each, apart", 20, 20, 20, 11, 11, 2, 3, 1, 1},
    {"a channel each of long lines", 3, 3, 3, 4, 300, 3, 1, 1, 1},
    {"a channel each in wide windows", 66, 66, 66, 7, 7, 5, 1, 2, 1},
    {"a channel each in windows of many taps", 40, 40, 40, 9, 12, 7, 1, 3, 1},
    {"a channel each in windows of more taps", 20, 20, 20, 14, 14, 13, 1, 6, 1},
    {"deep", 80, 16, 1, 4, 4, 3, 1, 1, 1},
    {"groups of four that share panels", 32, 32, 8, 7, 9, 3, 1, 1, 1},
    {"groups of eight that share panels", 32, 32, 4, 9, 8, 3, 2, 1, 1},
    {"groups of eight of many channels", 40, 16, 2, 5, 5, 3, 1, 1, 1},
    {"groups of eight, an odd number", 24, 24, 3, 5, 6, 3, 1, 1, 1},
    {"groups of four, one too many", 36, 36, 9, 5, 6, 3, 1, 1, 1},
    {"groups of four, one too many, of one tap", 36, 36, 9, 5, 6, 1, 2, 0, 1},
    {"groups of three", 36, 36, 12, 5, 6, 3, 1, 1, 1},
    {"groups of three, one too many to be joined", 33, 33, 11, 5, 6, 3, 1, 1, 1},
    {"groups of less than a panel", 6, 9, 3, 5, 6, 3, 1, 1, 1},
    {"groups of less than a panel of one tap", 6, 9, 3, 5, 6, 1, 1, 0, 1},
    {"groups of two of a channel each", 24, 48, 24, 6, 5, 3, 1, 1, 1},
    {"a channel each in windows of too many taps", 16, 16, 16, 14, 13, 13, 1, 6, 1},
    {"groups of more than a panel", 12, 48, 2, 6, 6, 3, 1, 1, 1},
};

template <typename T>
std::vector<T> random_bytes(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& value : out) {
    const uint32_t pick = engine();
    // A third of them extreme.
    value = pick % 6 == 0   ? std::numeric_limits<T>::min()
            : pick % 6 == 1 ? std::numeric_limits<T>::max()
                            : static_cast<T>(pick >> 8);
  }
  return out;
}

template <typename X, typename W>
std::vector<int32_t> convolve(const Form& f, const std::vector<X>& x, int x_zero,
                              const std::vector<W>& w, const std::vector<W>& w_zero,
                              int64_t out_height, int64_t out_width) {
  std::vector<int32_t> y;
  const int64_t depth = f.channels / f.group;
  for (int64_t m = 0; m < f.filters; ++m) {
    const int64_t first = m / (f.filters / f.group) * depth;
    for (int64_t at = 0; at < out_height * out_width; ++at) {
      int32_t sum = 0;
      for (int64_t i = 0; i < depth * f.kernel * f.kernel; ++i) {
        const int64_t h = at / out_width * f.stride - f.pad + i / f.kernel % f.kernel * f.dilation;
        const int64_t v = at % out_width * f.stride - f.pad + i % f.kernel * f.dilation;
        if (h < 0 || h >= f.height || v < 0 || v >= f.width) continue;
        const int64_t c = first + i / (f.kernel * f.kernel);
        const auto code = x[static_cast<size_t>((c * f.height + h) * f.width + v)];
        const auto weight = w[static_cast<size_t>(m * depth * f.kernel * f.kernel + i)];
        sum += (code - x_zero) * (weight - w_zero[static_cast<size_t>(m) % w_zero.size()]);
      }
      y.push_back(sum);
    }
  }
  return y;
}

// [rows, columns] -> [columns, rows]
template <typename T>
std::vector<T> turned(int64_t rows, const std::vector<T>& values) {
  const auto columns = static_cast<int64_t>(values.size()) / rows;
  std::vector<T> out;
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) out.push_back(values[static_cast<size_t>(i * columns + j)]);
  }
  return out;
}

// ConvInteger takes one zero point of w for each filter or for all.
template <typename X, typename W>
void expect_formula(const Form& f, X x_zero, bool w_zeros, int threads = 1) {
  const int64_t reach = (f.kernel - 1) * f.dilation + 1;
  const int64_t height = (f.height + 2 * f.pad - reach) / f.stride + 1;
  const int64_t width = (f.width + 2 * f.pad - reach) / f.stride + 1;
  const int64_t depth = f.channels / f.group;
  const auto x = random_bytes<X>(f.channels * f.height * f.width, 1);
  const auto w = random_bytes<W>(f.filters * depth * f.kernel * f.kernel, 2);
  const auto w_zero = w_zeros ? random_bytes<W>(f.filters, 3) : std::vector<W>{0};
  const auto give_inputs = [&](OpTester* t, bool last = false) {
    t->attr_ints("pads", {f.pad, f.pad, f.pad, f.pad}).attr_ints("strides", {f.stride, f.stride});
    t->attr_ints("dilations", {f.dilation, f.dilation}).attr("group", f.group);
    if (last) {
      t->attr("channels_last", 1);
      t->input<X>({1, f.height, f.width, f.channels}, turned(f.channels, x));
    } else {
      t->input<X>({1, f.channels, f.height, f.width}, x);
    }
    t->input<W>({f.filters, depth, f.kernel, f.kernel}, w);
    t->input<X>({}, {x_zero});
    t->input<W>({static_cast<int64_t>(w_zero.size())}, w_zero);
  };
  const std::vector<int32_t> sums = convolve(f, x, x_zero, w, w_zero, height, width);
  OpTester t("ConvInteger", 10);
  give_inputs(&t);
  t.threads(threads).expect<int32_t>(0, {1, f.filters, height, width}, sums);
  t.run();
  // Each channel's scale and bias are its own.
  std::vector<float> scale;
  std::vector<float> bias;
  for (int64_t m = 0; m < f.filters; ++m) {
    scale.push_back(0.25F * static_cast<float>(m % 7 + 1));
    bias.push_back(static_cast<float>(3 * m - 11));
  }
  std::vector<float> want;
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto m = i / static_cast<size_t>(height * width);
    want.push_back(static_cast<float>(sums[i]) * scale[m] + bias[m]);
  }
  for (const bool last : {false, true}) {
    if (last && x_zero == 0) continue;  // it makes no difference
    OpTester floats("ConvIntegerToFloat", 1, "folio");
    give_inputs(&floats, last);
    floats.input<float>({f.filters, 1, 1}, scale);
    floats.input<float>({f.filters}, bias);
    if (last) {
      floats.expect<float>(0, {1, height, width, f.filters}, turned(f.filters, want));
    } else {
      floats.expect<float>(0, {1, f.filters, height, width}, want);
    }
    floats.threads(threads).run();
  }
}

template <typename X, typename W>
void expect_forms() {
  for (const Form& form : kForms) {
    for (const X zero :
         {X{0}, std::numeric_limits<X>::min(), std::numeric_limits<X>::max(), X{9}}) {
      for (const bool w_zeros : {false, true}) {
        SCOPED_TRACE(testing::Message() << form.name << ", zero " << int{zero} << ' ' << w_zeros);
        expect_formula<X, W>(form, zero, w_zeros);
      }
    }
  }
}

// Work enough to be cut, in blocks of 64 columns and tiles of 12 pixels.
constexpr Form kCutForms[] = {
    {"between columns", 64, 300, 1, 8, 9, 3, 1, 1, 1},
    {"between columns and pixels", 64, 130, 1, 14, 14, 3, 1, 1, 1},
    {"between pixels, pieces of groups", 96, 80, 2, 20, 19, 3, 1, 1, 1},
    {"between pixels, gathered", 18, 70, 1, 29, 28, 3, 1, 1, 1},
    {"in place", 500, 97, 1, 17, 16, 1, 1, 0, 1},
};

TEST(ConvInteger, IsExactHoweverItIsCutForThreads) {
  for (const Form& form : kCutForms) {
    for (const int threads : {2, 5}) {
      SCOPED_TRACE(testing::Message() << form.name << ", " << threads << " threads");
      expect_formula<uint8_t, int8_t>(form, 131, /*w_zeros=*/true, threads);
    }
  }
}

TEST(ConvInteger, UnsignedBySignedIsExact) { expect_forms<uint8_t, int8_t>(); }
TEST(ConvInteger, SignedBySignedIsExact) { expect_forms<int8_t, int8_t>(); }
TEST(ConvInteger, UnsignedByUnsignedIsExact) { expect_forms<uint8_t, uint8_t>(); }
TEST(ConvInteger, SignedByUnsignedIsExact) { expect_forms<int8_t, uint8_t>(); }

}  // namespace
}  // namespace folio
