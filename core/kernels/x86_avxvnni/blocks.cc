// Weights of small integers in blocks times rows of 8-bit integers.
#include "core/kernels/x86_avxvnni/x86_avxvnni.h"

constexpr int kTileRows = 6;
constexpr int kTilePanels = 2;

#include "core/kernels/vector/block_rows.inl"
#include "core/kernels/vector/turn.inl"

template <int kBits>
VFN void add_dots(VI* dots, VI codes, const VI* x) {
  dot4(dots, low_codes<kBits>(codes), x[0]);
  if (kBits == 4) dot4(dots, high_codes(codes), x[1]);
}

template <int kBits>
VFN void prepare_x(VI low, VI high, VI* x) {
  x[0] = low;
  x[1] = high;
}

#include "core/kernels/vector/block_pairs.inl"
#include "core/kernels/vector/block_quads.inl"

void folio_fill_blocks__x86_avxvnni(FolioKernels* table) { table->block_dots_s8 = block_dots_s8; }
