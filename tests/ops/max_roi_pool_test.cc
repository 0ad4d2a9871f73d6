#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::vector<float> kNine = {1, 2, 3, 4, 5, 6, 7, 8, 9};

OpTester pool(std::vector<int64_t> bins, const std::vector<float>& x = kNine) {
  OpTester t("MaxRoiPool", 22);
  t.attr_ints("pooled_shape", std::move(bins)).input<float>({1, 1, 3, 3}, x);
  return t;
}

// Corners belong to the region, and bins of an uneven length share elements.
TEST(MaxRoiPool, BinsTakeTheLargestOfTheirElements) {
  pool({1, 1}).input<float>({1, 5}, {0, 0, 0, 1, 1}).expect<float>(0, {1, 1, 1, 1}, {5}).run();
  OpTester four = pool({2, 2});
  four.input<float>({1, 5}, {0, 0, 0, 2, 2}).expect<float>(0, {1, 1, 2, 2}, {5, 6, 8, 9}).run();
  OpTester more = pool({1, 5});
  more.input<float>({1, 5}, {0, 0, 2, 2, 2}).expect<float>(0, {1, 1, 1, 5}, {7, 8, 8, 9, 9}).run();
}

TEST(MaxRoiPool, CornersAreScaledAndRoundedHalvesAwayFromZero) {
  OpTester t = pool({1, 1});
  t.attr("spatial_scale", 0.5F)
      .input<float>({3, 5}, {0, 0, 0, 1, 0,     //
                             0, 0, 0, 0.9F, 0,  //
                             0, -1, 0, -1, 0});
  t.expect<float>(0, {3, 1, 1, 1}, {2, 1, 0}).run();
}

TEST(MaxRoiPool, WhatIsOutsideOfTheImageIsCutOrZero) {
  OpTester t = pool({1, 2});
  t.input<float>({3, 5}, {0, -2, 0, 1, 0,  //
                          0, 2, 2, 9, 9,   //
                          0, 5, 5, 9, 9});
  t.expect<float>(0, {3, 1, 1, 2}, {0, 2, 9, 0, 0, 0}).run();
}

TEST(MaxRoiPool, ARegionThatEndsBeforeItBeginsHasOneElement) {
  OpTester t = pool({1, 1});
  t.input<float>({1, 5}, {0, 1, 1, 0, 0}).expect<float>(0, {1, 1, 1, 1}, {5}).run();
}

TEST(MaxRoiPool, NanIsPassedOverWhereThereIsANumber) {
  OpTester t = pool({1, 3}, {kNan, -INFINITY, kNan, -2, kNan, kNan, -1, -INFINITY, kNan});
  t.input<float>({1, 5}, {0, 0, 0, 2, 2});
  t.expect<float>(0, {1, 1, 1, 3}, {-1, -INFINITY, kNan}).run();
}

TEST(MaxRoiPool, RegionsSayTheirImage) {
  OpTester t("MaxRoiPool", 1);
  t.attr_ints("pooled_shape", {1, 1}).input<double>({2, 2, 1, 1}, {1, 2, 3, 4});
  t.input<double>({2, 5}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  t.expect<double>(0, {2, 2, 1, 1}, {3, 4, 1, 2}).run();
}

TEST(MaxRoiPool, RefusesWhatIsNoRegion) {
  for (const float image : {1.0F, -1.0F, kNan}) {
    pool({1, 1}).input<float>({1, 5}, {image, 0, 0, 1, 1}).outputs(1).fails("outside a batch of 1");
  }
  for (const float corner : {kNan, INFINITY, -1e30F}) {
    pool({1, 1}).input<float>({1, 5}, {0, 0, corner, 1, 1}).outputs(1).fails("cannot be pooled");
    pool({1, 1}).input<float>({1, 5}, {0, 0, 0, corner, 1}).outputs(1).fails("cannot be pooled");
  }
  pool({1, 1}).input<float>({1, 4}, {0, 0, 1, 1}).outputs(1).fails("expected [n,c,h,w] and [r,5]");
  for (const std::vector<int64_t>& bins : {std::vector<int64_t>{1}, {0, 1}, {1, INT64_MAX}}) {
    pool(bins).input<float>({1, 5}, {0, 0, 0, 1, 1}).outputs(1).fails("pooled_shape");
  }
}

}  // namespace
}  // namespace folio
