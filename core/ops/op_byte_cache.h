// A key or value cache of 8- or 4-bit integers: x = code * scale, codes rounded half to even and
// clamped to [-128, 127], or [-8, 7]. Codes of 4 bits are held as code + 8, two in a byte, the
// first in the low bits.
//
// Source:  ONNX Runtime ContribOperators, com.microsoft.GroupQueryAttention, "Quantization".
// Flow:    an operator appends new rows to the cache, then attends over its rows as floats: new
//          ones too are read as the cache holds them, so that a later step sees what this one saw.
// Owns:    nothing; the floats are scratch of the run.
// Threads: spreads heads over the run's threads.
#pragma once

#include "core/ops/op_attention.h"

namespace folio {

struct ByteCache {
  int bits = 8;                   // or 4: tensors are then uint8 [B, H, *, D / 2]
  const Tensor* past = nullptr;   // int8 [B, H, P, D], or null: no rows
  const Tensor* scale = nullptr;  // float, broadcasts to [B, H, 1, D]
  Span<const int64_t> past_rows;  // of each sequence; at most P
  int64_t total = 0;              // rows that are read
  Tensor* present = nullptr;      // int8 [B, H, C, D], C >= total; may lie over `past`
};

// Rows of `fresh` [B, H, S, D] behind the past ones, zeros behind those; gives [B, H, total, D].
// kInvalidArgument when the scale does not broadcast.
Result<Heads> append_bytes(OpRun& run, const ByteCache& cache, const Heads& fresh);

}  // namespace folio
