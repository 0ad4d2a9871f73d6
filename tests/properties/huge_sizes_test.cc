// Sizes that come out of tensors: what no machine has ends in OUT_OF_MEMORY, and what no number
// holds in an error, whether the contents are known at load or not.
#include <gtest/gtest.h>

#include "tests/properties/one_node.h"

namespace folio::properties {
namespace {

constexpr int kNew = kNewestOpset;

// clang-format off
// 2^40 and 2^45 elements, and more than 2^63.
constexpr Sample kHuge[] = {
    {"", "ConstantOfShape", 9, kNew, 1, "", "i64[2]{1048576,1048576}"},
    {"", "Range", 11, kNew, 1, "", "i64[]{0}; i64[]{1099511627776}; i64[]{1}"},
    {"", "Range", 11, kNew, 1, "", "f64[]{0.0}; f64[]{1099511627776.0}; f64[]{0.5}"},
    {"", "Tile", 6, kNew, 1, "", "f32[2,2]; i64[2]{1048576,1048576}"},
    {"", "Expand", 8, kNew, 1, "", "f32[1]; i64[2]{1048576,1048576}"},
    {"", "Pad", 11, kNew, 1, "", "f32[2,2]; i64[4]{0,1048576,1048576,0}"},
    {"", "OneHot", 11, kNew, 1, "", "i64[4]; i64[]{1099511627776}; f32[2]"},
    {"", "Resize", 11, kNew, 1, "mode='nearest'", "f32[1,1,2,2]; ; ; i64[4]{1,1,1048576,1048576}"},
    {"", "Resize", 11, kNew, 1, "mode='linear'", "f32[1,1,2,2]; ; f32[4]{1.0,1.0,1048576.0,1048576.0}"},
    {"", "AffineGrid", 20, kNew, 1, "", "f32[1,2,3]; i64[4]{1,1,1048576,1048576}"},
    {"", "CenterCropPad", 18, kNew, 1, "", "f32[2,2]; i64[2]{1048576,1048576}"},
    {"", "HannWindow", 17, kNew, 1, "", "i64[]{1099511627776}"},
    {"", "MelWeightMatrix", 17, kNew, 1, "", "i64[]{1048576}; i64[]{2097152}; i64[]{8000}; f32[]{0.0}; f32[]{4000.0}"},
    {"", "MaxUnpool", 11, kNew, 1, "kernel_shape=[2,2]", "f32[1,1,1,1]; i64[1,1,1,1]{0}; i64[4]{1,1,1048576,1048576}"},
    {"", "RandomUniform", 1, kNew, 1, "shape=[1048576,1048576]", ""},
    {"", "RandomNormal", 1, kNew, 1, "shape=[1048576,1048576]", ""},
    {"", "Multinomial", 7, kNew, 1, "sample_size=1099511627776", "f32[1,2]"},
    {"", "RoiAlign", 16, kNew, 1, "output_height=1048576 output_width=1048576", "f32[1,1,2,2]; f32[1,4]<0,2>; i64[1]{0}"},
    {"", "Upsample", 9, 9, 1, "", "f32[1,1,2,2]; f32[4]{1.0,1.0,1048576.0,1048576.0}"},
    {"com.microsoft", "CropAndResize", 1, 1, 1, "", "f32[1,1,2,2]; f32[1,4]<0,2>; i32[1]{0}; i32[2]{1048576,1048576}"},
};
constexpr Sample kPastNumbers[] = {
    {"", "ConstantOfShape", 9, kNew, 1, "", "i64[3]{4294967296,4294967296,2}"},
    {"", "Tile", 6, kNew, 1, "", "f32[2,2]; i64[2]{4611686018427387904,4}"},
    {"", "Expand", 8, kNew, 1, "", "f32[1]; i64[2]{4294967296,4294967296}"},
    {"", "Pad", 11, kNew, 1, "", "f32[2,2]; i64[4]{0,9223372036854775807,0,9223372036854775807}"},
    {"", "Range", 11, kNew, 1, "", "f64[]{0.0}; f64[]{1000000000000000000000.0}; f64[]{0.5}"},
    {"", "RandomUniform", 1, kNew, 1, "shape=[4294967296,4294967296]", ""},
    {"com.microsoft", "CropAndResize", 1, 1, 1, "", "f32[1,2,2,2]; f32[4,4]<0,2>; i32[4]{0,0,0,0}; i32[2]{2147483647,2147483647}"},
};
// clang-format on

void expect_refused(const Sample& sample, bool out_of_memory) {
  for (const bool constant : {false, true}) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      Draw draw(seed, Numbers::kTame);
      Case drawn = case_of(sample, draw);
      for (Case::Input& input : drawn.inputs) input.constant = constant;
      SCOPED_TRACE(drawn.describe() + (constant ? " constant" : ""));
      std::vector<Value> outputs;
      const Status status = run_one(model_of(drawn), &outputs);
      ASSERT_FALSE(status.is_ok());
      EXPECT_FALSE(status.message().empty());
      if (out_of_memory) {
        EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.message();
      }
    }
  }
}

TEST(HugeSizes, OfTensorContentsAreOutOfMemory) {
  // Under a sanitizer, which would end the process, allocations are refused here.
  set_allocation_hook([](size_t bytes) { return bytes < size_t{1} << 36; });
  for (const Sample& sample : kHuge) expect_refused(sample, true);
  set_allocation_hook(nullptr);
}

TEST(HugeSizes, ThatNoNumberHoldsAreErrors) {
  for (const Sample& sample : kPastNumbers) expect_refused(sample, false);
}

}  // namespace
}  // namespace folio::properties
