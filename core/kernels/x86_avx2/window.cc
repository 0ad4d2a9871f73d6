// Filters of one channel each and pooling, channels side by side: core/kernels/vector on this folder's
// vec.h.
#include "core/kernels/x86_avx2/x86_avx2.h"

#include "core/kernels/x86_avx2/vec.h"

#include "core/kernels/vector/math.inl"

#include "core/kernels/vector/window.inl"

void folio_fill_window__x86_avx2(FolioKernels* table) { fill_window(table); }
