// GroupQueryAttention: attention with grouped heads, rotary positions and a key/value cache, as
// language models exported for ONNX Runtime have it.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.GroupQueryAttention (CPU). Caches of
//         float8 are refused by name, and windowed ones with attention_bias or qk_output.
// Shapes: query [B, S, H * D] with key and value [B, S, Hkv * D], or all three packed in query;
//         past_* [B, Hkv, P, D]; seqlens_k [B]: positions of each sequence less one;
//         total_sequence_length: the longest sequence. Y [B, S, H * D]; present_*
//         [B, Hkv, max(P, total), D], zeros after each sequence's end.
// Math:   op_attention.h and op_rotary.h. A sequence of length L stood at L - S before this call (0
//         when S is the total: the first prompt, of which position_ids' first element is where all
//         sequences begin); query i stands at position L - S + i and sees
//         the last local_window_size keys up to its own.
//         sliding_window_cache: caches hold the last positions of each sequence only, P >= the
//         window of them: when they are full, all but window - 1 and the new ones go (resident()).
//         With q_norm_weight and k_norm_weight heads are normed (RMS) before they are rotated.
// Types:  float; float16 and bfloat16 in float, rotated keys rounded as the cache holds them.
//         Caches also int8, or 4 bits two in a byte (uint8), with a scale (op_byte_cache.h).
// Notes:  caches of float8, and windowed ones with attention_bias or qk_output, are refused.
#include <cmath>
#include <cstring>

#include "core/ops/op_byte_cache.h"
#include "core/ops/op_grouped_heads.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum Input {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kSeqLens,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

class CausalRule final : public ScoreRule {
 public:
  bool causal = true;
  int64_t window = -1;
  std::vector<int64_t> past;     // of each sequence
  std::vector<int64_t> lengths;  // past and this call
  const float* bias = nullptr;   // [B or 1, H or 1, S, bias_row] or null
  int64_t bias_batch = 0, bias_head = 0, bias_row = 0;

  KeyRange visible(int64_t b, int64_t i) const override {
    KeyRange keys{0, lengths[static_cast<size_t>(b)]};
    const int64_t at = past[static_cast<size_t>(b)] + i;
    if (causal) keys.end = std::min(keys.end, at + 1);
    if (window > 0) keys.begin = std::max<int64_t>(0, at + 1 - window);
    return keys;
  }

  void add_bias(int64_t b, int64_t h, int64_t i, KeyRange keys, float* row) const override {
    if (!bias) return;
    const float* from = bias + b * bias_batch + h * bias_head + i * bias_row;
    for (int64_t j = keys.begin; j < keys.end; ++j) row[j] += from[j];
  }
};

struct Step : GroupedHeads {
  int64_t total = 0;     // of the longest sequence
  int64_t capacity = 0;  // rows of the present tensors
  CausalRule rule;
  // Of caches that hold a window: their rows, and of each sequence which of the rows before it and
  // its own, one behind the other, stay.
  int64_t window_rows = 0;
  std::vector<std::pair<int64_t, int64_t>> kept;  // first, count
};

// How many of `total` positions are in a cache of `capacity` rows for a window: when it is full,
// all that the window may lack room for go at once.
int64_t resident(int64_t total, int64_t capacity, int64_t window) {
  if (total <= capacity) return total;
  const int64_t group = capacity - window + 1;
  return total - group * ((total - capacity + group - 1) / group);
}

class GroupQueryAttention final : public OpKernel {
 public:
  int64_t heads = 0;
  int64_t kv_heads = 0;
  float scale = 0.0F;
  float softcap = 0.0F;
  bool rotary = false;
  bool interleaved = false;
  bool smooth = false;
  bool causal = true;
  int64_t window = -1;
  int64_t qk_output = 0;
  float norm_epsilon = 1e-6F;
  bool byte_keys = false;
  bool byte_values = false;
  int cache_bits = 8;  // of both, where they hold codes
  bool windowed = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* query, run.tensor(kQuery));
    Step step;
    FOLIO_TRY(static_cast<GroupedHeads&>(step), bind_grouped_heads(run, heads, kv_heads));
    FOLIO_RETURN_IF_ERROR(bind_lengths(run, &step));
    FOLIO_RETURN_IF_ERROR(norm(run, &step));
    if (rotary) {
      const bool first = step.total == step.q.seq;
      const RotaryInputs inputs{kCos, kSin, kPositions, interleaved, first};
      FOLIO_RETURN_IF_ERROR(
          rotate_grouped_heads(run, inputs, step.rule.past, step.rule.lengths, &step.q, &step.k));
    }
    if (windowed) FOLIO_RETURN_IF_ERROR(use_window(run, &step));
    FOLIO_RETURN_IF_ERROR(append(run, kPastKey, 1, step, &step.k));
    FOLIO_RETURN_IF_ERROR(append(run, kPastValue, 2, step, &step.v));
    FOLIO_RETURN_IF_ERROR(bind_bias(run, &step));
    AttendArgs a;
    a.q = step.q;
    a.k = step.k;
    a.v = step.v;
    a.k.seq = a.v.seq = step.total;
    a.scale = scale == 0.0F ? 1.0F / std::sqrt(static_cast<float>(step.q.size)) : scale;
    a.softcap = softcap;
    a.rule = &step.rule;
    a.smooth = smooth || run.has_input(kSink);
    FOLIO_TRY(a.sinks, optional_reals<float>(run, kSink, heads));
    const Shape shape{step.q.batch, step.q.seq, heads * step.q.size};
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, query->dtype(), shape));
    a.write_seq_major(y.data());
    FloatOutput qk;
    if (run.has_output(3) && qk_output != 0) {
      const Shape scores{step.q.batch, heads, step.q.seq, step.total};
      FOLIO_TRY(qk, FloatOutput::make(run, 3, query->dtype(), scores));
      a.qk = qk.data();
      a.stage = qk_output == 1 ? ScoreStage::kBiased : ScoreStage::kWeights;
    }
    FOLIO_RETURN_IF_ERROR(attend(run, a));
    y.finish(run);
    qk.finish(run);
    return Status::ok();
  }

 private:
  Status bind_lengths(OpRun& run, Step* step) const;
  Status bind_bias(OpRun& run, Step* step) const;
  Status norm(OpRun& run, Step* step) const;
  Status use_window(OpRun& run, Step* step) const;
  Status append(OpRun& run, int past, int present, const Step& step, Heads* fresh) const;
  Status keep_window(OpRun& run, int present, const Step& step, const Tensor& rows) const;
  Status append_codes(OpRun& run, int past, int present, const Step& step, Heads* fresh) const;
};

Status GroupQueryAttention::bind_lengths(OpRun& run, Step* step) const {
  FOLIO_TRY(const std::vector<int64_t> lengths, run.ints(kSeqLens));
  FOLIO_TRY(const std::vector<int64_t> total, run.ints(kTotal));
  const int64_t batch = step->q.batch;
  const int64_t fresh = step->q.seq;
  if (static_cast<int64_t>(lengths.size()) != batch || total.size() != 1) {
    return invalid_argument("seqlens_k has ", lengths.size(), " and total_sequence_length ",
                            total.size(), " elements, expected ", batch, " and 1");
  }
  step->total = total[0];
  FOLIO_RETURN_IF_ERROR(check_head_sizes(batch, heads, step->total, step->q.size, "the cache"));
  int64_t held = 0;
  if (run.has_input(kPastKey)) {
    FOLIO_TRY(const Tensor* past, run.tensor(kPastKey));
    held = past->rank() == 4 ? past->dim(2) : 0;
  }
  step->capacity = std::max(step->total, held);
  const bool first = step->total == fresh;
  for (const int64_t given : lengths) {
    const int64_t length = given + 1;
    const int64_t past = first ? 0 : length - fresh;
    // In a first prompt shorter sequences are padded at their end.
    if (length < 1 || length > step->total || past < 0 || (!windowed && past > held) ||
        past + fresh > step->capacity) {
      return invalid_argument("seqlens_k holds ", given, ", which does not fit ", fresh,
                              " new positions, a past of ", held, " and a total of ", step->total);
    }
    step->rule.past.push_back(past);
    step->rule.lengths.push_back(length);
  }
  step->rule.causal = causal;
  step->rule.window = window;
  return Status::ok();
}

Status GroupQueryAttention::norm(OpRun& run, Step* step) const {
  if (run.has_input(kQueryNorm) != run.has_input(kKeyNorm)) {
    return invalid_argument("q_norm_weight and k_norm_weight must be given together");
  }
  if (!run.has_input(kQueryNorm)) return Status::ok();
  for (Heads* x : {&step->q, &step->k}) {
    FOLIO_TRY(const float* weight,
              floats_of_input(run, x == &step->q ? kQueryNorm : kKeyNorm, x->size));
    FOLIO_TRY(float* out, scratch_floats(run, x->batch * x->batch_stride));
    run.parallel().for_range(x->batch * x->seq, 16, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        for (int64_t h = 0; h < x->heads; ++h) {
          const int64_t base =
              at / x->seq * x->batch_stride + at % x->seq * x->seq_stride + h * x->head_stride;
          float inverse = 0;
          run.kernels().rms_norm_f32(x->size, x->data + base, weight, norm_epsilon, out + base,
                                     &inverse);
        }
      }
    });
    x->data = out;
  }
  return Status::ok();
}

// From positions of the sequences to rows of a cache that holds their last ones only.
Status GroupQueryAttention::use_window(OpRun& run, Step* step) const {
  FOLIO_TRY(const Tensor* past, run.tensor(kPastKey));
  FOLIO_TRY(const Tensor* values, run.tensor(kPastValue));
  if (past->rank() != 4 || values->rank() != 4 || past->dim(2) < window ||
      values->dim(2) != past->dim(2)) {
    return invalid_argument("past_key is ", past->shape().to_string(), " and past_value ",
                            values->shape().to_string(), ", expected local_window_size, ", window,
                            ", rows or more in both");
  }
  step->window_rows = past->dim(2);
  step->capacity = 0;
  for (size_t b = 0; b < step->rule.past.size(); ++b) {
    const int64_t before = resident(step->rule.past[b], step->window_rows, window);
    const int64_t after = resident(step->rule.lengths[b], step->window_rows, window);
    const int64_t gone = step->rule.past[b] - before;  // positions that have no row any more
    step->kept.emplace_back(step->rule.lengths[b] - after - gone, after);
    step->rule.past[b] = before;
    step->rule.lengths[b] -= gone;
    step->capacity = std::max(step->capacity, before + step->q.seq);
  }
  step->total = longest(step->rule.lengths);
  return Status::ok();
}

// Writes what stays of `rows` [B, Hkv, capacity, *] to the window of output `present`.
Status GroupQueryAttention::keep_window(OpRun& run, int present, const Step& step,
                                        const Tensor& rows) const {
  if (!run.has_output(present)) return Status::ok();
  Shape shape = rows.shape();
  shape[2] = step.window_rows;
  FOLIO_TRY(Tensor * out, run.output(present, rows.dtype(), shape));
  const auto row = static_cast<size_t>(shape[3] * dtype_bits(rows.dtype()) / 8);
  for (int64_t at = 0; at < shape[0] * shape[1]; ++at) {
    const auto [first, count] = step.kept[static_cast<size_t>(at / shape[1])];
    uint8_t* to = out->raw_mut() + static_cast<size_t>(at * step.window_rows) * row;
    std::memcpy(to, rows.raw() + static_cast<size_t>(at * step.capacity + first) * row,
                static_cast<size_t>(count) * row);
    std::memset(to + static_cast<size_t>(count) * row, 0,
                static_cast<size_t>(step.window_rows - count) * row);
  }
  return Status::ok();
}

Status GroupQueryAttention::append(OpRun& run, int past, int present, const Step& step,
                                   Heads* fresh) const {
  if (past == kPastKey ? byte_keys : byte_values) {
    return append_codes(run, past, present, step, fresh);
  }
  const DType dtype = run.value(kQuery).tensor().dtype();
  // Read where they stand, unless only one of the caches could be: attend() takes both alike.
  const bool half = is_half(dtype) && !windowed && !byte_keys && !byte_values;
  FOLIO_TRY(const PastHeads old, bind_past(run, past, dtype, half, *fresh, step.rule.past));
  if (windowed) {
    FOLIO_TRY(const Shape shape,
              shape_from(std::vector<int64_t>{fresh->batch, kv_heads, step.capacity, fresh->size}));
    FOLIO_TRY(Tensor rows, scratch_tensor(run, dtype, shape));
    const bool plain = dtype == DType::kFloat;
    float* to = rows.data_mut<float>();
    if (!plain) {
      FOLIO_TRY(to, scratch_floats(run, shape.count()));
    }
    *fresh = append_cache(run, old.heads, step.rule.past, *fresh, step.capacity, to);
    if (!plain) {  // attended to as the cache holds them
      narrow_half(run, to, &rows);
      FOLIO_TRY(fresh->data, floats_of(run, rows));
    }
    return keep_window(run, present, step, rows);
  }
  return append_heads(run, old, present, dtype, half, step.rule.past, step.capacity, fresh);
}

Status GroupQueryAttention::append_codes(OpRun& run, int past, int present, const Step& step,
                                         Heads* fresh) const {
  ByteCache cache;
  cache.bits = cache_bits;
  cache.past_rows = step.rule.past;
  cache.total = step.total;
  const DType dtype = cache_bits == 8 ? DType::kInt8 : DType::kUint8;
  const int64_t row = fresh->size * cache_bits / 8;
  if (row * 8 != fresh->size * cache_bits) {
    return invalid_argument("heads of ", fresh->size, " do not fill bytes with ", cache_bits,
                            " bits each");
  }
  FOLIO_TRY(cache.scale, run.tensor(past == kPastKey ? kKeyScale : kValueScale, DType::kFloat));
  if (run.has_input(past)) {
    FOLIO_TRY(cache.past, run.tensor(past, dtype));
    const Shape& s = cache.past->shape();
    const int64_t most = longest(step.rule.past);
    if (s.rank() != 4 || s[0] != fresh->batch || s[1] != kv_heads || s[3] != row || s[2] < most) {
      return invalid_argument("past ", s.to_string(), " does not fit [", fresh->batch, ",",
                              kv_heads, ",*,", row, "] with ", most, " rows");
    }
  }
  FOLIO_TRY(const Shape shape,
            shape_from(std::vector<int64_t>{fresh->batch, kv_heads, step.capacity, row}));
  Tensor unwanted;
  if (windowed) {
    FOLIO_TRY(unwanted, scratch_tensor(run, dtype, shape));
    cache.present = &unwanted;
    FOLIO_TRY(*fresh, append_bytes(run, cache, *fresh));
    return keep_window(run, present, step, unwanted);
  }
  if (run.has_output(present)) {
    FOLIO_TRY(cache.present, run.output(present, dtype, shape));
  } else {
    FOLIO_TRY(unwanted, allocate_tensor(dtype, shape));
    cache.present = &unwanted;
  }
  FOLIO_TRY(*fresh, append_bytes(run, cache, *fresh));
  return Status::ok();
}

Status GroupQueryAttention::bind_bias(OpRun& run, Step* step) const {
  if (!run.has_input(kBias)) return Status::ok();
  FOLIO_TRY(const Tensor* bias, run.tensor(kBias));
  const Shape& s = bias->shape();
  const Heads& q = step->q;
  const bool fits = s.rank() == 4 && (s[0] == 1 || s[0] == q.batch) &&
                    (s[1] == 1 || s[1] == heads) && s[2] == q.seq && s[3] >= step->total;
  if (!fits) {
    return invalid_argument("attention_bias ", s.to_string(), " does not broadcast to [", q.batch,
                            ",", heads, ",", q.seq, ",", step->total, "]");
  }
  CausalRule& rule = step->rule;
  FOLIO_TRY(rule.bias, floats_of(run, *bias));
  rule.bias_row = s[3];
  rule.bias_head = s[1] == 1 ? 0 : s[2] * s[3];
  rule.bias_batch = s[0] == 1 ? 0 : s[1] * s[2] * s[3];
  return Status::ok();
}

Result<bool> has_codes(const Attributes& attrs, std::string_view name) {
  FOLIO_TRY(const std::string type, attrs.get_string(name, "NONE"));
  if (type == "NONE") return false;
  if (type == "PER_TENSOR" || type == "PER_CHANNEL") return true;
  return invalid_graph("attribute '", name, "' is '", type,
                       "', expected NONE, PER_TENSOR or PER_CHANNEL");
}

Status infer(OpInfer& infer) {
  const DType dtype = infer.dtype(kQuery);
  FOLIO_TRY(const bool byte_keys, has_codes(infer.attrs(), "k_quant_type"));
  FOLIO_TRY(const bool byte_values, has_codes(infer.attrs(), "v_quant_type"));
  FOLIO_TRY(const int64_t bits, infer.attrs().get_int("kv_cache_bit_width", 8));
  FOLIO_TRY(const int64_t qk_output, infer.attrs().get_int("qk_output", 0));
  const DType codes = bits == 4 ? DType::kUint8 : DType::kInt8;
  for (int i = 0; i < infer.output_count(); ++i) {
    const bool bytes = (i == 1 && byte_keys) || (i == 2 && byte_values);
    if (i == 3 && qk_output == 0) continue;  // nothing is there then
    infer.set_tensor(i, bytes ? codes : dtype);
  }
  return infer_grouped_heads(infer);
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  const Attributes& attrs = build.attrs();
  auto kernel = std::make_unique<GroupQueryAttention>();
  FOLIO_TRY(const HeadCounts counts, HeadCounts::parse(attrs));
  kernel->heads = counts.heads;
  kernel->kv_heads = counts.kv_heads;
  FOLIO_TRY(kernel->scale, attrs.get_float("scale", 0.0F));
  FOLIO_TRY(kernel->softcap, attrs.get_float("softcap", 0.0F));
  FOLIO_TRY(kernel->window, attrs.get_int("local_window_size", -1));
  FOLIO_TRY(kernel->qk_output, attrs.get_int("qk_output", 0));
  FOLIO_TRY(const int64_t rotary, attrs.get_int("do_rotary", 0));
  FOLIO_TRY(const int64_t interleaved, attrs.get_int("rotary_interleaved", 0));
  FOLIO_TRY(const int64_t smooth, attrs.get_int("smooth_softmax", 0));
  FOLIO_TRY(const int64_t causal, attrs.get_int("causal", 1));
  FOLIO_TRY(const int64_t windowed, attrs.get_int("sliding_window_cache", 0));
  FOLIO_TRY(kernel->byte_keys, has_codes(attrs, "k_quant_type"));
  FOLIO_TRY(kernel->byte_values, has_codes(attrs, "v_quant_type"));
  FOLIO_TRY(kernel->norm_epsilon, attrs.get_float("qk_norm_epsilon", 1e-6F));
  FOLIO_TRY(const int64_t bits, attrs.get_int("kv_cache_bit_width", 8));
  if ((kernel->byte_keys || kernel->byte_values) && bits != 8 && bits != 4) {
    return not_implemented("attribute 'kv_cache_bit_width' = ", bits, ", expected 4 or 8");
  }
  kernel->cache_bits = bits == 4 ? 4 : 8;
  kernel->windowed = windowed != 0;
  if (kernel->windowed && (kernel->window < 1 || causal == 0)) {
    return invalid_graph("attribute 'sliding_window_cache' needs a local_window_size above 0 and ",
                         "causal, found ", kernel->window, " and ", causal);
  }
  if (kernel->windowed && (build.has_input(kBias) || kernel->qk_output != 0)) {
    return not_implemented("attribute 'sliding_window_cache' with attention_bias or qk_output");
  }
  kernel->rotary = rotary == 1;
  kernel->interleaved = interleaved == 1;
  kernel->smooth = smooth == 1;
  kernel->causal = causal != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_group_query_attention(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "GroupQueryAttention";
  def.keeps_half = true;
  def.min_inputs = 7;
  def.optional_inputs = 1U << kKey | 1U << kValue | 1U << kPastKey | 1U << kPastValue;
  def.max_inputs = 16;
  def.max_outputs = 4;
  def.in_place = {-1, kPastKey, kPastValue};
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
