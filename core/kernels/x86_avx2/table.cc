// Overwrites the slots that this level does better than those before it.
#include "core/kernels/x86_avx2/x86_avx2.h"

extern "C" void folio_fill_x86_avx2(FolioKernels* table);

void folio_fill_x86_avx2(FolioKernels* table) {
  folio_fill_rows__x86_avx2(table);
  folio_fill_gemm__x86_avx2(table);
  folio_fill_products__x86_avx2(table);
  folio_fill_window__x86_avx2(table);
  folio_fill_winograd__x86_avx2(table);
  folio_fill_winograd_bytes__x86_avx2(table);
  folio_fill_blocks__x86_avx2(table);
}
