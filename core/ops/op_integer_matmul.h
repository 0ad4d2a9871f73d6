// Products of 8-bit matrices with zero points, in int32: what MatMulInteger, QLinearMatMul, QGemm
// and their kin share.
//
// Flow:   byte_zero() reads a zero point, widen_bytes() makes floats without it, multiply_bytes()
//         multiplies.
// Math:   y[i, j] = sum over p of (a[i, p] - a_zero) * (b[p, j] - b_zero), wrapping. Computed
//         exactly in float by blocks of k: a factor is at most 255, so sums of 256 products stay
//         below 2^24.
// Owns:   plain values; floats are scratch of the running operator.
// Errors: kInvalidArgument for zero points that do not fit.
#pragma once

#include "core/ops/op_matmul.h"

namespace folio {

// Depth up to which a float sum of byte products is exact.
inline constexpr int64_t kExactDepth = 256;

// Where a zero point (or scale) of an operand [matrices, rows, cols] stands.
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

// An 8-bit tensor of [matrices, rows, cols] as floats without its zero point.
Result<const float*> widen_bytes(OpRun& run, const Tensor& tensor, const ByteZero& zero,
                                 int64_t matrices, int64_t rows, int64_t cols);

// Widened operands, m * k and k * n elements a matrix; `trans` when stored the other way round.
struct ByteOperand {
  const float* data = nullptr;
  bool trans = false;
};

Status multiply_bytes(OpRun& run, const MatMulGeometry& g, const ByteOperand& a,
                      const ByteOperand& b, int32_t* y);

}  // namespace folio
