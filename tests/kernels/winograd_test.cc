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

// Of 4 taps: of each point, the last one infinity.
const std::vector<double> kPoints = {0, 0.5, -0.5, 1, -1, 2};

// The coefficients of the product of all x less a point, but for one of these.
std::vector<double> product_without(size_t left_out) {
  std::vector<double> out(kPoints.size() + 1);
  out[0] = 1;
  for (size_t i = 0; i < kPoints.size(); ++i) {
    if (i == left_out) continue;
    for (size_t k = out.size() - 1; k > 0; --k) out[k] = out[k - 1] - kPoints[i] * out[k];
    out[0] *= -kPoints[i];
  }
  return out;
}

double value_at(const std::vector<double>& coefficients, double x) {
  double sum = 0;
  for (size_t k = coefficients.size(); k > 0; --k) sum = sum * x + coefficients[k - 1];
  return sum;
}

Matrix seven_for_pixels() {
  Matrix out;
  for (size_t i = 0; i <= kPoints.size(); ++i) out.push_back(product_without(i));
  return out;
}

Matrix seven_for_filters() {
  Matrix out;
  for (size_t i = 0; i < kPoints.size(); ++i) {
    const double x = kPoints[i];
    const double f = value_at(product_without(i), x);
    out.push_back({1 / f, x / f, x * x / f, x * x * x / f});
  }
  out.push_back({0, 0, 0, 1});
  return out;
}

Matrix seven_for_outputs() {
  Matrix out(4);
  for (size_t i = 0; i < 4; ++i) {
    for (const double x : kPoints) out[i].push_back(std::pow(x, i));
    out[i].push_back(i == 3 ? 1 : 0);
  }
  return out;
}

// Of squares, 6 x 6 pixels and 4 x 4 outputs of 3 x 3 taps, or of lines, 4 outputs of 3 or 4 taps.
struct Tile {
  int32_t line_taps;
  Matrix for_pixels, for_filters, for_outputs;
  bool is_line = line_taps > 0;
  int64_t planes = is_line ? line_taps + 3 : 36;
  int64_t outputs = is_line ? 4 : 16;
  int64_t taps = is_line ? line_taps : 9;
};
const Tile kTiles[] = {{0, kForPixels, kForFilters, kForOutputs},
                       {3, kForPixels, kForFilters, kForOutputs},
                       {4, seven_for_pixels(), seven_for_filters(), seven_for_outputs()}};

// T x T', of a line T x, and with absolute values, row by row.
struct Transformed {
  std::vector<double> value, bound;
};
Transformed transformed(const Tile& tile, const Matrix& t, const std::vector<double>& x) {
  const size_t in = t[0].size();
  const size_t out_columns = tile.is_line ? 1 : t.size();
  const size_t in_columns = tile.is_line ? 1 : in;
  const std::vector<double> zeros(t.size() * out_columns);
  Transformed out{zeros, zeros};
  for (size_t i = 0; i < zeros.size(); ++i) {
    for (size_t k = 0; k < in * in_columns; ++k) {
      const double right = tile.is_line ? 1 : t[i % out_columns][k % in_columns];
      const double term = t[i / out_columns][k / in_columns] * x[k] * right;
      out.value[i] += term;
      out.bound[i] += std::abs(term);
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

std::string label(const LevelUnderTest& level, const Tile& tile, const Strides& s) {
  return level.name + ": " + std::to_string(s.tiles) + " tiles of " + std::to_string(tile.taps) +
         " taps, of " + std::to_string(s.channels);
}

void expect_filters(const Tile& tile, int64_t channels) {
  const int64_t tap_stride = channels * 16 + 3;
  const auto g = random_floats(static_cast<size_t>(tap_stride * tile.taps), 5);
  const int64_t stride = channels * 16 + 7;
  std::vector<float> first;
  for (const LevelUnderTest& level : levels_under_test()) {
    SCOPED_TRACE(level.name);
    Guarded u(std::vector<float>(static_cast<size_t>(tile.planes * stride), 77.0F), 1);
    const FolioWinogradFilter args{channels, g.data(), tap_stride,
                                   u.data(), stride,   tile.line_taps};
    level.kernels.winograd_filter_f32(&args);
    EXPECT_TRUE(u.intact());
    if (first.empty()) first = u.values();
    EXPECT_TRUE(same_bits(u.values(), first));
    for (int64_t e = 0; e < tile.planes; ++e) {
      for (int64_t i = channels * 16; i < stride; ++i) ASSERT_EQ(u.data()[e * stride + i], 77.0F);
    }
  }
  for (int64_t i = 0; i < channels * 16; ++i) {
    std::vector<double> filter;
    for (int64_t tap = 0; tap < tile.taps; ++tap) {
      filter.push_back(g[static_cast<size_t>(tap * tap_stride + i)]);
    }
    const Transformed want = transformed(tile, tile.for_filters, filter);
    for (size_t e = 0; e < want.value.size(); ++e) {  // one rounding, and those in double
      ASSERT_NEAR(first[e * static_cast<size_t>(stride) + static_cast<size_t>(i)], want.value[e],
                  std::abs(want.value[e]) * kEpsilon + want.bound[e] * 0x1p-49)
          << e << ", " << i;
    }
  }
}

TEST(Winograd, FiltersAreTransformedAlikeAtEveryLevel) {
  for (const Tile& tile : kTiles) {
    for (const int64_t channels : {0, 1, 3, 8}) expect_filters(tile, channels);
  }
}

void expect_pixels(const LevelUnderTest& level, const Tile& tile, const Strides& s) {
  const auto pixels = random_floats(static_cast<size_t>(s.tiles * 36 * 71 + s.channels), 9);
  std::vector<const float*> x;
  for (int64_t i = 0; i < s.tiles * tile.planes; ++i) {
    x.push_back(pixels.data() + i * 53 % 1000 % 71 * s.tiles);
  }
  const int64_t stride = s.tiles * s.row_stride + 3;
  Guarded v(std::vector<float>(static_cast<size_t>(tile.planes * stride), 77.0F), 1);
  const FolioWinogradInput args{s.tiles, s.channels,   x.data(),      v.data(),
                                stride,  s.row_stride, tile.line_taps};
  level.kernels.winograd_input_f32(&args);
  EXPECT_TRUE(v.intact());
  std::vector<float> want(static_cast<size_t>(tile.planes * stride), 77.0F);
  for (int64_t t = 0; t < s.tiles; ++t) {
    for (int64_t c = 0; c < s.channels; ++c) {
      std::vector<double> d;
      for (int64_t e = 0; e < tile.planes; ++e) {
        d.push_back(x[static_cast<size_t>(t * tile.planes + e)][c]);
      }
      const Transformed expected = transformed(tile, tile.for_pixels, d);
      for (size_t e = 0; e < d.size(); ++e) {
        const auto at = e * static_cast<size_t>(stride) + static_cast<size_t>(t * s.row_stride + c);
        ASSERT_NEAR(v.data()[at], expected.value[e], 8 * kEpsilon * expected.bound[e]) << at;
        want[at] = v.data()[at];
      }
    }
  }
  EXPECT_TRUE(same_bits(v.values(), want)) << "written between rows or planes";
}

TEST(Winograd, PixelsAreTransformedWhereverTheyLie) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const Tile& tile : kTiles) {
      for (const Strides& s : shapes()) {
        SCOPED_TRACE(label(level, tile, s));
        expect_pixels(level, tile, s);
      }
    }
  }
}

// Products, pixels and all that is added, with room between the pixels of both.
struct OutputData {
  OutputData(const Tile& of, const Strides& s)
      : tile(of),
        plane_stride(s.tiles * s.row_stride + 2),
        y_step(s.channels + 3),
        addend_step(s.channels + 5),
        m(random_floats(static_cast<size_t>(tile.planes * plane_stride), 2)),
        scale(random_floats(static_cast<size_t>(s.channels), 3)),
        bias(random_floats(static_cast<size_t>(s.channels), 4)),
        addend(random_floats(static_cast<size_t>(s.tiles * tile.outputs * addend_step), 5)) {
    const int64_t count = s.tiles * tile.outputs;
    for (int64_t k = 0; k < count; ++k) {  // backwards, some of them outside of the image
      pixels.push_back(k % 5 == 3 ? -1 : count - 1 - k);
    }
  }
  FolioWinogradOutput args(const Strides& s, float* y) const {
    FolioWinogradOutput a{};
    a.tiles = s.tiles;
    a.channels = s.channels;
    a.m = m.data();
    a.plane_stride = plane_stride;
    a.row_stride = s.row_stride;
    a.pixels = pixels.data();
    a.y_step = y_step;
    a.addend_step = addend_step;
    a.y = y;
    a.line_taps = tile.line_taps;
    return a;
  }
  Transformed sums(const Strides& s, int64_t t, int64_t c) const {
    std::vector<double> x;
    for (int64_t e = 0; e < tile.planes; ++e) {
      x.push_back(m[static_cast<size_t>(e * plane_stride + t * s.row_stride + c)]);
    }
    return transformed(tile, tile.for_outputs, x);
  }
  Tile tile;
  int64_t plane_stride, y_step, addend_step;
  // Floats of y.
  size_t y_floats() const { return pixels.size() * static_cast<size_t>(y_step); }
  std::vector<float> m, scale, bias, addend;
  std::vector<int64_t> pixels;
};

void expect_outputs(const LevelUnderTest& level, const Tile& tile, const Strides& s, bool all) {
  const OutputData data(tile, s);
  Guarded y(std::vector<float>(data.y_floats(), 77.0F), 1);
  FolioWinogradOutput args = data.args(s, y.data());
  args.scale = all ? data.scale.data() : nullptr;
  args.bias = all ? data.bias.data() : nullptr;
  args.addend = all ? data.addend.data() : nullptr;
  args.activation = all ? kFolioActLeakyRelu : kFolioActNone;
  args.clip_lo = 0.5F;
  EXPECT_EQ(level.kernels.winograd_output_f32(&args), 1);
  EXPECT_TRUE(y.intact());
  std::vector<float> want(y.count(), 77.0F);
  for (int64_t i = 0; i < s.tiles * tile.outputs * s.channels; ++i) {
    const int64_t t = i / s.channels / tile.outputs;
    const int64_t k = i / s.channels % tile.outputs;
    const int64_t c = i % s.channels;
    const int64_t pixel = data.pixels[static_cast<size_t>(t * tile.outputs + k)];
    if (pixel < 0) continue;
    const Transformed sums = data.sums(s, t, c);
    const double sum = sums.value[static_cast<size_t>(k)];
    double expected = sum;
    double bound = 10 * kEpsilon * sums.bound[static_cast<size_t>(k)];
    const auto at = static_cast<size_t>(pixel * data.y_step + c);
    if (all) {
      const double factor = data.scale[static_cast<size_t>(c)];
      const auto added = static_cast<size_t>(pixel * data.addend_step + c);
      expected = expected * factor + data.bias[static_cast<size_t>(c)] + data.addend[added];
      bound = bound * std::abs(factor) + 4 * kEpsilon * (std::abs(sum * factor) + 2);
      expected = expected < 0 ? expected / 2 : expected;
    }
    ASSERT_NEAR(y.data()[at], expected, bound) << "tile " << t << ", output " << k << ", " << c;
    want[at] = y.data()[at];
  }
  EXPECT_TRUE(same_bits(y.values(), want)) << "written where no pixel is";
}

TEST(Winograd, ProductsBecomePixelsWithAllThatIsAdded) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const Tile& tile : kTiles) {
      for (const Strides& s : shapes()) {
        for (const bool all : {false, true}) {
          SCOPED_TRACE(label(level, tile, s) + (all ? " with all" : ""));
          expect_outputs(level, tile, s, all);
        }
      }
    }
  }
}

void expect_notice(const LevelUnderTest& level, const Tile& tile, int64_t channels) {
  const Strides s{2, channels, channels};
  OutputData data(tile, s);
  std::vector<float> y(data.y_floats());
  for (int64_t e = 0; e < tile.planes; ++e) {
    for (const int64_t c : {int64_t{0}, channels - 1}) {
      for (const float bad : {INFINITY, -INFINITY, NAN}) {
        SCOPED_TRACE(label(level, tile, s) + ": plane " + std::to_string(e));
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

TEST(Winograd, EachSumThatIsNotFiniteIsNoticed) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const Tile& tile : kTiles) {
      for (const int64_t channels : {16, 21}) expect_notice(level, tile, channels);
    }
  }
}

// The three matrices belong together: products of the transforms are the convolution.
void expect_convolution(const LevelUnderTest& level, const Tile& tile) {
  const auto planes = static_cast<size_t>(tile.planes);
  const auto d = random_floats(planes * 16, 11);
  const auto g = random_floats(static_cast<size_t>(tile.taps) * 16, 12);
  std::vector<float> u(planes * 16);
  std::vector<float> v(planes * 16);
  std::vector<float> y(static_cast<size_t>(tile.outputs) * 16);
  const FolioWinogradFilter filter{1, g.data(), 16, u.data(), 16, tile.line_taps};
  level.kernels.winograd_filter_f32(&filter);
  std::vector<const float*> x;
  for (size_t e = 0; e < planes; ++e) x.push_back(d.data() + e * 16);
  const FolioWinogradInput input{1, 16, x.data(), v.data(), 16, 16, tile.line_taps};
  level.kernels.winograd_input_f32(&input);
  for (size_t i = 0; i < v.size(); ++i) v[i] *= u[i];
  std::vector<int64_t> pixels;
  for (int64_t k = 0; k < tile.outputs; ++k) pixels.push_back(k);
  FolioWinogradOutput output{};
  output.tiles = 1;
  output.channels = 16;
  output.m = v.data();
  output.plane_stride = 16;
  output.row_stride = 16;
  output.pixels = pixels.data();
  output.y_step = 16;
  output.y = y.data();
  output.line_taps = tile.line_taps;
  EXPECT_EQ(level.kernels.winograd_output_f32(&output), 1);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t k = i / 16;
    double sum = 0;
    for (size_t tap = 0; tap < static_cast<size_t>(tile.taps); ++tap) {
      const size_t pixel = tile.is_line ? k + tap : (k / 4 + tap / 3) * 6 + k % 4 + tap % 3;
      sum += static_cast<double>(d[pixel * 16 + i % 16]) * g[tap * 16 + i % 16];
    }
    EXPECT_NEAR(y[i], sum, 1e-5) << level.name << ", output " << k << ", " << i % 16;
  }
}

TEST(Winograd, TheTransformsMakeAConvolution) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const Tile& tile : kTiles) expect_convolution(level, tile);
  }
}

}  // namespace
}  // namespace folio
