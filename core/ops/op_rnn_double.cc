#include "core/ops/op_rnn_double.h"

#include <algorithm>
#include <cmath>

#include "core/ops/op_real.h"

namespace folio {
namespace {

class RnnF64 {
 public:
  RnnF64(const RnnAttrs& attrs, RnnForm form, OpRun& run) : a_(attrs), form_(form), run_(run) {}

  Status compute() {
    FOLIO_RETURN_IF_ERROR(bind());
    const DType dtype = run_.value(0).tensor().dtype();
    const Shape state_shape = rnn_state_shape(a_, s_);
    FOLIO_TRY(const auto y, Output::make_if_wanted(run_, 0, dtype, rnn_y_shape(a_, s_)));
    FOLIO_TRY(const auto y_h, Output::make_if_wanted(run_, 1, dtype, state_shape));
    FOLIO_TRY(const auto y_c, Output::make_if_wanted(run_, 2, dtype, state_shape));
    y_ = y.data();
    if (y_) std::fill_n(y_, y.count(), 0.0);  // what lies behind a short sequence stays 0
    const int64_t n = s_.hidden;
    FOLIO_TRY(double* memory, scratch_reals<double>(run_, 2 * s_.batch * n + (a_.gates + 1) * n));
    h_ = memory;
    c_ = h_ + s_.batch * n;
    gates_ = c_ + s_.batch * n;
    for (dir_ = 0; dir_ < a_.directions; ++dir_) {
      rnn_load_state(a_, s_, initial_h_, dir_, h_);
      rnn_load_state(a_, s_, initial_c_, dir_, c_);
      const auto walk = [&](int64_t time, int64_t item, int64_t count) {
        for (int64_t i = item; i < item + count; ++i) step(time, i);
        return run_.host().check_cancelled();
      };
      FOLIO_RETURN_IF_ERROR(rnn_walk(a_, s_, dir_, 0, s_.batch, walk));
      rnn_store_state(a_, s_, h_, dir_, y_h.data());
      rnn_store_state(a_, s_, c_, dir_, y_c.data());
    }
    y.finish(run_);
    y_h.finish(run_);
    y_c.finish(run_);
    return Status::ok();
  }

 private:
  using Output = RealOutput<double>;

  Status bind() {
    FOLIO_TRY(const Tensor* x, run_.tensor(0));
    const DType dtype = x->dtype();
    if (!contains(FloatTypes{}, dtype)) return wrong_type(0, dtype);
    FOLIO_TRY(s_, check_rnn(a_, run_, dtype));
    FOLIO_TRY(x_, reals_of_input<double>(run_, 0));
    FOLIO_TRY(w_, reals_of_input<double>(run_, 1));
    FOLIO_TRY(r_, reals_of_input<double>(run_, 2));
    FOLIO_TRY(b_, optional_reals<double>(run_, 3));
    FOLIO_TRY(initial_h_, optional_reals<double>(run_, 5));
    if (a_.gates < 4) return Status::ok();
    FOLIO_RETURN_IF_ERROR(rnn_state(a_, s_, run_, 6, dtype).status());
    FOLIO_TRY(initial_c_, optional_reals<double>(run_, 6));
    FOLIO_TRY(const Tensor* p, rnn_peepholes(a_, s_, run_, dtype));
    if (!p) return Status::ok();
    FOLIO_TRY(peepholes_, reals_of<double>(run_, *p));
    return Status::ok();
  }

  static double dot(const double* a, const double* b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  }

  // Biases of row `row` of all gates: W's for `part` 0, R's for 1.
  double bias(int part, int64_t row) const {
    return b_ ? b_[(dir_ * 2 + part) * a_.gates * s_.hidden + row] : 0;
  }
  double from_input(const double* x, int64_t row) const {
    return dot(x, w_ + (dir_ * a_.gates * s_.hidden + row) * s_.input, s_.input) + bias(0, row);
  }
  double from_state(const double* h, int64_t row) const {
    return dot(h, r_ + (dir_ * a_.gates * s_.hidden + row) * s_.hidden, s_.hidden) + bias(1, row);
  }

  double clipped(double v) const {
    const auto most = static_cast<double>(a_.clip);
    return most > 0 ? std::clamp(v, -most, most) : v;
  }
  double apply(int function, double v) const {
    const auto each = a_.activations.size() / static_cast<size_t>(a_.directions);
    const size_t at = static_cast<size_t>(dir_) * each + static_cast<size_t>(function);
    return a_.activations[at].of(clipped(v));
  }

  void step(int64_t time, int64_t item) {
    const int64_t n = s_.hidden;
    const double* x =
        x_ + (a_.batch_first ? item * s_.seq + time : time * s_.batch + item) * s_.input;
    double* h = h_ + item * n;
    if (a_.gates == 1) {
      for (int64_t j = 0; j < n; ++j) gates_[j] = apply(0, from_input(x, j) + from_state(h, j));
      std::copy_n(gates_, n, h);
    } else if (a_.gates == 3) {
      step_gru(x, h);
    } else {
      step_lstm(x, h, c_ + item * n);
    }
    if (y_) std::copy_n(h, n, y_ + rnn_y_at(a_, s_, time, dir_, item));
  }

  void step_gru(const double* x, double* h) {
    const int64_t n = s_.hidden;
    double* reset = gates_ + n;
    double* fresh = gates_ + 2 * n;
    double* gated = gates_ + 3 * n;  // r * Ht-1
    for (int64_t j = 0; j < 2 * n; ++j) gates_[j] = apply(0, from_input(x, j) + from_state(h, j));
    for (int64_t j = 0; j < n; ++j) gated[j] = reset[j] * h[j];
    for (int64_t j = 0; j < n; ++j) {
      const int64_t row = 2 * n + j;
      const double state =
          form_.linear_before_reset ? reset[j] * from_state(h, row) : from_state(gated, row);
      fresh[j] = apply(1, from_input(x, row) + state);
    }
    for (int64_t j = 0; j < n; ++j) h[j] = (1 - gates_[j]) * fresh[j] + gates_[j] * h[j];
  }

  void step_lstm(const double* x, double* h, double* c) {
    const int64_t n = s_.hidden;
    const double* p = peepholes_ ? peepholes_ + dir_ * 3 * n : nullptr;
    double* gate_o = gates_ + n;
    double* gate_f = gates_ + 2 * n;
    double* gate_c = gates_ + 3 * n;
    for (int64_t j = 0; j < 4 * n; ++j) gates_[j] = from_input(x, j) + from_state(h, j);
    for (int64_t j = 0; j < n; ++j) {
      const double input = apply(0, gates_[j] + (p ? p[j] * c[j] : 0));
      const double kept = apply(0, gate_f[j] + (p ? p[2 * n + j] * c[j] : 0));
      const double forget = form_.input_forget ? 1 - input : kept;
      c[j] = forget * c[j] + input * apply(1, gate_c[j]);
      const double shown = apply(0, gate_o[j] + (p ? p[n + j] * c[j] : 0));
      const auto each = a_.activations.size() / static_cast<size_t>(a_.directions);
      h[j] = shown * a_.activations[static_cast<size_t>(dir_) * each + 2].of(c[j]);
    }
  }

  const RnnAttrs& a_;
  const RnnForm form_;
  OpRun& run_;
  RnnRun s_;  // sizes alone
  const double* x_ = nullptr;
  const double* w_ = nullptr;
  const double* r_ = nullptr;
  const double* b_ = nullptr;
  const double* initial_h_ = nullptr;
  const double* initial_c_ = nullptr;
  const double* peepholes_ = nullptr;
  int dir_ = 0;
  double* h_ = nullptr;      // [batch, H]
  double* c_ = nullptr;      // [batch, H]
  double* gates_ = nullptr;  // [gates, H] of one item, and H more
  double* y_ = nullptr;      // or null
};

}  // namespace

Status run_rnn_in_double(const RnnAttrs& attrs, RnnForm form, OpRun& run) {
  return RnnF64(attrs, form, run).compute();
}

}  // namespace folio
