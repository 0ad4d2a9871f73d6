// The scaled dot product of op_attention.h in double, by plain loops: for models of doubles, which
// no kernel serves.
//
// Math:    op_attention.h.
// Owns:    plain views; scratch is the run's.
// Threads: rows of queries are spread over the run's threads.
#pragma once

#include "core/ops/op_attention.h"

namespace folio {

struct HeadsF64 {
  Heads form;  // without data: sizes and strides
  const double* data = nullptr;

  const double* row(int64_t b, int64_t h, int64_t i) const {
    return data + b * form.batch_stride + h * form.head_stride + i * form.seq_stride;
  }
};

// Adds to the scores of the keys [begin, end) of a query.
class ScoreBiasF64 {
 public:
  virtual ~ScoreBiasF64() = default;
  virtual void add(int64_t b, int64_t h, int64_t i, KeyRange keys, double* row) const = 0;
};

struct AttendF64 {
  HeadsF64 q, k, v;
  double scale = 1;
  double softcap = 0;
  const ScoreRule* rule = nullptr;     // for what is visible
  const ScoreBiasF64* bias = nullptr;  // or null
  double* y = nullptr;
  int64_t y_batch = 0, y_head = 0, y_seq = 0;
  double* qk = nullptr;  // [B, q.heads, q.seq, k.seq] or null
  ScoreStage stage = ScoreStage::kRaw;
};

Status attend(OpRun& run, const AttendF64& args);

}  // namespace folio
