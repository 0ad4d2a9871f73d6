// What LSTM and com.microsoft DynamicQuantizeLSTM share: all but the products with W and R.
//
// Math:   see lstm.cc.
// Errors: kInvalidArgument for inputs 6 (initial_c) and 7 (P) of another shape.
#pragma once

#include "core/ops/op_rnn.h"

namespace folio {

inline constexpr int kLstmGates = 4;  // i, o, f, c

struct LstmAttrs {
  RnnAttrs rnn;
  bool input_forget = false;

  static Result<LstmAttrs> parse(const Attributes& attrs);
};

// The two products of one run.
class LstmProducts {
 public:
  virtual ~LstmProducts() = default;
  // gates[t, item, :] = X[t, item] * W[dir] + bias: [seq, batch, 4 H]; `bias` may be null.
  virtual Status input(int dir, const float* bias, float* gates) = 0;
  // How recurrent() may be called: one part for one thread after the other.
  virtual RnnParts parts() const { return {}; }
  // gates[items, 4 H] += h[items, H] * R[dir], at this time.
  virtual Status recurrent(int dir, int64_t time, int64_t items, const float* h, float* gates) = 0;
};

// Reads the other inputs and writes all outputs.
Status run_lstm(const LstmAttrs& attrs, OpRun& run, const RnnRun& r, LstmProducts& products);

}  // namespace folio
