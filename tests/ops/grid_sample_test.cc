#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

OpTester sample(const char* mode, const char* padding, int align, const std::vector<float>& grid) {
  OpTester t("GridSample", 20);
  t.attr("mode", mode).attr("padding_mode", padding).attr("align_corners", align);
  t.input<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  t.input<float>({1, 1, static_cast<int64_t>(grid.size()) / 2, 2}, grid);
  return t;
}

TEST(GridSample, InterpolatesBetweenElements) {
  OpTester corners = sample("linear", "zeros", 1, {-1, -1, 0, 0, 1, -1, 0, 1});
  corners.expect<float>(0, {1, 1, 1, 4}, {1, 2.5F, 2, 3.5F}, 1e-6).run();
  OpTester centres = sample("linear", "zeros", 0, {-0.5F, -0.5F, -1, -1});
  centres.expect<float>(0, {1, 1, 1, 2}, {1, 0.25F}, 1e-6).run();
}

TEST(GridSample, PadsWhatIsOutside) {
  const std::vector<float> far = {-5, -0.5F, NAN, 0, INFINITY, 0.5F};
  OpTester zeros = sample("nearest", "zeros", 0, far);
  zeros.expect<float>(0, {1, 1, 1, 3}, {0, 0, 0}).run();
  OpTester border = sample("nearest", "border", 0, {-5, -0.5F, 1e30F, 0.5F});
  border.expect<float>(0, {1, 1, 1, 2}, {1, 4}).run();
  OpTester mirrored = sample("nearest", "reflection", 0, {-1.5F, -0.5F, 1.6F, 0.5F, -2.6F, -0.5F});
  mirrored.expect<float>(0, {1, 1, 1, 3}, {1, 4, 2}).run();
  OpTester any = sample("cubic", "reflection", 1, {NAN, -INFINITY, 1e30F, -1e30F});
  any.outputs(1).run();
}

TEST(GridSample, OfComMicrosoftHasTheModesOfOpset16) {
  OpTester t("GridSample", 1, "com.microsoft");
  t.attr("mode", "bilinear").attr("align_corners", 1);
  t.input<float>({1, 1, 1, 2}, {0, 4}).input<float>({1, 1, 2, 2}, {-1, 0, 0, 0});
  t.expect<float>(0, {1, 1, 1, 2}, {0, 2}, 1e-6).run();
  OpTester later("GridSample", 1, "com.microsoft");
  later.attr("mode", "cubic").input<float>({1, 1, 1, 1}, {0}).input<float>({1, 1, 1, 2}, {0, 0});
  later.outputs(1).fails("mode is 'cubic'");
}

TEST(GridSample, SamplesVolumesOfIntegers) {
  OpTester t("GridSample", 22);
  t.attr("mode", "nearest").input<int32_t>({1, 2, 1, 1, 2}, {1, 2, 3, 4});
  t.input<double>({1, 1, 1, 1, 3}, {0.5, 0, 0}).expect<int32_t>(0, {1, 2, 1, 1, 1}, {2, 4}).run();
}

TEST(GridSample, CopiesTheNearestElementWhateverItIs) {
  constexpr int64_t kLarge = (int64_t{1} << 62) + 1;  // no double is it
  OpTester t("GridSample", 20);
  t.attr("mode", "nearest").input<int64_t>({1, 1, 1, 2}, {kLarge, -kLarge});
  t.input<float>({1, 1, 2, 2}, {-0.5F, 0, 0.5F, 0});
  t.expect<int64_t>(0, {1, 1, 1, 2}, {kLarge, -kLarge}).run();
  OpTester halves("GridSample", 20);
  halves.attr("mode", "nearest").attr("padding_mode", "border");
  halves.input<float>({1, 1, 1, 4}, {-0.0F, INFINITY, 2, 3});
  // Between two elements: the even one.
  halves.input<float>({1, 1, 5, 2}, {-0.5F, 0, 0, 0, 0.5F, 0, NAN, 0, 9, NAN});
  halves.expect<float>(0, {1, 1, 1, 5}, {-0.0F, 2, 2, -0.0F, 3}).run();
}

TEST(GridSample, RefusesGridsThatDoNotFit) {
  OpTester t("GridSample", 16);
  t.input<float>({1, 1, 1, 1}, {1}).input<float>({1, 1, 1, 3}, {0, 0, 0}).outputs(1);
  t.fails("expected [n,c,in..]");
  OpTester mode("GridSample", 16);
  mode.attr("mode", "linear").input<float>({1, 1, 1, 1}, {1}).input<float>({1, 1, 1, 2}, {0, 0});
  mode.outputs(1).fails("mode is 'linear'");
  OpTester empty("GridSample", 16);
  empty.input<float>({1, 1, 0, 1}, {}).input<float>({1, 1, 1, 2}, {0, 0}).outputs(1);
  empty.fails("nothing to sample");
}

TEST(GridSample, MovesElementsThatAreNoNumbers) {
  OpTester t("GridSample", 20);
  t.attr("mode", "nearest").input<std::string>({1, 2, 1, 2}, {"a", "b", "c", "d"});
  t.input<float>({1, 1, 3, 2}, {0.5F, 0, -0.5F, 0, 5, 5});
  t.expect<std::string>(0, {1, 2, 1, 3}, {"b", "a", "", "d", "c", ""}).run();
  OpTester flags("GridSample", 20);
  flags.attr("mode", "nearest").attr("padding_mode", "border");
  flags.input<bool>({1, 1, 1, 2}, {false, true}).input<float>({1, 1, 2, 2}, {9, 9, -9, 0});
  flags.expect<bool>(0, {1, 1, 1, 2}, {true, false}).run();
  OpTester linear("GridSample", 20);
  linear.input<bool>({1, 1, 1, 2}, {false, true}).input<float>({1, 1, 1, 2}, {0, 0}).outputs(1);
  linear.fails("by mode 'nearest' alone");
}

std::vector<float> sampled(const char* mode, const std::vector<float>& x, int64_t from, int64_t n) {
  std::vector<float> grid;
  for (int64_t image = 0; image < 2; ++image) {
    for (int64_t at = from; at < from + n; ++at) {
      grid.push_back(static_cast<float>((at + image) * 37 % 241) / 100 - 1.2F);
      grid.push_back(static_cast<float>((at + image) * 91 % 239) / 100 - 1.2F);
    }
  }
  OpTester t("GridSample", 20);
  t.attr("mode", mode).input<float>({2, 3, 9, 11}, x).input<float>({2, n, 1, 2}, grid);
  t.outputs(1).run();
  const std::vector<float> y = t.output_values<float>(0);
  EXPECT_EQ(y.size(), static_cast<size_t>(2 * 3 * n));
  return y;
}

// Places are computed some at a time, for all channels: what one gives does not depend on others.
TEST(GridSample, GivesAPlaceTheSameAmongMany) {
  std::vector<float> x;
  for (int64_t i = 0; i < 2 * 3 * 9 * 11; ++i) x.push_back(static_cast<float>(i * 7919 % 101) - 50);
  constexpr int64_t kAll = 1100;  // more than are taken at a time
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const std::vector<float> y = sampled(mode, x, 0, kAll);
    for (int64_t at = 0; at < kAll; at += 13) {
      const std::vector<float> alone = sampled(mode, x, at, 1);
      for (int64_t plane = 0; plane < 6; ++plane) {
        ASSERT_EQ(y[static_cast<size_t>(plane * kAll + at)], alone[static_cast<size_t>(plane)])
            << mode << ' ' << at << ' ' << plane;
      }
    }
  }
}

// The four neighbours of a place in order, as the sum is defined: in float, weights in double.
float linear_at(const std::vector<float>& x, int64_t height, int64_t width, float px, float py) {
  const double at[2] = {((static_cast<double>(py) + 1) * static_cast<double>(height) - 1) / 2,
                        ((static_cast<double>(px) + 1) * static_cast<double>(width) - 1) / 2};
  const double first[2] = {std::floor(at[0]), std::floor(at[1])};
  float sum = 0;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      const double row = first[0] + i;
      const double column = first[1] + j;
      if (!(row >= 0 && row < static_cast<double>(height))) continue;
      if (!(column >= 0 && column < static_cast<double>(width))) continue;
      const double wy = i == 0 ? 1 - (at[0] - first[0]) : at[0] - first[0];
      const double wx = j == 0 ? 1 - (at[1] - first[1]) : at[1] - first[1];
      const auto place = static_cast<int64_t>(row) * width + static_cast<int64_t>(column);
      sum += static_cast<float>(wy * wx) * x[static_cast<size_t>(place)];
    }
  }
  return sum;
}

// Inside, at every border, beyond it; images one pixel wide; infinities, of which what is outside
// makes no NaN.
TEST(GridSample, SumsNeighboursInOrderWhereverTheyAre) {
  for (const int64_t height : {1, 2, 5}) {
    for (const int64_t width : {1, 2, 3, 7}) {
      for (const bool is_infinite : {false, true}) {
        const int64_t plane = height * width;
        std::vector<float> x, grid, want;
        for (int64_t i = 0; i < 2 * plane; ++i) {
          x.push_back(is_infinite && i % 2 == 0 ? INFINITY : std::sin(static_cast<float>(i) + 1));
        }
        const int64_t n = 333;  // not whole vectors, more than are taken at a time
        for (int64_t i = 0; i < n; ++i) {
          grid.push_back(static_cast<float>(i * 37 % 331) / 100 - 1.6F);
          grid.push_back(static_cast<float>(i * 91 % 329) / 100 - 1.6F);
        }
        for (int64_t c = 0; c < 2; ++c) {
          const std::vector<float> channel(x.begin() + c * plane, x.begin() + (c + 1) * plane);
          for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(2 * i);
            want.push_back(linear_at(channel, height, width, grid[at], grid[at + 1]));
          }
        }
        OpTester t("GridSample", 20);
        t.input<float>({1, 2, height, width}, x).input<float>({1, n, 1, 2}, grid);
        t.expect<float>(0, {1, 2, n, 1}, want).run();
      }
    }
  }
}

// Neighbours that the padding makes the same pixel, or turns, among others.
TEST(GridSample, PadsNeighboursAtBorders) {
  const std::vector<float> places = {-1, -0.5F, 0, -0.5F, 1, 0.5F, 0.25F, 0.5F, -0.75F, 1, 3, 0};
  for (const char* padding : {"border", "reflection"}) {
    OpTester image = sample("linear", padding, 0, places);
    image.outputs(1).run();
    // The same places of a volume one plane deep, which is not an image.
    std::vector<float> deep;
    for (size_t i = 0; i < places.size(); i += 2) {
      deep.insert(deep.end(), {places[i], places[i + 1], 0});
    }
    OpTester volume("GridSample", 20);
    volume.attr("padding_mode", padding).input<float>({1, 1, 1, 2, 2}, {1, 2, 3, 4});
    volume.input<float>({1, 1, 1, 6, 3}, deep).outputs(1).run();
    EXPECT_EQ(image.output_values<float>(0), volume.output_values<float>(0)) << padding;
  }
}

}  // namespace
}  // namespace folio
