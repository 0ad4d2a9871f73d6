// Overwrites the slot that this level does better than those before it.
#include "core/kernels/x86_avx512bf16/x86_avx512bf16.h"

extern "C" void folio_fill_x86_avx512bf16(FolioKernels* table);

void folio_fill_x86_avx512bf16(FolioKernels* table) { folio_fill_gemm__x86_avx512bf16(table); }
