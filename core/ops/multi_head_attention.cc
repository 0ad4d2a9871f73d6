// MultiHeadAttention and DecoderMaskedMultiHeadAttention: attention over projected inputs.
//
// Source: ONNX Runtime ContribOperators, com.microsoft (CPU; cache_indirection is refused).
// Shapes: query [B, S, D], or q, k, v packed [B, S, H, 3, d] (decoder: [B, S, 3 * D]); key and
//         value [B, L, D], [B, H, L, d] (a cross-attention cache, taken as it is), or packed
//         [B, L, H, 2, d] in key; bias [D + D + Dv] of the projections; past_* [B, H, P, d], with
//         past_sequence_length [1] buffers whose first P rows count. Y [B, S, Dv]; present_*
//         [B, H, P + L, d] or of the buffers' length; qk [B, H, S, T], masked scores before the
//         softmax.
// Math:   op_attention.h with the masks of op_padding_rule.h.
// Types:  float; float16 and bfloat16 in float.
// Notes:  cache_indirection is refused.
#include <cmath>

#include "core/ops/op_padding_rule.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct InputNames {
  int mask, attention_bias, past_key, past_value, past_length, cache_indirection, bias;
};
constexpr InputNames kMultiHead = {4, 5, 6, 7, 8, 9, 3};
constexpr InputNames kDecoder = {3, 4, 5, 6, 7, 9, 10};

struct Projected {
  Heads q, k, v;
  bool cached = false;  // k and v are a whole cross-attention cache
};

class MultiHeadAttention final : public OpKernel {
 public:
  InputNames in = kMultiHead;
  int64_t heads = 0;
  float scale = 0.0F;
  float filter = -10000.0F;
  bool causal = false;

  Status run(OpRun& run) const override;

 private:
  Result<Projected> bind(OpRun& run) const;
  Status bind_packed(const Shape& shape, Projected* p) const;
  Status add_biases(OpRun& run, Projected* p) const;
  Result<int64_t> append(OpRun& run, int past, int present, Heads* fresh) const;
};

// Packed [B, L, H, parts, d]: part `part`.
Heads packed_part(const float* data, const Shape& s, int64_t part) {
  Heads h;
  h.data = data + part * s[4];
  h.batch = s[0];
  h.seq = s[1];
  h.heads = s[2];
  h.size = s[4];
  h.head_stride = s[3] * s[4];
  h.seq_stride = s[2] * h.head_stride;
  h.batch_stride = s[1] * h.seq_stride;
  return h;
}

// Packed inputs have no key (q, k and v in query) or no value (k and v in key).
Status MultiHeadAttention::bind_packed(const Shape& s, Projected* p) const {
  if (s.rank() == 5 && s[2] == heads && s[3] == 3) {
    FOLIO_RETURN_IF_ERROR(check_head_sizes(s[0], heads, s[1], s[4], "query"));
    const float* data = p->q.data;
    p->q = packed_part(data, s, 0);
    p->k = packed_part(data, s, 1);
    p->v = packed_part(data, s, 2);
    return Status::ok();
  }
  if (s.rank() != 3) {
    return invalid_argument("query has shape ", s.to_string(), ", expected [B,S,", heads,
                            ",3,d] or [B,S,3*", heads, "*d] without key");
  }
  const float* data = p->q.data;
  FOLIO_TRY(p->q, heads_of(s, heads * 3, "query"));
  p->q.data = data;
  p->q.heads = heads;
  p->k = p->v = p->q;
  p->k.data += heads * p->q.size;
  p->v.data += 2 * heads * p->q.size;
  return Status::ok();
}

Result<Projected> MultiHeadAttention::bind(OpRun& run) const {
  Projected p;
  FOLIO_TRY(const Tensor* query, run.tensor(0));
  const DType dtype = query->dtype();
  FOLIO_TRY(p.q.data, floats_of(run, *query));
  if (!run.has_input(1)) {
    FOLIO_RETURN_IF_ERROR(bind_packed(query->shape(), &p));
    return p;
  }
  const float* data = p.q.data;
  FOLIO_TRY(p.q, heads_of(query->shape(), heads, "query"));
  p.q.data = data;
  FOLIO_TRY(const Tensor* key, run.tensor(1, dtype));
  FOLIO_TRY(const float* key32, floats_of(run, *key));
  const Shape& s = key->shape();
  if (!run.has_input(2)) {
    if (s.rank() != 5 || s[2] != heads || s[3] != 2) {
      return invalid_argument("key has shape ", s.to_string(), ", expected [B,L,", heads,
                              ",2,d] without value");
    }
    FOLIO_RETURN_IF_ERROR(check_head_sizes(s[0], heads, s[1], s[4], "key"));
    p.k = packed_part(key32, s, 0);
    p.v = packed_part(key32, s, 1);
  } else {
    FOLIO_TRY(const Tensor* value, run.tensor(2, dtype));
    p.cached = s.rank() == 4;
    if (value->rank() != s.rank()) return invalid_argument("key and value differ in rank");
    FOLIO_TRY(p.k, heads_of(s, heads, "key"));
    FOLIO_TRY(p.v, heads_of(value->shape(), heads, "value"));
    p.k.data = key32;
    FOLIO_TRY(p.v.data, floats_of(run, *value));
  }
  const bool agree = query->rank() == 3 && p.k.batch == p.q.batch && p.v.batch == p.q.batch &&
                     p.k.heads == heads && p.v.heads == heads && p.k.size == p.q.size &&
                     p.k.seq == p.v.seq;
  if (!agree) {
    return invalid_argument("query ", query->shape().to_string(), ", key ", s.to_string(),
                            " and value do not agree");
  }
  return p;
}

// `heads_at` plus a bias over its hidden size, as [B, S, H * d].
Status add_bias(OpRun& run, const float* bias, Heads* heads_at) {
  const Heads& h = *heads_at;
  const int64_t row = h.heads * h.size;
  FOLIO_TRY(float* out, scratch_floats(run, h.batch * h.seq * row));
  const auto add = run.kernels().binary_f32[kFolioAdd];
  for (int64_t at = 0; at < h.batch * h.seq; ++at) {
    const float* from = h.data + at / h.seq * h.batch_stride + at % h.seq * h.seq_stride;
    for (int64_t i = 0; i < h.heads; ++i) {
      add(h.size, from + i * h.head_stride, 1, bias + i * h.size, 1, out + at * row + i * h.size);
    }
  }
  *heads_at = Heads::seq_major(out, h.batch, h.seq, h.heads, h.size, row);
  return Status::ok();
}

Status MultiHeadAttention::add_biases(OpRun& run, Projected* p) const {
  if (!run.has_input(in.bias) || p->q.batch == 0) return Status::ok();
  const int64_t hidden = heads * p->q.size;
  FOLIO_TRY(const float* bias, floats_of_input(run, in.bias, 2 * hidden + heads * p->v.size));
  FOLIO_RETURN_IF_ERROR(add_bias(run, bias, &p->q));
  if (p->cached) return Status::ok();
  FOLIO_RETURN_IF_ERROR(add_bias(run, bias + hidden, &p->k));
  return add_bias(run, bias + 2 * hidden, &p->v);
}

// Gives the number of past positions.
Result<int64_t> MultiHeadAttention::append(OpRun& run, int past, int present, Heads* fresh) const {
  const bool wanted = run.has_output(present);
  if (!run.has_input(past) && !wanted) return int64_t{0};
  const DType dtype = run.value(0).tensor().dtype();
  Heads old;
  int64_t rows = 0;
  int64_t capacity = fresh->seq;
  if (run.has_input(past)) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(past, dtype));
    if (tensor->rank() != 4) return invalid_argument("a past tensor must have 4 dims");
    FOLIO_TRY(old, heads_of(tensor->shape(), 0, "past"));
    FOLIO_TRY(old.data, floats_of(run, *tensor));
    if (old.batch != fresh->batch || old.heads != heads || old.size != fresh->size) {
      return invalid_argument("past ", tensor->shape().to_string(), " does not fit [", fresh->batch,
                              ",", heads, ",*,", fresh->size, "]");
    }
    rows = old.seq;
    capacity = rows + fresh->seq;
    if (run.has_input(in.past_length)) {
      FOLIO_TRY(const std::vector<int64_t> given, run.ints(in.past_length));
      capacity = old.seq;
      if (given.size() != 1 || given[0] < 0 || given[0] > capacity - fresh->seq) {
        return invalid_argument("past_sequence_length does not fit ", fresh->seq,
                                " new positions into buffers of ", capacity);
      }
      rows = given[0];
    }
  }
  FOLIO_TRY(const Shape shape,
            shape_from(std::vector<int64_t>{fresh->batch, heads, capacity, fresh->size}));
  FOLIO_TRY(const FloatOutput out, FloatOutput::make_or_scratch(run, present, dtype, shape));
  const std::vector<int64_t> old_rows(static_cast<size_t>(fresh->batch), rows);
  const int64_t total = rows + fresh->seq;
  *fresh = append_cache(run, old, old_rows, *fresh, capacity, out.data());
  fresh->seq = total;
  out.finish(run);
  return rows;
}

Status MultiHeadAttention::run(OpRun& run) const {
  if (run.has_input(in.cache_indirection)) return not_implemented("input cache_indirection");
  FOLIO_TRY(Projected p, bind(run));
  FOLIO_RETURN_IF_ERROR(add_biases(run, &p));
  PaddingRule rule;
  const bool has_past = run.has_input(in.past_key) || run.has_input(in.past_value);
  if (!p.cached || !has_past) {
    FOLIO_TRY(rule.past, append(run, in.past_key, 1, &p.k));
    FOLIO_TRY(const int64_t past, append(run, in.past_value, 2, &p.v));
    if (past != rule.past) return invalid_argument("past_key and past_value differ in length");
  }
  rule.causal = causal && p.q.seq > 1;
  rule.filter = filter;
  FOLIO_RETURN_IF_ERROR(rule.bind_mask(run, in.mask, p.q, p.k.seq));
  FOLIO_RETURN_IF_ERROR(rule.bind_bias(run, in.attention_bias, p.q, p.k.seq));
  AttendArgs a;
  a.q = p.q;
  a.k = p.k;
  a.v = p.v;
  a.rule = &rule;
  a.scale = scale == 0.0F ? 1.0F / std::sqrt(static_cast<float>(p.q.size)) : scale;
  const DType dtype = run.value(0).tensor().dtype();
  const Shape shape{p.q.batch, p.q.seq, heads * p.v.size};
  FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, dtype, shape));
  a.write_seq_major(y.data());
  FloatOutput qk;
  if (run.has_output(3)) {
    FOLIO_TRY(qk, FloatOutput::make(run, 3, dtype, Shape{p.q.batch, heads, p.q.seq, p.k.seq}));
    a.qk = qk.data();
    a.stage = ScoreStage::kBiased;
  }
  FOLIO_RETURN_IF_ERROR(attend(run, a));
  y.finish(run);
  qk.finish(run);
  return Status::ok();
}

Status infer(OpInfer& infer) {
  const DType dtype = infer.dtype(0);
  for (int i = 0; i < infer.output_count(); ++i) infer.set_tensor(i, dtype);
  const Dims* query = infer.dims_of(0);
  const Dims* value = infer.dims_of(2);
  if (query && query->size() == 3 && value && value->size() == 3) {
    infer.set_tensor(0, dtype, Dims{(*query)[0], (*query)[1], (*value)[2]});
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  const Attributes& attrs = build.attrs();
  auto kernel = std::make_unique<MultiHeadAttention>();
  FOLIO_TRY(kernel->heads, attrs.get_int("num_heads"));
  FOLIO_TRY(kernel->scale, attrs.get_float("scale", 0.0F));
  FOLIO_TRY(kernel->filter, attrs.get_float("mask_filter_value", -10000.0F));
  FOLIO_TRY(const int64_t unidirectional, attrs.get_int("unidirectional", 0));
  if (kernel->heads < 1 || kernel->heads > (1 << 20)) {
    return invalid_graph("attribute 'num_heads' is ", kernel->heads, ", expected 1 to 1048576");
  }
  kernel->causal = unidirectional == 1;
  if (build.node().op_type == "DecoderMaskedMultiHeadAttention") kernel->in = kDecoder;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_multi_head_attention(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "MultiHeadAttention";
  def.min_inputs = 1;
  def.max_inputs = 10;
  def.max_outputs = 4;
  def.in_place = {-1, static_cast<int8_t>(kMultiHead.past_key),
                  static_cast<int8_t>(kMultiHead.past_value)};
  def.infer = infer;
  def.make = make;
  registry.add(def);
  def.type = "DecoderMaskedMultiHeadAttention";
  def.max_inputs = 11;
  def.in_place = {-1, static_cast<int8_t>(kDecoder.past_key),
                  static_cast<int8_t>(kDecoder.past_value)};
  registry.add(def);
}

}  // namespace folio
