// block_dots_f32 of many rows, of levels that take them, against double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/block_problem.h"

namespace folio {
namespace {

FolioBlockDotsF32 args_of(const Blocks& w, FolioPrecision precision = kFolioHighest) {
  FolioBlockDotsF32 args = {};
  args.precision = precision;
  args.w = w.weights();
  args.a_row_stride = w.row_bytes * (8 / w.bits);
  args.y_row_stride = w.n;
  return args;
}

// Levels that take so many rows of these weights.
template <typename Check>
void for_levels(const Blocks& w, const Check& check) {
  const FolioBlockWeights weights = w.weights();
  for (const LevelUnderTest& level : levels_under_test()) {
    if (folio_dots_many_rows(&level.kernels, &weights)) check(level);
  }
}

std::vector<float> product(const LevelUnderTest& level, FolioBlockDotsF32 args, const Blocks& w,
                           const std::vector<float>& a, int64_t m) {
  const auto planes = planes_of(w, a, m);
  const int64_t bytes =
      folio_block_float_bytes(w.blocks, w.block, folio_block_parts(args.precision));
  AlignedRows scratch(bytes);
  Guarded y(static_cast<size_t>(m * w.n));
  args.m = m;
  args.a = planes.data();
  args.scratch = scratch.data;
  args.y = y.data();
  level.kernels.block_dots_f32(&args);
  EXPECT_TRUE(y.intact()) << level.name;
  EXPECT_EQ(scratch.data[bytes], 0x5A) << level.name;
  return y.values();
}

template <typename Check>
void for_weights(const Check& check) {
  for (const int bits : {4, 8}) {
    for (const int64_t block : {16, 32, 64, 256}) {
      for (const int64_t blocks : {12, 16, 31}) {
        for (const bool zeros : {false, true}) {
          SCOPED_TRACE(testing::Message() << bits << " bits, block " << block << ", blocks "
                                          << blocks << (zeros ? ", zeros" : ""));
          check(Blocks(bits, block, blocks * block - (zeros ? 5 : 0), 53, zeros));
        }
      }
    }
  }
}

// As many roundings of each sum as the precision allows: with kFolioMedium both operands are
// rounded by 2^-8 of them at most, (1 + 2^-8)^2 - 1.
double steps_of(const Blocks& w, FolioPrecision precision) {
  return static_cast<double>(w.k + 4) + (precision == kFolioMedium ? 0x1p17 + 0x1p8 : 0);
}

TEST(BlockDotsManyRows, AreTheProduct) {
  for_weights([](const Blocks& w) {
    const auto bias = random_floats(static_cast<size_t>(w.n), 9);
    for_levels(w, [&](const LevelUnderTest& level) {
      for (const int64_t m : {5, 16, 35}) {
        const auto precision = m == 16 ? kFolioMedium : kFolioHighest;
        const auto a = random_floats(static_cast<size_t>(m * w.k), 8);
        FolioBlockDotsF32 args = args_of(w, precision);
        args.bias = m % 2 == 0 ? bias.data() : nullptr;
        const auto y = product(level, args, w, a, m);
        expect_product(w, {a.begin(), a.end()}, m % 2 == 0 ? bias : std::vector<float>(), y.data(),
                       steps_of(w, precision), level.name);
      }
    });
  });
}

// More rows than are put in order at a time: equal rows have equal results, wherever they are.
TEST(BlockDotsManyRows, ARowsBitsAreItsOwn) {
  const Blocks w(4, 32, 32 * 96, 37, true);
  const int64_t m = folio_block_float_rows(w.blocks, w.block, 3) + 21;
  ASSERT_LT(m, 2 * FOLIO_BLOCK_ROWS);
  const auto one = random_floats(static_cast<size_t>(w.k), 3);
  std::vector<float> a;
  for (int64_t i = 0; i < m; ++i) a.insert(a.end(), one.begin(), one.end());
  for_levels(w, [&](const LevelUnderTest& level) {
    const auto y = product(level, args_of(w), w, a, m);
    for (int64_t i = 1; i < m; ++i) {
      EXPECT_EQ(std::memcmp(y.data(), y.data() + i * w.n, 4 * static_cast<size_t>(w.n)), 0)
          << level.name << ' ' << i;
    }
    // So have columns on their own.
    FolioBlockDotsF32 args = args_of(w);
    args.w.n = 1;
    args.w.codes = w.codes.data() + 1 + 36 * w.row_bytes;
    args.w.scales = w.scale_bytes.data() + 1 + 4 * 36 * w.blocks;
    args.w.zeros += 36 * w.blocks;
    const auto last = product(level, args, w, a, 5);
    EXPECT_EQ(bits_of(last[0]), bits_of(y[36])) << level.name;
  });
}

// Numbers and weights that bfloat16 holds lose nothing by being rounded to it.
TEST(BlockDotsManyRows, OnePartHoldsBfloat16) {
  for_weights([](const Blocks& given) {
    constexpr int64_t kRows = 40;
    Blocks w = given;
    for (float& scale : w.scales) scale = std::exp2(std::round(std::log2(scale)));
    std::memcpy(w.scale_bytes.data() + 1, w.scales.data(), 4 * w.scales.size());
    auto a = random_floats(static_cast<size_t>(kRows * w.k), 8);
    for (float& x : a) x = from_bits(bits_of(x) & 0xFFFF0000U);
    for_levels(w, [&](const LevelUnderTest& level) {
      const auto y = product(level, args_of(w, kFolioMedium), w, a, kRows);
      expect_product(w, {a.begin(), a.end()}, {}, y.data(), steps_of(w, kFolioHighest), level.name);
    });
  });
}

// A weight that is finite and next to infinity, among blocks of small ones.
TEST(BlockDotsManyRows, OnePartRoundsNoFiniteWeightToInfinity) {
  constexpr int64_t kRows = 32;
  constexpr float kLarge = std::numeric_limits<float>::max() / 8;
  for (const bool zeros : {false, true}) {
    for (const int64_t block : {0, 3, 11}) {
      Blocks w(4, 32, 32 * 12, 37, zeros);
      for (int64_t j = 0; j < w.n; j += 5) {
        w.scales[static_cast<size_t>(j * w.blocks + block)] = zeros ? kLarge / 2 : kLarge;
      }
      std::memcpy(w.scale_bytes.data() + 1, w.scales.data(), 4 * w.scales.size());
      std::vector<float> a(static_cast<size_t>(kRows * w.k));
      for (int64_t i = 0; i < kRows; ++i) {
        a[static_cast<size_t>(i * w.k + block * 32 + i)] = 0x1p-100F;
      }
      for_levels(w, [&](const LevelUnderTest& level) {
        const auto y = product(level, args_of(w, kFolioMedium), w, a, kRows);
        for (int64_t i = 0; i < kRows; ++i) {
          for (int64_t j = 0; j < w.n; ++j) {
            const double want = w.at(j, block * 32 + i) * 0x1p-100;
            EXPECT_NEAR(y[static_cast<size_t>(i * w.n + j)], want, std::abs(want) * 0x1p-7)
                << level.name << ' ' << i << ' ' << j;
          }
        }
      });
    }
  }
}

// Rows with numbers that three bfloat16 numbers cannot hold; no other row changes.
TEST(BlockDotsManyRows, WhatPartsCannotHoldIsComputedOtherwise) {
  constexpr int64_t kRows = 70;
  const Blocks w(4, 32, 32 * 96, 37, false);
  const auto a = random_floats(static_cast<size_t>(kRows * w.k), 8);
  for_levels(w, [&](const LevelUnderTest& level) {
    const auto plain = product(level, args_of(w), w, a, kRows);
    const float huge = 0x1.234568p100F;
    const float tiny = 0x1.234568p-110F;
    for (const float odd : {huge, tiny, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      auto changed = a;
      for (const int64_t row : {3, 31, 69}) changed[static_cast<size_t>(row * w.k + 1000)] = odd;
      const auto y = product(level, args_of(w), w, changed, kRows);
      for (int64_t i = 0; i < kRows; ++i) {
        const float* got = y.data() + i * w.n;
        if (i != 3 && i != 31 && i != 69) {
          EXPECT_EQ(std::memcmp(got, plain.data() + i * w.n, 4 * static_cast<size_t>(w.n)), 0)
              << level.name << ' ' << i << ' ' << odd;
          continue;
        }
        const std::vector<double> row(changed.begin() + i * w.k, changed.begin() + (i + 1) * w.k);
        if (std::isfinite(odd)) {
          expect_product(w, row, {}, got, static_cast<double>(w.k + 4), level.name);
          continue;
        }
        for (int64_t j = 0; j < w.n; ++j) {
          const double want = odd * w.at(j, 1000);
          const bool is_same =
              std::isnan(want) ? std::isnan(got[j]) : got[j] == static_cast<float>(want);
          EXPECT_TRUE(is_same) << level.name << ' ' << j << ' ' << got[j] << ' ' << want;
        }
      }
    }
  });
}

// Weights that end where memory does.
TEST(BlockDotsManyRows, ReadNothingBehindTheWeights) {
  for (const int bits : {4, 8}) {
    for (const int64_t block : {16, 32, 128}) {
      const Blocks w(bits, block, 13 * block + 8, 37, true);
      std::vector<float> codes(static_cast<size_t>(w.n * w.row_bytes / 4));
      std::memcpy(codes.data(), w.codes.data() + 1, 4 * codes.size());
      const BeforeUnreadable codes_end(codes);
      const BeforeUnreadable scales_end(w.scales);
      const BeforeUnreadable zeros_end(w.zeros);
      const auto a = random_floats(static_cast<size_t>(9 * w.k), 8);
      for_levels(w, [&](const LevelUnderTest& level) {
        const auto want = product(level, args_of(w), w, a, 9);
        FolioBlockDotsF32 args = args_of(w);
        args.w.codes = codes_end.data();
        args.w.scales = scales_end.data();
        args.w.zeros = zeros_end.data();
        EXPECT_TRUE(same_bits(product(level, args, w, a, 9), want)) << level.name;
      });
    }
  }
}

}  // namespace
}  // namespace folio
