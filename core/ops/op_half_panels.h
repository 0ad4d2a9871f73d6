// Weights of 16 bits, float16 and bfloat16, as panels (layouts F16P16 and BF16P16), and pieces of
// them as F32P16 for the products, which compute in float.
//
// Math:    widening is exact, so a product has the same bits from halves, packed or as they lie, as
//          from the same numbers in float.
// Memory:  pieces stand in scratch that a thread has, each for as long as it is multiplied by.
// Threads: plain functions and values.
#pragma once

#include "core/ops/op.h"
#include "core/ops/op_half.h"

namespace folio {

// Bytes of an element that the layouts F32P16, F16P16 and BF16P16 hold, and rows of a panel, with
// the one that BF16P16 fills up a pair with.
inline int64_t panel_element_bytes(DType dtype) { return is_half(dtype) ? 2 : 4; }
inline int64_t panel_rows(DType dtype, int64_t k) {
  return dtype == DType::kBfloat16 ? folio_bf16p16_rows(k) : k;
}

// Set by passes/keep_halves.cc. An attribute of 1: constant weights of this node, whose other
// inputs are floats, may be float16 or bfloat16 and stand for the same numbers in float.
inline constexpr std::string_view kHalfWeightsAttribute = "half_weights";
bool has_half_weights(const Attributes& attributes);

// The float16 or bfloat16 constant behind a large one that is a Cast of it to float; else null.
const Ref<Initializer>* half_behind(const Initializer& constant);

// As OpDef::takes_half, of operators whose input 1 is one matrix.
bool takes_half_matrix(const Attributes& attributes, int i, const Shape& shape);

// Weights, input i, of an operator whose other inputs are of `dtype`.
Result<const Tensor*> weights_input(const OpRun& run, int i, DType dtype, bool may_be_half);

// Constants that the layouts F32P16, F16P16 and BF16P16 hold; the one for it, with its version.
inline bool has_panels(DType dtype) { return dtype == DType::kFloat || is_half(dtype); }
void set_panels_of(DType dtype, PackRequest* request);
// Bytes of B[k, n] in that layout.
[[nodiscard]] bool panels_bytes(DType dtype, int64_t k, int64_t n, uint64_t* out_bytes);

// Whether gemm_f32 reads panels of this type as they are.
inline bool reads_panels(const FolioKernels& kernels, int32_t precision, DType dtype) {
  return dtype == DType::kBfloat16 && precision == kFolioMedium &&
         folio_multiplies_parts(&kernels, kFolioMedium) != 0;
}

void widen_halves(const FolioKernels& kernels, DType dtype, int64_t n, const void* from, float* to);

// Panels of B[k, n] as F32P16; or, of one panel, its first k rows.
void widen_panels(const FolioKernels& kernels, DType dtype, int64_t k, int64_t n,
                  const uint8_t* panels, float* to);

// A matrix B[k, n] of elements of 16 bits, of any alignment: B[p, j] at element
// p * row_stride + j * col_stride, or, with taps, which are innermost in each column (row_stride is
// 1 then), where p = tap * (k / taps) + c, at c * taps + tap + j * col_stride.
struct HalfMatrix {
  DType dtype = DType::kUndefined;
  int64_t k = 0;
  int64_t n = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
  int64_t taps = 1;
};
// As F16P16 or BF16P16 (kernels.h); zeros beyond n and k.
void pack_half_panels(const HalfMatrix& b, const uint8_t* from, uint8_t* dst);
// The inverse.
void unpack_half_panels(const HalfMatrix& b, const uint8_t* panels, uint8_t* to);

// Rows [0, depth) of `columns` columns that lie in lines, of rows or of columns, as F32P16.
// `lines`: scratch of depth * columns floats. One of the strides is 1.
void widen_lines(const FolioKernels& kernels, DType dtype, int64_t depth, int64_t columns,
                 const uint8_t* from, int64_t row_stride, int64_t col_stride, float* lines,
                 float* panels);

}  // namespace folio
