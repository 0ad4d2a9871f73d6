#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

const std::vector<double> kImage = {1, 2, 3, 4, 5, 6, 7, 8, 9};

OpTester tester(DType dtype, std::vector<double> roi, int32_t height, int32_t width) {
  OpTester t("CropAndResize", 1, kMs);
  t.input_as(dtype, {1, 1, 3, 3}, kImage).input_as(dtype, {1, 4}, roi);
  t.input<int32_t>({1}, {0}).input<int32_t>({2}, {height, width});
  return t;
}

TEST(CropAndResize, IsBilinearBetweenCorners) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16}) {
    OpTester t = tester(dtype, {0, 0, 0.5, 0.5}, 3, 3);
    t.expect_as(0, dtype, {1, 1, 3, 3}, {1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5});
    t.run();
  }
}

TEST(CropAndResize, ASingleRowIsInTheMiddle) {
  OpTester t = tester(DType::kFloat, {0, 0, 1, 1}, 1, 2);
  t.expect<float>(0, {1, 1, 1, 2}, {4, 6});
  t.run();
}

TEST(CropAndResize, PlacesOutsideAreExtrapolated) {
  OpTester t = tester(DType::kFloat, {0, 0, 2, 2}, 2, 2);
  t.attr("extrapolation_value", -1.0F);
  t.expect<float>(0, {1, 1, 2, 2}, {1, -1, -1, -1});
  t.run();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  OpTester lost = tester(DType::kFloat, {nan, 0, 1, 1}, 2, 2);
  lost.expect<float>(0, {1, 1, 2, 2}, {0, 0, 7, 9});
  lost.run();
}

TEST(CropAndResize, NearestTakesElements) {
  OpTester t = tester(DType::kFloat, {0, 0, 0.25, 1}, 2, 3);
  t.attr("mode", "nearest");
  t.expect<float>(0, {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  t.run();
}

TEST(CropAndResize, TakesChannelsAndImagesApart) {
  OpTester t("CropAndResize", 1, kMs);
  t.input<float>({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
      .input<float>({3, 4}, {0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0});
  t.input<int32_t>({3}, {1, 0, 1}).constant<int32_t>({2}, {1, 2});
  t.expect<float>(0, {3, 2, 1, 2}, {5, 6, 7, 8, 2, 1, 4, 3, 5, 5, 7, 7});
  t.expect_inferred(0, "tensor(float)[3,2,1,2]");
  t.run();
}

TEST(CropAndResize, RefusesWhatDoesNotFit) {
  OpTester batch("CropAndResize", 1, kMs);
  batch.input_as(DType::kFloat, {1, 1, 3, 3}, kImage).input<float>({1, 4}, {0, 0, 1, 1});
  batch.input<int32_t>({1}, {1}).input<int32_t>({2}, {2, 2});
  batch.outputs(1).fails("batch_indices[0] is 1, X holds 1 images");
  OpTester rois("CropAndResize", 1, kMs);
  rois.input_as(DType::kFloat, {1, 1, 3, 3}, kImage).input<float>({1, 4}, {0, 0, 1, 1});
  rois.input<int32_t>({2}, {0, 0}).input<int32_t>({2}, {2, 2});
  rois.outputs(1).fails("rois [1,4] and batch_indices [2]");
  tester(DType::kFloat, {0, 0, 1, 1}, -1, 2).outputs(1).fails("crop_size is -1 by 2");
  tester(DType::kFloat, {0, 0, 1, 1}, 2, 2).attr("mode", "cubic").outputs(1).fails("'cubic'");
}

TEST(CropAndResize, SizesOutOfTensorsAreChecked) {
  OpTester t("CropAndResize", 1, kMs);
  t.input<float>({1, 4, 1, 1}, {1, 2, 3, 4}).input<float>({2, 4}, {0, 0, 1, 1, 0, 0, 1, 1});
  t.input<int32_t>({2}, {0, 0}).input<int32_t>({2}, {INT32_MAX, INT32_MAX}).outputs(1);
  EXPECT_EQ(t.survives(), 0);
}

}  // namespace
}  // namespace folio
