// Scaled dot product attention with grouped heads, masks and a key/value cache.
//
// Source: ONNX operator spec, Attention, opsets 23, 24 (nonpad_kv_seqlen) and 25 (windows).
// Shapes: Q [B, Hq, Sq, D] or [B, Sq, Hq * D]; K [B, Hkv, Skv, D] and V [B, Hkv, Skv, Dv], or 3-D
//         alike; mask broadcasts to [B, Hq, Sq, T] (a shorter last dim is masked out), bool or
//         numbers to add; past_* [B, Hkv, P, .], T = P + Skv. Y has Q's rank; present_* [B, Hkv, T,
//         .].
// Math:   op_attention.h. Query i stands at position p = i + P (or i + nonpad - Sq); a causal one
//         sees keys j <= p, a window keys p - left <= j <= p + right. A query whose mask is -inf
//         for all the keys it sees gives zeros, whatever its scores.
// Types:  float; float16 and bfloat16 in float; double. V and its cache may be of another of them;
//         masks also integers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/op_attention.h"
#include "core/ops/op_attention_double.h"
#include "core/ops/op_copied_input.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

class MaskRule final : public ScoreRule, public ScoreBiasF64 {
 public:
  bool causal = false;
  int64_t left = -1;  // window, -1: unbounded
  int64_t right = -1;
  int64_t queries = 0;
  int64_t total = 0;
  int64_t past = 0;
  const int64_t* nonpad = nullptr;  // [B] or null; a copy: each pass must see the same keys
  const uint8_t* flags = nullptr;   // a bool mask
  const float* floats = nullptr;    // or a mask to add
  const double* doubles = nullptr;  // or one of doubles
  int64_t stride[4] = {0, 0, 0, 0};
  int64_t length = 0;  // of the mask's last dim

  KeyRange visible(int64_t b, int64_t i) const override {
    KeyRange keys{0, total};
    if (flags || floats || doubles) keys.end = std::min(keys.end, length);
    if (nonpad) keys.end = std::min(keys.end, nonpad[b]);
    const bool static_cache = nonpad && past == 0;
    // Hostile lengths must not overflow.
    const int64_t before = static_cache ? std::clamp(nonpad[b], int64_t{0}, total) - queries : past;
    const int64_t at = i + before;
    if (causal) keys.end = std::min(keys.end, at + 1);
    if (right >= 0) keys.end = std::min(keys.end, at + 1 + std::min(right, total + queries));
    if (left >= 0) keys.begin = std::max<int64_t>(0, at - std::min(left, total + queries));
    return keys;
  }

  void add_bias(int64_t b, int64_t h, int64_t i, KeyRange keys, float* row) const override {
    const int64_t base = base_of(b, h, i);
    if (floats && hides_all(floats + base, keys)) {
      std::fill(row + keys.begin, row + keys.end, kMinusInf);
    } else if (floats) {
      for (int64_t j = keys.begin; j < keys.end; ++j) row[j] += floats[base + j * stride[3]];
    } else if (flags) {
      for (int64_t j = keys.begin; j < keys.end; ++j) {
        if (!flags[base + j * stride[3]]) row[j] = kMinusInf;
      }
    }
  }

  void add(int64_t b, int64_t h, int64_t i, KeyRange keys, double* row) const override {
    const int64_t base = base_of(b, h, i);
    if (doubles && hides_all(doubles + base, keys)) {
      std::fill(row + keys.begin, row + keys.end, static_cast<double>(kMinusInf));
      return;
    }
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      if (doubles) row[j] += doubles[base + j * stride[3]];
      if (flags && !flags[base + j * stride[3]]) row[j] = static_cast<double>(kMinusInf);
    }
  }

 private:
  // A sum would not say so: of an infinite score it is no number.
  template <typename T>
  bool hides_all(const T* mask, KeyRange keys) const {
    int64_t j = keys.begin;
    while (j < keys.end && mask[j * stride[3]] == static_cast<T>(kMinusInf)) ++j;
    return j >= keys.end;
  }

  int64_t base_of(int64_t b, int64_t h, int64_t i) const {
    return b * stride[0] + h * stride[1] + i * stride[2];
  }
};

class Attention final : public OpKernel {
 public:
  bool causal = false;
  bool pads_mask = false;  // to the keys, also one of one key (from version 24 on)
  bool has_scale = false;
  float scale = 0.0F;
  float softcap = 0.0F;
  int64_t q_heads = 0;
  int64_t kv_heads = 0;
  int64_t left = -1;
  int64_t right = -1;
  ScoreStage stage = ScoreStage::kRaw;

  Status run(OpRun& run) const override;

 private:
  Status bind_mask(OpRun& run, const Heads& q, int64_t keys, bool in_double, MaskRule* rule) const;
  template <typename Args>
  Status bind(OpRun& run, Args* a, MaskRule* rule) const;
  Status bind_rule(OpRun& run, const Heads& q, const Heads& k, int64_t past, MaskRule* rule) const;
  template <typename Args>
  Status run_with(OpRun& run) const;
};

const Heads& form_of(const Heads& heads) { return heads; }
const Heads& form_of(const HeadsF64& heads) { return heads.form; }

Status bind_heads(OpRun& run, int input, DType dtype, int64_t head_count, std::string_view what,
                  Heads* out) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(input, dtype));
  FOLIO_TRY(*out, heads_of(tensor->shape(), head_count, what));
  FOLIO_TRY(out->data, floats_of(run, *tensor));
  return Status::ok();
}

Status bind_heads(OpRun& run, int input, DType dtype, int64_t head_count, std::string_view what,
                  HeadsF64* out) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(input, dtype));
  if (!contains(FloatTypes{}, dtype)) return wrong_type(input, dtype);
  FOLIO_TRY(out->form, heads_of(tensor->shape(), head_count, what));
  FOLIO_TRY(out->data, reals_of<double>(run, *tensor));
  return Status::ok();
}

// A cache before it is appended to; without heads when it is absent.
Result<Heads> past_of(const OpRun& run, int input, const Heads& fresh, DType dtype) {
  if (!run.has_input(input)) return Heads();
  FOLIO_TRY(const Tensor* tensor, run.tensor(input, dtype));
  if (tensor->rank() != 4) return invalid_argument("a past tensor must have 4 dims");
  FOLIO_TRY(const Heads old, heads_of(tensor->shape(), 0, "past"));
  if (old.batch == fresh.batch && old.heads == fresh.heads && old.size == fresh.size) return old;
  return invalid_argument("past ", tensor->shape().to_string(), " does not fit [", fresh.batch, ",",
                          fresh.heads, ",*,", fresh.size, "]");
}

Status check_agreement(const OpRun& run, const Heads& q, const Heads& k, const Heads& v) {
  const bool batches = q.batch == k.batch && k.batch == v.batch;
  const bool heads = k.heads == v.heads && k.heads > 0 && q.heads % k.heads == 0;
  if (!batches || !heads || q.size != k.size || k.seq != v.seq) {
    const auto shape = [&](int i) { return run.value(i).tensor().shape().to_string(); };
    return invalid_argument("Q ", shape(0), ", K ", shape(1), " and V ", shape(2), " do not agree");
  }
  if (run.has_input(4) != run.has_input(5)) {
    return invalid_argument("past_key and past_value must be given together");
  }
  return Status::ok();
}

// Writes [old; fresh], and views it.
Heads join(OpRun& run, Heads old, const float* data, const Heads& fresh, int64_t total, float* to) {
  old.data = data;
  const std::vector<int64_t> rows(static_cast<size_t>(fresh.batch), old.seq);
  return append_cache(run, old, rows, fresh, total, to);
}

HeadsF64 join(OpRun&, const Heads& old_form, const double* data, const HeadsF64& fresh,
              int64_t total, double* to) {
  const Heads& form = fresh.form;
  const HeadsF64 old{old_form, data};
  double* at = to;
  for (int64_t i = 0; i < form.batch * form.heads; ++i) {
    const int64_t b = i / form.heads;
    const int64_t h = i % form.heads;
    for (int64_t j = 0; j < total; ++j, at += form.size) {
      const bool is_old = j < old_form.seq;
      std::copy_n(is_old ? old.row(b, h, j) : fresh.row(b, h, j - old_form.seq), form.size, at);
    }
  }
  return {Heads::head_major(nullptr, form.batch, form.heads, total, form.size), to};
}

// The cache [past; fresh] in output `present` when it is wanted, else in scratch.
template <typename T, typename Matrix>
Result<Matrix> append(OpRun& run, int past_input, int present, const Matrix& fresh, DType dtype) {
  if (!run.has_input(past_input) && !run.has_output(present)) return fresh;
  const Heads& form = form_of(fresh);
  FOLIO_TRY(const Heads old, past_of(run, past_input, form, dtype));
  FOLIO_TRY(const T* data, optional_reals<T>(run, past_input));
  const int64_t total = old.seq + form.seq;
  FOLIO_TRY(const Shape shape,
            shape_from(std::vector<int64_t>{form.batch, form.heads, total, form.size}));
  FOLIO_TRY(const auto out, RealOutput<T>::make_or_scratch(run, present, dtype, shape));
  const Matrix cache = join(run, old, data, fresh, total, out.data());
  out.finish(run);
  return cache;
}

Status Attention::bind_mask(OpRun& run, const Heads& q, int64_t keys, bool in_double,
                            MaskRule* rule) const {
  FOLIO_TRY(const Tensor* mask, run.tensor(3));
  const int64_t full[4] = {q.batch, q.heads, q.seq, keys};
  const int rank = mask->rank();
  bool fits = rank >= 1 && rank <= 4;
  int64_t stride = 1;
  for (int i = rank - 1; fits && i >= 0; --i) {
    const int axis = 4 - rank + i;
    const int64_t dim = mask->dim(i);
    const bool last = axis == 3;
    fits = dim == full[axis] || dim == 1 || (last && dim <= full[axis]);
    rule->stride[axis] = dim == 1 && full[axis] != 1 && !last ? 0 : stride;
    stride *= dim;
  }
  if (!fits) {
    return invalid_argument("attn_mask ", mask->shape().to_string(), " does not broadcast to [",
                            full[0], ",", full[1], ",", full[2], ",", full[3], "]");
  }
  rule->length = mask->dim(rank - 1);
  if (rule->length == 1 && full[3] != 1 && !pads_mask) {
    rule->stride[3] = 0;
    rule->length = full[3];
  }
  if (mask->dtype() == DType::kBool) {
    rule->flags = mask->raw();
    return Status::ok();
  }
  if (!contains(NumberTypes{}, mask->dtype())) return wrong_type(3, mask->dtype());
  if (in_double) {
    FOLIO_TRY(rule->doubles, reals_of<double>(run, *mask));
    return Status::ok();
  }
  if (mask->dtype() == DType::kFloat || is_half(mask->dtype())) {
    FOLIO_TRY(rule->floats, floats_of(run, *mask));
    return Status::ok();
  }
  FOLIO_TRY(float* floats, scratch_floats(run, mask->count()));
  convert_numbers(run, mask->dtype(), mask->raw(), DType::kFloat,
                  reinterpret_cast<uint8_t*>(floats), mask->count());
  rule->floats = floats;
  return Status::ok();
}

Status Attention::bind_rule(OpRun& run, const Heads& q, const Heads& k, int64_t past,
                            MaskRule* rule) const {
  rule->past = past;
  rule->queries = q.seq;
  rule->total = k.seq;
  rule->causal = causal;
  rule->left = left;
  rule->right = right;
  if (!run.has_input(6)) return Status::ok();
  FOLIO_TRY(const Tensor* nonpad, run.tensor(6, DType::kInt64));
  if (nonpad->count() != q.batch) {
    return invalid_argument("nonpad_kv_seqlen has ", nonpad->count(), " entries, expected ",
                            q.batch);
  }
  FOLIO_TRY(rule->nonpad, copied_input<int64_t>(run, *nonpad, q.batch));
  return Status::ok();
}

template <typename Args>
Status Attention::bind(OpRun& run, Args* a, MaskRule* rule) const {
  using T = decltype(a->scale);
  const DType first = run.value(0).tensor().dtype();
  const DType third = run.value(2).tensor().dtype();
  FOLIO_RETURN_IF_ERROR(bind_heads(run, 0, first, q_heads, "Q", &a->q));
  FOLIO_RETURN_IF_ERROR(bind_heads(run, 1, first, kv_heads, "K", &a->k));
  FOLIO_RETURN_IF_ERROR(bind_heads(run, 2, third, kv_heads, "V", &a->v));
  const Heads& q = form_of(a->q);
  const Heads& k = form_of(a->k);
  FOLIO_RETURN_IF_ERROR(check_agreement(run, q, k, form_of(a->v)));
  const int64_t fresh = k.seq;
  FOLIO_TRY(a->k, append<T>(run, 4, 1, a->k, first));
  FOLIO_TRY(a->v, append<T>(run, 5, 2, a->v, third));
  if (k.seq != form_of(a->v).seq) {
    return invalid_argument("past_key and past_value differ in length");
  }
  FOLIO_RETURN_IF_ERROR(bind_rule(run, q, k, k.seq - fresh, rule));
  return run.has_input(3) ? bind_mask(run, q, k.seq, std::is_same_v<T, double>, rule)
                          : Status::ok();
}

Shape output_shape(const Tensor& q, const Heads& heads, int64_t value_size) {
  return q.rank() == 3 ? Shape{heads.batch, heads.seq, heads.heads * value_size}
                       : Shape{heads.batch, heads.heads, heads.seq, value_size};
}

template <typename Args>
Status Attention::run_with(OpRun& run) const {
  Args a;
  using T = decltype(a.scale);
  MaskRule rule;
  FOLIO_RETURN_IF_ERROR(bind(run, &a, &rule));
  a.rule = &rule;
  if constexpr (std::is_same_v<T, double>) a.bias = &rule;
  const Heads& h = form_of(a.q);
  const int64_t size = form_of(a.v).size;
  a.scale = has_scale ? static_cast<T>(scale) : 1 / std::sqrt(static_cast<T>(h.size));
  a.softcap = static_cast<T>(softcap);
  a.stage = stage;
  const Tensor& q = run.value(0).tensor();
  FOLIO_TRY(const auto y, RealOutput<T>::make(run, 0, q.dtype(), output_shape(q, h, size)));
  a.y = y.data();
  a.y_batch = h.heads * h.seq * size;
  a.y_head = q.rank() == 3 ? size : h.seq * size;
  a.y_seq = q.rank() == 3 ? h.heads * size : size;
  const Shape scores{h.batch, h.heads, h.seq, form_of(a.k).seq};
  FOLIO_TRY(const auto qk, RealOutput<T>::make_if_wanted(run, 3, q.dtype(), scores));
  a.qk = qk.data();
  FOLIO_RETURN_IF_ERROR(attend(run, a));
  y.finish(run);
  qk.finish(run);
  return Status::ok();
}

Status Attention::run(OpRun& run) const {
  bool in_double = false;
  for (const int input : {0, 1, 2}) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(input));
    in_double = in_double || tensor->dtype() == DType::kDouble;
  }
  return in_double ? run_with<AttendF64>(run) : run_with<AttendArgs>(run);
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t q_heads, infer.attrs().get_int("q_num_heads", 0));
  const Dims* q = infer.dims_of(0);
  const Dims* v = infer.dims_of(2);
  const DType dtype = infer.dtype(0);
  for (int i = 0; i < infer.output_count(); ++i) infer.set_tensor(i, infer.dtype(i == 2 ? 2 : 0));
  if (!q || !v || q->size() != v->size()) return Status::ok();
  if (q->size() == 4) {
    infer.set_tensor(0, dtype, Dims{(*q)[0], (*q)[1], (*q)[2], (*v)[3]});
  } else if (q->size() == 3 && q_heads > 0) {
    FOLIO_TRY(const int64_t kv_heads, infer.attrs().get_int("kv_num_heads", 0));
    if (kv_heads < 1) return Status::ok();
    DimTable& table = infer.table();
    const Dim size = table.floor_div((*v)[2], Dim::of(kv_heads));
    infer.set_tensor(0, dtype, Dims{(*q)[0], (*q)[1], table.mul(size, Dim::of(q_heads))});
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  const Attributes& attrs = build.attrs();
  auto kernel = std::make_unique<Attention>();
  FOLIO_TRY(const int64_t causal, attrs.get_int("is_causal", 0));
  kernel->pads_mask = build.version() >= 24;
  FOLIO_TRY(kernel->scale, attrs.get_float("scale", 0.0F));
  FOLIO_TRY(kernel->softcap, attrs.get_float("softcap", 0.0F));
  FOLIO_TRY(kernel->q_heads, attrs.get_int("q_num_heads", 0));
  FOLIO_TRY(kernel->kv_heads, attrs.get_int("kv_num_heads", 0));
  FOLIO_TRY(kernel->left, attrs.get_int("left_window_size", -1));
  FOLIO_TRY(kernel->right, attrs.get_int("right_window_size", -1));
  FOLIO_TRY(const int64_t mode, attrs.get_int("qk_matmul_output_mode", 0));
  kernel->causal = causal != 0;
  kernel->has_scale = attrs.has("scale");
  if (mode < 0 || mode > 3) {
    return invalid_graph("attribute 'qk_matmul_output_mode' is ", mode, ", expected 0 to 3");
  }
  if (kernel->left < -1 || kernel->right < -1) {
    return invalid_graph("attributes 'left_window_size' and 'right_window_size' are ", kernel->left,
                         " and ", kernel->right, ", expected -1 or more");
  }
  kernel->stage = static_cast<ScoreStage>(mode);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_attention(OpRegistry& registry) {
  OpDef def;
  def.type = "Attention";
  def.keeps_half = true;
  def.since = 23;
  def.min_inputs = 3;
  def.max_inputs = 7;
  def.max_outputs = 4;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
