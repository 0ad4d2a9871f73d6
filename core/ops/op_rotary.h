// Rotary position embedding of heads: what RotaryEmbedding and the attention operators that rotate
// by themselves share.
//
// Source: Su et al. 2021, RoFormer.
// Math:   (a, b) -> (a cos - b sin, a sin + b cos) for each pair of the first 2 * half elements of
//         a head: element i and i + half, or 2i and 2i + 1 when interleaved. The rest is copied.
// Owns:   plain views.
#pragma once

#include <algorithm>
#include <vector>

#include "core/ops/op_attention.h"

namespace folio {

struct RotaryTable {
  const float* cos = nullptr;  // [rows, half]
  const float* sin = nullptr;
  int64_t half = 0;
  bool interleaved = false;
};

// kCount pairs: a stands at i * kStep, b `other` behind it. In double: both products are exact, so
// each result is rounded once. `to` may be `from`: all are read before one is written.
template <int64_t kStep, int64_t kCount>
inline void rotate_pairs(const float* from, int64_t other, const float* cos, const float* sin,
                         float* to) {
  float a[kCount], b[kCount];
  for (int64_t i = 0; i < kCount; ++i) {
    const double first = from[i * kStep], second = from[i * kStep + other];
    const double c = cos[i], n = sin[i];
    a[i] = static_cast<float>(first * c - second * n);
    b[i] = static_cast<float>(first * n + second * c);
  }
  for (int64_t i = 0; i < kCount; ++i) {
    to[i * kStep] = a[i];
    to[i * kStep + other] = b[i];
  }
}

template <int64_t kStep>
inline void rotate_head(const float* from, int64_t half, const float* cos, const float* sin,
                        float* to) {
  constexpr int64_t kBlock = 4;  // a known count: the compiler makes vectors of it
  const int64_t other = kStep == 2 ? 1 : half;
  int64_t i = 0;
  for (; i + kBlock <= half; i += kBlock) {
    rotate_pairs<kStep, kBlock>(from + i * kStep, other, cos + i, sin + i, to + i * kStep);
  }
  for (; i < half; ++i) {
    rotate_pairs<kStep, 1>(from + i * kStep, other, cos + i, sin + i, to + i * kStep);
  }
}

// y has x's strides and may be x; `rows` names the table's row of each batch and position.
inline void rotate_heads(OpRun& run, const Heads& x, const RotaryTable& table,
                         const std::vector<int64_t>& rows, float* y) {
  const auto rotate = table.interleaved ? rotate_head<2> : rotate_head<1>;
  const int64_t rotated = table.half * 2;
  run.parallel().for_range(x.batch * x.seq, 16, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const float* c = table.cos + rows[static_cast<size_t>(at)] * table.half;
      const float* n = table.sin + rows[static_cast<size_t>(at)] * table.half;
      for (int64_t h = 0; h < x.heads; ++h) {
        const int64_t base =
            at / x.seq * x.batch_stride + at % x.seq * x.seq_stride + h * x.head_stride;
        const float* from = x.data + base;
        float* to = y + base;
        rotate(from, table.half, c, n, to);
        if (to != from) std::copy(from + rotated, from + x.size, to + rotated);
      }
    }
  });
}

// Input `input`, position_ids, of the batch and positions of x.
// `or_else`: what else the operator takes, for the error.
inline Result<std::vector<int64_t>> position_ids(OpRun& run, int input, const Heads& x,
                                                 const char* or_else) {
  FOLIO_TRY(const Tensor* ids, run.tensor(input));
  if (!(ids->shape() == Shape({x.batch, x.seq}))) {
    return invalid_argument("position_ids is ", ids->shape().to_string(), ", expected [", x.batch,
                            ",", x.seq, "]", or_else);
  }
  return run.ints(input);
}

// The same as rows of a table of `limit`.
inline Result<std::vector<int64_t>> table_rows(OpRun& run, int input, const Heads& x, int64_t limit,
                                               const char* or_else = "") {
  FOLIO_TRY(std::vector<int64_t> rows, position_ids(run, input, x, or_else));
  const auto outside = [&](int64_t row) { return row < 0 || row >= limit; };
  if (std::any_of(rows.begin(), rows.end(), outside)) {
    return invalid_argument("position_ids must be numbers from 0 to ", limit - 1);
  }
  return rows;
}

}  // namespace folio
