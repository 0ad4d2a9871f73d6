// Conv of domain folio.nhwc with winograd = 1 against direct convolution.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

using Numbers = std::vector<int64_t>;

int64_t product(const Numbers& numbers) {
  int64_t out = 1;
  for (const int64_t number : numbers) out *= number;
  return out;
}

// By the image's axes.
struct ConvCase {
  int64_t batch, channels, filters;
  Numbers image, kernel, dilations, pads;

  Numbers out() const {
    Numbers y = image;
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] += pads[i] + pads[i + y.size()] - (kernel[i] - 1) * dilations[i];
    }
    return y;
  }
  Shape images(const Numbers& sizes, int64_t each) const {
    Shape shape{batch};
    for (const int64_t size : sizes) shape.push_back(size);
    shape.push_back(each);
    return shape;
  }
  Shape w() const {
    Shape shape{filters, channels};
    for (const int64_t taps : kernel) shape.push_back(taps);
    return shape;
  }
};

std::vector<float> wave(int64_t count, float step) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(std::sin(step * static_cast<float>(i % 8191)));
  }
  return out;
}

ConvCase square(int64_t batch, int64_t height, int64_t width, int64_t channels, int64_t filters,
                const Numbers& pads = {1, 1, 1, 1}, const Numbers& dilations = {1, 1}) {
  return {batch, channels, filters, {height, width}, {3, 3}, dilations, pads};
}

// Of one axis, padded so that the outputs are as many as the inputs, or one less.
ConvCase line(int64_t batch, int64_t width, int64_t channels, int64_t filters, int64_t taps,
              int64_t dilation) {
  const int64_t pad = (taps - 1) * dilation / 2;
  return {batch, channels, filters, {width}, {taps}, {dilation}, {pad, pad}};
}

// Edges of tiles and panels, blocks of tiles and of columns, several rounds; dilations that cut the
// outputs evenly, unevenly, and into single ones; lines along each axis; filters of several squares
// along each axis, the last of which are not full, or see padding alone.
const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> all = {
      square(1, 4, 4, 1, 1),
      square(1, 3, 3, 1, 2, {0, 0, 0, 0}),
      square(1, 1, 1, 3, 5),
      square(1, 1, 9, 5, 17, {2, 1, 2, 0}),
      square(2, 5, 7, 16, 16),
      square(1, 8, 8, 17, 33, {0, 1, 2, 0}),
      square(3, 9, 6, 40, 24, {2, 2, 2, 2}),
      square(1, 14, 14, 70, 130),
      square(1, 7, 7, 130, 260),
      square(1, 30, 37, 24, 100),
      square(2, 61, 40, 16, 16),
      square(1, 16, 16, 16, 17, {2, 2, 2, 2}, {2, 2}),
      square(2, 33, 30, 20, 40, {4, 3, 4, 3}, {4, 3}),
      square(1, 5, 11, 18, 16, {9, 1, 9, 1}, {9, 1}),
      square(1, 23, 20, 130, 70, {0, 6, 12, 6}, {6, 6}),
      line(1, 7, 5, 3, 3, 1),
      line(2, 50, 33, 40, 3, 1),
      line(1, 61, 16, 70, 5, 4),
      line(1, 300, 24, 17, 7, 3),
      line(3, 1000, 32, 32, 11, 1),
      line(1, 66, 9, 20, 4, 2),
      line(1, 51, 20, 16, 9, 1),
      line(1, 40, 130, 260, 33, 1),
      {2, 16, 33, {5, 19}, {1, 7}, {1, 1}, {1, 2, 0, 2}},
      {1, 17, 16, {3, 30}, {1, 4}, {3, 2}, {0, 4, 0, 2}},
      {2, 20, 33, {37, 6}, {7, 1}, {1, 5}, {3, 0, 3, 1}},
      {1, 16, 18, {25, 1}, {3, 1}, {2, 1}, {4, 2, 0, 0}},
      {2, 20, 33, {29, 3, 4}, {3, 1, 1}, {1, 1, 1}, {1, 0, 0, 1, 0, 0}},
      {1, 16, 40, {40, 2, 3}, {7, 1, 1}, {3, 1, 2}, {9, 0, 1, 9, 1, 0}},
      {2, 17, 16, {3, 26, 4}, {1, 5, 1}, {1, 2, 1}, {0, 4, 0, 1, 4, 0}},
      {1, 16, 16, {3, 2, 61}, {1, 1, 11}, {1, 1, 1}, {0, 0, 5, 0, 0, 5}},
      {2, 16, 17, {4, 9, 11}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}},
      {1, 40, 70, {6, 14, 10}, {3, 3, 3}, {1, 1, 1}, {0, 1, 2, 2, 0, 1}},
      {1, 20, 16, {1, 7, 8}, {5, 3, 3}, {1, 1, 1}, {2, 1, 1, 2, 1, 1}},
      {3, 18, 33, {9, 12, 9}, {2, 3, 3}, {3, 2, 1}, {2, 2, 1, 0, 2, 1}},
      {2, 16, 16, {5, 8, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1, 0, 1, 1}},
      {1, 16, 33, {14, 15}, {5, 5}, {1, 1}, {2, 2, 2, 2}},
      {2, 24, 16, {9, 13}, {2, 2}, {1, 1}, {0, 1, 1, 0}},
      {1, 17, 20, {21, 24}, {4, 7}, {2, 3}, {3, 9, 3, 9}},
      {1, 16, 18, {12, 3}, {9, 9}, {1, 1}, {4, 4, 4, 4}},
      {2, 20, 17, {7, 4, 9}, {3, 1, 3}, {1, 1, 1}, {1, 0, 1, 1, 0, 1}},
      {1, 16, 16, {9, 10, 5}, {3, 5, 1}, {2, 1, 1}, {2, 2, 0, 2, 2, 0}},
      {1, 18, 16, {4, 8, 11}, {2, 3, 5}, {1, 1, 1}, {1, 1, 2, 0, 1, 2}},
  };
  return all;
}

struct Given {
  std::vector<float> x, w;
  bool is_winograd = true;
  enum Weights { kAsTheyLie, kInPanels, kTransformed } weights = kTransformed;
  DType half = DType::kFloat;  // of the weights
  bool is_all = false;         // with scale, bias, z and an activation
  const char* activation = "Relu";
  int threads = 1;
};

Given given(const ConvCase& c) {
  Given out;
  out.x = wave(c.batch * product(c.image) * c.channels, 0.37F);
  out.w = wave(c.filters * c.channels * product(c.kernel), 0.73F);
  return out;
}

std::vector<float> output_of(const ConvCase& c, const Given& g) {
  OpTester t("Conv", 1, "folio.nhwc");
  t.threads(g.threads).attr_ints("pads", c.pads).attr_ints("dilations", c.dilations);
  if (g.is_winograd) t.attr("winograd", g.weights == Given::kTransformed ? 2 : 1);
  t.input<float>(c.images(c.image, c.channels), g.x);
  const Shape w = c.w();
  const std::vector<double> numbers(g.w.begin(), g.w.end());
  if (g.half != DType::kFloat) t.attr("half_weights", 1);
  if (g.weights == Given::kAsTheyLie) {
    t.input_as(g.half, w, numbers);
  } else {
    t.constant_as(g.half, w, numbers);
  }
  if (g.is_all) {
    t.attr("activation", g.activation);
    const Shape y = c.images(c.out(), c.filters);
    t.input<float>({c.filters}, wave(c.filters, 0.19F));
    t.input<float>(y, wave(y.count(), 0.41F));
    t.input<float>({c.filters}, wave(c.filters, 0.51F));
  }
  t.outputs(1).run();
  return t.output_values<float>(0);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// 1e-6 of the sum of the magnitudes, which all are at most 1.
void expect_near(const ConvCase& c, const std::vector<float>& got,
                 const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  const double bound = 1e-6 * static_cast<double>(product(c.kernel) * c.channels + 2);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], bound) << i;
}

TEST(WinogradConv, IsDirectConvolution) {
  for (size_t i = 0; i < cases().size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const ConvCase& c = cases()[i];
    Given g = given(c);
    for (const bool all : {false, true}) {
      g.is_all = all;
      for (const char* activation : {"Relu", "Sigmoid"}) {  // the transform's own; after it
        g.activation = activation;
        g.is_winograd = false;
        const std::vector<float> direct = output_of(c, g);
        g.is_winograd = true;
        expect_near(c, output_of(c, g), direct);
      }
    }
  }
}

// Where there are more tiles than filters, and the other way round; of whole pieces, and others.
TEST(WinogradConv, HasTheSameBitsWhereverWeightsAreTransformed) {
  for (size_t i = 0; i < cases().size(); ++i) {
    for (const DType half : {DType::kFloat, DType::kFloat16, DType::kBfloat16}) {
      if (half != DType::kFloat && i % 3 != 0) continue;
      SCOPED_TRACE("case " + std::to_string(i) + ", " + std::string(dtype_name(half)));
      Given g = given(cases()[i]);
      g.is_all = true;
      g.half = half;
      g.weights = Given::kTransformed;
      const std::vector<float> before = output_of(cases()[i], g);
      for (const auto weights : {Given::kInPanels, Given::kAsTheyLie}) {
        g.weights = weights;
        g.threads = weights == Given::kInPanels ? 3 : 1;
        EXPECT_TRUE(same_bits(output_of(cases()[i], g), before)) << weights;
      }
    }
  }
}

// Threads make what all of them read, or each what it reads alone.
TEST(WinogradConv, ThreadsChangeNoBit) {
  for (size_t i = 0; i < cases().size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    Given g = given(cases()[i]);
    const std::vector<float> alone = output_of(cases()[i], g);
    for (const int threads : {2, 3, 8}) {
      g.threads = threads;
      EXPECT_TRUE(same_bits(output_of(cases()[i], g), alone)) << threads;
    }
  }
}

TEST(WinogradConv, AnImageDoesNotDependOnItsNeighbours) {
  const ConvCase two = square(2, 10, 13, 20, 18);
  const ConvCase one = square(1, 10, 13, 20, 18);
  Given g = given(two);
  const std::vector<float> both = output_of(two, g);
  g.x.erase(g.x.begin(), g.x.begin() + 10 * 13 * 20);
  const std::vector<float> second = output_of(one, g);
  EXPECT_TRUE(same_bits(second, {both.begin() + 10 * 13 * 18, both.end()}));
}

// What is not finite is just what it is directly, and touches no other image.
void expect_bad_pixel(const ConvCase& c, Given g, float bad, size_t pixel) {
  const size_t image = 81 * 20;
  g.is_all = true;
  const std::vector<float> plain = output_of(c, g);
  g.x[(81 + pixel) * 18 + 5] = bad;
  const std::vector<float> got = output_of(c, g);
  g.is_winograd = false;
  const std::vector<float> direct = output_of(c, g);
  ASSERT_EQ(got.size(), 3 * image);
  for (size_t i = 0; i < got.size(); ++i) {
    const bool is_hit = i / image == 1;
    const float want = is_hit ? direct[i] : plain[i];
    ASSERT_TRUE(std::isnan(want) ? std::isnan(got[i]) : got[i] == want)
        << bad << " at " << pixel << ": " << i;
  }
}

TEST(WinogradConv, InfinityAndNanAreThoseOfDirectConvolution) {
  const ConvCase cube{3, 18, 20, {3, 3, 9}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}};
  for (const ConvCase& c : {square(3, 9, 9, 18, 20), line(3, 81, 18, 20, 7, 2), cube}) {
    Given g = given(c);
    for (const auto weights : {Given::kTransformed, Given::kInPanels, Given::kAsTheyLie}) {
      g.weights = weights;
      for (const float bad : {INFINITY, -INFINITY, NAN, 3e38F}) {
        for (size_t pixel = 0; pixel < 81; pixel += 8) expect_bad_pixel(c, g, bad, pixel);
      }
    }
  }
}

TEST(WinogradConv, InfinityAndNanInWeightsAreThoseOfDirectConvolution) {
  const ConvCase c = square(1, 9, 6, 18, 20);
  for (const float bad : {INFINITY, NAN, 3e38F}) {
    for (size_t tap = 0; tap < 9; ++tap) {
      Given g = given(c);
      g.w[(7 * 18 + 3) * 9 + tap] = bad;
      const std::vector<float> got = output_of(c, g);
      g.is_winograd = false;
      const std::vector<float> direct = output_of(c, g);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(std::isnan(direct[i]) ? std::isnan(got[i])
                                          : got[i] == direct[i] || std::isfinite(direct[i]))
            << bad << " in tap " << tap << ": " << i;
        if (!std::isfinite(direct[i])) continue;
        ASSERT_NEAR(got[i], direct[i], 1e-6 * (9 * 18 + 2) * (bad == 3e38F ? 1e38 : 1));
      }
    }
  }
}

TEST(WinogradConv, RefusesWhatDoesNotFit) {
  const auto refused = [](const Shape& w, const Numbers& strides) {
    OpTester t("Conv", 1, "folio.nhwc");
    t.attr("winograd", 1).attr_ints("strides", strides);
    const Shape x = strides.size() == 2 ? Shape{1, 12, 12, 2} : Shape{1, 7, 7, 7, 2};
    t.input<float>(x, std::vector<float>(static_cast<size_t>(x.count())));
    t.input<float>(w, std::vector<float>(static_cast<size_t>(w.count())));
    t.outputs(1).fails("by Winograd's algorithm");
  };
  refused({2, 2, 1, 1}, {1, 1});
  refused({2, 2, 9, 10}, {1, 1});
  refused({2, 2, 1, 2}, {1, 1});
  refused({2, 2, 2, 1}, {1, 1});
  refused({2, 2, 3, 3}, {2, 2});
  refused({2, 2, 2, 1, 1}, {1, 1, 1});
  refused({2, 2, 5, 5, 4}, {1, 1, 1});
  refused({2, 2, 3, 3, 3}, {2, 1, 1});
  OpTester planes("Conv", 1, "folio.nhwc");
  planes.attr("winograd", 1).attr("planes", 1);
  planes.input<float>({1, 2, 7, 7}, std::vector<float>(98));
  planes.input<float>({2, 2, 3, 3}, std::vector<float>(36));
  planes.outputs(1).fails("by Winograd's algorithm");
}

}  // namespace
}  // namespace folio
