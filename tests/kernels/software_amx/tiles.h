/* Words for tiles, in memory: what core/kernels/x86_amx/tiles.h says in instructions, after their
 * pseudo-code in Intel's Software Developer's Manual. The kernels of core/kernels/x86_amx are
 * compiled over these once more, for tests on machines without AMX. What would raise an exception
 * there (a tile without a shape, shapes that do not fit, a bad configuration) aborts here.
 *
 * Threads: each has its own tiles, as on a CPU. */
#pragma once

#ifdef FOLIO_IDLE_TILES
#include "tests/kernels/software_amx/idle_tiles.h"
#else

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

template <int kTile, bool kPassing = false>
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

/* Tile c += the products of a and b, whose shapes fit: tiles.cc. */
void software_tile_dot_bytes(SoftwareTiles* t, int c, int a, int b, int a_is_signed,
                             int b_is_signed);
void software_tile_dot_bf16(SoftwareTiles* t, int c, int a, int b);

FOLIO_TILE_WORD void software_tile_bytes(int c, int a, int b, int a_is_signed, int b_is_signed) {
  SoftwareTiles* t = software_tiles();
  software_tile_shapes(t, c, a, b);
  software_tile_dot_bytes(t, c, a, b, a_is_signed, b_is_signed);
}

template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_ss() {
  software_tile_bytes(kC, kA, kB, 1, 1);
}
template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_su() {
  software_tile_bytes(kC, kA, kB, 1, 0);
}
template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_us() {
  software_tile_bytes(kC, kA, kB, 0, 1);
}
template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_uu() {
  software_tile_bytes(kC, kA, kB, 0, 0);
}

template <int kC, int kA, int kB>
FOLIO_TILE_WORD void tile_dot_bf16() {
  SoftwareTiles* t = software_tiles();
  software_tile_shapes(t, kC, kA, kB);
  software_tile_dot_bf16(t, kC, kA, kB);
}

#endif
