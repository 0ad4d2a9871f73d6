// Rotary position embedding.
//
// Source: ONNX operator spec, RotaryEmbedding, opset 23 (Su et al. 2021, RoFormer).
// Shapes: X [B, H, S, D] or [B, S, H * D]; caches [max, R / 2] with position_ids [B, S], else
//         [B, S, R / 2]; R = rotary_embedding_dim, 0 meaning D. Y has X's shape.
// Math:   (a, b) -> (a cos - b sin, a sin + b cos) for each pair of the first R of D elements:
//         element i and i + R / 2, or 2i and 2i + 1 when interleaved.
// Types:  float; float16 and bfloat16 in float.
#include <algorithm>

#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct RotarySizes {
  int64_t batch = 0, heads = 0, seq = 0, size = 0, rotary = 0;
  int64_t head_stride = 0, seq_stride = 0;
};

class RotaryEmbedding final : public OpKernel {
 public:
  bool interleaved = false;
  int64_t heads = 0;
  int64_t rotary_dim = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* cos, run.tensor(1, x->dtype()));
    FOLIO_TRY(const Tensor* sin, run.tensor(2, x->dtype()));
    FOLIO_TRY(const RotarySizes s, sizes(*x));
    FOLIO_TRY(const std::vector<int64_t> rows, cache_rows(run, s, *cos, *sin));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (y->count() == 0) return Status::ok();
    if (x->dtype() == DType::kFloat) {
      rotate(run, s, rows, x->data<float>(), cos->data<float>(), sin->data<float>(),
             y->data_mut<float>());
      return Status::ok();
    }
    if (x->dtype() != DType::kFloat16 && x->dtype() != DType::kBfloat16) {
      return not_implemented("RotaryEmbedding of ", dtype_name(x->dtype()));
    }
    FOLIO_TRY(const float* x32, widen_half(run, *x));
    FOLIO_TRY(const float* cos32, widen_half(run, *cos));
    FOLIO_TRY(const float* sin32, widen_half(run, *sin));
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(y->count()) * sizeof(float)));
    auto* y32 = reinterpret_cast<float*>(bytes);
    rotate(run, s, rows, x32, cos32, sin32, y32);
    narrow_half(run, y32, y);
    return Status::ok();
  }

 private:
  Result<RotarySizes> sizes(const Tensor& x) const {
    RotarySizes s;
    if (x.rank() == 4) {
      s = {x.dim(0), x.dim(1), x.dim(2), x.dim(3), 0, x.dim(2) * x.dim(3), x.dim(3)};
    } else if (x.rank() == 3 && heads > 0 && x.dim(2) % heads == 0) {
      s = {x.dim(0), heads, x.dim(1), x.dim(2) / heads, 0, x.dim(2) / heads, x.dim(2)};
    } else {
      return invalid_argument("X has shape ", x.shape().to_string(),
                              ", expected [B,H,S,D], or [B,S,H*D] with ", heads, " heads");
    }
    s.rotary = rotary_dim == 0 ? s.size : rotary_dim;
    if (s.rotary < 0 || s.rotary > s.size || s.rotary % 2 != 0) {
      return invalid_argument("cannot rotate ", s.rotary, " of ", s.size, " elements");
    }
    return s;
  }

  // The cache row of each [batch, position].
  static Result<std::vector<int64_t>> cache_rows(const OpRun& run, const RotarySizes& s,
                                                 const Tensor& cos, const Tensor& sin) {
    const int rank = run.has_input(3) ? 2 : 3;
    const bool shapes = cos.shape() == sin.shape() && cos.rank() == rank &&
                        cos.dim(rank - 1) == s.rotary / 2 &&
                        (rank == 2 || (cos.dim(0) == s.batch && cos.dim(1) == s.seq));
    if (!shapes) {
      return invalid_argument("cos_cache ", cos.shape().to_string(), " and sin_cache ",
                              sin.shape().to_string(), " do not fit X: batch ", s.batch,
                              ", sequence ", s.seq, ", rotated ", s.rotary);
    }
    std::vector<int64_t> rows;
    if (rank == 3) {
      rows.resize(static_cast<size_t>(s.batch * s.seq));
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
      return rows;
    }
    FOLIO_TRY(rows, run.ints(3));
    const auto outside = [&](int64_t row) { return row < 0 || row >= cos.dim(0); };
    if (static_cast<int64_t>(rows.size()) != s.batch * s.seq ||
        std::any_of(rows.begin(), rows.end(), outside)) {
      return invalid_argument("position_ids must be ", s.batch * s.seq, " numbers from 0 to ",
                              cos.dim(0) - 1);
    }
    return rows;
  }

  void rotate(OpRun& run, const RotarySizes& s, const std::vector<int64_t>& rows, const float* x,
              const float* cos, const float* sin, float* y) const {
    const int64_t half = s.rotary / 2;
    const int64_t step = interleaved ? 2 : 1;
    const int64_t other = interleaved ? 1 : half;
    run.parallel().for_range(s.batch * s.seq, 16, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const float* c = cos + rows[static_cast<size_t>(at)] * half;
        const float* n = sin + rows[static_cast<size_t>(at)] * half;
        for (int64_t h = 0; h < s.heads; ++h) {
          const int64_t base =
              at / s.seq * s.heads * s.seq * s.size + at % s.seq * s.seq_stride + h * s.head_stride;
          for (int64_t i = 0; i < half; ++i) {
            const float a = x[base + i * step];
            const float b = x[base + i * step + other];
            y[base + i * step] = a * c[i] - b * n[i];
            y[base + i * step + other] = a * n[i] + b * c[i];
          }
          std::copy_n(x + base + s.rotary, s.size - s.rotary, y + base + s.rotary);
        }
      }
    });
  }
};

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<RotaryEmbedding>();
  FOLIO_TRY(const int64_t interleaved, build.attrs().get_int("interleaved", 0));
  FOLIO_TRY(kernel->heads, build.attrs().get_int("num_heads", 0));
  FOLIO_TRY(kernel->rotary_dim, build.attrs().get_int("rotary_embedding_dim", 0));
  kernel->interleaved = interleaved != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_rotary_embedding(OpRegistry& registry) {
  OpDef def;
  def.type = "RotaryEmbedding";
  def.since = 23;
  def.min_inputs = 3;
  def.max_inputs = 4;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
