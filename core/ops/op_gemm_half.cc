#include "core/ops/op_gemm_half.h"

#include <algorithm>

#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr int64_t kHalf = 2;  // bytes

// A piece is two panels of a k block of the kernel: 32 KiB, in L1. It is widened once for all rows
// of a block, which makes that a hundredth of the work if there are as many.
constexpr int64_t kPieceColumns = 32;
constexpr int64_t kBlockColumns = 128;
constexpr int64_t kBlockRows = 384;
// Where a level splits the numbers of A anew for each piece: 256 KiB, in L2.
constexpr int64_t kPartsColumns = 256;
// Of which each thread has some: narrower ones if need be, then of fewer rows.
constexpr int64_t kEnoughChunks = 2;
constexpr int64_t kFewestBlockRows = 96;
// Few rows wait for the bytes of B: chunks of 256 KiB, some 15 us.
constexpr int64_t kFewRows = 4;
constexpr int64_t kChunkBytes = 1 << 18;
// Of rows that are read where they lie.
constexpr int64_t kStreamColumns = 512;
constexpr int64_t kStreamDepth = 16;

class HalfProduct {
 public:
  HalfProduct(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b)
      : kernels_(kernels), args_(args), b_(b) {
    if (folio_multiplies_parts(&kernels, args.precision)) piece_ = kPartsColumns;
  }

  // That share what is done once for a piece.
  int64_t columns() const { return std::max(piece_, kBlockColumns); }

  // Of a thread.
  size_t scratch_bytes() const {
    const auto piece = static_cast<size_t>(kPieceDepth * piece_) * sizeof(float);
    return b_.packed_halves ? piece : 2 * piece;
  }

  // These rows and columns of C. `after`: the column of B that this thread is likely to go on with,
  // -1: none.
  void multiply(int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t after,
                uint8_t* scratch) const {
    const int64_t end = column + columns;
    for (int64_t j = column; j < end; j += piece_) {
      const int64_t next = j + piece_;
      multiply_piece(row, rows, j, std::min(piece_, end - j), next < end ? next : after, scratch);
    }
  }

 private:
  void multiply_piece(int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t after,
                      uint8_t* scratch) const {
    const FolioGemmF32 whole = gemm_part(args_, row, rows, column, columns);
    auto* panels = reinterpret_cast<float*>(scratch);
    multiply_pieces(kernels_, whole, panels, [&](int64_t p, FolioGemmF32* part) {
      const int64_t depth = part->k;
      widen(p, depth, column, columns, panels);
      if (p + depth < args_.k) {
        announce(p + depth, std::min(kPieceDepth, args_.k - p - depth), column, columns, part);
      } else if (after >= 0) {
        announce(0, depth, after, std::min(piece_, args_.n - after), part);
      }
    });
  }

  void widen(int64_t p, int64_t depth, int64_t column, int64_t columns, float* panels) const {
    if (!b_.packed_halves) {
      widen_lines(kernels_, b_.dtype, depth, columns, plain(p, column), b_.row_stride,
                  b_.col_stride, panels + kPieceDepth * piece_, panels);
      return;
    }
    for (int64_t j = 0; j < columns; j += kPanel) {
      widen_panels(kernels_, b_.dtype, depth, kPanel, panel(p, column + j), panels + j * depth);
    }
  }

  const uint8_t* plain(int64_t p, int64_t column) const {
    return static_cast<const uint8_t*>(b_.data) +
           kHalf * (p * b_.row_stride + column * b_.col_stride);
  }
  int64_t rows() const { return panel_rows(b_.dtype, args_.k); }
  const uint8_t* panel(int64_t p, int64_t column) const {
    return b_.packed_halves + kHalf * (column * rows() + p * kPanel);
  }

  void announce(int64_t p, int64_t depth, int64_t column, int64_t columns,
                FolioGemmF32* part) const {
    if (b_.packed_halves) {
      part->next = reinterpret_cast<const char*>(panel(p, column));
      part->next_rows = (columns + kPanel - 1) / kPanel;
      part->next_bytes = kHalf * depth * kPanel;
      part->next_stride = kHalf * rows() * kPanel;
      return;
    }
    set_next(b_, plain(p, column), depth, columns, part);
  }

  const FolioKernels& kernels_;
  const FolioGemmF32& args_;
  const GemmB& b_;
  int64_t piece_ = kPieceColumns;
};

// How C is cut; bits do not depend on it.
struct Blocks {
  int64_t rows = 0;  // numbers of blocks
  int64_t columns = 0;
  int64_t width = 0;  // of columns
};

Blocks blocks_for(const FolioGemmF32& args, int64_t width, int64_t threads) {
  Blocks b;
  b.width = width;
  b.rows = (args.m + kBlockRows - 1) / kBlockRows;
  b.columns = (args.n + b.width - 1) / b.width;
  if (threads == 1) return b;
  const int64_t wanted = kEnoughChunks * threads;
  while (b.rows * b.columns < wanted && b.width > kPieceColumns) {
    b.width /= 2;
    b.columns = (args.n + b.width - 1) / b.width;
  }
  const int64_t most = std::max(b.rows, args.m / kFewestBlockRows);
  b.rows = std::clamp((wanted + b.columns - 1) / b.columns, b.rows, most);
  return b;
}

// Columns of a chunk of all of few rows, in steps.
int64_t chunk_columns(const FolioGemmF32& args, int64_t step) {
  const int64_t columns = kChunkBytes / kHalf / std::max<int64_t>(args.k, 1);
  return std::max(step, columns / step * step);
}

Status multiply_few_rows(OpRun& run, const FolioGemmF32& args, const GemmB& b) {
  const int64_t columns = chunk_columns(args, kBlockColumns);
  if (b.packed_halves) {  // widened in registers
    const int64_t rows = panel_rows(b.dtype, args.k);
    run.parallel().for_range(args.n, columns, [&](int64_t begin, int64_t end) {
      const FolioGemmF32 part = gemm_part(args, 0, args.m, begin, end - begin);
      run.kernels().gemv_b16(&part, b.packed_halves + kHalf * begin * rows,
                             b.dtype == DType::kBfloat16 ? 1 : 0);
    });
    return Status::ok();
  }
  const HalfProduct product(run.kernels(), args, b);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, product.scratch_bytes(), &scratch));
  run.parallel().for_range(args.n, columns, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    product.multiply(0, args.m, begin, end - begin, -1, block.data());
  });
  return Status::ok();
}

// Rows of a plain B, in the order of memory.
Status stream_few_rows(OpRun& run, const FolioGemmF32& args, const GemmB& b) {
  ThreadScratch scratch;
  constexpr size_t kSlab = static_cast<size_t>(kStreamColumns * kStreamDepth) * sizeof(float);
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, kSlab, &scratch));
  const FolioKernels& kernels = run.kernels();
  run.parallel().for_range(args.n, kStreamColumns, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    auto* slab = reinterpret_cast<float*>(block.data());
    for (int64_t j = begin; j < end; j += kStreamColumns) {
      const int64_t columns = std::min(kStreamColumns, end - j);
      const FolioGemmF32 whole = gemm_part(args, 0, args.m, j, columns);
      const auto* from = static_cast<const uint8_t*>(b.data) + kHalf * j;
      for (int64_t p = 0; p < args.k; p += kStreamDepth) {
        const int64_t depth = std::min(kStreamDepth, args.k - p);
        for (int64_t q = 0; q < depth; ++q) {
          widen_halves(kernels, b.dtype, columns, from + kHalf * (p + q) * b.row_stride,
                       slab + q * columns);
        }
        const FolioGemmF32 part = gemm_depth_part(whole, p, depth);
        kernels.gemm_plain_f32(&part, slab, columns);
      }
    }
  });
  return Status::ok();
}

// What no kernel applies, while the block is in the cache.
void activate(const FolioKernels& kernels, const FolioGemmF32& block, const Activation& function) {
  for (int64_t i = 0; i < block.m; ++i) {
    function.apply(kernels, block.n, block.c + i * block.c_row_stride);
  }
}

}  // namespace

Status gemm_halves(OpRun& run, const FolioGemmF32& args, const GemmB& b,
                   const Activation* function) {
  if (args.m <= kFewRows && args.k > 0 && !function) {
    const bool streams = !b.packed_halves && b.col_stride == 1;
    return streams ? stream_few_rows(run, args, b) : multiply_few_rows(run, args, b);
  }
  const HalfProduct product(run.kernels(), args, b);
  const int64_t threads = run.parallel().thread_count();
  const Blocks blocks = blocks_for(args, product.columns(), threads);
  const int64_t chunks = blocks.rows * blocks.columns;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, product.scratch_bytes(), &scratch));
  run.parallel().for_range(chunks, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t row = args.m * (chunk / blocks.columns) / blocks.rows;
      const int64_t row_end = args.m * (chunk / blocks.columns + 1) / blocks.rows;
      const int64_t column = chunk % blocks.columns * blocks.width;
      const int64_t columns = std::min(blocks.width, args.n - column);
      // Others have the chunks between.
      const int64_t after = chunk + threads < chunks ? (chunk + threads) % blocks.columns : -1;
      product.multiply(row, row_end - row, column, columns, after < 0 ? -1 : after * blocks.width,
                       block.data());
      if (!function) continue;
      activate(run.kernels(), gemm_part(args, row, row_end - row, column, columns), *function);
    }
  });
  return Status::ok();
}

}  // namespace folio
