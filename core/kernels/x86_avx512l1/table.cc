// Overwrites the slots that this level does better than those before it.
#include "core/kernels/x86_avx512/x86_avx512.h"

extern "C" void folio_fill_x86_avx512l1(FolioKernels* table);

void folio_fill_x86_avx512l1(FolioKernels* table) { table->gemm_f32 = gemm_f32_narrow__x86_avx512; }
