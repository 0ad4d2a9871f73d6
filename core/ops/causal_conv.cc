// CausalConvWithState: depthwise convolution over time that carries its last inputs along.
//
// Source: ONNX operator spec, opset 27; com.microsoft version 1 (one dim, no state_window).
// Shapes: x [batch, channels, length], w [channels, 1, k], bias [channels], past [batch, channels,
//         k - 1] -> y as x, present as past.
// Math:   with z = past (or zeros) followed by x: y[t] = bias + sum over j of w[j] z[t + j],
//         present = the last k - 1 of z; activation silu (swish) is applied to y.
// Types:  float; float16 and bfloat16 in float.
// Notes:  one dim; state_window is refused.
#include <algorithm>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

struct CausalSizes {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t length = 0;
  int64_t kept = 0;  // k - 1
};

// A float tensor's own bytes, or a widened copy; null for an absent input.
Result<const float*> floats_of(OpRun& run, int input, DType dtype) {
  if (!run.has_input(input)) return static_cast<const float*>(nullptr);
  FOLIO_TRY(const Tensor* tensor, run.tensor(input, dtype));
  if (dtype == DType::kFloat) return tensor->data<float>();
  FOLIO_TRY(const float* wide, widen_half(run, *tensor));
  return wide;
}

class CausalConv final : public OpKernel {
 public:
  bool silu = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const DType dtype = x->dtype();
    if (dtype != DType::kFloat && dtype != DType::kFloat16 && dtype != DType::kBfloat16) {
      return wrong_type(0, dtype);
    }
    FOLIO_TRY(const CausalSizes s, sizes(run, *x));
    FOLIO_TRY(const float* data, floats_of(run, 0, dtype));
    FOLIO_TRY(const float* w, floats_of(run, 1, dtype));
    FOLIO_TRY(const float* bias, floats_of(run, 2, dtype));
    FOLIO_TRY(const float* past, floats_of(run, 3, dtype));
    FOLIO_TRY(Tensor * y, run.output(0, dtype, x->shape()));
    Tensor* present = nullptr;
    if (run.has_output(1)) {
      FOLIO_TRY(present, run.output(1, dtype, Shape{s.batch, s.channels, s.kept}));
    }
    // Of rows without elements there may be any number.
    if (y->count() == 0 && (!present || present->count() == 0)) return Status::ok();
    FOLIO_TRY(float* out, target(run, y));
    FOLIO_TRY(float* state, target(run, present));
    FOLIO_RETURN_IF_ERROR(rows(run, s, data, w, bias, past, out, state));
    if (dtype == DType::kFloat) return Status::ok();
    narrow_half(run, out, y);
    if (present) narrow_half(run, state, present);
    return Status::ok();
  }

 private:
  static Result<CausalSizes> sizes(const OpRun& run, const Tensor& x) {
    FOLIO_TRY(const Tensor* w, run.tensor(1, x.dtype()));
    if (x.rank() != 3 || w->rank() != 3 || w->dim(0) != x.dim(1) || w->dim(1) != 1 ||
        w->dim(2) < 1) {
      return invalid_argument("X ", x.shape().to_string(), " and W ", w->shape().to_string(),
                              " must be [batch, channels, length] and [channels, 1, k]");
    }
    const CausalSizes s{x.dim(0), x.dim(1), x.dim(2), w->dim(2) - 1};
    const Shape expected[] = {Shape{s.channels}, Shape{s.batch, s.channels, s.kept}};
    for (int input = 2; input < 4; ++input) {
      if (!run.has_input(input)) continue;
      FOLIO_TRY(const Tensor* tensor, run.tensor(input, x.dtype()));
      if (!(tensor->shape() == expected[input - 2])) {
        return invalid_argument("input ", input, " is ", tensor->shape().to_string(), ", expected ",
                                expected[input - 2].to_string());
      }
    }
    return s;
  }

  // Where floats for `tensor` are computed; null for null.
  static Result<float*> target(OpRun& run, Tensor* tensor) {
    if (!tensor) return static_cast<float*>(nullptr);
    if (tensor->dtype() == DType::kFloat) return tensor->data_mut<float>();
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(tensor->count()) * sizeof(float)));
    return reinterpret_cast<float*>(bytes);
  }

  Status rows(OpRun& run, const CausalSizes& s, const float* x, const float* w, const float* bias,
              const float* past, float* y, float* present) const {
    const int64_t padded = s.kept + s.length;
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(
        ThreadScratch::make(run, static_cast<size_t>(padded) * sizeof(float), &scratch));
    const int64_t grain =
        std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, s.length * (s.kept + 1)));
    run.parallel().for_range(s.batch * s.channels, grain, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      auto* z = reinterpret_cast<float*>(block.data());
      for (int64_t row = begin; row < end; ++row) {
        const int64_t channel = row % s.channels;
        if (past) {
          std::copy_n(past + row * s.kept, s.kept, z);
        } else {
          std::fill_n(z, s.kept, 0.0F);
        }
        std::copy_n(x + row * s.length, s.length, z + s.kept);
        float* out = y + row * s.length;
        std::fill_n(out, s.length, bias ? bias[channel] : 0.0F);
        for (int64_t j = 0; j <= s.kept; ++j) {
          const float factor = w[channel * (s.kept + 1) + j];
          for (int64_t t = 0; t < s.length; ++t) out[t] += factor * z[t + j];
        }
        if (silu) run.kernels().unary_f32[kFolioSilu](s.length, out, out);
        if (present) std::copy_n(z + s.length, s.kept, present + row * s.kept);
      }
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<CausalConv>();
  FOLIO_TRY(const std::string activation, build.attrs().get_string("activation", "none"));
  FOLIO_TRY(const int64_t dims, build.attrs().get_int("ndim", 1));
  FOLIO_TRY(const int64_t window, build.attrs().get_int("state_window", 0));
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return invalid_graph("attribute 'activation' is '", activation, "'");
  }
  if (dims != 1 || window != 0) {
    return not_implemented("attribute 'ndim' is ", dims, ", 'state_window' ", window);
  }
  kernel->silu = activation != "none";
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  const Dims* x = infer.dims_of(0);
  const Dims* w = infer.dims_of(1);
  Dims state(3, Dim::unknown());
  if (x && x->size() == 3) std::copy_n(x->begin(), 2, state.begin());
  if (w && w->size() == 3) state[2] = infer.table().sub((*w)[2], Dim::of(1));
  infer.set_tensor(1, infer.dtype(0), std::move(state));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_causal_conv(OpRegistry& registry) {
  OpDef def;
  def.type = "CausalConvWithState";
  def.min_inputs = 2;
  def.max_inputs = 4;
  def.max_outputs = 2;
  def.infer = infer;
  def.make = make;
  def.one_type = 0b1111;
  def.since = 27;
  registry.add(def);
  def.domain = "com.microsoft";
  def.since = 1;
  registry.add(def);
}

}  // namespace folio
