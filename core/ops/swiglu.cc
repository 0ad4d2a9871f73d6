// SwiGLU: a gate with Swish.
//
// Source: ONNX operator spec, SwiGLU, opset 28.
// Shapes: a, b, y alike (numpy broadcast).
// Math:   y = a * sigmoid(alpha * a) * b.
// Types:  float, double; float16 and bfloat16 in float.
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class SwiGlu final : public OpKernel {
 public:
  float alpha = 1;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    if (!contains(FloatTypes{}, a->dtype())) return wrong_type(0, a->dtype());
    FOLIO_TRY(const Tensor* b, run.tensor(1, a->dtype()));
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(a->shape(), b->shape()));
    FOLIO_TRY(Tensor * y, run.output(0, a->dtype(), plan.out));
    dispatch(FloatTypes{}, a->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = Compute<T>;
      for_broadcast_rows(run.parallel(), plan,
                         [&](int64_t a_at, int64_t b_at, int64_t y_at, int64_t count) {
                           for (int64_t i = 0; i < count; ++i) {
                             const C gate = static_cast<C>(a->data<T>()[a_at + i * plan.a_step]);
                             const C value = static_cast<C>(b->data<T>()[b_at + i * plan.b_step]);
                             const C swish = gate / (1 + std::exp(-static_cast<C>(alpha) * gate));
                             y->data_mut<T>()[y_at + i] = static_cast<T>(swish * value);
                           }
                         });
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<SwiGlu>();
  FOLIO_TRY(kernel->alpha, build.attrs().get_float("alpha", 1));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, infer_common_dtype(infer));
  FOLIO_TRY(std::optional<Dims> dims, infer_binary_dims(infer));
  infer.set_tensor(0, dtype, std::move(dims));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_swiglu(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "SwiGLU",
                .since = 28,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer,
                .make = make});
}

}  // namespace folio
