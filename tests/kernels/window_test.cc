// Window slots against the definition in double, at every level.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

struct WindowCase {
  int64_t pixels, channels, taps;
  int64_t x_step, y_step;
  int64_t lines = 3;

  int64_t x_line() const { return pixels * x_step + 5; }
  int64_t y_line() const { return pixels * y_step + 3; }
};

// Taps lie at odd places of one buffer, pixels x_step apart.
struct WindowData {
  explicit WindowData(const WindowCase& c)
      : x(random_floats(static_cast<size_t>(c.lines * c.x_line() + c.channels + 3 * c.taps), 1)),
        w(random_floats(static_cast<size_t>(c.taps * c.channels), 2)),
        bias(random_floats(static_cast<size_t>(c.channels), 3)) {
    for (int64_t t = 0; t < c.taps; ++t) {
      x_rows.push_back(x.data() + 3 * t);
      w_rows.push_back(w.data() + t * c.channels);
    }
  }
  FolioWindowF32 args(const WindowCase& c, float* y) const {
    FolioWindowF32 a{};
    a.lines = c.lines;
    a.pixels = c.pixels;
    a.channels = c.channels;
    a.taps = c.taps;
    a.x = x_rows.data();
    a.x_line = c.x_line();
    a.x_step = c.x_step;
    a.w = w_rows.data();
    a.bias = bias.data();
    a.scale = 0.25F;
    a.y = y;
    a.y_line = c.y_line();
    a.y_step = c.y_step;
    return a;
  }
  std::vector<float> x, w, bias;
  std::vector<const float*> x_rows, w_rows;
};

std::vector<WindowCase> cases() {
  std::vector<WindowCase> out;
  for (const int64_t channels : {1, 7, 8, 16, 17, 40}) {
    for (const int64_t taps : {0, 1, 4, 9, 12, 25}) out.push_back({5, channels, taps, 43, 41});
  }
  out.push_back({0, 8, 9, 8, 8});
  out.push_back({3, 0, 9, 8, 8});
  return out;
}

// Checks one slot of all levels: expected(case, data, pixel, channel) within the tolerance.
template <typename Slot, typename Expected>
void check(Slot slot, Expected expected, double tolerance) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const WindowCase& c : cases()) {
      SCOPED_TRACE(level.name + ": channels " + std::to_string(c.channels) + ", taps " +
                   std::to_string(c.taps));
      const WindowData data(c);
      Guarded y(std::vector<float>(static_cast<size_t>(c.lines * c.y_line()), 77.0F), 1);
      const FolioWindowF32 args = data.args(c, y.data());
      (level.kernels.*slot)(&args);
      EXPECT_TRUE(y.intact());
      std::vector<float> left(y.data(), y.data() + c.lines * c.y_line());
      for (int64_t p = 0; p < c.lines * c.pixels; ++p) {
        const auto at = static_cast<size_t>(p / c.pixels * c.y_line() + p % c.pixels * c.y_step);
        for (int64_t j = 0; j < c.channels; ++j) {
          const float got = std::exchange(left[at + static_cast<size_t>(j)], 77.0F);
          const double want = expected(c, data, p, j);
          if (std::isinf(want)) {
            ASSERT_EQ(got, want);
          } else {
            ASSERT_NEAR(got, want, tolerance) << "at " << p << ", " << j;
          }
        }
      }
      for (const float v : left) ASSERT_EQ(v, 77.0F) << "between pixels";
    }
  }
}

// Pixel p of all lines.
double x_at(const WindowCase& c, const WindowData& d, int64_t t, int64_t i, int64_t j) {
  return d.x_rows[static_cast<size_t>(t)][i / c.pixels * c.x_line() + i % c.pixels * c.x_step + j];
}

TEST(Window, DepthwiseIsBiasAndWeightedTaps) {
  check(
      &FolioKernels::depthwise_f32,
      [](const WindowCase& c, const WindowData& d, int64_t i, int64_t j) {
        double sum = d.bias[static_cast<size_t>(j)];
        for (int64_t t = 0; t < c.taps; ++t) {
          sum += static_cast<double>(d.w_rows[static_cast<size_t>(t)][j]) * x_at(c, d, t, i, j);
        }
        return sum;
      },
      1e-5);
}

// Groups smaller than a vector, of one, and larger; pixels and lines of any number share weights.
TEST(Window, GroupsSumTheirOwnChannels) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t group : {2, 4, 8, 16, 32}) {
      for (const int64_t pixels : {0, 1, 2, 5, 9}) {
        const int64_t channels = 3 * group;
        const WindowCase c = {pixels, channels, 5, channels + 2, channels + 1};
        WindowData data(c);
        const int64_t panel = c.taps * group * 16;
        data.w = random_floats(static_cast<size_t>((channels + 15) / 16 * panel), 4);
        for (size_t t = 0; t < data.w_rows.size(); ++t) {
          data.w_rows[t] = data.w.data() + static_cast<int64_t>(t) * group * 16;
        }
        Guarded y(std::vector<float>(static_cast<size_t>(c.lines * c.y_line()), 77.0F), 1);
        FolioWindowF32 args = data.args(c, y.data());
        args.group = group;
        args.w_panel = panel;
        args.activation = kFolioActClip;
        args.clip_lo = -0.5F;
        args.clip_hi = 1.5F;
        level.kernels.grouped_f32(&args);
        ASSERT_TRUE(y.intact());
        for (int64_t p = 0; p < c.lines * pixels; ++p) {
          const int64_t line = p / pixels;
          const int64_t from = line * c.x_line() + p % pixels * c.x_step;
          const int64_t to = line * c.y_line() + p % pixels * c.y_step;
          for (int64_t j = 0; j < channels; ++j) {
            double want = data.bias[static_cast<size_t>(j)];
            for (size_t t = 0; t < data.x_rows.size(); ++t) {
              const float* x = data.x_rows[t] + from + j / group * group;
              const float* w = data.w_rows[t] + j / 16 * panel + j % 16;
              for (int64_t s = 0; s < group; ++s) want += double{w[16 * s]} * x[s];
            }
            ASSERT_NEAR(y.data()[to + j], std::clamp(want, -0.5, 1.5), 1e-4)
                << level.name << ": groups of " << group << ", at " << p << ", " << j;
          }
          ASSERT_EQ(y.data()[to + channels], 77.0F) << "between pixels";
        }
      }
    }
  }
}

TEST(Window, MaxIsTheLargestTap) {
  check(
      &FolioKernels::max_window_f32,
      [](const WindowCase& c, const WindowData& d, int64_t i, int64_t j) {
        double best = -INFINITY;
        for (int64_t t = 0; t < c.taps; ++t) best = std::max(best, x_at(c, d, t, i, j));
        return best;
      },
      0.0);
}

TEST(Window, SumIsScaled) {
  check(
      &FolioKernels::sum_window_f32,
      [](const WindowCase& c, const WindowData& d, int64_t i, int64_t j) {
        double sum = 0;
        for (int64_t t = 0; t < c.taps; ++t) sum += x_at(c, d, t, i, j);
        return sum * 0.25;
      },
      1e-5);
}

TEST(Window, DepthwiseAppliesItsActivationAndNeedsNoBias) {
  const WindowCase c{4, 19, 9, 23, 19};
  const WindowData data(c);
  for (const LevelUnderTest& level : levels_under_test()) {
    SCOPED_TRACE(level.name);
    std::vector<float> plain(static_cast<size_t>(c.lines * c.y_line()));
    std::vector<float> relu = plain;
    std::vector<float> clip = plain;
    FolioWindowF32 args = data.args(c, plain.data());
    args.bias = nullptr;
    level.kernels.depthwise_f32(&args);
    args.y = relu.data();
    args.activation = kFolioActRelu;
    level.kernels.depthwise_f32(&args);
    args.y = clip.data();
    args.activation = kFolioActClip;
    args.clip_lo = -0.25F;
    args.clip_hi = 0.5F;
    level.kernels.depthwise_f32(&args);
    for (size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(relu[i], std::max(plain[i], 0.0F));
      ASSERT_EQ(clip[i], std::clamp(plain[i], -0.25F, 0.5F));
    }
  }
}

// A filter of rows x columns taps over an image, its windows `step` columns and lines apart.
struct FilterCase {
  int64_t rows, columns, step, pixels, channels;
  int64_t lines = 3;
  int64_t width() const { return (pixels - 1) * step + columns; }
};

std::vector<FilterCase> filter_cases() {
  std::vector<FilterCase> out;
  for (const int64_t step : {1, 2, 3}) {
    for (const int64_t columns : {3, 5, 7}) {
      for (int64_t pixels = 1; pixels <= 21; pixels += pixels < 13 ? 1 : 4) {
        for (const int64_t channels : {8, 33, 40}) {
          out.push_back({columns, columns, step, pixels, channels});
        }
      }
      out.push_back({columns - 1, columns, step, 9, 16});  // at an image's upper or lower border
      out.push_back({columns, columns - 1, step, 9, 16});  // at its sides
    }
    out.push_back({3, 2, step, 1, 40, 5});   // a pixel of each line
    out.push_back({3, 3, step, 31, 64, 8});  // lines that exceed their share of a cache
    out.push_back({3, 3, step, 43, 128, 7});
  }
  return out;
}

// However many pixels and channels share loads, and in whatever order pixels take turns.
TEST(Window, DepthwiseIsOneChainOfFmafInTheOrderOfTaps) {
  for (const FilterCase& c : filter_cases()) {
    const int64_t line = c.width() * c.channels;
    const auto count = static_cast<size_t>(c.lines * c.pixels * c.channels);
    const auto x = random_floats(static_cast<size_t>((c.lines * c.step + c.rows) * line), 1);
    const auto w = random_floats(static_cast<size_t>(c.rows * c.columns * c.channels), 2);
    const auto bias = random_floats(static_cast<size_t>(c.channels), 3);
    std::vector<const float*> taps, weights;
    for (int64_t t = 0; t < c.rows * c.columns; ++t) {
      taps.push_back(x.data() + t / c.columns * line + t % c.columns * c.channels);
      weights.push_back(w.data() + t * c.channels);
    }
    std::vector<float> want(count);
    for (size_t i = 0; i < count; ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t j = at % c.channels, p = at / c.channels;
      float sum = bias[static_cast<size_t>(j)];
      for (size_t t = 0; t < taps.size(); ++t) {
        sum = std::fmaf(
            weights[t][j],
            taps[t][p / c.pixels * c.step * line + p % c.pixels * c.step * c.channels + j], sum);
      }
      want[i] = std::clamp(sum, -0.75F, 1.25F);
    }
    FolioWindowF32 args{};
    args.lines = c.lines, args.pixels = c.pixels, args.channels = c.channels;
    args.taps = static_cast<int64_t>(taps.size());
    args.x = taps.data(), args.w = weights.data(), args.bias = bias.data();
    args.x_line = c.step * line, args.x_step = c.step * c.channels;
    args.y_line = c.pixels * c.channels, args.y_step = c.channels;
    args.activation = kFolioActClip, args.clip_lo = -0.75F, args.clip_hi = 1.25F;
    for (const LevelUnderTest& level : levels_under_test()) {
      if (&level == &levels_under_test().front()) continue;  // ref sums in double
      Guarded y(count);
      args.y = y.data();
      level.kernels.depthwise_f32(&args);
      EXPECT_TRUE(y.intact());
      ASSERT_EQ(std::vector<float>(y.data(), y.data() + count), want)
          << level.name << ": " << c.rows << " x " << c.columns << " step " << c.step << ", pixels "
          << c.pixels << ", channels " << c.channels;
    }
  }
}

struct PlaneCase {
  int64_t lines, pixels;  // of x
  int64_t rows, columns, line_step, pixel_step, row_step, column_step, top, left, bottom, right;
  int64_t planes = 1;

  int64_t out_lines() const {
    return (lines + top + bottom - (rows - 1) * row_step - 1) / line_step + 1;
  }
  int64_t out_pixels() const {
    return (pixels + left + right - (columns - 1) * column_step - 1) / pixel_step + 1;
  }
};

std::vector<PlaneCase> plane_cases() {
  std::vector<PlaneCase> out;
  for (const int64_t pixels : {1, 3, 7, 8, 14, 16, 17, 31, 33, 66, 150}) {
    for (const int64_t step : {1, 2}) {
      out.push_back({9, pixels, 3, 3, step, step, 1, 1, 1, 1, 1, 1});
      out.push_back({5, pixels, 3, 3, step, step, 1, 1, 0, 2, 3, 0});
      out.push_back({2, pixels, 3, 3, 3 - step, step, 1, 1, 2, 1, 2, 1});
      out.push_back({11, pixels, 5, 4, 1, step, 1, 1, 2, 2, 2, 2});
      out.push_back({12, pixels, 2, 3, 2, step, 3, 2, 3, 40, 1, 40});
      out.push_back({1, pixels, 1, 19, 1, step, 1, 1, 0, 9, 0, 9});
      out.push_back({9, pixels, 3, 3, step, step, 1, 1, 1, 1, 1, 1, 3});
      out.push_back({14, pixels, 3, 2, 1, step, 6, 5, 6, 5, 6, 5, 2});
    }
  }
  return out;
}

double plane_at(const PlaneCase& c, const std::vector<float>& x, int64_t plane, int64_t line,
                int64_t pixel) {
  if (line < 0 || line >= c.lines || pixel < 0 || pixel >= c.pixels) return 0;
  return x[static_cast<size_t>((plane * c.lines + line) * c.pixels + pixel)];
}

FolioPlaneF32 plane_args(const PlaneCase& c, const float* x, const float* w, float* y) {
  FolioPlaneF32 a{};
  a.lines = c.out_lines(), a.pixels = c.out_pixels(), a.x_lines = c.lines, a.x_pixels = c.pixels;
  a.planes = c.planes, a.x_plane = c.lines * c.pixels;
  a.rows = c.rows, a.columns = c.columns;
  a.line_step = c.line_step, a.pixel_step = c.pixel_step;
  a.row_step = c.row_step, a.column_step = c.column_step, a.top = c.top, a.left = c.left;
  a.x = x, a.w = w, a.y = y;
  a.bias = 0.25F;
  a.activation = kFolioActLeakyRelu;
  a.clip_lo = 0.5F;
  return a;
}

TEST(Window, AFilterSeesZerosAroundItsPlane) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const PlaneCase& c : plane_cases()) {
      if (c.out_pixels() < 1 || c.pixels + c.left + c.right < (c.columns - 1) * c.column_step + 1) {
        continue;
      }
      SCOPED_TRACE(level.name + ": " + std::to_string(c.pixels) + " pixels, " +
                   std::to_string(c.rows) + " x " + std::to_string(c.columns) + ", step " +
                   std::to_string(c.pixel_step));
      Guarded x(random_floats(static_cast<size_t>(c.planes * c.lines * c.pixels), 1), 1);
      const int64_t taps = c.rows * c.columns;
      const std::vector<float> w = random_floats(static_cast<size_t>(c.planes * taps), 2);
      const std::vector<float> pixels(x.data(), x.data() + c.planes * c.lines * c.pixels);
      const auto count = static_cast<size_t>(c.out_lines() * c.out_pixels());
      Guarded y(std::vector<float>(count, 77.0F), 1);
      FolioPlaneF32 args = plane_args(c, x.data(), w.data(), y.data());
      level.kernels.filter_plane_f32(&args);
      ASSERT_TRUE(y.intact());
      for (size_t o = 0; o < count; ++o) {
        const auto line = static_cast<int64_t>(o) / c.out_pixels() * c.line_step - c.top;
        const auto pixel = static_cast<int64_t>(o) % c.out_pixels() * c.pixel_step - c.left;
        double want = 0.25;
        for (int64_t t = 0; t < c.planes * taps; ++t) {
          want += static_cast<double>(w[static_cast<size_t>(t)]) *
                  plane_at(c, pixels, t / taps, line + t % taps / c.columns * c.row_step,
                           pixel + t % c.columns * c.column_step);
        }
        ASSERT_NEAR(y.data()[o], want < 0 ? 0.5 * want : want, 1e-5) << "at " << o;
      }
      // Any part of the lines has the same bits.
      std::vector<float> parts(count);
      for (int64_t l = 0; l < c.out_lines(); ++l) {
        args.lines = 1;
        args.top = c.top - l * c.line_step;
        args.y = parts.data() + l * c.out_pixels();
        level.kernels.filter_plane_f32(&args);
      }
      ASSERT_EQ(parts, std::vector<float>(y.data(), y.data() + count));
    }
  }
}

TEST(Window, MaxKeepsNanWhereverItStands) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const size_t bad : {0, 1, 2}) {
      std::vector<std::vector<float>> x(3, std::vector<float>(18, 1.0F));
      x[bad].assign(18, NAN);
      const float* rows[] = {x[0].data(), x[1].data(), x[2].data()};
      std::vector<float> y(18);
      FolioWindowF32 args{};
      args.lines = 1;
      args.pixels = 1;
      args.channels = 18;
      args.taps = 3;
      args.x = rows;
      args.y = y.data();
      level.kernels.max_window_f32(&args);
      for (const float v : y) ASSERT_TRUE(std::isnan(v)) << level.name << ", tap " << bad;
    }
  }
}

}  // namespace
}  // namespace folio
