// QLinearConv and the integer matrix products against their definition: types, zero points, scales
// per channel, groups, borders, channels last; in every setting of OpTester, so packed and not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// Bytes as numbers, and as a tensor of either type.
struct Bytes {
  Bytes(bool is_signed_, const Shape& shape_, uint32_t seed)
      : is_signed(is_signed_), shape(shape_) {
    std::mt19937 engine(seed);
    for (int64_t i = 0; i < shape.count(); ++i) {
      values.push_back(static_cast<int>(engine() % 256) - (is_signed ? 128 : 0));
    }
  }
  void add_to(OpTester& t) const { add(t, shape, values); }
  void add(OpTester& t, const Shape& as, const std::vector<int>& numbers) const {
    if (is_signed) {
      t.input<int8_t>(as, {numbers.begin(), numbers.end()});
    } else {
      t.input<uint8_t>(as, {numbers.begin(), numbers.end()});
    }
  }
  int operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }

  bool is_signed;
  Shape shape;
  std::vector<int> values;
};

struct ConvCase {
  bool x_signed, w_signed, y_signed;
  int64_t group, c_in, c_out;  // channels of a group
  int64_t kernel, stride, dilation, pad;
  bool w_zero;  // not 0 (or 128)
};

// [N, C, H, W] as [N, H, W, C].
std::vector<int> to_last(const std::vector<int>& x, int64_t n, int64_t c, int64_t pixels) {
  std::vector<int> y(x.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      for (int64_t p = 0; p < pixels; ++p) {
        y[static_cast<size_t>((i * pixels + p) * c + j)] =
            x[static_cast<size_t>((i * c + j) * pixels + p)];
      }
    }
  }
  return y;
}

class ConvByDefinition {
 public:
  explicit ConvByDefinition(const ConvCase& c)
      : c_(c),
        x_(c.x_signed, {2, c.group * c.c_in, 7, 9}, 1),
        w_(c.w_signed, {c.group * c.c_out, c.c_in, c.kernel, c.kernel}, 2) {
    const int64_t channels = c.group * c.c_out;
    x_zero_ = c.x_signed ? -9 : 140;
    for (int64_t j = 0; j < channels; ++j) {
      bias_.push_back(static_cast<int32_t>(j * 37 - 300));
      w_zeros_.push_back((c.w_signed ? 0 : 128) + (c.w_zero ? static_cast<int>(j % 7) - 3 : 0));
      w_scales_.push_back(0.003F + 0.0001F * static_cast<float>(j % 11));
    }
    const int64_t reach = (c.kernel - 1) * c.dilation + 1;
    height_ = (7 + 2 * c.pad - reach) / c.stride + 1;
    width_ = (9 + 2 * c.pad - reach) / c.stride + 1;
  }

  void check(bool last) const {
    const int64_t channels = c_.group * c_.c_out;
    OpTester t("QLinearConv", last ? 1 : 10, last ? "com.microsoft" : "");
    t.attr("group", c_.group);
    t.attr_ints("strides", {c_.stride, c_.stride});
    t.attr_ints("dilations", {c_.dilation, c_.dilation});
    t.attr_ints("pads", {c_.pad, c_.pad, c_.pad, c_.pad});
    if (last) t.attr("channels_last", 1);
    const int64_t in = c_.group * c_.c_in;
    const Shape last_shape{2, 7, 9, in};
    x_.add(t, last ? last_shape : x_.shape, last ? to_last(x_.values, 2, in, 63) : x_.values);
    t.input<float>({}, {0.02F});
    x_.add(t, {}, {x_zero_});
    w_.add_to(t);
    t.input<float>({channels}, w_scales_);
    w_.add(t, {channels}, w_zeros_);
    t.input<float>({}, {kYScale});
    const int y_zero = c_.y_signed ? 5 : 120;
    const std::vector<int> y = result(y_zero);
    const std::vector<int> wanted = last ? to_last(y, 2, channels, height_ * width_) : y;
    const Shape shape =
        last ? Shape{2, height_, width_, channels} : Shape{2, channels, height_, width_};
    if (c_.y_signed) {
      t.input<int8_t>({}, {static_cast<int8_t>(y_zero)});
    } else {
      t.input<uint8_t>({}, {static_cast<uint8_t>(y_zero)});
    }
    t.input<int32_t>({channels}, bias_);
    if (c_.y_signed) {
      t.expect<int8_t>(0, shape, {wanted.begin(), wanted.end()});
    } else {
      t.expect<uint8_t>(0, shape, {wanted.begin(), wanted.end()});
    }
    t.run();
  }

 private:
  static constexpr float kYScale = 0.31F;

  std::vector<int> result(int y_zero) const {
    std::vector<int> y;
    const int64_t channels = c_.group * c_.c_out;
    for (int64_t at = 0; at < 2 * channels * height_ * width_; ++at) {
      const int64_t v = at % width_;
      const int64_t h = at / width_ % height_;
      const int64_t m = at / width_ / height_ % channels;
      const int64_t n = at / width_ / height_ / channels;
      const float scale = 0.02F * w_scales_[static_cast<size_t>(m)] / kYScale;
      const auto value = static_cast<float>(sum(n, m, h, v)) * scale;
      const int low = c_.y_signed ? -128 : 0;
      y.push_back(std::clamp(static_cast<int>(std::nearbyint(value)) + y_zero, low, low + 255));
    }
    return y;
  }

  int32_t sum(int64_t n, int64_t m, int64_t h, int64_t v) const {
    int32_t total = bias_[static_cast<size_t>(m)];
    for (int64_t c = 0; c < c_.c_in; ++c) {
      for (int64_t kh = 0; kh < c_.kernel; ++kh) {
        for (int64_t kw = 0; kw < c_.kernel; ++kw) {
          const int64_t row = h * c_.stride - c_.pad + kh * c_.dilation;
          const int64_t col = v * c_.stride - c_.pad + kw * c_.dilation;
          if (row < 0 || row >= 7 || col < 0 || col >= 9) continue;
          const int64_t channel = n * c_.group * c_.c_in + m / c_.c_out * c_.c_in + c;
          total += (x_[(channel * 7 + row) * 9 + col] - x_zero_) *
                   (w_[((m * c_.c_in + c) * c_.kernel + kh) * c_.kernel + kw] -
                    w_zeros_[static_cast<size_t>(m)]);
        }
      }
    }
    return total;
  }

  ConvCase c_;
  Bytes x_, w_;
  int x_zero_ = 0;
  std::vector<int> w_zeros_;
  std::vector<float> w_scales_;
  std::vector<int32_t> bias_;
  int64_t height_ = 0;
  int64_t width_ = 0;
};

TEST(QLinearConv, IsTheDefinitionForTypesGroupsAndBorders) {
  const ConvCase cases[] = {
      {false, true, false, 1, 3, 20, 3, 2, 1, 1, false},   // a first layer
      {false, true, false, 1, 24, 33, 1, 1, 1, 0, false},  // pointwise
      {true, true, true, 1, 8, 16, 3, 1, 1, 1, false},     // signed
      {false, false, true, 1, 5, 17, 3, 1, 2, 2, false},   // unsigned weights, dilated
      {true, false, false, 1, 6, 40, 1, 1, 1, 0, true},    // zero points of weights, pointwise
      {false, true, false, 1, 4, 9, 3, 1, 1, 1, true},     // ... over a border
      {false, true, false, 2, 5, 16, 3, 1, 1, 1, false},   // groups of whole panels
      {true, true, false, 3, 2, 4, 3, 1, 1, 1, true},      // groups of less
      {false, true, false, 4, 4, 4, 3, 1, 1, 1, false},    // ... that share a panel
      {true, false, true, 4, 8, 8, 3, 2, 1, 1, false},
      {false, true, true, 4, 4, 4, 3, 1, 1, 1, true},     // ... with zero points
      {true, true, false, 2, 5, 24, 3, 1, 1, 1, false},   // of more than a panel
      {false, true, false, 70, 1, 1, 3, 1, 1, 1, false},  // depthwise
      {true, false, true, 70, 1, 1, 3, 2, 1, 1, false},
      {false, true, false, 6, 1, 1, 3, 1, 1, 1, true},    // depthwise with zero points
      {false, true, false, 20, 1, 1, 5, 1, 1, 2, false},  // 25 taps
  };
  for (const ConvCase& c : cases) {
    SCOPED_TRACE(testing::Message() << "case " << &c - cases);
    const ConvByDefinition conv(c);
    conv.check(false);
    conv.check(true);
  }
}

TEST(MatMulInteger, IsTheDefinitionForTypesAndZeroPoints) {
  for (const int bits : {0, 1, 2, 3}) {
    for (const bool by_line : {false, true}) {
      SCOPED_TRACE(testing::Message() << bits << by_line);
      const int64_t m = 5, k = 37, n = 19;
      const Bytes a((bits & 1) != 0, {m, k}, 3);
      const Bytes b((bits & 2) != 0, {k, n}, 4);
      const Bytes a_zero(a.is_signed, by_line ? Shape{m} : Shape{}, 5);
      const Bytes b_zero(b.is_signed, by_line ? Shape{n} : Shape{}, 6);
      std::vector<int32_t> y;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          int32_t sum = 0;
          for (int64_t p = 0; p < k; ++p) {
            sum +=
                (a[i * k + p] - a_zero[by_line ? i : 0]) * (b[p * n + j] - b_zero[by_line ? j : 0]);
          }
          y.push_back(sum);
        }
      }
      OpTester t("MatMulInteger", 10);
      for (const Bytes* input : {&a, &b, &a_zero, &b_zero}) input->add_to(t);
      t.expect<int32_t>(0, {m, n}, y);
      t.run();
    }
  }
}

TEST(MatMulInteger, BatchesShareOrHaveTheirOwnB) {
  const Bytes a(false, {3, 2, 6}, 3);
  for (const bool own : {false, true}) {
    const Bytes b(true, own ? Shape{3, 6, 4} : Shape{6, 4}, 4);
    std::vector<int32_t> y;
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        int32_t sum = 0;
        for (int64_t p = 0; p < 6; ++p) {
          sum += a[i * 6 + p] * b[(own ? i / 2 * 24 : 0) + p * 4 + j];
        }
        y.push_back(sum);
      }
    }
    OpTester t("MatMulInteger", 10);
    a.add_to(t);
    b.add_to(t);
    t.expect<int32_t>(0, {3, 2, 4}, y);
    t.run();
  }
}

}  // namespace
}  // namespace folio
