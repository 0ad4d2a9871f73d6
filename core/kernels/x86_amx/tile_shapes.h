/* What LDTILECFG reads: how many rows of how many bytes each tile has. Of this text's words for
 * tiles, this is what the instructions (tiles.h) and their imitation in memory (tests/kernels/
 * software_amx/tiles.h) have in common. */
#pragma once

#include <stdint.h>

/* Palette 1: eight tiles of at most 16 rows of 64 bytes. Not asked of CPUID leaf 0x1D, which is
 * empty in some virtual machines. */
#define FOLIO_TILE_COUNT 8
#define FOLIO_TILE_ROWS 16
#define FOLIO_TILE_BYTES 64 /* of a row */

typedef struct TileShapes {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} TileShapes;

static_assert(sizeof(TileShapes) == 64, "LDTILECFG reads 64 bytes");
