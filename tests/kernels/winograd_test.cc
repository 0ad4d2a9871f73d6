// Transforms of Winograd's convolution against the matrices of winograd.h in double, at every
// level.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

constexpr double kEpsilon = 0x1p-24;
constexpr double kA = 0.75;
constexpr double kB = 1.5;
constexpr double kA2 = kA * kA;
constexpr double kB2 = kB * kB;
constexpr double kFa = 1 / (2 * kA2 * (kA2 - kB2));
constexpr double kFb = 1 / (2 * kB2 * (kB2 - kA2));

using Matrix = std::vector<std::vector<double>>;

const Matrix kForPixels = {
    {kA2 * kB2, 0, -kA2 - kB2, 0, 1, 0}, {0, -kA* kB2, -kB2, kA, 1, 0},
    {0, kA* kB2, -kB2, -kA, 1, 0},       {0, -kA2* kB, -kA2, kB, 1, 0},
    {0, kA2* kB, -kA2, -kB, 1, 0},       {0, kA2* kB2, 0, -kA2 - kB2, 0, 1},
};
const Matrix kForFilters = {
    {1 / (kA2 * kB2), 0, 0},  {kFa, kFa* kA, kFa* kA2},  {kFa, -kFa* kA, kFa* kA2},
    {kFb, kFb* kB, kFb* kB2}, {kFb, -kFb* kB, kFb* kB2}, {0, 0, 1},
};
const Matrix kForOutputs = {
    {1, 1, 1, 1, 1, 0},
    {0, kA, -kA, kB, -kB, 0},
    {0, kA2, kA2, kB2, kB2, 0},
    {0, kA2* kA, -kA2* kA, kB2* kB, -kB2* kB, 1},
};

// T x T', and with absolute values.
struct Transformed {
  Matrix value, bound;
};
Transformed transformed(const Matrix& t, const Matrix& x) {
  const Matrix zeros(t.size(), std::vector<double>(t.size()));
  Transformed out{zeros, zeros};
  for (size_t i = 0; i < t.size(); ++i) {
    for (size_t j = 0; j < t.size(); ++j) {
      for (size_t k = 0; k < x.size(); ++k) {
        for (size_t l = 0; l < x.size(); ++l) {
          const double term = t[i][k] * x[k][l] * t[j][l];
          out.value[i][j] += term;
          out.bound[i][j] += std::abs(term);
        }
      }
    }
  }
  return out;
}

struct Strides {
  int64_t tiles, channels, row_stride;
};

std::vector<Strides> shapes() {
  std::vector<Strides> out;
  for (const int64_t channels : {1, 7, 8, 15, 16, 17, 31, 33, 64}) {
    out.push_back({3, channels, channels});
    out.push_back({2, channels, channels + 5});
  }
  out.push_back({0, 8, 8});
  out.push_back({2, 0, 4});
  return out;
}

std::string label(const LevelUnderTest& level, const Strides& s) {
  return level.name + ": " + std::to_string(s.tiles) + " tiles of " + std::to_string(s.channels);
}

TEST(Winograd, FiltersAreTransformedAlikeAtEveryLevel) {
  for (const int64_t channels : {0, 1, 3, 8}) {
    const auto g = random_floats(static_cast<size_t>(channels * 9 * 16), 5);
    const int64_t stride = channels * 16 + 7;
    std::vector<float> first;
    for (const LevelUnderTest& level : levels_under_test()) {
      SCOPED_TRACE(level.name);
      Guarded u(std::vector<float>(static_cast<size_t>(36 * stride), 77.0F), 1);
      const FolioWinogradFilter args{channels, g.data(), u.data(), stride};
      level.kernels.winograd_filter_f32(&args);
      EXPECT_TRUE(u.intact());
      if (first.empty()) first = u.values();
      EXPECT_TRUE(same_bits(u.values(), first));
      for (int64_t e = 0; e < 36; ++e) {
        for (int64_t i = channels * 16; i < stride; ++i) ASSERT_EQ(u.data()[e * stride + i], 77.0F);
      }
    }
    for (int64_t i = 0; i < channels * 16; ++i) {
      Matrix filter(3, std::vector<double>(3));
      for (int64_t tap = 0; tap < 9; ++tap) {
        filter[static_cast<size_t>(tap / 3)][static_cast<size_t>(tap % 3)] =
            g[static_cast<size_t>((i / 16 * 9 + tap) * 16 + i % 16)];
      }
      const Transformed want = transformed(kForFilters, filter);
      for (size_t e = 0; e < 36; ++e) {  // one rounding, and those in double
        const double expected = want.value[e / 6][e % 6];
        ASSERT_NEAR(first[e * static_cast<size_t>(stride) + static_cast<size_t>(i)], expected,
                    std::abs(expected) * kEpsilon + want.bound[e / 6][e % 6] * 0x1p-49)
            << e << ", " << i;
      }
    }
  }
}

TEST(Winograd, PixelsAreTransformedWhereverTheyLie) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const Strides& s : shapes()) {
      SCOPED_TRACE(label(level, s));
      const auto pixels = random_floats(static_cast<size_t>(s.tiles * 36 * 71 + s.channels), 9);
      std::vector<const float*> x;
      for (int64_t i = 0; i < s.tiles * 36; ++i)
        x.push_back(pixels.data() + i * 53 % 1000 % 71 * s.tiles);
      const int64_t stride = s.tiles * s.row_stride + 3;
      Guarded v(std::vector<float>(static_cast<size_t>(36 * stride), 77.0F), 1);
      const FolioWinogradInput args{s.tiles, s.channels, x.data(), v.data(), stride, s.row_stride};
      level.kernels.winograd_input_f32(&args);
      EXPECT_TRUE(v.intact());
      std::vector<float> want(static_cast<size_t>(36 * stride), 77.0F);
      for (int64_t t = 0; t < s.tiles; ++t) {
        for (int64_t c = 0; c < s.channels; ++c) {
          Matrix d(6, std::vector<double>(6));
          for (size_t e = 0; e < 36; ++e) d[e / 6][e % 6] = x[static_cast<size_t>(t) * 36 + e][c];
          const Transformed tile = transformed(kForPixels, d);
          for (int64_t e = 0; e < 36; ++e) {
            const size_t at = static_cast<size_t>(e * stride + t * s.row_stride + c);
            const auto i = static_cast<size_t>(e / 6);
            const auto j = static_cast<size_t>(e % 6);
            ASSERT_NEAR(v.data()[at], tile.value[i][j], 8 * kEpsilon * tile.bound[i][j]) << at;
            want[at] = v.data()[at];
          }
        }
      }
      EXPECT_TRUE(same_bits(v.values(), want)) << "written between rows or planes";
    }
  }
}

// Products, places and all that is added, with room between the pixels.
struct OutputData {
  explicit OutputData(const Strides& s)
      : plane_stride(s.tiles * s.row_stride + 2),
        y_stride(s.channels + 3),
        m(random_floats(static_cast<size_t>(36 * plane_stride), 2)),
        scale(random_floats(static_cast<size_t>(s.channels), 3)),
        bias(random_floats(static_cast<size_t>(s.channels), 4)),
        addend(random_floats(static_cast<size_t>(s.tiles * 16 * y_stride), 5)) {
    for (int64_t k = 0; k < s.tiles * 16; ++k) {  // backwards, some of them outside of the image
      places.push_back(k % 5 == 3 ? -1 : (s.tiles * 16 - 1 - k) * y_stride);
    }
  }
  FolioWinogradOutput args(const Strides& s, float* y) const {
    FolioWinogradOutput a{};
    a.tiles = s.tiles;
    a.channels = s.channels;
    a.m = m.data();
    a.plane_stride = plane_stride;
    a.row_stride = s.row_stride;
    a.places = places.data();
    a.y = y;
    return a;
  }
  Transformed sums(const Strides& s, int64_t t, int64_t c) const {
    Matrix x(6, std::vector<double>(6));
    for (int64_t e = 0; e < 36; ++e) {
      x[static_cast<size_t>(e / 6)][static_cast<size_t>(e % 6)] =
          m[static_cast<size_t>(e * plane_stride + t * s.row_stride + c)];
    }
    return transformed(kForOutputs, x);
  }
  int64_t plane_stride, y_stride;
  std::vector<float> m, scale, bias, addend;
  std::vector<int64_t> places;
};

TEST(Winograd, ProductsBecomePixelsWithAllThatIsAdded) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const Strides& s : shapes()) {
      for (const bool all : {false, true}) {
        SCOPED_TRACE(label(level, s) + (all ? " with all" : ""));
        const OutputData data(s);
        Guarded y(std::vector<float>(data.addend.size(), 77.0F), 1);
        FolioWinogradOutput args = data.args(s, y.data());
        args.scale = all ? data.scale.data() : nullptr;
        args.bias = all ? data.bias.data() : nullptr;
        args.addend = all ? data.addend.data() : nullptr;
        args.activation = all ? kFolioActLeakyRelu : kFolioActNone;
        args.clip_lo = 0.5F;
        EXPECT_EQ(level.kernels.winograd_output_f32(&args), 1);
        EXPECT_TRUE(y.intact());
        std::vector<float> want(y.count(), 77.0F);
        for (int64_t i = 0; i < s.tiles * 16 * s.channels; ++i) {
          const int64_t t = i / s.channels / 16;
          const int64_t k = i / s.channels % 16;
          const int64_t c = i % s.channels;
          const int64_t place = data.places[static_cast<size_t>(t * 16 + k)];
          if (place < 0) continue;
          const Transformed tile = data.sums(s, t, c);
          const auto row = static_cast<size_t>(k / 4);
          const auto column = static_cast<size_t>(k % 4);
          double expected = tile.value[row][column];
          double bound = 10 * kEpsilon * tile.bound[row][column];
          const auto at = static_cast<size_t>(place + c);
          if (all) {
            const double factor = data.scale[static_cast<size_t>(c)];
            expected = expected * factor + data.bias[static_cast<size_t>(c)] + data.addend[at];
            bound = bound * std::abs(factor) +
                    4 * kEpsilon * (std::abs(tile.value[row][column] * factor) + 2);
            expected = expected < 0 ? expected / 2 : expected;
          }
          ASSERT_NEAR(y.data()[at], expected, bound)
              << "tile " << t << ", output " << k << ", " << c;
          want[at] = y.data()[at];
        }
        EXPECT_TRUE(same_bits(y.values(), want)) << "written where no pixel is";
      }
    }
  }
}

TEST(Winograd, EachSumThatIsNotFiniteIsNoticed) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t channels : {16, 21}) {
      const Strides s{2, channels, channels};
      OutputData data(s);
      std::vector<float> y(data.addend.size());
      for (int64_t e = 0; e < 36; ++e) {
        for (const int64_t c : {int64_t{0}, channels - 1}) {
          for (const float bad : {INFINITY, -INFINITY, NAN}) {
            SCOPED_TRACE(level.name + ": plane " + std::to_string(e));
            float& m = data.m[static_cast<size_t>(e * data.plane_stride + s.row_stride + c)];
            const float good = m;
            m = bad;
            const FolioWinogradOutput args = data.args(s, y.data());
            EXPECT_EQ(level.kernels.winograd_output_f32(&args), 0);
            m = good;
          }
        }
      }
      const FolioWinogradOutput args = data.args(s, y.data());
      EXPECT_EQ(level.kernels.winograd_output_f32(&args), 1);
    }
  }
}

// The three matrices belong together: products of the transforms are the convolution.
TEST(Winograd, TheTransformsMakeAConvolution) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const auto d = random_floats(36 * 16, 11);
    const auto g = random_floats(9 * 16, 12);
    std::vector<float> u(36 * 16);
    std::vector<float> v(36 * 16);
    std::vector<float> y(16 * 16);
    const FolioWinogradFilter filter{1, g.data(), u.data(), 16};
    level.kernels.winograd_filter_f32(&filter);
    std::vector<const float*> x;
    for (size_t e = 0; e < 36; ++e) x.push_back(d.data() + e * 16);
    const FolioWinogradInput input{1, 16, x.data(), v.data(), 16, 16};
    level.kernels.winograd_input_f32(&input);
    for (size_t i = 0; i < v.size(); ++i) v[i] *= u[i];
    std::vector<int64_t> places;
    for (int64_t k = 0; k < 16; ++k) places.push_back(k * 16);
    FolioWinogradOutput output{};
    output.tiles = 1;
    output.channels = 16;
    output.m = v.data();
    output.plane_stride = 16;
    output.row_stride = 16;
    output.places = places.data();
    output.y = y.data();
    EXPECT_EQ(level.kernels.winograd_output_f32(&output), 1);
    for (size_t k = 0; k < 16; ++k) {
      for (size_t c = 0; c < 16; ++c) {
        double sum = 0;
        for (size_t tap = 0; tap < 9; ++tap) {
          const size_t pixel = (k / 4 + tap / 3) * 6 + k % 4 + tap % 3;
          sum += static_cast<double>(d[pixel * 16 + c]) * g[tap * 16 + c];
        }
        EXPECT_NEAR(y[k * 16 + c], sum, 1e-5) << level.name << ", output " << k << ", " << c;
      }
    }
  }
}

}  // namespace
}  // namespace folio
