#include "core/ops/op_lstm.h"

#include <algorithm>
#include <array>

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
    const int64_t width = kGates * r_.hidden;
    std::array<Direction, 2> directions;
    const auto begin = [&](int dir, float* memory) {
      Direction& d = directions[static_cast<size_t>(dir)];
      d.dir = dir;
      d.gates = memory;
      d.h = d.gates + gate_floats;
      d.c = d.h + state_floats;
      d.squashed = d.c + state_floats;
      d.peepholes = peepholes ? peepholes + dir * 3 * r_.hidden : nullptr;
      rnn_load_state(attrs_, r_, r_.initial_h, dir, d.h);
      rnn_load_state(attrs_, r_, initial_c, dir, d.c);
      float* const sum = d.squashed + state_floats;
      const float* bias = rnn_sum_biases(attrs_, r_, run_.kernels(), dir, width, sum);
      return products_.input(dir, bias, d.gates);
    };
    return rnn_directions(
        attrs_, products_.parts(), r_, run_,
        gate_floats + 3 * state_floats + static_cast<size_t>(width), begin,
        [&](int dir, int64_t first, int64_t items) {
          return walk(directions[static_cast<size_t>(dir)], first, items);
        },
        [&](int dir) {
          rnn_store_state(attrs_, r_, directions[static_cast<size_t>(dir)].h, dir, y_h);
          rnn_store_state(attrs_, r_, directions[static_cast<size_t>(dir)].c, dir, y_c);
        });
  }

 private:
  // Working memory of one direction; states are [batch, H].
  struct Direction {
    int dir = 0;
    float* gates = nullptr;  // [seq, batch, 4 H]
    float* h = nullptr;
    float* c = nullptr;
    float* squashed = nullptr;  // f3(C)
    const float* peepholes = nullptr;
  };

  Status walk(const Direction& d, int64_t first, int64_t items) const {
    const auto step = [&](int64_t time, int64_t item, int64_t count) {
      float* gates = d.gates + (time * r_.batch + item) * kGates * r_.hidden;
      FOLIO_RETURN_IF_ERROR(products_.recurrent(d.dir, time, count, d.h + item * r_.hidden, gates));
      for (int64_t i = item; i < item + count; ++i) step_item(d, time, i);
      return Status::ok();
    };
    return rnn_walk(attrs_, r_, d.dir, first, items, step);
  }

  void clip(int64_t n, float* x) const {
    if (attrs_.clip > 0) run_.kernels().clip_f32(n, x, -attrs_.clip, attrs_.clip, x);
  }

  void step_item(const Direction& d, int64_t time, int64_t item) const {
    const FolioKernels& kernels = run_.kernels();
    const FolioBinaryF32 multiply = kernels.binary_f32[kFolioMul];
    const int64_t n = r_.hidden;
    float* gate_i = d.gates + (time * r_.batch + item) * kGates * n;
    float* gate_o = gate_i + n;
    float* gate_f = gate_o + n;
    float* gate_c = gate_f + n;
    float* h = d.h + item * n;
    float* c = d.c + item * n;
    float* squashed = d.squashed + item * n;
    const Activation* f = attrs_.activations.data() + d.dir * 3;
    for (int64_t j = 0; d.peepholes && j < n; ++j) {
      gate_i[j] += d.peepholes[j] * c[j];
      gate_f[j] += d.peepholes[2 * n + j] * c[j];
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
    multiply(n, gate_f, 1, c, 1, c);
    multiply(n, gate_i, 1, gate_c, 1, gate_i);
    kernels.binary_f32[kFolioAdd](n, c, 1, gate_i, 1, c);
    for (int64_t j = 0; d.peepholes && j < n; ++j) gate_o[j] += d.peepholes[n + j] * c[j];
    clip(n, gate_o);
    f[0].apply(kernels, n, gate_o);
    std::copy_n(c, n, squashed);
    f[2].apply(kernels, n, squashed);
    multiply(n, gate_o, 1, squashed, 1, h);
    if (y_) std::copy_n(h, n, y_ + rnn_y_at(attrs_, r_, time, d.dir, item));
  }

  const RnnAttrs& attrs_;
  const bool input_forget_;
  OpRun& run_;
  const RnnRun& r_;
  LstmProducts& products_;
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
