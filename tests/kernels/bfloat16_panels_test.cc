// gemm_f32 of panels of bfloat16: the bits are those of the same numbers in float.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/kernels/gemm_problem.h"

namespace folio {
namespace {

// B becomes what bfloat16 holds of it.
GemmProblem problem(int64_t m, int64_t n, int64_t k) {
  GemmProblem p(m, n, k, 7);
  for (float& x : p.b) x = from_bits(bits_of(x) & 0xFFFF0000U);
  p.pack();
  return p;
}

// The upper halves of packed floats, before memory that cannot be read.
class Panels {
 public:
  Panels(const std::vector<float>& packed, int64_t k) : floats_(halves(packed, k)) {}
  const float* data() const { return floats_.data(); }

 private:
  static std::vector<float> halves(const std::vector<float>& packed, int64_t k) {
    const auto rows = static_cast<int64_t>(packed.size()) / 16;
    const int64_t panels = k > 0 ? rows / k : 0;
    const int64_t panel = folio_bf16p16_rows(k) * 16;
    std::vector<float> floats(static_cast<size_t>(panels * panel / 2));
    auto* to = reinterpret_cast<uint8_t*>(floats.data());
    for (int64_t i = 0; i < panels * k * 16; ++i) {
      const auto half = static_cast<uint16_t>(bits_of(packed[static_cast<size_t>(i)]) >> 16);
      const int64_t at = i / (k * 16) * panel + folio_bf16p16_at(i / 16 % k, i % 16);
      std::memcpy(to + 2 * at, &half, sizeof(half));
    }
    return floats;
  }
  BeforeUnreadable floats_;
};

template <typename Check>
void for_levels(const Check& check) {
  for (const LevelUnderTest& level : levels_under_test()) {
    if (folio_multiplies_parts(&level.kernels, kFolioMedium)) check(level);
  }
}

void expect_same_bits(const GemmProblem& p, FolioGemmF32 args) {
  const Panels panels(p.packed, p.k);
  for_levels([&](const LevelUnderTest& level) {
    const auto want = run_gemm(level, p, args, 3);
    FolioGemmF32 halves = args;
    halves.b = panels.data();
    halves.b_is_bfloat16 = 1;
    const auto got = run_gemm(level, p, halves, 3);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const bool both_nan = got[i] != got[i] && want[i] != want[i];
      ASSERT_TRUE(both_nan || bits_of(got[i]) == bits_of(want[i]))
          << level.name << ' ' << p.m << 'x' << p.n << 'x' << p.k << " at " << i << ": " << got[i]
          << " for " << want[i];
    }
  });
}

TEST(BFloat16Panels, GiveTheBitsOfFloats) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{16, 32, 32},
                                                                   {17, 33, 65},
                                                                   {40, 16, 31},
                                                                   {5, 100, 256},
                                                                   {33, 48, 257},
                                                                   {70, 72, 600},
                                                                   {200, 40, 1300}}) {
    const GemmProblem p = problem(m, n, k);
    expect_same_bits(p, p.args(kFolioMedium));
    FolioGemmF32 more = p.args(kFolioMedium);
    more.accumulate = 1;
    more.col_bias = p.col_bias.data();
    more.activation = kFolioActRelu;
    expect_same_bits(p, more);
  }
}

TEST(BFloat16Panels, HoldWhatIsNotFiniteAndAllSizes) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float odd : {inf, -inf, inf - inf, 0x1.8p120F, 0x1p-110F, 0x1p-130F}) {
    GemmProblem p = problem(40, 50, 300);
    p.b_at(299, 3) = odd;
    p.b_at(70, 49) = odd;
    p.pack();
    expect_same_bits(p, p.args(kFolioMedium));
    p.a_at(7, 100) = inf;
    expect_same_bits(p, p.args(kFolioMedium));
  }
}

// What comes next is fetched, and nothing else.
TEST(BFloat16Panels, MayBeCutAtColumns) {
  const GemmProblem p = problem(30, 96, 513);
  const Panels panels(p.packed, p.k);
  for_levels([&](const LevelUnderTest& level) {
    const auto want = run_gemm(level, p, p.args(kFolioMedium));
    for (const int64_t first : {16, 48, 80}) {
      FolioGemmF32 part = p.args(kFolioMedium);
      part.b = panels.data() + first * folio_bf16p16_rows(p.k) / 2;
      part.b_is_bfloat16 = 1;
      part.n = 16;
      GemmProblem some = p;
      some.n = 16;
      const auto got = run_gemm(level, some, part);
      for (int64_t i = 0; i < p.m; ++i) {
        EXPECT_EQ(std::memcmp(got.data() + i * 16, want.data() + i * p.n + first, 64), 0)
            << level.name << ' ' << i << ' ' << first;
      }
    }
  });
}

}  // namespace
}  // namespace folio
