// dots_f32 of every usable level: products with a few columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "tests/kernels/gemm_problem.h"

namespace folio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Of each column of B its numbers one after the other.
std::vector<float> columns_of(const GemmProblem& p) {
  std::vector<float> columns;
  for (int64_t j = 0; j < p.n; ++j) {
    for (int64_t q = 0; q < p.k; ++q) columns.push_back(p.b[static_cast<size_t>(q * p.n + j)]);
  }
  return columns;
}

// Into a guarded C that begins anywhere.
std::vector<float> run_dots(const LevelUnderTest& level, FolioGemmF32 args, const float* columns) {
  Guarded c(static_cast<size_t>(args.m * args.n), static_cast<size_t>(args.k % 5));
  args.b = columns;
  args.c = c.data();
  args.c_row_stride = args.addend_row_stride = args.n;
  level.kernels.dots_f32(&args);
  EXPECT_TRUE(c.intact()) << level.name;
  return c.values();
}

const int64_t kRowCounts[] = {0, 1, 3, 4, 5, 8, 9, 15, 16, 17, 35};
const int64_t kDepths[] = {0, 1, 7, 8, 9, 15, 16, 17, 33, 70};

TEST(Dots, StayWithinTheBoundAndReadNothingElse) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : kRowCounts) {
      for (int64_t n = 1; n <= FOLIO_MOST_DOTS; ++n) {
        for (const int64_t k : kDepths) {
          const GemmProblem p(m, n, k);
          const BeforeUnreadable a(p.a);
          const BeforeUnreadable columns(columns_of(p));
          FolioGemmF32 args = p.args();
          args.a = a.data();
          expect_near_product(level, p, args, run_dots(level, args, columns.data()));
        }
      }
    }
  }
}

// Many rows of so many vectors are computed another way than one.
TEST(Dots, OfManyShortRowsHaveTheBitsOfEachAlone) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t k : {16, 32, 48, 64, 96, 128}) {
      const GemmProblem p(35, 1, k);
      const BeforeUnreadable a(p.a);
      const BeforeUnreadable column(columns_of(p));
      FolioGemmF32 args = p.args();
      args.a = a.data();
      const std::vector<float> together = run_dots(level, args, column.data());
      expect_near_product(level, p, args, together);
      for (int64_t row = 0; row < p.m; ++row) {
        FolioGemmF32 one = args;
        one.m = 1;
        one.a = args.a + row * args.a_row_stride;
        EXPECT_EQ(run_dots(level, one, column.data())[0], together[static_cast<size_t>(row)])
            << level.name << ' ' << k << ' ' << row;
      }
    }
  }
}

// As weights stand in a file.
TEST(Dots, TakeColumnsAtAnyAddress) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t n : {1, 4, 11}) {
      const GemmProblem p(19, n, 37);
      const std::vector<float> columns = columns_of(p);
      std::vector<char> bytes(columns.size() * sizeof(float) + 1);
      std::memcpy(bytes.data() + 1, columns.data(), bytes.size() - 1);
      const auto* unaligned = reinterpret_cast<const float*>(bytes.data() + 1);
      EXPECT_EQ(run_dots(level, p.args(), unaligned), run_dots(level, p.args(), columns.data()))
          << level.name;
    }
  }
}

TEST(Dots, ApplyScalesBiasesAddendAndActivationInThatOrder) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {1, 3, 16, 21}) {
      for (const int64_t n : {1, 3, 8, 11}) {
        for (int variant = 0; variant < 64; ++variant) {
          const GemmProblem p(m, n, 19, static_cast<uint32_t>(variant));
          FolioGemmF32 args = p.args();
          if (variant & 1) args.col_bias = p.col_bias.data();
          if (variant & 2) args.col_scale = p.col_scale.data();
          if (variant & 4) args.addend = p.c.data();
          args.addend_row_stride = n;
          if (variant & 8) args.alpha = -0.75f;
          args.activation = variant / 16;
          args.clip_lo = args.activation == kFolioActLeakyRelu ? 0.2f : -0.5f;
          args.clip_hi = 0.25f;
          expect_near_product(level, p, args, run_dots(level, args, columns_of(p).data()));
        }
      }
    }
  }
}

// An addend that stands where the result goes.
TEST(Dots, AddToWhatTheyOverwrite) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const GemmProblem p(37, 3, 300);
    const std::vector<float> columns = columns_of(p);
    FolioGemmF32 args = p.args();
    args.addend = p.c.data();
    const std::vector<float> apart = run_dots(level, args, columns.data());
    std::vector<float> c = p.c;
    args.b = columns.data();
    args.addend = args.c = c.data();
    args.c_row_stride = args.addend_row_stride = p.n;
    level.kernels.dots_f32(&args);
    EXPECT_TRUE(same_bits(c, apart)) << level.name;
  }
}

TEST(Dots, DoNotDependOnTheRowsAndColumnsAroundThem) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{21, 1, 75}, {35, 7, 40}, {16, 16, 133}, {9, 3, 16}}) {
      const GemmProblem p(m, n, k);
      const std::vector<float> columns = columns_of(p);
      const std::vector<float> whole = run_dots(level, p.args(), columns.data());
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          FolioGemmF32 args = p.args();
          args.m = args.n = 1;
          args.a += i * k;
          const std::vector<float> one = run_dots(level, args, columns.data() + j * k);
          ASSERT_EQ(bits_of(one[0]), bits_of(whole[static_cast<size_t>(i * n + j)]))
              << level.name << " at " << i << ", " << j;
        }
      }
    }
  }
}

// Rows of pieces, wherever these are or a regular step apart, and NaN between them.
TEST(Dots, TakeRowsOfPieces) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t run : {1, 3, 16, 20, 39}) {
      for (const int64_t pieces : {1, 2, 5}) {
        const GemmProblem p(19, 5, run * pieces);
        const std::vector<float> columns = columns_of(p);
        const int64_t step = run + 2;
        std::vector<float> apart(static_cast<size_t>(p.m * pieces * step), kNan);
        std::vector<const float*> rows;
        std::vector<const float*> lines;
        for (int64_t piece = 0; piece < pieces; ++piece) {
          lines.push_back(apart.data() + piece * p.m * step);
          for (int64_t i = 0; i < p.m; ++i) {
            float* to = apart.data() + (piece * p.m + i) * step;
            std::copy_n(p.a.data() + i * p.k + piece * run, run, to);
            rows.push_back(to);
          }
        }
        FolioGemmF32 args = p.args();
        args.a_run = run;
        args.a_rows = rows.data();
        const std::vector<float> anywhere = run_dots(level, args, columns.data());
        expect_near_product(level, p, p.args(), anywhere);
        args.a_rows = nullptr;
        args.a_lines = lines.data();
        args.a_row_stride = step;
        EXPECT_TRUE(same_bits(anywhere, run_dots(level, args, columns.data()))) << level.name;
      }
    }
  }
}

}  // namespace
}  // namespace folio
