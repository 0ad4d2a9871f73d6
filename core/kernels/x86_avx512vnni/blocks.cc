// Weights of small integers in blocks times rows of 8-bit integers.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

/* Best of 256 bytes to 32 KiB, and of all caches (2026-11, Zen 4). */
constexpr int64_t kAhead = 8 * 1024;
constexpr auto kFetchHint = _MM_HINT_T1;
#include "core/kernels/x86_avx512vnni/blocks.inl"

void block_dots_s8__x86_avx512vnni(const FolioBlockDotsS8* args) { block_dots_s8(args); }

void folio_fill_blocks__x86_avx512vnni(FolioKernels* table) {
  table->block_dots_s8 = block_dots_s8__x86_avx512vnni;
  table->orders_rows = 1;
}
