#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// Lengths: a power of two, a mixed radix, a small prime, a prime that goes through a convolution.
TEST(DFT, AgreesWithTheDefinitionForAnyLength) {
  for (const int64_t n : {8, 12, 7, 67, 2 * 71}) {
    std::vector<double> x(static_cast<size_t>(n));
    std::vector<double> y;
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i * i));
    for (int64_t k = 0; k < n; ++k) {
      double real = 0;
      double imaginary = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double turn = 2 * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n);
        real += x[static_cast<size_t>(i)] * std::cos(turn);
        imaginary -= x[static_cast<size_t>(i)] * std::sin(turn);
      }
      y.push_back(real);
      y.push_back(imaginary);
    }
    OpTester t("DFT", 20);
    t.input<double>({1, n, 1}, x);
    t.expect<double>(0, {1, n, 2}, y, 1e-9);
    t.run();
  }
}

TEST(DFT, OnesidedAndBackAgain) {
  OpTester forward("DFT", 20);
  forward.attr("onesided", 1);
  forward.input<float>({1, 4, 1}, {1, 2, 3, 5});
  forward.expect<float>(0, {1, 3, 2}, {11, 0, -2, 3, -3, 0}, 1e-6);
  forward.run();
  OpTester back("DFT", 20);
  back.attr("onesided", 1).attr("inverse", 1);
  back.input<float>({1, 3, 2}, {11, 0, -2, 3, -3, 0});
  back.expect<float>(0, {1, 4, 1}, {1, 2, 3, 5}, 1e-6);
  back.run();
}

TEST(DFT, FillsUpToTheLength) {
  OpTester t("DFT", 17);
  t.attr("axis", 0);
  t.input<float>({1, 1}, {3}).input<int64_t>({}, {2});
  t.expect<float>(0, {2, 2}, {3, 0, 3, 0}, 1e-6);
  t.run();
}

TEST(DFT, LengthsBelowOneAreAnError) {
  OpTester t("DFT", 20);
  t.input<float>({1, 1, 1}, {3}).input<int64_t>({}, {0});
  t.outputs(1).fails("length of the transform is 0");
}

TEST(STFT, WindowsFrames) {
  OpTester t("STFT", 17);
  t.input<float>({1, 4, 1}, {1, 2, 3, 4});
  t.input<int64_t>({}, {2});
  t.input<float>({2}, {1, 0.5F});
  t.expect<float>(0, {1, 2, 2, 2}, {2, 0, 0, 0, 5, 0, 1, 0}, 1e-6);
  t.run();
}

TEST(STFT, StepsOfZeroAreAnError) {
  OpTester t("STFT", 17);
  t.input<float>({1, 4, 1}, {1, 2, 3, 4});
  t.input<int64_t>({}, {0});
  t.outputs(1).fails("do not fit a signal");
}

}  // namespace
}  // namespace folio
