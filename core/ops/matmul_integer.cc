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
// Errors: kInvalidArgument for other types, shapes that do not match, zero points that do not fit.
#include "core/ops/op_gemm.h"
#include "core/ops/op_integer_matmul.h"
#include "core/ops/op_quantized.h"
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
    if (y->count() == 0) return Status::ok();
    FOLIO_TRY(const float* a_data, widen_bytes(run, *a, a_zero, a_count, g.m, g.k));
    FOLIO_TRY(const float* b_data, widen_bytes(run, *b, b_zero, b_count, g.k, g.n));
    return multiply_bytes(run, g, {a_data}, {b_data}, y->data_mut<int32_t>());
  }
};

// ---------------------------------------------------------------- to float

// Which inputs hold what.
struct FloatInputs {
  int b_scale, b_zero, bias;
};

// y = (A * B) * a_scale * b_scale + bias, `a` widened already.
Status multiply_to_float(OpRun& run, const MatMulGeometry& g, const float* a, float a_scale,
                         const FloatInputs& inputs) {
  FOLIO_TRY(const Tensor* b, byte_tensor(run, 1));
  const int64_t b_count = g.batch_b.count();
  FOLIO_TRY(const ByteZero b_zero,
            byte_zero(run, inputs.b_zero, b->dtype(), b_count, g.n, ZeroAxis::kColumns));
  FOLIO_TRY(const Tensor* scale, run.tensor(inputs.b_scale, DType::kFloat));
  FOLIO_TRY(const ByteZero at, line_strides(*scale, b_count, g.n, ZeroAxis::kColumns));
  const float* bias = nullptr;
  if (run.has_input(inputs.bias)) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(inputs.bias, DType::kFloat));
    if (tensor->rank() != 1 || tensor->count() != g.n) {
      return invalid_argument("bias ", tensor->shape().to_string(), " must have ", g.n, " entries");
    }
    bias = tensor->data<float>();
  }
  FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, g.out));
  if (y->count() == 0) return Status::ok();
  FOLIO_TRY(const float* b_data, widen_bytes(run, *b, b_zero, b_count, g.k, g.n));
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(y->count()) * sizeof(int32_t)));
  auto* sums = reinterpret_cast<int32_t*>(memory);
  FOLIO_RETURN_IF_ERROR(multiply_bytes(run, g, {a}, {b_data}, sums));
  const float* b_scale = scale->data<float>();
  float* out = y->data_mut<float>();
  const int64_t grain = std::max<int64_t>(1, kElementGrain / g.n);
  run.parallel().for_range(g.batch.count() * g.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* scales = b_scale + (at.matrix_stride ? g.index_b(r / g.m) * g.n : 0);
      for (int64_t j = 0; j < g.n; ++j) {
        const float value =
            static_cast<float>(sums[r * g.n + j]) * (a_scale * scales[j * at.col_stride]);
        out[r * g.n + j] = bias ? value + bias[j] : value;
      }
    }
  });
  return Status::ok();
}

// Inputs A, B, a_scale, b_scale, a_zero, b_zero, bias.
class MatMulIntegerToFloat final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* b, byte_tensor(run, 1));
    FOLIO_TRY(const MatMulGeometry g, matmul_geometry(a->shape(), b->shape()));
    FOLIO_TRY(const QuantScalar a_quant, quant_scalar(run, 2, 4, a->dtype()));
    ByteZero a_zero;
    if (run.has_input(4)) a_zero.data = run.value(4).tensor().raw();
    FOLIO_TRY(const float* a_data, widen_bytes(run, *a, a_zero, g.batch_a.count(), g.m, g.k));
    return multiply_to_float(run, g, a_data, a_quant.scale, {3, 5, 6});
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
    const QuantScalar quant = dynamic_quant(run.kernels(), count, x);
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(count) * sizeof(float)));
    auto* wide = reinterpret_cast<float*>(memory);
    using Byte = QuantizedType<DType::kUint8, 8, false>;
    run.parallel().for_range(count, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        wide[i] =
            static_cast<float>(quantize_one<Byte>(x[i], quant.scale, quant.zero) - quant.zero);
      }
    });
    return multiply_to_float(run, g, wide, quant.scale, {2, 3, 4});
  }
};

// ---------------------------------------------------------------- registration

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Kernel>());
}

template <DType kOutput>
Status infer(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_matmul_dims(infer, 0, 1));
  infer.set_tensor(0, kOutput, std::move(dims));
  return Status::ok();
}

}  // namespace

void register_matmul_integer(OpRegistry& registry) {
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
                .infer = infer<DType::kFloat>,
                .make = make<MatMulIntegerToFloat>});
  registry.add({.domain = "com.microsoft",
                .type = "DynamicQuantizeMatMul",
                .min_inputs = 3,
                .max_inputs = 5,
                .infer = infer<DType::kFloat>,
                .make = make<DynamicQuantizeMatMul>});
}

}  // namespace folio
