// SparseAttention: causal attention with grouped heads in which a query sees some blocks of keys,
// as Phi-3-small has it.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.SparseAttention (CPU).
// Shapes: query [B, S, H * D] with key and value [B, S, Hkv * D], or all three packed in query;
//         past_* [B, Hkv, P, D]; block_row_indices [L, blocks + 1] and block_col_indices [L, most],
//         L a divisor of H: which blocks each block of queries sees (CSR); total_sequence_length:
//         the longest sequence, at most P; key_total_sequence_lengths [B]: of each, this call in
//         it. Y [B, S, H * D]; present_* [B, Hkv, P, D], zeros after each sequence's end.
// Math:   op_attention.h and op_rotary.h. A sequence of length n stood at n - S before this call (0
//         when S is the total: the first prompt); query i stands at p = n - S + i and sees the keys
//         up to its own in the blocks of row p / sparse_block_size of layout h modulo L; all of
//         them where the row has as many blocks as stand there, or the layout as many as a
//         triangle.
// Types:  float; float16 and bfloat16 in float, rotated keys rounded as the cache holds them.
// Notes:  ONNX Runtime's CPU gives other numbers where a sequence is shorter than the total: it
//         reads their weights where it did not write them.
// Errors: kInvalidArgument for shapes, lengths and indices that do not fit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/op_grouped_heads.h"
#include "core/ops/op_half.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum Input { kQuery, kKey, kValue, kPastKey, kPastValue, kRows, kColumns, kTotal, kLengths, kCos };
constexpr int kSin = kCos + 1;

// The blocks that the rows [first_row, ..) of every layout see.
struct Blocks {
  int64_t size = 0;  // keys of a block
  int64_t layouts = 1;
  int64_t first_row = 0;
  int64_t rows = 0;
  struct Row {
    bool dense = true;
    std::vector<int32_t> columns;  // ascending, if not dense
  };
  std::vector<Row> all;  // [layouts, rows]
};

class BlockRule final : public ScoreRule {
 public:
  Blocks blocks;
  std::vector<int64_t> past;     // of each sequence
  std::vector<int64_t> lengths;  // past and this call

  KeyRange visible(int64_t b, int64_t i) const override {
    const auto at = static_cast<size_t>(b);
    return {0, std::min(lengths[at], past[at] + i + 1)};
  }

  void add_bias(int64_t b, int64_t h, int64_t i, KeyRange keys, float* row) const override {
    // Behind the end of a padded prompt nothing is asked for: any row will do.
    const int64_t of_position = (past[static_cast<size_t>(b)] + i) / blocks.size;
    const int64_t at = std::min(of_position - blocks.first_row, blocks.rows - 1);
    const Blocks::Row& seen =
        blocks.all[static_cast<size_t>(h % blocks.layouts * blocks.rows + at)];
    if (seen.dense) return;
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    int64_t next = keys.begin;
    for (const int32_t column : seen.columns) {
      const int64_t begin = std::min(column * blocks.size, keys.end);
      if (begin > next) std::fill(row + next, row + begin, kHidden);
      next = std::max(next, begin + blocks.size);
    }
    if (next < keys.end) std::fill(row + next, row + keys.end, kHidden);
  }
};

class SparseAttention final : public OpKernel {
 public:
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t block_size = 0;
  float scale = 0.0F;
  bool rotary = false;
  bool interleaved = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(GroupedHeads of, bind_grouped_heads(run, heads, kv_heads));
    FOLIO_TRY(const Tensor* cache, run.tensor(kPastKey));
    const DType dtype = run.value(kQuery).tensor().dtype();
    const int64_t capacity = cache->rank() == 4 ? cache->dim(2) : 0;
    BlockRule rule;
    FOLIO_RETURN_IF_ERROR(bind_lengths(run, of.q, capacity, &rule));
    FOLIO_RETURN_IF_ERROR(bind_blocks(run, of.q, &rule));
    if (rotary) {
      const RotaryInputs inputs{kCos, kSin, -1, interleaved};
      FOLIO_RETURN_IF_ERROR(
          rotate_grouped_heads(run, inputs, rule.past, rule.lengths, &of.q, &of.k));
    }
    for (const int past : {kPastKey, kPastValue}) {
      Heads& fresh = past == kPastKey ? of.k : of.v;
      const bool half = is_half(dtype);
      FOLIO_TRY(const PastHeads old, bind_past(run, past, dtype, half, fresh, rule.past));
      if (old.heads.seq != capacity) {
        return invalid_argument("past_key has ", capacity, " rows and past_value ", old.heads.seq);
      }
      const int present = past - kPastKey + 1;
      FOLIO_RETURN_IF_ERROR(
          append_heads(run, old, present, dtype, half, rule.past, capacity, &fresh));
    }
    AttendArgs a;
    a.q = of.q;
    a.k = of.k;
    a.v = of.v;
    a.k.seq = a.v.seq = longest(rule.lengths);
    a.scale = scale == 0.0F ? 1.0F / std::sqrt(static_cast<float>(of.q.size)) : scale;
    a.rule = &rule;
    const Shape shape{of.q.batch, of.q.seq, heads * of.q.size};
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, dtype, shape));
    a.write_seq_major(y.data());
    FOLIO_RETURN_IF_ERROR(attend(run, a));
    y.finish(run);
    return Status::ok();
  }

 private:
  Status bind_lengths(OpRun& run, const Heads& q, int64_t capacity, BlockRule* rule) const;
  Status bind_blocks(OpRun& run, const Heads& q, BlockRule* rule) const;
};

Status SparseAttention::bind_lengths(OpRun& run, const Heads& q, int64_t capacity,
                                     BlockRule* rule) const {
  FOLIO_TRY(rule->lengths, run.ints(kLengths));
  FOLIO_TRY(const std::vector<int64_t> total, run.ints(kTotal));
  if (static_cast<int64_t>(rule->lengths.size()) != q.batch || total.size() != 1) {
    return invalid_argument("key_total_sequence_lengths has ", rule->lengths.size(),
                            " and total_sequence_length ", total.size(), " elements, expected ",
                            q.batch, " and 1");
  }
  FOLIO_RETURN_IF_ERROR(check_head_sizes(q.batch, heads, capacity, q.size, "the cache"));
  const bool first = total[0] == q.seq;
  if (total[0] < q.seq || total[0] > capacity) {
    return invalid_argument("total_sequence_length is ", total[0], ", expected ", q.seq, " to ",
                            capacity);
  }
  for (const int64_t length : rule->lengths) {
    const int64_t past = first ? 0 : length - q.seq;
    // In a first prompt shorter sequences are padded at their end.
    if (length < 1 || length > total[0] || past < 0) {
      return invalid_argument("key_total_sequence_lengths holds ", length, ", which does not fit ",
                              q.seq, " new positions and a total of ", total[0]);
    }
    rule->past.push_back(past);
  }
  return Status::ok();
}

Status SparseAttention::bind_blocks(OpRun& run, const Heads& q, BlockRule* rule) const {
  FOLIO_TRY(const Tensor* rows, run.tensor(kRows, DType::kInt32));
  FOLIO_TRY(const Tensor* columns, run.tensor(kColumns, DType::kInt32));
  if (rows->rank() != 2 || columns->rank() != 2 || rows->dim(0) < 1 || rows->dim(1) < 2 ||
      columns->dim(0) != rows->dim(0) || heads % rows->dim(0) != 0) {
    return invalid_argument("block_row_indices ", rows->shape().to_string(),
                            " and block_col_indices ", columns->shape().to_string(),
                            " are no layouts of blocks for ", heads, " heads");
  }
  Blocks& out = rule->blocks;
  out.size = block_size;
  out.layouts = rows->dim(0);
  const int64_t blocks = rows->dim(1) - 1;
  const int64_t most = columns->dim(1);
  if (rule->past.empty()) return Status::ok();
  const auto [first, last] = std::minmax_element(rule->past.begin(), rule->past.end());
  const int64_t positions = longest(rule->lengths);
  out.first_row = *first / block_size;
  out.rows = (std::min(*last + q.seq, positions) - 1) / block_size - out.first_row + 1;
  if (out.first_row + out.rows > blocks) {
    return invalid_argument("block_row_indices has ", blocks, " blocks of ", block_size,
                            " positions, expected room for ", positions);
  }
  for (int64_t layout = 0; layout < out.layouts; ++layout) {
    const int32_t* begins = rows->data<int32_t>() + layout * (blocks + 1);
    const int32_t* all = columns->data<int32_t>() + layout * most;
    const bool dense = begins[blocks] >= blocks * (blocks + 1) / 2;
    for (int64_t row = out.first_row; row < out.first_row + out.rows; ++row) {
      Blocks::Row& seen = out.all.emplace_back();
      const int64_t begin = begins[row];
      const int64_t end = begins[row + 1];
      if (begin < 0 || end < begin || end > most) {
        return invalid_argument("block_row_indices has row ", row, " from ", begin, " to ", end,
                                " of ", most, " blocks");
      }
      seen.dense = dense || end - begin == row + 1;
      if (seen.dense) continue;
      seen.columns.assign(all + begin, all + end);
      std::sort(seen.columns.begin(), seen.columns.end());
      if (begin < end && (seen.columns.front() < 0 || seen.columns.back() >= blocks)) {
        return invalid_argument("block_col_indices has blocks ", seen.columns.front(), " to ",
                                seen.columns.back(), ", expected 0 to ", blocks - 1);
      }
    }
  }
  return Status::ok();
}

Status infer(OpInfer& infer) {
  const DType dtype = infer.dtype(kQuery);
  infer.set_tensor(0, dtype);
  for (const int present : {1, 2}) {
    const Dims* past = infer.dims_of(kPastKey + present - 1);
    infer.set_tensor(present, dtype, past ? std::optional<Dims>(*past) : std::nullopt);
  }
  return infer_grouped_heads(infer);
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  const Attributes& attrs = build.attrs();
  auto kernel = std::make_unique<SparseAttention>();
  FOLIO_TRY(const HeadCounts counts, HeadCounts::parse(attrs));
  kernel->heads = counts.heads;
  kernel->kv_heads = counts.kv_heads;
  FOLIO_TRY(kernel->block_size, attrs.get_int("sparse_block_size"));
  FOLIO_TRY(kernel->scale, attrs.get_float("scale", 0.0F));
  FOLIO_TRY(const int64_t rotary, attrs.get_int("do_rotary", 0));
  FOLIO_TRY(const int64_t interleaved, attrs.get_int("rotary_interleaved", 0));
  if (kernel->block_size < 1 || kernel->block_size > INT32_MAX) {
    return invalid_graph("attribute 'sparse_block_size' is ", kernel->block_size,
                         ", expected a number of positions");
  }
  kernel->rotary = rotary == 1;
  kernel->interleaved = interleaved == 1;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_sparse_attention(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "SparseAttention";
  def.keeps_half = true;
  def.min_inputs = 9;
  def.optional_inputs = 1U << kKey | 1U << kValue;
  def.max_inputs = 11;
  def.max_outputs = 3;
  def.in_place = {-1, kPastKey, kPastValue};
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
