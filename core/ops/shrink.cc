// Shrink: values near zero become zero, others move towards it.
//
// Source: ONNX operator spec, opset 9.
// Shapes: y has x's.
// Math:   x < -lambd: x + bias; x > lambd: x - bias; else 0.
// Types:  all numbers; integers are computed in double.
#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Shrink final : public OpKernel {
 public:
  float lambd = 0.5F;
  float bias = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(NumericTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (x->dtype() == DType::kFloat) {
      run.parallel().for_range(x->count(), kElementGrain, [&](int64_t begin, int64_t end) {
        run.kernels().shaped_f32[kFolioShrink](end - begin, x->data<float>() + begin, lambd, bias,
                                               y->data_mut<float>() + begin);
      });
      return Status::ok();
    }
    dispatch(NumericTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x->data<T>();
      T* to = y->data_mut<T>();
      run.parallel().for_range(x->count(), kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = shrink(from[i]);
      });
    });
    return Status::ok();
  }

 private:
  template <typename T>
  T shrink(T x) const {
    using C = std::conditional_t<std::is_integral_v<T>, double, Compute<T>>;
    const C v = static_cast<C>(x);
    const C edge = static_cast<C>(lambd);
    const C moved = v < -edge  ? v + static_cast<C>(bias)
                    : v > edge ? v - static_cast<C>(bias)
                               : C{0};
    if constexpr (std::is_integral_v<T>) {
      return saturating_cast<T>(moved);
    } else {
      return static_cast<T>(moved);
    }
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Shrink>();
  FOLIO_TRY(kernel->lambd, build.attrs().get_float("lambd", 0.5F));
  FOLIO_TRY(kernel->bias, build.attrs().get_float("bias", 0));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_shrink(OpRegistry& registry) {
  registry.add({.domain = "", .type = "Shrink", .since = 9, .infer = infer, .make = make});
}

}  // namespace folio
