// A matrix product whose second operand is made a piece at a time: for weights that are stored in
// other formats, so that they never stand in memory as a whole.
//
// Math:    as op_gemm.h; between the pieces of the depth sums rest in C, which loses nothing. B
//          comes from a tile's writer: write(p, depth, panels) makes elements [p, p + depth) of all
//          the tile's columns as F32P16 (kernels.h), zeros beyond the last one included; p is a
//          multiple of kPieceDepth.
// Memory:  a piece is 512 KiB at most: it stays in L2 beside what the product packs of A.
// Splits:  columns by shape only, so results do not depend on the number of threads.
#pragma once

#include <algorithm>

#include "core/ops/op_gemm.h"
#include "core/ops/op_scratch.h"

namespace folio {

// Deeper pieces are narrower: only where a product sums them before it touches C.
inline int64_t gemm_tile_depth(const FolioKernels& kernels) {
  return std::min<int64_t>(kernels.sum_depth, 2 * kPieceDepth);
}

// Columns of a tile of n: each of up to 8 threads has some. A is packed anew for each.
inline int64_t gemm_tile_columns(const FolioKernels& kernels, int64_t n) {
  constexpr int64_t kPieceFloats = 512 << 10 >> 2;
  const int64_t most = kPieceFloats / gemm_tile_depth(kernels) / FOLIO_F32P16_COLUMNS;
  return std::clamp<int64_t>(n / FOLIO_F32P16_COLUMNS / 8, 1, most) * FOLIO_F32P16_COLUMNS;
}

// Floats of a piece: a multiple of 16.
inline int64_t gemm_piece_floats(const FolioKernels& kernels, int64_t columns, int64_t k) {
  return columns * std::clamp<int64_t>(k, 1, gemm_tile_depth(kernels));
}

// Fills C of one tile; `panels`: memory of a piece. args.b is set here.
template <typename Write>
void multiply_tile(const FolioKernels& kernels, const FolioGemmF32& args, const Write& write,
                   float* panels) {
  multiply_pieces(
      kernels, args, panels, [&](int64_t p, FolioGemmF32* part) { write(p, part->k, panels); },
      gemm_tile_depth(kernels));
}

// Fills `given.c`; its b and precision are set here. open(begin, end) gives the writer of columns
// [begin, end), `begin` a multiple of 16; it is called from many threads.
template <typename Open>
Status gemm_by_tiles(OpRun& run, const FolioGemmF32& given, const Open& open) {
  FolioGemmF32 whole = given;
  whole.precision = product_precision(run.kernels(), whole.m, whole.n, whole.k);
  if (whole.m == 0 || whole.n == 0) return Status::ok();
  const int64_t columns = gemm_tile_columns(run.kernels(), whole.n);
  const auto piece =
      static_cast<size_t>(gemm_piece_floats(run.kernels(), columns, whole.k)) * sizeof(float);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, piece, &scratch));
  run.parallel().for_range((whole.n + columns - 1) / columns, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    auto* panels = reinterpret_cast<float*>(block.data());
    for (int64_t at = begin; at < end; ++at) {
      const int64_t first = at * columns;
      const int64_t last = std::min(first + columns, whole.n);
      const auto write = open(first, last);
      multiply_tile(run.kernels(), gemm_part(whole, 0, whole.m, first, last - first), write,
                    panels);
    }
  });
  return Status::ok();
}

}  // namespace folio
