#include "core/ops/op_gemm.h"

#include <cstring>

#include "core/base/checked_math.h"
#include "core/ops/op_evaluate.h"
#include "core/ops/op_gemm_half.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;

// About 4 million multiply-adds a chunk, some 50 us on one AVX-512 core, so that a stolen core
// costs little, all threads end at once, and hand-out costs nothing; 128 columns at least, as a
// kernel may copy rows for each chunk. Of few rows 512 KiB of B: 20 to 30 us.
constexpr ChunkRule kRule = {4 << 20, 1 << 17, 128, 512, kThreadMacs, 1 << 14};
// Of rows that are packed, or cut into parts, for each chunk more columns repay that.
constexpr ChunkRule kPackingRule = {4 << 20, 1 << 17, 512, 512, kThreadMacs, 1 << 14};
// A plain B is packed a piece at a time, which stays in L2 (128 KiB) beside the piece that comes
// next; for few rows in L1.
constexpr int64_t kPieceColumns = 128;
constexpr int64_t kNearBytes = 1 << 20;  // of B: what L2 may still have of it from the run before
constexpr int64_t kPassRows = 192;       // that a pass over B serves
constexpr int64_t kFewRows = 4;
constexpr int64_t kFewFarRows = 24;           // of a weight that comes from memory, in its order
constexpr int64_t kMostPlainDepth = 1 << 14;  // of A that may be copied
constexpr int64_t kFewColumns = 32;
constexpr int64_t kMostDotColumns = 4;
constexpr int64_t kStreamColumns = 512;  // at least, of rows that are read where they lie
constexpr int64_t kFarFloats = 1 << 21;  // of such rows: they come from memory

// Of A that is copied: rows for a block, floats between two.
constexpr int64_t kCopiedRows = 252;
constexpr int64_t kCopyStride = kPieceDepth + kPanel;
constexpr size_t kCopyBytes = kCopiedRows * kCopyStride * sizeof(float);

// A that stands in a file may be anywhere; kernels want floats where floats can be.
bool is_aligned(const float* a) { return reinterpret_cast<uintptr_t>(a) % alignof(float) == 0; }

// Elements [p, p + part->k) of the rows of A, which are contiguous.
void copy_a(const FolioGemmF32& args, int64_t p, float* copy, FolioGemmF32* part) {
  const auto* from = reinterpret_cast<const char*>(args.a);
  for (int64_t i = 0; i < args.m; ++i) {
    std::memcpy(copy + i * kCopyStride, from + 4 * (i * args.a_row_stride + p),
                static_cast<size_t>(part->k) * sizeof(float));
  }
  part->a = copy;
  part->a_row_stride = kCopyStride;
}

constexpr size_t piece_bytes(int64_t columns) {
  return static_cast<size_t>(kPieceDepth * columns) * sizeof(float);
}

// The columns of `args`, of B at `data`. `columns_after`: of B that this thread multiplies by after
// these. `copy`: for A, or null.
void multiply_plain_pieces(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b,
                           const char* data, int64_t columns_after, float* packed, float* copy) {
  multiply_pieces(kernels, args, packed, [&](int64_t p, FolioGemmF32* part) {
    const int64_t left = args.k - p - part->k;
    if (left > 0) {
      set_next(b, data + 4 * (p + part->k) * b.row_stride, std::min(kPieceDepth, left), part->n,
               part);
    } else if (columns_after > 0) {
      set_next(b, data + 4 * part->n * b.col_stride, std::min(kPieceDepth, args.k), columns_after,
               part);
    }
    kernels.pack_f32p16(part->k, part->n, data + 4 * p * b.row_stride, b.row_stride, b.col_stride,
                        packed);
    if (copy) copy_a(args, p, copy, part);
  });
}

// What it repays to wake a thread for is in a product so often.
double units_of(const ChunkRule& rule, int64_t m, int64_t n, int64_t k) {
  const double weights = static_cast<double>(n) * static_cast<double>(k);
  const double by_macs = static_cast<double>(m) * weights / static_cast<double>(rule.least_macs);
  const double by_weights = weights / static_cast<double>(rule.least_weights);
  return std::max(by_macs, by_weights);
}

// What one thread multiplies at once. Rows that a kernel copies it copies once so, and waits once
// for panels that nothing fetched ahead.
ProductChunk all_columns(int64_t m, int64_t n) {
  const int64_t parts = (m + kPassRows - 1) / kPassRows;
  return {(m + parts - 1) / parts, panel_columns(n)};
}

// Columns [begin, end) of C, all rows; after them this thread goes on up to `known_end`.
void multiply_columns(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b,
                      int64_t begin, int64_t end, int64_t known_end, int64_t columns, float* packed,
                      float* copy) {
  const int64_t rows = copy ? kCopiedRows : args.m;
  for (int64_t j = begin; j < end; j += columns) {
    const int64_t count = std::min(columns, end - j);
    const auto* data = static_cast<const char*>(b.data) + 4 * j * b.col_stride;
    for (int64_t i = 0; i < args.m; i += rows) {
      multiply_plain_pieces(kernels, gemm_part(args, i, std::min(rows, args.m - i), j, count), b,
                            data, std::min(columns, known_end - j - count), packed, copy);
    }
  }
}

// As many pieces as lets threads end together; of many it makes no difference.
int64_t piece_columns(int64_t n, int threads) {
  constexpr int64_t kFewPieces = 8;  // a thread
  const int64_t pieces = (n + kPieceColumns - 1) / kPieceColumns;
  if (threads == 1 || pieces > kFewPieces * threads) return kPieceColumns;
  const int64_t even = (pieces + threads - 1) / threads * threads;
  return std::max(kFewColumns, panel_columns((n + even - 1) / even));
}

// B as it stands: each piece of it is packed once and used for all rows; or, where there are fewer
// pieces than threads, by each thread for some of them.
Status multiply_plain(OpRun& run, const FolioGemmF32& args, const GemmB& b) {
  const bool copies = !is_aligned(args.a);
  const int threads = run.parallel().thread_count();
  const int64_t columns = piece_columns(args.n, threads);
  const int64_t pieces = (args.n + columns - 1) / columns;
  const double units = units_of(kRule, args.m, panel_columns(args.n), args.k);
  const int64_t parts = std::max<int64_t>(1, thread_parts(units, threads) / pieces);
  const int64_t rows = (args.m + parts - 1) / parts;
  const size_t piece = piece_bytes(columns);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, piece + (copies ? kCopyBytes : 0), &scratch));
  const auto multiply = [&](int64_t row, int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    const int64_t known_end = threads == 1 ? args.n : end;
    auto* copy = copies ? reinterpret_cast<float*>(block.data() + piece) : nullptr;
    multiply_columns(run.kernels(), gemm_part(args, row, std::min(rows, args.m - row), 0, args.n),
                     b, begin, end, known_end, columns, reinterpret_cast<float*>(block.data()),
                     copy);
  };
  if (parts == 1) {
    run.parallel().for_range(args.n, columns,
                             [&](int64_t begin, int64_t end) { multiply(0, begin, end); });
    return Status::ok();
  }
  run.parallel().for_range((args.m + rows - 1) / rows * pieces, 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const int64_t begin = i % pieces * columns;
      multiply(i / pieces * rows, begin, std::min(begin + columns, args.n));
    }
  });
  return Status::ok();
}

// At most kFewRows rows times a B that is not packed: reads B once, in the order of memory.
Status multiply_few_rows(OpRun& run, const FolioGemmF32& args, const GemmB& b) {
  const FolioKernels& kernels = run.kernels();
  const bool streams = b.col_stride == 1;
  const int64_t floor = streams ? kStreamColumns : kFewColumns;
  const int64_t columns = std::max(floor, few_rows_columns(kRule, args.m, args.k) / floor * floor);
  ThreadScratch scratch;
  const size_t piece = streams ? 0 : piece_bytes(kFewColumns);
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, piece, &scratch));
  run.parallel().for_range(args.n, columns, [&](int64_t begin, int64_t end) {
    if (streams) {
      FolioGemmF32 part = gemm_part(args, 0, args.m, begin, end - begin);
      // Out of the next cache, rows that are fetched ahead take longer.
      part.b_is_far = part.k * part.n >= kFarFloats ? 1 : 0;
      kernels.gemm_plain_f32(&part, static_cast<const char*>(b.data) + 4 * begin, b.row_stride);
      return;
    }
    const ThreadScratch::Block block(scratch);
    multiply_columns(kernels, args, b, begin, end, end, kFewColumns,
                     reinterpret_cast<float*>(block.data()), nullptr);
  });
  return Status::ok();
}

bool is_few_columns(int64_t n, bool contiguous) {
  return n == 1 || (contiguous && n <= kMostDotColumns);
}

// Few columns that lie in B one behind the other, [n, k], and are never packed: each element a sum
// over neighbours, instead of a panel that is mostly padding.
bool takes_dots(const FolioGemmF32& args, const GemmB& b) {
  const bool fits = b.unpacked && !is_half(b.dtype) && b.row_stride == 1 && args.k > 0 &&
                    is_few_columns(args.n, b.col_stride == args.k);
  const bool lies = args.a_col_stride == 1 && args.c_row_stride == args.n && is_aligned(args.a);
  return fits && lies && !args.accumulate && !args.row_bias &&
         (!args.addend || args.addend_row_stride == args.n);
}

Status multiply_dots(OpRun& run, const FolioGemmF32& args, const GemmB& b) {
  constexpr int64_t kEnd = 80;  // multiply-adds that take as long as adding the lanes of a sum
  const int64_t work = args.n * (args.k + kEnd);
  const int64_t rows = panel_columns(std::max<int64_t>(1, kThreadMacs / work));
  run.parallel().for_range(args.m, rows, [&](int64_t begin, int64_t end) {
    FolioGemmF32 part = gemm_part(args, begin, end - begin, 0, args.n);
    part.b = static_cast<const float*>(b.data);
    run.kernels().dots_f32(&part);
  });
  return Status::ok();
}

// Rows of up to four numbers times as many columns (points that are turned, colors that are mixed):
// panels would be mostly padding, and rows end at every turn.
constexpr int64_t kPointNumbers = 4;
bool are_points(const FolioGemmF32& args, const GemmB& b) {
  constexpr int64_t kFewest = 64;
  const bool fits = args.m >= kFewest && args.k > 1 && args.k <= kPointNumbers &&
                    args.n <= kPointNumbers && b.dtype == DType::kFloat;
  const bool lies = args.a_col_stride == 1 && args.a_row_stride == args.k &&
                    args.c_row_stride == args.n && is_aligned(args.a);
  return fits && lies && args.alpha == 1 && !args.accumulate && !args.row_bias && !args.col_scale &&
         !args.addend && args.activation == kFolioActNone;
}

// The numbers of some rows apart from each other, each column as a sum of such rows, and back.
Status multiply_points(OpRun& run, const FolioGemmF32& args, const GemmB& b) {
  constexpr int64_t kPiece = 512;
  constexpr int64_t kFloatBytes = sizeof(float);
  float w[kPointNumbers][kPointNumbers];
  for (int64_t j = 0; j < args.n; ++j) {
    for (int64_t p = 0; p < args.k; ++p) {
      const int64_t at = b.packed ? p * kPanel + j : p * b.row_stride + j * b.col_stride;
      const void* const from = b.packed ? static_cast<const void*>(b.packed) : b.data;
      std::memcpy(&w[j][p], static_cast<const char*>(from) + at * kFloatBytes, kFloatBytes);
    }
  }
  const FolioKernels& kernels = run.kernels();
  constexpr int64_t kOffsets[kPointNumbers] = {0, kPiece, 2 * kPiece, 3 * kPiece};
  run.parallel().for_range(args.m, 8 * kPiece, [&](int64_t begin, int64_t end) {
    float x[kPointNumbers * kPiece];
    float y[kPointNumbers * kPiece];
    for (int64_t row = begin; row < end; row += kPiece) {
      const int64_t count = std::min(kPiece, end - row);
      float* const c = args.c + row * args.n;
      kernels.transpose_b32(count, args.k, args.a + row * args.k, args.k, x, kPiece);
      for (int64_t j = 0; j < args.n; ++j) {
        float* const to = args.n == 1 ? c : y + j * kPiece;
        kernels.shifted_sum_f32(count, args.k, w[j], kOffsets, x, 0.0F, to);
        if (!args.col_bias) continue;
        kernels.binary_f32[kFolioAdd](count, to, 1, args.col_bias + j, 0, to);
      }
      if (args.n > 1) kernels.transpose_b32(args.n, count, y, kPiece, c, args.n);
    }
  });
  return Status::ok();
}

// Of depth 1: rows of B, each times a number.
bool is_outer(const FolioGemmF32& args, const GemmB& b) {
  return b.unpacked && !is_half(b.dtype) && args.k == 1 && b.col_stride == 1 && !args.accumulate &&
         !args.row_bias && !args.col_bias && !args.col_scale && !args.addend &&
         args.activation == kFolioActNone && is_aligned(args.a) &&
         is_aligned(static_cast<const float*>(b.data));
}

Status multiply_outer(OpRun& run, const FolioGemmF32& args, const GemmB& b) {
  const auto multiply = run.kernels().binary_f32[kFolioMul];
  const int64_t rows = std::max<int64_t>(1, kThreadMacs / args.n);
  run.parallel().for_range(args.m, rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float factor = args.alpha * args.a[i * args.a_row_stride];
      multiply(args.n, &factor, 0, static_cast<const float*>(b.data), 1,
               args.c + i * args.c_row_stride);
    }
  });
  return Status::ok();
}

// A row times a B whose columns are contiguous and never packed: the row is the only column of a
// product of these.
bool is_turned_row(const FolioGemmF32& args, const GemmB& b) {
  return b.unpacked && !is_half(b.dtype) && args.m == 1 && b.row_stride == 1 && args.k > 0 &&
         args.a_col_stride == 1 && is_aligned(args.a) &&
         is_aligned(static_cast<const float*>(b.data)) && !args.accumulate && !args.row_bias &&
         !args.col_scale && !(args.col_bias && args.addend);
}

// Columns [begin, end).
void multiply_turned_row(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b,
                         int64_t begin, int64_t end) {
  FolioGemmF32 turned = args;
  turned.m = end - begin;
  turned.n = 1;
  turned.a = static_cast<const float*>(b.data) + begin * b.col_stride;
  turned.a_row_stride = b.col_stride;
  turned.b = args.a;
  turned.c = args.c + begin;
  turned.c_row_stride = turned.addend_row_stride = 1;
  const float* const added = args.addend ? args.addend : args.col_bias;
  turned.addend = added ? added + begin : nullptr;
  turned.col_bias = nullptr;
  kernels.dots_f32(&turned);
}

// body(part, first column) for each chunk of C.
template <typename Body>
void for_each_chunk(OpRun& run, const FolioGemmF32& args, const ProductChunk& size, Body&& body) {
  const int64_t row_blocks = (args.m + size.rows - 1) / size.rows;
  const int64_t col_blocks = (args.n + size.columns - 1) / size.columns;
  run.parallel().for_range(row_blocks * col_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t row = chunk / col_blocks * size.rows;
      const int64_t col = chunk % col_blocks * size.columns;
      FolioGemmF32 part = gemm_part(args, row, std::min(size.rows, args.m - row), col,
                                    std::min(size.columns, args.n - col));
      body(&part, col);
    }
  });
}

Status multiply_packed(OpRun& run, const FolioGemmF32& args, DType dtype, const uint8_t* packed) {
  const FolioKernels& kernels = run.kernels();
  const int64_t column_bytes = panel_element_bytes(dtype) * panel_rows(dtype, args.k);
  const int threads = run.parallel().thread_count();
  const bool is_split = folio_multiplies_parts(&kernels, args.precision) != 0;
  const bool stays = args.a_col_stride == 1 && !is_split;
  // Of few rows a kernel would take eight panels side by side, which are slower than the four of a
  // chunk: 1 x 25088 x 4096 11.8 ms and 11.6, Zen 5.
  const bool at_once = threads == 1 && args.m > kFewRows;
  const ProductChunk size =
      is_split  ? parts_chunk(args.m, args.n, args.k, threads)
      : at_once ? all_columns(args.m, args.n)
                : product_chunk(stays ? kRule : kPackingRule, args.m, args.n, args.k, threads);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, is_split ? FOLIO_GEMM_SCRATCH : 0, &scratch));
  for_each_chunk(run, args, size, [&](FolioGemmF32* part, int64_t col) {
    const ThreadScratch::Block block(scratch);
    part->b = reinterpret_cast<const float*>(packed + col * column_bytes);
    part->b_goes_on = col + part->n < args.n ? 1 : 0;
    part->scratch = is_split ? block.data() : nullptr;
    kernels.gemm_f32(part);
  });
  return Status::ok();
}

// A weight comes from memory: in its order, unless there are some rows or all of it is small.
bool stays_in_place(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b) {
  const bool has_rows = b.col_stride == 1 && args.a_col_stride == 1;
  constexpr int64_t kSmall = 16 << 10;  // floats
  const bool is_near = b.unpacked || args.m >= kFewFarRows || args.n * args.k <= kSmall;
  return has_rows && is_near && reads_in_place(kernels, args.m, args.n, args.k);
}

Status multiply_in_place(OpRun& run, const FolioGemmF32& given, const GemmB& b) {
  FolioGemmF32 args = given;
  uint8_t* copy = nullptr;
  if (!is_aligned(args.a)) {
    FOLIO_TRY(copy, run.scratch(static_cast<size_t>(args.m * args.k) * sizeof(float)));
    const auto* from = reinterpret_cast<const char*>(args.a);
    const auto row_bytes = static_cast<size_t>(args.k) * sizeof(float);
    for (int64_t i = 0; i < args.m; ++i) {
      std::memcpy(copy + static_cast<size_t>(i) * row_bytes, from + 4 * i * args.a_row_stride,
                  row_bytes);
    }
    args.a = reinterpret_cast<const float*>(copy);
    args.a_row_stride = args.k;
  }
  const FolioKernels& kernels = run.kernels();
  const int threads = run.parallel().thread_count();
  const ProductChunk size = threads == 1 ? all_columns(args.m, args.n)
                                         : product_chunk(kRule, args.m, args.n, args.k, threads);
  const auto* data = static_cast<const char*>(b.data);
  for_each_chunk(run, args, size, [&](FolioGemmF32* part, int64_t col) {
    kernels.gemm_plain_f32(part, data + 4 * col, b.row_stride);
  });
  if (copy) run.give_back(copy);
  return Status::ok();
}

// What a chunk takes, in items of rows times items of columns: those, and so many for each item of
// a row or a column.
struct ChunkCost {
  int64_t item;
  double ends;
};

int64_t parts_of(int64_t count, int64_t part) { return (count + part - 1) / part; }

// What the last thread takes.
double chunks_time(const ChunkCost& cost, const ProductChunk& chunk, int64_t m, int64_t all,
                   int threads) {
  const int64_t chunks = parts_of(m, chunk.rows) * parts_of(all, chunk.columns);
  const auto rows = static_cast<double>(parts_of(chunk.rows, cost.item));
  const auto columns = static_cast<double>(parts_of(chunk.columns, cost.item));
  // One chunk a thread leaves nobody anything to help a late thread with.
  const double late = chunks < 2 * threads ? 1.06 : 1;
  return static_cast<double>(parts_of(chunks, threads)) * late *
         (rows * columns + cost.ends * (rows + columns));
}

// So many parts of the rows and blocks of the columns at least, and how many counts of each.
struct ChunkTries {
  int64_t parts;
  int64_t blocks;
  int64_t count;
};

// `given` or, of those chunks, the ones with which the last thread ends first: two threads take as
// long for three as for four. cut(parts, blocks) makes them, of no rows where there are to be none.
template <typename Cut>
ProductChunk soonest_chunks(const ChunkCost& cost, const ProductChunk& given, int64_t m,
                            int64_t all, const ChunkTries& tries, int threads, const Cut& cut) {
  ProductChunk best = given;
  double least = chunks_time(cost, given, m, all, threads);
  for (int64_t r = tries.parts; r < tries.parts + tries.count; ++r) {
    for (int64_t b = tries.blocks; b < tries.blocks + tries.count; ++b) {
      const ProductChunk chunk = cut(r, b);
      if (chunk.rows == 0) continue;
      const double time = chunks_time(cost, chunk, m, all, threads);
      if (time >= least) continue;
      least = time;
      best = chunk;
    }
  }
  return best;
}

// A few chunks, up to `most`, with which threads end together. Never larger than `given`.
ProductChunk even_chunks(const ProductChunk& given, int64_t m, int64_t all, int64_t most,
                         int threads) {
  constexpr ChunkCost kCost = {1, 8};
  constexpr int64_t kTries = 4;
  constexpr int64_t kFewestRows = 24;
  constexpr int64_t kFewestColumns = 4 * kPanel;
  constexpr int64_t kFewChunks = 8;  // a thread
  if (threads == 1 || m == 0 || all == 0) return given;
  const int64_t parts = parts_of(m, given.rows);
  const int64_t blocks = parts_of(all, given.columns);
  if (parts * blocks >= kFewChunks * threads) return given;
  return soonest_chunks(
      kCost, given, m, all, {parts, blocks, kTries}, threads, [&](int64_t r, int64_t b) {
        const ProductChunk chunk = {parts_of(m, r), panel_columns(parts_of(all, b))};
        const bool is_thin = (r > parts && chunk.rows < kFewestRows) ||
                             (b > blocks && chunk.columns < kFewestColumns);
        return is_thin || r * b > most ? ProductChunk{} : chunk;
      });
}

}  // namespace

int64_t few_rows_columns(const ChunkRule& rule, int64_t m, int64_t k) {
  const int64_t weights = std::min(rule.macs / std::max<int64_t>(m, 1), rule.few_weights);
  return weights / std::max<int64_t>(k, 1);
}

ProductChunk product_chunk(const ChunkRule& rule, int64_t m, int64_t n, int64_t k, int threads) {
  constexpr int64_t kFewestRows = 48;
  constexpr int64_t kEnough = 8;
  constexpr int64_t kStep = 64;
  const int64_t all = panel_columns(n);
  const int64_t shares = thread_parts(units_of(rule, m, n, k), threads);
  if (m < kFewestRows) {
    // Four panels side by side are read faster from memory than one or two.
    const int64_t step = all >= kEnough * kStep ? kStep : kPanel;
    const int64_t columns = few_rows_columns(rule, m, k) / step * step;
    const int64_t most = std::clamp<int64_t>(columns, step, std::max(all, step));
    // Fewer than four sums side by side wait for themselves.
    const int64_t least = std::min(panel_columns((all + threads - 1) / threads),
                                   panel_columns(kStep / std::max<int64_t>(m, 1)));
    const int64_t share = panel_columns((all + shares - 1) / shares);
    return {m, std::min(most, std::max({kPanel, share, least}))};
  }
  const int64_t rows = std::min(m, kPassRows);
  const int64_t wanted = rule.macs / (rows * std::max<int64_t>(k, 1)) / kStep * kStep;
  const int64_t columns = std::min(all, std::clamp(wanted, rule.least_columns, rule.most_columns));
  const int64_t blocks = std::max<int64_t>(1, (all + columns - 1) / std::max<int64_t>(columns, 1));
  const bool is_small = rows * k * columns < rule.macs / 4;
  const int64_t enough = std::min(((is_small ? shares : kEnough) + blocks - 1) / blocks,
                                  m / (is_small ? 16 : kFewestRows));
  const int64_t parts = std::max((m + kPassRows - 1) / kPassRows, enough);
  const int64_t most = std::max(shares, is_small ? parts * blocks : 2 * parts * blocks);
  return even_chunks({(m + parts - 1) / parts, columns}, m, all, most, threads);
}

ProductChunk parts_chunk(int64_t m, int64_t n, int64_t k, int threads) {
  constexpr int64_t kItem = 32;  // rows or columns that such a kernel takes at once
  // Up to so many rows stay together, and panels come by: cut, they would be items.
  constexpr int64_t kBandRows = 64;
  // To make an item into parts takes nearly as long as to multiply two.
  constexpr ChunkCost kCost = {kItem, 0.85};
  constexpr int64_t kMostRows = 768;
  constexpr int64_t kMostMacs = int64_t{1} << 28;  // about a millisecond
  constexpr int64_t kTries = 8;
  const int64_t all_rows = std::max<int64_t>(m, 1);
  const int64_t all = std::max(panel_columns(n), kPanel);
  const int64_t row_parts = parts_of(all_rows, kMostRows);
  const int64_t macs = std::min(all_rows, kMostRows) * all * std::max<int64_t>(k, 1);
  const int64_t blocks = std::clamp<int64_t>(parts_of(macs, kMostMacs), 1, parts_of(all, kItem));
  const bool is_band = m > kItem && m <= kBandRows;
  const auto even = [](int64_t count, int64_t parts, int64_t item) {
    return std::min(count, parts_of(parts_of(count, parts), item) * item);
  };
  const auto cut = [&](int64_t r, int64_t b) {
    if (is_band && r > 1) return ProductChunk{};
    return ProductChunk{even(all_rows, r, kItem), even(all, b, is_band ? kPanel : kItem)};
  };
  const ProductChunk given = cut(row_parts, blocks);
  if (threads == 1) return given;
  return soonest_chunks(kCost, given, all_rows, all, {row_parts, blocks, kTries}, threads, cut);
}

FolioGemmF32 gemm_part(const FolioGemmF32& whole, int64_t row, int64_t rows, int64_t col,
                       int64_t columns) {
  FolioGemmF32 part = whole;
  part.m = rows;
  part.n = columns;
  part.a += row * whole.a_row_stride;
  part.c += row * whole.c_row_stride + col;
  if (whole.col_scale) part.col_scale += col;
  if (whole.col_bias) part.col_bias += col;
  if (whole.row_bias) part.row_bias += row;
  if (whole.addend) part.addend += row * whole.addend_row_stride + col;
  return part;
}

void set_next(const GemmB& b, const void* data, int64_t depth, int64_t columns,
              FolioGemmF32* part) {
  const bool by_rows = b.col_stride == 1;
  if (!by_rows && b.row_stride != 1) return;
  const int64_t element = panel_element_bytes(b.dtype);
  part->next = static_cast<const char*>(data);
  part->next_rows = by_rows ? depth : columns;
  part->next_bytes = element * (by_rows ? columns : depth);
  part->next_stride = element * (by_rows ? b.row_stride : b.col_stride);
}

GemmB GemmB::from_column(int64_t j, int64_t k) const {
  GemmB b = *this;
  const int64_t element = panel_element_bytes(dtype);
  if (data) b.data = static_cast<const char*>(data) + element * j * col_stride;
  if (packed) b.packed = packed + j * k;
  if (packed_halves) b.packed_halves = packed_halves + element * j * panel_rows(dtype, k);
  return b;
}

FolioGemmF32 gemm_depth_part(const FolioGemmF32& whole, int64_t p, int64_t depth) {
  FolioGemmF32 part = whole;
  part.k = depth;
  part.a += p * whole.a_col_stride;
  if (p > 0) part.accumulate = 1;
  if (p + depth == whole.k) return part;
  part.alpha = 1.0F;
  part.activation = kFolioActNone;
  part.col_scale = part.col_bias = part.row_bias = part.addend = nullptr;
  return part;
}

Status gemm_f32(OpRun& run, const FolioGemmF32& given, const GemmB& b) {
  FolioGemmF32 args = given;
  args.precision = product_precision(run.kernels(), args.m, args.n, args.k, b.operands);
  args.b_is_far = panel_element_bytes(b.dtype) * args.k * args.n > kNearBytes ? 1 : 0;
  if (args.m == 0 || args.n == 0) return Status::ok();
  const bool as_bfloat16 = b.packed_halves && reads_panels(run.kernels(), args.precision, b.dtype);
  if (is_half(b.dtype) && !as_bfloat16) return gemm_halves(run, args, b);
  const auto* packed = as_bfloat16 ? b.packed_halves : reinterpret_cast<const uint8_t*>(b.packed);
  args.b_is_bfloat16 = as_bfloat16 ? 1 : 0;
  if (are_points(args, b)) return multiply_points(run, args, b);
  if (packed) return multiply_packed(run, args, b.dtype, packed);
  if (is_outer(args, b)) return multiply_outer(run, args, b);
  if (takes_dots(args, b)) return multiply_dots(run, args, b);
  if (is_turned_row(args, b)) {
    const int64_t grain = std::max<int64_t>(1, kThreadMacs / args.k);
    run.parallel().for_range(args.n, grain, [&](int64_t begin, int64_t end) {
      multiply_turned_row(run.kernels(), args, b, begin, end);
    });
    return Status::ok();
  }
  if (is_aligned(args.a) && args.m <= kFewRows && args.k > 0) {
    return multiply_few_rows(run, args, b);
  }
  return stays_in_place(run.kernels(), args, b) ? multiply_in_place(run, args, b)
                                                : multiply_plain(run, args, b);
}

bool is_direct(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b) {
  if (b.packed || is_half(b.dtype) || is_outer(args, b) || takes_dots(args, b)) return false;
  if (are_points(args, b)) return false;
  if (is_turned_row(args, b)) return true;
  const bool is_few = args.m <= kFewRows && args.k > 0 && b.col_stride == 1;
  return is_aligned(args.a) && (is_few || stays_in_place(kernels, args, b));
}

void multiply_direct(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b) {
  if (is_turned_row(args, b)) {
    multiply_turned_row(kernels, args, b, 0, args.n);
  } else {
    kernels.gemm_plain_f32(&args, b.data, b.row_stride);
  }
}

bool reads_in_place(const FolioKernels& kernels, int64_t m, int64_t n, int64_t k) {
  return m <= kernels.plain_rows && k > 0 && k <= kMostPlainDepth &&
         !folio_multiplies_parts(&kernels, product_precision(kernels, m, n, k));
}

bool request_matrix(OpBuild& build, int input, bool trans_a, bool trans_b) {
  const Initializer* b = build.initializer(input);
  if (!b) return true;
  if (!has_panels(b->dtype) || b->shape.rank() != 2) return false;
  const int64_t k = b->shape[trans_b ? 1 : 0];
  const int64_t n = b->shape[trans_b ? 0 : 1];
  if (!is_half(b->dtype) && !trans_a && is_few_columns(n, trans_b)) return true;
  request_panels(build, input, k, n, trans_b ? 1 : n, trans_b ? k : 1, /*replaces_source=*/true);
  return false;
}

void request_panels(OpBuild& build, int input, int64_t k, int64_t n, int64_t row_stride,
                    int64_t col_stride, bool replaces_source, int64_t groups) {
  const DType dtype = build.initializer(input)->dtype;
  PackRequest request;
  request.replaces_source = replaces_source;
  set_panels_of(dtype, &request);
  request.k = k;
  request.n = n;
  request.row_stride = row_stride;
  request.col_stride = col_stride;
  request.groups = groups;
  request.context = &build.kernels();
  request.fill = [](const PackRequest& r, const void* context, const Tensor& source,
                    uint8_t* blob) {
    const auto* kernels = static_cast<const FolioKernels*>(context);
    const int64_t columns = r.n / r.groups;
    const int64_t step = columns * r.col_stride * panel_element_bytes(source.dtype());
    const int64_t bytes = static_cast<int64_t>(r.bytes) / r.groups;
    for (int64_t g = 0; g < r.groups; ++g, blob += bytes) {
      const uint8_t* from = source.raw() + g * step;
      if (is_half(source.dtype())) {
        pack_half_panels({source.dtype(), r.k, columns, r.row_stride, r.col_stride}, from, blob);
      } else {
        kernels->pack_f32p16(r.k, columns, from, r.row_stride, r.col_stride,
                             reinterpret_cast<float*>(blob));
      }
    }
    return Status::ok();
  };
  // A matrix without elements is never read: nothing to pack.
  uint64_t each = 0;
  if (panels_bytes(dtype, k, n / groups, &each) &&
      checked_mul(each, static_cast<uint64_t>(groups), &request.bytes) && request.bytes > 0) {
    build.request_pack(input, request);
  }
}

Result<float*> widen_half(OpRun& run, const Tensor& source) {
  const auto count = static_cast<size_t>(source.count());
  FOLIO_TRY(uint8_t * bytes, run.scratch(count * sizeof(float)));
  auto* out = reinterpret_cast<float*>(bytes);
  widen_halves(run.kernels(), source.dtype(), source.count(), source.raw(), out);
  return out;
}

void narrow_half(OpRun& run, const float* source, Tensor* target) {
  const auto convert =
      target->dtype() == DType::kFloat16 ? run.kernels().f32_to_f16 : run.kernels().f32_to_bf16;
  convert(target->count(), source, target->raw_mut());
}

Result<Tensor> aligned(const Tensor& source) {
  if (is_aligned_for(source)) return source;
  return copy_tensor(source);
}

}  // namespace folio
