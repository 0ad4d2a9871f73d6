// Products of 8-bit matrices with zero points: what MatMulInteger, QLinearMatMul, QGemm and their
// kin share, and convolutions of bytes where they are products.
//
// Flow:   byte_zero() and line_strides() read parameters, multiply_bytes() computes.
// Math:   y[i, j] = finish(extra[j] + sum over p of (a[i, p] - a_zero) * (b[p, j] - b_zero)), the
//         sum exact in int32 (wrapping): unsigned A times signed B, zero points put right with sums
//         of columns (packed with B) and rows; `finish` as FolioSums.
// B:      S8P16K4 packed at load when constant, else packed here: the same bits.
// Owns:   plain values; copies are scratch of the running operator.
// Errors: kInvalidArgument for zero points that do not fit.
#pragma once

#include "core/ops/op_matmul.h"

namespace folio {

// Depth up to which a float sum of byte products is exact.
inline constexpr int64_t kExactDepth = 256;

// Where a zero point or scale of an operand [matrices, rows, cols] stands.
struct ByteZero {
  const uint8_t* data = nullptr;
  int64_t matrix_stride = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
};

enum class ZeroAxis { kRows, kColumns };

// Strides of a per-tensor, per-line or per-matrix-and-line parameter; `data` is left null. Lines
// are rows or columns: shape one element, [line], [..., line, 1] (rows) or [..., 1, line].
Result<ByteZero> line_strides(const Tensor& parameter, int64_t matrices, int64_t line,
                              ZeroAxis axis);
// The zero point at `input`, of this type; absent: 0.
Result<ByteZero> byte_zero(const OpRun& run, int input, DType dtype, int64_t matrices, int64_t line,
                           ZeroAxis axis);

// A matrix B [k, n] ready for the kernels.
struct ByteMatrix {
  const uint8_t* panels = nullptr;
  const int32_t* column_sums = nullptr;
};

// Bytes of a column panel of 16.
inline int64_t panel_bytes(int64_t k) { return (k + 3) / 4 * FOLIO_S8P16K4_GROUP; }

// How a matrix of bytes lies in its tensor; see FolioPackS8.
PackRequest s8p16k4_request(int64_t k, int64_t n, int64_t row_stride, int64_t col_stride);
// Asks for constant input i; false when it is no constant of bytes or too large.
bool request_s8p16k4(OpBuild& build, int input, PackRequest request);
// The same of input i, [k, n] or [n, k] when `trans`, if it has two dims.
void request_byte_matrix(OpBuild& build, int input, bool trans);

// Writes s8p16k4_bytes at `blob`, aligned to 64.
void fill_panels(const FolioKernels& kernels, const PackRequest& request, const uint8_t* bytes,
                 DType dtype, uint8_t* blob);
// Packs into scratch; `bytes` are of this type.
Result<ByteMatrix> pack_bytes_now(OpRun& run, const PackRequest& request, const uint8_t* bytes,
                                  DType dtype);
ByteMatrix packed_matrix(const uint8_t* blob, int64_t k, int64_t n);

// Codes as unsigned bytes: themselves, or with the sign bit flipped in scratch (zero points are
// then 128 more).
Result<const uint8_t*> unsigned_codes(OpRun& run, const uint8_t* codes, int64_t count, DType dtype);
void flip_signs(int64_t count, const uint8_t* x, uint8_t* y);  // y may be x

// The product split over threads by shape; `whole` with all that FolioGemmU8 needs.
void gemm_u8(OpRun& run, const FolioGemmU8& whole);

struct ByteOperand {
  const uint8_t* codes = nullptr;
  int64_t count = 0;
  DType dtype = DType::kUint8;
  ByteZero zero;
  bool trans = false;  // stored the other way round
};

inline ByteOperand byte_operand(const Tensor& tensor, const ByteZero& zero, bool trans = false) {
  return {tensor.raw(), tensor.count(), tensor.dtype(), zero, trans};
}

// Scales of a row or column: one float each, or the same for all.
struct ByteScales {
  const float* data = nullptr;
  int64_t matrix_stride = 0;
  int64_t line_stride = 0;
  float at(int64_t matrix, int64_t line) const {
    return data[matrix * matrix_stride + line * line_stride];
  }
};

// Where the sums go: y [batch, m, n]. Not to int32: they are scaled by a * b / y.
struct ByteTarget {
  FolioSumsTo to = kFolioToInt32;
  void* y = nullptr;
  const int32_t* extra = nullptr;  // added to the sums, or null
  int64_t extra_row_stride = 0;
  int64_t extra_col_stride = 0;
  ByteScales a_scale;
  ByteScales b_scale;
  float y_scale = 1.0F;         // to bytes
  const float* bias = nullptr;  // [n] or null; to float
  int32_t zero = 0;             // to bytes
  bool is_signed = false;       // to bytes
};

// `b_input` is where B stands: its pack is used when there is one.
Status multiply_bytes(OpRun& run, const MatMulGeometry& g, const ByteOperand& a,
                      const ByteOperand& b, int b_input, const ByteTarget& target);

// offset[j] = extra[j * step] - a_zero * column_sums[j] + k * a_zero * b_zero[j]; extra and b_zero
// may be null.
void zero_point_offsets(int64_t n, int64_t k, int32_t a_zero, const int32_t* column_sums,
                        const int32_t* b_zero, const int32_t* extra, int64_t step, int32_t* offset);

}  // namespace folio
