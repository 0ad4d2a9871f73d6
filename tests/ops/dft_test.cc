#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

using Line = std::vector<std::complex<double>>;

// The definition, in long double; not divided.
Line transform(const Line& x, bool inverse) {
  const size_t n = x.size();
  Line y(n);
  for (size_t k = 0; k < n; ++k) {
    std::complex<long double> sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const long double turn = 2 * 3.14159265358979323846L * static_cast<long double>(i * k % n) /
                               static_cast<long double>(n);
      sum += std::complex<long double>(x[i]) * std::polar(1.0L, inverse ? turn : -turn);
    }
    y[k] = std::complex<double>(sum);
  }
  return y;
}

// Two powers, every radix alone and among others, odd ones, primes that go through a convolution
// and their doubles.
const std::vector<int64_t> kLengths = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,  12,  13, 14,
                                       15, 16, 20, 25, 30, 32, 35, 49, 61, 64, 122, 126, 67, 142};

// 3 lines along the axis, `inner` apart, as a DFT takes and gives them.
struct Lines {
  Lines(int64_t length, bool real, int64_t apart) : parts(real ? 1 : 2), inner(apart) {
    for (size_t l = 0; l < 3; ++l) {
      for (size_t i = 0; i < static_cast<size_t>(length); ++i) {
        const auto at = static_cast<double>(i * i + 31 * l);
        lines[l].emplace_back(std::sin(at), real ? 0.0 : std::cos(at + 1));
      }
    }
  }
  Shape shape(int64_t length) const {
    return inner == 1 ? Shape{3, length, parts} : Shape{length, 3, parts};
  }
  // Elements 0 to length - 1 of each line.
  std::vector<double> values(int64_t length) const {
    std::vector<double> out(static_cast<size_t>(3 * length * parts));
    for (int64_t l = 0; l < 3; ++l) {
      for (int64_t i = 0; i < length; ++i) {
        const auto at = static_cast<size_t>((inner == 1 ? l * length + i : i * 3 + l) * parts);
        const std::complex<double> value = lines[l][static_cast<size_t>(i)];
        out[at] = value.real();
        if (parts == 2) out[at + 1] = value.imag();
      }
    }
    return out;
  }

  int64_t parts;
  int64_t inner;
  Line lines[3];
};

OpTester dft_of(const Lines& x, int64_t length, bool inverse) {
  OpTester t("DFT", 20);
  t.attr("inverse", inverse ? 1 : 0);
  t.input<double>(x.shape(length), x.values(length));
  t.input_absent().input<int64_t>({}, {x.inner == 1 ? 1 : 0});
  return t;
}

TEST(DFT, AgreesWithTheDefinitionForAnyLength) {
  for (const int64_t n : kLengths) {
    for (const int way : {0, 1, 2, 3, 4, 5, 6, 7}) {
      SCOPED_TRACE(testing::Message() << "n " << n << " way " << way);
      const bool real = (way & 1) != 0;
      const bool inverse = (way & 2) != 0;
      const Lines x(n, real, (way & 4) != 0 ? 3 : 1);
      Lines y = x;
      y.parts = 2;
      for (Line& line : y.lines) {
        line = transform(line, inverse);
        for (auto& value : line) value /= inverse ? static_cast<double>(n) : 1.0;
      }
      OpTester t = dft_of(x, n, inverse);
      t.expect<double>(0, y.shape(n), y.values(n), 1e-12).run();
      if (!real || inverse) continue;
      OpTester half = dft_of(x, n, false);
      half.attr("onesided", 1);
      half.expect<double>(0, y.shape(n / 2 + 1), y.values(n / 2 + 1), 1e-12).run();
    }
  }
}

TEST(DFT, InverseOfHalfASpectrumIsReal) {
  for (const int64_t n : kLengths) {
    for (const int64_t inner : {1, 3}) {
      SCOPED_TRACE(testing::Message() << "n " << n << " inner " << inner);
      const Lines y(n, true, inner);
      Lines x = y;
      x.parts = 2;
      for (Line& line : x.lines) {
        line = transform(line, false);
        // Which counts nothing.
        line[0] += std::complex<double>(0, 9);
        if (n % 2 == 0) line[static_cast<size_t>(n / 2)] += std::complex<double>(0, 7);
      }
      OpTester t("DFT", 20);
      t.attr("inverse", 1).attr("onesided", 1);
      t.input<double>(x.shape(n / 2 + 1), x.values(n / 2 + 1));
      t.input<int64_t>({}, {n}).input<int64_t>({}, {inner == 1 ? 1 : 0});
      t.expect<double>(0, y.shape(n), y.values(n), 1e-12).run();
    }
  }
}

// A mirrored bin is the conjugate, to the bit, and what is 0 by symmetry is 0.
TEST(DFT, SpectraOfRealLinesAreSymmetric) {
  for (const int64_t n : {8, 40, 142, 15, 67}) {
    const Lines x(n, true, 1);
    OpTester t = dft_of(x, n, false);
    t.outputs(1).run();
    const std::vector<double> y = t.output_values<double>(0);
    const auto count = static_cast<size_t>(n);
    EXPECT_EQ(y[1], 0);
    EXPECT_TRUE(n % 2 != 0 || y[count + 1] == 0);
    for (size_t k = 1; k < count; ++k) {
      EXPECT_EQ(y[2 * k], y[2 * (count - k)]) << n;
      EXPECT_EQ(y[2 * k + 1], -y[2 * (count - k) + 1]) << n;
    }
  }
}

// Lines are transformed side by side.
TEST(DFT, LinesChangeNothingInOthers) {
  for (const bool real : {false, true}) {
    for (const int64_t n : {8, 15, 67}) {
      const auto second_line = [&](double beside) {
        Lines x(n, real, 1);
        for (const int l : {0, 2}) x.lines[l].assign(static_cast<size_t>(n), beside);
        OpTester t = dft_of(x, n, false);
        t.outputs(1).run();
        const std::vector<double> y = t.output_values<double>(0);
        return std::vector<double>(y.begin() + 2 * n, y.begin() + 4 * n);
      };
      const std::vector<double> alone = second_line(0);
      EXPECT_EQ(alone, second_line(1e300));
      EXPECT_EQ(alone, second_line(NAN));
    }
  }
}

// More than a thread takes at once, and an odd number: each as it would be alone.
TEST(DFT, TakesManyLines) {
  constexpr int64_t kLines = 131;
  for (const int64_t n : {128, 4500}) {
    std::vector<float> x;
    for (int64_t i = 0; i < kLines * n; ++i) x.push_back(static_cast<float>(i * i % 1009) / 16);
    OpTester all("DFT", 20);
    all.input<float>({kLines, n, 1}, x).outputs(1).run();
    const std::vector<float> y = all.output_values<float>(0);
    for (const int64_t line : {0, 1, 63, 64, 65, 127, 128, 129, 130}) {
      OpTester one("DFT", 20);
      one.input<float>({1, n, 1}, {x.begin() + line * n, x.begin() + (line + 1) * n});
      one.expect<float>(0, {1, n, 2}, {y.begin() + line * n * 2, y.begin() + (line + 1) * n * 2});
      one.run();
    }
  }
}

TEST(DFT, TakesEveryType) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16}) {
    OpTester real("DFT", 20);
    real.input_as(dtype, {1, 4, 1}, {1, 2, 3, 6});
    real.expect_as(0, dtype, {1, 4, 2}, {12, 0, -2, 4, -4, 0, -2, -4}, 1e-6).run();
    OpTester back("DFT", 20);
    back.attr("inverse", 1).input_as(dtype, {1, 4, 2}, {12, 0, -2, 4, -4, 0, -2, -4});
    back.expect_as(0, dtype, {1, 4, 2}, {1, 0, 2, 0, 3, 0, 6, 0}, 1e-6).run();
    OpTester frames("STFT", 17);
    frames.input_as(dtype, {1, 4, 1}, {1, 2, 3, 6}).input<int64_t>({}, {2});
    frames.input_as(dtype, {2}, {1, 0.5});
    frames.expect_as(0, dtype, {1, 2, 2, 2}, {2, 0, 0, 0, 6, 0, 0, 0}, 1e-6).run();
  }
}

TEST(DFT, CutsOrFillsComplexLines) {
  OpTester longer("DFT", 20);
  longer.input<float>({1, 1, 2}, {3, 4}).input<int64_t>({}, {2});
  longer.expect<float>(0, {1, 2, 2}, {3, 4, 3, 4}, 1e-6).run();
  OpTester shorter("DFT", 20);
  shorter.input<float>({1, 3, 2}, {3, 4, 1, 2, 9, 9}).input<int64_t>({}, {2});
  shorter.expect<float>(0, {1, 2, 2}, {4, 6, 2, 2}, 1e-6).run();
  // Of real numbers, too, an inverse takes a spectrum.
  OpTester to_real("DFT", 20);
  to_real.attr("inverse", 1).attr("onesided", 1);
  to_real.input<float>({1, 2, 1}, {4, 2}).input<int64_t>({}, {4});
  to_real.expect<float>(0, {1, 4, 1}, {2, 1, 0, 1}, 1e-6).run();
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

// Odd and even frames of real and complex signals, whole and half spectra; 3 frames of 2 signals.
TEST(STFT, AgreesWithTheDefinition) {
  for (const int64_t n : {8, 9}) {
    for (const int64_t parts : {1, 2}) {
      for (const bool half : {true, false}) {
        const int64_t bins = half && parts == 1 ? n / 2 + 1 : n;
        std::vector<double> x;
        std::vector<double> window;
        for (int64_t i = 0; i < 2 * (n + 4) * parts; ++i) x.push_back(std::sin(i * i));
        for (int64_t i = 0; i < n; ++i) window.push_back(std::cos(i));
        std::vector<double> y;
        for (int64_t frame = 0; frame < 6; ++frame) {
          Line line;
          for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>((frame / 3 * (n + 4) + frame % 3 * 2 + i) * parts);
            line.push_back({x[at], parts == 2 ? x[at + 1] : 0.0});
            line.back() *= window[static_cast<size_t>(i)];
          }
          line = transform(line, false);
          for (size_t k = 0; k < static_cast<size_t>(bins); ++k) {
            y.push_back(line[k].real());
            y.push_back(line[k].imag());
          }
        }
        OpTester t("STFT", 17);
        t.attr("onesided", half ? 1 : 0).input<double>({2, n + 4, parts}, x);
        t.input<int64_t>({}, {2}).input<double>({n}, window);
        t.expect<double>(0, {2, 3, bins, 2}, y, 1e-12).run();
      }
    }
  }
}

TEST(STFT, StepsOfZeroAreAnError) {
  OpTester t("STFT", 17);
  t.input<float>({1, 4, 1}, {1, 2, 3, 4});
  t.input<int64_t>({}, {0});
  t.outputs(1).fails("do not fit a signal");
}

}  // namespace
}  // namespace folio
