// The tiles in memory as the level x86_amx of a whole library: FOLIO_SOFTWARE_AMX.
#include "tests/kernels/software_amx/software_amx.h"

extern "C" void folio_fill_x86_amx(FolioKernels*);
extern "C" int folio_check_x86_amx(void);

void folio_fill_x86_amx(FolioKernels* table) { fill_software_amx(table); }

int folio_check_x86_amx(void) { return software_tiles_work(0, 0); }
