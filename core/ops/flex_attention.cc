// FlexAttention: scaled dot product attention whose scores and weights two subgraphs may change.
//
// Source: ONNX operator spec, ai.onnx.preview FlexAttention, opset 1 (experimental).
// Shapes: Q [B, Hq, L, E], K [B, Hkv, S, E], V [B, Hkv, S, Ev] -> Y [B, Hq, L, Ev]; Hkv divides Hq,
//         query head h reads head h / (Hq / Hkv). score_mod and prob_mod: one tensor [B, Hq, L, S]
//         of type softmax_precision -> one alike.
// Math:   Y = prob_mod(softmax(score_mod(scale * Q K^T))) V, scale 1 / sqrt(E) by default. A row
//         whose scores are all -inf is NaN, as Softmax has it.
// Types:  float, double; float16 and bfloat16 in float. softmax_precision: double for double, else
//         float; or any of the four.
// Memory: without modifiers and in float as op_attention.h; else the scores of all heads at once.
// Errors: kInvalidArgument for shapes and types that do not fit, and for a modifier that changes
//         them; kInvalidGraph for a softmax_precision that is no floating point type.
#include <algorithm>
#include <cmath>

#include "core/ops/op_attention.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_convert.h"
#include "core/ops/op_product.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_softmax.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

constexpr std::string_view kModifiers[] = {"score_mod", "prob_mod"};

// Position of the graph attribute among the node's subgraphs; -1: absent.
Result<int> modifier_of(const Node& node, std::string_view name) {
  if (node.subgraph(name)) return find_subgraph(node, name);
  if (node.attributes.has(name)) {
    return invalid_graph("attribute '", name, "' is no graph, expected one");
  }
  return -1;
}

// The attribute softmax_precision; kUndefined: absent.
Result<DType> given_precision(const Attributes& attrs) {
  if (!attrs.has("softmax_precision")) return DType::kUndefined;
  FOLIO_TRY(const int64_t given, attrs.get_int("softmax_precision"));
  if (!dtype_known(given) || !dtype_is_float(static_cast<DType>(given))) {
    return invalid_graph("attribute 'softmax_precision' is ", given,
                         ", expected float (1), float16 (10), double (11) or bfloat16 (16)");
  }
  return static_cast<DType>(given);
}

// The type of scores and weights, as far as it is known.
DType precision_of(DType given, DType input) {
  if (given != DType::kUndefined || input == DType::kUndefined) return given;
  return input == DType::kDouble ? DType::kDouble : DType::kFloat;
}

struct Sizes {
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, size = 0, v_size = 0;
  Shape scores;
  Shape y;
};

// ---------------------------------------------------------------- products

// c[i, j] = alpha * sum over p of a[i, p] * b[p, j], b's elements b_row and b_col apart.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  int64_t b_row = 0, b_col = 0;
  float alpha = 1.0F;
};

Status multiply(OpRun& run, const Product& p, const float* a, const float* b, float* c) {
  FolioGemmF32 args{};
  args.m = p.m;
  args.n = p.n;
  args.k = p.k;
  args.a = a;
  args.a_row_stride = p.k;
  args.a_col_stride = 1;
  args.c = c;
  args.c_row_stride = p.n;
  args.alpha = p.alpha;
  GemmB plain;
  plain.data = b;
  plain.row_stride = p.b_row;
  plain.col_stride = p.b_col;
  plain.unpacked = true;
  return gemm_f32(run, args, plain);
}

Status multiply(OpRun& run, const Product& p, const double* a, const double* b, double* c) {
  return multiply_numbers<double>(
      run, {p.m, p.n, p.k, a, p.k, 1, b, p.b_row, p.b_col, c, double{p.alpha}});
}

// The product of every query head with its key/value head; all three lie head by head.
template <typename T>
Status multiply_heads(OpRun& run, const Sizes& s, const Product& p, const T* a, const T* b, T* c) {
  const int64_t group = s.heads / s.kv_heads;
  for (int64_t at = 0; at < s.batch * s.heads; ++at) {
    FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
    const int64_t kv = at / s.heads * s.kv_heads + at % s.heads / group;
    FOLIO_RETURN_IF_ERROR(
        multiply(run, p, a + at * p.m * p.k, b + kv * p.k * p.n, c + at * p.m * p.n));
  }
  return Status::ok();
}

// The same numbers in another floating point type.
Result<Tensor> convert(OpRun& run, const Tensor& from, DType dtype) {
  if (from.dtype() == dtype) return from;
  FOLIO_TRY(Tensor to, allocate_tensor(dtype, from.shape()));
  convert_numbers(run, from.dtype(), from.raw(), dtype, to.raw_mut(), from.count());
  return to;
}

// What products are computed in.
DType product_type(DType dtype) { return dtype == DType::kDouble ? DType::kDouble : DType::kFloat; }

// a times b for all heads in `dtype` (float or double), to which both are converted.
Result<Tensor> product_of(OpRun& run, const Sizes& s, const Product& p, DType dtype,
                          const Tensor& a, const Tensor& b, const Shape& shape) {
  FOLIO_TRY(const Tensor left, convert(run, a, dtype));
  FOLIO_TRY(const Tensor right, convert(run, b, dtype));
  FOLIO_TRY(Tensor out, allocate_tensor(dtype, shape));
  const auto with = [&](auto tag) {
    using T = typename decltype(tag)::type;
    return multiply_heads(run, s, p, left.data<T>(), right.data<T>(), out.data_mut<T>());
  };
  FOLIO_RETURN_IF_ERROR(dtype == DType::kDouble ? with(TypeTag<double>{}) : with(TypeTag<float>{}));
  return out;
}

// ---------------------------------------------------------------- softmax

// Along the last dim, which is not 0. What a modifier gave may belong to somebody else: not in
// place.
Result<Tensor> softmax(OpRun& run, const Tensor& scores) {
  FOLIO_TRY(const Tensor x, convert(run, scores, product_type(scores.dtype())));
  FOLIO_TRY(Tensor y, allocate_tensor(x.dtype(), x.shape()));
  const int64_t n = x.dim(3);
  const auto rows = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = x.data<T>();
    T* to = y.data_mut<T>();
    run.parallel().for_range(
        x.count() / n, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
          softmax_rows(run.kernels(), end - begin, n, from + begin * n, to + begin * n);
        });
  };
  x.dtype() == DType::kDouble ? rows(TypeTag<double>{}) : rows(TypeTag<float>{});
  return convert(run, y, scores.dtype());
}

// ---------------------------------------------------------------- the operator

class FlexAttention final : public OpKernel {
 public:
  bool has_scale = false;
  float scale = 0.0F;
  DType precision = DType::kUndefined;  // kUndefined: follows the inputs
  int modifiers[2] = {-1, -1};

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* q, run.tensor(0));
    if (!contains(FloatTypes{}, q->dtype())) return wrong_type(0, q->dtype());
    FOLIO_TRY(const Tensor* k, run.tensor(1, q->dtype()));
    FOLIO_TRY(const Tensor* v, run.tensor(2, q->dtype()));
    const DType dtype = precision_of(precision, q->dtype());
    FOLIO_TRY(const Sizes s, sizes_of(q->shape(), k->shape(), v->shape()));
    FOLIO_TRY(Tensor * y, run.output(0, q->dtype(), s.y));
    if (y->count() == 0) return Status::ok();
    if (s.keys == 0) {  // a sum of nothing; zero bits in all four types
      std::fill_n(y->raw_mut(), y->count() * dtype_bits(y->dtype()) / 8, uint8_t{0});
      return Status::ok();
    }
    const bool plain = modifiers[0] < 0 && modifiers[1] < 0;
    const bool in_float = q->dtype() != DType::kDouble && dtype != DType::kDouble;
    if (plain && in_float) return run_fused(run, s, *q, *k, *v, y);
    return run_by_parts(run, s, dtype, *q, *k, *v, y);
  }

 private:
  static Result<Sizes> sizes_of(const Shape& q, const Shape& k, const Shape& v);
  float scale_of(const Sizes& s) const {
    return has_scale ? scale : 1.0F / std::sqrt(static_cast<float>(s.size));
  }
  Result<Tensor> modified(OpRun& run, int which, Tensor scores) const;
  Status run_fused(OpRun& run, const Sizes& s, const Tensor& q, const Tensor& k, const Tensor& v,
                   Tensor* y) const;
  Status run_by_parts(OpRun& run, const Sizes& s, DType dtype, const Tensor& q, const Tensor& k,
                      const Tensor& v, Tensor* y) const;
};

Result<Sizes> FlexAttention::sizes_of(const Shape& q, const Shape& k, const Shape& v) {
  const Shape* shapes[] = {&q, &k, &v};
  const std::string_view names[] = {"Q", "K", "V"};
  for (int i = 0; i < 3; ++i) {
    if (shapes[i]->rank() != 4) {
      return invalid_argument(names[i], " has shape ", shapes[i]->to_string(),
                              ", expected 4 dims [batch, heads, sequence, size]");
    }
    FOLIO_RETURN_IF_ERROR(heads_of(*shapes[i], 0, names[i]).status());
  }
  const bool fits = q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3] &&
                    k[1] > 0 && q[1] % k[1] == 0;
  if (!fits) {
    return invalid_argument("Q ", q.to_string(), ", K ", k.to_string(), " and V ", v.to_string(),
                            " do not fit, expected [B,Hq,L,E], [B,Hkv,S,E] and [B,Hkv,S,Ev] with "
                            "Hq a multiple of Hkv");
  }
  Sizes s{q[0], q[1], k[1], q[2], k[2], q[3], v[3], {}, {}};
  FOLIO_TRY(s.scores, shape_from(std::vector<int64_t>{q[0], q[1], q[2], k[2]}));
  FOLIO_TRY(s.y, shape_from(std::vector<int64_t>{q[0], q[1], q[2], v[3]}));
  return s;
}

Result<Tensor> FlexAttention::modified(OpRun& run, int which, Tensor scores) const {
  if (modifiers[which] < 0) return scores;
  const DType dtype = scores.dtype();
  const Shape shape = scores.shape();
  const std::vector<Value> args(1, Value(std::move(scores)));
  std::vector<Value> results;
  FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(modifiers[which], args, &results));
  if (results.size() != 1 || !results[0].is_tensor()) {
    return invalid_argument(kModifiers[which], " gives ", results.size(),
                            " values, expected one tensor");
  }
  const Tensor& out = results[0].tensor();
  if (out.dtype() != dtype || !(out.shape() == shape)) {
    return invalid_argument(kModifiers[which], " gives ", dtype_name(out.dtype()), " ",
                            out.shape().to_string(), ", expected ", dtype_name(dtype), " ",
                            shape.to_string());
  }
  return out;
}

Status FlexAttention::run_fused(OpRun& run, const Sizes& s, const Tensor& q, const Tensor& k,
                                const Tensor& v, Tensor* y) const {
  AttendArgs args;
  args.q = Heads::head_major(nullptr, s.batch, s.heads, s.queries, s.size);
  args.k = Heads::head_major(nullptr, s.batch, s.kv_heads, s.keys, s.size);
  args.v = Heads::head_major(nullptr, s.batch, s.kv_heads, s.keys, s.v_size);
  FOLIO_TRY(args.q.data, floats_of(run, q));
  FOLIO_TRY(args.k.data, floats_of(run, k));
  FOLIO_TRY(args.v.data, floats_of(run, v));
  args.scale = scale_of(s);
  args.plain_softmax = true;
  args.y = y->dtype() == DType::kFloat ? y->data_mut<float>() : nullptr;
  if (!args.y) {
    FOLIO_TRY(args.y, scratch_floats(run, y->count()));
  }
  args.y_seq = s.v_size;
  args.y_head = s.queries * args.y_seq;
  args.y_batch = s.heads * args.y_head;
  FOLIO_RETURN_IF_ERROR(attend(run, args));
  if (y->dtype() != DType::kFloat) narrow_half(run, args.y, y);
  return Status::ok();
}

Status FlexAttention::run_by_parts(OpRun& run, const Sizes& s, DType dtype, const Tensor& q,
                                   const Tensor& k, const Tensor& v, Tensor* y) const {
  const Product by_keys{s.queries, s.keys, s.size, 1, s.size, scale_of(s)};
  const Product by_values{s.queries, s.v_size, s.keys, s.v_size, 1, 1.0F};
  FOLIO_TRY(Tensor raw, product_of(run, s, by_keys, product_type(q.dtype()), q, k, s.scores));
  FOLIO_TRY(Tensor scores, convert(run, raw, dtype));
  raw = Tensor();  // its memory is as large as all that follow
  FOLIO_TRY(scores, modified(run, 0, std::move(scores)));
  FOLIO_TRY(Tensor weights, softmax(run, scores));
  scores = Tensor();
  FOLIO_TRY(weights, modified(run, 1, std::move(weights)));
  FOLIO_TRY(const Tensor out, product_of(run, s, by_values, product_type(dtype), weights, v, s.y));
  FOLIO_TRY(const Tensor result, convert(run, out, y->dtype()));
  std::copy_n(result.raw(), result.count() * dtype_bits(result.dtype()) / 8, y->raw_mut());
  return Status::ok();
}

// ---------------------------------------------------------------- registration

Status infer_modifier(OpInfer& infer, std::string_view name, const TypeInfo& scores) {
  FOLIO_TRY(const int at, modifier_of(infer.node(), name));
  if (at < 0) return Status::ok();
  FOLIO_TRY(const std::vector<TypeInfo> results, infer.infer_subgraph(at, {scores}));
  if (results.size() != 1) {
    return invalid_graph(name, " gives ", results.size(), " values, expected one");
  }
  const TypeInfo& out = results[0];
  if (out.kind == TypeInfo::Kind::kUnknown) return Status::ok();
  const bool is_same =
      out.is_tensor() && (out.dtype == scores.dtype || out.dtype == DType::kUndefined ||
                          scores.dtype == DType::kUndefined);
  if (!is_same || (out.dims && out.dims->size() != 4)) {
    return invalid_graph(name, " gives ", type_to_string(out), ", expected ",
                         type_to_string(scores));
  }
  return Status::ok();
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, infer_common_dtype(infer));
  FOLIO_TRY(const DType given, given_precision(infer.attrs()));
  const Dims* dims[3] = {infer.dims_of(0), infer.dims_of(1), infer.dims_of(2)};
  for (int i = 0; i < 3; ++i) {
    if (dims[i] && dims[i]->size() != 4) {
      return invalid_graph("input ", i, " has ", dims[i]->size(),
                           " dims, expected 4: [batch, heads, sequence, size]");
    }
  }
  const auto dim = [&](int input, size_t at) {
    return dims[input] ? (*dims[input])[at] : Dim::unknown();
  };
  const Dims scores{dim(0, 0), dim(0, 1), dim(0, 2), dim(1, 2)};
  const TypeInfo type = TypeInfo::tensor(precision_of(given, dtype), scores);
  for (const std::string_view name : kModifiers) {
    FOLIO_RETURN_IF_ERROR(infer_modifier(infer, name, type));
  }
  infer.set_tensor(0, dtype, Dims{dim(0, 0), dim(0, 1), dim(0, 2), dim(2, 3)});
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<FlexAttention>();
  kernel->has_scale = build.attrs().has("scale");
  FOLIO_TRY(kernel->scale, build.attrs().get_float("scale", 0));
  FOLIO_TRY(kernel->precision, given_precision(build.attrs()));
  for (int i = 0; i < 2; ++i) {
    FOLIO_TRY(kernel->modifiers[i], modifier_of(build.node(), kModifiers[i]));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_flex_attention(OpRegistry& registry) {
  registry.add({.domain = "ai.onnx.preview",
                .type = "FlexAttention",
                .min_inputs = 3,
                .max_inputs = 3,
                .infer = infer,
                .make = make});
}

}  // namespace folio
