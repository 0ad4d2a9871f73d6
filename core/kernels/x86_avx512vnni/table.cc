// Overwrites the slots that this level does better than those before it.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

extern "C" void folio_fill_x86_avx512vnni(FolioKernels* table);

void folio_fill_x86_avx512vnni(FolioKernels* table) {
  folio_fill_gemm__x86_avx512vnni(table);
  folio_fill_depthwise__x86_avx512vnni(table);
  folio_fill_winograd__x86_avx512vnni(table);
  folio_fill_blocks__x86_avx512vnni(table);
}
