/* A look at the tiles before they are trusted: small products of known bytes and floats, beside the
 * same sums in plain words. Some tens of microseconds, once in a process that may use tiles. The
 * including file gives the words for tiles before. */

#include "core/kernels/x86_amx/x86_amx.h"

namespace {

constexpr int64_t kSize = 32;
constexpr int64_t kDeep = 64;

/* Bytes of all values, in no simple order. */
void fill_bytes(uint32_t seed, int64_t count, uint8_t* bytes) {
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (uint8_t)(seed >> 24);
  }
}

/* gemm_u8 of 32 x 32 x 64: unsigned by signed, four tiles of sums. */
int product_works() {
  alignas(64) uint8_t a[kSize * kDeep];
  alignas(64) uint8_t b[kSize * kDeep + 2 * 64]; /* with the sums of columns, which are not read */
  int32_t c[kSize * kSize];
  fill_bytes(1, sizeof(a), a);
  fill_bytes(2, sizeof(b), b);
  FolioGemmU8 args = {};
  args.m = args.n = args.c_row_stride = kSize;
  args.k = args.a_row_stride = kDeep;
  args.a = a;
  args.b = b;
  args.c = c;
  FolioKernels kernels = {};
  FOLIO_TILE_LEVEL(folio_fill_gemm)(&kernels);
  kernels.gemm_u8(&args);
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      const uint8_t* column = b + j / 16 * (kDeep / 4) * 64 + j % 16 * 4;
      int32_t sum = 0;
      for (int64_t p = 0; p < kDeep; ++p) {
        sum += a[i * kDeep + p] * (int8_t)column[p / 4 * 64 + p % 4];
      }
      if (c[i * kSize + j] != sum) return 0;
    }
  }
  return 1;
}

/* A tile of 9 rows of 32 bytes, signed by signed, as blocks of weights use them. */
int block_works() {
  constexpr int kRows = 9;
  constexpr int kPart = 32;
  alignas(64) uint8_t a[kRows * kPart];
  alignas(64) uint8_t b[kPart / 4 * 64];
  int32_t c[kRows * 16];
  fill_bytes(3, sizeof(a), a);
  fill_bytes(4, sizeof(b), b);
  TileShapes shapes = {};
  shapes.palette = 1;
  const uint8_t rows[3] = {kRows, kRows, kPart / 4};
  for (int i = 0; i < 3; ++i) {
    shapes.rows[i] = rows[i];
    shapes.row_bytes[i] = i == 1 ? kPart : FOLIO_TILE_BYTES;
  }
  tiles_configure(&shapes);
  tile_load<1>(a, kPart);
  tile_load<2>(b, 64);
  tile_zero<0>();
  tile_dot_ss<0, 1, 2>();
  tile_store<0>(c, 64);
  tiles_release();
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < 16; ++j) {
      int32_t sum = 0;
      for (int p = 0; p < kPart; ++p) {
        sum += (int8_t)a[i * kPart + p] * (int8_t)b[p / 4 * 64 + j * 4 + p % 4];
      }
      if (c[i * 16 + j] != sum) return 0;
    }
  }
  return 1;
}

/* gemm_f32 of 32 x 32 x 64: three parts of each number, within the bound of kernels.h. */
int parts_work() {
  alignas(64) float a[kSize * kDeep];
  alignas(64) float b[kSize * kDeep];
  float c[kSize * kSize];
  uint8_t bytes[3 * kSize * kDeep];
  for (int operand = 0; operand < 2; ++operand) {
    float* const to = operand == 0 ? a : b;
    fill_bytes((uint32_t)(5 + operand), sizeof(bytes), bytes);
    for (int64_t i = 0; i < kSize * kDeep; ++i) {
      const int whole = bytes[3 * i] << 16 | bytes[3 * i + 1] << 8 | bytes[3 * i + 2];
      to[i] = (float)(whole - (1 << 23)) / (float)(1 << 23);
    }
  }
  FolioGemmF32 args = {};
  args.m = args.n = args.c_row_stride = kSize;
  args.k = args.a_row_stride = kDeep;
  args.a_col_stride = 1;
  args.a = a;
  args.b = b;
  args.c = c;
  args.alpha = 1;
  args.precision = kFolioHighest;
  FolioKernels kernels = {};
  FOLIO_TILE_LEVEL(folio_fill_float)(&kernels);
  kernels.gemm_f32(&args);
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      double sum = 0;
      double size = 0;
      for (int64_t p = 0; p < kDeep; ++p) {
        const double product = (double)a[i * kDeep + p] * b[(j / 16 * kDeep + p) * 16 + j % 16];
        sum += product;
        size += product < 0 ? -product : product;
      }
      const double off = c[i * kSize + j] - sum;
      const double bound = (double)(kDeep + 3) / (double)(1 << 24) * size;
      if (!(off <= bound && off >= -bound)) return 0;
    }
  }
  return 1;
}

}  // namespace

int FOLIO_TILE_LEVEL(folio_tiles_work)(void) {
  return product_works() && block_works() && parts_work();
}
