// What a program's table lets products lose reaches those that are large, whole, whatever parts of
// them are computed at a time.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <set>

#include "core/kernels/select.h"
#include "core/ops/op_gemm.h"
#include "tests/support/no_host.h"

namespace folio {
namespace {

std::mutex mutex;
std::set<int32_t> seen;

void note_precision(const FolioGemmF32* args) {
  const std::lock_guard lock(mutex);
  seen.insert(args->precision);
}

// The precisions in which the parts of a product are computed.
std::set<int32_t> precisions(int64_t m, int64_t n, int64_t k, FolioPrecision precision,
                             bool is_packed, Operands operands = Operands::kFloats) {
  FolioKernels kernels = kernels_for(0, precision);
  kernels.gemm_f32 = note_precision;
  NoHost host;
  InlineParallel parallel;
  OpRun run(host, kernels, parallel);
  run.begin({}, {}, {});
  const std::vector<float> a(static_cast<size_t>(m * k));
  const std::vector<float> b(static_cast<size_t>(panel_columns(n) * k));
  std::vector<float> c(static_cast<size_t>(m * n));
  FolioGemmF32 args{};
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a.data();
  args.a_row_stride = k;
  args.a_col_stride = 1;
  args.c = c.data();
  args.c_row_stride = n;
  args.alpha = 1;
  GemmB plain;
  plain.data = b.data();
  plain.row_stride = n;
  plain.col_stride = 1;
  if (is_packed) plain.packed = b.data();
  plain.operands = operands;
  seen.clear();
  EXPECT_TRUE(gemm_f32(run, args, plain).is_ok());
  return seen;
}

TEST(ProductPrecision, OfLargeProductsIsTheTables) {
  for (const bool is_packed : {false, true}) {
    for (const FolioPrecision precision : {kFolioHighest, kFolioHigh, kFolioMedium}) {
      // The last part of rows, columns and depth is small, and counts as the whole.
      const std::set<int32_t> all = {precision};
      EXPECT_EQ(precisions(1000, 530, 300, precision, is_packed), all);
      EXPECT_EQ(precisions(64, 128, 500, precision, is_packed), all);
    }
  }
}

TEST(ProductPrecision, OfSmallProductsIsTheChain) {
  const std::set<int32_t> chain = {kFolioChain};
  for (const bool is_packed : {false, true}) {
    const std::set<int32_t> highest = {kFolioHighest};
    EXPECT_EQ(precisions(39, 64, 2000, kFolioHighest, is_packed), chain);
    EXPECT_EQ(precisions(1000, 47, 64, kFolioHighest, is_packed), chain);
    EXPECT_EQ(precisions(1000, 64, 31, kFolioHighest, is_packed), chain);
    EXPECT_EQ(precisions(95, 64, 657, kFolioHighest, is_packed), chain);
    EXPECT_EQ(precisions(95, 64, 658, kFolioHighest, is_packed), highest);
    EXPECT_EQ(precisions(96, 64, 195, kFolioHighest, is_packed), chain);
    EXPECT_EQ(precisions(96, 64, 196, kFolioHighest, is_packed), highest);
    EXPECT_EQ(precisions(1000, 64, 24, kFolioMedium, is_packed), std::set<int32_t>{kFolioMedium});
    for (const FolioPrecision precision : {kFolioHigh, kFolioMedium}) {
      EXPECT_EQ(precisions(31, 64, 300, precision, is_packed), chain);
      EXPECT_EQ(precisions(32, 23, 2000, precision, is_packed), chain);
      EXPECT_EQ(precisions(1000, 64, 23, precision, is_packed), chain);
      EXPECT_EQ(precisions(32, 64, 244, precision, is_packed), chain);
      EXPECT_EQ(precisions(32, 64, 245, precision, is_packed), std::set<int32_t>{precision});
    }
  }
}

// As small ones of Winograd's and of windows over few channels are, which took up to 3 times as
// long in parts.
TEST(ProductPrecision, OfGatheredRowsIsTheTablesLater) {
  const FolioKernels& kernels = kernels_for(0, kFolioHighest);
  const auto gathered = [&](int64_t m, int64_t n, int64_t k) {
    return product_precision(kernels, m, n, k, Operands::kFloats, true);
  };
  EXPECT_EQ(product_precision(kernels, 400, 64, 64), kFolioHighest);
  EXPECT_EQ(gathered(400, 64, 64), kFolioChain);
  EXPECT_EQ(gathered(500, 64, 64), kFolioHighest);
  EXPECT_EQ(gathered(1000, 48, 216), kFolioChain);
}

// One part is all of a bfloat16.
TEST(ProductPrecision, OfBFloat16IsOneProduct) {
  constexpr Operands kBfloat16 = Operands::kWidenedBfloat16;
  for (const FolioPrecision precision : {kFolioHighest, kFolioHigh, kFolioMedium}) {
    EXPECT_EQ(precisions(32, 64, 245, precision, true, kBfloat16), std::set<int32_t>{kFolioMedium});
    EXPECT_EQ(precisions(31, 64, 300, precision, true, kBfloat16), std::set<int32_t>{kFolioChain});
  }
}

// Where one part is all that a level multiplies.
TEST(ProductPrecision, RoundingPaysSoonerThanTiles) {
  FolioKernels kernels = kernels_for(0, kFolioMedium);
  kernels.multiplies_parts = 1 << kFolioMedium;
  EXPECT_EQ(product_precision(kernels, 16, 32, 32), kFolioMedium);
  EXPECT_EQ(product_precision(kernels, 15, 32, 32), kFolioChain);
  EXPECT_EQ(product_precision(kernels, 16, 31, 32), kFolioChain);
  EXPECT_EQ(product_precision(kernels, 16, 32, 31), kFolioChain);
  kernels.precision = kFolioHighest;
  EXPECT_EQ(product_precision(kernels, 16, 32, 32), kFolioChain);
  EXPECT_EQ(product_precision(kernels, 16, 32, 32, Operands::kWidenedBfloat16), kFolioMedium);
  kernels.multiplies_parts |= 1 << kFolioHighest;
  EXPECT_EQ(product_precision(kernels, 16, 32, 32, Operands::kWidenedBfloat16), kFolioChain);
}

TEST(ProductPrecision, TablesOfOneLevelDifferInItAlone) {
  const FolioKernels& highest = kernels_for(0);
  FolioKernels medium = kernels_for(0, kFolioMedium);
  EXPECT_EQ(highest.precision, kFolioHighest);
  EXPECT_EQ(medium.precision, kFolioMedium);
  EXPECT_EQ(&kernels_for(0, kFolioMedium), &kernels_for(0, kFolioMedium));
  medium.precision = kFolioHighest;
  EXPECT_EQ(std::memcmp(&highest, &medium, sizeof medium), 0);
}

}  // namespace
}  // namespace folio
