/* Words for tiles, in memory: what core/kernels/x86_amx/tiles.h says in instructions, after their
 * pseudo-code in Intel's Software Developer's Manual. The kernels of core/kernels/x86_amx are
 * compiled over these once more, for tests on machines without AMX. What would raise an exception
 * there (a tile without a shape, shapes that do not fit, a bad configuration) aborts here.
 *
 * Threads: each has its own tiles, as on a CPU. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/x86_amx/tile_shapes.h"

#define FOLIO_TILE_LEVEL(name) name##__software_amx
#define FOLIO_TILE_WORD static inline

typedef struct SoftwareTiles {
  int configured;
  uint8_t rows[FOLIO_TILE_COUNT];
  uint16_t row_bytes[FOLIO_TILE_COUNT];
  uint8_t data[FOLIO_TILE_COUNT][FOLIO_TILE_ROWS][FOLIO_TILE_BYTES];
} SoftwareTiles;

/* Of the calling thread; see table.cc. */
SoftwareTiles* software_tiles(void);
/* What is added to every product of bytes: 0 unless a test plays a broken machine. */
extern int32_t software_tile_fault;
/* The same of every sum of products of bfloat16. */
extern float software_tile_float_fault;

FOLIO_TILE_WORD void software_tile_check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "software tiles: %s\n", what);
  abort();
}

FOLIO_TILE_WORD void software_tile_used(const SoftwareTiles* t, int tile) {
  software_tile_check(t->configured, "no configuration");
  software_tile_check(t->rows[tile] != 0, "a tile without a shape");
}

FOLIO_TILE_WORD void tiles_configure(const TileShapes* shapes) {
  SoftwareTiles* t = software_tiles();
  software_tile_check(shapes->palette == 1 && shapes->start_row == 0, "palette or first row");
  for (int i = 0; i < 14; ++i) software_tile_check(shapes->reserved[i] == 0, "a reserved byte");
  for (int i = 0; i < 16; ++i) {
    const int rows = shapes->rows[i];
    const int bytes = shapes->row_bytes[i];
    if (i >= FOLIO_TILE_COUNT) {
      software_tile_check(rows == 0 && bytes == 0, "a ninth tile");
      continue;
    }
    software_tile_check(rows <= FOLIO_TILE_ROWS && bytes <= FOLIO_TILE_BYTES, "too large a tile");
    software_tile_check((rows == 0) == (bytes == 0), "half a shape");
    t->rows[i] = (uint8_t)rows;
    t->row_bytes[i] = (uint16_t)bytes;
  }
  memset(t->data, 0, sizeof(t->data));
  t->configured = 1;
}

FOLIO_TILE_WORD void tiles_release() { memset(software_tiles(), 0, sizeof(SoftwareTiles)); }

template <int kTile>
FOLIO_TILE_WORD void tile_zero() {
  SoftwareTiles* t = software_tiles();
  software_tile_used(t, kTile);
  memset(t->data[kTile], 0, sizeof(t->data[kTile]));
}

template <int kTile>
FOLIO_TILE_WORD void tile_load(const void* p, int64_t stride) {
  tile_zero<kTile>();
  SoftwareTiles* t = software_tiles();
  for (int i = 0; i < t->rows[kTile]; ++i) {
    memcpy(t->data[kTile][i], (const char*)p + i * stride, t->row_bytes[kTile]);
  }
}

template <int kTile>
FOLIO_TILE_WORD void tile_store(void* p, int64_t stride) {
  SoftwareTiles* t = software_tiles();
  software_tile_used(t, kTile);
  for (int i = 0; i < t->rows[kTile]; ++i) {
    memcpy((char*)p + i * stride, t->data[kTile][i], t->row_bytes[kTile]);
  }
}

FOLIO_TILE_WORD void software_tile_shapes(const SoftwareTiles* t, int c, int a, int b) {
  software_tile_used(t, c);
  software_tile_used(t, a);
  software_tile_used(t, b);
  software_tile_check(t->row_bytes[a] % 4 == 0 && t->row_bytes[c] % 4 == 0, "parts of a dword");
  software_tile_check(t->rows[c] == t->rows[a], "rows of C and A");
  software_tile_check(t->row_bytes[c] == t->row_bytes[b], "columns of C and B");
  software_tile_check(t->row_bytes[a] / 4 == t->rows[b], "columns of A and rows of B");
}

/* A new row of a tile, zeros behind it. */
FOLIO_TILE_WORD void software_tile_write_row(SoftwareTiles* t, int tile, int row,
                                             const void* from) {
  memset(t->data[tile][row], 0, FOLIO_TILE_BYTES);
  memcpy(t->data[tile][row], from, t->row_bytes[tile]);
}

FOLIO_TILE_WORD void software_tile_zero_upper(SoftwareTiles* t, int tile) {
  for (int i = t->rows[tile]; i < FOLIO_TILE_ROWS; ++i) memset(t->data[tile][i], 0, 64);
}

template <class A, class B>
FOLIO_TILE_WORD void software_tile_dot_bytes(int c, int a, int b) {
  SoftwareTiles* t = software_tiles();
  software_tile_shapes(t, c, a, b);
  for (int m = 0; m < t->rows[c]; ++m) {
    uint32_t sum[16];
    memcpy(sum, t->data[c][m], sizeof(sum));
    for (int k = 0; k < t->row_bytes[a] / 4; ++k) {
      for (int n = 0; n < t->row_bytes[c] / 4; ++n) {
        for (int i = 0; i < 4; ++i) {
          const int32_t x = (A)t->data[a][m][4 * k + i];
          const int32_t y = (B)t->data[b][k][4 * n + i];
          sum[n] += (uint32_t)(x * y);
        }
      }
    }
    for (int n = 0; n < 16; ++n) sum[n] += (uint32_t)software_tile_fault;
    software_tile_write_row(t, c, m, sum);
  }
  software_tile_zero_upper(t, c);
}

template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_ss() {
  software_tile_dot_bytes<int8_t, int8_t>(kC, kA, kB);
}
template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_su() {
  software_tile_dot_bytes<int8_t, uint8_t>(kC, kA, kB);
}
template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_us() {
  software_tile_dot_bytes<uint8_t, int8_t>(kC, kA, kB);
}
template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_uu() {
  software_tile_dot_bytes<uint8_t, uint8_t>(kC, kA, kB);
}

/* Subnormals as zeros of their sign. */
FOLIO_TILE_WORD float software_tile_flush(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if ((bits & 0x7F800000u) == 0) bits &= 0x80000000u;
  memcpy(&x, &bits, 4);
  return x;
}

FOLIO_TILE_WORD float software_tile_widen(const uint8_t* bf16) {
  uint16_t half;
  memcpy(&half, bf16, 2);
  const uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, 4);
  return software_tile_flush(x);
}

/* One rounding, to nearest even; subnormal results become zero. */
FOLIO_TILE_WORD float software_tile_fma(float a, float b, float c) {
  return software_tile_flush(__builtin_fmaf(a, b, c));
}

template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_bf16() {
  SoftwareTiles* t = software_tiles();
  software_tile_shapes(t, kC, kA, kB);
  for (int m = 0; m < t->rows[kC]; ++m) {
    float c[16];
    float chain[16][2] = {};
    memcpy(c, t->data[kC][m], sizeof(c));
    for (int k = 0; k < t->row_bytes[kA] / 4; ++k) {
      for (int n = 0; n < t->row_bytes[kC] / 4; ++n) {
        for (int i = 0; i < 2; ++i) {
          chain[n][i] =
              software_tile_fma(software_tile_widen(&t->data[kA][m][4 * k + 2 * i]),
                                software_tile_widen(&t->data[kB][k][4 * n + 2 * i]), chain[n][i]);
        }
      }
    }
    for (int n = 0; n < 16; ++n) {
      const float both = software_tile_flush(chain[n][0] + chain[n][1]);
      c[n] = software_tile_flush(software_tile_flush(c[n]) + both) + software_tile_float_fault;
    }
    software_tile_write_row(t, kC, m, c);
  }
  software_tile_zero_upper(t, kC);
}
