/* The files of this folder to each other, and their words: those of AVX2 and a product of bytes. */
#pragma once

#include "core/kernels/kernels.h"

#define FOLIO_LEVEL(name) name##__x86_avxvnni
#include "core/kernels/x86_avx2/vec.h"

#if !defined(__AVXVNNI__)
#error "compile this folder with the flags of its isa.cmake"
#endif

void folio_fill_products__x86_avxvnni(FolioKernels* table);
void folio_fill_blocks__x86_avxvnni(FolioKernels* table);

/* Products of unsigned a and signed w, four by four, added to *sum. In words of its own: g++ 12
 * copies every sum before the intrinsic, and then runs out of registers. */
template <int kAnyWeights = 1>
VFN void dot4(VI* sum, VI a, VI w) {
  __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(*sum) : "x"(a), "x"(w));
}
/* And of words, two by two. */
VFN void dot2(VI* sum, VI a, VI b) {
  __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(*sum) : "x"(a), "x"(b));
}
