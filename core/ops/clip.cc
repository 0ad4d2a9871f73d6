// Clip: y = min(max(x, lo), hi), element by element.
//
// Source: ONNX operator spec; opsets 1 and 6 (attributes min, max; float types), 11 (inputs),
//         12 and 13 (all numbers).
// Shapes: y has x's shape; lo and hi hold one element. Absent: the type's lowest and largest value.
// Math:   NaN stays; lo > hi gives hi, as in the formula.
// Types:  all numbers, before opset 11 floats; float16 and bfloat16 in float.
// Errors: kInvalidArgument when a bound has another element type or not one element.
#include <limits>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

template <typename T>
Compute<T> lowest() {
  if constexpr (std::is_same_v<T, Float16>) return -65504.0f;
  if constexpr (std::is_same_v<T, BFloat16>) return bfloat16_to_float(0xff7f);
  return std::numeric_limits<Compute<T>>::lowest();
}
template <typename T>
Compute<T> largest() {
  if constexpr (std::is_same_v<T, Float16>) return 65504.0f;
  if constexpr (std::is_same_v<T, BFloat16>) return bfloat16_to_float(0x7f7f);
  return std::numeric_limits<Compute<T>>::max();
}

// Of arguments alone: bytes that are written might change what stands elsewhere. y may be x.
template <typename T>
void clip_elements(int64_t n, const T* x, Compute<T> lo, Compute<T> hi, T* y) {
  FOLIO_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<Compute<T>>(x[i]);
    const Compute<T> raised = value < lo ? lo : value;
    y[i] = static_cast<T>(raised > hi ? hi : raised);
  }
}

class Clip final : public OpKernel {
 public:
  bool bounds_are_inputs = true;
  float low = 0;
  float high = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    return dispatch_input(NumericTypes{}, x->dtype(), [&](auto tag) {
      return run_type<typename decltype(tag)::type>(run, *x);
    });
  }

 private:
  template <typename T>
  Status run_type(OpRun& run, const Tensor& x) const {
    using C = Compute<T>;
    C lo = lowest<T>();
    C hi = largest<T>();
    if (bounds_are_inputs) {
      FOLIO_RETURN_IF_ERROR(read_bound<T>(run, 1, &lo));
      FOLIO_RETURN_IF_ERROR(read_bound<T>(run, 2, &hi));
    } else if constexpr (std::is_floating_point_v<C>) {
      lo = static_cast<C>(low);
      hi = static_cast<C>(high);
    } else {
      return wrong_type(0, x.dtype());
    }
    FOLIO_TRY(Tensor * y, run.output(0, x.dtype(), x.shape()));
    const T* from = x.data<T>();
    T* to = y->data_mut<T>();
    run.parallel().for_range(x.count(), kElementGrain, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_same_v<T, float>) {
        run.kernels().clip_f32(end - begin, from + begin, lo, hi, to + begin);
      } else {
        clip_elements(end - begin, from + begin, lo, hi, to + begin);
      }
    });
    return Status::ok();
  }

  template <typename T>
  static Status read_bound(const OpRun& run, int i, Compute<T>* bound) {
    if (!run.has_input(i)) return Status::ok();
    FOLIO_TRY(const Tensor* tensor, run.tensor(i, dtype_of<T>()));
    if (tensor->count() != 1) {
      return invalid_argument("input ", i, " has shape ", tensor->shape().to_string(),
                              ", expected a scalar");
    }
    *bound = static_cast<Compute<T>>(*tensor->data<T>());
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Clip>();
  kernel->bounds_are_inputs = build.version() >= 11;
  if (!kernel->bounds_are_inputs) {
    FOLIO_TRY(kernel->low, build.attrs().get_float("min", std::numeric_limits<float>::lowest()));
    FOLIO_TRY(kernel->high, build.attrs().get_float("max", std::numeric_limits<float>::max()));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  if (infer.input(0).is_tensor()) infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_clip(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "Clip",
                .since = 1,
                .until = 10,
                .infer = infer,
                .make = make,
                .elementwise = true});
  registry.add({.domain = "",
                .type = "Clip",
                .since = 11,
                .max_inputs = 3,
                .infer = infer,
                .make = make,
                .one_type = 0b111,
                .elementwise = true});
}

}  // namespace folio
