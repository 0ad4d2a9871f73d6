// What LSTM, GRU and RNN share: attributes, shapes, activation functions, time order.
//
// Source: ONNX operator spec, LSTM, GRU, RNN, opsets 1, 7, 14 (layout), 22.
// Shapes: X [seq, batch, input], W [dirs, gates * H, input], R [dirs, gates * H, H],
//         B [dirs, 2 * gates * H], initial states [dirs, batch, H]; layout 1 puts batch first in X,
//         Y and the states.
// Types:  float; others in double (op_rnn_double.h).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/ops/op_activation.h"
#include "core/ops/op_gemm.h"

namespace folio {

struct RnnAttrs {
  int gates = 0;
  int directions = 1;
  bool first_is_reverse = false;
  bool batch_first = false;
  int64_t hidden = 0;                   // 0: taken from R
  float clip = 0.0F;                    // 0: none
  std::vector<Activation> activations;  // directions * per_direction
  bool has_half_w = false;
};

// `defaults` names the activation functions of one direction.
Result<RnnAttrs> parse_rnn(const Attributes& attrs, int gates,
                           const std::vector<std::string>& defaults);

// Checked sizes and pointers of one run.
struct RnnRun {
  int64_t seq = 0;
  int64_t batch = 0;
  int64_t input = 0;
  int64_t hidden = 0;
  const float* x = nullptr;
  GemmB w;  // all directions' rows as columns
  const float* r = nullptr;
  const float* b = nullptr;      // or null
  std::vector<int64_t> lengths;  // by batch
  const float* initial_h = nullptr;
  const float* r_packed = nullptr;  // F32P16 of all directions' rows, or null
};

// Inputs 0 X, 1 W, 2 R, 3 B, 4 sequence_lens, 5 initial_h, all numbers of `dtype`. The pointers are
// those of floats.
Result<RnnRun> check_rnn(const RnnAttrs& attrs, const OpRun& run, DType dtype = DType::kFloat);
// The same without W and R.
Result<RnnRun> check_rnn_sizes(const RnnAttrs& attrs, const OpRun& run, int64_t hidden,
                               DType dtype = DType::kFloat);

// A state input [dirs, batch, H] (layout 1: [batch, dirs, H]) as float, or null when absent.
Result<const float*> rnn_state(const RnnAttrs& attrs, const RnnRun& r, const OpRun& run, int input,
                               DType dtype = DType::kFloat);

// Offset of [dir, batch item] in a state tensor, and of [time, dir, item] in Y.
int64_t rnn_state_at(const RnnAttrs& attrs, const RnnRun& r, int dir, int64_t item);
int64_t rnn_y_at(const RnnAttrs& attrs, const RnnRun& r, int64_t time, int dir, int64_t item);

// gates[t, item, :] = X[t, item] * W[dir]^T, for all t at once: [seq, batch, gates * H].
// `bias` [gates * H], if there is one, is added.
Status rnn_input_gates(const RnnAttrs& attrs, const RnnRun& r, OpRun& run, int dir,
                       const float* bias, float* gates);

// The rows of R[dir] that a step multiplies. Where R is larger than L2, every other step may take
// them from the last to the first: what the step before read at its end is there yet.
struct RnnRows {
  int dir = 0;
  int64_t first = 0;
  int64_t count = 0;
  bool backwards = false;
};
// out[items, rows.count] += h[items, H] * R[rows]^T.
Status rnn_recurrent(const RnnAttrs& attrs, const RnnRun& r, OpRun& run, const RnnRows& rows,
                     int64_t items, const float* h, float* out, int64_t out_stride);

// LSTM's input 7, P [dirs, 3 * H], or null when absent.
Result<const Tensor*> rnn_peepholes(const RnnAttrs& attrs, const RnnRun& r, const OpRun& run,
                                    DType dtype = DType::kFloat);

Shape rnn_y_shape(const RnnAttrs& attrs, const RnnRun& r);
Shape rnn_state_shape(const RnnAttrs& attrs, const RnnRun& r);

// Y, Y_h (and Y_c) with their shapes; null where not wanted. Y is zeroed when lengths differ.
Result<float*> rnn_y_output(const RnnAttrs& attrs, const RnnRun& r, OpRun& run);
Result<float*> rnn_state_output(const RnnAttrs& attrs, const RnnRun& r, OpRun& run, int output);

// One direction's states [batch, H] from and to a state tensor; a null one is zeros, or not wanted.
template <typename T>
void rnn_load_state(const RnnAttrs& attrs, const RnnRun& r, const T* state, int dir, T* out) {
  for (int64_t item = 0; item < r.batch; ++item) {
    T* row = out + item * r.hidden;
    if (state) {
      std::copy_n(state + rnn_state_at(attrs, r, dir, item), r.hidden, row);
    } else {
      std::fill_n(row, r.hidden, T{0});
    }
  }
}
template <typename T>
void rnn_store_state(const RnnAttrs& attrs, const RnnRun& r, const T* state, int dir, T* out) {
  for (int64_t item = 0; out && item < r.batch; ++item) {
    std::copy_n(state + item * r.hidden, r.hidden, out + rnn_state_at(attrs, r, dir, item));
  }
}

// W's biases of a direction, to the first `of_r` of which R's are added, in `sum` [gates * H]; null
// where there are none.
const float* rnn_sum_biases(const RnnAttrs& attrs, const RnnRun& r, const FolioKernels& kernels,
                            int dir, int64_t of_r, float* sum);
// Adds n numbers of a bias, which may be null, to a row.
void rnn_add_bias(const FolioKernels& kernels, int64_t n, const float* bias, float* row);

// Time order of the sequences [first, first + items) in one direction: calls step(time, item,
// count), which returns a Status, for the sequences [item, item + count) that are at `time`.
// Finished sequences keep their state.
template <typename Step>
Status rnn_walk(const RnnAttrs& attrs, const RnnRun& r, int dir, int64_t first, int64_t items,
                Step&& step) {
  const bool reverse = attrs.first_is_reverse || dir == 1;
  const bool together = std::all_of(r.lengths.begin(), r.lengths.end(),
                                    [&](int64_t length) { return length == r.seq; });
  for (int64_t at = 0; at < r.seq; ++at) {
    if (together) {
      FOLIO_RETURN_IF_ERROR(step(reverse ? r.seq - 1 - at : at, first, items));
      continue;
    }
    for (int64_t item = first; item < first + items; ++item) {
      const int64_t length = r.lengths[static_cast<size_t>(item)];
      if (at >= length) continue;
      FOLIO_RETURN_IF_ERROR(step(reverse ? length - 1 - at : at, item, int64_t{1}));
    }
  }
  return Status::ok();
}

// What threads do from the first step to the last without waiting for each other; products that
// threads share wait at each step.
struct RnnParts {
  int directions = 1;  // at once
  int64_t items = 1;   // parts of the sequences of each
};
// One part, unless products with R take no memory of the run's.
RnnParts rnn_parts(const RnnAttrs& attrs, const RnnRun& r, const OpRun& run);

// All directions, those of parts.directions at once, each with so many floats of scratch:
// begin(dir, floats), then walk(dir, first, items) for all parts of its sequences, from any thread,
// then end(dir). begin and walk return a Status.
template <typename Begin, typename Walk, typename End>
Status rnn_directions(const RnnAttrs& attrs, const RnnParts& parts, const RnnRun& r, OpRun& run,
                      size_t floats, const Begin& begin, const Walk& walk, const End& end) {
  const auto at_once = static_cast<size_t>(parts.directions);
  FOLIO_TRY(uint8_t * bytes, run.scratch(at_once * floats * sizeof(float)));
  const int64_t all = parts.directions * parts.items;
  std::vector<Status> results(static_cast<size_t>(all));
  for (int dir = 0; dir < attrs.directions; dir += parts.directions) {
    for (size_t i = 0; i < at_once; ++i) {
      auto* const memory = reinterpret_cast<float*>(bytes) + i * floats;
      FOLIO_RETURN_IF_ERROR(begin(dir + static_cast<int>(i), memory));
    }
    const auto walk_part = [&](int64_t i) {
      const int64_t part = i % parts.items;
      const int64_t first = r.batch * part / parts.items;
      const int64_t last = r.batch * (part + 1) / parts.items;
      return walk(dir + static_cast<int>(i / parts.items), first, last - first);
    };
    if (all == 1) {  // its products are what threads share
      FOLIO_RETURN_IF_ERROR(walk_part(0));
    } else {
      run.parallel().for_range(all, 1, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) results[static_cast<size_t>(i)] = walk_part(i);
      });
      for (const Status& result : results) FOLIO_RETURN_IF_ERROR(result);
    }
    for (size_t i = 0; i < at_once; ++i) end(dir + static_cast<int>(i));
  }
  return Status::ok();
}

// `hidden_axis`: the dim of R that is the hidden size.
Status infer_rnn(OpInfer& infer, int gates, size_t hidden_axis = 2);
// W and R as panels, of which each direction begins one, and of a GRU's R each gate.
void request_rnn_packs(OpBuild& build, int gates);
// W, of which each step of a sequence takes a row of products, may stay halves; R, which each step
// reads, may not. As OpDef::takes_half.
bool takes_half_rnn(const Attributes& attributes, int input, const Shape& shape);

}  // namespace folio
