#include "core/ops/op_lstm.h"

#include <algorithm>

namespace folio {
namespace {

constexpr int kGates = kLstmGates;

class LstmRun {
 public:
  LstmRun(const LstmAttrs& attrs, OpRun& run, const RnnRun& r, LstmProducts& products)
      : attrs_(attrs.rnn),
        input_forget_(attrs.input_forget),
        run_(run),
        r_(r),
        products_(products) {}

  Status compute() {
    FOLIO_TRY(const float* initial_c, rnn_state(attrs_, r_, run_, 6));
    FOLIO_TRY(const Tensor* p, rnn_peepholes(attrs_, r_, run_));
    const float* peepholes = p ? p->data<float>() : nullptr;
    FOLIO_TRY(y_, rnn_y_output(attrs_, r_, run_));
    FOLIO_TRY(float* y_h, rnn_state_output(attrs_, r_, run_, 1));
    FOLIO_TRY(float* y_c, rnn_state_output(attrs_, r_, run_, 2));
    const auto state_floats = static_cast<size_t>(r_.batch * r_.hidden);
    const auto gate_floats = static_cast<size_t>(r_.seq) * state_floats * kGates;
    FOLIO_TRY(uint8_t * bytes, run_.scratch((gate_floats + 3 * state_floats) * sizeof(float)));
    gates_ = reinterpret_cast<float*>(bytes);
    h_ = gates_ + gate_floats;
    c_ = h_ + state_floats;
    squashed_ = c_ + state_floats;
    for (int dir = 0; dir < attrs_.directions; ++dir) {
      rnn_load_state(attrs_, r_, r_.initial_h, dir, h_);
      rnn_load_state(attrs_, r_, initial_c, dir, c_);
      peepholes_ = peepholes ? peepholes + dir * 3 * r_.hidden : nullptr;
      FOLIO_RETURN_IF_ERROR(run_direction(dir));
      rnn_store_state(attrs_, r_, h_, dir, y_h);
      rnn_store_state(attrs_, r_, c_, dir, y_c);
    }
    return Status::ok();
  }

 private:
  Status run_direction(int dir) {
    FOLIO_RETURN_IF_ERROR(products_.input(dir, gates_));
    return rnn_walk(attrs_, r_, dir, [&](int64_t time, int64_t item, int64_t count) {
      float* gates = gates_ + (time * r_.batch + item) * kGates * r_.hidden;
      FOLIO_RETURN_IF_ERROR(products_.recurrent(dir, count, h_ + item * r_.hidden, gates));
      for (int64_t i = item; i < item + count; ++i) step_item(dir, time, i);
      return Status::ok();
    });
  }

  void clip(int64_t n, float* x) const {
    if (attrs_.clip > 0) run_.kernels().clip_f32(n, x, -attrs_.clip, attrs_.clip, x);
  }

  void step_item(int dir, int64_t time, int64_t item) {
    const FolioKernels& kernels = run_.kernels();
    const int64_t n = r_.hidden;
    float* gate_i = gates_ + (time * r_.batch + item) * kGates * n;
    float* gate_o = gate_i + n;
    float* gate_f = gate_o + n;
    float* gate_c = gate_f + n;
    float* h = h_ + item * n;
    float* c = c_ + item * n;
    const float* bias = r_.b ? r_.b + dir * 2 * kGates * n : nullptr;
    rnn_add_bias(kernels, kGates * n, bias, gate_i);
    rnn_add_bias(kernels, kGates * n, bias ? bias + kGates * n : nullptr, gate_i);
    const Activation* f = attrs_.activations.data() + dir * 3;
    for (int64_t j = 0; peepholes_ && j < n; ++j) {
      gate_i[j] += peepholes_[j] * c[j];
      gate_f[j] += peepholes_[2 * n + j] * c[j];
    }
    clip(n, gate_i);
    clip(2 * n, gate_f);  // f and c
    f[0].apply(kernels, n, gate_i);
    f[1].apply(kernels, n, gate_c);
    if (input_forget_) {
      for (int64_t j = 0; j < n; ++j) gate_f[j] = 1.0F - gate_i[j];
    } else {
      f[0].apply(kernels, n, gate_f);
    }
    for (int64_t j = 0; j < n; ++j) c[j] = gate_f[j] * c[j] + gate_i[j] * gate_c[j];
    for (int64_t j = 0; peepholes_ && j < n; ++j) gate_o[j] += peepholes_[n + j] * c[j];
    clip(n, gate_o);
    f[0].apply(kernels, n, gate_o);
    std::copy_n(c, n, squashed_);
    f[2].apply(kernels, n, squashed_);
    for (int64_t j = 0; j < n; ++j) h[j] = gate_o[j] * squashed_[j];
    if (y_) std::copy_n(h, n, y_ + rnn_y_at(attrs_, r_, time, dir, item));
  }

  const RnnAttrs& attrs_;
  const bool input_forget_;
  OpRun& run_;
  const RnnRun& r_;
  LstmProducts& products_;
  // Working memory of one direction; states are [batch, H].
  float* gates_ = nullptr;  // [seq, batch, 4 H]
  float* h_ = nullptr;
  float* c_ = nullptr;
  float* squashed_ = nullptr;  // f3(C) of one item
  const float* peepholes_ = nullptr;
  float* y_ = nullptr;
};

}  // namespace

Result<LstmAttrs> LstmAttrs::parse(const Attributes& attrs) {
  LstmAttrs out;
  FOLIO_TRY(out.rnn, parse_rnn(attrs, kGates, {"Sigmoid", "Tanh", "Tanh"}));
  FOLIO_TRY(const int64_t input_forget, attrs.get_int("input_forget", 0));
  out.input_forget = input_forget != 0;
  return out;
}

Status run_lstm(const LstmAttrs& attrs, OpRun& run, const RnnRun& r, LstmProducts& products) {
  return LstmRun(attrs, run, r, products).compute();
}

}  // namespace folio
