// Scaled dot product attention with grouped heads, masks and a key/value cache.
//
// Source: ONNX operator spec, Attention, opsets 23 and 24.
// Shapes: Q [B, Hq, Sq, D] or [B, Sq, Hq * D]; K [B, Hkv, Skv, D] and V [B, Hkv, Skv, Dv], or 3-D
//         alike; mask broadcasts to [B, Hq, Sq, T] (a shorter last dim is masked out), bool or Q's
//         type; past_* [B, Hkv, P, .], T = P + Skv. Y has Q's rank; present_* [B, Hkv, T, .].
// Math:   S = softcap(scale * Q K^T) + mask; Y = softmax(S) V. Hq / Hkv neighbouring query heads
//         share one key head. A causal query i sees keys j <= i + P (or i + nonpad - Sq).
// Types:  float; float16 and bfloat16 in float.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kQueryRows = 64;  // of scores in scratch at a time
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// One of Q, K, V or a cache, with strides in elements.
struct Heads {
  const float* data = nullptr;
  int64_t batch = 0, heads = 0, seq = 0, size = 0;
  int64_t batch_stride = 0, head_stride = 0, seq_stride = 0;

  const float* at(int64_t b, int64_t h) const { return data + b * batch_stride + h * head_stride; }
};

struct Mask {
  const Tensor* tensor = nullptr;
  const float* f32 = nullptr;  // or null: bool
  int64_t stride[4] = {0, 0, 0, 0};
  int64_t length = 0;  // of the last dim
};

struct AttentionRun {
  Heads q, k, v;
  Mask mask;
  const int64_t* nonpad = nullptr;  // [B] or null
  int64_t past = 0;
  float* y = nullptr;
  int64_t y_batch = 0, y_head = 0, y_seq = 0;
  float* qk = nullptr;  // [B, Hq, Sq, T] or null
};

Result<Heads> heads_of(const Tensor& tensor, const float* data, int64_t head_count,
                       std::string_view what) {
  const Shape& s = tensor.shape();
  Heads h;
  h.data = data;
  h.batch = s.rank() > 0 ? s[0] : 0;
  if (s.rank() == 4) {
    h.heads = s[1];
    h.seq = s[2];
    h.size = s[3];
    h.seq_stride = h.size;
    h.head_stride = h.seq * h.size;
    h.batch_stride = h.heads * h.head_stride;
    return h;
  }
  if (s.rank() != 3 || head_count < 1 || s[2] % head_count != 0) {
    return invalid_argument(what, " has shape ", s.to_string(),
                            ", expected [B,H,S,D], or [B,S,H*D] ", "with ", head_count, " heads");
  }
  h.heads = head_count;
  h.seq = s[1];
  h.size = s[2] / head_count;
  h.head_stride = h.size;
  h.seq_stride = s[2];
  h.batch_stride = s[1] * s[2];
  return h;
}

Result<const float*> as_f32(OpRun& run, const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat) return tensor.data<float>();
  if (tensor.dtype() == DType::kFloat16 || tensor.dtype() == DType::kBfloat16) {
    FOLIO_TRY(const float* wide, widen_half(run, tensor));
    return wide;
  }
  return not_implemented("Attention of ", dtype_name(tensor.dtype()));
}

class Attention final : public OpKernel {
 public:
  bool causal = false;
  bool has_scale = false;
  float scale = 0.0F;
  float softcap = 0.0F;
  int64_t q_heads = 0;
  int64_t kv_heads = 0;
  int64_t qk_mode = 0;

  Status run(OpRun& run) const override;

 private:
  Status bind(OpRun& run, AttentionRun* a) const;
  Status bind_mask(OpRun& run, AttentionRun* a) const;
  // [past; fresh] as one tensor, into output `present` when it is wanted, else scratch.
  Status append(OpRun& run, int past_input, int present, Heads* fresh, int64_t* past) const;
  Status bind_output(OpRun& run, AttentionRun* a, Tensor** y, float** y32, Tensor** qk) const;
  void run_head(const FolioKernels& kernels, const AttentionRun& a, int64_t b, int64_t h,
                uint8_t* scratch) const;
  void add_mask(const AttentionRun& a, int64_t b, int64_t h, int64_t i, float* row) const;
  void finish_row(const FolioKernels& kernels, const AttentionRun& a, int64_t b, int64_t h,
                  int64_t i, float* row) const;
};

Status Attention::append(OpRun& run, int past_input, int present, Heads* fresh,
                         int64_t* past) const {
  const bool wanted = run.has_output(present);
  if (!run.has_input(past_input) && !wanted) return Status::ok();
  const DType dtype = run.value(0).tensor().dtype();
  Heads old;
  if (run.has_input(past_input)) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(past_input, dtype));
    FOLIO_TRY(const float* data, as_f32(run, *tensor));
    if (tensor->rank() != 4) return invalid_argument("a past tensor must have 4 dims");
    FOLIO_TRY(old, heads_of(*tensor, data, 0, "past"));
    if (old.batch != fresh->batch || old.heads != fresh->heads || old.size != fresh->size) {
      return invalid_argument("past ", tensor->shape().to_string(), " does not fit [", fresh->batch,
                              ",", fresh->heads, ",*,", fresh->size, "]");
    }
    *past = old.seq;
  }
  const Shape shape{fresh->batch, fresh->heads, old.seq + fresh->seq, fresh->size};
  Tensor* out = nullptr;
  float* data = nullptr;
  if (wanted) {
    FOLIO_TRY(out, run.output(present, dtype, shape));
  }
  if (out && dtype == DType::kFloat) {
    data = out->data_mut<float>();
  } else {
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(shape.count()) * sizeof(float)));
    data = reinterpret_cast<float*>(bytes);
  }
  float* to = data;
  for (int64_t b = 0; b < fresh->batch; ++b) {
    for (int64_t h = 0; h < fresh->heads; ++h) {
      if (old.data) to = std::copy_n(old.at(b, h), old.seq * old.size, to);
      for (int64_t s = 0; s < fresh->seq; ++s) {
        to = std::copy_n(fresh->at(b, h) + s * fresh->seq_stride, fresh->size, to);
      }
    }
  }
  if (out && dtype != DType::kFloat) narrow_half(run, data, out);
  fresh->data = data;
  fresh->seq = shape[2];
  fresh->seq_stride = fresh->size;
  fresh->head_stride = fresh->seq * fresh->size;
  fresh->batch_stride = fresh->heads * fresh->head_stride;
  return Status::ok();
}

Status Attention::bind_mask(OpRun& run, AttentionRun* a) const {
  if (!run.has_input(3)) return Status::ok();
  FOLIO_TRY(const Tensor* mask, run.tensor(3));
  const int64_t full[4] = {a->q.batch, a->q.heads, a->q.seq, a->k.seq};
  const int rank = mask->rank();
  bool fits = rank >= 1 && rank <= 4;
  int64_t stride = 1;
  for (int i = rank - 1; fits && i >= 0; --i) {
    const int axis = 4 - rank + i;
    const int64_t dim = mask->dim(i);
    const bool last = axis == 3;
    fits = dim == full[axis] || dim == 1 || (last && dim <= full[axis]);
    a->mask.stride[axis] = dim == 1 && full[axis] != 1 && !last ? 0 : stride;
    stride *= dim;
  }
  if (!fits) {
    return invalid_argument("attn_mask ", mask->shape().to_string(), " does not broadcast to [",
                            full[0], ",", full[1], ",", full[2], ",", full[3], "]");
  }
  a->mask.tensor = mask;
  a->mask.length = mask->dim(rank - 1);
  if (a->mask.length == 1 && full[3] != 1) {
    a->mask.stride[3] = 0;
    a->mask.length = full[3];
  }
  if (mask->dtype() == DType::kBool) return Status::ok();
  FOLIO_TRY(a->mask.f32, as_f32(run, *mask));
  return Status::ok();
}

Status Attention::bind(OpRun& run, AttentionRun* a) const {
  FOLIO_TRY(const Tensor* q, run.tensor(0));
  FOLIO_TRY(const Tensor* k, run.tensor(1, q->dtype()));
  FOLIO_TRY(const Tensor* v, run.tensor(2, q->dtype()));
  FOLIO_TRY(const float* q32, as_f32(run, *q));
  FOLIO_TRY(const float* k32, as_f32(run, *k));
  FOLIO_TRY(const float* v32, as_f32(run, *v));
  FOLIO_TRY(a->q, heads_of(*q, q32, q_heads, "Q"));
  FOLIO_TRY(a->k, heads_of(*k, k32, kv_heads, "K"));
  FOLIO_TRY(a->v, heads_of(*v, v32, kv_heads, "V"));
  const bool batches = a->q.batch == a->k.batch && a->k.batch == a->v.batch;
  const bool heads = a->k.heads == a->v.heads && a->k.heads > 0 && a->q.heads % a->k.heads == 0;
  if (!batches || !heads || a->q.size != a->k.size || a->k.seq != a->v.seq) {
    return invalid_argument("Q ", q->shape().to_string(), ", K ", k->shape().to_string(), " and V ",
                            v->shape().to_string(), " do not agree");
  }
  if (run.has_input(4) != run.has_input(5)) {
    return invalid_argument("past_key and past_value must be given together");
  }
  FOLIO_RETURN_IF_ERROR(append(run, 4, 1, &a->k, &a->past));
  FOLIO_RETURN_IF_ERROR(append(run, 5, 2, &a->v, &a->past));
  if (a->k.seq != a->v.seq) return invalid_argument("past_key and past_value differ in length");
  if (run.has_input(6)) {
    FOLIO_TRY(const Tensor* nonpad, run.tensor(6, DType::kInt64));
    if (nonpad->count() != a->q.batch) {
      return invalid_argument("nonpad_kv_seqlen has ", nonpad->count(), " entries, expected ",
                              a->q.batch);
    }
    a->nonpad = nonpad->data<int64_t>();
  }
  return bind_mask(run, a);
}

Status Attention::bind_output(OpRun& run, AttentionRun* a, Tensor** y, float** y32,
                              Tensor** qk) const {
  const Tensor& q = run.value(0).tensor();
  const Heads& h = a->q;
  const bool flat = q.rank() == 3;
  const Shape shape =
      flat ? Shape{h.batch, h.seq, h.heads * a->v.size} : Shape{h.batch, h.heads, h.seq, a->v.size};
  FOLIO_TRY(*y, run.output(0, q.dtype(), shape));
  if (q.dtype() == DType::kFloat) {
    *y32 = (*y)->data_mut<float>();
  } else {
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>((*y)->count()) * sizeof(float)));
    *y32 = reinterpret_cast<float*>(bytes);
  }
  a->y = *y32;
  a->y_seq = flat ? h.heads * a->v.size : a->v.size;
  a->y_head = flat ? a->v.size : h.seq * a->v.size;
  a->y_batch = h.heads * h.seq * a->v.size;
  if (!run.has_output(3)) return Status::ok();
  FOLIO_TRY(*qk, run.output(3, q.dtype(), Shape{h.batch, h.heads, h.seq, a->k.seq}));
  if (q.dtype() == DType::kFloat) {
    a->qk = (*qk)->data_mut<float>();
  } else {
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>((*qk)->count()) * sizeof(float)));
    a->qk = reinterpret_cast<float*>(bytes);
  }
  return Status::ok();
}

void Attention::add_mask(const AttentionRun& a, int64_t b, int64_t h, int64_t i, float* row) const {
  const int64_t total = a.k.seq;
  if (a.mask.tensor) {
    const Mask& m = a.mask;
    const int64_t base = b * m.stride[0] + h * m.stride[1] + i * m.stride[2];
    const auto* flags = m.tensor->data<uint8_t>();
    for (int64_t j = 0; j < total; ++j) {
      const int64_t at = base + j * m.stride[3];
      if (j >= m.length) {
        row[j] = kMinusInf;
      } else if (m.f32) {
        row[j] += m.f32[at];
      } else if (!flags[at]) {
        row[j] = kMinusInf;
      }
    }
  }
  int64_t visible = total;
  if (causal) {
    const bool static_cache = a.nonpad && a.past == 0;
    visible = i + 1 + (static_cache ? a.nonpad[b] - a.q.seq : a.past);
  }
  if (a.nonpad) visible = std::min(visible, a.nonpad[b]);
  for (int64_t j = std::max<int64_t>(visible, 0); j < total; ++j) row[j] = kMinusInf;
}

void Attention::finish_row(const FolioKernels& kernels, const AttentionRun& a, int64_t b, int64_t h,
                           int64_t i, float* row) const {
  const int64_t total = a.k.seq;
  float* saved = a.qk ? a.qk + ((b * a.q.heads + h) * a.q.seq + i) * total : nullptr;
  if (saved && qk_mode == 0) std::copy_n(row, total, saved);
  if (softcap > 0) {
    for (int64_t j = 0; j < total; ++j) row[j] = std::tanh(row[j] / softcap) * softcap;
  }
  if (saved && qk_mode == 1) std::copy_n(row, total, saved);
  add_mask(a, b, h, i, row);
  if (saved && qk_mode == 2) std::copy_n(row, total, saved);
  kernels.softmax_f32(total, row, row);
  if (saved && qk_mode == 3) std::copy_n(row, total, saved);
}

// Scratch: K^T and V of one head as panels, then the scores of a block of queries.
void Attention::run_head(const FolioKernels& kernels, const AttentionRun& a, int64_t b, int64_t h,
                         uint8_t* scratch) const {
  const int64_t total = a.k.seq;
  const int64_t kv = h / (a.q.heads / a.k.heads);
  const auto panels = [](int64_t n) { return (n + 15) / 16 * 16; };
  auto* keys = reinterpret_cast<float*>(scratch);
  float* values = keys + a.k.size * panels(total);
  float* scores = values + total * panels(a.v.size);
  kernels.pack_f32p16(a.k.size, total, a.k.at(b, kv), 1, a.k.seq_stride, keys);
  kernels.pack_f32p16(total, a.v.size, a.v.at(b, kv), a.v.seq_stride, 1, values);
  for (int64_t first = 0; first < a.q.seq; first += kQueryRows) {
    const int64_t rows = std::min(kQueryRows, a.q.seq - first);
    FolioGemmF32 qk{};
    qk.m = rows;
    qk.n = total;
    qk.k = a.q.size;
    qk.a = a.q.at(b, h) + first * a.q.seq_stride;
    qk.a_row_stride = a.q.seq_stride;
    qk.a_col_stride = 1;
    qk.b = keys;
    qk.c = scores;
    qk.c_row_stride = total;
    qk.alpha = has_scale ? scale : 1.0F / std::sqrt(static_cast<float>(a.q.size));
    kernels.gemm_f32(&qk);
    for (int64_t i = 0; i < rows; ++i) {
      finish_row(kernels, a, b, h, first + i, scores + i * total);
    }
    FolioGemmF32 pv{};
    pv.m = rows;
    pv.n = a.v.size;
    pv.k = total;
    pv.a = scores;
    pv.a_row_stride = total;
    pv.a_col_stride = 1;
    pv.b = values;
    pv.c = a.y + b * a.y_batch + h * a.y_head + first * a.y_seq;
    pv.c_row_stride = a.y_seq;
    pv.alpha = 1.0F;
    kernels.gemm_f32(&pv);
  }
}

Status Attention::run(OpRun& run) const {
  AttentionRun a;
  Tensor* y = nullptr;
  Tensor* qk = nullptr;
  float* y32 = nullptr;
  FOLIO_RETURN_IF_ERROR(bind(run, &a));
  FOLIO_RETURN_IF_ERROR(bind_output(run, &a, &y, &y32, &qk));
  if (y->count() > 0 || (qk && qk->count() > 0)) {
    const auto panels = [](int64_t n) { return (n + 15) / 16 * 16; };
    const int64_t floats = a.k.size * panels(a.k.seq) + a.k.seq * panels(a.v.size) +
                           std::min(kQueryRows, a.q.seq) * a.k.seq;
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(
        ThreadScratch::make(run, static_cast<size_t>(floats) * sizeof(float), &scratch));
    run.parallel().for_range(a.q.batch * a.q.heads, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      for (int64_t head = begin; head < end; ++head) {
        run_head(run.kernels(), a, head / a.q.heads, head % a.q.heads, block.data());
      }
    });
  }
  if (y->dtype() != DType::kFloat) {
    narrow_half(run, y32, y);
    if (qk) narrow_half(run, a.qk, qk);
  }
  return Status::ok();
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t q_heads, infer.attrs().get_int("q_num_heads", 0));
  const Dims* q = infer.dims_of(0);
  const Dims* v = infer.dims_of(2);
  const DType dtype = infer.dtype(0);
  for (int i = 0; i < infer.output_count(); ++i) infer.set_tensor(i, dtype);
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
  FOLIO_TRY(kernel->scale, attrs.get_float("scale", 0.0F));
  FOLIO_TRY(kernel->softcap, attrs.get_float("softcap", 0.0F));
  FOLIO_TRY(kernel->q_heads, attrs.get_int("q_num_heads", 0));
  FOLIO_TRY(kernel->kv_heads, attrs.get_int("kv_num_heads", 0));
  FOLIO_TRY(kernel->qk_mode, attrs.get_int("qk_matmul_output_mode", 0));
  kernel->causal = causal != 0;
  kernel->has_scale = attrs.has("scale");
  if (kernel->qk_mode < 0 || kernel->qk_mode > 3) {
    return invalid_graph("attribute 'qk_matmul_output_mode' is ", kernel->qk_mode,
                         ", expected 0 to 3");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_attention(OpRegistry& registry) {
  OpDef def;
  def.type = "Attention";
  def.since = 23;
  def.min_inputs = 3;
  def.max_inputs = 7;
  def.max_outputs = 4;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
