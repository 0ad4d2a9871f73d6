// Products of bytes, and bytes to and from floats: every usable level gives ref's bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <utility>

#include "tests/kernels/byte_problem.h"

namespace folio {
namespace {

// Bytes right before a page that cannot be read.
class BytesBeforeUnreadable {
 public:
  explicit BytesBeforeUnreadable(const std::vector<uint8_t>& values)
      : floats_(std::vector<float>((values.size() + 3) / 4)) {
    const size_t room = (values.size() + 3) / 4 * 4;
    auto* first = reinterpret_cast<uint8_t*>(const_cast<float*>(floats_.data()));
    data_ = first + room - values.size();
    std::copy(values.begin(), values.end(), first + room - values.size());
  }
  const uint8_t* data() const { return data_; }

 private:
  BeforeUnreadable floats_;
  const uint8_t* data_;
};

struct AlignedBytes {
  explicit AlignedBytes(size_t count) : floats(count / 4 + 16) {}
  uint8_t* data() { return reinterpret_cast<uint8_t*>(floats.data()); }
  Guarded floats;
};

constexpr FolioSumsTo kTargets[] = {kFolioToInt32, kFolioToFloat, kFolioToByte};

// All but C, of rows of A behind each other.
FolioGemmU8 product_of(const ByteProblem& p, FolioSumsTo to, bool with_rows) {
  FolioGemmU8 args{};
  args.m = p.m;
  args.n = p.n;
  args.k = p.k;
  args.a = p.a.data();
  args.a_row_stride = p.k;
  args.b = p.packed.data();
  args.sums = p.sums(to, with_rows);
  return args;
}

// The bytes of C, with a gap of 5 elements between the rows.
std::vector<float> multiply(const FolioKernels& kernels, ByteProblem& p, const uint8_t* a,
                            FolioSumsTo to, bool with_rows, const uint8_t* const* rows = nullptr,
                            int64_t run = 0) {
  FolioGemmU8 args = product_of(p, to, with_rows);
  args.a = a;
  args.a_rows = rows;
  args.a_run = run;
  args.c_row_stride = p.n + 5;
  Guarded c(static_cast<size_t>(p.m * (p.n + 5)));
  args.c = c.data();
  kernels.gemm_u8(&args);
  EXPECT_TRUE(c.intact());
  return c.values();
}

TEST(GemmU8, EveryLevelGivesTheReferenceBits) {
  for (const auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                               {1, 70, 9},
                               {3, 100, 64},
                               {4, 64, 3},
                               {5, 17, 130},
                               {12, 32, 4},
                               {13, 33, 31},
                               {40, 48, 257},
                               {2, 16, 0},
                               {7, 15, 1030},
                               {11, 80, 576},
                               {103, 144, 1180},
                               {6, 130, 580}}) {
    ByteProblem p(m, n, k);
    const BytesBeforeUnreadable a(p.a);
    for (const FolioSumsTo to : kTargets) {
      for (const bool with_rows : {false, true}) {
        const auto want = multiply(ref_kernels(), p, p.a.data(), to, with_rows);
        for (const LevelUnderTest& level : levels_under_test()) {
          EXPECT_TRUE(same_bits(multiply(level.kernels, p, a.data(), to, with_rows), want))
              << level.name << " " << m << "x" << n << "x" << k << " to " << to << with_rows;
        }
      }
    }
  }
}

// Rows of A in pieces that lie anywhere, each right before what cannot be read.
TEST(GemmU8, PiecesOfRowsGiveTheBitsOfWholeRows) {
  for (const auto [m, n, run, taps] : {std::array<int64_t, 4>{1, 16, 4, 1},
                                       {7, 40, 16, 9},
                                       {13, 70, 68, 9},
                                       {100, 64, 64, 3},
                                       {5, 96, 580, 2}}) {
    const int64_t k = run * taps;
    ByteProblem p(m, n, k);
    std::vector<std::unique_ptr<BytesBeforeUnreadable>> pieces;
    std::vector<const uint8_t*> rows;
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t i = 0; i < m; ++i) {
        const auto from = p.a.begin() + i * k + t * run;
        pieces.push_back(
            std::make_unique<BytesBeforeUnreadable>(std::vector<uint8_t>(from, from + run)));
        rows.push_back(pieces.back()->data());
      }
    }
    for (const FolioSumsTo to : kTargets) {
      const auto want = multiply(ref_kernels(), p, p.a.data(), to, true);
      for (const LevelUnderTest& level : levels_under_test()) {
        EXPECT_TRUE(
            same_bits(multiply(level.kernels, p, nullptr, to, true, rows.data(), run), want))
            << level.name << " " << m << "x" << n << ", " << taps << " x " << run << " to " << to;
      }
    }
  }
}

TEST(GemmU8, OfNoDepthPiecesMayHaveNoLength) {
  ByteProblem p(14, 20, 0);
  const uint8_t* none = nullptr;
  const auto want = multiply(ref_kernels(), p, p.a.data(), kFolioToInt32, true);
  for (const LevelUnderTest& level : levels_under_test()) {
    EXPECT_TRUE(same_bits(multiply(level.kernels, p, nullptr, kFolioToInt32, true, &none, 0), want))
        << level.name;
  }
}

// Scales that leave int32 and bounds inside of the type's range.
TEST(GemmU8, RoundsLargeSumsAndKeepsInnerBounds) {
  for (const float factor : {1e-6F, 0.0004F, 0.999F, 1.0F, 1000.0F, 1e30F, -1e30F, INFINITY}) {
    for (const int low : {-128, -100, 0, 3}) {
      const int high = low < 0 ? 120 : 240;
      ByteProblem p(9, 70, 24);
      std::fill(p.scale.begin(), p.scale.end(), factor);
      const auto compute = [&](const FolioKernels& kernels) {
        FolioGemmU8 args = product_of(p, kFolioToByte, false);
        args.sums.lo = low;
        args.sums.hi = high;
        args.sums.zero = low < 0 ? -120 : 255;
        std::vector<uint8_t> c(static_cast<size_t>(p.m * p.n));
        args.c = c.data();
        args.c_row_stride = p.n;
        kernels.gemm_u8(&args);
        return c;
      };
      const auto want = compute(ref_kernels());
      for (const LevelUnderTest& level : levels_under_test()) {
        EXPECT_EQ(compute(level.kernels), want) << level.name << ' ' << factor << ' ' << low;
      }
    }
  }
}

// As y, [m, n] with `gap` bytes behind each row and 64 behind the last.
std::vector<uint8_t> multiply_to_plain_bytes(const FolioKernels& kernels, ByteProblem& p,
                                             bool is_signed, int64_t gap) {
  const auto column_sum = random_ints<int32_t>(static_cast<size_t>(p.n), 8, -1000, 1000);
  FolioGemmU8 args = product_of(p, kFolioToByte, is_signed);
  if (p.m % 2 == 0 && !is_signed) args.sums.zero = 0;
  args.sums.column_sum = column_sum.data();
  args.sums.a_zero = 77;
  std::vector<uint8_t> c(static_cast<size_t>(p.m * (p.n + gap) + 64), 0x5A);
  args.c = c.data();
  args.c_row_stride = p.n + gap;
  kernels.gemm_u8(&args);
  return c;
}

void expect_plain_bytes(int64_t m, int64_t n, int64_t k) {
  ByteProblem p(m, n, k);
  if (n > 2) p.scale[2] = 0.999F;
  for (const bool is_signed : {false, true}) {
    for (const int64_t gap : {0, 3}) {
      const auto want = multiply_to_plain_bytes(ref_kernels(), p, is_signed, gap);
      for (const LevelUnderTest& level : levels_under_test()) {
        EXPECT_EQ(multiply_to_plain_bytes(level.kernels, p, is_signed, gap), want)
            << level.name << ' ' << m << 'x' << n << 'x' << k << ' ' << is_signed << ' ' << gap;
      }
    }
  }
}

// All of int8 or uint8 by small scales: rows of every width leave in whole vectors, alone or
// together, and nothing is written between them.
TEST(GemmU8, RowsOfPlainBytesGiveTheReferenceBits) {
  for (const int64_t n : {1, 7, 16, 24, 30, 32, 40, 48, 64, 70, 80, 96, 129}) {
    for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 11, 12, 14, 30, 100}) {
      expect_plain_bytes(m, n, m == 100 ? 600 : 12);
    }
  }
}

// Of sums that are long enough for a tile to end the one before it, and short enough.
TEST(GemmU8, RowsThatEndWithinTheNextOnesGiveTheReferenceBits) {
  for (const int64_t k : {28, 32, 36, 60, 64, 148, 508, 512, 516}) {
    for (const int64_t m : {3, 4, 5, 6, 7, 8, 9, 10, 11, 49, 100}) expect_plain_bytes(m, 128, k);
    expect_plain_bytes(23, 70, k);
  }
}

struct AddCase {
  const char* name;
  float a, b, y;
};
constexpr AddCase kAddCases[] = {{"usual", 0.03F, 0.05F, 0.07F},
                                 {"ties", 0.5F, 0.25F, 1.0F},
                                 {"far apart", 1e-3F, 7.0F, 0.125F},
                                 {"past all bounds", 3e38F, -3e38F, 1.0F},
                                 {"by zero", 1.0F, 1.0F, 0.0F}};

// Sums of codes are those of the codes, added by the reference.
// Rows of A anywhere, in one piece each, are the same as those of a matrix.
void expect_sums_of_codes(ByteProblem& p, const AddCase& c, bool is_signed, bool addend_is_a) {
  const int32_t sign = is_signed ? 1 : 0;
  const FolioByteAdd add = {{c.a, is_signed ? -128 : 3, sign},
                            {c.b, is_signed ? 127 : 255, sign},
                            {c.y, is_signed ? -10 : 250, sign},
                            addend_is_a ? 1 : 0};
  const int64_t gap = p.n % 3;
  const int64_t stride = p.n + gap;
  const auto z = random_ints<uint8_t>(static_cast<size_t>((p.m - 1) * stride + p.n), 11, 0, 256);
  const BytesBeforeUnreadable addend(z);
  std::vector<const uint8_t*> rows;
  for (int64_t i = 0; i < p.m; ++i) rows.push_back(p.a.data() + i * p.k);
  const auto compute = [&](const FolioKernels& kernels, bool adds, bool by_rows = false) {
    FolioGemmU8 args = product_of(p, kFolioToByte, is_signed);
    if (by_rows) {
      args.a_rows = rows.data();
      args.a_run = p.k;
    }
    args.sums.add = adds ? &add : nullptr;
    args.sums.addend = addend.data();
    args.sums.addend_row_stride = stride;
    std::vector<uint8_t> y(static_cast<size_t>(p.m * stride + 64), 0x5A);
    args.c = y.data();
    args.c_row_stride = stride;
    kernels.gemm_u8(&args);
    return y;
  };
  auto want = compute(ref_kernels(), false);
  for (int64_t i = 0; i < p.m; ++i) {
    uint8_t* row = want.data() + i * stride;
    const uint8_t* of = z.data() + i * stride;
    ref_kernels().add_b8(p.n, addend_is_a ? of : row, &add.a, addend_is_a ? row : of, &add.b,
                         &add.to, row);
  }
  for (const LevelUnderTest& level : levels_under_test()) {
    EXPECT_EQ(compute(level.kernels, true), want)
        << level.name << ' ' << p.m << 'x' << p.n << 'x' << p.k << ' ' << c.name << ' ' << is_signed
        << addend_is_a;
    if (p.k % 4 != 0) continue;  // pieces are whole groups
    EXPECT_EQ(compute(level.kernels, true, true), want)
        << level.name << " by rows " << p.m << 'x' << p.n << 'x' << p.k << ' ' << c.name;
  }
}

TEST(GemmU8, SumsOfCodesGiveTheReferenceBits) {
  for (const auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                               {5, 17, 130},
                               {13, 33, 31},
                               {12, 32, 4},
                               {14, 48, 64},
                               {7, 15, 1030},
                               {37, 80, 576},
                               {30, 64, 40},
                               {103, 144, 60},
                               {4, 128, 36},
                               {9, 64, 512},
                               {103, 144, 1180}}) {
    ByteProblem p(m, n, k);  // with one scale that is NaN
    for (const bool is_plain : {false, true}) {
      if (is_plain && n > 2) p.scale[2] = 0.003F;
      for (const AddCase& c : kAddCases) {
        for (const int form : {0, 1, 2, 3}) expect_sums_of_codes(p, c, form % 2 != 0, form > 1);
      }
    }
  }
}

// Codes far beyond their range, and at the middle between two.
TEST(GemmU8, SumsOfCodesRoundAndBoundTheCodesFirst) {
  for (const float factor : {0.5F, 0.999F, 1.0F, 1000.0F, 1e30F, -1e30F, INFINITY, -0.5F}) {
    ByteProblem p(9, 70, 24);
    std::fill(p.scale.begin(), p.scale.end(), factor);
    for (const int form : {0, 1, 2, 3}) {
      expect_sums_of_codes(p, kAddCases[0], form % 2 != 0, form > 1);
    }
    std::fill(p.b.begin(), p.b.end(), uint8_t{0});
    p.packed = PackedBytes(p.k, p.n, p.b);  // offsets alone: the smallest sums
    for (int32_t& offset : p.offset) offset = offset % 600;
    for (const int form : {0, 1, 2, 3}) {
      expect_sums_of_codes(p, kAddCases[0], form % 2 != 0, form > 1);
    }
  }
}

TEST(GemmU8, SumsOfPairsDoNotSaturate) {
  for (const auto [m, n, k] : {std::array<int64_t, 3>{1, 16, 4},
                               {2, 70, 64},
                               {3, 16, 4},
                               {5, 17, 130},
                               {8, 33, 31},
                               {13, 48, 512},
                               {40, 32, 516},
                               {97, 20, 1030},
                               {200, 16, 2053}}) {
    ByteProblem p(m, n, k);
    for (int kind = 0; kind < static_cast<int>(Weights::kCount); ++kind) {
      p.b = weights_of(static_cast<Weights>(kind), k, n);
      p.packed = PackedBytes(k, n, p.b);
      for (const bool is_full : {false, true}) {  // all of A 255
        if (is_full) std::fill(p.a.begin(), p.a.end(), uint8_t{255});
        const auto want = multiply(ref_kernels(), p, p.a.data(), kFolioToInt32, true);
        for (const LevelUnderTest& level : levels_under_test()) {
          EXPECT_TRUE(same_bits(multiply(level.kernels, p, p.a.data(), kFolioToInt32, true), want))
              << level.name << ' ' << m << 'x' << n << 'x' << k << ", weights " << kind << ' '
              << is_full;
        }
      }
    }
  }
}

TEST(GemmU8, PairsInPiecesDoNotSaturate) {
  constexpr int64_t kRun = 20;
  constexpr int64_t kTaps = 60;
  ByteProblem p(9, 24, kRun * kTaps);
  for (size_t i = 0; i < p.a.size(); i += 3) p.a[i] = 255;
  std::vector<uint8_t> pieces(p.a.size());  // the last one first
  std::vector<const uint8_t*> rows;
  for (int64_t t = 0; t < kTaps; ++t) {
    for (int64_t i = 0; i < p.m; ++i) {
      uint8_t* piece = pieces.data() + ((kTaps - 1 - t) * p.m + i) * kRun;
      std::copy_n(p.a.data() + i * p.k + t * kRun, kRun, piece);
      rows.push_back(piece);
    }
  }
  for (int kind = 0; kind < static_cast<int>(Weights::kCount); ++kind) {
    p.b = weights_of(static_cast<Weights>(kind), p.k, p.n);
    p.packed = PackedBytes(p.k, p.n, p.b);
    const auto want = multiply(ref_kernels(), p, p.a.data(), kFolioToInt32, true);
    for (const LevelUnderTest& level : levels_under_test()) {
      EXPECT_TRUE(same_bits(
          multiply(level.kernels, p, nullptr, kFolioToInt32, true, rows.data(), kRun), want))
          << level.name << " weights " << kind;
    }
  }
}

TEST(GemmU8, ExtremeBytesDoNotSaturate) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const int64_t m : {1, 5, 100}) {
      ByteProblem p(m, 20, 300);
      std::fill(p.a.begin(), p.a.end(), uint8_t{255});
      for (size_t i = 0; i < p.b.size(); ++i) p.b[i] = i % 20 < 10 ? 0x80 : 0x7f;
      p.packed = PackedBytes(p.k, p.n, p.b);
      std::fill(p.offset.begin(), p.offset.end(), 0);
      const auto c = multiply(level.kernels, p, p.a.data(), kFolioToInt32, false);
      int32_t sum = 0;
      std::memcpy(&sum, &c[0], 4);
      EXPECT_EQ(sum, 300 * 255 * -128) << level.name;
      std::memcpy(&sum, &c[19], 4);
      EXPECT_EQ(sum, 300 * 255 * 127) << level.name;
    }
  }
}

TEST(PackS8P16K4, FollowsTheLayoutWithItsColumnSums) {
  // Two outer rows of three inner ones, columns 6 apart; unsigned.
  const std::vector<uint8_t> w = random_ints<uint8_t>(17 * 6, 9, 0, 256);
  FolioPackS8 pack{};
  pack.k = 6;
  pack.n = 17;
  pack.bytes = w.data();
  pack.inner = 3;
  pack.row_stride = 2;
  pack.outer_stride = 1;
  pack.col_stride = 6;
  pack.flip = 0x80;
  AlignedBytes dst(PackedBytes::size(6, 17));
  ref_kernels().pack_s8p16k4(&pack, dst.data());
  for (int j = 0; j < 32; ++j) {
    int32_t sum = 0;
    for (int p = 0; p < 8; ++p) {
      const int at = ((j / 16) * 2 + p / 4) * 64 + j % 16 * 4 + p % 4;
      const int byte =
          j < 17 && p < 6 ? w[static_cast<size_t>(j * 6 + p / 3 + p % 3 * 2)] ^ 0x80 : 0;
      EXPECT_EQ(dst.data()[at], byte) << j << " " << p;
      sum += static_cast<int8_t>(byte);
    }
    int32_t stored = 0;
    std::memcpy(&stored, dst.data() + 2 * 2 * 64 + 4 * j, 4);
    EXPECT_EQ(stored, sum) << j;
  }
}

// Columns as a model has them: one after the other, with taps between, or as rows of a matrix.
TEST(PackS8P16K4, EveryLevelGivesTheReferenceBits) {
  for (const int64_t n : {1, 7, 15, 16, 17, 48, 70}) {
    for (const auto& [k, taps] : {std::pair<int64_t, int64_t>{1, 1},
                                  {3, 1},
                                  {4, 1},
                                  {130, 1},
                                  {1024, 1},
                                  {2053, 1},
                                  {9 * 13, 9},
                                  {9 * 256, 9},
                                  {25 * 3, 25}}) {
      const std::vector<uint8_t> w = random_ints<uint8_t>(static_cast<size_t>(n * k), 9, 0, 256);
      const BytesBeforeUnreadable bytes(w);
      for (const bool is_matrix : {false, true}) {
        FolioPackS8 pack{};
        pack.k = k;
        pack.n = n;
        pack.bytes = bytes.data();
        pack.inner = is_matrix ? k : k / taps;
        pack.outer_stride = 1;
        pack.row_stride = is_matrix ? n : taps;
        pack.col_stride = is_matrix ? 1 : k;
        for (const uint8_t flip : {0, 0x80}) {
          pack.flip = flip;
          AlignedBytes want(PackedBytes::size(k, n));
          ref_kernels().pack_s8p16k4(&pack, want.data());
          for (const LevelUnderTest& level : levels_under_test()) {
            AlignedBytes got(PackedBytes::size(k, n));
            std::memset(got.data(), 0x55, PackedBytes::size(k, n));
            level.kernels.pack_s8p16k4(&pack, got.data());
            EXPECT_EQ(std::memcmp(got.data(), want.data(), PackedBytes::size(k, n)), 0)
                << level.name << ' ' << k << 'x' << n << ' ' << is_matrix << ' ' << int{flip};
          }
        }
      }
    }
  }
}

TEST(UnpackS8P16K4, GivesTheBytesBack) {
  for (const auto [k, n, taps] :
       {std::array<int64_t, 3>{1, 1, 1}, {6, 17, 2}, {9, 16, 9}, {64, 33, 1}, {35, 5, 5}}) {
    for (const uint8_t flip : {0, 0x80}) {
      const auto w = random_ints<uint8_t>(static_cast<size_t>(k * n), 3, 0, 256);
      FolioPackS8 pack{};
      pack.k = k;
      pack.n = n;
      pack.bytes = w.data();
      pack.inner = k / taps;
      pack.row_stride = taps;
      pack.outer_stride = 1;
      pack.col_stride = k;
      pack.flip = flip;
      AlignedBytes packed(PackedBytes::size(k, n));
      ref_kernels().pack_s8p16k4(&pack, packed.data());
      pack.bytes = nullptr;
      std::vector<uint8_t> back(w.size() + 1, 0x5A);
      for (const LevelUnderTest& level : levels_under_test()) {
        level.kernels.unpack_s8p16k4(&pack, packed.data(), back.data());
        EXPECT_TRUE(std::equal(w.begin(), w.end(), back.begin())) << level.name;
        EXPECT_EQ(back.back(), 0x5A) << "nothing is written behind the end";
      }
    }
  }
}

TEST(Quantize, EveryLevelRoundsAsTheReference) {
  std::vector<float> x = random_floats(2000, 3, -20, 20);
  for (int i = 0; i < 700; ++i) x.push_back(static_cast<float>(i - 350) * 0.05F);  // ties
  for (const float special : {std::numeric_limits<float>::infinity(), 3e38F, -3e38F, -0.0F, 1e-40F,
                              std::numeric_limits<float>::quiet_NaN()}) {
    x.push_back(special);
  }
  for (const float scale :
       {0.1F, 0.05F, 1.0F, 3.7e-3F, 0.0F, 1e-40F, 1e38F, std::numeric_limits<float>::infinity()}) {
    for (const int is_signed : {0, 1}) {
      const FolioByteScale to{scale, is_signed ? -7 : 120, is_signed};
      std::vector<uint8_t> want(x.size());
      ref_kernels().quantize_f32(static_cast<int64_t>(x.size()), x.data(), &to, want.data());
      for (const LevelUnderTest& level : levels_under_test()) {
        std::vector<uint8_t> got(x.size() + 1, 99);
        level.kernels.quantize_f32(static_cast<int64_t>(x.size()), x.data(), &to, got.data());
        EXPECT_EQ(got.back(), 99);
        got.pop_back();
        EXPECT_EQ(got, want) << level.name << " scale " << scale;
      }
    }
  }
}

// Floats next to the middle between two codes, where only the quotient itself says which it is.
TEST(Quantize, NeighboursOfTheMiddleRoundAsQuotients) {
  std::mt19937 engine(3);
  std::vector<float> x;
  for (int round = 0; round < 200; ++round) {
    const float mantissa = round % 10 == 0 ? std::nextafter(2.0F, 0.0F)
                                           : std::uniform_real_distribution<float>(1, 2)(engine);
    const float scale = std::ldexp(mantissa, static_cast<int>(engine() % 40) - 30);
    x.clear();
    for (int code = -130; code < 130; ++code) {
      float near = static_cast<float>((code + 0.5) * static_cast<double>(scale));
      near = std::nextafter(std::nextafter(near, -1e30F), -1e30F);
      for (int i = 0; i < 5; ++i, near = std::nextafter(near, 1e30F)) x.push_back(near);
    }
    const FolioByteScale to{scale, 0, 1};
    std::vector<uint8_t> want(x.size());
    ref_kernels().quantize_f32(static_cast<int64_t>(x.size()), x.data(), &to, want.data());
    for (const LevelUnderTest& level : levels_under_test()) {
      std::vector<uint8_t> got(x.size());
      level.kernels.quantize_f32(static_cast<int64_t>(x.size()), x.data(), &to, got.data());
      ASSERT_EQ(got, want) << level.name << " scale " << scale;
    }
  }
}

// All pairs of codes; scales with many ties, with none, far apart and past all bounds.
TEST(PairsOfBytes, EveryLevelRoundsAsTheReference) {
  std::vector<uint8_t> a(65536 + 21);
  std::vector<uint8_t> b(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<uint8_t>(i);
    b[i] = static_cast<uint8_t>(i >> 8);
  }
  const auto n = static_cast<int64_t>(a.size());
  struct Case {
    float a, b, y;
  };
  for (const Case& c : {Case{0.5F, 0.25F, 1.0F},
                        {0.03F, 0.05F, 0.07F},
                        {0.1F, 0.3F, 0.2F},
                        {1e-3F, 7.0F, 0.125F},
                        {1e-6F, 1e-6F, 1e-9F},
                        {1e-20F, 1.0F, 1.0F},
                        {3e38F, -3e38F, 1.0F},
                        {1.0F, 1.0F, 0.0F},
                        {0.02F, 0.02F, -0.04F}}) {
    for (const int is_signed : {0, 1}) {
      const FolioByteScale from_a{c.a, is_signed != 0 ? -128 : 3, is_signed};
      const FolioByteScale from_b{c.b, is_signed != 0 ? 127 : 255, is_signed};
      const FolioByteScale to{c.y, is_signed != 0 ? -10 : 250, is_signed};
      std::vector<uint8_t> want(a.size());
      ref_kernels().add_b8(n, a.data(), &from_a, b.data(), &from_b, &to, want.data());
      for (const LevelUnderTest& level : levels_under_test()) {
        std::vector<uint8_t> got(a.size());
        level.kernels.add_b8(n, a.data(), &from_a, b.data(), &from_b, &to, got.data());
        EXPECT_EQ(got, want) << level.name << ' ' << c.a << ' ' << c.b << ' ' << c.y;
      }
      ref_kernels().mul_b8(n, a.data(), &from_a, b.data(), &from_b, &to, want.data());
      for (const LevelUnderTest& level : levels_under_test()) {
        std::vector<uint8_t> got(a.size());
        level.kernels.mul_b8(n, a.data(), &from_a, b.data(), &from_b, &to, got.data());
        EXPECT_EQ(got, want) << level.name << ", products " << c.a << ' ' << c.b << ' ' << c.y;
      }
    }
  }
}

TEST(Bytes, SumsDequantizesAndTransposesAsTheReference) {
  const auto a = random_ints<uint8_t>(40 * 137, 1, 0, 256);
  const auto b = random_ints<uint8_t>(a.size(), 2, 0, 256);
  const auto n = static_cast<int64_t>(a.size());
  const FolioByteScale from_a{0.031F, 12, 1};
  const FolioByteScale from_b{0.017F, -3, 1};
  const FolioByteScale to{0.04F, -20, 1};
  std::vector<uint8_t> sum(a.size());
  std::vector<float> wide(a.size());
  ref_kernels().add_b8(n, a.data(), &from_a, b.data(), &from_b, &to, sum.data());
  ref_kernels().dequantize_b8(n, a.data(), &from_a, wide.data());
  const int32_t total = ref_kernels().sum_u8(n, a.data());
  for (const LevelUnderTest& level : levels_under_test()) {
    std::vector<uint8_t> got(a.size());
    level.kernels.add_b8(n, a.data(), &from_a, b.data(), &from_b, &to, got.data());
    EXPECT_EQ(got, sum) << level.name;
    std::vector<float> floats(a.size());
    level.kernels.dequantize_b8(n, a.data(), &from_a, floats.data());
    EXPECT_TRUE(same_bits(floats, wide)) << level.name;
    EXPECT_EQ(level.kernels.sum_u8(n, a.data()), total) << level.name;
    std::vector<uint8_t> table(256);  // no two codes have the same
    for (size_t code = 0; code < 256; ++code) table[code] = static_cast<uint8_t>(code * 37 + 5);
    std::vector<uint8_t> mapped = a;
    for (const int64_t count : {n, n - 1, int64_t{31}, int64_t{0}}) {
      level.kernels.map_b8(table.data(), count, a.data(), mapped.data());
      for (size_t i = 0; i < a.size(); ++i) {
        const bool is_mapped = static_cast<int64_t>(i) < count;
        ASSERT_EQ(mapped[i], is_mapped ? table[a[i]] : a[i]) << level.name << ' ' << count;
      }
      mapped = a;
      level.kernels.map_b8(table.data(), count, mapped.data(), mapped.data());
      for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<size_t>(i);
        ASSERT_EQ(mapped[at], table[a[at]]) << level.name << ", in place";
      }
      mapped = a;
    }
    const uint8_t* const lines[] = {a.data(), b.data(), a.data() + 1};
    for (const int is_signed : {0, 1}) {
      std::vector<uint8_t> most(101);
      level.kernels.max_b8(100, 3, lines, is_signed, most.data());
      for (size_t i = 0; i < 100; ++i) {
        const uint8_t flip = is_signed != 0 ? 0x80 : 0;
        const int best = std::max({a[i] ^ flip, b[i] ^ flip, a[i + 1] ^ flip});
        EXPECT_EQ(most[i] ^ flip, best) << level.name << " " << i;
      }
      EXPECT_EQ(most[100], 0);
    }
  }
}

}  // namespace
}  // namespace folio
