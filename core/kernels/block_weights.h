/* Arguments of the kernels over weights that are stored as small integers in blocks.
 *
 *   W[n, p] = (code[n, p] - zero[n, b]) * scale[n, b],   b = p / block
 *
 * Codes of a column stand in ceil(k / block) whole blocks of block * bits / 8 bytes each, the first
 * in the low bits; those beyond k may be anything. A column's bytes are counted as one row:
 * row_bytes = blocks * block * bits / 8. `place` j of a byte is bits [j * bits, (j + 1) * bits), so
 * the code of element p is at place p % (8 / bits) of byte p * bits / 8. */
#pragma once

#include <stdint.h>

typedef struct FolioBlockWeights {
  int64_t n, k;
  int64_t block;      /* a power of two, at least 16 */
  int32_t bits;       /* 2, 4 or 8 */
  const void* codes;  /* [n][row_bytes] */
  const void* scales; /* f32 or f16 of any alignment, [n][blocks] */
  const float* zeros; /* [n][blocks], or null: 2^(bits - 1) */
  /* Null, or the zeros as codes, each column's in folio_block_zero_bytes of their own, the first in
   * the low bits; `zeros` is null then. Only block_dots_s8 with m = 1 takes them. */
  const uint8_t* zero_codes;
  /* 1: scales are f16 and stand for what f16_to_f32 makes of them, with the same bits of every
   * result; 0: f32. Only block_dots_s8 with m = 1 takes f16. */
  int32_t half_scales;
  /* Null, or 16 numbers: W[n, p] = levels[code] * scale, and the first of two codes stands in the
   * high bits, element p at place 1 - p % 2. `bits` is 4, a block at least 32, zeros are null. Not
   * for block_dots_s8, nor for more than few rows of block_dots_f32. */
  const float* levels;
} FolioBlockWeights;

/* Among numbers of bits: codes of 4 that have levels. */
enum { kFolioBlockLevels = 0 };

static inline int64_t folio_block_zero_bytes(int64_t blocks, int32_t bits) {
  return (blocks * bits + 7) / 8;
}

/* y[i * y_row_stride + n] = bias[n] + sum over p of A[i, p] * W[n, p], i < m; m is at most
 * FOLIO_BLOCK_FEW_ROWS, or any where folio_dots_many_rows() says so.
 *
 * A is given by planes: those elements of a row that are at place j of their bytes stand together,
 * a[i * a_row_stride + j * row_bytes + q] being for byte q, so A[i, q * (8 / bits) + j] (of levels
 * A[i, q * 2 + 1 - j]); 0 beyond k. */
#define FOLIO_BLOCK_FEW_ROWS 4
typedef struct FolioBlockDotsF32 {
  FolioBlockWeights w;
  int64_t m;
  const float* a;
  int64_t a_row_stride;
  int32_t precision; /* FolioPrecision, of more than few rows: parts are folio_block_parts of it */
  void* scratch;     /* folio_block_float_bytes, 64-byte aligned; may be null for few rows */
  const float* bias; /* [n] or null */
  float* y;
  int64_t y_row_stride;
} FolioBlockDotsF32;

/* The same with A rounded to 8 bits by block_round_f32; bits 4 or 8, block <= 256, zeros whole
 * numbers from 0 to 2^bits - 1. `a`: m rows of folio_block_row_bytes each, 64-byte aligned; m is
 * any. Every level and any m give the same bits of a y, by definition:
 *
 *   y = bias + ((sum[0] + sum[2]) + (sum[1] + sum[3])), where sum[r] is the chain, by ascending
 *   blocks b of b % 4 = r, of sum[r] = fma(D[b], scale[n, b] * a_scale[b], sum[r])
 *
 * from 0, D[b] the sum of a * (code - zero) over the block, which is a whole number below 2^24. */
typedef struct FolioBlockDotsS8 {
  FolioBlockWeights w;
  int64_t m;
  const void* a;
  void* scratch;     /* folio_block_scratch_bytes, 64-byte aligned; may be null if m is 1 */
  const float* bias; /* [n] or null */
  float* y;
  int64_t y_row_stride;
} FolioBlockDotsS8;

/* A rounded row: planes as above of s8, each padded to a multiple of 64 bytes; then of every block,
 * their number padded to a multiple of 16, its scale as a float; then likewise, as int32, what the
 * default zero adds to its D: -2^(bits - 1) times the sum of its integers. The padding is 0. */
static inline int64_t folio_block_plane_bytes(int64_t row_bytes) {
  return (row_bytes + 63) / 64 * 64;
}
static inline int64_t folio_block_padded(int64_t blocks) { return (blocks + 15) / 16 * 16; }
static inline int64_t folio_block_row_bytes(int64_t blocks, int64_t block, int32_t bits) {
  return folio_block_plane_bytes(blocks * block * bits / 8) * (8 / bits) +
         folio_block_padded(blocks) * 8;
}

/* Columns that many rows take at a time, unpacked, with their scales and zeros. */
#define FOLIO_BLOCK_COLUMNS 64
static inline int64_t folio_block_panels_bytes(int64_t blocks, int64_t block, int32_t bits) {
  return FOLIO_BLOCK_COLUMNS * (folio_block_plane_bytes(blocks * block * bits / 8) * (8 / bits) +
                                folio_block_padded(blocks) * 8);
}

/* Rows that are put in the order of tiles at a time, with their scales; then what 32 columns need:
 * of four blocks their elements, scales twice, and sums. */
#define FOLIO_BLOCK_ROWS 128
static inline int64_t folio_block_tiles_bytes(int64_t blocks, int64_t block) {
  return FOLIO_BLOCK_ROWS * folio_block_padded(blocks) * (block + 4) + 32 * 4 * block +
         32 * 4 * (2 * folio_block_padded(blocks) + 4 * FOLIO_BLOCK_ROWS);
}
/* The same rows without padding, behind the panels: their elements, scales and middles. */
static inline int64_t folio_block_ordered_bytes(int64_t blocks, int64_t block) {
  return FOLIO_BLOCK_ROWS * blocks * (block + 8);
}
/* `has_tiles`, `orders_rows`: of levels that do (dots_many_rows, orders_rows). */
static inline int64_t folio_block_scratch_bytes(int64_t blocks, int64_t block, int32_t bits,
                                                int has_tiles, int orders_rows) {
  const int64_t panels = folio_block_panels_bytes(blocks, block, bits) +
                         (orders_rows ? folio_block_ordered_bytes(blocks, block) : 0);
  const int64_t tiles = has_tiles ? folio_block_tiles_bytes(blocks, block) : 0;
  return panels < tiles ? tiles : panels;
}

/* Rows of floats that are put in the order of tiles at a time, as so many numbers of 2 bytes each:
 * a second cache holds them beside all else. A multiple of 32. Then what 32 columns need: of one
 * number, their elements; of more, as above. */
static inline int64_t folio_block_float_rows(int64_t blocks, int64_t block, int parts) {
  const int64_t length = block < 32 ? 32 : block;
  const int64_t group = 32 * folio_block_padded(blocks) * length * 2 * parts;
  const int64_t groups = (3 << 19) / group;
  const int64_t rows = 32 * (groups < 1 ? 1 : groups);
  return rows < FOLIO_BLOCK_ROWS ? rows : FOLIO_BLOCK_ROWS;
}
static inline int64_t folio_block_float_bytes(int64_t blocks, int64_t block, int parts) {
  const int64_t rows = folio_block_float_rows(blocks, block, parts);
  const int64_t padded = folio_block_padded(blocks);
  const int64_t length = block < 32 ? 32 : block;
  const int64_t of_columns = parts == 1 ? 32 * padded * 2 * length
                                        : 32 * 4 * 2 * length + 32 * 4 * (2 * padded + 4 * rows);
  return rows * padded * length * 2 * parts + of_columns;
}
