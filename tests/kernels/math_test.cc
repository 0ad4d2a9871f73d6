// Element-wise slots of every usable level: accuracy against double, special values, places.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <ostream>

#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct UnaryCase {
  FolioUnary slot;
  const char* name;
  double (*truth)(double);
  double max_ulp;       // as kernels.h states
  double max_relative;  // of |x|, instead of ulp, where > 0
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double relu(double x) { return x < 0 ? 0 : x; }
double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu_erf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh(double x) {
  return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double hard_swish(double x) { return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double softsign(double x) { return x / (1 + std::fabs(x)); }
double mish(double x) { return x * std::tanh(softplus(x)); }
double negate(double x) { return -x; }
double reciprocal(double x) { return 1 / x; }
double absolute(double x) { return std::fabs(x); }
double half_even(double x) { return std::nearbyint(x); }

const UnaryCase kUnaryCases[] = {
    {kFolioExp, "exp", std::exp, 2, 0},
    {kFolioLog, "log", std::log, 1, 0},
    {kFolioTanh, "tanh", std::tanh, 2, 0},
    {kFolioSigmoid, "sigmoid", sigmoid, 2, 0},
    {kFolioErf, "erf", std::erf, 1, 0},
    {kFolioRelu, "relu", relu, 0, 0},
    {kFolioSqrt, "sqrt", std::sqrt, 0.5, 0},
    {kFolioAbs, "abs", absolute, 0, 0},
    {kFolioNeg, "neg", negate, 0, 0},
    {kFolioReciprocal, "reciprocal", reciprocal, 0.5, 0},
    {kFolioFloor, "floor", std::floor, 0, 0},
    {kFolioCeil, "ceil", std::ceil, 0, 0},
    {kFolioRound, "round", half_even, 0, 0},
    {kFolioSin, "sin", std::sin, 1, 0},
    {kFolioCos, "cos", std::cos, 1, 0},
    {kFolioGeluErf, "gelu_erf", gelu_erf, 0, 0x1p-22},
    {kFolioGeluTanh, "gelu_tanh", gelu_tanh, 0, 0x1p-22},
    {kFolioSilu, "silu", silu, 4, 0},
    {kFolioSoftplus, "softplus", softplus, 4, 0},
    // Three roundings, and 1/6 rounded; near x = -3 the gate cancels: 2^-24 * 0.5 * |x| each.
    {kFolioHardSwish, "hard_swish", hard_swish, 0, 0x1p-22},
    {kFolioSign, "sign", sign, 0, 0},
    {kFolioSoftsign, "softsign", softsign, 2, 0},
    {kFolioMish, "mish", mish, 4, 0},
    {kFolioTan, "tan", std::tan, 2, 0},
    {kFolioAsin, "asin", std::asin, 1, 0},
    {kFolioAcos, "acos", std::acos, 1, 0},
    {kFolioAtan, "atan", std::atan, 2, 0},
    {kFolioSinh, "sinh", std::sinh, 1, 0},
    {kFolioCosh, "cosh", std::cosh, 1, 0},
    {kFolioAsinh, "asinh", std::asinh, 1, 0},
    {kFolioAcosh, "acosh", std::acosh, 1, 0},
    {kFolioAtanh, "atanh", std::atanh, 1, 0},
};

// Every how manyth of all 2^32 floats is tried: a prime, so that all exponents and mantissas take
// part. FOLIO_FLOAT_STRIDE=1 tries all of them and prints what it found (docs/kernels.md): some
// minutes a function.
const char* asked_stride() { return std::getenv("FOLIO_FLOAT_STRIDE"); }

uint64_t float_stride() {
  return asked_stride() ? std::max<uint64_t>(std::strtoull(asked_stride(), nullptr, 10), 1) : 4099;
}

// Calls `body` with finite floats, some at a time: those of the stride, and a fine walk where the
// functions bend.
template <typename Body>
void for_each_probe(Body&& body) {
  constexpr size_t kAtOnce = 1 << 14;
  std::vector<float> block;
  const auto add = [&](float x) {
    if (std::isfinite(x)) block.push_back(x);
    if (block.size() < kAtOnce) return;
    body(block);
    block.clear();
  };
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += float_stride()) {
    add(from_bits(static_cast<uint32_t>(bits)));
  }
  for (int i = -200000; i < 200000; ++i) add(static_cast<float>(i) * 0x1.0624dep-11f);
  body(block);
}

// In ulp, or in what the case allows where that is a part of |x|.
double error_of(const UnaryCase& test, float x, float got, double want) {
  if (test.max_relative > 0 && std::isfinite(static_cast<float>(want))) {
    return std::fabs(got - want) / (std::fabs(x) * test.max_relative + 0x1p-149);
  }
  const double distance = ulp_distance(got, want);
  // exp(x) of a large negative x is subnormal before x multiplies it: kernels.h allows silu and
  // mish 64 ulp there, 16 times their 4.
  const bool is_gate = test.slot == kFolioSilu || test.slot == kFolioMish;
  return is_gate && x < -87.33f ? distance / 16 : distance;
}

struct Worst {
  double error = 0;
  float x = 0;
};

void PrintTo(const UnaryCase& test, std::ostream* out) { *out << test.name; }

class UnaryAccuracy : public ::testing::TestWithParam<UnaryCase> {};

TEST_P(UnaryAccuracy, IsAsStated) {
  const UnaryCase& test = GetParam();
  const auto& levels = levels_under_test();
  std::vector<Worst> worst(levels.size());
  std::vector<double> want;
  std::vector<float> y;
  for_each_probe([&](const std::vector<float>& x) {
    want.resize(x.size());
    y.resize(x.size());
    std::transform(x.begin(), x.end(), want.begin(), [&](float each) { return test.truth(each); });
    for (size_t level = 0; level < levels.size(); ++level) {
      const FolioUnaryF32 slot = levels[level].kernels.unary_f32[test.slot];
      if (level > 0 && slot == levels[level - 1].kernels.unary_f32[test.slot]) {
        worst[level] = worst[level - 1];
        continue;
      }
      slot(static_cast<int64_t>(x.size()), x.data(), y.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = error_of(test, x[i], y[i], want[i]);
        if (!(error <= worst[level].error)) worst[level] = {error, x[i]};
      }
    }
  });
  const double limit = test.max_relative > 0 ? 1 : test.max_ulp;
  for (size_t level = 0; level < levels.size(); ++level) {
    EXPECT_LE(worst[level].error, limit) << levels[level].name << " at " << worst[level].x;
    RecordProperty(levels[level].name, std::to_string(worst[level].error));
    if (asked_stride()) {
      std::printf("%-10s %-16s %.3f at %.9g\n", test.name, levels[level].name.c_str(),
                  worst[level].error, static_cast<double>(worst[level].x));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnaryAccuracy, ::testing::ValuesIn(kUnaryCases),
                         [](const auto& test) { return std::string(test.param.name); });

float value_at(const LevelUnderTest& level, FolioUnary slot, float x) {
  float y = 123;
  level.kernels.unary_f32[slot](1, &x, &y);
  return y;
}

TEST(Unary, HandlesSpecialValues) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const auto at = [&](FolioUnary slot, float x) { return value_at(level, slot, x); };
    for (int slot = 0; slot < kFolioUnaryCount; ++slot) {
      EXPECT_TRUE(std::isnan(at(static_cast<FolioUnary>(slot), kNan))) << level.name << ' ' << slot;
    }
    EXPECT_EQ(at(kFolioExp, kInf), kInf) << level.name;
    EXPECT_EQ(at(kFolioExp, -kInf), 0) << level.name;
    EXPECT_EQ(at(kFolioExp, 0), 1) << level.name;
    EXPECT_EQ(at(kFolioLog, 0), -kInf) << level.name;
    EXPECT_EQ(at(kFolioLog, kInf), kInf) << level.name;
    EXPECT_EQ(at(kFolioLog, 1), 0) << level.name;
    EXPECT_TRUE(std::isnan(at(kFolioLog, -1))) << level.name;
    EXPECT_TRUE(std::isnan(at(kFolioLog, -kInf))) << level.name;
    for (const FolioUnary slot : {kFolioTanh, kFolioErf}) {
      EXPECT_EQ(at(slot, kInf), 1) << level.name;
      EXPECT_EQ(at(slot, -kInf), -1) << level.name;
      EXPECT_EQ(bits_of(at(slot, -0.0f)), bits_of(-0.0f)) << level.name;
    }
    EXPECT_EQ(bits_of(at(kFolioSin, -0.0f)), bits_of(-0.0f)) << level.name;
    EXPECT_EQ(at(kFolioCos, -0.0f), 1) << level.name;
    for (const FolioUnary slot : {kFolioSin, kFolioCos}) {
      EXPECT_TRUE(std::isnan(at(slot, kInf)) && std::isnan(at(slot, -kInf))) << level.name;
    }
    EXPECT_EQ(at(kFolioSigmoid, kInf), 1) << level.name;
    EXPECT_EQ(at(kFolioSigmoid, -kInf), 0) << level.name;
    EXPECT_EQ(bits_of(at(kFolioRelu, -0.0f)), bits_of(-0.0f)) << level.name;
    EXPECT_EQ(at(kFolioReciprocal, -0.0f), -kInf) << level.name;
    EXPECT_EQ(bits_of(at(kFolioRound, -0.5f)), bits_of(-0.0f)) << level.name;
    EXPECT_EQ(at(kFolioRound, 2.5f), 2) << level.name;
    EXPECT_EQ(at(kFolioSoftplus, kInf), kInf) << level.name;
    EXPECT_EQ(at(kFolioSoftplus, -kInf), 0) << level.name;
  }
}

TEST(Unary, HandlesEndsOfAnglesAndHyperbolicFunctions) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const auto at = [&](FolioUnary slot, float x) { return value_at(level, slot, x); };
    for (const FolioUnary slot :
         {kFolioTan, kFolioAsin, kFolioAtan, kFolioSinh, kFolioAsinh, kFolioAtanh}) {
      EXPECT_EQ(bits_of(at(slot, -0.0f)), bits_of(-0.0f)) << level.name << ' ' << slot;
      EXPECT_EQ(bits_of(at(slot, 0.0f)), bits_of(0.0f)) << level.name << ' ' << slot;
      EXPECT_EQ(at(slot, 0x1p-149f), 0x1p-149f) << level.name << ' ' << slot;
      EXPECT_EQ(at(slot, -0.8125f), -at(slot, 0.8125f)) << level.name << ' ' << slot;
    }
    EXPECT_TRUE(std::isnan(at(kFolioTan, kInf)) && std::isnan(at(kFolioTan, -kInf))) << level.name;
    for (const FolioUnary slot : {kFolioAsin, kFolioAcos}) {
      for (const float x : {1.0000001f, -1.0000001f, 3e38f, kInf, -kInf}) {
        EXPECT_TRUE(std::isnan(at(slot, x))) << level.name << ' ' << slot << ' ' << x;
      }
    }
    EXPECT_EQ(bits_of(at(kFolioAcos, 1)), bits_of(0.0f)) << level.name;
    EXPECT_EQ(at(kFolioAcos, -1), static_cast<float>(M_PI)) << level.name;
    EXPECT_EQ(at(kFolioAsin, -1), -static_cast<float>(M_PI_2)) << level.name;
    EXPECT_EQ(at(kFolioAtan, kInf), static_cast<float>(M_PI_2)) << level.name;
    EXPECT_EQ(at(kFolioAtan, -kInf), -static_cast<float>(M_PI_2)) << level.name;
    for (const FolioUnary slot : {kFolioSinh, kFolioAsinh}) {
      EXPECT_EQ(at(slot, kInf), kInf) << level.name << ' ' << slot;
      EXPECT_EQ(at(slot, -kInf), -kInf) << level.name << ' ' << slot;
    }
    EXPECT_EQ(at(kFolioSinh, -90), -kInf) << level.name;
    EXPECT_EQ(at(kFolioCosh, -90), kInf) << level.name;
    EXPECT_EQ(at(kFolioCosh, -kInf), kInf) << level.name;
    EXPECT_EQ(at(kFolioCosh, 0), 1) << level.name;
    EXPECT_EQ(bits_of(at(kFolioAcosh, 1)), bits_of(0.0f)) << level.name;
    EXPECT_EQ(at(kFolioAcosh, kInf), kInf) << level.name;
    for (const float x : {0.9999999f, 0.0f, -1.0f, -kInf}) {
      EXPECT_TRUE(std::isnan(at(kFolioAcosh, x))) << level.name << ' ' << x;
    }
    EXPECT_EQ(at(kFolioAtanh, 1), kInf) << level.name;
    EXPECT_EQ(at(kFolioAtanh, -1), -kInf) << level.name;
    for (const float x : {1.0000001f, -1.0000001f, 3e38f, kInf, -kInf}) {
      EXPECT_TRUE(std::isnan(at(kFolioAtanh, x))) << level.name << ' ' << x;
    }
  }
}

struct ShapedCase {
  FolioShaped slot;
  const char* name;
  float p, q;
  double (*truth)(double x, double p, double q);
};

const ShapedCase kShapedCases[] = {
    {kFolioElu, "elu", 1.5F, 0,
     [](double x, double p, double) { return x < 0 ? p * std::expm1(x) : x; }},
    {kFolioSelu, "selu", 1.6732632F, 1.0507010F,
     [](double x, double p, double q) { return q * (x <= 0 ? p * std::expm1(x) : x); }},
    {kFolioCelu, "celu", 0.7F, 0,
     [](double x, double p, double) { return x < 0 ? p * std::expm1(x / p) : x; }},
};

TEST(Shaped, FunctionsWithExpAreAccurate) {
  for (const ShapedCase& test : kShapedCases) {
    for_each_probe([&](const std::vector<float>& x) {
      std::vector<float> y(x.size());
      for (const LevelUnderTest& level : levels_under_test()) {
        level.kernels.shaped_f32[test.slot](static_cast<int64_t>(x.size()), x.data(), test.p,
                                            test.q, y.data());
        for (size_t i = 0; i < x.size(); ++i) {
          const double want = test.truth(x[i], test.p, test.q);
          ASSERT_LE(ulp_distance(y[i], want), 4)
              << level.name << ' ' << test.name << " at " << x[i];
        }
      }
    });
  }
}

// What each of the others rounds is stated, so all levels have the bits of ref; NaN, infinities,
// zeros, bounds, tails and in-place use included.
TEST(Shaped, OthersAreExactlyAsStated) {
  std::vector<float> x = random_floats(131, 7, -2.0F, 2.0F);
  const float special[] = {kNan, kInf, -kInf, 0.0F, -0.0F, 0.5F, -0.5F, 1e-42F, -1e-42F};
  std::copy(std::begin(special), std::end(special), x.begin() + 3);
  const auto& levels = levels_under_test();
  for (const int slot :
       {kFolioLeakyRelu, kFolioThresholdedRelu, kFolioHardSigmoid, kFolioAffine, kFolioShrink}) {
    for (size_t n = 0; n <= x.size(); ++n) {
      const std::vector<float> begin(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n));
      std::vector<float> want(n);
      const auto count = static_cast<int64_t>(n);
      levels[0].kernels.shaped_f32[slot](count, begin.data(), 0.5F, 0.3F, want.data());
      for (const LevelUnderTest& level : levels) {
        Guarded y(begin, n % 7);
        level.kernels.shaped_f32[slot](count, y.data(), 0.5F, 0.3F, y.data());
        ASSERT_TRUE(y.intact() && same_bits(want, y.values())) << level.name << ' ' << slot;
      }
    }
  }
}

TEST(Shaped, ResultDoesNotDependOnThePlace) {
  const std::vector<float> x = random_floats(67, 8, -4.0F, 4.0F);
  for (const LevelUnderTest& level : levels_under_test()) {
    for (int slot = 0; slot < kFolioShapedCount; ++slot) {
      const FolioShapedF32 function = level.kernels.shaped_f32[slot];
      std::vector<float> want(x.size());
      std::vector<float> got(x.size());
      for (size_t i = 0; i < x.size(); ++i) function(1, &x[i], 0.75F, 1.25F, &want[i]);
      function(static_cast<int64_t>(x.size()), x.data(), 0.75F, 1.25F, got.data());
      ASSERT_TRUE(same_bits(want, got)) << level.name << ' ' << slot;
      const float nan = kNan;
      function(1, &nan, 0.75F, 1.25F, got.data());
      const bool is_zero = slot == kFolioThresholdedRelu || slot == kFolioShrink;
      ASSERT_TRUE(is_zero ? got[0] == 0 : std::isnan(got[0])) << level.name << ' ' << slot;
    }
  }
}

TEST(Unary, NeverExceedsOne) {
  for_each_probe([](const std::vector<float>& x) {
    std::vector<float> y(x.size());
    for (const LevelUnderTest& level : levels_under_test()) {
      for (const FolioUnary slot : {kFolioTanh, kFolioErf, kFolioSigmoid}) {
        level.kernels.unary_f32[slot](static_cast<int64_t>(y.size()), x.data(), y.data());
        for (const float value : y) ASSERT_LE(std::fabs(value), 1.0f) << level.name << ' ' << slot;
      }
    }
  });
}

// Splits, tails, alignment and in-place use give the bits of the whole row.
TEST(Unary, ResultDoesNotDependOnThePlace) {
  const std::vector<float> x = random_floats(131, 7, -8.0f, 8.0f);
  for (const LevelUnderTest& level : levels_under_test()) {
    for (int slot = 0; slot < kFolioUnaryCount; ++slot) {
      std::vector<float> want(x.size());
      for (size_t i = 0; i < x.size(); ++i) level.kernels.unary_f32[slot](1, &x[i], &want[i]);
      for (size_t n = 0; n <= x.size(); ++n) {
        Guarded y({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)}, n % 7);
        level.kernels.unary_f32[slot](static_cast<int64_t>(n), y.data(), y.data());
        const std::vector<float> begin(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(n));
        ASSERT_TRUE(y.intact() && same_bits(begin, y.values()))
            << level.name << ' ' << slot << ' ' << n;
      }
    }
  }
}

TEST(Binary, AgreesWithRefForAllStepsTailsAndAliases) {
  std::vector<float> a = random_floats(70, 11, 0.1f, 4.0f);
  std::vector<float> b = random_floats(70, 12, -3.0f, 3.0f);
  a[3] = kNan, b[5] = kNan, a[9] = kInf, b[9] = -kInf, a[11] = -0.0f, b[11] = 0.0f, b[13] = 0.0f;
  for (const LevelUnderTest& level : levels_under_test()) {
    for (int slot = 0; slot < kFolioBinaryCount; ++slot) {
      for (int64_t n = 0; n <= 70; ++n) {
        for (int steps = 0; steps < 4; ++steps) {
          const int64_t a_step = steps & 1;
          const int64_t b_step = steps >> 1;
          std::vector<float> want(static_cast<size_t>(n));
          ref_kernels().binary_f32[slot](n, a.data(), a_step, b.data(), b_step, want.data());
          for (const bool in_place : {false, true}) {
            Guarded y(in_place && a_step ? std::vector<float>(a.begin(), a.begin() + n)
                                         : std::vector<float>(static_cast<size_t>(n)),
                      static_cast<size_t>(n) % 5);
            const float* left = in_place && a_step ? y.data() : a.data();
            level.kernels.binary_f32[slot](n, left, a_step, b.data(), b_step, y.data());
            const std::vector<float> got = y.values();
            ASSERT_TRUE(y.intact());
            for (size_t i = 0; i < got.size(); ++i) {
              const bool both_nan = std::isnan(want[i]) && std::isnan(got[i]);
              ASSERT_TRUE(both_nan || got[i] == want[i])
                  << level.name << ' ' << slot << ' ' << n << ' ' << i;
            }
          }
        }
      }
    }
  }
}

TEST(Binary, ARepeatedOperandMayBeTheFirstResult) {
  for (const LevelUnderTest& level : levels_under_test()) {
    std::vector<float> y(37);
    for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i + 1);
    y[0] = 2;
    const std::vector<float> b(37, 10.0f);
    level.kernels.binary_f32[kFolioMul](37, y.data(), 0, b.data(), 1, y.data());
    for (const float value : y) EXPECT_EQ(value, 20.0f) << level.name;
  }
}

TEST(Binary, MinAndMaxGiveNanWhenEitherIs) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const FolioBinary slot : {kFolioMin, kFolioMax}) {
      for (const bool first : {false, true}) {
        const float a = first ? kNan : 1.0f;
        const float b = first ? 1.0f : kNan;
        float y = 0;
        level.kernels.binary_f32[slot](1, &a, 1, &b, 1, &y);
        EXPECT_TRUE(std::isnan(y)) << level.name << ' ' << slot << ' ' << first;
      }
    }
  }
}

TEST(Clip, ClampsAndKeepsNan) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (size_t n = 0; n < 40; ++n) {
      std::vector<float> x = random_floats(n, 3, -2.0f, 2.0f);
      if (n > 20) x[20] = kNan;
      Guarded y(n, n % 3);
      level.kernels.clip_f32(static_cast<int64_t>(n), x.data(), -0.5f, 1.5f, y.data());
      ASSERT_TRUE(y.intact());
      for (size_t i = 0; i < n; ++i) {
        if (i == 20) {
          ASSERT_TRUE(std::isnan(y.data()[i])) << level.name;
        } else {
          ASSERT_EQ(y.data()[i], std::min(std::max(x[i], -0.5f), 1.5f)) << level.name;
        }
      }
    }
    // Bounds in the wrong order: all become hi, as ONNX says.
    const float x = 0;
    float y = 0;
    level.kernels.clip_f32(1, &x, 2.0f, 1.0f, &y);
    EXPECT_EQ(y, 1.0f) << level.name;
  }
}

// ---- pow --------------------------------------------------------------------------------------

// Exponents that are products or roots, given once for all elements, and any exponents, one each.
const float kExponents[] = {0,     1,    2,     3,    4,     7,       16,     -1,
                            -2,    -3,   0.5F,  1.5F, 2.5F,  -0.5F,   8.5F,   -1.5F,
                            0.3F,  2.2F, -2.7F, 100,  17,    -30,     0.01F,  1e-6F,
                            40.5F, 33,   -33,   1000, -1000, 0.9999F, 1.0001F};

void expect_powers(const LevelUnderTest& level, const std::vector<float>& x, float exponent,
                   Worst* worst) {
  const std::vector<float> exponents(x.size(), exponent);
  std::vector<float> once(x.size()), each(x.size());
  const auto n = static_cast<int64_t>(x.size());
  level.kernels.binary_f32[kFolioPow](n, x.data(), 1, &exponent, 0, once.data());
  level.kernels.binary_f32[kFolioPow](n, x.data(), 1, exponents.data(), 1, each.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::pow(double{x[i]}, double{exponent});
    for (const float got : {once[i], each[i]}) {
      const double error = ulp_distance(got, want);
      if (!(error <= worst->error)) *worst = {error, x[i]};
      ASSERT_LE(error, 1) << level.name << ' ' << x[i] << " to the " << exponent;
    }
  }
}

TEST(Pow, IsWithinOneUlp) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 16 * float_stride() + 1) {
    const float each = from_bits(static_cast<uint32_t>(bits));
    if (std::isfinite(each)) x.push_back(each);
  }
  for (int i = -4000; i < 4000; ++i) x.push_back(static_cast<float>(i) * 0x1.0624dep-8F);
  for (const LevelUnderTest& level : levels_under_test()) {
    Worst worst;
    for (const float exponent : kExponents) {
      expect_powers(level, x, exponent, &worst);
      if (HasFatalFailure()) return;
    }
    RecordProperty(level.name, std::to_string(worst.error));
    if (asked_stride()) {
      std::printf("pow        %-16s %.3f at %.9g\n", level.name.c_str(), worst.error, worst.x);
    }
  }
}

TEST(Pow, HasTheSpecialValuesOfC) {
  const float values[] = {0.0F,        -0.0F,  1,      -1,      2,           -2,
                          3,           -3,     0.5F,   -0.5F,   2.5F,        -2.5F,
                          1e30F,       -1e30F, 1e-40F, -1e-40F, 16777215.0F, 16777216.0F,
                          33554432.0F, kInf,   -kInf,  kNan};
  for (const LevelUnderTest& level : levels_under_test()) {
    const FolioBinaryF32 slot = level.kernels.binary_f32[kFolioPow];
    for (const float base : values) {
      for (const float exponent : values) {
        const float want = std::pow(base, exponent);
        const std::vector<float> bases(21, base), exponents(21, exponent);
        for (const int64_t base_step : {0, 1}) {
          for (const int64_t exponent_step : {0, 1}) {
            std::vector<float> got(21);
            slot(21, bases.data(), base_step, exponents.data(), exponent_step, got.data());
            for (const float each : got) {
              if (std::isnan(want)) {
                ASSERT_TRUE(std::isnan(each)) << level.name << ' ' << base << ' ' << exponent;
              } else {
                ASSERT_LE(ulp_distance(each, want), 1)
                    << level.name << ' ' << base << ' ' << exponent;
                ASSERT_EQ(std::signbit(each), std::signbit(want))
                    << level.name << ' ' << base << ' ' << exponent;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace folio
