// gemm_f32 in parts where A is short pieces of lines (FolioGemmF32.a_lines), which a level may make
// into parts line by line: how near it is to the truth, what its bits depend on, what it reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/gemm_problem.h"

namespace folio {
namespace {

constexpr int32_t kPrecisions[] = {kFolioHighest, kFolioHigh, kFolioMedium};

// Lines of pixels under `m` windows, each a piece of every line and `stride` behind the one before.
struct LineProblem {
  LineProblem(int64_t m, int64_t n, int64_t run_, int64_t pieces_, int64_t stride_)
      : product(m, n, run_ * pieces_),
        run(run_),
        pieces(pieces_),
        stride(stride_),
        floats((m - 1) * stride_ + run_),
        numbers(random_floats(static_cast<size_t>(floats * pieces_), 17)) {
    make_rows();
  }

  // What A is then.
  void make_rows() {
    for (int64_t i = 0; i < product.m; ++i) {
      for (int64_t piece = 0; piece < pieces; ++piece) {
        for (int64_t t = 0; t < run; ++t) {
          product.a_at(i, piece * run + t) = at(piece, i * stride + t);
        }
      }
    }
  }

  float& at(int64_t piece, int64_t pixel) {
    return numbers[static_cast<size_t>(piece * floats + pixel)];
  }

  // Of C from calls for so many rows and columns each. `from`: where the numbers stand.
  std::vector<float> run_blocks(const LevelUnderTest& level, int32_t precision, int64_t rows,
                                int64_t columns, void* scratch = nullptr,
                                const float* from = nullptr) const {
    FolioGemmF32 args = product.args(precision);
    args.a = nullptr;
    args.a_run = run;
    args.a_row_stride = stride;
    args.col_bias = product.col_bias.data();
    args.activation = kFolioActRelu;
    args.scratch = scratch;
    std::vector<float> c(product.c.size());
    std::vector<const float*> lines(static_cast<size_t>(pieces));
    for (int64_t row = 0; row < product.m; row += rows) {
      for (int64_t column = 0; column < product.n; column += columns) {
        for (size_t piece = 0; piece < lines.size(); ++piece) {
          lines[piece] =
              (from ? from : numbers.data()) + static_cast<int64_t>(piece) * floats + row * stride;
        }
        FolioGemmF32 part = args;
        part.m = std::min(rows, product.m - row);
        part.n = std::min(columns, product.n - column);
        part.a_lines = lines.data();
        part.b = product.packed.data() + column * product.k;
        part.c = c.data() + row * product.n + column;
        part.c_row_stride = product.n;
        part.col_bias += column;
        level.kernels.gemm_f32(&part);
      }
    }
    return c;
  }

  std::vector<float> run_whole(const LevelUnderTest& level, int32_t precision) const {
    return run_blocks(level, precision, product.m, product.n);
  }

  GemmProblem product;
  int64_t run, pieces, stride, floats;
  std::vector<float> numbers;
};

// First layers' windows, one row, more rows than stand in memory at once, odd counts.
std::vector<LineProblem> problems() {
  std::vector<LineProblem> all;
  all.emplace_back(112, 64, 7, 21, 2);
  all.emplace_back(33, 17, 4, 1, 1);
  all.emplace_back(1, 16, 8, 32, 8);
  all.emplace_back(530, 33, 5, 3, 1);
  all.emplace_back(31, 100, 6, 7, 3);
  all.emplace_back(70, 1050, 4, 64, 4);
  return all;
}

TEST(LineParts, StayWithinTheBoundOfTheirPrecision) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const LineProblem& p : problems()) {
      for (const int32_t precision : kPrecisions) {
        const std::vector<float> got = p.run_whole(level, precision);
        const double part = static_cast<double>(p.product.k + 3) * 0x1p-24 + loss_of(precision);
        for (int64_t i = 0; i < p.product.m; ++i) {
          for (int64_t j = 0; j < p.product.n; ++j) {
            const auto at = static_cast<size_t>(i * p.product.n + j);
            double sum = p.product.col_bias[static_cast<size_t>(j)];
            double size = std::fabs(sum);
            for (int64_t q = 0; q < p.product.k; ++q) {
              const double x = double{p.product.a[static_cast<size_t>(i * p.product.k + q)]} *
                               p.product.b[static_cast<size_t>(q * p.product.n + j)];
              sum += x;
              size += std::fabs(x);
            }
            ASSERT_NEAR(got[at], std::max(sum, 0.0), part * size)
                << level.name << " precision " << precision << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

// Numbers that parts cannot hold, near the ends of windows and in two panels of B.
void spoil(LineProblem* p, int32_t precision) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const bool has_one_part = precision == kFolioMedium;  // as wide as a float
  p->at(0, 14) = kNan;
  p->at(p->pieces - 1, p->floats - 1) = kInf;
  p->at(1, 40) = has_one_part ? -kInf : 0x1p90F;
  p->at(1, 57) = has_one_part ? kNan : 0x1.8p-110F;
  p->product.b_at(3, 20) = has_one_part ? kInf : 0x1p90F;
  p->product.b_at(p->product.k - 1, p->product.n - 1) = kNan;
  p->product.pack();
  p->make_rows();
}

TEST(LineParts, BitsDependOnNoOtherRowsOrColumns) {
  std::vector<uint8_t> memory(FOLIO_GEMM_SCRATCH + 64);
  void* const scratch = memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & 63);
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int32_t precision : kPrecisions) {
      LineProblem p(90, 64, 7, 21, 2);
      for (const bool is_spoilt : {false, true}) {
        if (is_spoilt) spoil(&p, precision);
        const std::vector<float> whole = p.run_whole(level, precision);
        EXPECT_TRUE(same_bits(whole, p.run_blocks(level, precision, 90, 64, scratch)));
        EXPECT_TRUE(same_bits(whole, p.run_blocks(level, precision, 7, 64)));
        EXPECT_TRUE(same_bits(whole, p.run_blocks(level, precision, 33, 16, scratch)));
        EXPECT_TRUE(same_bits(whole, p.run_blocks(level, precision, 1, 48))) << level.name;
      }
    }
  }
}

// What such numbers touch is what a chain makes of them; what they do not, is as without them,
// beside their windows too.
TEST(LineParts, LeaveToAChainWhatTheyCannotHold) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const FolioKernels& kernels = level.kernels;
    if (kernels.multiplies_parts && !folio_multiplies_parts(&kernels, kFolioHighest)) continue;
    for (const int32_t precision : kPrecisions) {
      LineProblem p(90, 64, 7, 21, 2);
      const std::vector<float> plain = p.run_whole(level, precision);
      const LineProblem clean = p;
      spoil(&p, precision);
      const std::vector<float> chain = p.run_whole(level, kFolioChain);
      const std::vector<float> got = p.run_whole(level, precision);
      for (int64_t i = 0; i < p.product.m; ++i) {
        const bool is_row = !std::equal(p.product.a.begin() + i * p.product.k,
                                        p.product.a.begin() + (i + 1) * p.product.k,
                                        clean.product.a.begin() + i * p.product.k);
        for (int64_t j = 0; j < p.product.n; ++j) {
          const auto at = static_cast<size_t>(i * p.product.n + j);
          const float want = is_row || j / 16 == 1 || j / 16 == 3 ? chain[at] : plain[at];
          ASSERT_TRUE(got[at] == want || (std::isnan(got[at]) && std::isnan(want)))
              << level.name << " precision " << precision << " at " << i << ", " << j << ": "
              << got[at] << " for " << want;
        }
      }
    }
  }
}

TEST(LineParts, ReadNothingBehindTheirInputs) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const LineProblem& p : problems()) {
      const BeforeUnreadable numbers(p.numbers);
      for (const int32_t precision : kPrecisions) {
        EXPECT_TRUE(same_bits(
            p.run_whole(level, precision),
            p.run_blocks(level, precision, p.product.m, p.product.n, nullptr, numbers.data())))
            << level.name;
      }
    }
  }
}

}  // namespace
}  // namespace folio
