// Long short-term memory, one layer.
//
// Source: ONNX operator spec, LSTM, opsets 1, 7, 14, 22; see op_rnn.h for shapes.
// Math:   i, o, f, c in this order in W, R and B; peepholes P in the order i, o, f:
//         i = f1(Xt W_i' + Ht-1 R_i' + Pi * Ct-1 + Wb_i + Rb_i), f alike (or 1 - i: input_forget)
//         c~ = f2(Xt W_c' + Ht-1 R_c' + Wb_c + Rb_c);  Ct = f * Ct-1 + i * c~
//         o = f1(Xt W_o' + Ht-1 R_o' + Po * Ct + Wb_o + Rb_o);  Ht = o * f3(Ct)
// Types:  float; float16, bfloat16 and double in double.
#include "core/ops/op_lstm.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_rnn_double.h"

namespace folio {
namespace {

class FloatProducts final : public LstmProducts {
 public:
  FloatProducts(const RnnAttrs& attrs, OpRun& run, const RnnRun& r)
      : attrs_(attrs), run_(run), r_(r) {}

  Status input(int dir, const float* bias, float* gates) override {
    return rnn_input_gates(attrs_, r_, run_, dir, bias, gates);
  }
  RnnParts parts() const override { return rnn_parts(attrs_, r_, run_); }
  Status recurrent(int dir, int64_t time, int64_t items, const float* h, float* gates) override {
    const int64_t width = kLstmGates * r_.hidden;
    return rnn_recurrent(attrs_, r_, run_, {dir, 0, width, time % 2 != 0}, items, h, gates, width);
  }

 private:
  const RnnAttrs& attrs_;
  OpRun& run_;
  const RnnRun& r_;
};

class Lstm final : public OpKernel {
 public:
  LstmAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->dtype() != DType::kFloat)
      return run_rnn_in_double(attrs.rnn, {false, attrs.input_forget}, run);
    FOLIO_TRY(const RnnRun r, check_rnn(attrs.rnn, run));
    FloatProducts products(attrs.rnn, run, r);
    return run_lstm(attrs, run, r, products);
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Lstm>();
  FOLIO_TRY(kernel->attrs, LstmAttrs::parse(build.attrs()));
  request_rnn_packs(build, 4);
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
  def.infer = [](OpInfer& infer) { return infer_rnn(infer, kLstmGates); };
  def.make = make;
  def.one_type = 0b11101111;
  def.takes_half = takes_half_rnn;
  registry.add(def);
}

}  // namespace folio
