// QLinearMatMul and QGemm: products of quantized matrices, quantized again.
//
// Source: ONNX operator spec, QLinearMatMul, opsets 10, 21 (scales of 16-bit floats);
//         com.microsoft QGemm, version 1.
// Shapes: QLinearMatMul as MatMul; a_scale and a_zero: one element, one per row; b_scale and
//         b_zero: one element, one per column; y_scale and y_zero: one element.
//         QGemm: A' [m, k], B' [k, n] (transA, transB), C int32, broadcast to [m, n].
// Math:   sums of (a - a_zero) * (b - b_zero) are exact in int32 (wrapping); y = saturate(round(
//         sum * a_scale * b_scale / y_scale) + y_zero). QGemm adds C to the sums, scales by alpha
//         and gives floats without y_scale.
// Types:  QLinearMatMul: int8 and uint8; scales float, float16, bfloat16. QGemm: int8 and uint8, C
//         int32; scales float; y also float.
#include "core/ops/op_integer_matmul.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class QLinearMatMul final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* b, byte_tensor(run, 3));
    FOLIO_TRY(const MatMulGeometry g, matmul_geometry(a->shape(), b->shape()));
    const int64_t a_count = g.batch_a.count();
    const int64_t b_count = g.batch_b.count();
    FOLIO_TRY(const ByteZero a_zero, byte_zero(run, 2, a->dtype(), a_count, g.m, ZeroAxis::kRows));
    FOLIO_TRY(const ByteZero b_zero,
              byte_zero(run, 5, b->dtype(), b_count, g.n, ZeroAxis::kColumns));
    FOLIO_TRY(const ByteScales a_scale, scales_of(run, 1, a_count, g.m, ZeroAxis::kRows));
    FOLIO_TRY(const ByteScales b_scale, scales_of(run, 4, b_count, g.n, ZeroAxis::kColumns));
    FOLIO_TRY(const ByteScales y_scale, scales_of(run, 6, 1, 1, ZeroAxis::kRows));
    FOLIO_TRY(const Tensor* y_zero, byte_tensor(run, 7));
    if (y_zero->count() != 1) {
      return invalid_argument("y_zero_point ", y_zero->shape().to_string(),
                              " must have one element");
    }
    FOLIO_TRY(Tensor * y, run.output(0, y_zero->dtype(), g.out));
    if (y->count() == 0) return Status::ok();
    ByteTarget target;
    target.to = kFolioToByte;
    target.y = y->raw_mut();
    target.a_scale = a_scale;
    target.b_scale = b_scale;
    target.y_scale = *y_scale.data;
    target.zero = byte_at(*y_zero, 0);
    target.is_signed = y->dtype() == DType::kInt8;
    return multiply_bytes(run, g, byte_operand(*a, a_zero), byte_operand(*b, b_zero), 3, target);
  }

 private:
  static Result<ByteScales> scales_of(OpRun& run, int input, int64_t matrices, int64_t line,
                                      ZeroAxis axis) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(input));
    if (tensor->dtype() == DType::kInt32) return wrong_type(input, tensor->dtype());
    FOLIO_TRY(const ByteZero strides, line_strides(*tensor, matrices, line, axis));
    ByteScales scales;
    FOLIO_TRY(scales.data, as_floats(run, input, *tensor));
    scales.matrix_stride = strides.matrix_stride;
    scales.line_stride = strides.row_stride + strides.col_stride;
    return scales;
  }
};

// Inputs A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero.
class QGemm final : public OpKernel {
 public:
  float alpha = 1.0F;
  bool trans_a = false;
  bool trans_b = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* b, byte_tensor(run, 3));
    FOLIO_TRY(const MatMulGeometry g, geometry(a->shape(), b->shape()));
    FOLIO_TRY(const QuantScalar a_quant, quant_scalar(run, 1, 2, a->dtype()));
    FOLIO_TRY(const Tensor* scales, run.tensor(4, DType::kFloat));
    FOLIO_TRY(const ByteZero scale_at, line_strides(*scales, 1, g.n, ZeroAxis::kColumns));
    FOLIO_TRY(ByteZero b_zero, byte_zero(run, 5, b->dtype(), 1, g.n, ZeroAxis::kColumns));
    ByteZero a_zero;
    if (run.has_input(2)) a_zero.data = run.value(2).tensor().raw();
    const float a_scale = alpha * a_quant.scale;
    ByteTarget target;
    target.a_scale.data = &a_scale;
    target.b_scale = {scales->data<float>(), 0, scale_at.col_stride};
    FOLIO_RETURN_IF_ERROR(add_c(run, g, &target));
    FOLIO_RETURN_IF_ERROR(set_output(run, g, &target));
    return multiply_bytes(run, g, byte_operand(*a, a_zero, trans_a),
                          byte_operand(*b, b_zero, trans_b), 3, target);
  }

 private:
  Result<MatMulGeometry> geometry(const Shape& a, const Shape& b) const {
    if (a.rank() != 2 || b.rank() != 2) {
      return invalid_argument("A ", a.to_string(), " and B ", b.to_string(), " must have 2 dims");
    }
    return matmul_geometry(trans_a ? Shape{a[1], a[0]} : a, trans_b ? Shape{b[1], b[0]} : b);
  }

  static Status add_c(OpRun& run, const MatMulGeometry& g, ByteTarget* target) {
    if (!run.has_input(6)) return Status::ok();
    FOLIO_TRY(const Tensor* c, run.tensor(6, DType::kInt32));
    auto both = broadcast(c->shape(), g.out);
    if (!both.is_ok() || !(both.value() == g.out)) {
      return invalid_argument("C ", c->shape().to_string(), " does not broadcast to ",
                              g.out.to_string());
    }
    const int rank = c->rank();
    const int64_t cols = rank > 0 ? c->dim(rank - 1) : 1;
    target->extra = c->data<int32_t>();
    target->extra_row_stride = rank > 1 && c->dim(rank - 2) > 1 ? cols : 0;
    target->extra_col_stride = cols > 1 ? 1 : 0;
    return Status::ok();
  }

  static Status set_output(OpRun& run, const MatMulGeometry& g, ByteTarget* target) {
    Tensor* y = nullptr;
    if (run.has_input(7)) {
      DType dtype = DType::kUint8;
      if (run.has_input(8)) {
        FOLIO_TRY(const Tensor* zero, byte_tensor(run, 8));
        dtype = zero->dtype();
      }
      FOLIO_TRY(const QuantScalar quant, quant_scalar(run, 7, 8, dtype));
      target->to = kFolioToByte;
      target->y_scale = quant.scale;
      target->zero = quant.zero;
      target->is_signed = dtype == DType::kInt8;
      FOLIO_TRY(y, run.output(0, dtype, g.out));
    } else {
      target->to = kFolioToFloat;
      FOLIO_TRY(y, run.output(0, DType::kFloat, g.out));
    }
    target->y = y->raw_mut();
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_matmul(OpBuild& build) {
  request_byte_matrix(build, 3, false);
  return std::unique_ptr<OpKernel>(std::make_unique<QLinearMatMul>());
}

Result<std::unique_ptr<OpKernel>> make_gemm(OpBuild& build) {
  auto kernel = std::make_unique<QGemm>();
  FOLIO_TRY(kernel->alpha, build.attrs().get_float("alpha", 1.0F));
  FOLIO_TRY(const int64_t trans_a, build.attrs().get_int("transA", 0));
  FOLIO_TRY(const int64_t trans_b, build.attrs().get_int("transB", 0));
  kernel->trans_a = trans_a != 0;
  kernel->trans_b = trans_b != 0;
  request_byte_matrix(build, 3, kernel->trans_b);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_matmul(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_matmul_dims(infer, 0, 3));
  infer.set_tensor(0, infer.dtype(7), std::move(dims));
  return Status::ok();
}

Status infer_gemm(OpInfer& infer) {
  FOLIO_TRY(const int64_t trans_a, infer.attrs().get_int("transA", 0));
  FOLIO_TRY(const int64_t trans_b, infer.attrs().get_int("transB", 0));
  const Dims* a = infer.dims_of(0);
  const Dims* b = infer.dims_of(3);
  Dims out(2, Dim::unknown());
  if (a && a->size() == 2) out[0] = (*a)[trans_a != 0 ? 1 : 0];
  if (b && b->size() == 2) out[1] = (*b)[trans_b != 0 ? 0 : 1];
  const DType quantized = infer.has_input(8) ? infer.dtype(8) : DType::kUint8;
  infer.set_tensor(0, infer.has_input(7) ? quantized : DType::kFloat, std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_qlinear_matmul(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "QLinearMatMul",
                .since = 10,
                .min_inputs = 8,
                .max_inputs = 8,
                .infer = infer_matmul,
                .make = make_matmul});
  registry.add({.domain = "com.microsoft",
                .type = "QGemm",
                .min_inputs = 6,
                .max_inputs = 9,
                .infer = infer_gemm,
                .make = make_gemm,
                .float_inputs = 1U << 1 | 1U << 4 | 1U << 7});
}

}  // namespace folio
