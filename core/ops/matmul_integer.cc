// MatMulInteger: product of 8-bit matrices with zero points, in int32.
//
// Source: ONNX operator spec, opset 10.
// Shapes: as MatMul; a_zero: one element, one per row of a matrix [m] or per row of all [..., m,
// 1];
//         b_zero: one element, one per column [n] or [..., 1, n].
// Math:   y[i, j] = sum over p of (a[i, p] - a_zero) * (b[p, j] - b_zero), wrapping.
//         Computed exactly in float by blocks of k: a factor is at most 255, so sums of 256
//         products stay below 2^24.
// Errors: kInvalidArgument for other types, shapes that do not match, zero points that do not fit.
#include "core/ops/op_gemm.h"
#include "core/ops/op_matmul.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kExactBlock = 256;

// Strides of a zero point over the matrices of an operand [count, rows, cols].
struct ZeroPoint {
  const uint8_t* data = nullptr;
  int64_t matrix_stride = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
};

enum class ZeroAxis { kRows, kColumns };

Result<ZeroPoint> zero_point_of(const OpRun& run, int input, DType dtype, int64_t matrices,
                                int64_t line, ZeroAxis axis) {
  ZeroPoint zero;
  if (!run.has_input(input)) return zero;
  FOLIO_TRY(const Tensor* tensor, run.tensor(input, dtype));
  zero.data = tensor->raw();
  const int64_t count = tensor->count();
  if (count == 1) return zero;
  const int64_t last = tensor->rank() > 0 ? tensor->dim(tensor->rank() - 1) : 1;
  const bool shared = tensor->rank() == 1 && count == line;
  const bool lies_along = axis == ZeroAxis::kRows ? last == 1 : last == line;
  const bool each = tensor->rank() > 1 && lies_along && count == matrices * line;
  if (!shared && !each) {
    return invalid_argument("zero point shape ", tensor->shape().to_string(), " does not fit ",
                            matrices, " matrices with ", line,
                            axis == ZeroAxis::kRows ? " rows" : " columns");
  }
  zero.matrix_stride = each ? line : 0;
  (axis == ZeroAxis::kRows ? zero.row_stride : zero.col_stride) = 1;
  return zero;
}

template <typename Q>
void widen_rows(OpRun& run, const uint8_t* raw, const ZeroPoint& zero, int64_t matrices,
                int64_t rows, int64_t cols, float* out) {
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, cols));
  run.parallel().for_range(matrices * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t base = r / rows * zero.matrix_stride + r % rows * zero.row_stride;
      const int32_t shared = zero.data ? Q::get(zero.data, base) : 0;
      for (int64_t j = 0; j < cols; ++j) {
        const int32_t offset = zero.col_stride ? Q::get(zero.data, base + j) : shared;
        out[r * cols + j] = static_cast<float>(Q::get(raw, r * cols + j) - offset);
      }
    }
  });
}

// The operand as floats without its zero point, in scratch.
Result<const float*> widen(OpRun& run, const Tensor& tensor, const ZeroPoint& zero,
                           int64_t matrices, int64_t rows, int64_t cols) {
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(tensor.count()) * sizeof(float)));
  auto* out = reinterpret_cast<float*>(memory);
  if (tensor.dtype() == DType::kInt8) {
    widen_rows<QuantizedType<DType::kInt8, 8, true>>(run, tensor.raw(), zero, matrices, rows, cols,
                                                     out);
  } else {
    widen_rows<QuantizedType<DType::kUint8, 8, false>>(run, tensor.raw(), zero, matrices, rows,
                                                       cols, out);
  }
  return static_cast<const float*>(out);
}

void add_block(OpRun& run, const float* block, int64_t count, bool is_first, int32_t* y) {
  run.parallel().for_range(count, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<uint32_t>(static_cast<int32_t>(block[i]));
      y[i] = static_cast<int32_t>(is_first ? value : static_cast<uint32_t>(y[i]) + value);
    }
  });
}

bool is_byte(DType dtype) { return dtype == DType::kUint8 || dtype == DType::kInt8; }

class MatMulInteger final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    FOLIO_TRY(const Tensor* b, run.tensor(1));
    if (!is_byte(a->dtype())) return wrong_type(0, a->dtype());
    if (!is_byte(b->dtype())) return wrong_type(1, b->dtype());
    FOLIO_TRY(const MatMulGeometry g, matmul_geometry(a->shape(), b->shape()));
    const int64_t a_count = g.batch_a.count();
    const int64_t b_count = g.batch_b.count();
    FOLIO_TRY(const ZeroPoint a_zero,
              zero_point_of(run, 2, a->dtype(), a_count, g.m, ZeroAxis::kRows));
    FOLIO_TRY(const ZeroPoint b_zero,
              zero_point_of(run, 3, b->dtype(), b_count, g.n, ZeroAxis::kColumns));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kInt32, g.out));
    if (y->count() == 0) return Status::ok();
    if (g.k == 0) {
      std::fill_n(y->data_mut<int32_t>(), y->count(), 0);
      return Status::ok();
    }
    FOLIO_TRY(const float* a_data, widen(run, *a, a_zero, a_count, g.m, g.k));
    FOLIO_TRY(const float* b_data, widen(run, *b, b_zero, b_count, g.k, g.n));
    return multiply(run, g, a_data, b_data, y->data_mut<int32_t>());
  }

 private:
  static Status multiply(OpRun& run, const MatMulGeometry& g, const float* a, const float* b,
                         int32_t* y) {
    // One B for all batches: they are just more rows.
    const bool is_flat = g.batch_b.count() == 1;
    const int64_t rows = is_flat ? g.m * g.batch.count() : g.m;
    const int64_t batches = is_flat ? 1 : g.batch.count();
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(rows * g.n) * sizeof(float)));
    FolioGemmF32 args{};
    args.m = rows;
    args.n = g.n;
    args.a_row_stride = g.k;
    args.a_col_stride = 1;
    args.c = reinterpret_cast<float*>(memory);
    args.c_row_stride = g.n;
    args.alpha = 1.0F;
    GemmB plain;
    plain.row_stride = g.n;
    plain.col_stride = 1;
    for (int64_t i = 0; i < batches; ++i) {
      const float* a_at = a + (is_flat ? 0 : g.index_a(i)) * g.m * g.k;
      const float* b_at = b + (is_flat ? 0 : g.index_b(i)) * g.k * g.n;
      for (int64_t p = 0; p < g.k; p += kExactBlock) {
        args.k = std::min(kExactBlock, g.k - p);
        args.a = a_at + p;
        plain.data = b_at + p * g.n;
        FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, plain));
        add_block(run, args.c, rows * g.n, p == 0, y + i * rows * g.n);
      }
    }
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<MatMulInteger>());
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_matmul_dims(infer, 0, 1));
  infer.set_tensor(0, DType::kInt32, std::move(dims));
  return Status::ok();
}

}  // namespace

void register_matmul_integer(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "MatMulInteger",
                .since = 10,
                .min_inputs = 2,
                .max_inputs = 4,
                .infer = infer,
                .make = make});
}

}  // namespace folio
