// Maxima and sums of windows over lines (max_lines_f32, sum_lines_f32) against their definition, at
// every level.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

struct LinesCase {
  int64_t x_pixels, pixels, taps, pixel_step, tap_step, left;
  std::vector<int64_t> counts;

  int64_t rows() const {
    int64_t all = 0;
    for (const int64_t count : counts) all += count;
    return all;
  }
};

std::vector<LinesCase> lines_cases() {
  std::vector<LinesCase> out;
  for (const int64_t pixels : {1, 2, 7, 8, 15, 16, 17, 33, 70}) {
    for (const int64_t step : {1, 2, 3}) {
      const int64_t x = pixels * step;
      out.push_back({x, pixels, 3, step, 1, 1, {3, 2, 3}});
      out.push_back({x + 3, pixels, 2, step, 1, 0, {2, 2}});
      out.push_back({x, pixels, 1, step, 1, 0, {1, 4}});
      out.push_back({x, pixels, 4, step, 2, 3, {5, 0, 1}});
      out.push_back({x, pixels, 13, step, 1, 6, {13}});
      out.push_back({x, pixels + 30, 3, step, 1, 40, {2}});  // windows beside the rows
    }
  }
  for (const int64_t step : {1, 2, 5, 9}) out.push_back({5001, 4990 / step, 3, step, 3, 2, {2, 3}});
  out.push_back({40, 1, 40, 5000, 1, 0, {2}});
  out.push_back({0, 3, 3, 1, 1, 1, {2}});
  return out;
}

constexpr int64_t kPlanes = 2;

class LinesProblem {
 public:
  explicit LinesProblem(const LinesCase& c)
      : c_(c),
        by_lines_(random_floats(c.counts.size(), 1)),
        by_pixels_(random_floats(static_cast<size_t>(c.pixels), 2)),
        x_(random_floats(static_cast<size_t>(kPlanes * c.rows() * c.x_pixels), 3)) {
    for (float& by : by_lines_) by += 2;
    for (float& by : by_pixels_) by += 2;
  }

  std::vector<float>& x() { return x_; }
  size_t line_of(size_t o) const { return o / pixels() % c_.counts.size(); }
  double divisor(size_t o) const {
    return static_cast<double>(by_lines_[line_of(o)]) *
           static_cast<double>(by_pixels_[o % pixels()]);
  }

  // x ends where nothing can be read; y and the scratch are as long as they must be.
  template <auto kSlot>
  std::vector<float> run(const FolioKernels& kernels) const {
    const BeforeUnreadable x(x_);
    std::vector<int64_t> rows;
    for (int64_t r = 0; r < c_.rows(); ++r) rows.push_back(r * c_.x_pixels);
    Guarded y(kPlanes * c_.counts.size() * pixels(), 1);
    FolioLinesF32 args{};
    args.planes = kPlanes, args.x_plane = c_.rows() * c_.x_pixels;
    args.y_plane = std::ssize(c_.counts) * c_.pixels;
    args.lines = std::ssize(c_.counts), args.pixels = c_.pixels, args.counts = c_.counts.data();
    args.rows = rows.data(), args.x_pixels = c_.x_pixels;
    args.taps = c_.taps, args.pixel_step = c_.pixel_step, args.tap_step = c_.tap_step;
    args.left = c_.left;
    Guarded scratch(static_cast<size_t>(folio_lines_floats(&args)), 1);
    args.by_lines = by_lines_.data(), args.by_pixels = by_pixels_.data();
    args.x = x.data(), args.joined = scratch.data(), args.y = y.data();
    (kernels.*kSlot)(&args);
    EXPECT_TRUE(y.intact());
    EXPECT_TRUE(scratch.intact());
    return y.values();
  }

  // Calls body(x) for all that is under output o.
  template <typename Body>
  void for_taps(size_t o, Body&& body) const {
    const size_t plane = o / pixels() / c_.counts.size();
    size_t row = plane * static_cast<size_t>(c_.rows());
    for (size_t l = 0; l < line_of(o); ++l) row += static_cast<size_t>(c_.counts[l]);
    for (int64_t r = 0; r < c_.counts[line_of(o)]; ++r, ++row) {
      for (int64_t t = 0; t < c_.taps; ++t) {
        const auto i = static_cast<int64_t>(o % pixels());
        const int64_t at = i * c_.pixel_step + t * c_.tap_step - c_.left;
        if (at < 0 || at >= c_.x_pixels) continue;
        body(x_[row * static_cast<size_t>(c_.x_pixels) + static_cast<size_t>(at)]);
      }
    }
  }

 private:
  size_t pixels() const { return static_cast<size_t>(c_.pixels); }

  const LinesCase& c_;
  std::vector<float> by_lines_;
  std::vector<float> by_pixels_;
  std::vector<float> x_;
};

TEST(Lines, MaximaAndSumsAreOfWhatLiesInsideTheRows) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const LinesCase& c : lines_cases()) {
      SCOPED_TRACE(level.name + ": " + std::to_string(c.x_pixels) + " to " +
                   std::to_string(c.pixels) + ", taps " + std::to_string(c.taps) + ", step " +
                   std::to_string(c.pixel_step));
      const LinesProblem problem(c);
      const auto most = problem.run<&FolioKernels::max_lines_f32>(level.kernels);
      const auto sums = problem.run<&FolioKernels::sum_lines_f32>(level.kernels);
      for (size_t o = 0; o < most.size(); ++o) {
        float max = -INFINITY;
        double sum = 0;
        double magnitude = 0;
        problem.for_taps(o, [&](float x) {
          max = std::max(max, x);
          sum += static_cast<double>(x);
          magnitude += std::abs(static_cast<double>(x));
        });
        ASSERT_EQ(most[o], max) << "at " << o;
        const double by = problem.divisor(o);
        const auto steps = static_cast<double>(c.taps + c.rows() + 2);
        ASSERT_NEAR(sums[o], sum / by, steps * 0x1p-24 * magnitude / by) << "at " << o;
      }
    }
  }
}

TEST(Lines, NanStaysWhereverItStands) {
  for (const LevelUnderTest& level : levels_under_test()) {
    // Each step; and rows that stay in registers.
    for (const LinesCase& c :
         {LinesCase{40, 39, 3, 1, 1, 1, {3}}, LinesCase{40, 19, 3, 2, 1, 1, {3}},
          LinesCase{40, 13, 3, 3, 1, 1, {3}}, LinesCase{12, 12, 3, 1, 1, 1, {3}}}) {
      for (size_t bad = 0; bad < static_cast<size_t>(kPlanes * 3 * c.x_pixels); ++bad) {
        LinesProblem problem(c);
        problem.x()[bad] = NAN;
        const auto y = problem.run<&FolioKernels::max_lines_f32>(level.kernels);
        for (size_t i = 0; i < y.size(); ++i) {
          bool has_nan = false;
          problem.for_taps(i, [&](float x) { has_nan |= x != x; });
          ASSERT_EQ(std::isnan(y[i]), has_nan) << level.name << ", " << bad << ", " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace folio
