#include "core/ops/op_integer_matmul.h"

#include "core/base/checked_math.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_quantized.h"

namespace folio {
namespace {

template <typename Q>
void widen_rows(OpRun& run, const uint8_t* raw, const ByteZero& zero, int64_t matrices,
                int64_t rows, int64_t cols, float* out) {
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, cols));
  run.parallel().for_range(matrices * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t base = r / rows * zero.matrix_stride + r % rows * zero.row_stride;
      const int32_t shared = zero.data ? Q::get(zero.data, base) : 0;
      if (zero.col_stride == 0) {
        for (int64_t j = 0; j < cols; ++j) {
          out[r * cols + j] = static_cast<float>(Q::get(raw, r * cols + j) - shared);
        }
        continue;
      }
      for (int64_t j = 0; j < cols; ++j) {
        const int32_t offset = Q::get(zero.data, base + j);
        out[r * cols + j] = static_cast<float>(Q::get(raw, r * cols + j) - offset);
      }
    }
  });
}

void add_block(OpRun& run, const float* block, int64_t count, bool is_first, int32_t* y) {
  run.parallel().for_range(count, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<uint32_t>(static_cast<int32_t>(block[i]));
      y[i] = static_cast<int32_t>(is_first ? value : static_cast<uint32_t>(y[i]) + value);
    }
  });
}

}  // namespace

Result<ByteZero> line_strides(const Tensor& parameter, int64_t matrices, int64_t line,
                              ZeroAxis axis) {
  ByteZero zero;
  const int64_t count = parameter.count();
  if (count == 1) return zero;
  const int64_t last = parameter.rank() > 0 ? parameter.dim(parameter.rank() - 1) : 1;
  const bool shared = parameter.rank() == 1 && count == line;
  const bool lies_along = axis == ZeroAxis::kRows ? last == 1 : last == line;
  int64_t lines = 0;
  const bool each = parameter.rank() > 1 && lies_along && checked_mul(matrices, line, &lines) &&
                    (count == lines || count == line);
  if (!shared && !each) {
    return invalid_argument("scale or zero point of shape ", parameter.shape().to_string(),
                            " does not fit ", matrices, " matrices with ", line,
                            axis == ZeroAxis::kRows ? " rows" : " columns");
  }
  zero.matrix_stride = each && count == lines ? line : 0;
  (axis == ZeroAxis::kRows ? zero.row_stride : zero.col_stride) = 1;
  return zero;
}

Result<ByteZero> byte_zero(const OpRun& run, int input, DType dtype, int64_t matrices, int64_t line,
                           ZeroAxis axis) {
  if (!run.has_input(input)) return ByteZero{};
  FOLIO_TRY(const Tensor* tensor, run.tensor(input, dtype));
  FOLIO_TRY(ByteZero zero, line_strides(*tensor, matrices, line, axis));
  zero.data = tensor->raw();
  return zero;
}

Result<const float*> widen_bytes(OpRun& run, const Tensor& tensor, const ByteZero& zero,
                                 int64_t matrices, int64_t rows, int64_t cols) {
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(tensor.count()) * sizeof(float)));
  auto* out = reinterpret_cast<float*>(memory);
  dispatch_byte(tensor.dtype(), [&](auto quantized) {
    widen_rows<decltype(quantized)>(run, tensor.raw(), zero, matrices, rows, cols, out);
  });
  return static_cast<const float*>(out);
}

Status multiply_bytes(OpRun& run, const MatMulGeometry& g, const ByteOperand& a,
                      const ByteOperand& b, int32_t* y) {
  if (g.out.count() == 0) return Status::ok();
  if (g.k == 0) {
    std::fill_n(y, g.out.count(), 0);
    return Status::ok();
  }
  // One B for all batches: they are just more rows.
  const int64_t count = g.batch.count();
  const bool is_flat = g.batch_b.count() == 1 && (!a.trans || count == 1);
  const int64_t rows = is_flat ? g.m * count : g.m;
  const int64_t batches = is_flat ? 1 : count;
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(rows * g.n) * sizeof(float)));
  FolioGemmF32 args{};
  args.m = rows;
  args.n = g.n;
  args.a_row_stride = a.trans ? 1 : g.k;
  args.a_col_stride = a.trans ? g.m : 1;
  args.c = reinterpret_cast<float*>(memory);
  args.c_row_stride = g.n;
  args.alpha = 1.0F;
  GemmB plain;
  plain.row_stride = b.trans ? 1 : g.n;
  plain.col_stride = b.trans ? g.k : 1;
  for (int64_t i = 0; i < batches; ++i) {
    const float* a_at = a.data + (is_flat ? 0 : g.index_a(i)) * g.m * g.k;
    const float* b_at = b.data + (is_flat ? 0 : g.index_b(i)) * g.k * g.n;
    for (int64_t p = 0; p < g.k; p += kExactDepth) {
      args.k = std::min(kExactDepth, g.k - p);
      args.a = a_at + p * args.a_col_stride;
      plain.data = b_at + p * plain.row_stride;
      FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, plain));
      add_block(run, args.c, rows * g.n, p == 0, y + i * rows * g.n);
    }
  }
  return Status::ok();
}

}  // namespace folio
