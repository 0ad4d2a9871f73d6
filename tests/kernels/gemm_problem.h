// A matrix product with its own data, for the tests of gemm_f32: run whole, and in parts.
#pragma once

#include "tests/kernels/kernel_tester.h"

namespace folio {

size_t panel_floats(int64_t k, int64_t n);

// What a precision may lose beside the bound of a chain, of sum |A| |B|.
inline double loss_of(int32_t precision) {
  return precision == kFolioHigh ? 0x1p-14 : precision == kFolioMedium ? 0x1p-6 : 0;
}

// B is packed by ref.
struct GemmProblem {
  GemmProblem(int64_t m_, int64_t n_, int64_t k_, uint32_t seed = 1);
  void pack() { ref_kernels().pack_f32p16(k, n, b.data(), n, 1, packed.data()); }
  float& a_at(int64_t i, int64_t q) { return a[static_cast<size_t>(i * k + q)]; }
  float& b_at(int64_t q, int64_t j) { return b[static_cast<size_t>(q * n + j)]; }
  std::vector<float> turned_a() const;  // column by column
  FolioGemmF32 args(int32_t precision = kFolioChain) const;

  int64_t m, n, k;
  static constexpr int64_t kAddendGap = 2;  // floats between its rows
  std::vector<float> a, b, c, col_bias, row_bias, col_scale, addend;
  std::vector<float> packed;
};

// Runs into a guarded C with rows `gap` floats apart, and returns C without the gaps.
std::vector<float> run_gemm(const LevelUnderTest& level, const GemmProblem& problem,
                            FolioGemmF32 args, int64_t gap = 0);

// C from calls for so many rows and columns each, a multiple of 16 of these.
std::vector<float> run_in_blocks(const LevelUnderTest& level, const GemmProblem& p,
                                 const FolioGemmF32& whole, int64_t rows, int64_t columns);

// C from calls for parts of the depth that end there; the panels of B are packed for each part.
std::vector<float> run_in_depth(const LevelUnderTest& level, const GemmProblem& p,
                                const FolioGemmF32& whole, const std::vector<int64_t>& ends);

// Where each of `pieces` pieces of each row of A begins, piece by piece.
std::vector<const float*> row_pieces(const GemmProblem& p, int64_t pieces);

// The definition in double, and the bound of kernels.h: (k + 3) 2^-24 sum |A| |B|, where what is
// added and C count as more products (and 2^-140 keeps the bound above 0).
void expect_near_product(const LevelUnderTest& level, const GemmProblem& p,
                         const FolioGemmF32& args, const std::vector<float>& got);

}  // namespace folio
