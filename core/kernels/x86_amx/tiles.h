/* Words for tiles, as instructions of this CPU.
 *
 * Assembly of our own instead of g++'s intrinsics: its _tile_loadd does not tell that it reads
 * memory and its _tile_loadconfig tells of 8 bytes of 64, so stores before them may be moved behind
 * them. Each of these is volatile and has a "memory" clobber: the compiler keeps their order among
 * each other and towards all loads and stores. No compiler touches tiles by itself.
 *
 * Tests compile the same kernels over tests/kernels/software_amx/tiles.h instead. */
#pragma once

#include <stdint.h>

#include "core/kernels/x86_amx/tile_shapes.h"

#define FOLIO_TILE_LEVEL(name) name##__x86_amx
#define FOLIO_TILE_WORD static inline __attribute__((always_inline))

/* All tiles become zero. */
FOLIO_TILE_WORD void tiles_configure(const TileShapes* shapes) {
  __asm__ volatile("ldtilecfg %0" : : "m"(*shapes) : "memory");
}

/* The tiles' initial state, which a switch of contexts need not save. */
FOLIO_TILE_WORD void tiles_release() { __asm__ volatile("tilerelease" : : : "memory"); }

template <int kTile>
FOLIO_TILE_WORD void tile_zero() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile) : "memory");
}

/* Row i from p + i * stride; kPassing: what comes from the second cache takes no place in the first
 * one (a hint, which a Xeon of 2023 follows). */
template <int kTile, bool kPassing = false>
FOLIO_TILE_WORD void tile_load(const void* p, int64_t stride) {
  if constexpr (kPassing) {
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(p), "r"(stride), "i"(kTile)
                     : "memory");
  } else {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(p), "r"(stride), "i"(kTile)
                     : "memory");
  }
}

template <int kTile>
FOLIO_TILE_WORD void tile_store(void* p, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
}

/* C[i][j] += sum over p of A[i][4 p + t] * B[p][4 j + t], t < 4; in int32, wrapping. The names'
 * letters: whether the bytes of A, then of B, are signed. */
#define FOLIO_TILE_DOT(name, instruction)                                      \
  template <int kC, int kA, int kB>                                            \
  FOLIO_TILE_WORD void name() {                                                \
    static_assert(kC != kA && kC != kB && kA != kB, "an invalid instruction"); \
    __asm__ volatile(instruction " %%tmm%c2, %%tmm%c1, %%tmm%c0"               \
                     :                                                         \
                     : "i"(kC), "i"(kA), "i"(kB)                               \
                     : "memory");                                              \
  }
FOLIO_TILE_DOT(tile_dot_ss, "tdpbssd")
FOLIO_TILE_DOT(tile_dot_su, "tdpbsud")
FOLIO_TILE_DOT(tile_dot_us, "tdpbusd")
FOLIO_TILE_DOT(tile_dot_uu, "tdpbuud")
/* The same of pairs of bfloat16, in float: a chain of the even and one of the odd elements, added
 * to each other and then to C; what is subnormal counts as zero, and becomes zero. */
FOLIO_TILE_DOT(tile_dot_bf16, "tdpbf16ps")
#undef FOLIO_TILE_DOT
