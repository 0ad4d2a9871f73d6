#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(RoiAlign, MeansTheSamplesOfABin) {
  OpTester t("RoiAlign", 10);
  t.attr("sampling_ratio", 1).input<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  t.input<float>({1, 4}, {0, 0, 1, 1}).input<int64_t>({1}, {0});
  t.expect<float>(0, {1, 1, 1, 1}, {2.5F}).run();
  OpTester outside("RoiAlign", 16);
  outside.input<float>({1, 1, 1, 1}, {7}).input<float>({1, 4}, {50, 50, 60, 60});
  outside.input<int64_t>({1}, {0}).expect<float>(0, {1, 1, 1, 1}, {0}).run();
}

// As one of negative size, it has no sample.
TEST(RoiAlign, ARegionThatEndsAtMinusInfinityHasNoSample) {
  OpTester t("RoiAlign", 16);
  t.input<float>({1, 1, 2, 2}, {1, 2, 3, 4}).input<float>({1, 4}, {0, 0, -INFINITY, 1});
  t.input<int64_t>({1}, {0}).expect<float>(0, {1, 1, 1, 1}, {0}).run();
}

struct Setting {
  bool maximum = false;
  bool half_pixel = true;
  int64_t samples = 0;
  int64_t height = 0, width = 0;  // of the image
  int64_t down = 0, across = 0;   // bins
  DType dtype = DType::kFloat;
};

// The two elements around a place and their weights, as the operator's description has them.
struct Around {
  Around(double at, int64_t n) {
    if (at < -1 || at > static_cast<double>(n)) return;
    at = std::max(at, 0.0);
    place[0] = std::min(static_cast<int64_t>(at), n - 1);
    place[1] = std::min(place[0] + 1, n - 1);
    weight[1] = place[1] == place[0] ? 0 : at - static_cast<double>(place[0]);
    weight[0] = 1 - weight[1];
  }
  int64_t place[2] = {0, 0};
  double weight[2] = {0, 0};
};

double bin_of(const Setting& s, const double* plane, const double* corners, int64_t y, int64_t x) {
  double start[2], size[2];
  int64_t samples[2];
  for (int i : {0, 1}) {
    const double shift = s.half_pixel ? 0.5 : 0;
    start[i] = corners[i] - shift;
    double length = corners[i + 2] - corners[i];
    if (!s.half_pixel) length = std::max(length, 1.0);
    size[i] = length / static_cast<double>(i == 0 ? s.across : s.down);
    samples[i] = s.samples > 0 ? s.samples : std::max<int64_t>(0, std::ceil(size[i]));
  }
  double sum = 0, best = -INFINITY;
  for (int64_t v = 0; v < samples[1]; ++v) {
    for (int64_t u = 0; u < samples[0]; ++u) {
      const auto part = [](int64_t i, int64_t n) {
        return (static_cast<double>(i) + 0.5) / static_cast<double>(n);
      };
      const Around row(start[1] + (static_cast<double>(y) + part(v, samples[1])) * size[1],
                       s.height);
      const Around column(start[0] + (static_cast<double>(x) + part(u, samples[0])) * size[0],
                          s.width);
      for (int i : {0, 1, 2, 3}) {
        const double term = row.weight[i / 2] * column.weight[i % 2] *
                            plane[row.place[i / 2] * s.width + column.place[i % 2]];
        sum += term;
        best = std::max(best, term);
      }
    }
  }
  if (samples[0] * samples[1] == 0) return 0;
  return s.maximum ? best : sum / static_cast<double>(samples[0] * samples[1]);
}

// 3 channels of 2 images; `rois` are quarters, which every type holds.
void expect_definition(const Setting& s, const std::vector<double>& rois) {
  constexpr int64_t kChannels = 3;
  const auto count = static_cast<int64_t>(rois.size() / 4);
  const int64_t plane = s.height * s.width;
  std::vector<double> x;
  for (int64_t i = 0; i < 2 * kChannels * plane; ++i) {
    x.push_back(static_cast<double>(i * i * 7 % 61 - 37) / 4);
  }
  std::vector<int64_t> images;
  std::vector<double> y;
  for (int64_t r = 0; r < count; ++r) {
    images.push_back(r % 2);
    for (int64_t i = 0; i < kChannels * s.down * s.across; ++i) {
      const int64_t channel = i / (s.down * s.across);
      y.push_back(bin_of(s, x.data() + (r % 2 * kChannels + channel) * plane, rois.data() + r * 4,
                         i / s.across % s.down, i % s.across));
    }
  }
  OpTester t("RoiAlign", 16);
  t.attr("output_height", s.down).attr("output_width", s.across).attr("sampling_ratio", s.samples);
  t.attr("mode", s.maximum ? "max" : "avg");
  t.attr("coordinate_transformation_mode", s.half_pixel ? "half_pixel" : "output_half_pixel");
  t.input_as(s.dtype, {2, kChannels, s.height, s.width}, x).input_as(s.dtype, {count, 4}, rois);
  t.input<int64_t>({count}, images);
  const double tolerance = s.dtype == DType::kDouble  ? 1e-13
                           : s.dtype == DType::kFloat ? 1e-6
                                                      : 8e-3;
  t.expect_as(0, s.dtype, {count, kChannels, s.down, s.across}, y, tolerance).run();
}

// Inside, across each side, upside down, outside, of no size, all of it.
const std::vector<double> kRegions = {1.25, 2,    7.5, 6.75, -3, -2.5, 4, 5,  8, 3,   2.5, 1,
                                      20,   1,    25,  9,    3,  3,    3, 3,  0, 0,   40,  30,
                                      -60,  -0.5, 8,   70,   2,  -9,   5, -4, 5, 4.5, 39,  5};

TEST(RoiAlign, AgreesWithTheDefinition) {
  for (const bool maximum : {false, true}) {
    for (const bool half_pixel : {false, true}) {
      for (const int64_t samples : {0, 1, 2, 5}) {
        SCOPED_TRACE(testing::Message() << maximum << half_pixel << samples);
        expect_definition({maximum, half_pixel, samples, 9, 11, 3, 2}, kRegions);
        // Few columns of many, more rows of bins than are joined together.
        expect_definition({maximum, half_pixel, samples, 12, 40, 17, 3}, kRegions);
        for (const int64_t width : {1, 2, 3}) {
          expect_definition({maximum, half_pixel, samples, 4, width, 8, 9}, kRegions);
          expect_definition({maximum, half_pixel, samples, width, 4, 2, 1}, kRegions);
        }
      }
    }
  }
}

TEST(RoiAlign, TakesEveryType) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16}) {
    expect_definition({false, true, 2, 9, 11, 3, 2, dtype}, kRegions);
    expect_definition({true, true, 2, 9, 1, 3, 2, dtype}, kRegions);
  }
}

// More than are described at once, and more bins of these than a thread takes at once.
TEST(RoiAlign, TakesManyRegions) {
  std::vector<double> rois;
  for (int i = 0; i < 150; ++i) {
    rois.insert(rois.end(),
                {0.25 * (i % 7), 0.5 * (i % 5), 4.0 + 0.25 * (i % 9), 8 - 0.25 * (i % 11)});
  }
  expect_definition({false, true, 2, 9, 11, 20, 3}, rois);
}

// The elements that a mean does not touch count nothing, not even as 0 times NaN.
TEST(RoiAlign, LeavesOutOtherElements) {
  OpTester t("RoiAlign", 16);
  t.attr("sampling_ratio", 1).input<float>({1, 1, 1, 4}, {NAN, 2, 4, INFINITY});
  t.input<float>({1, 4}, {1, 0, 2.5F, 1}).input<int64_t>({1}, {0});
  t.expect<float>(0, {1, 1, 1, 1}, {2.5F}).run();
}

TEST(RoiAlign, RefusesRegionsThatCannotBeSampled) {
  for (const float far : {INFINITY, NAN, 1e30F}) {
    OpTester t("RoiAlign", 16);
    t.input<float>({1, 1, 1, 1}, {1}).input<float>({1, 4}, {0, 0, far, 1}).input<int64_t>({1}, {0});
    t.outputs(1).fails("cannot be sampled");
  }
  OpTester batch("RoiAlign", 16);
  batch.input<float>({1, 1, 1, 1}, {1}).input<float>({1, 4}, {0, 0, 1, 1}).input<int64_t>({1}, {1});
  batch.outputs(1).fails("batch index 1");
  OpTester many("RoiAlign", 16);
  many.attr("output_width", 1 << 22).attr("sampling_ratio", 2).input<float>({1, 1, 1, 1}, {1});
  many.input<float>({1, 4}, {0, 0, 1, 1}).input<int64_t>({1}, {0}).outputs(1).fails("bins");
}

}  // namespace
}  // namespace folio
