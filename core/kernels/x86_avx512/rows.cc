// Element-wise maps, reductions, softmax, normalisations and quantization: core/kernels/vector on
// this folder's vec.h.
#include "core/kernels/x86_avx512/x86_avx512.h"

#include "core/kernels/x86_avx512/vec.h"

#include <math.h>

#include "core/kernels/vector/math.inl"

#include "core/kernels/vector/elementwise.inl"

#include "core/kernels/vector/pow.inl"

#include "core/kernels/vector/trig.inl"

#include "core/kernels/vector/doubles.inl"

#include "core/kernels/vector/rows.inl"

#include "core/kernels/vector/turn.inl"

#include "core/kernels/vector/softmax.inl"

#include "core/kernels/vector/reduce.inl"

#include "core/kernels/vector/byte_sum.inl"

#include "core/kernels/vector/bytes.inl"

void folio_fill_rows__x86_avx512(FolioKernels* table) {
  fill_elementwise(table);
  fill_pow(table);
  fill_trig(table);
  fill_doubles(table);
  fill_rows(table);
  fill_softmax(table);
  fill_reductions(table);
  fill_bytes(table);
}
