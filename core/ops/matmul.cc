// Matrix product with batch broadcasting.
//
// Source: ONNX operator spec, MatMul, opsets 1, 9 (integers), 13 (bfloat16): NumPy's matmul.
// Shapes: a [..., m, k], b [..., k, n] -> y [..., m, n]; 1-D operands are a row or a column whose
//         dim is dropped from the result.
// Types:  float by kernels; float16, bfloat16 in float; double and integers (wrapping) by loops.
// Errors: kInvalidArgument when ranks are 0, k differs, or batches do not broadcast.
#include <algorithm>

#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Geometry {
  int64_t m = 1;
  int64_t k = 0;
  int64_t n = 1;
  Shape batch_a;
  Shape batch_b;
  Shape batch;  // broadcast
  Shape out;
};

Result<Geometry> geometry_of(const Shape& a, const Shape& b) {
  if (a.rank() == 0 || b.rank() == 0) return invalid_argument("MatMul of a scalar");
  Geometry g;
  if (a.rank() > 1) g.m = a[a.rank() - 2];
  if (b.rank() > 1) g.n = b[b.rank() - 1];
  g.k = a[a.rank() - 1];
  const int64_t k_b = b[b.rank() > 1 ? b.rank() - 2 : 0];
  if (g.k != k_b) {
    return invalid_argument("shapes ", a.to_string(), " and ", b.to_string(),
                            " do not match: k is ", g.k, " and ", k_b);
  }
  for (int i = 0; i + 2 < a.rank(); ++i) g.batch_a.push_back(a[i]);
  for (int i = 0; i + 2 < b.rank(); ++i) g.batch_b.push_back(b[i]);
  FOLIO_TRY(g.batch, broadcast(g.batch_a, g.batch_b));
  g.out = g.batch;
  if (a.rank() > 1) g.out.push_back(g.m);
  if (b.rank() > 1) g.out.push_back(g.n);
  return g;
}

// Which matrix of an operand belongs to the broadcast batch index `at`.
int64_t batch_index(const Shape& batch, const Shape& operand, int64_t at) {
  int64_t index = 0;
  int64_t step = 1;
  for (int i = batch.rank() - 1; i >= 0; --i) {
    const int64_t coordinate = at % batch[i];
    at /= batch[i];
    const int own = i - (batch.rank() - operand.rank());
    if (own < 0) continue;
    if (operand[own] != 1) index += coordinate * step;
    step *= operand[own];
  }
  return index;
}

Status run_f32(OpRun& run, const Geometry& g, const float* a, const void* b, const float* packed,
               float* y) {
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
    args.a = a + batch_index(g.batch, g.batch_a, i) * g.m * g.k;
    args.c = y + i * g.m * g.n;
    plain.data = static_cast<const char*>(b) +
                 batch_index(g.batch, g.batch_b, i) * g.k * g.n * static_cast<int64_t>(sizeof(float));
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, plain));
  }
  return Status::ok();
}

// The plain loops, for types that no kernel has. Acc wraps for integers.
template <typename T, typename Acc>
void run_loops(OpRun& run, const Geometry& g, const T* a, const T* b, T* y) {
  const int64_t batches = g.batch.count();
  run.parallel().for_range(batches * g.m, 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t batch = row / g.m;
      const T* a_row = a + (batch_index(g.batch, g.batch_a, batch) * g.m + row % g.m) * g.k;
      const T* b_mat = b + batch_index(g.batch, g.batch_b, batch) * g.k * g.n;
      for (int64_t j = 0; j < g.n; ++j) {
        Acc sum{};
        for (int64_t p = 0; p < g.k; ++p) {
          sum = static_cast<Acc>(sum + static_cast<Acc>(a_row[p]) * static_cast<Acc>(b_mat[p * g.n + j]));
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
    FOLIO_TRY(const Geometry g, geometry_of(a->shape(), b->shape()));
    FOLIO_TRY(Tensor* y, run.output(0, a->dtype(), g.out));
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
        run_loops<double, double>(run, g, a->data<double>(), b->data<double>(), y->data_mut<double>());
        return Status::ok();
      case DType::kInt32:
      case DType::kUint32:
        run_loops<uint32_t, uint32_t>(run, g, a->data<uint32_t>(), b->data<uint32_t>(), y->data_mut<uint32_t>());
        return Status::ok();
      case DType::kInt64:
      case DType::kUint64:
        run_loops<uint64_t, uint64_t>(run, g, a->data<uint64_t>(), b->data<uint64_t>(), y->data_mut<uint64_t>());
        return Status::ok();
      default:
        return not_implemented("MatMul of ", dtype_name(a->dtype()));
    }
  }

 private:
  static Status run_half(OpRun& run, const Geometry& g, const Tensor& a, const Tensor& b,
                         Tensor* y) {
    FOLIO_TRY(float* a32, widen_half(run, a));
    FOLIO_TRY(float* b32, widen_half(run, b));
    FOLIO_TRY(uint8_t* y32, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
    auto* out = reinterpret_cast<float*>(y32);
    FOLIO_RETURN_IF_ERROR(run_f32(run, g, a32, b32, nullptr, out));
    narrow_half(run, out, y);
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  const Dims* a = infer.dims_of(0);
  const Dims* b = infer.dims_of(1);
  infer.set_tensor(0, infer.dtype(0));
  if (!a || !b) return Status::ok();
  if (a->empty() || b->empty()) return invalid_graph("MatMul of a scalar");
  const Dim k_a = a->back();
  const Dim k_b = b->size() > 1 ? (*b)[b->size() - 2] : (*b)[0];
  if (k_a.is_value() && k_b.is_value() && !(k_a == k_b)) {
    return invalid_graph("k is ", k_a.value, " and ", k_b.value, " (shapes ",
                         type_to_string(infer.input(0)), " and ", type_to_string(infer.input(1)),
                         ")");
  }
  const size_t rank_a = a->size() > 2 ? a->size() - 2 : 0;
  const size_t rank_b = b->size() > 2 ? b->size() - 2 : 0;
  const size_t rank = std::max(rank_a, rank_b);
  Dims out;
  for (size_t i = 0; i < rank; ++i) {
    const Dim da = i + rank_a < rank ? Dim::of(1) : (*a)[i + rank_a - rank];
    const Dim db = i + rank_b < rank ? Dim::of(1) : (*b)[i + rank_b - rank];
    out.push_back(infer.table().broadcast(da, db));
  }
  if (a->size() > 1) out.push_back((*a)[a->size() - 2]);
  if (b->size() > 1) out.push_back(b->back());
  infer.set_tensor(0, infer.dtype(0), std::move(out));
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
