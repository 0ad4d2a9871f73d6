#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(HannWindow, IsPeriodicByDefault) {
  OpTester t("HannWindow", 17);
  t.input<int32_t>({}, {4});
  t.expect<float>(0, {4}, {0, 0.5F, 1, 0.5F}, 1e-6);
  t.run();
}

TEST(BlackmanWindow, MayBeSymmetricAndDouble) {
  OpTester t("BlackmanWindow", 17);
  t.attr("periodic", 0).attr("output_datatype", 11);
  t.input<int64_t>({}, {3});
  t.expect<double>(0, {3}, {0, 1, 0}, 1e-9);
  t.run();
}

TEST(HammingWindow, NegativeSizesAreAnError) {
  OpTester t("HammingWindow", 17);
  t.input<int64_t>({}, {-1});
  t.outputs(1).fails("negative");
}

TEST(MelWeightMatrix, HasTrianglesOverTheSpectrum) {
  OpTester t("MelWeightMatrix", 17);
  t.input<int64_t>({}, {1}).input<int64_t>({}, {8}).input<int64_t>({}, {8});
  t.input<float>({}, {0}).input<float>({}, {4});
  t.expect<float>(0, {5, 1}, {0, 1, 0, 0, 0});
  t.run();
}

}  // namespace
}  // namespace folio
