// Overwrites the slots that this level does better than those before it, and says whether the
// machine's tiles are to be trusted.
#include <sys/syscall.h>
#include <unistd.h>

#include "core/kernels/x86_amx/tiles.h"

#include "core/kernels/x86_amx/check.inl"

extern "C" void folio_fill_x86_amx(FolioKernels*);
extern "C" int folio_check_x86_amx(void);

void folio_fill_x86_amx(FolioKernels* table) {
  folio_fill_gemm__x86_amx(table);
  folio_fill_float__x86_amx(table);
  folio_fill_blocks__x86_amx(table);
}

// A table may be filled for a CPU that is not this one; without the kernel's leave to use tiles
// there is nothing that could be tried.
int folio_check_x86_amx(void) {
  constexpr long kArchGetXcompPerm = 0x1022;
  constexpr int kTileData = 18;
  unsigned long long granted = 0;
  if (syscall(SYS_arch_prctl, kArchGetXcompPerm, &granted) != 0) return 1;
  if ((granted >> kTileData & 1) == 0) return 1;
  return folio_tiles_work__x86_amx();
}
