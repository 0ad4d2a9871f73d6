// A matrix product whose second operand is made a few columns at a time: for weights that are
// stored in other formats, so that they never stand in memory as a whole.
//
// Math:    as op_gemm.h; B comes from widen(begin, end, panels), which writes columns [begin, end),
//          `begin` a multiple of 16, as F32P16 (kernels.h), zeros beyond `end` included.
// Splits:  columns by shape only, so results do not depend on the number of threads.
#pragma once

#include <algorithm>

#include "core/ops/op_gemm.h"
#include "core/ops/op_scratch.h"

namespace folio {

// Of widened columns a thread: 2 MiB. Many rows take 4 MiB: the rows are packed anew for each tile.
inline constexpr int64_t kTileFloats = 1 << 19;
inline constexpr int64_t kManyRows = 48;

// Columns that are widened at a time.
inline int64_t gemm_tile_columns(const FolioGemmF32& whole) {
  const int64_t depth = std::max<int64_t>(whole.k, 1);
  const int64_t panels = (whole.m < kManyRows ? 1 : 2) * kTileFloats / depth / FOLIO_F32P16_COLUMNS;
  const int64_t share = whole.n / FOLIO_F32P16_COLUMNS / 8;  // of one thread of up to 8
  return std::clamp<int64_t>(std::min(panels, share), 1, 16) * FOLIO_F32P16_COLUMNS;
}

// Fills `given.c`; its b and precision are set here. `widen` is called from many threads.
template <typename Widen>
Status gemm_by_tiles(OpRun& run, const FolioGemmF32& given, const Widen& widen) {
  FolioGemmF32 whole = given;
  whole.precision = product_precision(run.kernels(), whole.m, whole.n, whole.k);
  if (whole.m == 0 || whole.n == 0) return Status::ok();
  const int64_t depth = std::max<int64_t>(whole.k, 1);
  const int64_t columns = gemm_tile_columns(whole);
  const FolioKernels& kernels = run.kernels();
  const auto tile = static_cast<size_t>(columns * depth) * sizeof(float);  // a multiple of 64
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, tile, &scratch));
  const int64_t tiles = (whole.n + columns - 1) / columns;
  run.parallel().for_range(tiles, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    auto* panels = reinterpret_cast<float*>(block.data());
    for (int64_t at = begin; at < end; ++at) {
      const int64_t first = at * columns;
      const int64_t last = std::min(first + columns, whole.n);
      widen(first, last, panels);
      FolioGemmF32 args = gemm_part(whole, 0, whole.m, first, last - first);
      args.b = panels;
      kernels.gemm_f32(&args);
    }
  });
  return Status::ok();
}

}  // namespace folio
