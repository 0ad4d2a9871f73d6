// Matrix product with batch broadcasting.
//
// Source: ONNX operator spec, MatMul, opsets 1, 9 (integers), 13 (bfloat16): NumPy's matmul;
//         com.microsoft FusedMatMul (and its old name TransposeMatMul): alpha, transA, transB,
//         transBatchA, transBatchB; folio FusedMatMul (passes/ only, float): the same with a bias
//         per column, [n], as third input and a function (activation, activation_alpha,
//         activation_beta) of the sum.
// Shapes: a [..., m, k], b [..., k, n] -> y [..., m, n]; 1-D operands are a row or a column whose
//         dim is dropped from the result. transBatch: dim 0 stands before the last one; then
//         trans: the last two dims are swapped. Operands are read where they stand, by strides.
// Types:  MatMul: float by kernels; float16, bfloat16 in float; double and (u)int32, (u)int64
//         (wrapping). FusedMatMul, TransposeMatMul: float by kernels; float16, bfloat16 in float;
//         double.
// Errors: kInvalidArgument when ranks are 0, k differs, or batches do not broadcast.
#include <algorithm>

#include "core/ops/op_activation.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_matmul.h"
#include "core/ops/op_product.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Options {
  float alpha = 1.0F;
  bool trans[2] = {false, false};
  bool trans_batch[2] = {false, false};
};

// Where the matrices of an operand lie: element [i, j] of matrix q at
// q * matrix + i * row + j * col.
struct Strides {
  int64_t matrix = 0;
  int64_t row = 0;
  int64_t col = 0;
};

// The operand's shape as the product sees it; vectors are never transposed.
Shape logical_shape(const Options& options, int operand, const Shape& shape) {
  const int rank = shape.rank();
  if (rank < 2) return shape;
  Shape out = shape;
  if (options.trans_batch[operand]) {
    for (int i = 0; i + 2 < rank; ++i) out[i] = shape[i + 1];
    out[rank - 2] = shape[0];
  }
  if (options.trans[operand]) std::swap(out[rank - 2], out[rank - 1]);
  return out;
}

// `rows` and `cols` of the logical matrices, `batches` of them.
Strides strides_of(const Options& options, int operand, int rank, int64_t rows, int64_t cols,
                   int64_t batches) {
  if (rank < 2) return {0, operand == 0 ? cols : 1, operand == 0 ? 1 : 0};
  if (options.trans[operand]) std::swap(rows, cols);
  Strides s{rows * cols, cols, 1};
  if (options.trans_batch[operand]) s = {cols, batches * cols, 1};
  if (options.trans[operand]) std::swap(s.row, s.col);
  return s;
}

struct Product {
  MatMulGeometry g;
  Strides a;
  Strides b;
  float alpha = 1.0F;
  const float* bias = nullptr;  // per column, or null
  Activation activation;
};

constexpr int64_t kMostSharedMacs = 1 << 20;  // of one of a batch: threads share larger ones

// The products that share one B: the function is applied where its result is still in the cache.
Status multiply(OpRun& run, const Product& p, FolioGemmF32 args, const GemmB& b) {
  const bool is_finished = p.activation.set_in_kernel(&args);
  FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, b));
  if (is_finished) return Status::ok();
  run.parallel().for_range(args.m * args.n, kElementGrain, [&](int64_t begin, int64_t end) {
    p.activation.apply(run.kernels(), end - begin, args.c + begin);
  });
  return Status::ok();
}

// Small products, which threads share. place(i, args, b): the i-th.
template <typename Place>
void multiply_batch(OpRun& run, const Product& p, const FolioGemmF32& first, const GemmB& first_b,
                    int64_t batches, const Place& place) {
  const FolioKernels& kernels = run.kernels();
  const int64_t work = std::max<int64_t>(1, first.m * first.n * first.k);
  const int64_t grain = std::max<int64_t>(1, kThreadMacs / work);
  run.parallel().for_range(batches, grain, [&](int64_t begin, int64_t end) {
    FolioGemmF32 args = first;
    GemmB b = first_b;
    const bool is_finished = p.activation.set_in_kernel(&args);
    for (int64_t i = begin; i < end; ++i) {
      place(i, &args, &b);
      multiply_direct(kernels, args, b);
      if (!is_finished) p.activation.apply(kernels, args.m * args.n, args.c);
    }
  });
}

// `b`: of the first matrix.
Status run_f32(OpRun& run, const Product& p, const float* a, GemmB b, float* y) {
  const MatMulGeometry& g = p.g;
  FolioGemmF32 args{};
  args.m = g.m;
  args.n = g.n;
  args.k = g.k;
  args.a_row_stride = p.a.row;
  args.a_col_stride = p.a.col;
  args.c_row_stride = g.n;
  args.alpha = p.alpha;
  args.col_bias = p.bias;
  b.row_stride = p.b.row;
  b.col_stride = p.b.col;
  const int64_t batches = g.batch.count();
  if (g.batch_b.count() == 1 && (batches == 1 || p.a.matrix == g.m * p.a.row)) {
    // One B for all batches: they are just more rows.
    args.m = g.m * batches;
    args.a = a;
    args.c = y;
    return multiply(run, p, args, b);
  }
  const auto* const first = static_cast<const char*>(b.data);
  const int64_t bytes = panel_element_bytes(b.dtype);
  const auto place = [&](int64_t i, FolioGemmF32* to, GemmB* matrix) {
    to->a = a + g.index_a(i) * p.a.matrix;
    to->c = y + i * g.m * g.n;
    matrix->data = first + g.index_b(i) * p.b.matrix * bytes;
  };
  args.a = a;
  if (batches > 1 && g.m * g.n * g.k <= kMostSharedMacs && is_direct(run.kernels(), args, b)) {
    multiply_batch(run, p, args, b, batches, place);
    return Status::ok();
  }
  for (int64_t i = 0; i < batches; ++i) {
    place(i, &args, &b);
    FOLIO_RETURN_IF_ERROR(multiply(run, p, args, b));
  }
  return Status::ok();
}

// T is double, or unsigned integers, which wrap.
template <typename T>
Status run_numbers(OpRun& run, const Product& p, const Tensor& a, const Tensor& b, Tensor* y) {
  const MatMulGeometry& g = p.g;
  NumberProduct<T> product{g.m,
                           g.n,
                           g.k,
                           nullptr,
                           p.a.row,
                           p.a.col,
                           nullptr,
                           p.b.row,
                           p.b.col,
                           nullptr,
                           static_cast<T>(p.alpha)};
  int64_t batches = g.batch.count();
  if (g.batch_b.count() == 1 && p.a.matrix == g.m * p.a.row) {  // they are just more rows
    product.m *= batches;
    batches = 1;
  }
  for (int64_t i = 0; i < batches; ++i) {
    product.a = a.data<T>() + g.index_a(i) * p.a.matrix;
    product.b = b.data<T>() + g.index_b(i) * p.b.matrix;
    product.y = y->data_mut<T>() + i * g.m * g.n;
    FOLIO_RETURN_IF_ERROR(multiply_numbers(run, product));
  }
  return Status::ok();
}

class MatMul final : public OpKernel {
 public:
  Options options;
  bool fused = false;
  bool finishes = false;  // folio's own: bias and function
  bool has_half_b = false;
  bool unpacked = false;  // see GemmB
  Activation activation;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    FOLIO_TRY(const Tensor* given_b, weights_input(run, 1, a->dtype(), has_half_b));
    // Float kernels take B as it stands in the file; the loops want it aligned.
    FOLIO_TRY(const Tensor aligned_b, has_panels(a->dtype()) ? *given_b : aligned(*given_b));
    const Tensor* b = &aligned_b;
    if (fused && !contains(FloatTypes{}, a->dtype())) return wrong_type(0, a->dtype());
    Product p;
    p.alpha = options.alpha;
    FOLIO_TRY(p.g, matmul_geometry(logical_shape(options, 0, a->shape()),
                                   logical_shape(options, 1, b->shape())));
    p.a = strides_of(options, 0, a->rank(), p.g.m, p.g.k, p.g.batch_a.count());
    p.b = strides_of(options, 1, b->rank(), p.g.k, p.g.n, p.g.batch_b.count());
    if (finishes) FOLIO_RETURN_IF_ERROR(bind_finish(run, a->dtype(), &p));
    FOLIO_TRY(Tensor * y, run.output(0, a->dtype(), p.g.out));
    if (y->count() == 0) return Status::ok();
    switch (a->dtype()) {
      case DType::kFloat:
        return run_f32(run, p, a->data<float>(), gemm_b(run, *b), y->data_mut<float>());
      case DType::kFloat16:
      case DType::kBfloat16:
        return run_halves(run, p, *a, *b, y);
      case DType::kDouble:
        return run_numbers<double>(run, p, *a, *b, y);
      case DType::kInt32:
      case DType::kUint32:
        return run_numbers<uint32_t>(run, p, *a, *b, y);
      case DType::kInt64:
      case DType::kUint64:
        return run_numbers<uint64_t>(run, p, *a, *b, y);
      default:
        return not_implemented("MatMul of ", dtype_name(a->dtype()));
    }
  }

 private:
  GemmB gemm_b(const OpRun& run, const Tensor& b) const {
    GemmB out;
    out.dtype = b.dtype();
    out.unpacked = unpacked;
    out.data = b.raw();
    out.set_packed(run.packed(1));
    return out;
  }

  Status run_halves(OpRun& run, const Product& p, const Tensor& a, const Tensor& b,
                    Tensor* y) const {
    const Operands operands = operands_of(a, b);
    if (b.rank() > 2) {  // a copy for all matrices
      return run_in_float(run, a, b, nullptr, y,
                          [&](const float* a32, const float* b32, const float*, float* y32) {
                            GemmB copy;
                            copy.data = b32;
                            copy.operands = operands;
                            return run_f32(run, p, a32, copy, y32);
                          });
    }
    GemmB plain = gemm_b(run, b);
    plain.operands = operands;
    return run_in_float(run, a, nullptr, y, [&](const float* a32, const float*, float* y32) {
      return run_f32(run, p, a32, plain, y32);
    });
  }

  Status bind_finish(const OpRun& run, DType dtype, Product* p) const {
    if (dtype != DType::kFloat) return wrong_type(0, dtype);
    p->activation = activation;
    if (!run.has_input(2)) return Status::ok();
    FOLIO_TRY(const Tensor* bias, run.tensor(2, dtype));
    if (bias->count() != p->g.n) {
      return invalid_argument("bias ", bias->shape().to_string(),
                              " has not one element for each of ", p->g.n, " columns");
    }
    p->bias = bias->data<float>();
    return Status::ok();
  }
};

Result<Options> parse(const Node& node) {
  Options options;
  if (node.op_type == "MatMul") return options;
  FOLIO_TRY(options.alpha, node.attributes.get_float("alpha", 1.0F));
  const std::string_view names[] = {"transA", "transB"};
  const std::string_view batch_names[] = {"transBatchA", "transBatchB"};
  for (int i = 0; i < 2; ++i) {
    FOLIO_TRY(const int64_t trans, node.attributes.get_int(names[i], 0));
    FOLIO_TRY(const int64_t batch, node.attributes.get_int(batch_names[i], 0));
    options.trans[i] = trans != 0;
    options.trans_batch[i] = batch != 0;
  }
  return options;
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const Options options, parse(infer.node()));
  std::optional<Dims> operands[2];
  for (int i = 0; i < 2; ++i) {
    if (!infer.dims_of(i)) continue;
    Dims dims = *infer.dims_of(i);
    if (dims.size() >= 2 && options.trans_batch[i]) {
      std::rotate(dims.begin(), dims.begin() + 1, dims.end() - 1);
    }
    if (dims.size() >= 2 && options.trans[i]) std::swap(dims.end()[-1], dims.end()[-2]);
    operands[i] = std::move(dims);
  }
  FOLIO_TRY(std::optional<Dims> dims, infer_matmul_dims(infer.table(), operands[0], operands[1]));
  infer.set_tensor(0, infer.dtype(0), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<MatMul>();
  FOLIO_TRY(kernel->options, parse(build.node()));
  kernel->fused = build.node().op_type != "MatMul";
  kernel->finishes = build.node().domain == "folio";
  if (kernel->finishes) {
    FOLIO_TRY(kernel->activation, parse_fused_activation(build.attrs(), {}));
    FOLIO_TRY(kernel->activation.alpha,
              build.attrs().get_float("activation_alpha", kernel->activation.alpha));
    FOLIO_TRY(kernel->activation.beta,
              build.attrs().get_float("activation_beta", kernel->activation.beta));
  }
  // A constant [k, n] is packed; batches of matrices are packed tile by tile at run.
  kernel->has_half_b = has_half_weights(build.attrs());
  kernel->unpacked = request_matrix(build, 1, kernel->options.trans[0], kernel->options.trans[1]);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_matmul(OpRegistry& registry) {
  OpDef def;
  def.type = "MatMul";
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer;
  def.make = make;
  def.one_type = 0b11;
  def.unaligned_inputs = 1U << 1;
  def.takes_half = takes_half_matrix;
  registry.add(def);
  def.domain = "com.microsoft";
  for (const char* type : {"FusedMatMul", "TransposeMatMul"}) {
    def.type = type;
    registry.add(def);
  }
  def.domain = "folio";
  def.type = "FusedMatMul";
  def.max_inputs = 3;
  registry.add(def);
}

}  // namespace folio
