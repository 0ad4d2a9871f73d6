// Overwrites the slots that this level does better than those before it.
#include "core/kernels/x86_avxvnni/x86_avxvnni.h"

extern "C" void folio_fill_x86_avxvnni(FolioKernels* table);

void folio_fill_x86_avxvnni(FolioKernels* table) {
  folio_fill_products__x86_avxvnni(table);
  folio_fill_blocks__x86_avxvnni(table);
}
