// Tiles in memory do what the manual's pseudo-code says, and the check of the level finds a machine
// that does not.
#include "tests/kernels/software_amx/tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/os/cpu_features.h"
#include "tests/kernels/kernel_tester.h"
#include "tests/kernels/software_amx/software_amx.h"

namespace folio {
namespace {

// C in tile 0, A in 1, B in 2: rows x columns sums of 4 * quads bytes.
TileShapes shapes(int rows, int columns, int quads) {
  TileShapes s = {};
  s.palette = 1;
  s.rows[0] = s.rows[1] = static_cast<uint8_t>(rows);
  s.rows[2] = static_cast<uint8_t>(quads);
  s.row_bytes[0] = s.row_bytes[2] = static_cast<uint16_t>(4 * columns);
  s.row_bytes[1] = static_cast<uint16_t>(4 * quads);
  return s;
}

template <typename A, typename B, typename Dot>
void expect_products(int rows, int columns, int quads, Dot dot) {
  const TileShapes s = shapes(rows, columns, quads);
  std::vector<uint8_t> a(1024), b(1024);
  std::vector<int32_t> c(256, 7), got(256, 55);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint8_t>(i * 37 + i / 64);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint8_t>(i * 101 + 128);
  tiles_configure(&s);
  tile_load<0>(c.data(), 64);
  tile_load<1>(a.data(), 64);
  tile_load<2>(b.data(), 64);
  dot();
  tile_store<0>(got.data(), 64);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      int32_t want = 7;
      for (int p = 0; p < 4 * quads; ++p) {
        want += static_cast<A>(a[static_cast<size_t>(i * 64 + p)]) *
                static_cast<B>(b[static_cast<size_t>(p / 4 * 64 + 4 * j + p % 4)]);
      }
      if (i >= rows || j >= columns) want = 55;  // not stored
      EXPECT_EQ(got[static_cast<size_t>(i * 16 + j)], want) << i << ' ' << j;
    }
  }
  tiles_release();
}

// They are written in AVX-512.
class SoftwareTiles : public testing::Test {
 protected:
  void SetUp() override {
    constexpr CpuBits kNeeded = kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Dq | kCpuAvx512Vl;
    if ((cpu_bits() & kNeeded) != kNeeded) GTEST_SKIP() << "no AVX-512 on this machine";
  }
};

using SoftwareTilesDeathTest = SoftwareTiles;

TEST_F(SoftwareTiles, MultiplyBytesOfAllSigns) {
  for (const int rows : {16, 9, 1}) {
    for (const int quads : {16, 8, 3}) {
      const int columns = 17 - rows;
      expect_products<int8_t, int8_t>(rows, columns, quads, tile_dot_ss<0, 1, 2>);
      expect_products<int8_t, uint8_t>(rows, columns, quads, tile_dot_su<0, 1, 2>);
      expect_products<uint8_t, int8_t>(rows, columns, quads, tile_dot_us<0, 1, 2>);
      expect_products<uint8_t, uint8_t>(rows, columns, quads, tile_dot_uu<0, 1, 2>);
    }
  }
}

TEST_F(SoftwareTiles, SumsWrap) {
  const TileShapes s = shapes(1, 1, 1);
  const uint8_t full[4] = {255, 255, 255, 255};
  int32_t c = std::numeric_limits<int32_t>::max();
  tiles_configure(&s);
  tile_load<0>(&c, 64);
  tile_load<1>(full, 64);
  tile_load<2>(full, 64);
  tile_dot_uu<0, 1, 2>();
  tile_store<0>(&c, 64);
  EXPECT_EQ(c, static_cast<int32_t>(0x7fffffffU + 4U * 255 * 255));
}

uint16_t bf16(float x) { return static_cast<uint16_t>(bits_of(x) >> 16); }

// One sum of two pairs on top of c.
float bf16_sum(float c, const std::vector<float>& a, const std::vector<float>& b) {
  const TileShapes s = shapes(1, 1, static_cast<int>(a.size() / 2));
  std::vector<uint16_t> row(32), columns(512);
  for (size_t p = 0; p < a.size(); ++p) row[p] = bf16(a[p]);
  for (size_t p = 0; p < b.size(); ++p) columns[p / 2 * 32 + p % 2] = bf16(b[p]);
  tiles_configure(&s);
  tile_load<0>(&c, 64);
  tile_load<1>(row.data(), 64);
  tile_load<2>(columns.data(), 64);
  tile_dot_bf16<0, 1, 2>();
  tile_store<0>(&c, 64);
  return c;
}

TEST_F(SoftwareTiles, Bfloat16PairsAreTwoChainsAndThenAdded) {
  EXPECT_EQ(bf16_sum(10, {1, 2, 3, 4}, {5, 6, 7, 8}), 10 + 5 + 12 + 21 + 32);
  // Even elements cancel before anything small is lost to them; c comes last.
  EXPECT_EQ(bf16_sum(0, {0x1p30F, 1, -0x1p30F, 1}, {1, 1, 1, 1}), 2.0F);
  EXPECT_EQ(bf16_sum(0x1p30F, {-0x1p30F, 1, 1, 1}, {1, 1, 1, 1}), 0.0F);
  // Ties to even: 2^24 + 1 and 2^24 + 3.
  EXPECT_EQ(bf16_sum(0, {0x1p24F, 0, 1, 0}, {1, 0, 1, 0}), 0x1p24F);
  EXPECT_EQ(bf16_sum(0, {0x1p24F, 0, 3, 0}, {1, 0, 1, 0}), 0x1p24F + 4);
}

TEST_F(SoftwareTiles, Bfloat16FlushesSubnormals) {
  const float tiny = 0x1p-127F;
  EXPECT_EQ(bf16_sum(0, {tiny, 0}, {0x1p100F, 0}), 0.0F) << "an operand";
  EXPECT_EQ(bf16_sum(0, {0x1p-100F, 0}, {0x1p-30F, 0}), 0.0F) << "a product";
  EXPECT_EQ(bf16_sum(tiny, {0, 0}, {0, 0}), 0.0F) << "a sum that was there";
  EXPECT_EQ(bf16_sum(0, {0x1p-100F, 0}, {0x1p-26F, 0}), 0x1p-126F) << "the least that is none";
  EXPECT_TRUE(std::isnan(bf16_sum(0, {INFINITY, 0}, {0, 0})));
}

TEST_F(SoftwareTiles, LoadsClearTheRestAndConfigurationClearsAll) {
  const TileShapes whole = shapes(16, 16, 16);
  const std::vector<uint8_t> ones(1024, 1);
  std::vector<uint8_t> got(1024, 9);
  tiles_configure(&whole);
  tile_load<0>(ones.data(), 64);
  tiles_configure(&whole);
  tile_store<0>(got.data(), 64);
  EXPECT_EQ(got, std::vector<uint8_t>(1024, 0));
}

TEST_F(SoftwareTilesDeathTest, WhatIsInvalidEndsTheTest) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(tile_zero<0>(), "no configuration");
  TileShapes s = shapes(4, 16, 8);
  s.rows[1] = 5;
  tiles_configure(&s);
  EXPECT_DEATH((tile_dot_us<0, 1, 2>()), "rows of C and A");
  s = shapes(4, 16, 8);
  s.rows[2] = 9;
  tiles_configure(&s);
  EXPECT_DEATH((tile_dot_us<0, 1, 2>()), "columns of A and rows of B");
  s.rows[9] = 1;
  EXPECT_DEATH(tiles_configure(&s), "a ninth tile");
  tiles_release();
}

bool has_level(const char* name) {
  for (const LevelUnderTest& level : levels_under_test()) {
    if (level.name == name) return true;
  }
  return false;
}

TEST(TileCheck, TrustsTilesThatMultiplyAndNoOthers) {
  if (!has_level("software_amx")) GTEST_SKIP() << "no AVX-512 VNNI and BF16 on this machine";
  EXPECT_TRUE(software_tiles_work(0, 0));
  EXPECT_FALSE(software_tiles_work(1, 0));
  EXPECT_FALSE(software_tiles_work(-256, 0));
  EXPECT_FALSE(software_tiles_work(0, 0x1p-12F));
  EXPECT_FALSE(software_tiles_work(0, NAN));
}

// All tests that go through levels_under_test() have then seen the real kernels as well.
TEST(TileCheck, ThisMachineHasTiles) {
  if (!has_level("x86_amx")) {
    GTEST_SKIP() << "no AMX on this machine: its kernels ran over tiles in memory only";
  }
  EXPECT_EQ(failed_kernel_level(~CpuBits{0}), nullptr);
}

}  // namespace
}  // namespace folio
