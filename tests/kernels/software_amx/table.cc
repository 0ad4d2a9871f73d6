// The level of tiles in memory.
#include "tests/kernels/software_amx/software_amx.h"

#include "tests/kernels/software_amx/tiles.h"

#include "core/kernels/x86_amx/x86_amx.h"
#ifndef FOLIO_IDLE_TILES
#include "core/kernels/x86_amx/check.inl"
#endif

void fill_software_amx(FolioKernels* table) {
  folio_fill_gemm__software_amx(table);
  folio_fill_float__software_amx(table);
  folio_fill_blocks__software_amx(table);
}

#ifdef FOLIO_IDLE_TILES
int software_tiles_work(int32_t, float) { return 1; }
#else
static thread_local SoftwareTiles tiles_of_thread;
int32_t software_tile_fault = 0;
float software_tile_float_fault = 0;

SoftwareTiles* software_tiles(void) { return &tiles_of_thread; }

int software_tiles_work(int32_t fault, float float_fault) {
  software_tile_fault = fault;
  software_tile_float_fault = float_fault;
  const int works = folio_tiles_work__software_amx();
  software_tile_fault = 0;
  software_tile_float_fault = 0;
  return works;
}
#endif
