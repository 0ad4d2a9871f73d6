/* What the files of ref/ share: declarations of the slot functions that table.cc installs. */
#pragma once

#include <string.h>

#include "core/kernels/kernels.h"

/* memset, which must not get null, of outputs that may be: those without elements. */
static inline void fill_zeros(void* to, int64_t bytes) {
  if (bytes > 0) memset(to, 0, (size_t)bytes);
}

static inline float activate(int32_t activation, float lo, float hi, float v) {
  if (activation == kFolioActRelu) return v < 0.0f ? 0.0f : v;
  if (activation == kFolioActClip) {
    v = v < lo ? lo : v;
    v = v > hi ? hi : v;
  }
  if (activation == kFolioActLeakyRelu) return v < 0.0f ? v * lo : v;
  return v;
}

void fill_pack__ref(FolioKernels* table);
void gemm_f32__ref(const FolioGemmF32* args);
void dots_f32__ref(const FolioGemmF32* args);
void gemm_plain_f32__ref(const FolioGemmF32* args, const void* b, int64_t b_row_stride);
void gemv_b16__ref(const FolioGemmF32* args, const void* b, int32_t is_bfloat16);
void gemm_f64__ref(const FolioGemmF64* args);
void f16_to_f32__ref(int64_t n, const void* x, float* y);
void bf16_to_f32__ref(int64_t n, const void* x, float* y);
void fill_elementwise__ref(FolioKernels* table);
void fill_rows__ref(FolioKernels* table);
void fill_convert__ref(FolioKernels* table);
void fill_bytes__ref(FolioKernels* table);
void fill_winograd_bytes__ref(FolioKernels* table);
/* What FolioSums makes of the products of row i and column j; `c` is the row's. */
void store_sum__ref(const FolioSums* s, uint32_t products, int64_t i, int64_t j, void* c);
/* So many elements behind c. */
static inline void* row_of(const FolioSums* s, void* c, int64_t elements) {
  return static_cast<char*>(c) + elements * (s->to == kFolioToByte ? 1 : 4);
}
void fill_window__ref(FolioKernels* table);
void fill_winograd__ref(FolioKernels* table);
void fill_blocks__ref(FolioKernels* table);
