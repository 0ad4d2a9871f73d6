// Gated recurrent unit (GRU) and plain recurrent layer (RNN), one layer.
//
// Source: ONNX operator spec, GRU opsets 1, 3 (linear_before_reset), 7, 14, 22; RNN opsets 1, 7,
//         14, 22; see op_rnn.h for shapes.
// Math:   GRU, gates z, r, h in this order in W, R and B:
//         z = f(Xt W_z' + Ht-1 R_z' + Wb_z + Rb_z), r alike
//         h = g(Xt W_h' + (r * Ht-1) R_h' + Wb_h + Rb_h), or with linear_before_reset
//         h = g(Xt W_h' + r * (Ht-1 R_h' + Rb_h) + Wb_h);  Ht = (1 - z) * h + z * Ht-1
//         RNN: Ht = f(Xt W' + Ht-1 R' + Wb + Rb).
// Types:  float; float16, bfloat16 and double in double.
#include <algorithm>
#include <array>

#include "core/ops/op_registry.h"
#include "core/ops/op_rnn.h"
#include "core/ops/op_rnn_double.h"

namespace folio {
namespace {

// Working memory of one direction.
struct Direction {
  int dir = 0;
  float* gates = nullptr;  // [seq, batch, gates * H]
  float* h = nullptr;      // [batch, H]
  float* work = nullptr;   // [batch, H]
  float* y = nullptr;      // or null
};

class Recurrent final : public OpKernel {
 public:
  RnnAttrs attrs;
  bool linear_before_reset = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->dtype() != DType::kFloat)
      return run_rnn_in_double(attrs, {linear_before_reset, false}, run);
    FOLIO_TRY(const RnnRun r, check_rnn(attrs, run));
    FOLIO_TRY(float* y, rnn_y_output(attrs, r, run));
    FOLIO_TRY(float* y_h, rnn_state_output(attrs, r, run, 1));
    const auto state_floats = static_cast<size_t>(r.batch * r.hidden);
    const auto width = static_cast<size_t>(attrs.gates * r.hidden);
    const size_t gate_floats = static_cast<size_t>(r.seq * r.batch) * width;
    // Added before anything is multiplied: not R's bias of a GRU's h.
    const int64_t both = std::min(attrs.gates, 2) * r.hidden;
    std::array<Direction, 2> directions;
    const auto begin = [&](int dir, float* memory) {
      float* const sum = memory + gate_floats + 2 * state_floats;
      Direction& d = directions[static_cast<size_t>(dir)];
      d = {dir, memory, memory + gate_floats, memory + gate_floats + state_floats, y};
      rnn_load_state(attrs, r, r.initial_h, dir, d.h);
      const float* bias = rnn_sum_biases(attrs, r, run.kernels(), dir, both, sum);
      return rnn_input_gates(attrs, r, run, dir, bias, d.gates);
    };
    return rnn_directions(
        attrs, rnn_parts(attrs, r, run), r, run, gate_floats + 2 * state_floats + width, begin,
        [&](int dir, int64_t first, int64_t items) {
          return walk(run, r, directions[static_cast<size_t>(dir)], first, items);
        },
        [&](int dir) {
          rnn_store_state(attrs, r, directions[static_cast<size_t>(dir)].h, dir, y_h);
        });
  }

 private:
  Status walk(OpRun& run, const RnnRun& r, const Direction& d, int64_t first, int64_t items) const {
    return rnn_walk(attrs, r, d.dir, first, items, [&](int64_t time, int64_t item, int64_t count) {
      return attrs.gates == 1 ? step_rnn(run, r, d, time, item, count)
                              : step_gru(run, r, d, time, item, count);
    });
  }

  void clip(const FolioKernels& kernels, int64_t n, float* x) const {
    if (attrs.clip > 0) kernels.clip_f32(n, x, -attrs.clip, attrs.clip, x);
  }

  void store_y(const RnnRun& r, const Direction& d, int64_t time, int64_t item) const {
    if (!d.y) return;
    std::copy_n(d.h + item * r.hidden, r.hidden, d.y + rnn_y_at(attrs, r, time, d.dir, item));
  }

  Status step_rnn(OpRun& run, const RnnRun& r, const Direction& d, int64_t time, int64_t item,
                  int64_t count) const {
    const FolioKernels& kernels = run.kernels();
    const int64_t n = r.hidden;
    float* gates = d.gates + (time * r.batch + item) * n;
    FOLIO_RETURN_IF_ERROR(rnn_recurrent(attrs, r, run, {d.dir, 0, n, time % 2 != 0}, count,
                                        d.h + item * n, gates, n));
    for (int64_t i = item; i < item + count; ++i, gates += n) {
      clip(kernels, n, gates);
      attrs.activations[static_cast<size_t>(d.dir)].apply(kernels, n, gates);
      std::copy_n(gates, n, d.h + i * n);
      store_y(r, d, time, i);
    }
    return Status::ok();
  }

  Status step_gru(OpRun& run, const RnnRun& r, const Direction& d, int64_t time, int64_t item,
                  int64_t count) const {
    const FolioKernels& kernels = run.kernels();
    const int64_t n = r.hidden;
    const int64_t width = 3 * n;
    float* gates = d.gates + (time * r.batch + item) * width;
    float* h = d.h + item * n;
    float* work = d.work + item * n;
    const float* bias_h = r.b ? r.b + ((d.dir * 2 + 1) * attrs.gates + 2) * n : nullptr;  // R's
    const Activation* f = attrs.activations.data() + d.dir * 2;
    FOLIO_RETURN_IF_ERROR(rnn_recurrent(attrs, r, run, {d.dir, 0, 2 * n}, count, h, gates, width));
    for (int64_t i = 0; i < count; ++i) {
      float* row = gates + i * width;
      clip(kernels, 2 * n, row);
      f[0].apply(kernels, 2 * n, row);
    }
    FOLIO_RETURN_IF_ERROR(candidate(run, r, {d.dir, 2 * n, n}, count, bias_h, h, work, gates));
    for (int64_t i = 0; i < count; ++i) {
      float* row = gates + i * width;
      float* fresh = row + 2 * n;
      clip(kernels, n, fresh);
      f[1].apply(kernels, n, fresh);
      mix(kernels, n, row, fresh, row + n, h + i * n);
      store_y(r, d, time, item + i);
    }
    return Status::ok();
  }

  // h = (1 - z) * fresh + z * h; all but h are written over.
  static void mix(const FolioKernels& kernels, int64_t n, float* z, float* fresh, float* work,
                  float* h) {
    const FolioBinaryF32 multiply = kernels.binary_f32[kFolioMul];
    const float one = 1.0F;
    kernels.binary_f32[kFolioSub](n, &one, 0, z, 1, work);
    multiply(n, work, 1, fresh, 1, fresh);
    multiply(n, z, 1, h, 1, z);
    kernels.binary_f32[kFolioAdd](n, fresh, 1, z, 1, h);
  }

  // Adds the recurrent part of h to the third gate; `work` holds `count` rows.
  Status candidate(OpRun& run, const RnnRun& r, const RnnRows& third, int64_t count,
                   const float* bias, const float* h, float* work, float* gates) const {
    const FolioKernels& kernels = run.kernels();
    const FolioBinaryF32 multiply = kernels.binary_f32[kFolioMul];
    const int64_t n = r.hidden;
    const int64_t width = 3 * n;
    if (!linear_before_reset) {
      for (int64_t i = 0; i < count; ++i) {
        multiply(n, gates + i * width + n, 1, h + i * n, 1, work + i * n);
        rnn_add_bias(kernels, n, bias, gates + i * width + 2 * n);
      }
      return rnn_recurrent(attrs, r, run, third, count, work, gates + 2 * n, width);
    }
    std::fill_n(work, count * n, 0.0F);
    FOLIO_RETURN_IF_ERROR(rnn_recurrent(attrs, r, run, third, count, h, work, n));
    for (int64_t i = 0; i < count; ++i) {
      float* row = work + i * n;
      rnn_add_bias(kernels, n, bias, row);
      multiply(n, gates + i * width + n, 1, row, 1, row);
      rnn_add_bias(kernels, n, row, gates + i * width + 2 * n);
    }
    return Status::ok();
  }
};

template <int kGates>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Recurrent>();
  const std::vector<std::string> defaults =
      kGates == 1 ? std::vector<std::string>{"Tanh"} : std::vector<std::string>{"Sigmoid", "Tanh"};
  FOLIO_TRY(kernel->attrs, parse_rnn(build.attrs(), kGates, defaults));
  FOLIO_TRY(const int64_t linear, build.attrs().get_int("linear_before_reset", 0));
  kernel->linear_before_reset = linear != 0;
  request_rnn_packs(build, kGates);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

template <int kGates>
void add(OpRegistry& registry, std::string_view type) {
  registry.add({.domain = "",
                .type = type,
                .min_inputs = 3,
                .max_inputs = 6,
                .min_outputs = 0,
                .max_outputs = 2,
                .infer = [](OpInfer& infer) { return infer_rnn(infer, kGates); },
                .make = make<kGates>,
                .one_type = 0b101111,
                .takes_half = takes_half_rnn});
}

}  // namespace

[[gnu::cold]] void register_gru(OpRegistry& registry) {
  add<3>(registry, "GRU");
  add<1>(registry, "RNN");
}

}  // namespace folio
