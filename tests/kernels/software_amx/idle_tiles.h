/* Words for tiles that cost what a tile's loads and stores cost, and nothing else: lines are read
 * and zeros stored, products are left out. What a kernel takes over these is what stands beside its
 * products (FOLIO_IDLE_TILES). Its results are nonsense. */
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include "core/kernels/x86_amx/tile_shapes.h"

#define FOLIO_TILE_LEVEL(name) name##__software_amx
#define FOLIO_TILE_WORD static inline __attribute__((always_inline))

FOLIO_TILE_WORD void tiles_configure(const TileShapes*) {}
FOLIO_TILE_WORD void tiles_release() {}

template <int kTile>
FOLIO_TILE_WORD void tile_zero() {}

template <int kTile, bool kPassing = false>
FOLIO_TILE_WORD void tile_load(const void* p, int64_t stride) {
  const char* line = (const char*)p;
#pragma GCC unroll 16
  for (int i = 0; i < FOLIO_TILE_ROWS; ++i, line += stride) {
    __asm__ volatile("vmovups (%0), %%zmm31" : : "r"(line) : "memory", "xmm31");
  }
}

template <int kTile>
FOLIO_TILE_WORD void tile_store(void* p, int64_t stride) {
  char* line = (char*)p;
#pragma GCC unroll 16
  for (int i = 0; i < FOLIO_TILE_ROWS; ++i, line += stride) {
    __asm__ volatile("vmovups %1, (%0)" : : "r"(line), "v"(_mm512_setzero_si512()) : "memory");
  }
}

#define FOLIO_IDLE_DOT(name)        \
  template <int kC, int kA, int kB> \
  FOLIO_TILE_WORD void name() {}
FOLIO_IDLE_DOT(tile_dot_ss)
FOLIO_IDLE_DOT(tile_dot_su)
FOLIO_IDLE_DOT(tile_dot_us)
FOLIO_IDLE_DOT(tile_dot_uu)
FOLIO_IDLE_DOT(tile_dot_bf16)
#undef FOLIO_IDLE_DOT
