// MatMulInteger: product of 8-bit matrices with zero points, in int32; and com.microsoft's forms
// that go on to float: MatMulIntegerToFloat, DynamicQuantizeMatMul.
//
// Source: ONNX operator spec, MatMulInteger, opset 10; com.microsoft version 1.
// Shapes: as MatMul; a_zero: one element, one per row of a matrix [m] or per row of all [..., m,
//         1];
//         b_zero and b_scale: one element, one per column [n] or [..., 1, n]; bias [n].
// Math:   y[i, j] = sum over p of (a[i, p] - a_zero) * (b[p, j] - b_zero), wrapping;
//         to float: y * a_scale * b_scale + bias. DynamicQuantizeMatMul makes A's bytes, scale and
//         zero point from floats as DynamicQuantizeLinear does.
// Types:  MatMulInteger: int8 and uint8; y int32. MatMulIntegerToFloat: int8 and uint8; scales,
//         bias and y float; float16 and bfloat16 in float. DynamicQuantizeMatMul: B int8 or uint8;
//         A, scales, bias and y float.
// Errors: kInvalidArgument for other types, shapes that do not match, zero points that do not fit.
#include "core/ops/op_integer_matmul.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_real.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class MatMulInteger final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* b, byte_tensor(run, 1));
    FOLIO_TRY(const MatMulGeometry g, matmul_geometry(a->shape(), b->shape()));
    const int64_t a_count = g.batch_a.count();
    const int64_t b_count = g.batch_b.count();
    FOLIO_TRY(const ByteZero a_zero, byte_zero(run, 2, a->dtype(), a_count, g.m, ZeroAxis::kRows));
    FOLIO_TRY(const ByteZero b_zero,
              byte_zero(run, 3, b->dtype(), b_count, g.n, ZeroAxis::kColumns));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kInt32, g.out));
    ByteTarget target;
    target.y = y->raw_mut();
    return multiply_bytes(run, g, byte_operand(*a, a_zero), byte_operand(*b, b_zero), 1, target);
  }
};

// ---------------------------------------------------------------- to float

// Which inputs hold what.
struct FloatInputs {
  int b_scale, b_zero, bias;
};

// y = (A * B) * a_scale * b_scale + bias, with scales, bias and y of this type.
Status multiply_to_float(OpRun& run, const MatMulGeometry& g, const ByteOperand& a, float a_scale,
                         DType dtype, const FloatInputs& inputs) {
  FOLIO_TRY(const Tensor* b, byte_tensor(run, 1));
  const int64_t b_count = g.batch_b.count();
  FOLIO_TRY(const ByteZero b_zero,
            byte_zero(run, inputs.b_zero, b->dtype(), b_count, g.n, ZeroAxis::kColumns));
  FOLIO_TRY(const Tensor* scale, run.tensor(inputs.b_scale, dtype));
  FOLIO_TRY(const ByteZero at, line_strides(*scale, b_count, g.n, ZeroAxis::kColumns));
  FOLIO_TRY(const float* scales, floats_of(run, *scale));
  ByteTarget target;
  target.to = kFolioToFloat;
  target.a_scale.data = &a_scale;
  target.b_scale = {scales, at.matrix_stride, at.col_stride};
  if (run.has_input(inputs.bias)) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(inputs.bias, dtype));
    if (tensor->rank() != 1 || tensor->count() != g.n) {
      return invalid_argument("bias ", tensor->shape().to_string(), " must have ", g.n, " entries");
    }
    FOLIO_TRY(target.bias, floats_of(run, *tensor));
  }
  FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, dtype, g.out));
  target.y = reinterpret_cast<uint8_t*>(y.data());
  FOLIO_RETURN_IF_ERROR(multiply_bytes(run, g, a, byte_operand(*b, b_zero), 1, target));
  y.finish(run);
  return Status::ok();
}

// Inputs A, B, a_scale, b_scale, a_zero, b_zero, bias.
class MatMulIntegerToFloat final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* b, byte_tensor(run, 1));
    FOLIO_TRY(const MatMulGeometry g, matmul_geometry(a->shape(), b->shape()));
    FOLIO_TRY(const Tensor* scale, run.tensor(2));
    FOLIO_TRY(const float* a_scale, floats_of_input(run, 2, 1));
    ByteZero a_zero;
    if (run.has_input(4)) {
      FOLIO_TRY(const Tensor* zero, run.tensor(4, a->dtype()));
      if (zero->count() != 1) {
        return invalid_argument("the zero point, input 4, has shape ", zero->shape().to_string(),
                                ", expected one element");
      }
      a_zero.data = zero->raw();
    }
    return multiply_to_float(run, g, byte_operand(*a, a_zero), *a_scale, scale->dtype(), {3, 5, 6});
  }
};

// Inputs A (float), B, b_scale, b_zero, bias.
class DynamicQuantizeMatMul final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0, DType::kFloat));
    FOLIO_TRY(const Tensor* b, byte_tensor(run, 1));
    FOLIO_TRY(const MatMulGeometry g, matmul_geometry(a->shape(), b->shape()));
    const int64_t count = a->count();
    const float* x = a->data<float>();
    const QuantScalar quant = dynamic_quant(run, count, x);
    FOLIO_TRY(uint8_t * codes, run.scratch(static_cast<size_t>(count)));
    quantize_bytes(run, count, x, quant, DType::kUint8, codes);
    const auto zero = static_cast<uint8_t>(quant.zero);
    ByteOperand operand{codes, count, DType::kUint8, {}};
    operand.zero.data = &zero;
    return multiply_to_float(run, g, operand, quant.scale, DType::kFloat, {2, 3, 4});
  }
};

// ---------------------------------------------------------------- registration

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  request_byte_matrix(build, 1, false);
  return std::unique_ptr<OpKernel>(std::make_unique<Kernel>());
}

template <DType kOutput>
Status infer(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_matmul_dims(infer, 0, 1));
  infer.set_tensor(0, kOutput, std::move(dims));
  return Status::ok();
}

Status infer_as_scale(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_matmul_dims(infer, 0, 1));
  infer.set_tensor(0, infer.dtype(2), std::move(dims));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_matmul_integer(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "MatMulInteger",
                .since = 10,
                .min_inputs = 2,
                .max_inputs = 4,
                .infer = infer<DType::kInt32>,
                .make = make<MatMulInteger>});
  registry.add({.domain = "com.microsoft",
                .type = "MatMulIntegerToFloat",
                .min_inputs = 4,
                .max_inputs = 7,
                .infer = infer_as_scale,
                .make = make<MatMulIntegerToFloat>});
  registry.add({.domain = "com.microsoft",
                .type = "DynamicQuantizeMatMul",
                .min_inputs = 3,
                .max_inputs = 5,
                .infer = infer<DType::kFloat>,
                .make = make<DynamicQuantizeMatMul>,
                .float_inputs = 0b10101});
}

}  // namespace folio
