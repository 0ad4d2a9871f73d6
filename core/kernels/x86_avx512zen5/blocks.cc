// One row of weights of 4 bits in blocks: fetched to the first cache, which keeps enough lines in
// flight (2026-11, Zen 5: a decoder's token 16.0 -> 15.3 ms).
#include "core/kernels/x86_avx512/x86_avx512.h"
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

constexpr int64_t kAhead = 8 * 1024;
constexpr auto kFetchHint = _MM_HINT_T0;
#include "core/kernels/x86_avx512vnni/blocks.inl"

static void block_dots_s8__x86_avx512zen5(const FolioBlockDotsS8* args) {
  if (args->m != 1 || args->w.bits != 4) return block_dots_s8__x86_avx512vnni(args);
  dot_one_row<4>(args, Shape(args->w));
}

extern "C" void folio_fill_x86_avx512zen5(FolioKernels* table);

void folio_fill_x86_avx512zen5(FolioKernels* table) {
  table->block_dots_s8 = block_dots_s8__x86_avx512zen5;
  table->gemm_f32 = gemm_f32_linked__x86_avx512; /* two products begin in a cycle */
}
