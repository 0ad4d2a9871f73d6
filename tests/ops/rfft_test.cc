#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

TEST(Rfft, GivesHalfOfTheSpectrum) {
  OpTester t("Rfft", 1, kMs);
  t.input<float>({2, 4}, {1, 2, 3, 4, 0, 1, 0, 0});
  t.expect<float>(0, {2, 3, 2}, {10, 0, -2, 2, -2, 0, 1, 0, 0, -1, -1, 0}, 1e-6);
  t.expect_inferred(0, "tensor(float)[2,3,2]");
  t.run();
}

// An element at [1, 0] turns with the frequency along the first dim.
const std::vector<double> kImpulse = {0, 0, 1, 0, 0, 0, 0, 0};
const std::vector<double> kTurns = {1, 0, 1, 0, 0, -1, 0, -1, -1, 0, -1, 0, 0, 1, 0, 1};

TEST(Rfft, TakesSignalsOfMoreDims) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16}) {
    OpTester t("Rfft", 1, kMs);
    t.attr("signal_ndim", 2);
    t.input_as(dtype, {4, 2}, kImpulse).expect_as(0, dtype, {4, 2, 2}, kTurns, 1e-6);
    t.run();
    OpTester back("Irfft", 1, kMs);
    back.attr("signal_ndim", 2);
    back.input_as(dtype, {4, 2, 2}, kTurns).expect_as(0, dtype, {4, 2}, kImpulse, 1e-6);
    back.run();
  }
}

TEST(Irfft, IsRfftsInverse) {
  OpTester t("Irfft", 1, kMs);
  t.attr("signal_ndim", 1);
  t.input<float>({2, 3, 2}, {10, 0, -2, 2, -2, 0, 1, 0, 0, -1, -1, 0});
  t.expect<float>(0, {2, 4}, {1, 2, 3, 4, 0, 1, 0, 0}, 1e-6);
  t.expect_inferred(0, "tensor(float)[2,4]");
  t.run();
}

// Odd dims, and more lines than one.
TEST(Rfft, TransformsEveryDim) {
  constexpr int64_t kRows = 3, kColumns = 6;
  std::vector<double> x;
  for (int64_t i = 0; i < 2 * kRows * kColumns; ++i) x.push_back(std::sin(i * i));
  std::vector<double> y;
  for (size_t image = 0; image < 2; ++image) {
    for (int64_t u = 0; u < kRows; ++u) {
      for (int64_t v = 0; v < kColumns / 2 + 1; ++v) {
        std::complex<double> sum = 0;
        for (int64_t i = 0; i < kRows * kColumns; ++i) {
          const auto turns = static_cast<double>(i / kColumns * u) / kRows +
                             static_cast<double>(i % kColumns * v) / kColumns;
          sum += x[image * kRows * kColumns + static_cast<size_t>(i)] *
                 std::polar(1.0, -2 * M_PI * turns);
        }
        y.push_back(sum.real());
        y.push_back(sum.imag());
      }
    }
  }
  OpTester t("Rfft", 1, kMs);
  t.attr("signal_ndim", 2).input<double>({2, kRows, kColumns}, x);
  t.expect<double>(0, {2, kRows, kColumns / 2 + 1, 2}, y, 1e-12).run();
  OpTester back("Irfft", 1, kMs);
  back.attr("signal_ndim", 2).input<double>({2, kRows, kColumns / 2 + 1, 2}, y);
  back.expect<double>(0, {2, kRows, kColumns}, x, 1e-12).run();
}

TEST(Rfft, RefusesOtherShapesAndAttributes) {
  OpTester dims("Rfft", 1, kMs);
  dims.attr("signal_ndim", 2).input<float>({2}, {1, 2}).outputs(1).fails("must have 2 dims");
  OpTester empty("Rfft", 1, kMs);
  empty.input<float>({1, 0}, {}).outputs(1).fails("dim 1 of the signal is 0, expected 1");
  OpTester half("Rfft", 1, kMs);
  half.attr("onesided", 0).input<float>({2}, {1, 2}).outputs(1).fails("onesided 0");
  OpTester scaled("Irfft", 1, kMs);
  scaled.attr("signal_ndim", 1).attr("normalized", 1).input<float>({2, 2}, {1, 0, 2, 0});
  scaled.outputs(1).fails("normalized is 1");
  OpTester many("Rfft", 1, kMs);
  many.attr("signal_ndim", 4).input<float>({2}, {1, 2}).outputs(1).fails("signal_ndim is 4");
}

TEST(Irfft, RefusesOtherShapes) {
  OpTester parts("Irfft", 1, kMs);
  parts.attr("signal_ndim", 1).input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  parts.outputs(1).fails("a last one of 2");
  OpTester one("Irfft", 1, kMs);
  one.attr("signal_ndim", 1).input<float>({1, 2}, {1, 2});
  one.outputs(1).fails("dim 0 of the signal is 1, expected 2");
  OpTester absent("Irfft", 1, kMs);
  absent.input<float>({2, 2}, {1, 0, 2, 0}).outputs(1).fails("signal_ndim");
}

}  // namespace
}  // namespace folio
