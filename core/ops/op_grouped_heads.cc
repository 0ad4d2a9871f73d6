#include "core/ops/op_grouped_heads.h"

#include <algorithm>

#include "core/ops/op_half.h"

namespace folio {
namespace {

constexpr int64_t kMostHeads = 1 << 20;

}  // namespace

Result<HeadCounts> HeadCounts::parse(const Attributes& attrs) {
  HeadCounts counts;
  FOLIO_TRY(counts.heads, attrs.get_int("num_heads"));
  FOLIO_TRY(counts.kv_heads, attrs.get_int("kv_num_heads"));
  if (counts.heads < 1 || counts.heads > kMostHeads || counts.kv_heads < 1 ||
      counts.kv_heads > kMostHeads || counts.heads % counts.kv_heads != 0) {
    return invalid_graph("attributes 'num_heads' and 'kv_num_heads' are ", counts.heads, " and ",
                         counts.kv_heads, ", expected a multiple and its divisor");
  }
  return counts;
}

// Counts that parse() refuses have said so by then, or will.
Status infer_grouped_heads(OpInfer& infer) {
  FOLIO_TRY(const int64_t heads, infer.attrs().get_int("num_heads"));
  FOLIO_TRY(const int64_t kv_heads, infer.attrs().get_int("kv_num_heads"));
  const Dims* query = infer.dims_of(0);
  if (!query || query->size() != 3 || heads < 1 || kv_heads < 1) return Status::ok();
  if (infer.has_input(1)) {
    infer.set_tensor(0, infer.dtype(0), *query);
  } else if ((*query)[2].is_value() && heads < kMostHeads && kv_heads < kMostHeads) {
    const int64_t size = (*query)[2].value / (heads + 2 * kv_heads);
    infer.set_tensor(0, infer.dtype(0), Dims{(*query)[0], (*query)[1], Dim::of(heads * size)});
  }
  return Status::ok();
}

Result<GroupedHeads> bind_grouped_heads(OpRun& run, int64_t heads, int64_t kv_heads) {
  FOLIO_TRY(const Tensor* query, run.tensor(0));
  const bool packed = !run.has_input(1);
  if (query->rank() != 3) {
    return invalid_argument("query has shape ", query->shape().to_string(), ", expected 3 dims");
  }
  GroupedHeads out;
  FOLIO_TRY(out.q, heads_of(query->shape(), packed ? heads + 2 * kv_heads : heads, "query"));
  FOLIO_TRY(out.q.data, floats_of(run, *query));
  Heads& q = out.q;
  q.heads = heads;
  if (packed) {
    out.k = out.v = q;
    out.k.heads = out.v.heads = kv_heads;
    out.k.data += heads * q.size;
    out.v.data += (heads + kv_heads) * q.size;
    return out;
  }
  for (const int input : {1, 2}) {
    Heads& to = input == 1 ? out.k : out.v;
    FOLIO_TRY(const Tensor* tensor, run.tensor(input, query->dtype()));
    FOLIO_TRY(to, heads_of(tensor->shape(), kv_heads, "key or value"));
    FOLIO_TRY(to.data, floats_of(run, *tensor));
    if (tensor->rank() != 3 || to.batch != q.batch || to.seq != q.seq || to.size != q.size) {
      return invalid_argument("key or value has shape ", tensor->shape().to_string(),
                              ", expected [", q.batch, ",", q.seq, ",", kv_heads * q.size, "]");
    }
  }
  return out;
}

namespace {

// The rows of a table of `limit` that the positions have, `from` on.
Result<std::vector<int64_t>> rows_of_positions(const Heads& q, Span<const int64_t> past,
                                               Span<const int64_t> lengths, int64_t from,
                                               int64_t limit) {
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < q.batch; ++b) {
    const auto at = static_cast<size_t>(b);
    for (int64_t i = 0; i < q.seq; ++i) {
      // What stands behind the end of a padded prompt is never read: any row will do.
      rows.push_back(past[at] + i < lengths[at] ? from + past[at] + i : 0);
      if (rows.back() >= limit) {
        return invalid_argument("position ", rows.back(), " is beyond the ", limit,
                                " rows of cos_cache");
      }
    }
  }
  return rows;
}

// Of a first prompt ONNX Runtime reads one position: where all sequences begin. The others may be
// anything, even outside the table.
Result<int64_t> first_position(OpRun& run, int positions, const Heads& q, int64_t limit) {
  FOLIO_TRY(const std::vector<int64_t> ids, position_ids(run, positions, q, ""));
  if (ids.empty()) return 0;
  if (ids[0] >= 0 && ids[0] < limit) return ids[0];
  return invalid_argument("position_ids must begin with a number from 0 to ", limit - 1);
}

}  // namespace

Status rotate_grouped_heads(OpRun& run, const RotaryInputs& inputs, Span<const int64_t> past,
                            Span<const int64_t> lengths, Heads* q, Heads* k) {
  const DType dtype = run.value(0).tensor().dtype();
  FOLIO_TRY(const Tensor* cos, run.tensor(inputs.cos, dtype));
  FOLIO_TRY(const Tensor* sin, run.tensor(inputs.sin, dtype));
  if (cos->rank() != 2 || cos->shape() != sin->shape() || cos->dim(1) > q->size / 2) {
    return invalid_argument("cos_cache ", cos->shape().to_string(), " and sin_cache ",
                            sin->shape().to_string(), " do not fit a head of ", q->size);
  }
  RotaryTable table;
  table.half = cos->dim(1);
  table.interleaved = inputs.interleaved;
  FOLIO_TRY(table.cos, floats_of(run, *cos));
  FOLIO_TRY(table.sin, floats_of(run, *sin));
  std::vector<int64_t> rows;
  const bool has_positions = inputs.positions >= 0 && run.has_input(inputs.positions);
  if (has_positions && !inputs.first_prompt) {
    FOLIO_TRY(rows, table_rows(run, inputs.positions, *q, cos->dim(0)));
  } else {
    int64_t from = 0;
    if (has_positions) {
      FOLIO_TRY(from, first_position(run, inputs.positions, *q, cos->dim(0)));
    }
    FOLIO_TRY(rows, rows_of_positions(*q, past, lengths, from, cos->dim(0)));
  }
  for (Heads* heads : {q, k}) {
    // Strides stay, so packed queries are rotated into a buffer of the packed size.
    FOLIO_TRY(float* out, scratch_floats(run, heads->batch * heads->batch_stride));
    rotate_heads(run, *heads, table, rows, out);
    heads->data = out;
  }
  return Status::ok();
}

Result<Tensor> scratch_tensor(OpRun& run, DType dtype, const Shape& shape) {
  FOLIO_TRY(uint8_t * bytes,
            run.scratch(static_cast<size_t>(shape.count() * dtype_bits(dtype) / 8)));
  return Tensor(dtype, shape, bytes, Ref<Buffer>());
}

Result<PastHeads> bind_past(OpRun& run, int input, DType dtype, bool keep_half, const Heads& fresh,
                            Span<const int64_t> rows) {
  PastHeads past;
  Heads& old = past.heads;
  if (run.has_input(input)) {
    FOLIO_TRY(past.tensor, run.tensor(input, dtype));
    const Shape& shape = past.tensor->shape();
    if (shape.rank() != 4) return invalid_argument("a past tensor must have 4 dims");
    FOLIO_TRY(old, heads_of(shape, 0, "past"));
    if (!keep_half) {
      FOLIO_TRY(old.data, floats_of(run, *past.tensor));
    }
    if (old.batch != fresh.batch || old.heads != fresh.heads || old.size != fresh.size) {
      return invalid_argument("past ", shape.to_string(), " does not fit [", fresh.batch, ",",
                              fresh.heads, ",*,", fresh.size, "]");
    }
  }
  const bool enough =
      std::all_of(rows.begin(), rows.end(), [&](int64_t count) { return count <= old.seq; });
  if (!enough) return invalid_argument("past_key and past_value differ in length");
  return past;
}

Status append_heads(OpRun& run, const PastHeads& past, int present, DType dtype, bool keep_half,
                    Span<const int64_t> rows, int64_t capacity, Heads* fresh) {
  FOLIO_TRY(const Shape shape,
            shape_from(std::vector<int64_t>{fresh->batch, fresh->heads, capacity, fresh->size}));
  if (keep_half) {
    Tensor unwanted;
    Tensor* to = &unwanted;
    if (run.has_output(present)) {
      FOLIO_TRY(to, run.output(present, dtype, shape));
    } else {
      FOLIO_TRY(unwanted, scratch_tensor(run, dtype, shape));
    }
    *fresh = append_half_cache(run, past.tensor, rows, *fresh, to);
    return Status::ok();
  }
  FOLIO_TRY(const FloatOutput out, FloatOutput::make_or_scratch(run, present, dtype, shape));
  *fresh = append_cache(run, past.heads, rows, *fresh, capacity, out.data());
  out.finish(run);
  return Status::ok();
}

}  // namespace folio
