// Weights of small integers in blocks times rows of 8-bit integers.
#include "core/kernels/x86_avxvnni/x86_avxvnni.h"

constexpr int kTileRows = 6;
constexpr int kTilePanels = 2;
constexpr int64_t kAhead = 3 * 1024;
constexpr auto kFetchHint = _MM_HINT_T0;
template <int kBits>
constexpr bool kIsCentred = false;

#include "core/kernels/vector/block_rows.inl"
#include "core/kernels/vector/turn.inl"

template <int kBits>
VFN void add_dots(VI* dots, VI codes, VI low, VI high) {
  dot4(dots, low_codes<kBits>(codes), low);
  if (kBits == 4) dot4(dots, high_codes(codes), high);
}

#include "core/kernels/vector/block_pairs.inl"

void folio_fill_blocks__x86_avxvnni(FolioKernels* table) {
  table->block_dots_s8 = block_dots_s8;
  table->orders_rows = 1;
}
