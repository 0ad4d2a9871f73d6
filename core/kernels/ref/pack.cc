// Rearranging matrices: F32P16 panels and back, and plain transposes. Bits move, nothing is
// computed.
#include <string.h>

#include "core/kernels/ref/ref.h"

static const int64_t kColumns = FOLIO_F32P16_COLUMNS;

static void pack_f32p16__ref(int64_t k, int64_t n, const void* b, int64_t b_row_stride,
                             int64_t b_col_stride, float* dst) {
  const char* source = static_cast<const char*>(b);
  for (int64_t first = 0; first < n; first += kColumns) {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t c = 0; c < kColumns; ++c, ++dst) {
        const int64_t j = first + c;
        uint32_t bits = 0;
        if (j < n) memcpy(&bits, source + 4 * (p * b_row_stride + j * b_col_stride), 4);
        memcpy(dst, &bits, 4);
      }
    }
  }
}

static void unpack_f32p16__ref(int64_t k, int64_t n, const float* src, void* b,
                               int64_t b_row_stride, int64_t b_col_stride) {
  char* target = static_cast<char*>(b);
  for (int64_t j = 0; j < n; ++j) {
    const int64_t first = j / kColumns * kColumns * k + j % kColumns;
    for (int64_t p = 0; p < k; ++p) {
      memcpy(target + 4 * (p * b_row_stride + j * b_col_stride), src + first + p * kColumns, 4);
    }
  }
}

template <int kSize>
static void transpose(int64_t rows, int64_t cols, const void* x, int64_t x_row_stride, void* y,
                      int64_t y_row_stride) {
  const char* source = static_cast<const char*>(x);
  char* target = static_cast<char*>(y);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      memcpy(target + kSize * (j * y_row_stride + i), source + kSize * (i * x_row_stride + j),
             kSize);
    }
  }
}

void fill_pack__ref(FolioKernels* table) {
  table->pack_f32p16 = pack_f32p16__ref;
  table->unpack_f32p16 = unpack_f32p16__ref;
  table->transpose_b32 = transpose<4>;
  table->transpose_b16 = transpose<2>;
  table->transpose_b8 = transpose<1>;
}
