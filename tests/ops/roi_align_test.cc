#include <gtest/gtest.h>

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
