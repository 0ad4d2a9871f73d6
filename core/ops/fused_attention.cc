// Attention and QAttention of com.microsoft: the projection to q, k and v and the attention.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.Attention and .QAttention (CPU; do_rotary is
//         refused).
// Shapes: input [B, S, I], weights [I, D + D + Dv], bias [D + D + Dv]; past [2, B, H, P, d], with
//         past_present_share_buffer a buffer whose first past_sequence_length rows count; Y
//         [B, S, Dv]; present [2, B, H, P + S, d] or of the buffer's length.
// Math:   input * weights + bias, then op_attention.h with the masks of op_padding_rule.h.
//         QAttention: (input - zero) * (weights - zero) times both scales, weights widened a few
//         columns at a time.
// Types:  Attention: float; float16 and bfloat16 in float. QAttention: input and weights int8 or
//         uint8; scales, bias, past and Y float; float16 and bfloat16 in float.
// Notes:  do_rotary is refused.
#include <cmath>

#include "core/ops/op_gemm_tiles.h"
#include "core/ops/op_padding_rule.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct InputNames {
  int bias, mask, past, attention_bias, past_length;
};
constexpr InputNames kFloat = {2, 3, 4, 5, 6};
constexpr InputNames kQuantized = {2, 5, 8, -1, -1};
constexpr int kInputScale = 3;  // of QAttention: of the type that the result has

// Where scale and zero point of a byte tensor stand, one of each or one a column.
struct ByteColumns {
  const Tensor* tensor = nullptr;
  const Tensor* zeros = nullptr;  // or null: 0
  const float* scales = nullptr;
  int64_t scale_step = 0;

  static int32_t byte_at(const Tensor& t, int64_t i) {
    return t.dtype() == DType::kInt8 ? t.data<int8_t>()[i] : t.data<uint8_t>()[i];
  }
  int32_t zero(int64_t column) const {
    return zeros ? byte_at(*zeros, zeros->count() == 1 ? 0 : column) : 0;
  }
};

class FusedAttention final : public OpKernel {
 public:
  bool quantized = false;
  InputNames in = kFloat;
  int64_t heads = 0;
  int64_t hidden = 0;    // of q and of k; 0: a third of the weights each
  int64_t v_hidden = 0;  // of v
  float scale = 0.0F;
  float filter = -10000.0F;
  bool causal = false;
  bool share_buffer = false;
  bool has_half_w = false;

  Status run(OpRun& run) const override;

 private:
  Status project(OpRun& run, AttendArgs* a) const;
  Status multiply(OpRun& run, const FolioGemmF32& args) const;
  Status multiply_bytes(OpRun& run, const FolioGemmF32& args) const;
  static Result<ByteColumns> bytes_of(OpRun& run, int input, int scale, int zero, int64_t columns);
  Status append(OpRun& run, DType dtype, AttendArgs* a, int64_t* past) const;
  bool has(const OpRun& run, int input) const { return input >= 0 && run.has_input(input); }
};

Result<ByteColumns> FusedAttention::bytes_of(OpRun& run, int input, int scale, int zero,
                                             int64_t columns) {
  ByteColumns b;
  FOLIO_TRY(b.tensor, run.tensor(input));
  const DType dtype = b.tensor->dtype();
  if (dtype != DType::kUint8 && dtype != DType::kInt8) {
    return invalid_argument("input ", input, " is ", dtype_name(dtype), ", expected uint8 or int8");
  }
  FOLIO_TRY(const Tensor* scales, run.tensor(scale));
  FOLIO_TRY(b.zeros, run.optional_tensor(zero, dtype));
  const auto fits = [&](int64_t count) { return count == 1 || count == columns; };
  if (!fits(scales->count()) || (b.zeros && !fits(b.zeros->count()))) {
    return invalid_argument("scale and zero point of input ", input, " must have 1 or ", columns,
                            " elements");
  }
  FOLIO_TRY(b.scales, floats_of(run, *scales));
  b.scale_step = scales->count() == 1 ? 0 : 1;
  return b;
}

// C = A W with both of bytes; both scales go into W.
Status FusedAttention::multiply_bytes(OpRun& run, const FolioGemmF32& whole) const {
  FOLIO_TRY(const ByteColumns x, bytes_of(run, 0, kInputScale, 6, 1));
  FOLIO_TRY(const ByteColumns w, bytes_of(run, 1, 4, 7, whole.n));
  FOLIO_TRY(float* a, scratch_floats(run, whole.m * whole.k));
  const int32_t x_zero = x.zero(0);
  for (int64_t i = 0; i < whole.m * whole.k; ++i) {
    a[i] = static_cast<float>(ByteColumns::byte_at(*x.tensor, i) - x_zero);
  }
  FolioGemmF32 args = whole;
  args.a = a;
  return gemm_by_tiles(run, args, [&](int64_t begin, int64_t end) {
    return [&, begin, end](int64_t first, int64_t depth, float* panels) {
      std::fill_n(panels, panel_columns(end - begin) * depth, 0.0F);
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t j = begin; j < end; ++j) {
          const int64_t place = (first + p) * whole.n + j;
          const int32_t code = ByteColumns::byte_at(*w.tensor, place) - w.zero(j);
          const float unit = x.scales[0] * w.scales[j * w.scale_step];
          const int64_t at = j - begin;
          panels[at / 16 * 16 * depth + p * 16 + at % 16] = static_cast<float>(code) * unit;
        }
      }
    };
  });
}

Status FusedAttention::multiply(OpRun& run, const FolioGemmF32& whole) const {
  if (quantized) return multiply_bytes(run, whole);
  FolioGemmF32 args = whole;
  const DType dtype = run.value(0).tensor().dtype();
  FOLIO_TRY(const Tensor* weights, weights_input(run, 1, dtype, has_half_w));
  FOLIO_TRY(args.a, floats_of(run, run.value(0).tensor()));
  GemmB b;
  b.row_stride = args.n;
  b.col_stride = 1;
  if (has_panels(weights->dtype())) {
    b.dtype = weights->dtype();
    b.data = weights->raw();
    b.set_packed(run.packed(1));
  } else {
    FOLIO_TRY(b.data, floats_of(run, *weights));
  }
  return gemm_f32(run, args, b);
}

Status FusedAttention::project(OpRun& run, AttendArgs* a) const {
  FOLIO_TRY(const Tensor* x, run.tensor(0));
  FOLIO_TRY(const Tensor* weights, run.tensor(1));
  const Shape& s = x->shape();
  const Shape& w = weights->shape();
  const int64_t columns = w.rank() == 2 ? w[1] : 0;
  const int64_t qk = hidden > 0 ? hidden : columns / 3;
  const int64_t v = hidden > 0 ? v_hidden : columns / 3;
  const bool fits = s.rank() == 3 && w.rank() == 2 && w[0] == s[2] && columns == 2 * qk + v &&
                    qk > 0 && qk % heads == 0 && v % heads == 0;
  if (!fits) {
    return invalid_argument("input ", s.to_string(), " and weights ", w.to_string(), " do not fit ",
                            heads, " heads of q, k and v");
  }
  FOLIO_RETURN_IF_ERROR(check_head_sizes(s[0], heads, s[1], qk / heads, "input"));
  FOLIO_RETURN_IF_ERROR(check_head_sizes(s[0], heads, s[1], v / heads, "input"));
  FOLIO_TRY(const Shape projected, shape_from(std::vector<int64_t>{s[0], s[1], columns}));
  FolioGemmF32 args{};
  args.m = s[0] * s[1];
  args.n = columns;
  args.k = s[2];
  args.a_row_stride = args.k;
  args.a_col_stride = 1;
  args.c_row_stride = columns;
  args.alpha = 1.0F;
  FOLIO_TRY(args.col_bias, optional_reals<float>(run, in.bias, columns));
  FOLIO_TRY(args.c, scratch_floats(run, projected.count()));
  if (projected.count() > 0) FOLIO_RETURN_IF_ERROR(multiply(run, args));
  a->q = Heads::seq_major(args.c, s[0], s[1], heads, qk / heads, columns);
  a->k = Heads::seq_major(args.c + qk, s[0], s[1], heads, qk / heads, columns);
  a->v = Heads::seq_major(args.c + 2 * qk, s[0], s[1], heads, v / heads, columns);
  return Status::ok();
}

Status FusedAttention::append(OpRun& run, DType dtype, AttendArgs* a, int64_t* past) const {
  const bool wanted = run.has_output(1);
  if (!has(run, in.past) && !wanted) return Status::ok();
  const Heads q = a->q;
  int64_t capacity = q.seq;
  Heads old[2];
  if (a->v.size != q.size) return invalid_argument("a cache needs heads of one size for k and v");
  if (has(run, in.past)) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(in.past, dtype));
    const Shape& s = tensor->shape();
    if (s.rank() != 5 || s[0] != 2 || s[1] != q.batch || s[2] != heads || s[4] != q.size) {
      return invalid_argument("past ", s.to_string(), " does not fit [2,", q.batch, ",", heads,
                              ",*,", q.size, "]");
    }
    FOLIO_RETURN_IF_ERROR(check_head_sizes(s[1], heads, s[3], s[4], "past"));
    FOLIO_TRY(const float* data, floats_of(run, *tensor));
    old[0] = Heads::head_major(data, q.batch, heads, s[3], s[4]);
    old[1] = old[0];
    old[1].data += tensor->count() / 2;
    *past = s[3];
    capacity = *past + q.seq;
    if (share_buffer) {
      if (!has(run, in.past_length)) return invalid_argument("past_sequence_length is absent");
      FOLIO_TRY(const std::vector<int64_t> given, run.ints(in.past_length));
      capacity = s[3];
      if (given.size() != 1 || given[0] < 0 || given[0] > capacity - q.seq) {
        return invalid_argument("past_sequence_length does not fit ", q.seq,
                                " new positions into a buffer of ", capacity);
      }
      *past = given[0];
    }
  }
  FOLIO_TRY(const Shape shape,
            shape_from(std::vector<int64_t>{2, q.batch, heads, capacity, q.size}));
  FOLIO_TRY(const FloatOutput out, FloatOutput::make_or_scratch(run, 1, dtype, shape));
  float* to = out.data();
  const std::vector<int64_t> rows(static_cast<size_t>(q.batch), *past);
  a->k = append_cache(run, old[0], rows, a->k, capacity, to);
  a->v = append_cache(run, old[1], rows, a->v, capacity, to + shape.count() / 2);
  a->k.seq = a->v.seq = *past + q.seq;
  out.finish(run);
  return Status::ok();
}

// False for ORT's dummy mask too, of one column where there are more keys: it hides nothing,
// whatever it holds.
Result<bool> has_mask(const OpRun& run, int input, int64_t batch, int64_t total) {
  if (!run.has_input(input)) return false;
  FOLIO_TRY(const Tensor* mask, run.tensor(input, DType::kInt32));
  const Shape& s = mask->shape();
  const bool is_dummy = s.rank() == 2 && s[1] == 1 && (s[0] == 1 || s[0] == batch);
  return !is_dummy || total == 1;
}

Status FusedAttention::run(OpRun& run) const {
  AttendArgs a;
  PaddingRule rule;
  FOLIO_RETURN_IF_ERROR(project(run, &a));
  FOLIO_TRY(const Tensor* typed, run.tensor(quantized ? kInputScale : 0));
  const DType dtype = typed->dtype();
  FOLIO_RETURN_IF_ERROR(append(run, dtype, &a, &rule.past));
  rule.causal = causal && a.q.seq > 1;
  rule.filter = filter;
  FOLIO_TRY(const bool masked, has_mask(run, in.mask, a.q.batch, a.k.seq));
  if (masked) FOLIO_RETURN_IF_ERROR(rule.bind_mask(run, in.mask, a.q, a.k.seq));
  if (in.attention_bias >= 0) {
    FOLIO_RETURN_IF_ERROR(rule.bind_bias(run, in.attention_bias, a.q, a.k.seq));
  }
  a.rule = &rule;
  a.scale = scale == 0.0F ? 1.0F / std::sqrt(static_cast<float>(a.q.size)) : scale;
  const Shape shape{a.q.batch, a.q.seq, heads * a.v.size};
  FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, dtype, shape));
  a.write_seq_major(y.data());
  FOLIO_RETURN_IF_ERROR(attend(run, a));
  y.finish(run);
  return Status::ok();
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const std::vector<int64_t> sizes, infer.attrs().get_ints("qkv_hidden_sizes"));
  const bool quantized = infer.node().op_type == "QAttention";
  const DType dtype = infer.dtype(quantized ? kInputScale : 0);
  for (int i = 0; i < infer.output_count(); ++i) infer.set_tensor(i, dtype);
  const Dims* x = infer.dims_of(0);
  const Dims* w = infer.dims_of(1);
  if (!x || x->size() != 3 || !w || w->size() != 2) return Status::ok();
  const Dim width =
      sizes.size() == 3 ? Dim::of(sizes[2]) : infer.table().floor_div((*w)[1], Dim::of(3));
  infer.set_tensor(0, dtype, Dims{(*x)[0], (*x)[1], width});
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  const Attributes& attrs = build.attrs();
  auto kernel = std::make_unique<FusedAttention>();
  FOLIO_TRY(kernel->heads, attrs.get_int("num_heads"));
  FOLIO_TRY(kernel->scale, attrs.get_float("scale", 0.0F));
  FOLIO_TRY(kernel->filter, attrs.get_float("mask_filter_value", -10000.0F));
  FOLIO_TRY(const int64_t unidirectional, attrs.get_int("unidirectional", 0));
  FOLIO_TRY(const int64_t share, attrs.get_int("past_present_share_buffer", 0));
  FOLIO_TRY(const int64_t rotary, attrs.get_int("do_rotary", 0));
  FOLIO_TRY(const std::vector<int64_t> sizes, attrs.get_ints("qkv_hidden_sizes"));
  if (rotary != 0) return not_implemented("attribute 'do_rotary'");
  if (kernel->heads < 1 || kernel->heads > (1 << 20)) {
    return invalid_graph("attribute 'num_heads' is ", kernel->heads, ", expected 1 to 1048576");
  }
  if (!sizes.empty()) {
    const int64_t limit = int64_t{1} << 40;
    if (sizes.size() != 3 || sizes[0] != sizes[1] || sizes[0] < 1 || sizes[0] > limit ||
        sizes[2] < 1 || sizes[2] > limit) {
      return invalid_graph("attribute 'qkv_hidden_sizes' must be 3 numbers, the first two equal");
    }
    kernel->hidden = sizes[0];
    kernel->v_hidden = sizes[2];
  }
  kernel->causal = unidirectional == 1;
  kernel->share_buffer = share == 1;
  if (build.node().op_type == "QAttention") {
    kernel->quantized = true;
    kernel->in = kQuantized;
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  const Initializer* weights = build.initializer(1);
  kernel->has_half_w = has_half_weights(build.attrs());
  if (weights && has_panels(weights->dtype) && weights->shape.rank() == 2) {
    const Shape& s = weights->shape;
    request_panels(build, 1, s[0], s[1], s[1], 1, /*replaces_source=*/true);
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_fused_attention(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "Attention";
  def.in_place = {-1, 4, -1};
  def.min_inputs = 2;
  def.max_inputs = 7;
  def.max_outputs = 2;
  def.infer = infer;
  def.make = make;
  def.takes_half = takes_half_matrix;
  registry.add(def);
  def.type = "QAttention";
  def.takes_half = nullptr;
  def.in_place = {-1, -1, -1};
  def.min_inputs = 5;
  def.max_inputs = 9;
  registry.add(def);
}

}  // namespace folio
