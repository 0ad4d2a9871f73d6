// LSTM, GRU and RNN of other floating point types than float: computed in double by plain loops,
// each result rounded once.
//
// Math:    see gru.cc and lstm.cc.
// Errors:  as check_rnn; kInvalidArgument for inputs of several types.
#pragma once

#include "core/ops/op_rnn.h"

namespace folio {

struct RnnForm {
  bool linear_before_reset = false;  // GRU
  bool input_forget = false;         // LSTM
};

// The operator by the number of its gates: 1 RNN, 3 GRU, 4 LSTM.
Status run_rnn_in_double(const RnnAttrs& attrs, RnnForm form, OpRun& run);

}  // namespace folio
