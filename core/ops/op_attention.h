// What the scaled dot product attention operators share: heads as strided views, a key and value
// cache, and the product itself.
//
// Flow:    an operator binds q, k and v as Heads (append_cache() where there is a past), names a
//          ScoreRule and where Y goes, then calls attend().
// Math:    weights = softmax(softcap(scale * q k^T) + bias) over the visible keys, 0 elsewhere;
//          y = weights v. A query that sees no key, or all at -inf, gives zeros. With `smooth`
//          the softmax has one more term, exp(sink), in its denominator.
// Memory:  a thread holds the scores of one block of queries: 16 rows of all keys, up to 64 (256
//          where products are made in parts) where they are short; beside it K^T and V of one head
//          as panels. Few queries, up to 16 of the heads that share K and V, read rows of both
//          together, without panels. And the rows of a float16 cache that are being read.
// Owns:    plain views; scratch is the run's.
// Threads: attend() spreads key heads, and blocks of queries where heads are few, over the run's
//          threads; the blocks depend on sizes alone, so the bits are the same for any number of
//          threads. A rule must be immutable.
#pragma once

#include "core/ops/op_real.h"

namespace folio {

// One of Q, K, V or a cache, with strides in elements (0 repeats); rows of `size` are contiguous,
// except those of a K that attend() alone reads. K and V may be float16 or bfloat16: then `data` is
// null, and attend() widens some rows at a time.
struct Heads {
  const float* data = nullptr;
  int64_t batch = 0, heads = 0, seq = 0, size = 0;
  int64_t batch_stride = 0, head_stride = 0, seq_stride = 0;
  int64_t size_stride = 1;
  const uint8_t* half = nullptr;
  DType half_type = DType::kFloat16;

  const float* at(int64_t b, int64_t h) const { return data + b * batch_stride + h * head_stride; }

  // [batch, heads, seq, size]
  static Heads head_major(const float* data, int64_t batch, int64_t heads, int64_t seq,
                          int64_t size);
  // [batch, seq, row] whose rows hold heads * size elements from `data` on
  static Heads seq_major(const float* data, int64_t batch, int64_t seq, int64_t heads, int64_t size,
                         int64_t row);
};

// kInvalidArgument when a product of such sizes might overflow, or heads are empty.
Status check_head_sizes(int64_t batch, int64_t heads, int64_t seq, int64_t size,
                        std::string_view what);

// A 4-D tensor, or a 3-D one of `head_count` heads, as heads without data.
Result<Heads> heads_of(const Shape& shape, int64_t head_count, std::string_view what);

// Fills `to` [B, H, capacity, size] with old_rows[b] rows of `old`, then the rows of `fresh`, then
// zeros, and views it. `old` may have no data (no rows), or already stand at `to`.
Heads append_cache(OpRun& run, const Heads& old, Span<const int64_t> old_rows, const Heads& fresh,
                   int64_t capacity, float* to);

// The same in a tensor of float16 or bfloat16 of that shape, the rows of `fresh` rounded to it;
// `old` (or null) is of its type and stands in it already, or elsewhere.
Heads append_half_cache(OpRun& run, const Tensor* old, Span<const int64_t> old_rows,
                        const Heads& fresh, Tensor* to);

struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};

class ScoreRule {
 public:
  virtual ~ScoreRule() = default;
  // The keys that query i of batch b may see; clamped to those there are.
  virtual KeyRange visible(int64_t b, int64_t i) const = 0;
  // Adds the bias of these keys to row[begin..end).
  virtual void add_bias(int64_t b, int64_t h, int64_t i, KeyRange keys, float* row) const = 0;
};

// Which state of the scores `AttendArgs::qk` receives.
enum class ScoreStage : uint8_t { kRaw, kCapped, kBiased, kWeights };

struct AttendArgs {
  Heads q, k, v;  // k.heads == v.heads divides q.heads; equal batches; k.seq == v.seq
  float scale = 1.0F;
  float softcap = 0.0F;
  const ScoreRule* rule = nullptr;
  bool smooth = false;
  const float* sinks = nullptr;  // [q.heads], or null: 0
  bool plain_softmax = false;    // a query with all keys at -inf gives NaN, as Softmax would
  float* y = nullptr;
  int64_t y_batch = 0, y_head = 0, y_seq = 0;
  float* qk = nullptr;  // [B, q.heads, q.seq, k.seq] or null
  ScoreStage stage = ScoreStage::kRaw;

  // Y as [B, S, H * Dv].
  void write_seq_major(float* to);
};

Status attend(OpRun& run, const AttendArgs& args);

}  // namespace folio
