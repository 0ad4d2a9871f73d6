#include "tests/kernels/byte_problem.h"

#include <limits>
#include <utility>

namespace folio {

ByteProblem::ByteProblem(int64_t m_, int64_t n_, int64_t k_)
    : m(m_),
      n(n_),
      k(k_),
      a(random_ints<uint8_t>(static_cast<size_t>(m * k), 1, 0, 256)),
      b(random_ints<uint8_t>(static_cast<size_t>(k * n), 2, 0, 256)),
      offset(random_ints<int32_t>(static_cast<size_t>(n), 3, -100000, 100000)),
      row_sum(random_ints<int32_t>(static_cast<size_t>(m), 4, -10000, 10000)),
      b_zero(random_ints<int32_t>(static_cast<size_t>(n), 5, -128, 128)),
      scale(random_floats(static_cast<size_t>(n), 6, 0.00005F, 0.0005F)),
      bias(random_floats(static_cast<size_t>(n), 7)),
      packed(k, n, b) {
  if (n > 2) scale[2] = std::numeric_limits<float>::quiet_NaN();
}

FolioSums ByteProblem::sums(FolioSumsTo to, bool with_rows) const {
  FolioSums s{};
  s.to = to;
  s.offset = offset.data();
  if (k % 2 != 0) {
    s.column_sum = b_zero.data();
    s.a_zero = 201;
  }
  s.scale = scale.data();
  s.bias = bias.data();
  s.zero = with_rows ? -3 : 130;
  s.lo = with_rows ? -128 : 0;
  s.hi = with_rows ? 127 : 255;
  if (with_rows) {
    s.row_sum = row_sum.data();
    s.b_zero = b_zero.data();
  }
  return s;
}

std::vector<uint8_t> weights_of(Weights kind, int64_t k, int64_t n) {
  const int most = kind == Weights::kFourFit ? 32 : kind == Weights::kSomeFourFit ? 40 : 64;
  auto b = random_ints<uint8_t>(static_cast<size_t>(k * n), 11, -most, most + 1);
  if (most < 64) return b;
  const auto at = [&](int64_t p, int64_t j) -> uint8_t& {
    return b[static_cast<size_t>(p * n + j)];
  };
  const std::pair<int, int> bound[] = {{64, 64},   {127, 1},   {1, 127},    {-128, 0},   {0, -128},
                                       {-64, -64}, {-127, -1}, {-128, 127}, {127, -128}, {100, 28}};
  const std::pair<int, int> beyond[] = {{64, 65},   {127, 2},   {127, 127},  {-128, -1},
                                        {-1, -128}, {-65, -64}, {-128, -128}};
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p + 1 < k; p += 2) {
      const auto some = static_cast<size_t>(p / 2 + j);
      std::pair<int, int> pair = bound[some % std::size(bound)];
      if (kind == Weights::kSevenBits || kind == Weights::kFewTooLarge) {
        if (kind == Weights::kSevenBits || some % 37 != 0) continue;
        pair = beyond[some / 37 % std::size(beyond)];
      } else if (kind == Weights::kOnePairTooLarge && p == (k - 1) / 4 * 2 && j == n - 1) {
        pair = beyond[static_cast<size_t>(k) % std::size(beyond)];
      }
      at(p, j) = static_cast<uint8_t>(pair.first);
      at(p + 1, j) = static_cast<uint8_t>(pair.second);
    }
  }
  return b;
}

}  // namespace folio
