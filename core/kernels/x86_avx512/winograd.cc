// Transforms of Winograd's convolution: core/kernels/vector on this folder's vec.h.
#include "core/kernels/x86_avx512/x86_avx512.h"

#include "core/kernels/x86_avx512/vec.h"

#include "core/kernels/vector/math.inl"

#include "core/kernels/vector/winograd.inl"

void folio_fill_winograd__x86_avx512(FolioKernels* table) { fill_winograd(table); }
