// Products with weights of small integers in blocks, of every usable level, against double.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <utility>

#include "tests/kernels/block_problem.h"

namespace folio {
namespace {

TEST(BlockDotsF32, IsTheProductOfEveryLevel) {
  const auto check = [](const Blocks& w) {
    const auto bias = random_floats(static_cast<size_t>(w.n), 9);
    for (const LevelUnderTest& level : levels_under_test()) {
      for (int64_t m = 1; m <= 4; ++m) {
        const auto a = random_floats(static_cast<size_t>(m * w.k), 8);
        const auto planes = planes_of(w, a, m);
        Guarded y(static_cast<size_t>(m * w.n), 3);
        FolioBlockDotsF32 args = {};
        args.w = w.weights();
        args.m = m;
        args.a = planes.data();
        args.a_row_stride = w.row_bytes * (8 / w.bits);
        args.bias = m % 2 == 0 ? bias.data() : nullptr;
        args.y = y.data();
        args.y_row_stride = w.n;
        level.kernels.block_dots_f32(&args);
        EXPECT_TRUE(y.intact());
        expect_product(w, {a.begin(), a.end()}, m % 2 == 0 ? bias : std::vector<float>(), y.data(),
                       static_cast<double>(w.k + 4), level.name);
        // A column alone has the same bits.
        const float last = y.data()[w.n - 1];
        Guarded one(static_cast<size_t>(m), 0);
        args.w.n = 1;
        args.w.codes = w.codes.data() + 1 + (w.n - 1) * w.row_bytes;
        args.w.scales = w.scale_bytes.data() + 1 + 4 * (w.n - 1) * w.blocks;
        if (args.w.zeros) args.w.zeros += (w.n - 1) * w.blocks;
        if (args.bias) args.bias += w.n - 1;
        args.y = one.data();
        args.y_row_stride = 1;
        level.kernels.block_dots_f32(&args);
        EXPECT_EQ(bits_of(one.data()[0]), bits_of(last)) << level.name;
      }
    }
  };
  for_all_weights({2, 4, 8}, 128, check);
  for_all_levels(check);
}

TEST(BlockRoundF32, LevelsGiveTheSameBytes) {
  for (const int bits : {4, 8}) {
    for (const int64_t block : {16, 32, 64, 128, 256}) {
      for (const int64_t k : {block - 5, 4 * block + 3, 7 * block}) {
        auto a = random_floats(static_cast<size_t>(k), 4, -3, 3);
        for (int64_t p = 0; p < k && p < 16; ++p) a[static_cast<size_t>(p)] *= 1e-30f;
        const int64_t bytes = folio_block_row_bytes((k + block - 1) / block, block, bits);
        AlignedRows want(bytes);
        ref_kernels().block_round_f32(k, block, bits, a.data(), want.data);
        for (const LevelUnderTest& level : levels_under_test()) {
          AlignedRows got(bytes);
          level.kernels.block_round_f32(k, block, bits, a.data(), got.data);
          EXPECT_EQ(std::memcmp(got.data, want.data, static_cast<size_t>(bytes)), 0)
              << level.name << ' ' << bits << ' ' << block << ' ' << k;
          EXPECT_EQ(got.data[bytes], 0x5A) << level.name;
        }
      }
    }
  }
}

// The definition: quarters of 127 steps, at their places, with the sum of their block.
TEST(BlockRoundF32, RoundsToMultiplesOfTheLargest) {
  for (const LevelUnderTest& level : levels_under_test()) {
    std::vector<float> a(32);
    for (size_t p = 0; p < a.size(); ++p) a[p] = 0.25f * static_cast<float>(p) - 2.0f;
    a[5] = 127.0f;
    AlignedRows row(folio_block_row_bytes(1, 32, 4));
    level.kernels.block_round_f32(32, 32, 4, a.data(), row.data);
    const auto* codes = reinterpret_cast<const int8_t*>(row.data);
    const auto* scales = reinterpret_cast<const float*>(row.data + 128);
    for (size_t p = 0; p < a.size(); ++p) {
      EXPECT_EQ(codes[p % 2 * 64 + p / 2], std::nearbyint(a[p])) << level.name << p;
    }
    const auto* middles = reinterpret_cast<const int32_t*>(scales + 16);
    int sum = 0;
    for (int p = 0; p < 32; ++p) sum += codes[p % 2 * 64 + p / 2];
    for (int b = 0; b < 16; ++b) {
      EXPECT_EQ(middles[b], b == 0 ? -8 * sum : 0) << level.name;
      EXPECT_EQ(scales[b], b == 0 ? 1.0f : 0.0f) << level.name;
    }
  }
}

TEST(BlockDotsS8, IsTheProductOfTheRoundedRow) {
  for_all_weights({4, 8}, 256, [](const Blocks& w) {
    const auto bias = random_floats(static_cast<size_t>(w.n), 9);
    const int64_t bytes = folio_block_row_bytes(w.blocks, w.block, w.bits);
    const int64_t plane = folio_block_plane_bytes(w.row_bytes);
    const int64_t places = 8 / w.bits;
    const int64_t scratch_bytes = folio_block_scratch_bytes(w.blocks, w.block, w.bits, 1, 1);
    AlignedRows scratch(scratch_bytes);
    for (const int64_t m : {1, 2, 3, 4, 7, 17}) {
      const auto a = random_floats(static_cast<size_t>(m * w.k), 8);
      AlignedRows rows(m * bytes);
      std::vector<double> rounded;
      for (int64_t i = 0; i < m; ++i) {
        uint8_t* row = rows.data + i * bytes;
        ref_kernels().block_round_f32(w.k, w.block, w.bits, a.data() + i * w.k, row);
        const auto* scales = reinterpret_cast<const float*>(row + places * plane);
        for (int64_t p = 0; p < w.k; ++p) {
          const auto code = static_cast<int8_t>(row[p % places * plane + p / places]);
          rounded.push_back(static_cast<double>(code) * scales[p / w.block]);
        }
      }
      Guarded want(static_cast<size_t>(m * w.n), 3);
      for (const LevelUnderTest& level : levels_under_test()) {
        const bool is_ref = &level == &levels_under_test().front();
        Guarded y(static_cast<size_t>(m * w.n), 3);
        FolioBlockDotsS8 args = {};
        args.w = w.weights();
        args.m = m;
        args.a = rows.data;
        args.scratch = scratch.data;
        args.bias = m % 2 == 0 ? bias.data() : nullptr;
        args.y = y.data();
        args.y_row_stride = w.n;
        level.kernels.block_dots_s8(&args);
        EXPECT_TRUE(y.intact());
        EXPECT_EQ(scratch.data[scratch_bytes], 0x5A) << level.name;
        expect_product(w, rounded, m % 2 == 0 ? bias : std::vector<float>(), y.data(),
                       static_cast<double>(w.k + 8), level.name);
        if (is_ref) std::memcpy(want.data(), y.data(), 4 * static_cast<size_t>(m * w.n));
        EXPECT_EQ(std::memcmp(y.data(), want.data(), 4 * static_cast<size_t>(m * w.n)), 0)
            << level.name << " and ref differ";
        // Any row alone has the same bits, and so has a column.
        Guarded last(static_cast<size_t>(w.n), 0);
        args.m = 1;
        args.a = rows.data + (m - 1) * bytes;
        args.scratch = nullptr;
        args.y = last.data();
        level.kernels.block_dots_s8(&args);
        EXPECT_TRUE(last.intact());
        EXPECT_EQ(std::memcmp(last.data(), y.data() + (m - 1) * w.n, 4 * static_cast<size_t>(w.n)),
                  0)
            << level.name;
      }
    }
  });
}

// More columns than are unpacked at a time, more rows than a tile has; weights end where memory
// does.
TEST(BlockDotsS8, SplitsAndEndsAreSafe) {
  for (const int bits : {4, 8}) {
    for (const int64_t block : {16, 32, 256}) {
      for (const bool zeros : {false, true}) {
        const Blocks w(bits, block, 2 * block + 16, 64 + 37, zeros);
        std::vector<float> codes(static_cast<size_t>(w.n * w.row_bytes / 4));
        std::memcpy(codes.data(), w.codes.data() + 1, 4 * codes.size());
        const BeforeUnreadable codes_end(codes);
        const BeforeUnreadable scales_end(w.scales);
        const BeforeUnreadable zeros_end(w.zeros);
        constexpr int64_t kRows = 15;
        const int64_t bytes = folio_block_row_bytes(w.blocks, block, bits);
        const auto a = random_floats(static_cast<size_t>(kRows * w.k), 8);
        std::vector<float> rounded(static_cast<size_t>(kRows * bytes / 4));
        for (int64_t i = 0; i < kRows; ++i) {
          ref_kernels().block_round_f32(w.k, block, bits, a.data() + i * w.k,
                                        rounded.data() + i * bytes / 4);
        }
        const BeforeUnreadable rows_end(rounded);  // aligned: rows are whole lines
        AlignedRows scratch(folio_block_scratch_bytes(w.blocks, block, bits, 1, 1));
        FolioBlockDotsS8 args = {};
        args.w = w.weights();
        args.w.codes = codes_end.data();
        args.w.scales = scales_end.data();
        if (zeros) args.w.zeros = zeros_end.data();
        args.a = rows_end.data();
        args.scratch = scratch.data;
        args.y_row_stride = w.n;
        Guarded want(static_cast<size_t>(kRows * w.n));
        args.m = kRows;
        args.y = want.data();
        ref_kernels().block_dots_s8(&args);
        for (const LevelUnderTest& level : levels_under_test()) {
          for (const int64_t m : {int64_t{1}, kRows}) {
            Guarded y(static_cast<size_t>(m * w.n));
            args.m = m;
            args.y = y.data();
            level.kernels.block_dots_s8(&args);
            EXPECT_TRUE(y.intact()) << level.name;
            EXPECT_EQ(std::memcmp(y.data(), want.data(), 4 * static_cast<size_t>(m * w.n)), 0)
                << level.name << ' ' << bits << " bits, block " << block << ", rows " << m;
          }
        }
      }
    }
  }
}

// Any number of blocks, and zeros that end where memory does.
TEST(BlockDotsS8, TakesZerosOfOneRowAsCodes) {
  for (const int bits : {4, 8}) {
    for (const int64_t block : {16, 32, 64, 128}) {
      for (int64_t blocks = 1; blocks <= 37; ++blocks) {
        const Blocks w(bits, block, blocks * block - 3, 5, true);
        const std::vector<uint8_t> codes = w.zero_codes();
        std::vector<float> words(codes.size() / 4);
        std::memcpy(words.data(), codes.data(), codes.size());
        const BeforeUnreadable codes_end(words);
        const auto a = random_floats(static_cast<size_t>(w.k), 8);
        AlignedRows row(folio_block_row_bytes(blocks, block, bits));
        ref_kernels().block_round_f32(w.k, block, bits, a.data(), row.data);
        std::vector<float> want(static_cast<size_t>(w.n));
        FolioBlockDotsS8 args = {};
        args.w = w.weights();
        args.m = 1;
        args.a = row.data;
        args.y = want.data();
        args.y_row_stride = w.n;
        ref_kernels().block_dots_s8(&args);
        args.w.zeros = nullptr;
        args.w.zero_codes = reinterpret_cast<const uint8_t*>(codes_end.data()) + codes.size() -
                            static_cast<size_t>(w.n * folio_block_zero_bytes(blocks, bits));
        for (const LevelUnderTest& level : levels_under_test()) {
          Guarded y(static_cast<size_t>(w.n));
          args.y = y.data();
          level.kernels.block_dots_s8(&args);
          EXPECT_TRUE(y.intact()) << level.name;
          EXPECT_TRUE(same_bits(y.values(), want))
              << level.name << ' ' << bits << " bits, " << blocks << " blocks of " << block;
        }
      }
    }
  }
}

// Chains of many blocks, and rows that fill no last tile.
TEST(BlockDotsS8, LongChainsHaveTheReferenceBits) {
  for (const int bits : {4, 8}) {
    for (const int64_t block : {16, 32, 64, 128, 256}) {
      for (const bool zeros : {false, true}) {
        const int64_t blocks = block == 16 ? 45 : 21;  // several parts of a column
        const Blocks w(bits, block, blocks * block + (zeros ? 16 : 0), 70, zeros);
        const int64_t bytes = folio_block_row_bytes(w.blocks, block, bits);
        for (const int64_t m : {9, 16, 35}) {
          const auto a = random_floats(static_cast<size_t>(m * w.k), 8);
          AlignedRows rows(m * bytes);
          for (int64_t i = 0; i < m; ++i) {
            ref_kernels().block_round_f32(w.k, block, bits, a.data() + i * w.k,
                                          rows.data + i * bytes);
          }
          AlignedRows scratch(folio_block_scratch_bytes(w.blocks, block, bits, 1, 1));
          FolioBlockDotsS8 args = {};
          args.w = w.weights();
          args.m = m;
          args.a = rows.data;
          args.scratch = scratch.data;
          args.y_row_stride = w.n;
          const auto product = [&](const FolioKernels& kernels) {
            Guarded y(static_cast<size_t>(m * w.n));
            args.y = y.data();
            kernels.block_dots_s8(&args);
            EXPECT_TRUE(y.intact());
            return y.values();
          };
          const auto want = product(ref_kernels());
          for (const LevelUnderTest& level : levels_under_test()) {
            EXPECT_TRUE(same_bits(product(level.kernels), want))
                << level.name << ' ' << bits << " bits, block " << block << ", rows " << m;
          }
        }
      }
    }
  }
}

TEST(BlockDotsS8, WhatIsNotFiniteMakesNan) {
  const Blocks w(4, 32, 64, 5, false);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const LevelUnderTest& level : levels_under_test()) {
      std::vector<float> a(64, 1.0f);
      a[40] = bad;
      AlignedRows row(folio_block_row_bytes(w.blocks, w.block, 4));
      level.kernels.block_round_f32(64, 32, 4, a.data(), row.data);
      Guarded y(5);
      FolioBlockDotsS8 args = {};
      args.w = w.weights();
      args.m = 1;
      args.a = row.data;
      args.y = y.data();
      args.y_row_stride = 5;
      level.kernels.block_dots_s8(&args);
      for (int j = 0; j < 5; ++j) EXPECT_TRUE(std::isnan(y.data()[j])) << level.name;
    }
  }
}

// Numbers that float16 holds, some of them subnormal, as floats and as that.
struct HalfScales {
  explicit HalfScales(size_t count) : halves(count), floats(count) {
    uint32_t state = 5;
    for (uint16_t& half : halves) {
      half = static_cast<uint16_t>((state = state * 1664525 + 1013904223) >> 16);
      half &= (half & 3) == 0 ? 0x83FF : 0xBFFF;  // subnormal, or below 2
    }
    ref_kernels().f16_to_f32(static_cast<int64_t>(count), halves.data(), floats.data());
    // At an odd address, and right before memory that cannot be read.
    const size_t bytes = 2 * count;
    anywhere.resize(bytes + 1);
    std::memcpy(anywhere.data() + 1, halves.data(), bytes);
    std::vector<float> padded((bytes + 3) / 4);
    offset = 4 * padded.size() - bytes;
    std::memcpy(reinterpret_cast<char*>(padded.data()) + offset, halves.data(), bytes);
    before_end = std::make_unique<BeforeUnreadable>(padded);
  }

  std::vector<const void*> places() const {
    return {anywhere.data() + 1, reinterpret_cast<const char*>(before_end->data()) + offset};
  }

  std::vector<uint16_t> halves;
  std::vector<float> floats;
  std::vector<uint8_t> anywhere;
  std::unique_ptr<BeforeUnreadable> before_end;
  size_t offset = 0;
};

TEST(BlockDotsS8, HalfScalesGiveTheBitsOfFloats) {
  const auto check = [](const Blocks& w) {
    const HalfScales scales(static_cast<size_t>(w.n * w.blocks));
    const auto a = random_floats(static_cast<size_t>(w.k), 8);
    AlignedRows row(folio_block_row_bytes(w.blocks, w.block, w.bits));
    ref_kernels().block_round_f32(w.k, w.block, w.bits, a.data(), row.data);
    FolioBlockDotsS8 args = {};
    args.w = w.weights();
    args.m = 1;
    args.a = row.data;
    const auto product = [&](const FolioKernels& kernels, const void* from, int32_t half_scales) {
      Guarded y(static_cast<size_t>(w.n));
      args.w.scales = from;
      args.w.half_scales = half_scales;
      args.y = y.data();
      kernels.block_dots_s8(&args);
      EXPECT_TRUE(y.intact());
      return y.values();
    };
    const auto want = product(ref_kernels(), scales.floats.data(), 0);
    for (const LevelUnderTest& level : levels_under_test()) {
      for (const void* place : scales.places()) {
        EXPECT_TRUE(same_bits(product(level.kernels, place, 1), want)) << level.name;
      }
    }
  };
  for_all_weights({4, 8}, 256, check);
  for (const int64_t block : {16, 32, 64}) {  // many blocks, and four or sixteen of them whole
    check(Blocks(4, block, 48 * block, 24, false));
    check(Blocks(8, block, 21 * block, 7, true));
  }
}

TEST(BlockWidenF32P16, LevelsGiveTheSameBits) {
  const auto check = [](const Blocks& w) {
    const FolioBlockWeights weights = w.weights();
    const auto count = static_cast<size_t>((w.n + 15) / 16 * 16 * w.k);
    for (const LevelUnderTest& level : levels_under_test()) {
      Guarded got(count);
      level.kernels.block_widen_f32p16(&weights, 0, w.k, got.data());
      EXPECT_TRUE(got.intact()) << level.name;
      for (int64_t j = 0; j < (w.n + 15) / 16 * 16; ++j) {
        for (int64_t p = 0; p < w.k; ++p) {
          const float want = j < w.n ? static_cast<float>(w.at(j, p)) : 0.0f;
          ASSERT_EQ(got.data()[(j / 16 * w.k + p) * 16 + j % 16], want)
              << level.name << ' ' << j << ' ' << p;
        }
      }
    }
  };
  for_all_weights({2, 4, 8}, 128, check);
  for_all_levels(check);
}

// Blocks and rows of bytes that end in the middle of a piece, and ones that go on in the next.
TEST(BlockWidenF32P16, PiecesOfTheDepthAreThoseOfTheWhole) {
  for (const int bits : {2, 4, 8}) {
    for (const int64_t block : {16, 64, 512}) {
      for (const int64_t k : {300, 512, 777}) {
        const Blocks w(bits, block, k, 19, true);
        const FolioBlockWeights weights = w.weights();
        for (const LevelUnderTest& level : levels_under_test()) {
          std::vector<float> whole(static_cast<size_t>(32 * k));
          level.kernels.block_widen_f32p16(&weights, 0, k, whole.data());
          for (const auto& [first, depth] : {std::pair<int64_t, int64_t>{0, 256},
                                             {256, 1},
                                             {256, k - 256},
                                             {k / 256 * 256, k % 256}}) {
            Guarded piece(static_cast<size_t>(32 * depth));
            level.kernels.block_widen_f32p16(&weights, first, depth, piece.data());
            EXPECT_TRUE(piece.intact()) << level.name;
            for (int64_t i = 0; i < 32 * depth; ++i) {
              const int64_t panel = i / (16 * depth);
              ASSERT_EQ(piece.data()[i],
                        whole[static_cast<size_t>((panel * k + first) * 16 + i % (16 * depth))])
                  << level.name << ' ' << bits << ' ' << block << ' ' << first << ' ' << depth;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace folio
