// Matrix product with batch broadcasting.
//
// Source: ONNX operator spec, MatMul, opsets 1, 9 (integers), 13 (bfloat16): NumPy's matmul.
// Shapes: a [..., m, k], b [..., k, n] -> y [..., m, n]; 1-D operands are a row or a column whose
//         dim is dropped from the result.
// Types:  float by kernels; float16, bfloat16 in float; double and integers (wrapping) by loops.
// Errors: kInvalidArgument when ranks are 0, k differs, or batches do not broadcast.
#include <algorithm>

#include "core/ops/op_gemm.h"
#include "core/ops/op_matmul.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Status run_f32(OpRun& run, const MatMulGeometry& g, const float* a, const void* b,
               const float* packed, float* y) {
  FolioGemmF32 args{};
  args.m = g.m;
  args.n = g.n;
  args.k = g.k;
  args.a_row_stride = g.k;
  args.a_col_stride = 1;
  args.c_row_stride = g.n;
  args.alpha = 1.0F;
  GemmB plain;
  plain.row_stride = g.n;
  plain.col_stride = 1;
  plain.packed = packed;
  if (g.batch_b.count() == 1) {
    // One B for all batches: they are just more rows.
    args.m = g.m * g.batch.count();
    args.a = a;
    args.c = y;
    plain.data = b;
    return gemm_f32(run, args, plain);
  }
  const int64_t batches = g.batch.count();
  for (int64_t i = 0; i < batches; ++i) {
    args.a = a + g.index_a(i) * g.m * g.k;
    args.c = y + i * g.m * g.n;
    plain.data = static_cast<const char*>(b) +
                 g.index_b(i) * g.k * g.n * static_cast<int64_t>(sizeof(float));
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, plain));
  }
  return Status::ok();
}

// The plain loops, for types that no kernel has. Acc wraps for integers.
template <typename T, typename Acc>
void run_loops(OpRun& run, const MatMulGeometry& g, const T* a, const T* b, T* y) {
  const int64_t batches = g.batch.count();
  run.parallel().for_range(batches * g.m, 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t batch = row / g.m;
      const T* a_row = a + (g.index_a(batch) * g.m + row % g.m) * g.k;
      const T* b_mat = b + g.index_b(batch) * g.k * g.n;
      for (int64_t j = 0; j < g.n; ++j) {
        Acc sum{};
        for (int64_t p = 0; p < g.k; ++p) {
          sum = static_cast<Acc>(sum +
                                 static_cast<Acc>(a_row[p]) * static_cast<Acc>(b_mat[p * g.n + j]));
        }
        y[row * g.n + j] = static_cast<T>(sum);
      }
    }
  });
}

class MatMul final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    FOLIO_TRY(const Tensor* given_b, run.tensor(1, a->dtype()));
    // Float kernels take B as it stands in the file; the loops want it aligned.
    FOLIO_TRY(const Tensor aligned_b, a->dtype() == DType::kFloat ? *given_b : aligned(*given_b));
    const Tensor* b = &aligned_b;
    FOLIO_TRY(const MatMulGeometry g, matmul_geometry(a->shape(), b->shape()));
    FOLIO_TRY(Tensor * y, run.output(0, a->dtype(), g.out));
    if (y->count() == 0) return Status::ok();
    switch (a->dtype()) {
      case DType::kFloat: {
        const PackedBlob* blob = run.packed(1);
        const float* packed = blob ? reinterpret_cast<const float*>(blob->data()) : nullptr;
        return run_f32(run, g, a->data<float>(), b->raw(), packed, y->data_mut<float>());
      }
      case DType::kFloat16:
      case DType::kBfloat16:
        return run_half(run, g, *a, *b, y);
      case DType::kDouble:
        run_loops<double, double>(run, g, a->data<double>(), b->data<double>(),
                                  y->data_mut<double>());
        return Status::ok();
      case DType::kInt32:
      case DType::kUint32:
        run_loops<uint32_t, uint32_t>(run, g, a->data<uint32_t>(), b->data<uint32_t>(),
                                      y->data_mut<uint32_t>());
        return Status::ok();
      case DType::kInt64:
      case DType::kUint64:
        run_loops<uint64_t, uint64_t>(run, g, a->data<uint64_t>(), b->data<uint64_t>(),
                                      y->data_mut<uint64_t>());
        return Status::ok();
      default:
        return not_implemented("MatMul of ", dtype_name(a->dtype()));
    }
  }

 private:
  static Status run_half(OpRun& run, const MatMulGeometry& g, const Tensor& a, const Tensor& b,
                         Tensor* y) {
    FOLIO_TRY(float* a32, widen_half(run, a));
    FOLIO_TRY(float* b32, widen_half(run, b));
    FOLIO_TRY(uint8_t * y32, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
    auto* out = reinterpret_cast<float*>(y32);
    FOLIO_RETURN_IF_ERROR(run_f32(run, g, a32, b32, nullptr, out));
    narrow_half(run, out, y);
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_matmul_dims(infer, 0, 1));
  infer.set_tensor(0, infer.dtype(0), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  // A constant [k, n] is packed; batches of matrices are packed tile by tile at run.
  const Initializer* b = build.initializer(1);
  if (b && b->dtype == DType::kFloat && b->shape.rank() == 2) {
    request_f32p16(build, 1, b->shape[0], b->shape[1], b->shape[1], 1);
  }
  return std::unique_ptr<OpKernel>(std::make_unique<MatMul>());
}

}  // namespace

void register_matmul(OpRegistry& registry) {
  OpDef def;
  def.type = "MatMul";
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer;
  def.make = make;
  def.unaligned_inputs = 1U << 1;
  registry.add(def);
}

}  // namespace folio
