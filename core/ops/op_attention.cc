#include "core/ops/op_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/ops/op_gemm.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

// Rows of scores in scratch at a time: as many of these as fit into so many floats. Products in
// parts make the parts of keys and values for each block: where all queries see all keys, larger
// ones pay (12 heads of 64, 512 queries and keys: 7.2 ms with 64 rows, 6.4 with 128, 5.9 with 256,
// a chain 6.4). What the first queries do not see would be multiplied for more of them.
constexpr int64_t kMinQueryRows = 16;
constexpr int64_t kMaxQueryRows = 64;
constexpr int64_t kScoreFloats = 1 << 16;
constexpr int64_t kPartsQueryRows = 256;
constexpr int64_t kPartsScoreFloats = 1 << 17;
constexpr int64_t kPartsHeads = 8;   // fewer are shared by threads in blocks
constexpr int64_t kDirectRows = 4;   // up to so many queries, packing keys costs more than it gains
constexpr int64_t kGemvRows = 4;     // of a matrix-vector product at a time
constexpr int64_t kWideRows = 32;    // of a float16 cache, widened at a time; multiple of 16
constexpr int64_t kScoreRows = 256;  // of keys, whose scores are put in order at a time
constexpr int64_t kFinishedFloats = 4096;  // of scores that become weights together: less than L1
constexpr int64_t kSetQueries = 16;  // few queries that share what is read of keys and values, as
constexpr int64_t kSetScores = 1 << 18;     // many as have so many scores
constexpr int64_t kCacheGrain = 32;         // KiB of a cache a task
constexpr int64_t kTaskProducts = 1 << 17;  // multiplications that are worth a task
constexpr int64_t kTasksPerThread = 4;
constexpr double kNearFloats = 1 << 18;  // of all heads' values: what L2 keeps
// Bounds under which no product of sizes overflows and no loop over empty heads takes long,
// whatever a file says; far above any model.
constexpr int64_t kMaxHeads = 1 << 20;
constexpr int64_t kMaxHeadSize = 1 << 20;
constexpr int64_t kMaxSequence = 1 << 22;
constexpr int64_t kMaxBatchHeads = 1 << 28;
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// How the work is cut. Rows of a block follow from sizes alone; parts of a head, each with its own
// packing, may follow from the number of threads since no row depends on them.
struct Tiling {
  bool direct = false;  // few queries: no packing
  int64_t rows = 0;     // of a block
  int64_t blocks = 0;   // of a query head
  int64_t parts = 1;    // of a key head
  int64_t grain = 1;
  int64_t set = 1;      // direct: query heads that share keys and values
  bool is_far = false;  // V is more than L2 keeps

  static Tiling of(const AttendArgs& a, const FolioKernels& kernels, int threads);
};

Tiling Tiling::of(const AttendArgs& a, const FolioKernels& kernels, int threads) {
  Tiling t;
  t.direct = a.q.seq <= kDirectRows && (a.k.size_stride == 1 || a.k.seq_stride == 1);
  const int64_t heads = a.q.batch * a.k.heads;
  const bool large = product_precision(kernels, a.q.seq, a.k.seq, a.q.size) != kFolioChain &&
                     heads >= kPartsHeads && (!a.rule || a.rule->visible(0, 0).end >= a.k.seq);
  const int64_t floats = large ? kPartsScoreFloats : kScoreFloats;
  const int64_t fit = floats / std::max<int64_t>(1, a.k.seq) / kMinQueryRows * kMinQueryRows;
  t.rows = std::clamp(fit, kMinQueryRows, large ? kPartsQueryRows : kMaxQueryRows);
  t.blocks = (a.q.seq + t.rows - 1) / t.rows;
  if (t.direct) {
    const int64_t fit_set = kSetScores / std::max<int64_t>(1, a.k.seq * a.q.seq);
    t.set = std::clamp<int64_t>(fit_set, 1, kSetQueries / a.q.seq);
    t.set = std::min(t.set, a.q.heads / a.k.heads);
    t.is_far = static_cast<double>(heads) * static_cast<double>(a.k.seq * a.v.size) > kNearFloats;
  } else {
    // Two blocks pay for packing keys and values once more.
    const int64_t most = std::max<int64_t>(1, t.blocks / 2);
    t.parts = std::clamp<int64_t>(threads * kTasksPerThread / heads, 1, most);
  }
  if (threads == 1) t.parts = 1;
  const double group = static_cast<double>(a.q.heads / a.k.heads);
  const double products = group * static_cast<double>(a.q.seq) * static_cast<double>(a.k.seq) *
                          static_cast<double>(a.k.size + a.v.size) / static_cast<double>(t.parts);
  t.grain = std::max<int64_t>(1, static_cast<int64_t>(kTaskProducts / std::max(products, 1.0)));
  return t;
}

// Scratch of one task, in floats: K^T and V of one key head as panels, or a set of queries row by
// row; then the scores of a block of queries, or of the set; then rows of a float16 cache as
// floats.
struct Workspace {
  float* keys = nullptr;
  float* values = nullptr;
  float* queries = nullptr;
  float* scores = nullptr;
  float* wide = nullptr;
};

struct WorkspaceSizes {
  int64_t keys = 0, values = 0, queries = 0, scores = 0, wide = 0;

  WorkspaceSizes(const AttendArgs& a, const Tiling& tiling) {
    int64_t rows = std::min(tiling.rows, a.q.seq);
    if (tiling.direct) {
      rows = tiling.set * a.q.seq;
      queries = rows * a.q.size;
    } else {
      keys = a.k.size * panel_columns(a.k.seq);
      values = a.k.seq * panel_columns(a.v.size);
    }
    scores = rows * a.k.seq;
    if (a.k.half || a.v.half) wide = kWideRows * std::max(a.k.size, a.v.size);
  }
  int64_t all() const { return keys + values + queries + scores + wide; }

  Workspace place(float* memory) const {
    float* const second = memory + keys;
    float* const third = second + values;
    return {memory, second, third, third + queries, third + queries + scores};
  }
};

// Query heads from `head` on, with all their queries, that read keys and values together: query i
// of head h is row (h - head) * queries + i of what they have.
struct QuerySet {
  int64_t head = 0;
  int64_t heads = 0;
  KeyRange reach;  // what one of them sees
};

class Head {
 public:
  Head(const FolioKernels& kernels, const AttendArgs& args, const Tiling& tiling, int64_t b,
       int64_t kv)
      : kernels_(kernels), a_(args), t_(tiling), b_(b), kv_(kv), total_(args.k.seq) {}

  void pack(const Workspace& w) const {
    if (t_.direct) return;
    if (a_.k.half) return pack_half(w);
    kernels_.pack_f32p16(a_.k.size, total_, a_.k.at(b_, kv_), a_.k.size_stride, a_.k.seq_stride,
                         w.keys);
    kernels_.pack_f32p16(total_, a_.v.size, a_.v.at(b_, kv_), a_.v.seq_stride, 1, w.values);
  }

  void run(int64_t part, const Workspace& w) const {
    const int64_t group = a_.q.heads / a_.k.heads;
    if (t_.direct) {
      for (int64_t h = 0; h < group; h += t_.set) {
        run_set(kv_ * group + h, std::min(t_.set, group - h), w);
      }
      return;
    }
    const int64_t begin = t_.blocks * part / t_.parts * t_.rows;
    const int64_t end = std::min(t_.blocks * (part + 1) / t_.parts * t_.rows, a_.q.seq);
    for (int64_t h = kv_ * group; h < (kv_ + 1) * group; ++h) {
      for (int64_t first = begin; first < end; first += t_.rows) {
        run_packed(h, first, std::min(t_.rows, end - first), w);
      }
    }
  }

 private:
  KeyRange visible(int64_t i) const {
    if (!a_.rule) return {0, total_};
    KeyRange keys = a_.rule->visible(b_, i);
    keys.end = std::clamp<int64_t>(keys.end, 0, total_);
    keys.begin = std::clamp<int64_t>(keys.begin, 0, keys.end);
    return keys;
  }

  bool sees_all(int64_t i) const {
    const KeyRange keys = visible(i);
    return keys.begin == 0 && keys.end == total_;
  }

  float* y_at(int64_t h, int64_t i) const {
    return a_.y + b_ * a_.y_batch + h * a_.y_head + i * a_.y_seq;
  }

  // Calls each(first, count, rows) for some rows of `x` at a time, of [begin, end), as floats.
  template <typename Each>
  void for_wide_rows(const Heads& x, KeyRange keys, float* wide, const Each& each) const {
    const auto widen = x.half_type == DType::kFloat16 ? kernels_.f16_to_f32 : kernels_.bf16_to_f32;
    for (int64_t first = keys.begin; first < keys.end; first += kWideRows) {
      const int64_t count = std::min(kWideRows, keys.end - first);
      const int64_t at = b_ * x.batch_stride + kv_ * x.head_stride + first * x.seq_stride;
      widen(count * x.size, x.half + 2 * at, wide);
      each(first, count, static_cast<const float*>(wide));
    }
  }

  void pack_half(const Workspace& w) const {
    const int64_t size = a_.k.size;
    for_wide_rows(a_.k, {0, total_}, w.wide, [&](int64_t first, int64_t count, const float* rows) {
      kernels_.pack_f32p16(size, count, rows, 1, size, w.keys + first * size);
    });
    const int64_t columns = a_.v.size;
    for_wide_rows(a_.v, {0, total_}, w.wide, [&](int64_t first, int64_t count, const float* rows) {
      for (int64_t j = 0; j < columns; j += FOLIO_F32P16_COLUMNS) {
        kernels_.pack_f32p16(count, std::min<int64_t>(FOLIO_F32P16_COLUMNS, columns - j), rows + j,
                             columns, 1, w.values + j * total_ + first * FOLIO_F32P16_COLUMNS);
      }
    });
  }

  // Few queries: keys and values are read where they lie, or widened, once for all of the set.
  void run_set(int64_t head, int64_t heads, const Workspace& w) const {
    QuerySet set{head, heads, {total_, 0}};
    for (int64_t i = 0; i < a_.q.seq; ++i) {
      const KeyRange keys = visible(i);
      set.reach.begin = std::min(set.reach.begin, keys.begin);
      set.reach.end = std::max(set.reach.end, keys.end);
      for (int64_t h = 0; h < heads; ++h) {
        const float* q = a_.q.at(b_, head + h) + i * a_.q.seq_stride;
        std::copy_n(q, a_.q.size, w.queries + (h * a_.q.seq + i) * a_.q.size);
      }
    }
    if (a_.qk) set.reach = {0, total_};
    if (set.reach.begin >= set.reach.end) set.reach = {0, 0};
    score(set, w);
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < a_.q.seq; ++i) {
        finish_row(head + h, i, visible(i), w.scores + (h * a_.q.seq + i) * total_);
        std::fill_n(y_at(head + h, i), a_.v.size, 0.0F);
      }
    }
    if (!a_.v.half) {
      return add_values(set, set.reach, a_.v.at(b_, kv_) + set.reach.begin * a_.v.seq_stride,
                        a_.v.seq_stride, w);
    }
    for_wide_rows(a_.v, set.reach, w.wide, [&](int64_t from, int64_t count, const float* rows) {
      add_values(set, {from, from + count}, rows, a_.v.size, w);
    });
  }

  // scores = scale * queries K^T over the set's reach.
  void score(const QuerySet& set, const Workspace& w) const {
    const int64_t queries = set.heads * a_.q.seq;
    if (a_.k.half) {
      for_wide_rows(a_.k, set.reach, w.wide, [&](int64_t from, int64_t count, const float* rows) {
        score_rows(queries, {from, from + count}, rows, a_.k.size, w);
      });
      return;
    }
    const float* k = a_.k.at(b_, kv_);
    if (a_.k.size_stride == 1) {
      return score_rows(queries, set.reach, k + set.reach.begin * a_.k.seq_stride, a_.k.seq_stride,
                        w);
    }
    for (int64_t first = 0; first < queries; first += kGemvRows) {
      FolioGemmF32 qk = few_rows(std::min(kGemvRows, queries - first), a_.q.size,
                                 set.reach.end - set.reach.begin);
      qk.a = w.queries + first * a_.q.size;
      qk.c = w.scores + first * total_ + set.reach.begin;
      qk.c_row_stride = total_;
      qk.alpha = a_.scale;
      kernels_.gemm_plain_f32(&qk, k + set.reach.begin, a_.k.size_stride);
    }
  }

  // Of keys whose elements lie side by side, from `rows` on.
  void score_rows(int64_t queries, KeyRange keys, const float* rows, int64_t stride,
                  const Workspace& w) const {
    float by_key[kScoreRows * kSetQueries];
    for (int64_t from = keys.begin; from < keys.end; from += kScoreRows) {
      const int64_t count = std::min(kScoreRows, keys.end - from);
      FolioGemmF32 kq = few_rows(count, a_.q.size, queries);
      kq.a = rows + (from - keys.begin) * stride;
      kq.a_row_stride = stride;
      kq.b = w.queries;
      kq.c = by_key;
      kq.alpha = a_.scale;
      kernels_.dots_f32(&kq);
      for (int64_t q = 0; q < queries; ++q) {
        float* to = w.scores + q * total_ + from;
        for (int64_t j = 0; j < count; ++j) to[j] = by_key[j * queries + q];
      }
    }
  }

  // y += weights V over these rows of V, where they are visible.
  void add_values(const QuerySet& set, KeyRange given, const float* rows, int64_t stride,
                  const Workspace& w) const {
    for (int64_t i = 0; i < a_.q.seq; ++i) {
      const KeyRange keys = visible(i);
      const int64_t begin = std::max(keys.begin, given.begin);
      const int64_t end = std::min(keys.end, given.end);
      if (begin >= end) continue;
      for (int64_t h = 0; h < set.heads; h += kGemvRows) {
        FolioGemmF32 pv = few_rows(std::min(kGemvRows, set.heads - h), end - begin, a_.v.size);
        pv.a = w.scores + (h * a_.q.seq + i) * total_ + begin;
        pv.a_row_stride = a_.q.seq * total_;
        pv.c = y_at(set.head + h, i);
        pv.c_row_stride = a_.y_head;
        pv.accumulate = begin > keys.begin;
        pv.b_is_far = t_.is_far && !a_.v.half ? 1 : 0;
        kernels_.gemm_plain_f32(&pv, rows + (begin - given.begin) * stride, stride);
      }
    }
  }

  void run_packed(int64_t h, int64_t first, int64_t rows, const Workspace& w) const {
    // Keys beyond all these queries' reach are not even multiplied.
    int64_t reach = a_.qk ? total_ : 0;
    for (int64_t i = 0; i < rows; ++i) reach = std::max(reach, visible(first + i).end);
    FolioGemmF32 qk{};
    qk.m = rows;
    qk.n = reach;
    qk.k = a_.q.size;
    qk.a = a_.q.at(b_, h) + first * a_.q.seq_stride;
    qk.a_row_stride = a_.q.seq_stride;
    qk.a_col_stride = 1;
    qk.b = w.keys;
    qk.c = w.scores;
    qk.c_row_stride = total_;
    qk.alpha = a_.scale;
    qk.precision = product_precision(kernels_, a_.q.seq, total_, a_.q.size);
    kernels_.gemm_f32(&qk);
    finish_rows(h, first, rows, reach, w.scores);
    FolioGemmF32 pv{};
    pv.m = rows;
    pv.n = a_.v.size;
    pv.k = reach;
    pv.a = w.scores;
    pv.a_row_stride = total_;
    pv.a_col_stride = 1;
    pv.c_row_stride = a_.y_seq;
    pv.alpha = 1.0F;
    // Panels of V are total_ rows high: a shorter product goes through them one by one, which is
    // too little for parts.
    if (reach == total_) pv.precision = product_precision(kernels_, a_.q.seq, a_.v.size, total_);
    for (int64_t column = 0; column < a_.v.size; column += FOLIO_F32P16_COLUMNS) {
      if (reach != total_) pv.n = std::min<int64_t>(FOLIO_F32P16_COLUMNS, a_.v.size - column);
      pv.b = w.values + column * total_;
      pv.c = y_at(h, first) + column;
      kernels_.gemm_f32(&pv);
      if (reach == total_) break;
    }
  }

  static FolioGemmF32 few_rows(int64_t m, int64_t k, int64_t n) {
    FolioGemmF32 args{};
    args.m = m;
    args.n = n;
    args.k = k;
    args.a_row_stride = k;
    args.a_col_stride = 1;
    args.c_row_stride = n;
    args.alpha = 1.0F;
    return args;
  }

  // finish_row() of queries one after the other, 0 for what they do not see up to `reach`. Those
  // that see all keys become weights a few at a time: one ends while the next begins.
  void finish_rows(int64_t h, int64_t first, int64_t rows, int64_t reach, float* scores) const {
    const bool are_apart = a_.qk || a_.smooth;
    const int64_t fit = std::max<int64_t>(1, kFinishedFloats / std::max<int64_t>(1, total_));
    const int64_t most = are_apart ? 0 : fit;
    for (int64_t i = 0; i < rows;) {
      float* row = scores + i * total_;
      int64_t count = 0;
      for (; count < most && i + count < rows && sees_all(first + i + count); ++count) {
        prepare_row(h, first + i + count, {0, total_}, row + count * total_);
      }
      if (count > 0) {
        softmax_rows(count, total_, row);
        i += count;
        continue;
      }
      const KeyRange keys = visible(first + i);
      finish_row(h, first + i, keys, row);
      std::fill(row, row + keys.begin, 0.0F);
      std::fill(row + keys.end, row + reach, 0.0F);
      ++i;
    }
  }

  // Scores into weights, in place, over the visible keys.
  void finish_row(int64_t h, int64_t i, KeyRange keys, float* row) const {
    float* saved = prepare_row(h, i, keys, row);
    softmax(h, keys.end - keys.begin, row + keys.begin);
    if (saved && a_.stage == ScoreStage::kWeights) save(keys, row, 0.0F, saved);
  }

  // All that is done to scores before softmax; where they are saved, or null.
  float* prepare_row(int64_t h, int64_t i, KeyRange keys, float* row) const {
    float* saved = a_.qk ? a_.qk + ((b_ * a_.q.heads + h) * a_.q.seq + i) * total_ : nullptr;
    if (saved && a_.stage == ScoreStage::kRaw) std::copy_n(row, total_, saved);
    if (a_.softcap > 0) {
      const KeyRange all = saved ? KeyRange{0, total_} : keys;
      for (int64_t j = all.begin; j < all.end; ++j) {
        row[j] = std::tanh(row[j] / a_.softcap) * a_.softcap;
      }
    }
    if (saved && a_.stage == ScoreStage::kCapped) std::copy_n(row, total_, saved);
    if (a_.rule) a_.rule->add_bias(b_, h, i, keys, row);
    if (saved && a_.stage == ScoreStage::kBiased) save(keys, row, kMinusInf, saved);
    return saved;
  }

  void save(KeyRange keys, const float* row, float outside, float* saved) const {
    std::fill_n(saved, total_, outside);
    std::copy(row + keys.begin, row + keys.end, saved + keys.begin);
  }

  void softmax(int64_t h, int64_t n, float* x) const {
    if (a_.plain_softmax || !a_.smooth) return softmax_rows(1, n, x);
    const float max = kernels_.max_f32(n, x);
    if (max == kMinusInf) {
      std::fill_n(x, n, 0.0F);
      return;
    }
    const float sink = a_.sinks ? a_.sinks[h] : 0.0F;
    const float top = std::max(max, sink);
    for (int64_t j = 0; j < n; ++j) x[j] -= top;
    kernels_.unary_f32[kFolioExp](n, x, x);
    const float sum = kernels_.sum_f32(n, x) + std::exp(sink - top);
    for (int64_t j = 0; j < n; ++j) x[j] /= sum;
  }

  // Of rows one after the other.
  void softmax_rows(int64_t rows, int64_t n, float* x) const {
    int64_t first = 0;
    for (int64_t i = 0; i < rows && !a_.plain_softmax; ++i) {
      float* row = x + i * n;
      if (n > 0 && row[0] > kMinusInf) continue;  // the usual case, without a look at all of it
      if (kernels_.max_f32(n, row) != kMinusInf) continue;
      kernels_.softmax_f32(i - first, n, x + first * n, x + first * n);
      std::fill_n(row, n, 0.0F);
      first = i + 1;
    }
    kernels_.softmax_f32(rows - first, n, x + first * n, x + first * n);
  }

  const FolioKernels& kernels_;
  const AttendArgs& a_;
  const Tiling& t_;
  int64_t b_;
  int64_t kv_;
  int64_t total_;
};

}  // namespace

Heads Heads::head_major(const float* data, int64_t batch, int64_t heads, int64_t seq,
                        int64_t size) {
  return {data, batch, heads, seq, size, heads * seq * size, seq * size, size};
}

Heads Heads::seq_major(const float* data, int64_t batch, int64_t seq, int64_t heads, int64_t size,
                       int64_t row) {
  return {data, batch, heads, seq, size, seq * row, size, row};
}

Status check_head_sizes(int64_t batch, int64_t heads, int64_t seq, int64_t size,
                        std::string_view what) {
  const bool fits = size > 0 && size <= kMaxHeadSize && heads <= kMaxHeads && seq <= kMaxSequence &&
                    batch <= kMaxBatchHeads / std::max<int64_t>(heads, 1);
  if (fits) return Status::ok();
  return invalid_argument(what, " has ", heads, " heads of ", size, " elements, ", seq,
                          " positions and batch ", batch, "; supported are up to ", kMaxHeads,
                          ", 1 to ", kMaxHeadSize, ", up to ", kMaxSequence, " and ",
                          kMaxBatchHeads, " heads in all");
}

Result<Heads> heads_of(const Shape& s, int64_t head_count, std::string_view what) {
  if (s.rank() == 4) {
    FOLIO_RETURN_IF_ERROR(check_head_sizes(s[0], s[1], s[2], s[3], what));
    return Heads::head_major(nullptr, s[0], s[1], s[2], s[3]);
  }
  if (s.rank() != 3 || head_count < 1 || s[2] % head_count != 0) {
    return invalid_argument(what, " has shape ", s.to_string(),
                            ", expected [B,H,S,D], or [B,S,H*D] with ", head_count, " heads");
  }
  FOLIO_RETURN_IF_ERROR(check_head_sizes(s[0], head_count, s[1], s[2] / head_count, what));
  return Heads::seq_major(nullptr, s[0], s[1], head_count, s[2] / head_count, s[2]);
}

namespace {

// Per head: the rows at old_at(b, h), of which there are past(b), unless they stand at `to`
// already; then the rows of `fresh`, each put by store(); then zeros. A row has `row` bytes.
template <typename OldAt, typename Past, typename Store>
void append_rows(OpRun& run, const Heads& fresh, int64_t capacity, int64_t row, uint8_t* to,
                 bool in_place, OldAt old_at, Past past, Store store) {
  const int64_t grain = std::max<int64_t>(
      1, kCacheGrain * 1024 / std::max<int64_t>(1, row) / std::max<int64_t>(1, capacity));
  run.parallel().for_range(fresh.batch * fresh.heads, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / fresh.heads;
      const int64_t h = at % fresh.heads;
      const int64_t rows = past(b);
      uint8_t* out = to + at * capacity * row;
      if (!in_place) {
        if (rows > 0) std::copy_n(old_at(b, h), rows * row, out);
        std::fill(out + (rows + fresh.seq) * row, out + capacity * row, uint8_t{0});
      }
      for (int64_t s = 0; s < fresh.seq; ++s) {
        store(fresh.at(b, h) + s * fresh.seq_stride, out + (rows + s) * row);
      }
    }
  });
}

}  // namespace

Heads append_cache(OpRun& run, const Heads& old, Span<const int64_t> old_rows, const Heads& fresh,
                   int64_t capacity, float* to) {
  const int64_t row = fresh.size * static_cast<int64_t>(sizeof(float));
  append_rows(
      run, fresh, capacity, row, reinterpret_cast<uint8_t*>(to), old.data == to,
      [&](int64_t b, int64_t h) { return reinterpret_cast<const uint8_t*>(old.at(b, h)); },
      [&](int64_t b) { return old.data ? old_rows[static_cast<size_t>(b)] : 0; },
      [&](const float* from, uint8_t* out) { std::memcpy(out, from, static_cast<size_t>(row)); });
  return Heads::head_major(to, fresh.batch, fresh.heads, capacity, fresh.size);
}

Heads append_half_cache(OpRun& run, const Tensor* old, Span<const int64_t> old_rows,
                        const Heads& fresh, Tensor* to) {
  const int64_t row = 2 * fresh.size;
  const int64_t capacity = to->dim(2);
  const auto narrow =
      to->dtype() == DType::kFloat16 ? run.kernels().f32_to_f16 : run.kernels().f32_to_bf16;
  append_rows(
      run, fresh, capacity, row, to->raw_mut(), old && old->raw() == to->raw(),
      [&](int64_t b, int64_t h) { return old->raw() + (b * fresh.heads + h) * old->dim(2) * row; },
      [&](int64_t b) { return old ? old_rows[static_cast<size_t>(b)] : 0; },
      [&](const float* from, uint8_t* out) { narrow(fresh.size, from, out); });
  Heads heads = Heads::head_major(nullptr, fresh.batch, fresh.heads, capacity, fresh.size);
  heads.half = to->raw();
  heads.half_type = to->dtype();
  return heads;
}

void AttendArgs::write_seq_major(float* to) {
  y = to;
  y_head = v.size;
  y_seq = q.heads * v.size;
  y_batch = q.seq * y_seq;
}

Status attend(OpRun& run, const AttendArgs& a) {
  if (a.q.batch == 0 || a.q.heads == 0 || a.q.seq == 0) return Status::ok();
  const Tiling tiling = Tiling::of(a, run.kernels(), run.parallel().thread_count());
  const WorkspaceSizes sizes(a, tiling);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(
      ThreadScratch::make(run, static_cast<size_t>(sizes.all()) * sizeof(float), &scratch));
  const int64_t tasks = a.q.batch * a.k.heads * tiling.parts;
  run.parallel().for_range(tasks, tiling.grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    const Workspace w = sizes.place(reinterpret_cast<float*>(block.data()));
    for (int64_t at = begin; at < end; ++at) {
      const int64_t head = at / tiling.parts;
      const int64_t part = at % tiling.parts;
      const Head work(run.kernels(), a, tiling, head / a.k.heads, head % a.k.heads);
      if (at == begin || part == 0) work.pack(w);
      work.run(part, w);
    }
  });
  return Status::ok();
}

}  // namespace folio
