// Overwrites the slots that this level does better than those before it.
#include "core/kernels/x86_avx512/x86_avx512.h"

extern "C" void folio_fill_x86_avx512(FolioKernels* table);

void folio_fill_x86_avx512(FolioKernels* table) {
  folio_fill_rows__x86_avx512(table);
  folio_fill_gemm__x86_avx512(table);
  folio_fill_window__x86_avx512(table);
  folio_fill_winograd__x86_avx512(table);
  folio_fill_blocks__x86_avx512(table);
}
