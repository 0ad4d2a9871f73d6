// Transposes of elements of 8, 16 and 32 bits, at every usable level: where each byte goes, and
// that no other is read or written.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

using Slot = void (*FolioKernels::*)(int64_t rows, int64_t cols, const void* x, int64_t x_stride,
                                     void* y, int64_t y_stride);

void check(const LevelUnderTest& level, Slot slot, int64_t size, int64_t rows, int64_t cols,
           int64_t x_more, int64_t y_more) {
  constexpr uint8_t kUntouched = 0xA5;
  constexpr int64_t kMargin = 64;
  const int64_t x_stride = cols + x_more;
  const int64_t y_stride = rows + y_more;
  const int64_t x_bytes = rows == 0 ? 0 : ((rows - 1) * x_stride + cols) * size;
  const int64_t y_bytes = cols == 0 ? 0 : ((cols - 1) * y_stride + rows) * size;
  const auto floats = static_cast<size_t>((x_bytes + 3) / 4);
  std::vector<float> numbers(floats);
  for (size_t i = 0; i < floats; ++i) numbers[i] = from_bits(0x01020304U * uint32_t(i % 61 + 1));
  const BeforeUnreadable memory(numbers);
  const auto* x = reinterpret_cast<const uint8_t*>(memory.data()) + 4 * floats - x_bytes;
  std::vector<uint8_t> want(static_cast<size_t>(y_bytes + 2 * kMargin), kUntouched);
  std::vector<uint8_t> got = want;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      std::memcpy(want.data() + kMargin + (j * y_stride + i) * size, x + (i * x_stride + j) * size,
                  static_cast<size_t>(size));
    }
  }
  (level.kernels.*slot)(rows, cols, x, x_stride, got.data() + kMargin, y_stride);
  ASSERT_EQ(got, want) << level.name << ", " << size << " bytes, " << rows << " x " << cols
                       << ", strides " << x_stride << ' ' << y_stride;
}

TEST(Transpose, MovesEveryElementAndNothingElse) {
  const std::pair<Slot, int64_t> slots[] = {{&FolioKernels::transpose_b8, 1},
                                            {&FolioKernels::transpose_b16, 2},
                                            {&FolioKernels::transpose_b32, 4}};
  constexpr int64_t kSides[] = {0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 40, 130};
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [slot, size] : slots) {
      for (const int64_t rows : kSides) {
        for (const int64_t cols : kSides) {
          for (int64_t more = 0; more < 5; ++more) check(level, slot, size, rows, cols, more, 0);
          check(level, slot, size, rows, cols, 0, 3);
        }
      }
    }
  }
}

}  // namespace
}  // namespace folio
