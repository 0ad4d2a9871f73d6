// Weights of 2, 4 or 8 bits in blocks (block_weights.h): what MatMulNBits and QMoE share.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/kernels/kernels.h"

namespace folio {

// What a byte of two codes holds, as floats.
inline constexpr auto kFloatsOfNibbles = [] {
  std::array<std::array<float, 2>, 256> out{};
  for (size_t byte = 0; byte < out.size(); ++byte) {
    out[byte] = {static_cast<float>(byte & 15), static_cast<float>(byte >> 4)};
  }
  return out;
}();

// Codes of some bits, low bits first, as floats.
inline void unpack_block_codes(const uint8_t* bytes, int64_t bits, int64_t count, float* to) {
  int64_t i = 0;
  if (bits == 4) {
    for (; i + 2 <= count; i += 2) {
      std::memcpy(to + i, kFloatsOfNibbles[bytes[i / 2]].data(), 2 * sizeof(float));
    }
  }
  for (; i < count; ++i) {
    const int64_t bit = i * bits;
    to[i] = static_cast<float>(bytes[bit / 8] >> bit % 8 & ((1 << bits) - 1));
  }
}

inline constexpr int64_t kBlockDotMacs = 1 << 18;  // a task of dot products

// Columns of a task of so many multiply-adds; neither k nor rows is 0.
inline int64_t block_task_columns(int64_t k, int64_t rows, int64_t macs) {
  constexpr int64_t kLeast = 32;
  return std::max(kLeast, macs / (rows * k) / FOLIO_F32P16_COLUMNS * FOLIO_F32P16_COLUMNS);
}

// A row of A as block_dots_f32 reads it.
inline void split_block_planes(int64_t k, int64_t bits, int64_t row_bytes, const float* a,
                               float* planes, bool has_levels = false) {
  const int64_t places = 8 / bits;
  const int64_t whole = k / places;
  std::fill_n(planes, places * row_bytes, 0.0F);
  for (int64_t j = 0; j < places; ++j) {
    float* to = planes + (has_levels ? places - 1 - j : j) * row_bytes;
    for (int64_t q = 0; q < whole; ++q) to[q] = a[q * places + j];
    if (whole * places + j < k) to[whole] = a[whole * places + j];
  }
}

}  // namespace folio
