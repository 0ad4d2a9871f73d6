// Rotary position embedding.
//
// Source: ONNX operator spec, RotaryEmbedding, opset 23; ONNX Runtime ContribOperators,
//         com.microsoft.RotaryEmbedding (whose `scale` and `is_packed_batching` change nothing).
// Shapes: X [B, H, S, D] or [B, S, H * D]; Y has X's shape. R = rotary_embedding_dim, 0 meaning D.
//         ai.onnx: X, caches, position_ids: caches [max, R / 2] with position_ids [B, S], else
//         [B, S, R / 2]. com.microsoft: X, position_ids, caches [max, R / 2]; position_ids [B, S]
//         or one number, the first position of every sequence; without num_heads a 3-D X has
//         heads of twice the caches' width.
// Math:   op_rotary.h.
// Types:  float; float16 and bfloat16 in float.
#include "core/ops/op_registry.h"
#include "core/ops/op_rotary.h"

namespace folio {
namespace {

class RotaryEmbedding final : public OpKernel {
 public:
  bool contrib = false;
  bool interleaved = false;
  int64_t head_count = 0;
  int64_t rotary_dim = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* cos, run.tensor(contrib ? 2 : 1, x->dtype()));
    FOLIO_TRY(const Tensor* sin, run.tensor(contrib ? 3 : 2, x->dtype()));
    FOLIO_TRY(Heads heads, heads_of(x->shape(), heads_in(*x, *cos), "X"));
    RotaryTable table;
    table.interleaved = interleaved;
    const int64_t rotated = rotary_dim > 0 ? rotary_dim : heads.size;
    if (rotated > heads.size || rotated % 2 != 0) {
      return invalid_argument("rotary_embedding_dim is ", rotated,
                              ", expected an even number up to the head size ", heads.size);
    }
    table.half = rotated / 2;
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, x->dtype(), x->shape()));
    if (y.count() == 0) return Status::ok();
    FOLIO_TRY(const std::vector<int64_t> rows, cache_rows(run, heads, *cos, *sin, table.half));
    FOLIO_TRY(heads.data, floats_of(run, *x));
    FOLIO_TRY(table.cos, floats_of(run, *cos));
    FOLIO_TRY(table.sin, floats_of(run, *sin));
    rotate_heads(run, heads, table, rows, y.data());
    y.finish(run);
    return Status::ok();
  }

 private:
  int64_t heads_in(const Tensor& x, const Tensor& cos) const {
    if (head_count > 0 || !contrib || x.rank() != 3 || cos.rank() != 2 || cos.dim(1) < 1) {
      return head_count;
    }
    return x.dim(2) % 2 == 0 ? x.dim(2) / 2 / cos.dim(1) : 0;
  }

  // Which row of the caches belongs to each batch and position.
  Result<std::vector<int64_t>> cache_rows(OpRun& run, const Heads& x, const Tensor& cos,
                                          const Tensor& sin, int64_t half) const {
    const int positions = contrib ? 1 : 3;
    const int rank = contrib || run.has_input(positions) ? 2 : 3;
    const bool shapes = cos.shape() == sin.shape() && cos.rank() == rank &&
                        cos.dim(rank - 1) == half &&
                        (rank == 2 || (cos.dim(0) == x.batch && cos.dim(1) == x.seq));
    if (!shapes) {
      return invalid_argument("cos_cache ", cos.shape().to_string(), " and sin_cache ",
                              sin.shape().to_string(), " do not fit X: batch ", x.batch,
                              ", sequence ", x.seq, ", rotated ", half * 2);
    }
    int64_t first = 0;
    if (rank == 2) {
      FOLIO_TRY(const Tensor* ids, run.tensor(positions));
      if (!contrib || ids->count() != 1) {
        return table_rows(run, positions, x, cos.dim(0), contrib ? " or one number" : "");
      }
      FOLIO_TRY(const std::vector<int64_t> given, run.ints(positions));
      first = given[0];
      if (first < 0 || first > cos.dim(0) - x.seq) {
        return invalid_argument("position_ids starts at ", first, ", expected ", x.seq,
                                " positions within ", cos.dim(0));
      }
    }
    std::vector<int64_t> rows(static_cast<size_t>(x.batch * x.seq));
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      rows[i] = rank == 2 ? first + at % x.seq : at;
    }
    return rows;
  }
};

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<RotaryEmbedding>();
  FOLIO_TRY(const int64_t interleaved, build.attrs().get_int("interleaved", 0));
  FOLIO_TRY(kernel->head_count, build.attrs().get_int("num_heads", 0));
  FOLIO_TRY(kernel->rotary_dim, build.attrs().get_int("rotary_embedding_dim", 0));
  kernel->contrib = !build.node().domain.empty();
  kernel->interleaved = interleaved != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_rotary_embedding(OpRegistry& registry) {
  OpDef def;
  def.type = "RotaryEmbedding";
  def.keeps_half = true;
  def.since = 23;
  def.min_inputs = 3;
  def.max_inputs = 4;
  def.infer = infer;
  def.make = make;
  registry.add(def);
  def.domain = "com.microsoft";
  def.since = 1;
  def.min_inputs = 4;
  registry.add(def);
}

}  // namespace folio
