// What the attention operators with grouped heads share, GroupQueryAttention and SparseAttention:
// their queries, keys and values, rotated, and a cache with rows for each sequence.
//
// Flow:    bind_grouped_heads(), rotate_grouped_heads(), then for keys and values bind_past() and
//          append_heads(), then attend() (op_attention.h).
// Owns:    plain views; scratch is the run's.
// Errors:  kInvalidArgument for shapes that do not fit.
#pragma once

#include <algorithm>
#include <vector>

#include "core/ops/op_rotary.h"

namespace folio {

struct GroupedHeads {
  Heads q, k, v;
};

// Attributes num_heads and kv_num_heads.
struct HeadCounts {
  int64_t heads = 0;
  int64_t kv_heads = 0;

  static Result<HeadCounts> parse(const Attributes& attrs);
};

// Dims of output 0, whose type is set, as far as query says them.
Status infer_grouped_heads(OpInfer& infer);

// Inputs 0 to 2: query [B, S, H * D], key and value [B, S, Hkv * D]; or all three packed in query.
Result<GroupedHeads> bind_grouped_heads(OpRun& run, int64_t heads, int64_t kv_heads);

// Where the tables of angles are, and position_ids; -1: the operator has none.
struct RotaryInputs {
  int cos, sin;
  int positions = -1;
  bool interleaved = false;
  bool first_prompt = false;
};

// Rotates q and k into scratch. Query i of batch b stands at past[b] + i, if position_ids do not
// say otherwise; from lengths[b] on nothing is read. In a first prompt position_ids say where all
// sequences begin, by their first element.
Status rotate_grouped_heads(OpRun& run, const RotaryInputs& inputs, Span<const int64_t> past,
                            Span<const int64_t> lengths, Heads* q, Heads* k);

struct PastHeads {
  const Tensor* tensor = nullptr;  // or null: none
  Heads heads;                     // without data if it is to stay of 16 bits
};

// Input `input` [B, Hkv, P, D] of type `dtype`, which may be absent, with rows[b] rows or more.
Result<PastHeads> bind_past(OpRun& run, int input, DType dtype, bool keep_half, const Heads& fresh,
                            Span<const int64_t> rows);

// Output `present` [B, Hkv, capacity, D]: rows[b] rows of the past, then those of `fresh`, then
// zeros; `fresh` becomes a view of them, also where nobody wants the output.
Status append_heads(OpRun& run, const PastHeads& past, int present, DType dtype, bool keep_half,
                    Span<const int64_t> rows, int64_t capacity, Heads* fresh);

// Of sequences, of which there may be none: 0.
inline int64_t longest(Span<const int64_t> lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

// Scratch of the run as a tensor.
Result<Tensor> scratch_tensor(OpRun& run, DType dtype, const Shape& shape);

}  // namespace folio
