#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <cstring>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kSquare = {1, 2, 3, 4};
const std::vector<float> kRow = {1, 2, 3, 4};

OpTester resize(int version, const char* mode, const char* coordinates) {
  OpTester t("Resize", version);
  t.attr("mode", mode);
  t.attr("coordinate_transformation_mode", coordinates);
  return t;
}
// One dim of kRow to what `scale` makes of it.
OpTester& scaled(OpTester& t, float scale) {
  return t.input<float>({4}, kRow).input_absent().constant<float>({1}, {scale});
}

TEST(Resize, NearestRepeatsElementsAndKnowsItsDims) {
  OpTester t("Resize", 13);
  t.input<float>({1, 1, 2, 2}, kSquare).input_absent().constant<float>({4}, {1, 1, 2, 3});
  t.expect<float>(0, {1, 1, 4, 6},
                  {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
  t.expect_inferred(0, "tensor(float)[1,1,4,6]").run();
}

// Rows of more than one block, each element as often.
TEST(Resize, NearestRepeatsRowsOfEveryLength) {
  for (const int64_t n : {1, 15, 16, 40}) {
    for (const int64_t times : {1, 2, 3, 4, 5}) {
      std::vector<float> x, want;
      for (int64_t i = 0; i < 2 * n; ++i) x.push_back(static_cast<float>(i));
      for (int64_t i = 0; i < 2 * n * times; ++i) want.push_back(static_cast<float>(i / times));
      OpTester t("Resize", 13);
      t.attr("mode", "nearest").attr("coordinate_transformation_mode", "asymmetric");
      t.attr("nearest_mode", "floor").input<float>({2, n}, x).input_absent();
      t.input<float>({2}, {1, static_cast<float>(times)});
      t.expect<float>(0, {2, n * times}, want).run();
    }
  }
}

// Both axes shrink, one shrinks and one grows: the order of the axes is chosen by that.
TEST(Resize, LinearOfTwoAxesIsThatOfEach) {
  for (const auto& [height, width] : {std::pair<float, float>{0.5F, 0.5F}, {0.5F, 2}, {2, 0.5F}}) {
    std::vector<float> x, want;
    for (int64_t i = 0; i < 8 * 12; ++i) x.push_back(static_cast<float>(i / 12 * 100 + i % 12));
    const auto rows = static_cast<int64_t>(8 * height);
    const auto columns = static_cast<int64_t>(12 * width);
    const auto place = [](int64_t i, float scale, int64_t n) {
      const float at = (static_cast<float>(i) + 0.5F) / scale - 0.5F;
      return std::clamp(at, 0.0F, static_cast<float>(n - 1));
    };
    for (int64_t o = 0; o < rows * columns; ++o) {  // of a plane: what stands between its points
      want.push_back(place(o / columns, height, 8) * 100 + place(o % columns, width, 12));
    }
    OpTester t("Resize", 13);
    t.attr("mode", "linear").attr("coordinate_transformation_mode", "half_pixel");
    t.input<float>({8, 12}, x).input_absent().input<float>({2}, {height, width});
    t.expect<float>(0, {rows, columns}, want, 1e-5).run();
  }
}

TEST(Resize, NearestRoundsAsAsked) {
  // Places along the axis: 0.5, 2.5.
  const std::vector<std::pair<const char*, std::vector<float>>> cases = {
      {"round_prefer_floor", {1, 3}},
      {"round_prefer_ceil", {2, 4}},
      {"floor", {1, 3}},
      {"ceil", {2, 4}}};
  for (const auto& [mode, expected] : cases) {
    OpTester t("Resize", 11);
    scaled(t.attr("nearest_mode", mode), 0.5F).expect<float>(0, {2}, expected).run();
  }
}

// A quotient of the lengths; floats of scale would miss places that are elements or ties.
TEST(Resize, SizesSayWhereElementsAndTiesAre) {
  struct Case {
    const char* coordinates;
    const char* rounding;
    int64_t in, out;
    std::vector<int32_t> places;
  };
  const Case cases[] = {
      {"align_corners", "floor", 13, 7, {0, 2, 4, 6, 8, 10, 12}},
      {"align_corners", "ceil", 13, 7, {0, 2, 4, 6, 8, 10, 12}},
      {"asymmetric", "round_prefer_ceil", 7, 8, {0, 1, 2, 3, 4, 4, 5, 6}},
      {"asymmetric", "round_prefer_floor", 7, 8, {0, 1, 2, 3, 3, 4, 5, 6}},
      {"asymmetric", "round_prefer_ceil", 13, 2, {0, 7}},
      {"half_pixel", "round_prefer_floor", 14, 3, {2, 6, 11}},
      {"half_pixel", "round_prefer_ceil", 14, 3, {2, 7, 11}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(cat(c.coordinates, " ", c.rounding, " ", c.in, " to ", c.out));
    std::vector<int32_t> x;
    for (int64_t i = 0; i < c.in; ++i) x.push_back(static_cast<int32_t>(i));
    OpTester t = resize(13, "nearest", c.coordinates);
    t.attr("nearest_mode", c.rounding).input<int32_t>({c.in}, x).input_absent().input_absent();
    t.constant<int64_t>({1}, {c.out}).expect<int32_t>(0, {c.out}, c.places).run();
  }
}

// Each place by integers: twice the place is a quotient, of which half is rounded.
TEST(Resize, SizesUpTo64GiveThePlacesOfExactArithmetic) {
  for (int64_t in = 2; in <= 33; ++in) {
    for (int64_t out = 2; out <= 64; ++out) {
      std::vector<int32_t> x, corners, halves;
      for (int64_t i = 0; i < in; ++i) x.push_back(static_cast<int32_t>(i));
      for (int64_t i = 0; i < out; ++i) {
        corners.push_back(static_cast<int32_t>(i * (in - 1) / (out - 1)));
        halves.push_back(static_cast<int32_t>(std::min(in - 1, (2 * i * in + out) / (2 * out))));
      }
      SCOPED_TRACE(cat(in, " to ", out));
      OpTester floor = resize(13, "nearest", "align_corners");
      floor.attr("nearest_mode", "floor").input<int32_t>({in}, x).input_absent().input_absent();
      floor.constant<int64_t>({1}, {out}).expect<int32_t>(0, {out}, corners).run();
      OpTester round = resize(13, "nearest", "asymmetric");
      round.attr("nearest_mode", "round_prefer_ceil").input<int32_t>({in}, x).input_absent();
      round.input_absent().constant<int64_t>({1}, {out});
      round.expect<int32_t>(0, {out}, halves).run();
    }
  }
}

TEST(Resize, TfHalfPixelsLeaveAxesThatAreNotResized) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* rounding : {"floor", "round_prefer_ceil", "ceil"}) {
      for (const bool by_sizes : {false, true}) {
        SCOPED_TRACE(cat(mode, " ", rounding, by_sizes ? " sizes" : " scales"));
        OpTester t = resize(11, mode, "tf_half_pixel_for_nn");
        t.attr("nearest_mode", rounding).input<float>({2, 1, 2}, {0, 0, 9, 9});
        t.input<float>({0}, {});
        by_sizes ? t.input<float>({0}, {}).input<int64_t>({3}, {2, 1, 4})
                 : t.input<float>({3}, {1, 1, 2});
        t.expect<float>(0, {2, 1, 4}, {0, 0, 0, 0, 9, 9, 9, 9}, 1e-6).run();
      }
    }
  }
}

TEST(Resize, LinearWeighsNeighboursByCoordinateMode) {
  OpTester half = resize(13, "linear", "half_pixel");
  scaled(half, 2).expect<float>(0, {8}, {1, 1.25F, 1.75F, 2.25F, 2.75F, 3.25F, 3.75F, 4}).run();
  OpTester corners = resize(13, "linear", "align_corners");
  corners.input<float>({4}, kRow).input_absent().input_absent().constant<int64_t>({1}, {7});
  corners.expect<float>(0, {7}, {1, 1.5F, 2, 2.5F, 3, 3.5F, 4}, 1e-6).run();
  OpTester asymmetric = resize(13, "linear", "asymmetric");
  scaled(asymmetric, 1.5F)
      .expect<float>(0, {6}, {1, 1.6666667F, 2.3333333F, 3, 3.6666667F, 4}, 1e-6);
  asymmetric.run();
  OpTester pytorch = resize(13, "linear", "pytorch_half_pixel");
  scaled(pytorch, 0.25F).expect<float>(0, {1}, {1}).run();
}

TEST(Resize, ResizesMiddleAxesWithAnInnerDim) {
  OpTester t = resize(11, "linear", "asymmetric");
  t.input<float>({1, 2, 1, 3}, {0, 1, 2, 10, 11, 12}).input_absent();
  t.constant<float>({4}, {1, 2, 2, 1});
  t.expect<float>(0, {1, 4, 2, 3}, {0,  1,  2,  0,  1,  2,  5,  6,  7,  5,  6,  7,
                                    10, 11, 12, 10, 11, 12, 10, 11, 12, 10, 11, 12});
  t.run();
}

TEST(Resize, CubicSumsToOneAtTheBorderToo) {
  for (const int exclude : {0, 1}) {
    OpTester t = resize(13, "cubic", "half_pixel");
    t.attr("exclude_outside", exclude).input<float>({4}, {5, 5, 5, 5}).input_absent();
    t.constant<float>({1}, {1.75F}).expect<float>(0, {7}, {5, 5, 5, 5, 5, 5, 5}, 1e-6).run();
  }
  OpTester half = resize(13, "cubic", "half_pixel");
  scaled(half, 0.5F).expect<float>(0, {2}, {1.40625F, 3.59375F}, 1e-6).run();
}

TEST(Resize, AntialiasSeesAllInputsOfAShrunkAxis) {
  OpTester t = resize(18, "linear", "half_pixel");
  t.attr("antialias", 1);
  scaled(t, 0.5F).expect<float>(0, {2}, {1.625F, 3.375F}, 1e-6).run();
}

TEST(Resize, CropTakesTheExtrapolationValueOutside) {
  for (const char* mode : {"linear", "nearest"}) {
    OpTester t = resize(13, mode, "tf_crop_and_resize");
    t.attr("extrapolation_value", 9.0F).input<float>({4}, kRow).input<float>({2}, {0, 2});
    t.input_absent().input<int64_t>({1}, {3}).expect<float>(0, {3}, {1, 4, 9}).run();
  }
}

TEST(Resize, KeepsTheRatioOfTheAxesGiven) {
  const std::vector<std::pair<const char*, Shape>> cases = {{"not_larger", {1, 2, 4}},
                                                            {"not_smaller", {1, 3, 6}}};
  for (const auto& [policy, shape] : cases) {
    OpTester t("Resize", 18);
    t.attr("keep_aspect_ratio_policy", policy).attr_ints("axes", {2, 1});
    t.input<uint8_t>({1, 1, 2}, {7, 7}).input_absent().input_absent();
    t.constant<int64_t>({2}, {4, 3});
    t.expect<uint8_t>(0, shape, std::vector<uint8_t>(static_cast<size_t>(shape.count()), 7)).run();
  }
}

TEST(Resize, CutsTheFractionOfIntegersAndClamps) {
  OpTester linear = resize(13, "linear", "half_pixel");
  linear.input<int8_t>({2}, {-5, 4}).input_absent().constant<float>({1}, {2});
  linear.expect<int8_t>(0, {4}, {-5, -2, 1, 4}).run();
  OpTester cubic = resize(13, "cubic", "half_pixel");
  cubic.input<uint8_t>({4}, {0, 255, 255, 0}).input_absent().constant<float>({1}, {2});
  cubic.run();
  EXPECT_EQ(cubic.output_values<uint8_t>(0)[3], 255);
  OpTester flat = resize(13, "linear", "half_pixel");
  flat.input<uint8_t>({3}, {100, 100, 100}).input_absent().constant<float>({1}, {1.7F});
  flat.expect<uint8_t>(0, {5}, {100, 100, 100, 100, 100}).run();
}

TEST(Resize, Opset10AndUpsampleAreAsymmetric) {
  OpTester shrink("Resize", 10);
  shrink.input<float>({4}, kRow).constant<float>({1}, {0.6F}).expect<float>(0, {2}, {1, 3}).run();
  OpTester attribute("Upsample", 7);
  attribute.attr("mode", "linear").attr_floats("scales", {2}).input<float>({2}, {1, 3});
  attribute.expect<float>(0, {4}, {1, 2, 3, 3}).run();
  OpTester input("Upsample", 9);
  input.input<std::string>({2}, {"a", "b"}).constant<float>({1}, {2});
  input.expect<std::string>(0, {4}, {"a", "a", "b", "b"}).run();
  OpTester first("Upsample", 1);
  first.attr("height_scale", 1.0F).attr("width_scale", 2.0F).attr("mode", "bilinear");
  first.input<float>({1, 1, 1, 2}, {1, 3}).expect<float>(0, {1, 1, 1, 4}, {1, 2, 3, 3}).run();
}

TEST(Resize, RefusesScalesThatGiveNoShape) {
  for (const float scale : {0.0F, -1.0F, std::nanf(""), INFINITY, 1e30F}) {
    OpTester t("Resize", 13);
    scaled(t, scale).outputs(1).fails("cannot be scaled by");
  }
  OpTester count("Resize", 13);
  count.input<float>({4}, kRow).input_absent().input<float>({2}, {1, 1}).outputs(1);
  count.fails("2 scales");
  OpTester none("Resize", 13);
  none.input<float>({4}, kRow).outputs(1).fails("one of scales and sizes");
  OpTester size("Resize", 13);
  size.input<float>({4}, kRow).input_absent().input_absent().input<int64_t>({1}, {-2}).outputs(1);
  size.fails("cannot be resized to -2");
  OpTester roi = resize(13, "linear", "tf_crop_and_resize");
  scaled(roi, 2).outputs(1).fails("0 entries of roi");
  OpTester far = resize(13, "linear", "tf_crop_and_resize");
  far.input<float>({4}, kRow).input<float>({2}, {0, 1e30F}).input<float>({1}, {2}).outputs(1);
  far.fails("cannot be scaled by");
}

TEST(Resize, RefusesInputsItCannotSample) {
  OpTester empty("Resize", 13);
  empty.input<float>({0}, {}).input_absent().input_absent().input<int64_t>({1}, {2}).outputs(1);
  empty.fails("cannot be resized to 2");
  OpTester strings = resize(13, "linear", "half_pixel");
  strings.input<std::string>({1}, {"a"}).input_absent().input<float>({1}, {2}).outputs(1);
  strings.fails("string");
  OpTester mode("Resize", 13);
  mode.attr("mode", "quartic").input<float>({1}, {1}).outputs(1).fails("quartic");
  OpTester twice("Resize", 18);
  twice.attr_ints("axes", {0, -1}).input<float>({4}, kRow).input_absent();
  twice.input<float>({2}, {2, 2}).outputs(1).fails("given twice");
}

// Axes that all are repeated equally often, and others, with axes around them.
TEST(Resize, NearestRepeatsRowsAndPlanes) {
  const Shape in{2, 3, 4, 5};
  std::vector<float> x;
  for (int64_t i = 0; i < 2 * 3 * 4 * 5; ++i) x.push_back(static_cast<float>(i));
  const std::vector<std::vector<int64_t>> cases = {{2, 3, 8, 10}, {2, 6, 12, 5}, {4, 3, 4, 15},
                                                   {2, 3, 6, 10}, {1, 6, 2, 7},  {2, 3, 8, 5}};
  for (const std::vector<int64_t>& out : cases) {
    std::vector<float> want;
    for (int64_t i = 0; i < out[0] * out[1] * out[2] * out[3]; ++i) {
      int64_t at = 0;
      for (int64_t axis = 0, inner = out[0] * out[1] * out[2] * out[3]; axis < 4; ++axis) {
        const int64_t dim = out[static_cast<size_t>(axis)];
        inner /= dim;
        at = at * in[static_cast<int>(axis)] + i / inner % dim * in[static_cast<int>(axis)] / dim;
      }
      want.push_back(x[static_cast<size_t>(at)]);
    }
    OpTester t = resize(13, "nearest", "asymmetric");
    t.attr("nearest_mode", "floor").input<float>(in, x).input_absent().input_absent();
    t.input<int64_t>({4}, out).expect<float>(0, Shape{out[0], out[1], out[2], out[3]}, want).run();
  }
}

// [2, 4, 5, channels] to [2, 6, 3, channels]: places, and sums of four of them, by the definition.
template <typename T>
void check_channels_last(int64_t channels, const char* mode) {
  const int64_t in[2] = {4, 5};
  const int64_t out[2] = {6, 3};
  const bool is_nearest = std::string(mode) == "nearest";
  std::vector<T> x;
  for (int64_t i = 0; i < 2 * in[0] * in[1] * channels; ++i) x.push_back(static_cast<T>(i % 120));
  std::vector<T> want;
  for (int64_t i = 0; i < 2 * out[0] * out[1] * channels; ++i) {
    const int64_t c = i % channels;
    const int64_t image = i / channels / out[1] / out[0];
    const int64_t to[2] = {i / channels / out[1] % out[0], i / channels % out[1]};
    int64_t first[2];
    double part[2];
    for (int axis = 0; axis < 2; ++axis) {
      const double at = static_cast<double>(to[axis] * in[axis]) / static_cast<double>(out[axis]);
      first[axis] = static_cast<int64_t>(at);
      part[axis] = is_nearest ? 0 : at - std::floor(at);
    }
    double sum = 0;
    for (const int64_t dh : {0, 1}) {
      for (const int64_t dw : {0, 1}) {
        const double weight = (dh ? part[0] : 1 - part[0]) * (dw ? part[1] : 1 - part[1]);
        const int64_t h = std::min(first[0] + dh, in[0] - 1);
        const int64_t w = std::min(first[1] + dw, in[1] - 1);
        const int64_t at = ((image * in[0] + h) * in[1] + w) * channels + c;
        sum += weight * static_cast<double>(x[static_cast<size_t>(at)]);
      }
    }
    want.push_back(static_cast<T>(sum));
  }
  OpTester t = resize(13, mode, "asymmetric");
  t.attr("nearest_mode", "floor").input<T>({2, in[0], in[1], channels}, x).input_absent();
  t.input_absent().input<int64_t>({4}, {2, out[0], out[1], channels});
  t.expect<T>(0, {2, out[0], out[1], channels}, want, is_nearest ? 0.0 : 1e-4);
  t.run();
}

TEST(Resize, MovesAndSumsPixelsOfAnyNumberOfChannels) {
  for (int64_t channels = 1; channels <= 20; ++channels) {
    check_channels_last<uint8_t>(channels, "nearest");
    check_channels_last<int16_t>(channels, "nearest");
    check_channels_last<float>(channels, "nearest");
    check_channels_last<double>(channels, "nearest");
    check_channels_last<float>(channels, "linear");
    check_channels_last<double>(channels, "linear");
  }
}

// Pixels to these sizes.
std::vector<float> resized(const char* mode, const char* coordinates, const Shape& in,
                           const std::vector<float>& x, const Shape& out, int threads = 1) {
  OpTester t = resize(13, mode, coordinates);
  t.threads(threads).input<float>(in, x).input_absent().input_absent();
  t.input<int64_t>({4}, {out[0], out[1], out[2], out[3]});
  t.survives();
  return t.output_values<float>(0);
}

// Line by line, with the bits of one axis after the other.
TEST(Resize, TwoAxesThatGrowAreLinesOfTheLaterOne) {
  struct Sizes {
    int64_t channels, height, width, to_height, to_width;
  };
  const Sizes cases[] = {{5, 7, 9, 14, 18},  {16, 6, 5, 48, 40}, {33, 11, 3, 13, 100},
                         {40, 1, 1, 8, 9},   {8, 4, 4, 5, 5},    {300, 5, 40, 10, 160},
                         {2000, 3, 5, 7, 11}};
  for (const Sizes& s : cases) {
    const Shape in{2, s.height, s.width, s.channels};
    const Shape between{2, s.height, s.to_width, s.channels};
    const Shape out{2, s.to_height, s.to_width, s.channels};
    std::vector<float> x;
    for (int64_t i = 0; i < in.count(); ++i) x.push_back(static_cast<float>(i % 101) / 7 - 5);
    for (const char* mode : {"linear", "cubic"}) {
      for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric"}) {
        SCOPED_TRACE(out.to_string() + ", " + mode + ", " + coordinates);
        const auto rows = resized(mode, coordinates, in, x, between);
        const auto want = resized(mode, coordinates, between, rows, out);
        for (const int threads : {1, 3}) {
          const auto got = resized(mode, coordinates, in, x, out, threads);
          ASSERT_EQ(got.size(), want.size());
          EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0);
        }
      }
    }
  }
}

// Of folio.nhwc: all channels of an image that has no others. The last axis that is resized may not
// be that of its pixels.
TEST(Resize, WritesChannelsOfAnImage) {
  const Shape in{2, 3, 4, 5, 6};
  std::vector<float> x;
  for (int64_t i = 0; i < in.count(); ++i) x.push_back(static_cast<float>(i * i % 97));
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 6, 8, 5, 6},
                                              {2, 3, 8, 10, 6},
                                              {4, 6, 4, 5, 6},
                                              {2, 6, 8, 10, 6},
                                              {2, 2, 8, 5, 6}}) {
      const auto run = [&](const char* domain) {
        OpTester t("Resize", 13, domain);
        t.attr("mode", mode).attr("joined_channels", 6).input<float>(in, x);
        t.input_absent().input_absent().input<int64_t>({5}, sizes);
        t.survives();
        return t.output_values<float>(0);
      };
      SCOPED_TRACE(std::string(mode) + ", " + std::to_string(sizes[0]) + std::to_string(sizes[1]));
      EXPECT_EQ(run("folio.nhwc"), run(""));
    }
  }
}

// An axis around the rows, and one around that, of which a part is outside.
TEST(Resize, CropFillsRowsOutside) {
  for (const int axis : {0, 1}) {
    OpTester t = resize(13, "nearest", "tf_crop_and_resize");
    t.attr("extrapolation_value", 9.0F);
    t.input<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    std::vector<float> roi = {0, 0, 0, 1, 1, 1};
    roi[static_cast<size_t>(axis)] = 1;  // from the last entry to one that is not there
    roi[static_cast<size_t>(axis) + 3] = 2;
    t.input<float>({6}, roi).input_absent().input<int64_t>({3}, {2, 2, 2});
    const std::vector<float> want = axis == 0 ? std::vector<float>{5, 6, 7, 8, 9, 9, 9, 9}
                                              : std::vector<float>{3, 4, 9, 9, 7, 8, 9, 9};
    t.expect<float>(0, {2, 2, 2}, want).run();
  }
}

}  // namespace
}  // namespace folio
