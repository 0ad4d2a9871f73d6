// Products of bytes in the shapes that tiles cut differently: every level gives ref's bits.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <utility>

#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

std::vector<uint8_t> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<uint8_t> out(count);
  for (uint8_t& value : out) value = static_cast<uint8_t>(engine() >> 7);
  return out;
}

struct Product {
  Product(int64_t m_, int64_t n_, int64_t k_)
      : m(m_), n(n_), k(k_), b(k, n, random_bytes(static_cast<size_t>(k * n), 2)) {
    scale = random_floats(static_cast<size_t>(n), 6, 0.00001F, 0.0001F);
    for (int64_t j = 0; j < n; ++j) {
      offset.push_back(static_cast<int32_t>(j * 7919 % 5000));
      zero.push_back(static_cast<int32_t>(j % 200 - 100));
    }
    for (int64_t i = 0; i < m; ++i) row_sum.push_back(static_cast<int32_t>(i * 104729 % 3000));
  }

  FolioGemmU8 args(FolioSumsTo to, bool with_rows) const {
    FolioGemmU8 args{};
    args.m = m;
    args.n = n;
    args.k = k;
    args.b = b.data();
    args.sums.to = to;
    args.sums.offset = offset.data();
    args.sums.scale = scale.data();
    args.sums.zero = 3;
    args.sums.hi = 255;
    if (with_rows) {
      args.sums.row_sum = row_sum.data();
      args.sums.b_zero = zero.data();
    }
    args.c_row_stride = n;
    return args;
  }

  std::vector<float> run(const FolioKernels& kernels, FolioGemmU8 args) const {
    Guarded c(static_cast<size_t>(m * n));
    args.c = c.data();
    kernels.gemm_u8(&args);
    EXPECT_TRUE(c.intact());
    return c.values();
  }

  int64_t m, n, k;
  PackedBytes b;
  std::vector<float> scale;
  std::vector<int32_t> offset, zero, row_sum;
};

// Rows `stride` bytes apart, the last right before a page that cannot be read.
struct RowsOfA {
  RowsOfA(int64_t m, int64_t k, int64_t stride) : bytes(static_cast<size_t>((m - 1) * stride + k)) {
    const size_t gap = (4 - bytes % 4) % 4;
    std::vector<float> floats((bytes + gap) / 4);
    const auto values = random_bytes(bytes, 1);
    std::memcpy(reinterpret_cast<uint8_t*>(floats.data()) + gap, values.data(), bytes);
    memory = std::make_unique<BeforeUnreadable>(floats);
    data = reinterpret_cast<const uint8_t*>(memory->data()) + gap;
  }
  size_t bytes;
  std::unique_ptr<BeforeUnreadable> memory;
  const uint8_t* data;
};

constexpr FolioSumsTo kTargets[] = {kFolioToInt32, kFolioToFloat, kFolioToByte};

void expect_reference_bits(const Product& p, const FolioGemmU8& args, const char* what) {
  const auto want = p.run(ref_kernels(), args);
  for (const LevelUnderTest& level : levels_under_test()) {
    EXPECT_TRUE(same_bits(p.run(level.kernels, args), want))
        << level.name << ' ' << p.m << 'x' << p.n << 'x' << p.k << ' ' << what << " to "
        << args.sums.to;
  }
}

TEST(Tiles, AnyCountOfRowsColumnsAndDepth) {
  for (const int64_t m : {5, 15, 16, 17, 31, 32, 33, 48, 49, 65}) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{16, 64},
                               {17, 32},
                               {48, 65},
                               {64, 127},
                               {80, 128},
                               {112, 190},
                               {130, 63}}) {
      const Product p(m, n, k);
      const RowsOfA a(m, k, k + m % 3);
      for (const FolioSumsTo to : kTargets) {
        FolioGemmU8 args = p.args(to, (m + n) % 2 == 0);
        args.a = a.data;
        args.a_row_stride = k + m % 3;
        expect_reference_bits(p, args, "rows");
        if (to != kFolioToByte) continue;
        args.sums.zero = 0;
        expect_reference_bits(p, args, "rows, from 0 on");
        args.sums.zero = args.sums.lo = -128;
        args.sums.hi = 127;
        expect_reference_bits(p, args, "rows, from -128 on");
      }
    }
  }
}

// More columns than a group has, depths that are cut; rows that crowd in the cache are copied.
TEST(Tiles, GroupsOfColumnsAndBlocksOfDepth) {
  for (const auto& [m, n, k, stride] : {std::array<int64_t, 4>{40, 600, 96, 96},
                                        {36, 1100, 128, 128},
                                        {35, 272, 1024, 1024},
                                        {50, 144, 1025, 1030},
                                        {20, 336, 2100, 2100},
                                        {67, 160, 2048, 2048},
                                        {33, 96, 3000, 4096},
                                        {16, 48, 5000, 5000}}) {
    const Product p(m, n, k);
    const RowsOfA a(m, k, stride);
    for (const FolioSumsTo to : kTargets) {
      FolioGemmU8 args = p.args(to, k % 2 == 0);
      args.a = a.data;
      args.a_row_stride = stride;
      expect_reference_bits(p, args, "deep rows");
    }
  }
}

// Pieces as a convolution lists them: some a step apart in all 16 rows, some not, of lengths that
// divide the depth of a tile or straddle it.
TEST(Tiles, PiecesOfRowsARegularStepApartOrNot) {
  for (const auto& [m, n, run, taps] : {std::array<int64_t, 4>{17, 48, 64, 9},
                                        {40, 70, 128, 4},
                                        {33, 272, 192, 9},
                                        {21, 64, 96, 3},
                                        {50, 32, 4, 17},
                                        {37, 100, 60, 9},
                                        {64, 40, 100, 12},
                                        {9, 130, 1060, 2}}) {
    const int64_t k = run * taps;
    const Product p(m, n, k);
    const auto image = random_bytes(static_cast<size_t>((m + taps + 40) * run), 5);
    for (const int64_t jump : {0, 7, 20}) {  // rows after which a line of the image ends
      std::vector<const uint8_t*> rows;
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t i = 0; i < m; ++i) {
          const int64_t pixel = i + t + (jump > 0 ? i / jump * 2 : 0);
          rows.push_back(image.data() + pixel % (m + taps + 39) * run);
        }
        // Only among the first eight out of step.
        if (jump == 20) std::swap(rows.end()[-m + 3], rows.end()[-m + 4]);
      }
      for (const FolioSumsTo to : kTargets) {
        FolioGemmU8 args = p.args(to, jump == 7);
        args.a_rows = rows.data();
        args.a_run = run;
        expect_reference_bits(p, args, "pieces");
      }
    }
  }
}

// Each block of rows leaves its sums to the next: nothing of an earlier call is left behind.
TEST(Tiles, CallsAfterEachOtherAreIndependent) {
  const Product large(64, 200, 300);
  const Product small(21, 40, 70);
  const RowsOfA a(64, 300, 300);
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const Product* p : {&large, &small, &large, &small}) {
      FolioGemmU8 args = p->args(kFolioToByte, true);
      args.a = a.data;
      args.a_row_stride = 300;
      EXPECT_TRUE(same_bits(p->run(level.kernels, args), p->run(ref_kernels(), args)))
          << level.name;
    }
  }
}

}  // namespace
}  // namespace folio
