// What MatMul, Gemm, Conv and attention share: one matrix product over threads.
//
// Math:    as kernels.h has it at FolioGemmF32
// Splits:  rows in blocks, columns in multiples of 16; by shape only, so that results do not
//          depend on the number of threads (kernels.h: gemm_f32 is bit-identical under splits).
// B:       F32P16 when it was packed at load, else plain bytes (any alignment, any strides) that
//          are packed tile by tile: bit-identical, no memory beyond a tile a thread. float16 and
//          bfloat16: likewise from F16P16, BF16P16 or plain bytes, widened tile by tile.
#pragma once

#include <algorithm>

#include "core/ops/op_half_panels.h"

namespace folio {

// Columns of a matrix as F32P16, with its padding.
inline int64_t panel_columns(int64_t columns) {
  constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
  return (columns + kPanel - 1) / kPanel * kPanel;
}

enum class Operands { kFloats, kWidenedBfloat16 };

// What a product of [m, k] and [k, n] may lose: as the session says where it is large enough for
// that to pay, else nothing. Of the whole product (of an image, of a head), so that the bits do not
// depend on how it is cut. Numbers that are bfloat16, widened, have one part: a product of that
// loses nothing. Rounding to one part pays sooner than filling tiles (Zen 4, 2026-11: 16 x 64 x 64
// and 64 x 32 x 32 take 0.75 to 0.79 of a chain's time, 8 x 768 x 768 0.87, 192 x 16 x 16 1.28),
// and fewer parts sooner than three (a Xeon with AMX, 2026-11, m x n x k, shares of a chain's time
// with three, two parts and one: 196 x 64 x 64 0.9 with three, 64 x 64 x 256 1.17, 49 x 960 x 160
// 0.93, 32 x 768 x 768 1.08; 784 x 192 x 32 0.71, 0.60, 0.42; 3136 x 144 x 24 1.07, 0.97, 0.70;
// 784 x 32 x 144 1.2, 0.95, 0.47; 12544 x 96 x 16 1.3, 1.2, 0.99).
// Those in pieces pay later: rows that are gathered, or many small products, as Winograd's.
inline int32_t product_precision(const FolioKernels& kernels, int64_t m, int64_t n, int64_t k,
                                 Operands operands = Operands::kFloats, bool in_pieces = false) {
  const int32_t precision =
      operands == Operands::kWidenedBfloat16 ? kFolioMedium : kernels.precision;
  const double macs = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const bool rounds = kernels.multiplies_parts == 1 << kFolioMedium && precision == kFolioMedium;
  const bool is_large =
      rounds                                    ? m >= 16 && n >= 32 && k >= 32
      : precision == kFolioHighest && in_pieces ? m >= 32 && n >= 64 && k >= 64 && macs >= 2e6
      : precision == kFolioHighest
          ? m >= 40 && n >= 48 && k >= 32 && macs >= (m < 96 ? 4e6 : 1.2e6)
          : m >= 32 && n >= 24 && k >= (precision == kFolioMedium ? 24 : 32) && macs >= 5e5;
  return is_large ? precision : kFolioChain;
}

inline Operands operands_of(const Tensor& a, const Tensor& b) {
  const bool widened = a.dtype() == DType::kBfloat16 && b.dtype() == DType::kBfloat16;
  return widened ? Operands::kWidenedBfloat16 : Operands::kFloats;
}

struct GemmB {
  const void* data = nullptr;  // plain bytes
  int64_t row_stride = 0;      // elements between B[p, j] and B[p + 1, j]
  int64_t col_stride = 0;
  const float* packed = nullptr;  // F32P16; wins over `data`
  // float16 and bfloat16: one of the strides is 1, and what is packed is F16P16 or BF16P16.
  DType dtype = DType::kFloat;
  const uint8_t* packed_halves = nullptr;  // wins over `data`
  Operands operands = Operands::kFloats;   // A's numbers and B's
  // No session packs it (request_matrix()): sums may have an order of their own.
  bool unpacked = false;

  // A blob that request_panels() asked for, or null.
  void set_packed(const PackedBlob* blob) {
    if (!blob) return;
    if (is_half(dtype)) {
      packed_halves = blob->data();
    } else {
      packed = reinterpret_cast<const float*>(blob->data());
    }
  }
  // From column j on, of a matrix of k rows; j is a multiple of 16 where it is packed.
  GemmB from_column(int64_t j, int64_t k) const;
};

// Rows [row, row + rows) and columns [col, col + columns) of a product, but for B.
FolioGemmF32 gemm_part(const FolioGemmF32& whole, int64_t row, int64_t rows, int64_t col,
                       int64_t columns);

// What is read after `part`: `depth` x `columns` of a B that is not packed, from `data` on.
void set_next(const GemmB& b, const void* data, int64_t depth, int64_t columns, FolioGemmF32* part);

// Elements [p, p + depth) of each sum, which rests in C before and after: that loses nothing.
FolioGemmF32 gemm_depth_part(const FolioGemmF32& whole, int64_t p, int64_t depth);

// How a product is cut into chunks, by shape only.
struct ChunkRule {
  int64_t macs;           // of a chunk, about
  int64_t few_weights;    // elements of B of a chunk of few rows at most: those wait for memory
  int64_t least_columns;  // of many rows; a multiple of 16
  int64_t most_columns;
  int64_t least_macs;     // what it repays to wake a thread for,
  int64_t least_weights;  // or elements of B: a microsecond or two, where a region takes 0.3
};
struct ProductChunk {
  int64_t rows;
  int64_t columns;  // a multiple of 16
};
// Columns of B for a chunk of all of few rows.
int64_t few_rows_columns(const ChunkRule& rule, int64_t m, int64_t k);
// Few rows: columns alone. Many: even parts of as many as a pass over B serves (fewer read B too
// often for the memory of all threads), and enough chunks for threads to end together. Small ones
// are cut only for threads to share.
ProductChunk product_chunk(const ChunkRule& rule, int64_t m, int64_t n, int64_t k, int threads);

// The same where a kernel multiplies parts of numbers, which it makes anew in each chunk: large
// chunks, a few for each thread. Rows are a multiple of 32, what such a kernel takes at once.
ProductChunk parts_chunk(int64_t m, int64_t n, int64_t k, int threads);

// Parts of small work for threads to share, `units` times what repays to wake one: one each, more
// where there is enough for a late thread to be helped. Bits must not depend on the cut.
inline int64_t thread_parts(double units_of_work, int threads) {
  constexpr int64_t kMostPartsOfOne = 4;
  if (threads <= 1) return 1;
  const auto units = static_cast<int64_t>(std::min(units_of_work, 1e6));
  int64_t parts = std::clamp<int64_t>(units, 1, threads);
  while (parts < kMostPartsOfOne * threads && 4 * parts <= units) parts *= 2;
  return parts;
}
inline constexpr int64_t kThreadMacs = 192 << 10;  // such a unit, of floats

// A product a piece of the depth after the other. make(p, &part) writes elements [p, p + part.k) of
// B as F32P16 to `panels`, p a multiple of kPieceDepth, and may say what comes next (set_next).
inline constexpr int64_t kPieceDepth = FOLIO_GEMM_ONE_SUM;
template <typename Make>
void multiply_pieces(const FolioKernels& kernels, const FolioGemmF32& args, float* panels,
                     const Make& make, int64_t depth = kPieceDepth) {
  int64_t p = 0;
  do {  // once for k = 0: C is the epilogue of an empty sum
    FolioGemmF32 part = gemm_depth_part(args, p, std::min(depth, args.k - p));
    if (part.k > 0) make(p, &part);
    part.b = panels;
    kernels.gemm_f32(&part);
    p += part.k;
  } while (p < args.k);
}

// Whether so many rows of A, contiguous, times a B of contiguous rows are multiplied by the slot
// gemm_plain_f32 in the shortest time.
bool reads_in_place(const FolioKernels& kernels, int64_t m, int64_t n, int64_t k);

// Small products that need no memory of their own, which threads may take from a batch:
// multiply_direct(), of those that is_direct() says, has the bits of gemm_f32(), whatever thread
// calls it.
bool is_direct(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b);
void multiply_direct(const FolioKernels& kernels, const FolioGemmF32& args, const GemmB& b);

// Fills `args.c`; all of `args` is used but `b` and `precision`, which are set here, and `a_rows`.
Status gemm_f32(OpRun& run, const FolioGemmF32& args, const GemmB& b);

// Asks for constant input i, a matrix [k, n] with these strides, as panels of its type
// (has_panels()); each of `groups` equal parts of its columns begins a panel. `replaces_source`:
// see PackRequest.
void request_panels(OpBuild& build, int input, int64_t k, int64_t n, int64_t row_stride,
                    int64_t col_stride, bool replaces_source = false, int64_t groups = 1);
// The same of B [k, n], or [n, k] where it is transposed, if it is a constant that panels pay for.
// True: no session packs it, as it is no constant, or has few columns, each contiguous, where a
// panel would be mostly padding.
bool request_matrix(OpBuild& build, int input, bool trans_a, bool trans_b);

// float16 and bfloat16 are computed in float: scratch copies that live as long as this call of the
// operator. The source may be unaligned.
Result<float*> widen_half(OpRun& run, const Tensor& source);
void narrow_half(OpRun& run, const float* source, Tensor* target);

// float16 and bfloat16: body(x, b, y) -> Status over float copies, narrowed to y; `b` may be null.
template <typename Body>
Status run_in_float(OpRun& run, const Tensor& x, const Tensor* b, Tensor* y, Body&& body) {
  FOLIO_TRY(const float* x32, widen_half(run, x));
  const float* b32 = nullptr;
  if (b) {
    FOLIO_TRY(b32, widen_half(run, *b));
  }
  FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
  auto* y32 = reinterpret_cast<float*>(bytes);
  FOLIO_RETURN_IF_ERROR(body(x32, b32, y32));
  narrow_half(run, y32, y);
  return Status::ok();
}

// The same with a copy of w: body(x, w, b, y).
template <typename Body>
Status run_in_float(OpRun& run, const Tensor& x, const Tensor& w, const Tensor* b, Tensor* y,
                    Body&& body) {
  FOLIO_TRY(const float* w32, widen_half(run, w));
  return run_in_float(run, x, b, y, [&](const float* x32, const float* b32, float* y32) {
    return body(x32, w32, b32, y32);
  });
}

// The tensor itself, or a scratch copy when its bytes are unaligned for its type.
Result<Tensor> aligned(const Tensor& source);

}  // namespace folio
