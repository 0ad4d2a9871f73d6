// gemm_f32 of levels that multiply pairs of bfloat16 (the precision `medium` alone): how near it is
// to the truth, and that it is the chain of the rounded numbers, bit by bit. What its bits depend
// on is tested with the other levels' parts (float_parts_test).
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/kernels/gemm_problem.h"

namespace folio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();
constexpr float kMostBfloat16 = 0x1.fep127F;

const LevelUnderTest* level_of_pairs() {
  for (const LevelUnderTest& level : levels_under_test()) {
    const FolioKernels& k = level.kernels;
    if (folio_multiplies_parts(&k, kFolioMedium) && !folio_multiplies_parts(&k, kFolioHighest)) {
      return &level;
    }
  }
  return nullptr;
}

// Each test: only where the CPU has such a level.
class BFloat16Pairs : public testing::Test {
 protected:
  void SetUp() override {
    if (!level_of_pairs()) GTEST_SKIP() << "no CPU that multiplies pairs at the full rate";
  }
  const LevelUnderTest& level() const { return *level_of_pairs(); }

  std::vector<float> run(const GemmProblem& p, const FolioGemmF32& args) const {
    return run_gemm(level(), p, args, 3);
  }
  // What kernels.h calls the chain, of the same operands rounded before.
  std::vector<float> chain_of_rounded(const GemmProblem& p, const FolioGemmF32& args) const {
    const GemmProblem q = rounded(p);
    FolioGemmF32 chain = args;
    chain.precision = kFolioChain;
    chain.a = q.a.data();
    chain.b = q.packed.data();
    return run(q, chain);
  }

  // To the nearest bfloat16, but finite; subnormal numbers as zeros.
  static void round(std::vector<float>* values) {
    const FolioKernels& ref = ref_kernels();
    for (float& x : *values) {
      const bool is_finite = std::isfinite(x);
      uint16_t half;
      ref.f32_to_bf16(1, &x, &half);
      ref.bf16_to_f32(1, &half, &x);
      if (is_finite && std::isinf(x)) x = std::copysign(kMostBfloat16, x);
      if (std::fabs(x) < 0x1p-126F) x = std::copysign(0.0F, x);
    }
  }
  static GemmProblem rounded(const GemmProblem& p) {
    GemmProblem q = p;
    round(&q.a);
    round(&q.b);
    q.pack();
    return q;
  }
};

void expect_same(const std::vector<float>& got, const std::vector<float>& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t at = 0; at < got.size(); ++at) {
    const bool is_nan = std::isnan(got[at]) && std::isnan(want[at]);
    ASSERT_TRUE(is_nan || bits_of(got[at]) == bits_of(want[at]))
        << what << " at " << at << ": " << got[at] << " for " << want[at];
  }
}

// One row to more than a block of them, edges of tiles and panels, odd depths, several blocks of
// it.
const std::array<int64_t, 3> kShapes[] = {
    {1, 1, 1},     {1, 16, 2},    {2, 17, 3},    {5, 15, 7},     {14, 32, 64},   {15, 33, 63},
    {28, 31, 255}, {29, 48, 256}, {64, 40, 257}, {193, 64, 100}, {400, 33, 130}, {37, 100, 777}};

TEST_F(BFloat16Pairs, AreTheChainOfRoundedNumbers) {
  for (const auto& [m, n, k] : kShapes) {
    const GemmProblem p(m, n, k);
    FolioGemmF32 args = p.args(kFolioMedium);
    expect_same(run(p, args), chain_of_rounded(p, args), "alone");
    args.accumulate = 1;
    expect_same(run(p, args), chain_of_rounded(p, args), "added");
    args.col_scale = p.col_scale.data();
    args.col_bias = p.col_bias.data();
    args.row_bias = p.row_bias.data();
    args.addend = p.addend.data();
    args.addend_row_stride = n + GemmProblem::kAddendGap;
    args.alpha = -0.75F;
    args.activation = kFolioActLeakyRelu;
    args.clip_lo = 0.1F;
    expect_same(run(p, args), chain_of_rounded(p, args), "finished");
  }
}

// Each operand, of 8 bits, is rounded by 2^-8 of it at most: (1 + 2^-8)^2 - 1 = 2^-7 + 2^-16 of a
// product. The chain has (k + 3) roundings of sums of rounded magnitudes.
TEST_F(BFloat16Pairs, LoseTheRoundingOfTheirOperands) {
  constexpr double kRounding = 0x1p-7 + 0x1p-16;
  for (const auto& [m, n, k] : kShapes) {
    const GemmProblem p(m, n, k);
    const std::vector<float> got = run(p, p.args(kFolioMedium));
    const double chain = static_cast<double>(k + 3) * 0x1p-24 * (1 + kRounding);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        double size = 0;
        for (int64_t q = 0; q < k; ++q) {
          const double product =
              double{p.a[static_cast<size_t>(i * k + q)]} * p.b[static_cast<size_t>(q * n + j)];
          sum += product;
          size += std::fabs(product);
        }
        ASSERT_LE(std::fabs(got[static_cast<size_t>(i * n + j)] - sum), (kRounding + chain) * size)
            << m << 'x' << n << 'x' << k << " at " << i << ", " << j;
      }
    }
  }
}

TEST_F(BFloat16Pairs, LoseNothingOfNumbersThatAreBFloat16) {
  for (const auto& [m, n, k] : kShapes) {
    const GemmProblem p = rounded(GemmProblem(m, n, k));
    expect_same(run(p, p.args(kFolioMedium)), run(p, p.args(kFolioChain)), "bfloat16");
  }
}

TEST_F(BFloat16Pairs, LeaveTheOtherPrecisionsToAChain) {
  const GemmProblem p(64, 64, 300);
  const std::vector<float> chain = run(p, p.args(kFolioChain));
  EXPECT_TRUE(same_bits(run(p, p.args(kFolioHighest)), chain));
  EXPECT_TRUE(same_bits(run(p, p.args(kFolioHigh)), chain));
  EXPECT_FALSE(same_bits(run(p, p.args(kFolioMedium)), chain));
}

// Of every kind, at both places of a pair and in the last one of an odd depth.
TEST_F(BFloat16Pairs, TakeInfinitiesAndNan) {
  for (const float bad : {kInf, -kInf, kNan, -kNan}) {
    GemmProblem p(40, 48, 71);
    p.a_at(3, 0) = p.a_at(4, 1) = p.a_at(5, 70) = p.a_at(6, 6) = bad;
    p.b_at(8, 7) = p.b_at(9, 20) = p.b_at(70, 40) = bad;
    p.a_at(6, 8) = 0;  // times infinity
    p.pack();
    const FolioGemmF32 args = p.args(kFolioMedium);
    expect_same(run(p, args), chain_of_rounded(p, args), "spoiled");
    EXPECT_FALSE(std::isfinite(run(p, args)[3 * 48])) << bad;
    EXPECT_TRUE(std::isfinite(run(p, args)[0])) << bad;
  }
}

// The nearest bfloat16 of the largest floats is infinity; a sum of theirs may be none.
TEST_F(BFloat16Pairs, LargestFloatsStayFinite) {
  for (const float large : {kMost, -kMost, 0x1.ffp127F, 0x1.fefffep127F}) {
    GemmProblem p(20, 32, 66);
    for (int64_t q = 0; q < p.k; ++q) {
      for (int64_t j = 0; j < p.n; ++j) p.b_at(q, j) = q == 5 ? 0.25F : 0x1p-20F;
    }
    p.a_at(2, 5) = large;
    p.pack();
    std::vector<float> got = run(p, p.args(kFolioMedium));
    expect_same(got, chain_of_rounded(p, p.args(kFolioMedium)), "of A");
    EXPECT_NEAR(double{got[2 * 32]} / large, 0.25, 0x1p-8);
    GemmProblem turned(20, 32, 66);
    for (int64_t i = 0; i < p.m; ++i) turned.a_at(i, 65) = 0x1p-3F;
    turned.b_at(65, 17) = large;
    turned.b_at(64, 16) = kInf;  // the same panel
    turned.pack();
    got = run(turned, turned.args(kFolioMedium));
    expect_same(got, chain_of_rounded(turned, turned.args(kFolioMedium)), "of B");
    EXPECT_NEAR(double{got[17]} / large, 0.125, 0x1p-8);
  }
}

// What is subnormal counts as zero, and so does a sum: 2^-126 (1 + |A| + |B|) of each product.
TEST_F(BFloat16Pairs, SubnormalNumbersCountAsZero) {
  GemmProblem p(20, 32, 64);
  for (int64_t q = 0; q < p.k; ++q) {
    p.a_at(1, q) = 0x1.8p-127F;
    p.a_at(2, q) = 0x1p-70F;
    for (int64_t j = 0; j < p.n; ++j) p.b_at(q, j) = j == 5 ? 0x1p-70F : 3;
  }
  p.pack();
  const std::vector<float> got = run(p, p.args(kFolioMedium));
  for (int64_t j = 0; j < p.n; ++j) EXPECT_EQ(got[static_cast<size_t>(32 + j)], 0) << j;
  EXPECT_EQ(got[2 * 32 + 5], 0);  // of sums below 2^-126
  EXPECT_EQ(got[2 * 32 + 6], 64 * 3 * 0x1p-70F);
}

TEST_F(BFloat16Pairs, TakeEmptyProducts) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{0, 5, 7}, {5, 0, 7}, {5, 7, 0}, {0, 0, 0}}) {
    const GemmProblem p(m, n, k);
    FolioGemmF32 args = p.args(kFolioMedium);
    if (k == 0) args.a = args.b = nullptr;
    for (const float y : run(p, args)) EXPECT_EQ(y, 0);
  }
}

TEST_F(BFloat16Pairs, ReadRowsAnywhere) {
  const GemmProblem p(50, 40, 130);
  const std::vector<float> want = run(p, p.args(kFolioMedium));
  for (const size_t phase : {1, 2, 3, 5, 15}) {
    Guarded a(p.a, phase);
    FolioGemmF32 args = p.args(kFolioMedium);
    args.a = a.data();
    EXPECT_TRUE(same_bits(run(p, args), want)) << phase;
  }
}

}  // namespace
}  // namespace folio
