// The words for tiles of x86_amx are the instructions that Intel's manual encodes so. Nothing is
// executed: the functions below are read as bytes.
#include "core/kernels/x86_amx/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace folio {
namespace {

// Each ends with TILERELEASE, behind which nobody reads.
template <int kTile>
[[gnu::noinline]] void zero_word() {
  tile_zero<kTile>();
  tiles_release();
}
template <int kTile>
[[gnu::noinline]] void load_word(const void* p, int64_t stride) {
  tile_load<kTile>(p, stride);
  tiles_release();
}
template <int kTile>
[[gnu::noinline]] void passing_load_word(const void* p, int64_t stride) {
  tile_load<kTile, true>(p, stride);
  tiles_release();
}
template <int kTile>
[[gnu::noinline]] void store_word(void* p, int64_t stride) {
  tile_store<kTile>(p, stride);
  tiles_release();
}
[[gnu::noinline]] void configure_word(const TileShapes* shapes) {
  tiles_configure(shapes);
  tiles_release();
}
#define FOLIO_DOT_WORD(name)             \
  template <int kC, int kA, int kB>      \
  [[gnu::noinline]] void name##_word() { \
    tile_##name<kC, kA, kB>();           \
    tiles_release();                     \
  }
FOLIO_DOT_WORD(dot_ss)
FOLIO_DOT_WORD(dot_su)
FOLIO_DOT_WORD(dot_us)
FOLIO_DOT_WORD(dot_uu)
FOLIO_DOT_WORD(dot_bf16)
#undef FOLIO_DOT_WORD

using Bytes = std::vector<uint8_t>;

// Up to TILERELEASE, VEX.128.NP.0F38.W0 49 C0.
template <typename Function>
Bytes code_of(Function* function) {
  const Bytes release = {0xC4, 0xE2, 0x78, 0x49, 0xC0};
  const auto* code = reinterpret_cast<const uint8_t*>(function);
  for (size_t at = 0; at < 400; ++at) {
    if (std::equal(release.begin(), release.end(), code + at)) return {code, code + at};
  }
  ADD_FAILURE() << "no TILERELEASE in the first bytes";
  return {};
}

enum Prefix { kNone = 0, k66 = 1, kF3 = 2, kF2 = 3 };

// VEX.128.<prefix>.0F38.W0 with the register of VEX.vvvv; 0 for none, written as 1111.
Bytes vex(Prefix prefix, int vvvv, uint8_t opcode) {
  return {0xC4, 0xE2, static_cast<uint8_t>((~vvvv & 15) << 3 | prefix), opcode};
}

bool has(const Bytes& code, const Bytes& wanted) {
  return std::search(code.begin(), code.end(), wanted.begin(), wanted.end()) != code.end();
}

// The same with operands in memory: any base and index (VEX.X and VEX.B), no displacement before
// ModRM; `sib`: base plus index, unscaled.
bool has_memory_form(const Bytes& code, const Bytes& wanted, int reg, bool sib) {
  for (size_t at = 0; at + 5 <= code.size(); ++at) {
    if (code[at] != wanted[0] || (code[at + 1] | 0x60) != wanted[1]) continue;
    if (code[at + 2] != wanted[2] || code[at + 3] != wanted[3]) continue;
    const uint8_t modrm = code[at + 4];
    if (modrm >> 6 == 3 || (modrm >> 3 & 7) != reg) continue;
    if (!sib) return true;
    if (at + 5 < code.size() && (modrm & 7) == 4 && code[at + 5] >> 6 == 0) return true;
  }
  return false;
}

template <int kTile>
void expect_words_of_tile() {
  Bytes zero = vex(kF2, 0, 0x49);
  zero.push_back(static_cast<uint8_t>(0xC0 | kTile << 3));
  EXPECT_TRUE(has(code_of(zero_word<kTile>), zero)) << kTile;
  EXPECT_TRUE(has_memory_form(code_of(load_word<kTile>), vex(kF2, 0, 0x4B), kTile, true)) << kTile;
  EXPECT_TRUE(has_memory_form(code_of(passing_load_word<kTile>), vex(k66, 0, 0x4B), kTile, true))
      << kTile;
  EXPECT_TRUE(has_memory_form(code_of(store_word<kTile>), vex(kF3, 0, 0x4B), kTile, true)) << kTile;
}

TEST(TileWords, MoveTheTilesTheyName) {
  expect_words_of_tile<0>();
  expect_words_of_tile<1>();
  expect_words_of_tile<2>();
  expect_words_of_tile<3>();
  expect_words_of_tile<4>();
  expect_words_of_tile<5>();
  expect_words_of_tile<6>();
  expect_words_of_tile<7>();
  EXPECT_TRUE(has_memory_form(code_of(configure_word), vex(kNone, 0, 0x49), 0, false));
}

// C is ModRM:reg, A ModRM:r/m, B VEX.vvvv.
template <int kC, int kA, int kB>
void expect_dots() {
  const auto with = [](Prefix prefix, uint8_t opcode) {
    Bytes code = vex(prefix, kB, opcode);
    code.push_back(static_cast<uint8_t>(0xC0 | kC << 3 | kA));
    return code;
  };
  EXPECT_TRUE(has(code_of(dot_ss_word<kC, kA, kB>), with(kF2, 0x5E)));
  EXPECT_TRUE(has(code_of(dot_su_word<kC, kA, kB>), with(kF3, 0x5E)));
  EXPECT_TRUE(has(code_of(dot_us_word<kC, kA, kB>), with(k66, 0x5E)));
  EXPECT_TRUE(has(code_of(dot_uu_word<kC, kA, kB>), with(kNone, 0x5E)));
  EXPECT_TRUE(has(code_of(dot_bf16_word<kC, kA, kB>), with(kF3, 0x5C)));
}

TEST(TileWords, MultiplyWithTheSignsTheyName) {
  expect_dots<0, 1, 2>();
  expect_dots<3, 5, 7>();
  expect_dots<2, 4, 6>();
  expect_dots<7, 6, 5>();
}

TEST(TileWords, ShapesLieWhereTheManualSays) {
  EXPECT_EQ(offsetof(TileShapes, palette), 0U);
  EXPECT_EQ(offsetof(TileShapes, start_row), 1U);
  EXPECT_EQ(offsetof(TileShapes, row_bytes), 16U);
  EXPECT_EQ(offsetof(TileShapes, rows), 48U);
}

}  // namespace
}  // namespace folio
