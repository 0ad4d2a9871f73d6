// gemm_f32 and pack_f32p16 of every usable level.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

#include "tests/kernels/gemm_problem.h"

namespace folio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

using Problem = GemmProblem;

const int64_t kRowCounts[] = {0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 27, 29, 35};
const int64_t kColumnCounts[] = {0, 1, 15, 16, 17, 31, 32, 33, 48, 63, 130, 145};
const int64_t kDepths[] = {0, 1, 2, 3, 7, 8, 17, 35};

TEST(Gemm, StaysWithinTheBoundForAllEdgeShapes) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : kRowCounts) {
      for (const int64_t n : kColumnCounts) {
        for (const int64_t k : kDepths) {
          const Problem p(m, n, k);
          expect_near_product(level, p, p.args(), run_gemm(level, p, p.args(), /*gap=*/m % 4));
        }
      }
    }
  }
}

TEST(Gemm, StaysWithinTheBoundAcrossCacheBlocks) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{57, 33, 257},
                                  {173, 40, 511},
                                  {340, 17, 513},
                                  {4, 300, 600},
                                  {85, 40, 1024},
                                  {45, 24, 1100}}) {
      const Problem p(m, n, k);
      FolioGemmF32 args = p.args();
      expect_near_product(level, p, args, run_gemm(level, p, args));
      const std::vector<float> turned = p.turned_a();  // and A as packing reads it
      const std::vector<float> whole = run_gemm(level, p, args);
      args.a = turned.data();
      args.a_row_stride = 1;
      args.a_col_stride = m;
      EXPECT_TRUE(same_bits(whole, run_gemm(level, p, args))) << level.name;
    }
  }
}

// Rows that a page which must not be read follows, of sizes that no tile's steps divide.
TEST(Gemm, FetchesWhatComesNextWithoutATrace) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{57, 33, 257}, {5, 16, 3}, {6, 128, 256}, {340, 17, 513}}) {
      const Problem p(m, n, k);
      FolioGemmF32 args = p.args();
      const std::vector<float> alone = run_gemm(level, p, args);
      for (const int64_t rows : {1, 7, 300}) {
        for (const int64_t bytes : {4, 64, 200, 4096}) {
          const BeforeUnreadable next(random_floats(static_cast<size_t>(rows * bytes / 4), 3));
          args.next = reinterpret_cast<const char*>(next.data());
          args.next_rows = rows;
          args.next_bytes = bytes;
          args.next_stride = bytes;
          EXPECT_TRUE(same_bits(alone, run_gemm(level, p, args))) << level.name;
        }
      }
    }
  }
}

TEST(Gemm, AppliesScalesBiasesAddendAndActivationInThatOrder) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {1, 3, 9, 31}) {
      for (const int64_t n : {5, 16, 50}) {
        for (int variant = 0; variant < 96; ++variant) {
          const Problem p(m, n, 9, static_cast<uint32_t>(variant));
          FolioGemmF32 args = p.args();
          if (variant & 1) args.col_bias = p.col_bias.data();
          if (variant & 2) args.row_bias = p.row_bias.data();
          if (variant & 4) args.alpha = -0.75f;
          args.accumulate = variant % 3 == 0;
          args.activation = variant / 8 % 3;
          args.clip_lo = -0.5f;
          args.clip_hi = 0.25f;
          if (variant / 24 & 1) args.col_scale = p.col_scale.data();
          if (variant / 24 & 2) args.addend = p.addend.data();
          args.addend_row_stride = n + Problem::kAddendGap;
          expect_near_product(level, p, args, run_gemm(level, p, args, 3));
        }
      }
    }
  }
}

// An addend that stands where the result goes, as a residual that nobody reads any more.
TEST(Gemm, AddsToWhatItOverwrites) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {1, 4, 14, 33, 200}) {
      for (const int64_t k : {0, 3, 8, 70, FOLIO_GEMM_ONE_SUM}) {
        for (const int64_t n : {5, 32, 100}) {
          const Problem p(m, n, k);
          FolioGemmF32 args = p.args();
          args.addend = p.c.data();
          args.addend_row_stride = n;
          args.col_bias = p.col_bias.data();
          const std::vector<float> apart = run_gemm(level, p, args);
          std::vector<float> c = p.c;
          args.c = c.data();
          args.c_row_stride = n;
          args.addend = c.data();
          level.kernels.gemm_f32(&args);
          ASSERT_EQ(c, apart) << level.name << " " << m << " " << n << " " << k;
        }
      }
    }
  }
}

TEST(Gemm, TakesATransposedOrAnyStridedA) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {1, 4, 6, 14, 23, 40}) {
      const Problem p(m, 37, 21);
      const std::vector<float> a = random_floats(static_cast<size_t>(7 * m * 21), 9);
      FolioGemmF32 args = p.args();
      args.a = a.data();
      args.a_row_stride = 1;  // transposed
      args.a_col_stride = m;
      expect_near_product(level, p, args, run_gemm(level, p, args));
      args.a_row_stride = 2;  // every second column of a transposed matrix
      args.a_col_stride = 2 * m + 1;
      expect_near_product(level, p, args, run_gemm(level, p, args));
      args.a = a.data() + (m - 1) * 21;  // rows upside down
      args.a_row_stride = -21;
      args.a_col_stride = 1;
      expect_near_product(level, p, args, run_gemm(level, p, args));
    }
  }
}

// Pieces of rows that lie anywhere are the same matrix.
TEST(Gemm, RowsInPiecesChangeNoBit) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {1, 3, 4, 9, 14, 33}) {
      for (const int64_t run_length : {1, 3, 4, 7, 8, 21, 100}) {
        const Problem p(m, 37, run_length * 5);
        const std::vector<const float*> rows = row_pieces(p, 5);
        FolioGemmF32 args = p.args();
        const std::vector<float> whole = run_gemm(level, p, args);
        args.a = nullptr;
        args.a_rows = rows.data();
        args.a_run = run_length;
        EXPECT_TRUE(same_bits(whole, run_gemm(level, p, args)))
            << level.name << ' ' << m << " rows, pieces of " << run_length;
      }
    }
  }
}

// Where the last panel has 8 columns or fewer, tiles of half a panel: not for a transposed A, which
// is packed and takes whole ones.
TEST(Gemm, HalfPanelsHaveTheBitsOfWholeOnes) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {5, 6, 7, 8, 11, 13, 14, 15, 33, 200}) {
      for (const int64_t n : {1, 7, 8, 9, 17, 24, 25, 40, 56}) {
        for (const int64_t k : {0, 1, 6, 270}) {
          const Problem p(m, n, k);
          const std::vector<float> turned = p.turned_a();
          const std::vector<const float*> rows = row_pieces(p, 1);
          FolioGemmF32 args = p.args();
          args.accumulate = static_cast<int32_t>(k % 2);
          args.col_bias = p.col_bias.data();
          if (m % 2 == 1) args.row_bias = p.row_bias.data();  // else tiles may end row by row
          args.addend = p.addend.data();
          args.addend_row_stride = n + Problem::kAddendGap;
          args.activation = kFolioActRelu;
          const std::vector<float> halves = run_gemm(level, p, args, 3);
          FolioGemmF32 pieces = args;
          pieces.a = nullptr;
          pieces.a_rows = rows.data();
          pieces.a_run = k;
          args.a = turned.data();
          args.a_row_stride = 1;
          args.a_col_stride = m;
          const std::vector<float> whole = run_gemm(level, p, args, 3);
          ASSERT_TRUE(same_bits(whole, halves)) << level.name << ' ' << m << 'x' << n << 'x' << k;
          if (k == 0) continue;
          ASSERT_TRUE(same_bits(whole, run_gemm(level, p, pieces, 3))) << level.name << ' ' << m;
        }
      }
    }
  }
}

// Tiles that are ended while the next one is made: each shape of their columns and ends, rows that
// are too few, C as addend. Turned rows have no such tiles.
TEST(Gemm, LinkedTilesHaveTheBitsOfOthers) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t n : {23, 24, 32, 35, 40, 48, 56, 72, 80, 88, 96, 100}) {
      for (const auto& [m, k] :
           {std::pair<int64_t, int64_t>{28, 14}, {31, 31}, {34, 20}, {49, 64}, {61, 256}}) {
        const Problem p(m, n, k);
        const std::vector<float> turned = p.turned_a();
        const float* const line = p.a.data();
        for (int end = 0; end < 8; ++end) {
          FolioGemmF32 args = p.args();
          if (end & 1) args.col_bias = p.col_bias.data();
          if (end & 2) args.addend = p.addend.data();
          args.addend_row_stride = n + Problem::kAddendGap;
          if (end & 4) args.activation = m % 2 == 0 ? kFolioActRelu : kFolioActClip;
          args.clip_lo = -0.5F;
          args.clip_hi = 0.75F;
          FolioGemmF32 other = args;
          other.a = turned.data();
          other.a_row_stride = 1;
          other.a_col_stride = m;
          const std::vector<float> want = run_gemm(level, p, other, 3);
          ASSERT_TRUE(same_bits(want, run_gemm(level, p, args, 3)))
              << level.name << ' ' << m << 'x' << n << 'x' << k << " end " << end;
          args.a_lines = &line;
          args.a_run = k;
          ASSERT_TRUE(same_bits(want, run_gemm(level, p, args, 3))) << level.name << ' ' << m;
          if (!(end & 2)) continue;
          std::vector<float> c(p.addend.begin(), p.addend.end());  // its rows as far apart
          args.c = c.data();
          args.addend = c.data();
          args.c_row_stride = args.addend_row_stride;
          level.kernels.gemm_f32(&args);
          for (int64_t i = 0; i < m; ++i) {
            const float* const row = want.data() + i * n;
            ASSERT_EQ(0, std::memcmp(row, c.data() + i * args.c_row_stride,
                                     static_cast<size_t>(n) * sizeof(float)))
                << level.name << ' ' << m << 'x' << n << 'x' << k << " row " << i;
          }
        }
      }
    }
  }
}

// Rows that lie in one set of a small L1 are copied there, in each way to say where they are; the
// last ends before what must not be read.
TEST(Gemm, RowsAMultipleOf4KiBApartHaveTheSameBits) {
  constexpr int64_t kPage = 1024;  // floats
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {7, 8, 14, 57, 113}) {
      for (const int64_t k : {0, 5, 256, 257, 600}) {
        const Problem p(m, 37, k);
        FolioGemmF32 args = p.args();
        const std::vector<float> whole = run_gemm(level, p, args);
        for (const int64_t apart : {kPage - 1, kPage, kPage + 1, 2 * kPage}) {
          std::vector<float> wide(static_cast<size_t>((m - 1) * apart + k));
          std::vector<const float*> pieces(static_cast<size_t>(2 * m));
          const int64_t half = k % 2 == 0 ? k / 2 : k;
          for (int64_t i = 0; i < m; ++i) {
            std::copy_n(p.a.begin() + i * k, k, wide.begin() + i * apart);
          }
          const BeforeUnreadable rows(wide);
          for (int64_t i = 0; i < 2 * m; ++i) {
            pieces[static_cast<size_t>(i)] = rows.data() + i % m * apart + i / m * half;
          }
          args = p.args();
          args.a = rows.data();
          args.a_row_stride = apart;
          EXPECT_TRUE(same_bits(whole, run_gemm(level, p, args))) << level.name << m << 'x' << k;
          args.a = nullptr;
          args.a_run = half;
          const float* const lines[] = {rows.data(), rows.data() + half};
          args.a_lines = lines;
          EXPECT_TRUE(same_bits(whole, run_gemm(level, p, args))) << level.name << m << 'x' << k;
          args.a_lines = nullptr;
          args.a_rows = pieces.data();
          EXPECT_TRUE(same_bits(whole, run_gemm(level, p, args))) << level.name << m << 'x' << k;
        }
      }
    }
  }
}

// Rows of one line, each some steps after the one before, overlapping as windows do.
TEST(Gemm, LinesChangeNoBit) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {1, 3, 4, 7, 12, 14, 27, 40}) {
      for (const int64_t run_length : {1, 3, 4, 7, 11, 12, 21, 100}) {
        for (const int64_t step : {1, 2, 4, 5, 30}) {
          const Problem p(m, m % 2 == 0 ? 37 : 48, run_length * 5);
          const int64_t length = (m - 1) * step + run_length;
          const std::vector<float> image = random_floats(static_cast<size_t>(5 * length), 11);
          std::vector<float> matrix;
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t piece = 0; piece < 5; ++piece) {
              const auto from = image.begin() + piece * length + i * step;
              matrix.insert(matrix.end(), from, from + run_length);
            }
          }
          FolioGemmF32 args = p.args();
          args.a = matrix.data();
          const std::vector<float> whole = run_gemm(level, p, args);
          const float* lines[5];
          for (int64_t piece = 0; piece < 5; ++piece) lines[piece] = image.data() + piece * length;
          args.a = nullptr;
          args.a_lines = lines;
          args.a_run = run_length;
          args.a_row_stride = step;
          EXPECT_TRUE(same_bits(whole, run_gemm(level, p, args)))
              << level.name << ' ' << m << " rows, pieces of " << run_length << ", steps " << step;
          args.activation = kFolioActLeakyRelu;
          args.clip_lo = 0.25F;
          std::vector<float> leaky = whole;
          for (float& y : leaky) y = y < 0 ? y * 0.25F : y;
          EXPECT_TRUE(same_bits(leaky, run_gemm(level, p, args))) << level.name << ' ' << m;
        }
      }
    }
  }
}

// The promise on which operators build their threads.
TEST(Gemm, SplittingRowsColumnsAndDepthChangesNoBit) {
  const Problem p(61, 147, 300);
  for (const LevelUnderTest& level : levels_under_test()) {
    const std::vector<float> whole = run_gemm(level, p, p.args());
    for (const int64_t rows : {1, 2, 5, 14, 60}) {
      for (const int64_t columns : {16, 48, 112}) {
        EXPECT_TRUE(same_bits(whole, run_in_blocks(level, p, p.args(), rows, columns)))
            << level.name << ' ' << rows << ' ' << columns;
      }
    }
    for (const int64_t split : {1, 255, 256, 299}) {
      EXPECT_TRUE(same_bits(whole, run_in_depth(level, p, p.args(), {split, p.k})))
          << level.name << " depth " << split;
    }
  }
}

TEST(Gemm, FmaLevelsAgreeBitForBitWithAChainOfFmaf) {
  const Problem p(19, 35, 270);
  std::vector<float> want;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (int64_t q = 0; q < p.k; ++q) {
        sum = std::fma(p.a[static_cast<size_t>(i * p.k + q)], p.b[static_cast<size_t>(q * p.n + j)],
                       sum);
      }
      want.push_back(sum);
    }
  }
  for (const LevelUnderTest& level : levels_under_test()) {
    if (level.name == "ref") continue;
    EXPECT_TRUE(same_bits(want, run_gemm(level, p, p.args()))) << level.name;
  }
}

TEST(Gemm, EmptyDepthGivesBiasOrZeroOrC) {
  const Problem p(5, 20, 0);
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const float value : run_gemm(level, p, p.args())) EXPECT_EQ(value, 0.0f) << level.name;
    FolioGemmF32 args = p.args();
    args.accumulate = 1;
    EXPECT_TRUE(same_bits(p.c, run_gemm(level, p, args))) << level.name;
    args.accumulate = 0;
    args.row_bias = p.row_bias.data();
    const std::vector<float> biased = run_gemm(level, p, args);
    EXPECT_EQ(biased[20], p.row_bias[1]) << level.name;
  }
}

// A NaN or inf stays in its row (from A) or column (from B), and activations pass a NaN.
TEST(Gemm, KeepsNanAndInfInTheirRowAndColumn) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {2, 9, 30}) {
      for (const int activation :
           {kFolioActNone, kFolioActRelu, kFolioActClip, kFolioActLeakyRelu}) {
        Problem p(m, 21, 6);
        p.a[7] = kNan;            // row 1
        p.b[3 * 21 + 17] = kInf;  // column 17
        p.pack();
        FolioGemmF32 args = p.args();
        args.activation = activation;
        args.clip_lo = -10;
        args.clip_hi = 10;
        const std::vector<float> c = run_gemm(level, p, args);
        for (int64_t j = 0; j < 21; ++j) EXPECT_TRUE(std::isnan(c[static_cast<size_t>(21 + j)]));
        for (int64_t j = 0; j < 21; ++j) {
          if (j == 17) continue;
          EXPECT_TRUE(std::isfinite(c[static_cast<size_t>(j)])) << level.name << j;
        }
        if (activation == kFolioActNone) {
          EXPECT_TRUE(std::isinf(c[17])) << level.name;
        }
      }
    }
  }
}

TEST(Gemm, ReadsNothingBehindItsInputs) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{1, 7, 33}, {5, 16, 9}, {7, 30, 3}, {14, 45, 258}, {31, 20, 12}}) {
      const Problem p(m, n, k);
      const BeforeUnreadable a(p.a);
      const BeforeUnreadable b(p.packed);
      const BeforeUnreadable col_bias(p.col_bias);
      const BeforeUnreadable row_bias(p.row_bias);
      FolioGemmF32 args = p.args();
      args.a = a.data();
      args.b = b.data();
      args.col_bias = col_bias.data();
      args.row_bias = row_bias.data();
      expect_near_product(level, p, args, run_gemm(level, p, args));
    }
  }
}

// B at an odd address, rows apart, right before a page that cannot be read.
TEST(GemmPlain, HasTheBitsOfGemm) {
  using Size = std::pair<int64_t, int64_t>;
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {1, 2, 3, 4, 5, 13, 14, 29, 57}) {
      for (const auto& [n, k] : {Size{1, 1}, Size{7, 8}, Size{16, 9}, Size{45, 27}, Size{130, 3},
                                 Size{35, 1100}, Size{100, 40}, Size{33, 0}}) {
        if (m > 4 && k == 0) continue;
        const Problem p(m, n, k);
        const int64_t stride = n + 3;
        std::vector<float> rows(static_cast<size_t>(k > 0 ? (k - 1) * stride + n : 0) + 1);
        char* bytes = reinterpret_cast<char*>(rows.data());
        for (int64_t q = 0; q < k; ++q) {
          std::memcpy(bytes + 1 + 4 * q * stride, p.b.data() + q * n, 4 * static_cast<size_t>(n));
        }
        const BeforeUnreadable b(rows);
        for (const int accumulate : {0, 1}) {
          FolioGemmF32 args = p.args();
          args.accumulate = accumulate;
          args.alpha = 0.7f;
          args.col_bias = p.col_bias.data();
          args.row_bias = p.row_bias.data();
          args.activation = kFolioActRelu;
          if (m % 2 == 0) args.col_scale = p.col_scale.data();
          if (m % 3 != 0) args.addend = p.addend.data();
          args.addend_row_stride = n + Problem::kAddendGap;
          const std::vector<float> want = run_gemm(level, p, args);
          Guarded c(p.c, 5);
          args.c = c.data();
          args.c_row_stride = n;
          args.b = nullptr;
          level.kernels.gemm_plain_f32(&args, reinterpret_cast<const char*>(b.data()) + 1, stride);
          EXPECT_TRUE(c.intact()) << level.name;
          EXPECT_TRUE(same_bits(want, c.values()))
              << level.name << ' ' << m << ' ' << n << ' ' << k;
        }
      }
    }
  }
}

// `hint` is about what is fetched, never about what is computed.
void expect_same_bits_with(int32_t FolioGemmF32::*hint, std::initializer_list<int64_t> rows,
                           std::initializer_list<std::pair<int64_t, int64_t>> columns_and_depths) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : rows) {
      for (const auto& [n, k] : columns_and_depths) {
        const Problem p(m, n, k);
        FolioGemmF32 args = p.args();
        const BeforeUnreadable b(p.packed);
        args.b = b.data();
        const std::vector<float> want = run_gemm(level, p, args);
        args.*hint = 1;
        EXPECT_TRUE(same_bits(want, run_gemm(level, p, args))) << level.name << ' ' << m;
      }
    }
  }
}

TEST(Gemm, FewRowsOfAFarBHaveTheSameBits) {
  expect_same_bits_with(&FolioGemmF32::b_is_far, {1, 2, 3, 4, 5},
                        {{272, 300}, {100, 700}, {7, 9999}});
}

TEST(Gemm, WhatIsMultipliedByNextChangesNothing) {
  expect_same_bits_with(&FolioGemmF32::b_goes_on, {1, 5, 14, 49}, {{16, 40}, {64, 300}, {96, 900}});
}

// Panels of a problem's B in 16 bits, from byte 3 of `words` on, and what a level widens them to.
struct HalfPanels {
  HalfPanels(const Problem& p, bool is_bfloat16, const FolioKernels& kernels) {
    const auto count = static_cast<int64_t>(p.packed.size());
    const int64_t panel_rows = is_bfloat16 ? folio_bf16p16_rows(p.k) : p.k;
    const int64_t panels = (p.n + 15) / 16;
    words.resize(static_cast<size_t>(panels * panel_rows * 8 + 1));
    wide.resize(p.packed.size());
    char* bytes = reinterpret_cast<char*>(words.data()) + 3;
    if (!is_bfloat16) {
      ref_kernels().f32_to_f16(count, p.packed.data(), bytes);
      add_nans(count, bytes);
      kernels.f16_to_f32(count, bytes, wide.data());
      return;
    }
    std::vector<uint16_t> rows(p.packed.size());
    ref_kernels().f32_to_bf16(count, p.packed.data(), rows.data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = i / (16 * p.k) * panel_rows * 16 + folio_bf16p16_at(i / 16 % p.k, i % 16);
      std::memcpy(bytes + 2 * at, &rows[static_cast<size_t>(i)], 2);
    }
    add_nans(count, bytes);
    for (int64_t j = 0; j < panels; ++j) {
      kernels.bf16p16_to_f32(p.k, bytes + j * panel_rows * 32, wide.data() + j * p.k * 16);
    }
  }
  static void add_nans(int64_t count, char* bytes) {
    if (count > 20) std::memcpy(bytes + 2 * 17, "\x01\x7c\x81\xff", 4);
  }
  std::vector<float> words, wide;
};

// Panels of 16 bits, at an odd address, right before a page that cannot be read: any bits at all.
TEST(GemvB16, HasTheBitsOfGemmOverWhatTheyWidenTo) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (int64_t m = 1; m <= 4; ++m) {
      for (const auto& [n, k] :
           {std::pair<int64_t, int64_t>{1, 1}, {16, 9}, {45, 27}, {150, 3}, {129, 300}, {33, 0}}) {
        for (const int is_bfloat16 : {0, 1}) {
          const Problem p(m, n, k);
          const HalfPanels panels(p, is_bfloat16 != 0, level.kernels);
          const std::vector<float>& words = panels.words;
          const std::vector<float>& wide = panels.wide;
          const BeforeUnreadable aligned(wide);
          FolioGemmF32 args = p.args();
          args.b = aligned.data();
          args.alpha = 0.7f;
          args.col_bias = p.col_bias.data();
          args.row_bias = p.row_bias.data();
          args.activation = kFolioActRelu;
          args.accumulate = m % 2 == 0;
          if (m % 2 == 0) args.col_scale = p.col_scale.data();
          if (m % 3 != 0) args.addend = p.addend.data();
          args.addend_row_stride = n + Problem::kAddendGap;
          const std::vector<float> want = run_gemm(level, p, args);
          const BeforeUnreadable b(words);
          args.c_row_stride = n;
          args.b = nullptr;
          const char* from = reinterpret_cast<const char*>(b.data()) + 3;
          for (const int is_far : {0, 1}) {
            Guarded c(p.c, 5);
            args.c = c.data();
            args.b_is_far = is_far;
            level.kernels.gemv_b16(&args, from, is_bfloat16);
            EXPECT_TRUE(c.intact()) << level.name;
            for (size_t i = 0; i < want.size(); ++i) {
              const float got = c.values()[i];
              EXPECT_TRUE(bits_of(got) == bits_of(want[i]) ||
                          (std::isnan(got) && std::isnan(want[i])))
                  << level.name << ' ' << m << ' ' << n << ' ' << k << ' ' << i;
            }
          }
        }
      }
    }
  }
}

TEST(Pack, GivesRefsBytesForAnyStridesAndAlignment) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t k : {0, 1, 7, 8, 9, 64, 71, 130}) {
      for (const int64_t n : {0, 1, 8, 15, 16, 17, 40, 64}) {
        std::vector<float> b = random_floats(static_cast<size_t>(4 * k * n + 8 * (k + n) + 8), 4);
        b[0] = from_bits(0x7f800001u);  // a signalling NaN must not change
        const std::pair<int64_t, int64_t> strides[] = {{n, 1},     {1, k},     {n + 3, 1},
                                                       {1, k + 5}, {2 * n, 2}, {0, 1}};
        for (const auto& [row, col] : strides) {
          Guarded want(panel_floats(k, n));
          Guarded got(panel_floats(k, n));
          // One byte off any alignment.
          std::vector<char> bytes(4 * b.size() + 1);
          std::memcpy(bytes.data() + 1, b.data(), 4 * b.size());
          ref_kernels().pack_f32p16(k, n, b.data(), row, col, want.data());
          level.kernels.pack_f32p16(k, n, bytes.data() + 1, row, col, got.data());
          ASSERT_TRUE(got.intact()) << level.name;
          ASSERT_TRUE(same_bits(want.values(), got.values()))
              << level.name << ' ' << k << ' ' << n << ' ' << row << ' ' << col;
        }
      }
    }
  }
}

TEST(Pack, UnpackGivesBackTheBytes) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{5, 3}, {33, 47}, {1, 16}}) {
      std::vector<float> b = random_floats(static_cast<size_t>(k * n), 5);
      b[0] = from_bits(0xff800001u);
      std::vector<float> panels(panel_floats(k, n));
      level.kernels.pack_f32p16(k, n, b.data(), 1, k, panels.data());
      Guarded back(b.size());
      level.kernels.unpack_f32p16(k, n, panels.data(), back.data(), 1, k);
      EXPECT_TRUE(back.intact() && same_bits(b, back.values())) << level.name;
    }
  }
}

TEST(Pack, PadsWithZerosWhateverWasThere) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const std::vector<float> b(3 * 17, 1.0f);
    std::vector<float> panels(panel_floats(3, 17), kNan);
    level.kernels.pack_f32p16(3, 17, b.data(), 17, 1, panels.data());
    for (size_t i = 0; i < panels.size(); ++i) {
      const bool is_padding = i >= 48 && i % 16 != 0;
      EXPECT_EQ(bits_of(panels[i]), is_padding ? 0u : bits_of(1.0f)) << level.name << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace folio
