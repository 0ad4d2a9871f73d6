// Weights of small integers in blocks for tests, and their products in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/kernels/kernel_tester.h"

namespace folio {

// Weights whose bytes start at an odd address and whose scales are unaligned.
struct Blocks {
  Blocks(int bits_, int64_t block_, int64_t k_, int64_t n_, bool with_zeros)
      : bits(bits_), block(block_), k(k_), n(n_) {
    blocks = (k + block - 1) / block;
    row_bytes = blocks * block * bits / 8;
    uint32_t state = 77;
    codes.resize(static_cast<size_t>(n * row_bytes + 1));
    for (uint8_t& byte : codes) byte = static_cast<uint8_t>((state = state * 1664525 + 1) >> 24);
    scales = random_floats(static_cast<size_t>(n * blocks), 5, 0.01f, 0.2f);
    scale_bytes.resize(4 * scales.size() + 1);
    std::memcpy(scale_bytes.data() + 1, scales.data(), 4 * scales.size());
    const auto top = static_cast<float>(1 << bits);
    if (with_zeros) zeros = random_floats(static_cast<size_t>(n * blocks), 6, 0, top);
    for (float& zero : zeros) zero = std::floor(zero);
  }

  FolioBlockWeights weights() const {
    return {n,
            k,
            block,
            bits,
            codes.data() + 1,
            scale_bytes.data() + 1,
            zeros.empty() ? nullptr : zeros.data(),
            nullptr,
            0,
            levels.empty() ? nullptr : levels.data()};
  }
  // Where the code of element p of a column is counted.
  int64_t place(int64_t p) const { return levels.empty() ? p : p ^ 1; }
  // Zeros as codes, after as many bytes of 0 as fill up the last four.
  std::vector<uint8_t> zero_codes() const {
    const int64_t bytes = folio_block_zero_bytes(blocks, bits);
    const int64_t padding = (4 - n * bytes % 4) % 4;
    std::vector<uint8_t> out(static_cast<size_t>(padding + n * bytes));
    for (int64_t i = 0; i < n * blocks; ++i) {
      const int64_t bit = i % blocks * bits;
      const auto code = static_cast<uint8_t>(zeros[static_cast<size_t>(i)]);
      uint8_t& byte = out[static_cast<size_t>(padding + i / blocks * bytes + bit / 8)];
      byte = static_cast<uint8_t>(byte | code << bit % 8);
    }
    return out;
  }
  double at(int64_t j, int64_t p) const {
    const int64_t b = j * blocks + p / block;
    const int64_t bit = place(p) * bits;
    const int byte = codes[static_cast<size_t>(1 + j * row_bytes + bit / 8)];
    const int code = byte >> bit % 8 & ((1 << bits) - 1);
    if (!levels.empty()) {
      return static_cast<double>(levels[static_cast<size_t>(code)]) *
             scales[static_cast<size_t>(b)];
    }
    const double zero = zeros.empty() ? 1 << (bits - 1) : zeros[static_cast<size_t>(b)];
    return (code - zero) * scales[static_cast<size_t>(b)];
  }

  int bits;
  int64_t block, k, n, blocks, row_bytes;
  std::vector<uint8_t> codes, scale_bytes;
  std::vector<float> scales, zeros;
  std::vector<float> levels;  // or empty
};

template <typename Check>
void for_all_weights(const std::vector<int>& bits, int64_t max_block, const Check& check) {
  for (const int b : bits) {
    for (int64_t block = 16; block <= max_block; block *= 2) {
      for (const int64_t k : {block - 3, 3 * block, 5 * block + 1, 9 * block - 7}) {
        for (const bool zeros : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << b << " bits, block " << block << ", k " << k << (zeros ? ", zeros" : ""));
          check(Blocks(b, block, k, 21, zeros));
        }
      }
    }
  }
}

// Weights whose codes have levels, none of which is another's.
template <typename Check>
void for_all_levels(const Check& check) {
  for (const int64_t block : {32, 64, 128, 512}) {
    for (const int64_t blocks : {1, 3, 8}) {
      SCOPED_TRACE(testing::Message() << blocks << " blocks of " << block);
      Blocks w(4, block, blocks * block, 21, false);
      w.levels = random_floats(16, 3);
      check(w);
    }
  }
}

inline std::vector<float> planes_of(const Blocks& w, const std::vector<float>& a, int64_t m) {
  const int64_t places = 8 / w.bits;
  std::vector<float> planes(static_cast<size_t>(m * places * w.row_bytes));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < w.k; ++p) {
      const int64_t at = w.place(p);
      const int64_t to = (i * places + at % places) * w.row_bytes + at / places;
      planes[static_cast<size_t>(to)] = a[static_cast<size_t>(i * w.k + p)];
    }
  }
  return planes;
}

// y = a W^T + bias within `steps` roundings of each sum.
inline void expect_product(const Blocks& w, const std::vector<double>& a,
                           const std::vector<float>& bias, const float* y, double steps,
                           const std::string& level) {
  const auto m = static_cast<int64_t>(a.size()) / w.k;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < w.n; ++j) {
      double sum = bias.empty() ? 0 : bias[static_cast<size_t>(j)];
      double size = std::fabs(sum);
      for (int64_t p = 0; p < w.k; ++p) {
        const double product = a[static_cast<size_t>(i * w.k + p)] * w.at(j, p);
        sum += product;
        size += std::fabs(product);
      }
      EXPECT_NEAR(y[i * w.n + j], sum, steps * std::ldexp(size, -24))
          << level << ' ' << i << ' ' << j;
    }
  }
}

struct AlignedRows {
  explicit AlignedRows(int64_t bytes) : memory(static_cast<size_t>(bytes) + 128, 0x5A) {
    data = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  }
  std::vector<uint8_t> memory;
  uint8_t* data;
};

}  // namespace folio
