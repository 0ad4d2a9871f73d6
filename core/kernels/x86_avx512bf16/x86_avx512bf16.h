/* The files of this folder to each other. */
#pragma once

#include "core/kernels/kernels.h"

void folio_fill_gemm__x86_avx512bf16(FolioKernels* table);
