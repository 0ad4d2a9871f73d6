// gemm_f32 in the precisions in which a level may multiply numbers in parts: how near it is to the
// truth, what its bits depend on, and the numbers that parts cannot hold. Levels without parts take
// all precisions for kFolioChain.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/kernels/gemm_problem.h"

namespace folio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int32_t kPrecisions[] = {kFolioHighest, kFolioHigh, kFolioMedium};

using Problem = GemmProblem;

// With a gap behind each row of C.
std::vector<float> run(const LevelUnderTest& level, const Problem& p, const FolioGemmF32& args) {
  return run_gemm(level, p, args, 3);
}

// The bound of kernels.h, C counting as one more product.
void expect_close(const LevelUnderTest& level, const Problem& p, const FolioGemmF32& args,
                  const std::vector<float>& got) {
  const double part = static_cast<double>(p.k + 3) * 0x1p-24 + loss_of(args.precision);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      const auto at = static_cast<size_t>(i * p.n + j);
      double sum = args.accumulate ? p.c[at] : 0;
      double size = std::fabs(sum);
      double lost = 0;
      for (int64_t q = 0; q < p.k; ++q) {
        const double x = p.a[static_cast<size_t>(i * p.k + q)];
        const double y = p.b[static_cast<size_t>(q * p.n + j)];
        sum += x * y;
        size += std::fabs(x * y);
        lost += 0x1p-126 * (1 + std::fabs(x) + std::fabs(y));
      }
      ASSERT_LE(std::fabs(got[at] - sum), part * size + lost)
          << level.name << " precision " << args.precision << ": " << p.m << 'x' << p.n << 'x'
          << p.k << " at " << i << ", " << j;
    }
  }
}

const std::array<int64_t, 3> kShapes[] = {
    {1, 1, 8},    {16, 16, 32},  {17, 33, 33},  {15, 15, 31},  {32, 32, 64},
    {33, 48, 63}, {49, 50, 290}, {64, 40, 96},  {65, 17, 65},  {230, 100, 255},
    {48, 16, 31}, {31, 50, 256}, {97, 35, 257}, {130, 64, 530}};

TEST(FloatParts, StayWithinTheBoundOfTheirPrecision) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [m, n, k] : kShapes) {
      for (const int32_t precision : kPrecisions) {
        const Problem p(m, n, k);
        FolioGemmF32 args = p.args(precision);
        expect_close(level, p, args, run(level, p, args));
        args.accumulate = 1;
        expect_close(level, p, args, run(level, p, args));
      }
    }
  }
}

// A bfloat16 is its own first part: operators multiply it in one product at every precision.
TEST(FloatParts, OneProductLosesNothingOfBFloat16) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [m, n, k] : kShapes) {
      Problem p(m, n, k);
      for (float& x : p.a) x = from_bits(bits_of(x) & 0xffff0000U);
      for (float& x : p.b) x = from_bits(bits_of(x) & 0xffff0000U);
      p.pack();
      expect_close(level, p, p.args(kFolioHighest), run(level, p, p.args(kFolioMedium)));
    }
  }
}

// Numbers of all sizes that parts hold exactly, next to each other.
TEST(FloatParts, HoldNumbersOfAllSizes) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int32_t precision : kPrecisions) {
      Problem p(40, 40, 70);
      for (size_t i = 0; i < p.a.size(); ++i) {
        p.a[i] = std::ldexp(p.a[i], static_cast<int>(i * 37 % 150) - 96);
      }
      for (size_t i = 0; i < p.b.size(); ++i) {
        p.b[i] = std::ldexp(p.b[i], static_cast<int>(i * 53 % 150) - 96);
      }
      p.pack();
      const FolioGemmF32 args = p.args(precision);
      expect_close(level, p, args, run(level, p, args));
    }
  }
}

// The error of a chain of multiply-adds, measured: three parts are nearer to the truth.
TEST(FloatParts, OfHighestAreNearerThanAChain) {
  const Problem p(64, 64, 512);
  for (const LevelUnderTest& level : levels_under_test()) {
    if (!folio_multiplies_parts(&level.kernels, kFolioHighest)) continue;
    double error[2] = {};
    for (const int32_t precision : {kFolioChain, kFolioHighest}) {
      const std::vector<float> got = run(level, p, p.args(precision));
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          double sum = 0;
          for (int64_t q = 0; q < p.k; ++q) {
            sum += double{p.a[static_cast<size_t>(i * p.k + q)]} *
                   p.b[static_cast<size_t>(q * p.n + j)];
          }
          const double off = got[static_cast<size_t>(i * p.n + j)] - sum;
          error[precision] += off * off;
        }
      }
    }
    EXPECT_LT(error[kFolioHighest], error[kFolioChain]) << level.name;
  }
}

// Numbers in some rows and columns that parts cannot hold.
void spoil(Problem* p) {
  const float bad[] = {kNan, kInf, -kInf, 0x1p90F, 0x1.8p-110F, 0x1p-130F};
  for (int64_t s = 0; s < 6; ++s) {
    const int64_t i = s * 11 + 3;
    const int64_t j = s * 40 + 7;
    if (i < p->m) p->a_at(i, s * 50 % p->k) = bad[s];
    if (j < p->n && s % 2 == 1) p->b_at(s * 101 % p->k, j) = bad[s];
  }
  p->pack();
}

TEST(FloatParts, SplittingRowsColumnsAndDepthChangesNoBit) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int32_t precision : kPrecisions) {
      Problem p(205, 147, 530);
      spoil(&p);
      const std::vector<float> whole = run(level, p, p.args(precision));
      for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 147},
                                          {7, 16},
                                          {33, 112},
                                          {48, 147},
                                          {49, 80},
                                          {64, 16}}) {
        EXPECT_TRUE(same_bits(whole, run_in_blocks(level, p, p.args(precision), rows, columns)))
            << level.name << ' ' << rows << ' ' << columns;
      }
      const std::vector<int64_t> ends = {FOLIO_GEMM_ONE_SUM, 2 * FOLIO_GEMM_ONE_SUM, p.k};
      EXPECT_TRUE(same_bits(whole, run_in_depth(level, p, p.args(precision), ends)))
          << level.name << " in depth";
    }
  }
}

// What such numbers touch is what a chain makes of them; what they do not, is as without them. (One
// part alone is as wide as a float: below, and bfloat16_pairs_test.)
TEST(FloatParts, LeaveToAChainWhatTheyCannotHold) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const FolioKernels& kernels = level.kernels;
    if (kernels.multiplies_parts && !folio_multiplies_parts(&kernels, kFolioHighest)) continue;
    for (const int32_t precision : {kFolioHighest, kFolioHigh}) {
      Problem p(77, 147, 200);
      const std::vector<float> plain = run(level, p, p.args(precision));
      spoil(&p);
      const std::vector<float> chain = run(level, p, p.args(kFolioChain));
      const std::vector<float> got = run(level, p, p.args(precision));
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          const bool is_row = i % 11 == 3 && i < 6 * 11;
          const int64_t panel = j / 16;
          const bool is_panel = panel == 47 / 16 || panel == 127 / 16;
          const auto at = static_cast<size_t>(i * p.n + j);
          const float want = is_row || is_panel ? chain[at] : plain[at];
          ASSERT_TRUE(got[at] == want || (std::isnan(got[at]) && std::isnan(want)))
              << level.name << " precision " << precision << " at " << i << ", " << j << ": "
              << got[at] << " for " << want;
        }
      }
    }
  }
}

// Infinity and NaN give what they give a chain, large and tiny numbers lose their rounding, and
// nothing but the row or column of such a number changes.
TEST(FloatParts, OnePartHoldsWhatAFloatHolds) {
  for (const LevelUnderTest& level : levels_under_test()) {
    if (!folio_multiplies_parts(&level.kernels, kFolioMedium)) continue;
    Problem p(77, 147, 200);
    const FolioGemmF32 args = p.args(kFolioMedium);
    const std::vector<float> plain = run(level, p, args);
    spoil(&p);
    const std::vector<float> chain = run(level, p, p.args(kFolioChain));
    const std::vector<float> got = run(level, p, args);
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        const auto at = static_cast<size_t>(i * p.n + j);
        const bool is_touched = (i % 11 == 3 && i < 6 * 11) || j == 47 || j == 127;
        double size = 0;
        for (int64_t q = 0; q < p.k; ++q) {
          size += std::fabs(double{p.a[static_cast<size_t>(i * p.k + q)]} *
                            p.b[static_cast<size_t>(q * p.n + j)]);
        }
        const bool is_near = std::fabs(double{got[at]} - chain[at]) <= 0x1p-6 * size + 0x1p-100;
        ASSERT_TRUE(is_touched && std::isfinite(chain[at])
                        ? is_near
                        : got[at] == (is_touched ? chain : plain)[at] ||
                              (std::isnan(got[at]) && std::isnan(chain[at])))
            << level.name << " at " << i << ", " << j << ": " << got[at] << " for " << chain[at];
      }
    }
  }
}

TEST(FloatParts, ReadAInAnyOrderWithTheSameBits) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int32_t precision : kPrecisions) {
      for (const auto& [m, run_length] : {std::pair<int64_t, int64_t>{70, 1},
                                          {70, 24},
                                          {70, 64},
                                          {70, 300},
                                          {49, 24},
                                          {49, 96}}) {
        const Problem p(m, 37, run_length * 5);
        const std::vector<float> whole = run(level, p, p.args(precision));
        const std::vector<const float*> rows = row_pieces(p, 5);
        FolioGemmF32 args = p.args(precision);
        args.a = nullptr;
        args.a_rows = rows.data();
        args.a_run = run_length;
        EXPECT_TRUE(same_bits(whole, run(level, p, args))) << level.name << ' ' << run_length;
        args.a_rows = nullptr;  // pieces of all rows, a row apart
        std::vector<const float*> lines;
        for (int64_t piece = 0; piece < 5; ++piece)
          lines.push_back(p.a.data() + piece * run_length);
        args.a_lines = lines.data();
        args.a_row_stride = p.k;
        EXPECT_TRUE(same_bits(whole, run(level, p, args))) << level.name << ' ' << run_length;
        const std::vector<float> turned = p.turned_a();
        args = p.args(precision);
        args.a = turned.data();
        args.a_row_stride = 1;
        args.a_col_stride = p.m;
        EXPECT_TRUE(same_bits(whole, run(level, p, args))) << level.name << ' ' << run_length;
      }
    }
  }
}

// What becomes of the sums is computed from the same sums, in the order of kernels.h.
TEST(FloatParts, FinishSumsAsAChainDoes) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (int variant = 0; variant < 128; ++variant) {
      for (const int64_t k : {40, 256, 300}) {
        const Problem p(37, 50, k, static_cast<uint32_t>(variant));
        const std::vector<float> scale = random_floats(50, 5);
        const std::vector<float> bias = random_floats(50, 6);
        const std::vector<float> row_bias = random_floats(37, 7);
        const std::vector<float> addend = random_floats(37 * 53, 8);
        FolioGemmF32 args = p.args(variant & 64 ? kFolioMedium : kFolioHighest);
        args.accumulate = variant >> 5 & 1;
        const std::vector<float> sums = run(level, p, args);
        if (variant & 1) args.col_scale = scale.data();
        if (variant & 2) args.col_bias = bias.data();
        if (variant & 4) args.row_bias = row_bias.data();
        if (variant & 8) args.addend = addend.data();
        args.addend_row_stride = 53;
        args.alpha = variant & 16 ? -0.75F : 1;
        args.activation = variant % 4;
        args.clip_lo = args.activation == kFolioActLeakyRelu ? 0.1F : -0.5F;
        args.clip_hi = 0.25F;
        const std::vector<float> got = run(level, p, args);
        for (size_t at = 0; at < got.size(); ++at) {
          const size_t i = at / 50;
          const size_t j = at % 50;
          float v = (args.col_scale ? args.alpha * scale[j] : args.alpha) * sums[at];
          if (args.col_bias) v += bias[j];
          if (args.row_bias) v += row_bias[i];
          if (args.addend) v += addend[i * 53 + j];
          if (args.activation == kFolioActRelu) v = v < 0 ? 0 : v;
          if (args.activation == kFolioActLeakyRelu) v = v < 0 ? v * 0.1F : v;
          if (args.activation == kFolioActClip) v = std::min(std::max(v, -0.5F), 0.25F);
          ASSERT_EQ(got[at], v) << level.name << ' ' << variant << ' ' << k;
        }
      }
    }
  }
}

TEST(FloatParts, AddToWhatTheyOverwrite) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int32_t precision : kPrecisions) {
      Problem p(77, 100, FOLIO_GEMM_ONE_SUM);
      spoil(&p);
      FolioGemmF32 args = p.args(precision);
      args.addend = p.c.data();
      args.addend_row_stride = p.n;
      const std::vector<float> apart = run(level, p, args);
      std::vector<float> c = p.c;
      args.c = c.data();
      args.c_row_stride = p.n;
      args.addend = c.data();
      level.kernels.gemm_f32(&args);
      for (size_t at = 0; at < c.size(); ++at) {
        ASSERT_TRUE(c[at] == apart[at] || (std::isnan(c[at]) && std::isnan(apart[at])))
            << level.name;
      }
    }
  }
}

TEST(FloatParts, ReadNothingBehindTheirInputs) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [m, n, k] : kShapes) {
      const Problem p(m, n, k);
      const BeforeUnreadable a(p.a);
      const BeforeUnreadable b(p.packed);
      for (const int32_t precision : {kFolioHighest, kFolioMedium}) {
        FolioGemmF32 args = p.args(precision);
        const std::vector<float> want = run(level, p, args);
        args.a = a.data();
        args.b = b.data();
        EXPECT_TRUE(same_bits(want, run(level, p, args))) << level.name;
      }
    }
  }
}

TEST(FloatParts, AreNotUsedByLevelsWithoutThem) {
  const Problem p(64, 64, 100);
  for (const LevelUnderTest& level : levels_under_test()) {
    const bool same =
        same_bits(run(level, p, p.args(kFolioChain)), run(level, p, p.args(kFolioMedium)));
    EXPECT_EQ(same, !folio_multiplies_parts(&level.kernels, kFolioMedium)) << level.name;
  }
}

}  // namespace
}  // namespace folio
