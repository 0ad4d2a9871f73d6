// Winograd's algorithm for bytes at every level: ref's bits, and sums that are exactly those of the
// convolution, however large products are on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/kernels/byte_problem.h"

namespace folio {
namespace {

constexpr int64_t kPlanes = FOLIO_WINOGRAD_PLANES;
constexpr int64_t kOutputs = FOLIO_WINOGRAD_OUTPUTS;

int64_t whole_panels(int64_t n) { return (n + 15) / 16 * 16; }

// B [k, n] as S16P16K2, at a 64-byte boundary.
Guarded panels_of(int64_t k, int64_t n, const std::vector<int16_t>& b) {
  std::vector<int16_t> words(static_cast<size_t>(k * whole_panels(n)));
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = (j / 16 * (k / 2) + p / 2) * 32 + j % 16 * 2 + p % 2;
      words[static_cast<size_t>(at)] = b[static_cast<size_t>(p * n + j)];
    }
  }
  std::vector<float> bits(words.size() / 2);
  std::memcpy(bits.data(), words.data(), words.size() * sizeof(int16_t));
  return {bits, 0};
}

TEST(GemmS16, IsTheProductModulo32BitsForAnyRowsAndColumns) {
  for (const auto [m, n, k] : {std::array<int64_t, 3>{0, 16, 16},
                               {1, 1, 16},
                               {2, 64, 32},
                               {3, 130, 16},
                               {4, 15, 48},
                               {5, 100, 224},
                               {6, 64, 64},
                               {7, 128, 16},
                               {11, 48, 32},
                               {12, 80, 16},
                               {13, 17, 64},
                               {25, 96, 112},
                               {33, 64, 16}}) {
    const auto a = random_ints<int16_t>(static_cast<size_t>(m * k), 1, -32768, 32768);
    const auto b = random_ints<int16_t>(static_cast<size_t>(k * n), 2, -32768, 32768);
    Guarded panels = panels_of(k, n, b);
    const int64_t stride = whole_panels(n) + 16;
    for (const LevelUnderTest& level : levels_under_test()) {
      for (const bool has_next : {false, true}) {
        Guarded c(static_cast<size_t>(m * stride));
        FolioGemmS16 args{};
        args.m = m, args.n = n, args.k = k;
        args.a = a.data();
        args.a_row_stride = k;
        args.b = panels.data();
        args.c = reinterpret_cast<int32_t*>(c.data());
        args.c_row_stride = stride;
        args.next = has_next ? panels.data() : nullptr;
        level.kernels.gemm_s16(&args);
        EXPECT_TRUE(c.intact()) << level.name;
        const std::vector<float> got = c.values();
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            uint32_t want = 0;
            for (int64_t p = 0; p < k; ++p) {
              want += static_cast<uint32_t>(a[static_cast<size_t>(i * k + p)] *
                                            b[static_cast<size_t>(p * n + j)]);
            }
            ASSERT_EQ(bits_of(got[static_cast<size_t>(i * stride + j)]), want)
                << level.name << " " << m << "x" << n << "x" << k << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

// ---- the whole algorithm -----------------------------------------------------------------------

const int64_t kForFilters[6][3] = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4},
                                   {1, 2, 4}, {1, -2, 4},   {0, 0, 6}};

// One tile of pixels [36][c] and filters [n][c][9].
struct TileProblem {
  int64_t c, n;
  std::vector<uint8_t> x;
  std::vector<int8_t> w;

  int64_t weight(int64_t filter, int64_t channel, int64_t tap) const {
    return w[static_cast<size_t>((filter * c + channel) * 9 + tap)];
  }
  // U, [36] of [c, n].
  std::vector<int16_t> filters(int64_t e) const {
    std::vector<int16_t> out(static_cast<size_t>(c * n));
    for (int64_t p = 0; p < c; ++p) {
      for (int64_t j = 0; j < n; ++j) {
        int64_t u = 0;
        for (int64_t t = 0; t < 9; ++t) {
          u += kForFilters[e / 6][t / 3] * kForFilters[e % 6][t % 3] * weight(j, p, t);
        }
        EXPECT_LE(std::abs(u), 18432);
        out[static_cast<size_t>(p * n + j)] = static_cast<int16_t>(u);
      }
    }
    return out;
  }
  // Of pixels less 128.
  int64_t sum(int64_t output, int64_t filter) const {
    int64_t out = 0;
    for (int64_t t = 0; t < 9; ++t) {
      const int64_t pixel = (output / 4 + t / 3) * 6 + output % 4 + t % 3;
      for (int64_t p = 0; p < c; ++p) {
        out += (x[static_cast<size_t>(pixel * c + p)] - 128) * weight(filter, p, t);
      }
    }
    return out;
  }
};

// The sums of a tile, [16][n], by a level's three steps.
std::vector<int32_t> sums_by_winograd(const FolioKernels& kernels, const TileProblem& problem) {
  const int64_t c = problem.c;
  const int64_t n = whole_panels(problem.n);
  std::vector<const uint8_t*> x;
  for (int64_t e = 0; e < kPlanes; ++e) x.push_back(problem.x.data() + e * c);
  std::vector<int16_t> v(static_cast<size_t>(kPlanes * c));
  const FolioWinogradInputU8 input = {1, c, x.data(), v.data(), c, c};
  kernels.winograd_input_u8(&input);
  std::vector<int32_t> m(static_cast<size_t>(kPlanes * n));
  for (int64_t e = 0; e < kPlanes; ++e) {
    Guarded u = panels_of(c, problem.n, problem.filters(e));
    FolioGemmS16 gemm{};
    gemm.m = 1, gemm.n = problem.n, gemm.k = c;
    gemm.a = v.data() + e * c;
    gemm.a_row_stride = c;
    gemm.b = u.data();
    gemm.c = m.data() + e * n;
    gemm.c_row_stride = n;
    kernels.gemm_s16(&gemm);
  }
  std::vector<int64_t> pixels;
  for (int64_t k = 0; k < kOutputs; ++k) pixels.push_back(k);
  std::vector<int32_t> y(static_cast<size_t>(kOutputs * problem.n));
  FolioWinogradOutputU8 output{};
  output.tiles = 1;
  output.channels = problem.n;
  output.m = m.data();
  output.plane_stride = n;
  output.row_stride = n;
  output.pixels = pixels.data();
  output.sums.to = kFolioToInt32;
  output.y = y.data();
  output.y_step = problem.n;
  kernels.winograd_output_u8(&output);
  return y;
}

void expect_exact(const TileProblem& problem, const std::string& what) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const std::vector<int32_t> got = sums_by_winograd(level.kernels, problem);
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
      ASSERT_EQ(got[static_cast<size_t>(i)], problem.sum(i / problem.n, i % problem.n))
          << level.name << ", " << what << ", " << i;
    }
  }
}

TEST(WinogradBytes, SumsAreExactlyThoseOfTheConvolution) {
  for (const auto& [c, n] : {std::pair<int64_t, int64_t>{16, 1}, {32, 16}, {48, 33}, {224, 64}}) {
    TileProblem problem{c, n, random_ints<uint8_t>(static_cast<size_t>(kPlanes * c), 3, 0, 256),
                        random_ints<int8_t>(static_cast<size_t>(n * c * 9), 4, -128, 128)};
    expect_exact(problem, "random");
  }
}

// Products of words of the largest size, whose sums overflow many times; the sums themselves are
// the largest that there can be.
TEST(WinogradBytes, LargestSumsAreExact) {
  constexpr int64_t kMost = FOLIO_S16WINO43_MAGNITUDES / (9 * 128) / 16 * 16;
  static_assert(kMost == 224);
  const auto pixels = static_cast<size_t>(kPlanes * kMost);
  const auto weights = static_cast<size_t>(16 * kMost * 9);
  for (const int pixel : {0, 255}) {
    for (const int weight : {-128, 127}) {
      const TileProblem problem{kMost, 16,
                                std::vector<uint8_t>(pixels, static_cast<uint8_t>(pixel)),
                                std::vector<int8_t>(weights, static_cast<int8_t>(weight))};
      expect_exact(problem, std::to_string(pixel) + " by " + std::to_string(weight));
    }
  }
  // Ends of the ranges by turns, which transforms add up.
  TileProblem turns{kMost, 16, std::vector<uint8_t>(pixels), std::vector<int8_t>(weights)};
  for (size_t i = 0; i < pixels; ++i) {
    turns.x[i] = (i / static_cast<size_t>(kMost)) % 2 == 0 ? 255 : 0;
  }
  for (size_t i = 0; i < weights; ++i) turns.w[i] = i % 2 == 0 ? -128 : 127;
  expect_exact(turns, "turns");
}

// ---- what becomes of sums ----------------------------------------------------------------------

struct Ending {
  FolioSumsTo to;
  int adds = 0;  // 1: the addend is B, 2: it is A
  bool is_signed = false;
};

std::vector<float> ended(const FolioKernels& kernels, const Ending& ending, int64_t channels,
                         const std::vector<int32_t>& m, const std::vector<int64_t>& pixels,
                         ByteProblem& problem) {
  const int64_t rows = whole_panels(channels) + 16;
  const auto tiles = static_cast<int64_t>(pixels.size()) / kOutputs;
  const int64_t step = channels + 7;
  const auto addend = random_ints<uint8_t>(static_cast<size_t>(20 * (channels + 3)), 9, 0, 256);
  FolioWinogradOutputU8 args{};
  args.tiles = tiles;
  args.channels = channels;
  args.m = m.data();
  args.plane_stride = tiles * rows;
  args.row_stride = rows;
  args.pixels = pixels.data();
  args.sums = problem.sums(ending.to, /*with_rows=*/false);
  args.sums.column_sum = problem.b_zero.data();
  args.sums.a_zero = -77;
  FolioByteAdd add{{0.02F, 3, 0}, {0.05F, 100, 0}, {0.06F, 50, 0}, ending.adds == 2 ? 1 : 0};
  if (ending.is_signed) {
    args.sums.lo = -128;
    args.sums.hi = 127;
    args.sums.zero = -3;
    add = {{0.02F, -3, 1}, {0.05F, 7, 1}, {0.06F, -50, 1}, add.addend_is_a};
  }
  if (ending.adds > 0) {
    args.sums.add = &add;
    args.sums.addend = addend.data();
    args.sums.addend_row_stride = channels + 3;
  }
  args.y_step = step;
  Guarded y(static_cast<size_t>(20 * step));
  args.y = y.data();
  kernels.winograd_output_u8(&args);
  EXPECT_TRUE(y.intact());
  return y.values();
}

TEST(WinogradBytes, SumsBecomeWhatTheReferenceMakesOfThem) {
  constexpr Ending kEndings[] = {{kFolioToInt32},         {kFolioToFloat},        {kFolioToByte},
                                 {kFolioToByte, 0, true}, {kFolioToByte, 1},      {kFolioToByte, 2},
                                 {kFolioToByte, 1, true}, {kFolioToByte, 2, true}};
  std::vector<int64_t> pixels(2 * kOutputs, -1);  // some tiles reach beyond the image
  for (int64_t i = 0; i < 20; ++i) pixels[static_cast<size_t>(i * 3 / 2)] = 19 - i;
  for (const int64_t channels : {1, 2, 15, 16, 17, 32, 33, 48, 63, 64, 65, 100, 128, 130}) {
    const auto count = static_cast<size_t>(kPlanes * 2 * (whole_panels(channels) + 16));
    const auto m = random_ints<int32_t>(count, 8, -(1 << 29), 1 << 29);
    ByteProblem problem(1, channels, 2);
    for (const bool has_nan : {false, true}) {
      if (!has_nan && channels > 2) problem.scale[2] = 0.0001F;
      if (has_nan) problem.scale[0] = std::numeric_limits<float>::quiet_NaN();
      for (const Ending& ending : kEndings) {
        const auto want = ended(ref_kernels(), ending, channels, m, pixels, problem);
        for (const LevelUnderTest& level : levels_under_test()) {
          EXPECT_TRUE(same_bits(ended(level.kernels, ending, channels, m, pixels, problem), want))
              << level.name << ", " << channels << " to " << ending.to << " " << ending.adds
              << ending.is_signed << has_nan;
        }
      }
    }
  }
}

}  // namespace
}  // namespace folio
