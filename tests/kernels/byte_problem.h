// A product of bytes with its own data, and weights that some level takes in a way of its own.
#pragma once

#include <random>

#include "tests/kernels/kernel_tester.h"

namespace folio {

template <typename T>
std::vector<T> random_ints(size_t count, uint32_t seed, int low, int high) {
  std::mt19937 engine(seed);
  std::vector<T> out(count);
  for (T& value : out) {
    value = static_cast<T>(low + static_cast<int>(engine() % static_cast<uint32_t>(high - low)));
  }
  return out;
}

// Some scale is NaN, where there are three.
struct ByteProblem {
  ByteProblem(int64_t m_, int64_t n_, int64_t k_);
  FolioSums sums(FolioSumsTo to, bool with_rows) const;

  int64_t m, n, k;
  std::vector<uint8_t> a, b;
  std::vector<int32_t> offset, row_sum, b_zero;
  std::vector<float> scale, bias;
  PackedBytes packed;
};

// Weights [k, n] that a level may take in another way than others: two products of which some sums
// leave 16 bits, none, and exactly at the bound; and four, of which none do, or some.
enum class Weights {
  kSevenBits,
  kAtTheBound,
  kOnePairTooLarge,
  kFewTooLarge,
  kFourFit,
  kSomeFourFit,
  kCount
};

std::vector<uint8_t> weights_of(Weights kind, int64_t k, int64_t n);

}  // namespace folio
