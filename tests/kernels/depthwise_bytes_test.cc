// Filters over one channel of bytes each: every usable level gives ref's bits.
#include <gtest/gtest.h>

#include "tests/kernels/byte_problem.h"

namespace folio {
namespace {

struct DepthwiseShape {
  int64_t lines, pixels, channels, rows, columns, step, dilation, sets = 1;
};
constexpr DepthwiseShape kDepthwiseShapes[] = {
    {1, 1, 1, 1, 1, 1, 1},     {1, 3, 64, 3, 3, 1, 1},    {2, 3, 32, 3, 3, 1, 1},
    {3, 6, 32, 3, 3, 1, 1},    {2, 1, 32, 3, 3, 1, 1},    {2, 3, 32, 3, 3, 2, 1},
    {2, 4, 96, 3, 3, 1, 1},    {2, 5, 144, 3, 3, 2, 1},   {2, 4, 100, 3, 3, 1, 1},
    {3, 2, 130, 3, 3, 2, 1},   {1, 5, 17, 3, 3, 3, 1},    {2, 3, 40, 3, 3, 1, 2},
    {2, 3, 17, 5, 5, 1, 1},    {1, 5, 130, 1, 4, 2, 3},   {2, 1, 40, 8, 8, 1, 1},
    {2, 5, 96, 6, 3, 1, 1},    {2, 5, 96, 3, 3, 1, 1, 2}, {3, 3, 70, 3, 3, 2, 1, 2},
    {2, 4, 32, 3, 3, 1, 1, 2}, {2, 4, 33, 3, 3, 1, 1, 3}, {2, 3, 40, 3, 3, 1, 2, 2},
    {2, 3, 80, 5, 5, 2, 1, 2}, {2, 9, 96, 3, 3, 1, 1},    {1, 8, 40, 3, 3, 1, 1, 2},
    {2, 3, 40, 7, 7, 1, 1, 3}, {1, 4, 33, 7, 7, 2, 1, 2}, {1, 3, 96, 12, 13, 1, 1},
};

// The image of a shape, pixel by pixel, and where its rows of taps begin.
struct DepthwiseImage {
  DepthwiseImage(const DepthwiseShape& s, bool is_full)
      : width((s.pixels - 1) * s.step + (s.columns - 1) * s.dilation + 1), line(2 * width) {
    for (int64_t i = 0; i < (s.lines - 1) * line + s.rows * width; ++i) {
      columns.push_back(random_ints<uint8_t>(
          static_cast<size_t>(s.channels), static_cast<uint32_t>(i + 40), is_full ? 255 : 0, 256));
    }
    for (const auto& column : columns) plain.push_back(column.data());
  }

  int64_t width, line;
  std::vector<std::vector<uint8_t>> columns;
  std::vector<const uint8_t*> plain;
};

std::vector<float> filter(const FolioKernels& kernels, const DepthwiseShape& s,
                          const DepthwiseImage& image, const ByteProblem& p,
                          const FolioSums& sums) {
  FolioDepthwiseU8 args{};
  args.lines = s.lines;
  args.pixels = s.pixels;
  args.channels = s.channels;
  args.sets = s.sets;
  args.rows = s.rows;
  args.columns = s.columns;
  args.step = s.step;
  args.dilation = s.dilation;
  args.x = image.plain.data();
  args.x_line_stride = image.line;
  args.x_row_stride = image.width;
  args.b = p.packed.data();
  args.sums = sums;
  args.y_row_stride = s.channels + 3;
  Guarded y(static_cast<size_t>(p.m * (s.channels + 3)));
  args.y = y.data();
  kernels.depthwise_u8(&args);
  EXPECT_TRUE(y.intact());
  return y.values();
}

void expect_reference_bits(const DepthwiseShape& s, const DepthwiseImage& image,
                           const ByteProblem& p, const FolioSums& sums) {
  const auto want = filter(ref_kernels(), s, image, p, sums);
  for (const LevelUnderTest& level : levels_under_test()) {
    EXPECT_TRUE(same_bits(filter(level.kernels, s, image, p, sums), want)) << level.name;
  }
}

// Windows of 3 x 3 have a way of their own at steps of one and two, also of two sets of weights.
TEST(DepthwiseU8, EveryLevelGivesTheReferenceBits) {
  for (const DepthwiseShape& s : kDepthwiseShapes) {
    ByteProblem p(s.lines * s.pixels, s.channels, s.sets * s.rows * s.columns);
    const auto column_sum = random_ints<int32_t>(static_cast<size_t>(s.channels), 8, -1000, 1000);
    const DepthwiseImage image(s, false);
    for (const FolioSumsTo to : {kFolioToInt32, kFolioToFloat, kFolioToByte, kFolioToByte}) {
      for (const bool is_signed : {false, true}) {
        FolioSums sums = p.sums(to, is_signed);
        sums.row_sum = nullptr;
        sums.b_zero = nullptr;
        sums.column_sum = column_sum.data();
        sums.a_zero = is_signed ? -20 : 200;
        if (s.lines == 2 && !is_signed) sums.zero = 0;
        SCOPED_TRACE(testing::Message() << p.m << ' ' << s.channels << ' ' << p.k << " step "
                                        << s.step << " to " << to);
        expect_reference_bits(s, image, p, sums);
      }
      if (to == kFolioToByte && s.channels > 2) p.scale[2] = 0.003F;  // then all are small
    }
  }
}

TEST(DepthwiseU8, SumsOfPairsDoNotSaturate) {
  for (const DepthwiseShape& s : kDepthwiseShapes) {
    ByteProblem p(s.lines * s.pixels, s.channels, s.sets * s.rows * s.columns);
    for (int kind = 0; kind < static_cast<int>(Weights::kCount); ++kind) {
      p.b = weights_of(static_cast<Weights>(kind), p.k, p.n);
      p.packed = PackedBytes(p.k, p.n, p.b);
      for (const bool is_full : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << s.channels << ' ' << p.k << ", weights " << kind << ' ' << is_full);
        expect_reference_bits(s, DepthwiseImage(s, is_full), p, p.sums(kFolioToInt32, false));
      }
    }
  }
}

// Columns of three weights of one sign, whose sum is 256 or next to it, and one channel beyond.
TEST(DepthwiseU8, ColumnsOfThreeDoNotSaturate) {
  constexpr int kBound[][3] = {
      {100, 100, 56},   {127, 2, 127},     {1, 127, 127},    {127, 127, 2},    {-128, -128, 0},
      {-128, -1, -127}, {-100, -100, -56}, {0, -128, -128},  {127, -128, 127}, {-128, 127, -128},
      {-1, -127, -128}, {60, 127, 69},     {-128, -127, 127}};
  constexpr int kBeyond[][3] = {{127, 127, 3}, {127, 127, 127}, {-128, -128, -1}, {-86, -86, -86}};
  const DepthwiseShape s = {2, 7, 64, 3, 3, 1, 1};
  ByteProblem p(s.lines * s.pixels, s.channels, 9);
  for (int round = 0; round < 8; ++round) {
    for (int64_t j = 0; j < s.channels; ++j) {
      for (int64_t c = 0; c < 3; ++c) {
        const auto some = static_cast<size_t>(j + c * 5 + round);
        const bool is_beyond = round % 2 == 1 && j == 8 * round;
        const auto& column = is_beyond ? kBeyond[static_cast<size_t>(c + round) % 4]
                                       : kBound[some % std::size(kBound)];
        for (int64_t r = 0; r < 3; ++r) {
          p.b[static_cast<size_t>((3 * r + c) * s.channels + j)] = static_cast<uint8_t>(column[r]);
        }
      }
    }
    p.packed = PackedBytes(p.k, p.n, p.b);
    for (const bool is_full : {false, true}) {
      SCOPED_TRACE(testing::Message() << "round " << round << ' ' << is_full);
      expect_reference_bits(s, DepthwiseImage(s, is_full), p, p.sums(kFolioToInt32, false));
    }
  }
}

}  // namespace
}  // namespace folio
