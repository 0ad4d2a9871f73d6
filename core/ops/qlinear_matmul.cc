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
// Types:  int8 and uint8.
#include "core/ops/op_gemm.h"
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
    FOLIO_TRY(const Scales a_scale, scales_of(run, 1, a_count, g.m, ZeroAxis::kRows));
    FOLIO_TRY(const Scales b_scale, scales_of(run, 4, b_count, g.n, ZeroAxis::kColumns));
    FOLIO_TRY(const Scales y_scale, scales_of(run, 6, 1, 1, ZeroAxis::kRows));
    FOLIO_TRY(const Tensor* y_zero, byte_tensor(run, 7));
    if (y_zero->count() != 1) {
      return invalid_argument("y_zero_point ", y_zero->shape().to_string(),
                              " must have one element");
    }
    FOLIO_TRY(Tensor * y, run.output(0, y_zero->dtype(), g.out));
    if (y->count() == 0) return Status::ok();
    FOLIO_TRY(const float* a_data, widen_bytes(run, *a, a_zero, a_count, g.m, g.k));
    FOLIO_TRY(const float* b_data, widen_bytes(run, *b, b_zero, b_count, g.k, g.n));
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(y->count()) * sizeof(int32_t)));
    auto* sums = reinterpret_cast<int32_t*>(memory);
    FOLIO_RETURN_IF_ERROR(multiply_bytes(run, g, {a_data}, {b_data}, sums));
    const int32_t zero = byte_at(*y_zero, 0);
    dispatch_byte(y->dtype(), [&](auto quantized) {
      using Q = decltype(quantized);
      for_rows(run, g, [&](int64_t r) {
        const int64_t batch = r / g.m;
        const float row_scale = a_scale.at(g.index_a(batch), r % g.m) / *y_scale.data;
        for (int64_t j = 0; j < g.n; ++j) {
          const float scale = row_scale * b_scale.at(g.index_b(batch), j);
          const auto sum = static_cast<float>(sums[r * g.n + j]);
          Q::set(y->raw_mut(), r * g.n + j, quantize_ratio<Q>(sum * scale, zero));
        }
      });
    });
    return Status::ok();
  }

 private:
  struct Scales {
    const float* data = nullptr;
    int64_t matrix_stride = 0;
    int64_t line_stride = 0;
    float at(int64_t matrix, int64_t line) const {
      return data[matrix * matrix_stride + line * line_stride];
    }
  };

  static Result<Scales> scales_of(OpRun& run, int input, int64_t matrices, int64_t line,
                                  ZeroAxis axis) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(input));
    if (tensor->dtype() == DType::kInt32) return wrong_type(input, tensor->dtype());
    FOLIO_TRY(const ByteZero strides, line_strides(*tensor, matrices, line, axis));
    Scales scales;
    FOLIO_TRY(scales.data, as_floats(run, input, *tensor));
    scales.matrix_stride = strides.matrix_stride;
    scales.line_stride = strides.row_stride + strides.col_stride;
    return scales;
  }

  template <typename Body>
  static void for_rows(OpRun& run, const MatMulGeometry& g, Body&& body) {
    const int64_t grain = std::max<int64_t>(1, kElementGrain / g.n);
    run.parallel().for_range(g.batch.count() * g.m, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) body(r);
    });
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
    if (trans_b) std::swap(b_zero.row_stride, b_zero.col_stride);
    ByteZero a_zero;
    if (run.has_input(2)) a_zero.data = run.value(2).tensor().raw();
    FOLIO_TRY(const float* a_data, widen_bytes(run, *a, a_zero, 1, a->dim(0), a->dim(1)));
    FOLIO_TRY(const float* b_data, widen_bytes(run, *b, b_zero, 1, b->dim(0), b->dim(1)));
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(g.out.count()) * sizeof(int32_t)));
    auto* sums = reinterpret_cast<int32_t*>(memory);
    FOLIO_RETURN_IF_ERROR(multiply_bytes(run, g, {a_data, trans_a}, {b_data, trans_b}, sums));
    FOLIO_RETURN_IF_ERROR(add_c(run, g, sums));
    const float scale = alpha * a_quant.scale;
    return finish(run, g, sums, scale, scales->data<float>(), scale_at.col_stride);
  }

 private:
  Result<MatMulGeometry> geometry(const Shape& a, const Shape& b) const {
    if (a.rank() != 2 || b.rank() != 2) {
      return invalid_argument("A ", a.to_string(), " and B ", b.to_string(), " must have 2 dims");
    }
    return matmul_geometry(trans_a ? Shape{a[1], a[0]} : a, trans_b ? Shape{b[1], b[0]} : b);
  }

  static Status add_c(OpRun& run, const MatMulGeometry& g, int32_t* sums) {
    if (!run.has_input(6)) return Status::ok();
    FOLIO_TRY(const Tensor* c, run.tensor(6, DType::kInt32));
    auto both = broadcast(c->shape(), g.out);
    if (!both.is_ok() || !(both.value() == g.out)) {
      return invalid_argument("C ", c->shape().to_string(), " does not broadcast to ",
                              g.out.to_string());
    }
    const int64_t rows = g.n > 0 ? g.m : 0;  // of empty rows there may be any number
    const int rank = c->rank();
    const int64_t cols = rank > 0 ? c->dim(rank - 1) : 1;
    const int64_t row_step = rank > 1 && c->dim(rank - 2) > 1 ? cols : 0;
    const int64_t col_step = cols > 1 ? 1 : 0;
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t* from = c->data<int32_t>() + i * row_step;
      for (int64_t j = 0; j < g.n; ++j) {
        int32_t& sum = sums[i * g.n + j];
        sum = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                                   static_cast<uint32_t>(from[j * col_step]));
      }
    }
    return Status::ok();
  }

  static Status finish(OpRun& run, const MatMulGeometry& g, const int32_t* sums, float scale,
                       const float* b_scale, int64_t b_step) {
    const int64_t rows = g.n > 0 ? g.m : 0;
    if (!run.has_input(7)) {
      FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, g.out));
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < g.n; ++j) {
          y->data_mut<float>()[i * g.n + j] =
              static_cast<float>(sums[i * g.n + j]) * (scale * b_scale[j * b_step]);
        }
      }
      return Status::ok();
    }
    DType dtype = DType::kUint8;
    if (run.has_input(8)) {
      FOLIO_TRY(const Tensor* zero, byte_tensor(run, 8));
      dtype = zero->dtype();
    }
    FOLIO_TRY(const QuantScalar quant, quant_scalar(run, 7, 8, dtype));
    FOLIO_TRY(Tensor * y, run.output(0, dtype, g.out));
    dispatch_byte(dtype, [&](auto quantized) {
      using Q = decltype(quantized);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < g.n; ++j) {
          const float factor = scale * b_scale[j * b_step] / quant.scale;
          const float value = static_cast<float>(sums[i * g.n + j]) * factor;
          Q::set(y->raw_mut(), i * g.n + j, quantize_ratio<Q>(value, quant.zero));
        }
      }
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_matmul(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<QLinearMatMul>());
}

Result<std::unique_ptr<OpKernel>> make_gemm(OpBuild& build) {
  auto kernel = std::make_unique<QGemm>();
  FOLIO_TRY(kernel->alpha, build.attrs().get_float("alpha", 1.0F));
  FOLIO_TRY(const int64_t trans_a, build.attrs().get_int("transA", 0));
  FOLIO_TRY(const int64_t trans_b, build.attrs().get_int("transB", 0));
  kernel->trans_a = trans_a != 0;
  kernel->trans_b = trans_b != 0;
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

void register_qlinear_matmul(OpRegistry& registry) {
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
                .make = make_gemm});
}

}  // namespace folio
