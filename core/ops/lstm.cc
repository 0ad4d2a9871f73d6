// Long short-term memory, one layer.
//
// Source: ONNX operator spec, LSTM, opsets 1, 7, 14, 22; see op_rnn.h for shapes.
// Math:   i, o, f, c in this order in W, R and B; peepholes P in the order i, o, f:
//         i = f1(Xt W_i' + Ht-1 R_i' + Pi * Ct-1 + Wb_i + Rb_i), f alike (or 1 - i: input_forget)
//         c~ = f2(Xt W_c' + Ht-1 R_c' + Wb_c + Rb_c);  Ct = f * Ct-1 + i * c~
//         o = f1(Xt W_o' + Ht-1 R_o' + Po * Ct + Wb_o + Rb_o);  Ht = o * f3(Ct)
// Types:  float.
#include <algorithm>
#include <cstring>

#include "core/ops/op_registry.h"
#include "core/ops/op_rnn.h"

namespace folio {
namespace {

constexpr int kGates = 4;  // i, o, f, c

class Lstm final : public OpKernel {
 public:
  RnnAttrs attrs;
  bool input_forget = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const RnnRun r, check_rnn(attrs, run));
    FOLIO_TRY(const float* initial_c, rnn_state(attrs, r, run, 6));
    const float* peepholes = nullptr;
    if (run.has_input(7)) {
      FOLIO_TRY(const Tensor* p, run.tensor(7, DType::kFloat));
      if (!(p->shape() == Shape{attrs.directions, 3 * r.hidden})) {
        return invalid_argument("P has shape ", p->shape().to_string(), ", expected [",
                                attrs.directions, ",", 3 * r.hidden, "]");
      }
      peepholes = p->data<float>();
    }
    FOLIO_TRY(float* y, rnn_y_output(attrs, r, run));
    FOLIO_TRY(float* y_h, rnn_state_output(attrs, r, run, 1));
    FOLIO_TRY(float* y_c, rnn_state_output(attrs, r, run, 2));
    const auto state_floats = static_cast<size_t>(r.batch * r.hidden);
    const auto gate_floats = static_cast<size_t>(r.seq) * state_floats * kGates;
    FOLIO_TRY(uint8_t * bytes, run.scratch((gate_floats + 3 * state_floats) * sizeof(float)));
    Direction d;
    d.gates = reinterpret_cast<float*>(bytes);
    d.h = d.gates + gate_floats;
    d.c = d.h + state_floats;
    d.squashed = d.c + state_floats;
    d.y = y;
    for (d.dir = 0; d.dir < attrs.directions; ++d.dir) {
      rnn_load_state(attrs, r, r.initial_h, d.dir, d.h);
      rnn_load_state(attrs, r, initial_c, d.dir, d.c);
      d.peepholes = peepholes ? peepholes + d.dir * 3 * r.hidden : nullptr;
      FOLIO_RETURN_IF_ERROR(run_direction(run, r, d));
      rnn_store_state(attrs, r, d.h, d.dir, y_h);
      rnn_store_state(attrs, r, d.c, d.dir, y_c);
    }
    return Status::ok();
  }

 private:
  // Working memory of one direction: states are [batch, H].
  struct Direction {
    int dir = 0;
    float* gates = nullptr;  // [seq, batch, 4 H]
    float* h = nullptr;
    float* c = nullptr;
    float* squashed = nullptr;  // f3(C) of one item
    const float* peepholes = nullptr;
    float* y = nullptr;
  };

  Status run_direction(OpRun& run, const RnnRun& r, const Direction& d) const {
    const int64_t width = kGates * r.hidden;
    FOLIO_RETURN_IF_ERROR(rnn_input_gates(attrs, r, run, d.dir, d.gates));
    return rnn_walk(attrs, r, d.dir, [&](int64_t time, int64_t item, int64_t count) {
      float* gates = d.gates + (time * r.batch + item) * width;
      FOLIO_RETURN_IF_ERROR(rnn_recurrent(attrs, r, run, d.dir, 0, width, count,
                                          d.h + item * r.hidden, gates, width));
      for (int64_t i = item; i < item + count; ++i) step_item(run, r, d, time, i);
      return Status::ok();
    });
  }

  void clip(const FolioKernels& kernels, int64_t n, float* x) const {
    if (attrs.clip > 0) kernels.clip_f32(n, x, -attrs.clip, attrs.clip, x);
  }

  void step_item(OpRun& run, const RnnRun& r, const Direction& d, int64_t time,
                 int64_t item) const {
    const FolioKernels& kernels = run.kernels();
    const int64_t n = r.hidden;
    float* gate_i = d.gates + (time * r.batch + item) * kGates * n;
    float* gate_o = gate_i + n;
    float* gate_f = gate_o + n;
    float* gate_c = gate_f + n;
    float* h = d.h + item * n;
    float* c = d.c + item * n;
    const float* bias = r.b ? r.b + d.dir * 2 * kGates * n : nullptr;
    rnn_add_bias(kernels, kGates * n, bias, gate_i);
    rnn_add_bias(kernels, kGates * n, bias ? bias + kGates * n : nullptr, gate_i);
    const Activation* f = attrs.activations.data() + d.dir * 3;
    for (int64_t j = 0; d.peepholes && j < n; ++j) {
      gate_i[j] += d.peepholes[j] * c[j];
      gate_f[j] += d.peepholes[2 * n + j] * c[j];
    }
    clip(kernels, n, gate_i);
    clip(kernels, 2 * n, gate_f);  // f and c
    f[0].apply(kernels, n, gate_i);
    f[1].apply(kernels, n, gate_c);
    if (input_forget) {
      for (int64_t j = 0; j < n; ++j) gate_f[j] = 1.0F - gate_i[j];
    } else {
      f[0].apply(kernels, n, gate_f);
    }
    for (int64_t j = 0; j < n; ++j) c[j] = gate_f[j] * c[j] + gate_i[j] * gate_c[j];
    for (int64_t j = 0; d.peepholes && j < n; ++j) gate_o[j] += d.peepholes[n + j] * c[j];
    clip(kernels, n, gate_o);
    f[0].apply(kernels, n, gate_o);
    std::copy_n(c, n, d.squashed);
    f[2].apply(kernels, n, d.squashed);
    for (int64_t j = 0; j < n; ++j) h[j] = gate_o[j] * d.squashed[j];
    if (d.y) std::copy_n(h, n, d.y + rnn_y_at(attrs, r, time, d.dir, item));
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Lstm>();
  FOLIO_TRY(kernel->attrs, parse_rnn(build.attrs(), kGates, {"Sigmoid", "Tanh", "Tanh"}));
  FOLIO_TRY(const int64_t input_forget, build.attrs().get_int("input_forget", 0));
  kernel->input_forget = input_forget != 0;
  request_rnn_packs(build);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_lstm(OpRegistry& registry) {
  OpDef def;
  def.type = "LSTM";
  def.min_inputs = 3;
  def.max_inputs = 8;
  def.min_outputs = 0;
  def.max_outputs = 3;
  def.infer = [](OpInfer& infer) { return infer_rnn(infer, kGates); };
  def.make = make;
  registry.add(def);
}

}  // namespace folio
