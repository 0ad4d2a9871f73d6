/* The files of this folder to each other. */
#pragma once

#include "core/kernels/kernels.h"

void folio_fill_rows__x86_avx512(FolioKernels* table);
void folio_fill_gemm__x86_avx512(FolioKernels* table);
void folio_fill_window__x86_avx512(FolioKernels* table);
void folio_fill_winograd__x86_avx512(FolioKernels* table);
void folio_fill_blocks__x86_avx512(FolioKernels* table);

/* For levels above that leave some to this one. */
void gemm_f32__x86_avx512(const FolioGemmF32* args);
void block_dots_f32__x86_avx512(const FolioBlockDotsF32* args);

/* The same bits, for a first cache of few ways, and where two products begin in a cycle as well. */
void gemm_f32_narrow__x86_avx512(const FolioGemmF32* args);
void gemm_f32_linked__x86_avx512(const FolioGemmF32* args);
