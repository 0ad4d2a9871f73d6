// LinearAttention: attention as a recurrence over a state matrix a head.
//
// Source: ONNX operator spec, LinearAttention, opset 27; com.microsoft version 1 (without
//         state_window and shared key heads).
// Shapes: q [batch, time, hq * dk], k [batch, time, h * dk], v [batch, time, h * dv], past [batch,
//         h, dk, dv], decay [batch, time, h * dk or h], beta [batch, time, h or 1] -> y [batch,
//         time, hq * dv], present as past. Query head i reads state i / (hq / h).
// Math:   linear: S += k v'; gated: S = exp(decay) S + k v'; delta: S += beta k (v - S' k)';
//         gated_delta: S = exp(decay) S, then delta. y = scale * S' q, scale 1 / sqrt(dk) unless
//         given.
// Types:  float; float16 and bfloat16 in float. The state's is another of them, if past is.
// Notes:  state_window is refused.
#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

struct LinearSizes {
  int64_t batch = 0, time = 0;
  int64_t dk = 0, dv = 0;
  int64_t decay_width = 0;  // a head: dk, 1 or 0
  int64_t beta_heads = 0;
};

constexpr int kPast = 3;

using LinearTypes = TypeList<float, Float16, BFloat16>;

class LinearAttention final : public OpKernel {
 public:
  int64_t q_heads = 1;
  int64_t heads = 1;
  bool decays = true;
  bool is_delta = true;
  float scale = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* q, run.tensor(0));
    if (!contains(LinearTypes{}, q->dtype())) return wrong_type(0, q->dtype());
    for (int input = 1; input < 6; ++input) {
      if (!run.has_input(input) || input == kPast) continue;
      FOLIO_RETURN_IF_ERROR(run.tensor(input, q->dtype()).status());
    }
    FOLIO_TRY(const LinearSizes s, sizes(run, *q));
    FOLIO_TRY(Tensor * y, run.output(0, q->dtype(), Shape{s.batch, s.time, q_heads * s.dv}));
    const DType held = run.has_input(kPast) ? run.value(kPast).tensor().dtype() : q->dtype();
    if (!contains(LinearTypes{}, held)) return wrong_type(kPast, held);
    FOLIO_TRY(Tensor * present, run.output(1, held, Shape{s.batch, heads, s.dk, s.dv}));
    if (y->count() == 0 && present->count() == 0) return Status::ok();
    Status status;
    dispatch(LinearTypes{}, q->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      dispatch(LinearTypes{}, held, [&](auto state_tag) {
        status = run_heads<T, typename decltype(state_tag)::type>(run, s, y, present);
      });
    });
    return status;
  }

 private:
  static Result<int64_t> width_of(const OpRun& run, int input, const Tensor& q, int64_t parts) {
    FOLIO_TRY(const Tensor* tensor, run.tensor(input));
    const bool fits = tensor->rank() == 3 && tensor->dim(0) == q.dim(0) &&
                      tensor->dim(1) == q.dim(1) && tensor->dim(2) % parts == 0;
    if (fits) return tensor->dim(2) / parts;
    return invalid_argument("input ", input, " ", tensor->shape().to_string(),
                            " does not fit the query ", q.shape().to_string(), " and ", parts,
                            " heads");
  }

  Result<LinearSizes> sizes(const OpRun& run, const Tensor& q) const {
    LinearSizes s;
    if (q.rank() != 3)
      return invalid_argument("the query ", q.shape().to_string(), " needs 3 dims");
    s.batch = q.dim(0);
    s.time = q.dim(1);
    FOLIO_TRY(s.dk, width_of(run, 0, q, q_heads));
    FOLIO_TRY(const int64_t key_width, width_of(run, 1, q, heads));
    FOLIO_TRY(s.dv, width_of(run, 2, q, heads));
    if (key_width != s.dk) {
      return invalid_argument("a key has ", key_width, " numbers, a query ", s.dk);
    }
    if (decays) {
      FOLIO_TRY(s.decay_width, width_of(run, 4, q, heads));
      if (s.decay_width != s.dk && s.decay_width != 1) {
        return invalid_argument("decay has ", s.decay_width, " numbers a head, expected ", s.dk,
                                " or 1");
      }
    }
    if (is_delta) {
      FOLIO_TRY(s.beta_heads, width_of(run, 5, q, 1));
      if (s.beta_heads != heads && s.beta_heads != 1) {
        return invalid_argument("beta has ", s.beta_heads, " numbers, expected ", heads, " or 1");
      }
    }
    const Shape state{s.batch, heads, s.dk, s.dv};
    FOLIO_RETURN_IF_ERROR(shape_from(state.dims()).status());
    if (run.has_input(kPast) && !(run.value(kPast).tensor().shape() == state)) {
      return invalid_argument("past_state ", run.value(kPast).tensor().shape().to_string(),
                              " must be ", state.to_string());
    }
    return s;
  }

  template <typename T>
  static const T* data_of(const OpRun& run, int input) {
    return run.has_input(input) ? run.value(input).tensor().data<T>() : nullptr;
  }

  template <typename T, typename S>
  Status run_heads(OpRun& run, const LinearSizes& s, Tensor* y, Tensor* present) const {
    const int64_t state_count = s.dk * s.dv;
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(
        run, static_cast<size_t>(state_count + s.dv) * sizeof(float), &scratch));
    const S* past = data_of<S>(run, kPast);
    run.parallel().for_range(s.batch * heads, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      auto* state = reinterpret_cast<float*>(block.data());
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < state_count; ++j) {
          state[j] = past ? static_cast<float>(past[i * state_count + j]) : 0.0F;
        }
        run_head<T>(run, s, i / heads, i % heads, state, y->data_mut<T>());
        S* out = present->data_mut<S>() + i * state_count;
        for (int64_t j = 0; j < state_count; ++j) out[j] = static_cast<S>(state[j]);
      }
    });
    return Status::ok();
  }

  // All steps of one state; `state` is followed by room for dv floats.
  template <typename T>
  void run_head(const OpRun& run, const LinearSizes& s, int64_t batch, int64_t head, float* state,
                T* y) const {
    const int64_t group = q_heads / heads;
    const float factor = scale != 0 ? scale : 1.0F / std::sqrt(static_cast<float>(s.dk));
    float* row = state + s.dk * s.dv;
    for (int64_t t = 0; t < s.time; ++t) {
      const int64_t at = batch * s.time + t;
      const T* k = data_of<T>(run, 1) + (at * heads + head) * s.dk;
      const T* v = data_of<T>(run, 2) + (at * heads + head) * s.dv;
      const T* decay = decays ? data_of<T>(run, 4) + (at * heads + head) * s.decay_width : nullptr;
      for (int64_t i = 0; decay && i < s.dk; ++i) {
        const float kept = std::exp(static_cast<float>(decay[s.decay_width == 1 ? 0 : i]));
        for (int64_t j = 0; j < s.dv; ++j) state[i * s.dv + j] *= kept;
      }
      for (int64_t j = 0; j < s.dv; ++j) row[j] = static_cast<float>(v[j]);
      if (is_delta) {
        const T* betas = data_of<T>(run, 5) + at * s.beta_heads;
        const auto beta = static_cast<float>(betas[s.beta_heads == 1 ? 0 : head]);
        for (int64_t i = 0; i < s.dk; ++i) {
          const auto key = static_cast<float>(k[i]);
          for (int64_t j = 0; j < s.dv; ++j) row[j] -= key * state[i * s.dv + j];
        }
        for (int64_t j = 0; j < s.dv; ++j) row[j] *= beta;
      }
      for (int64_t i = 0; i < s.dk; ++i) {
        const auto key = static_cast<float>(k[i]);
        for (int64_t j = 0; j < s.dv; ++j) state[i * s.dv + j] += key * row[j];
      }
      for (int64_t g = 0; g < group; ++g) {
        const int64_t q_head = at * q_heads + head * group + g;
        read(s, data_of<T>(run, 0) + q_head * s.dk, state, factor, row, y + q_head * s.dv);
      }
    }
  }

  template <typename T>
  static void read(const LinearSizes& s, const T* q, const float* state, float factor, float* row,
                   T* y) {
    std::fill_n(row, s.dv, 0.0F);
    for (int64_t i = 0; i < s.dk; ++i) {
      const auto query = static_cast<float>(q[i]);
      for (int64_t j = 0; j < s.dv; ++j) row[j] += query * state[i * s.dv + j];
    }
    for (int64_t j = 0; j < s.dv; ++j) y[j] = static_cast<T>(row[j] * factor);
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<LinearAttention>();
  const Attributes& attrs = build.attrs();
  FOLIO_TRY(kernel->q_heads, attrs.get_int("q_num_heads"));
  FOLIO_TRY(kernel->heads, attrs.get_int("kv_num_heads"));
  FOLIO_TRY(kernel->scale, attrs.get_float("scale", 0));
  FOLIO_TRY(const std::string rule, attrs.get_string("update_rule", "gated_delta"));
  FOLIO_TRY(const int64_t window, attrs.get_int("state_window", 0));
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    return invalid_graph("attribute 'update_rule' is '", rule, "'");
  }
  if (window != 0) return not_implemented("attribute 'state_window' is ", window);
  constexpr int64_t kMaxHeads = 1 << 20;
  if (kernel->heads < 1 || kernel->q_heads > kMaxHeads || kernel->q_heads < kernel->heads ||
      kernel->q_heads % kernel->heads != 0) {
    return invalid_graph("q_num_heads is ", kernel->q_heads, ", kv_num_heads ", kernel->heads);
  }
  kernel->decays = rule.starts_with("gated");
  kernel->is_delta = rule.ends_with("delta");
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t q_heads, infer.attrs().get_int("q_num_heads"));
  FOLIO_TRY(const int64_t heads, infer.attrs().get_int("kv_num_heads"));
  const Dims* q = infer.dims_of(0);
  const Dims* v = infer.dims_of(2);
  Dims out(3, Dim::unknown());
  Dims state(4, Dim::unknown());
  if (heads > 0 && q_heads > 0) {
    DimTable& table = infer.table();
    state[1] = Dim::of(heads);
    if (q && q->size() == 3) {
      out[0] = state[0] = (*q)[0];
      out[1] = (*q)[1];
      state[2] = table.floor_div((*q)[2], Dim::of(q_heads));
    }
    if (v && v->size() == 3) {
      state[3] = table.floor_div((*v)[2], Dim::of(heads));
      out[2] = table.mul(state[3], Dim::of(q_heads));
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  infer.set_tensor(1, infer.has_input(kPast) ? infer.dtype(kPast) : infer.dtype(0),
                   std::move(state));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_linear_attention(OpRegistry& registry) {
  OpDef def;
  def.type = "LinearAttention";
  def.min_inputs = 3;
  def.max_inputs = 6;
  def.min_outputs = def.max_outputs = 2;
  def.infer = infer;
  def.make = make;
  def.one_type = 0b110111;
  def.since = 27;
  registry.add(def);
  def.domain = "com.microsoft";
  def.since = 1;
  registry.add(def);
}

}  // namespace folio
