// PRelu: y = x < 0 ? slope * x : x.
//
// Source: ONNX operator spec; opsets 1 and 6 (slope: one element, or one per channel, dim 1), 7, 9
//         (integers), 16 (slope broadcasts to x, numpy's rule).
// Shapes: y has x's shape.
// Types:  float, double, (u)int32, (u)int64; float16 and bfloat16 in float.
// Errors: kInvalidArgument when the slope does not broadcast to x's shape.
#include "core/ops/op_arithmetic.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct PReluFunction {
  template <typename T>
  T operator()(T x, T slope) const {
    if constexpr (std::is_signed_v<T>) {
      return x < T{0} ? MulFunction()(slope, x) : x;
    } else {
      return x;
    }
  }
};

// Of those that no kernel has.
using RowTypes = TypeList<double, int32_t, int64_t, uint32_t, uint64_t>;

class PRelu final : public OpKernel {
 public:
  explicit PRelu(bool slope_per_channel) : slope_per_channel_(slope_per_channel) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const bool has_kernel = x->dtype() == DType::kFloat || is_half(x->dtype());
    BinaryRow row = nullptr;
    dispatch(RowTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      row = binary_row<T, T, T, PReluFunction>;
    });
    if (!row && !has_kernel) return wrong_type(0, x->dtype());
    FOLIO_TRY(const Tensor* slope, run.tensor(1, x->dtype()));
    Shape slope_shape = slope->shape();
    if (slope_per_channel_ && slope_shape.rank() == 1) {
      for (int i = 2; i < x->rank(); ++i) slope_shape.push_back(1);
    }
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(x->shape(), slope_shape));
    if (!(plan.out == x->shape())) {
      return invalid_argument("slope shape ", slope->shape().to_string(),
                              " does not broadcast to the input's ", x->shape().to_string());
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), plan.out));
    if (has_kernel) {
      run_binary_f32(run, run.kernels().binary_f32[kFolioPRelu], plan, *x, *slope, y);
      return Status::ok();
    }
    run_binary_rows(run, plan, row, *x, *slope, y);
    return Status::ok();
  }

 private:
  bool slope_per_channel_;
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  return std::unique_ptr<OpKernel>(std::make_unique<PRelu>(build.version() < 7));
}

Status infer(OpInfer& infer) {
  if (infer.input(0).is_tensor()) infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_prelu(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "PRelu",
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer,
                .make = make,
                .one_type = 0b11,
                .elementwise = true});
}

}  // namespace folio
