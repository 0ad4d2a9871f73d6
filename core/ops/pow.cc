// Pow: y = base ^ exponent, with broadcasting.
//
// Source: ONNX operator spec, opsets 1 (attributes broadcast, axis), 7, 12 (two element types),
// 13, 15. Shapes: the inputs' numpy broadcast; the result has the base's element type. Math:
// floats: C's pow in the base's compute type. Integer bases with integer exponents:
//         repeated products that wrap; a negative exponent is the truncated reciprocal (0 for
//         |base| > 1; base 0 gives 0). Integer bases with float exponents: pow in double, clamped.
// Types:  base and exponent: all numbers, each of its own type; float16 and bfloat16 in float.
// Errors: kInvalidArgument for element types that are no numbers.
#include <cmath>

#include "core/ops/op_arithmetic.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

template <typename T>
T integer_power(T base, int64_t exponent) {
  if (exponent < 0) {
    if (base == T{1}) return base;
    if constexpr (std::is_signed_v<T>) {
      if (base == T{-1}) return exponent % 2 == 0 ? T{1} : base;
    }
    return 0;
  }
  T result = 1;
  const MulFunction multiply;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

struct PowFunction {
  template <typename T, typename E>
  T operator()(T base, E exponent) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(base, static_cast<T>(exponent));
    } else if constexpr (std::is_floating_point_v<E>) {
      return saturating_cast<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    } else {
      return integer_power<T>(base, exponent);
    }
  }
};

// The type in which exponents of base type T are read.
enum class ExponentKind { kFloat, kDouble, kInt64 };

ExponentKind exponent_kind(DType base, DType exponent) {
  if (base == DType::kDouble) return ExponentKind::kDouble;
  if (dtype_is_float(base)) return ExponentKind::kFloat;
  return dtype_is_float(exponent) ? ExponentKind::kDouble : ExponentKind::kInt64;
}

template <typename To>
To convert_exponent(auto value) {
  using From = decltype(value);
  if constexpr (std::is_same_v<From, uint64_t> && std::is_same_v<To, int64_t>) {
    // Beyond int64, parity is all that matters to a wrapped product of any base but a few.
    return static_cast<int64_t>(value >> 63 ? (value & 1) | 0x7ffffffffffffffe : value);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return saturating_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename To>
void convert_exponents(const Tensor& from, To* to) {
  dispatch(NumericTypes{}, from.dtype(), [&](auto tag) {
    using From = typename decltype(tag)::type;
    const From* data = from.data<From>();
    for (int64_t i = 0, end = from.count(); i < end; ++i) {
      to[i] = convert_exponent<To>(static_cast<Compute<From>>(data[i]));
    }
  });
}

template <typename E>
BinaryRow row_for(DType base) {
  BinaryRow row = nullptr;
  dispatch(NumericTypes{}, base, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool kUsed = std::is_same_v<T, double> ? std::is_same_v<E, double>
                           : std::is_integral_v<T>   ? !std::is_same_v<E, float>
                                                     : std::is_same_v<E, float>;
    if constexpr (kUsed) row = binary_row<T, E, T, PowFunction>;
  });
  return row;
}

// Squares, the normalisations' favourite: one product is as exact as pow. A floating point power of
// an integer does not wrap, and halves are rounded once.
template <typename E>
bool squares_exactly(DType base) {
  return std::is_same_v<E, int64_t> || base == DType::kDouble;
}
BinaryRow square_row(DType dtype) {
  BinaryRow row = nullptr;
  dispatch(NumericTypes{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    row = [](int64_t n, const void* a, int64_t, const void*, int64_t, void* y) {
      binary_row<T, T, T, MulFunction>(n, a, 1, a, 1, y);
    };
  });
  return row;
}

class PowKernel final : public OpKernel {
 public:
  explicit PowKernel(const LegacyBroadcast& legacy) : legacy_(legacy) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    if (!contains(NumericTypes{}, a->dtype())) return wrong_type(0, a->dtype());
    FOLIO_TRY(const Tensor* b, run.tensor(1));
    if (!contains(NumericTypes{}, b->dtype())) return wrong_type(1, b->dtype());
    FOLIO_TRY(const Shape b_shape, legacy_.second(a->shape(), b->shape()));
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(a->shape(), b_shape));
    FOLIO_TRY(Tensor * y, run.output(0, a->dtype(), plan.out));
    switch (exponent_kind(a->dtype(), b->dtype())) {
      case ExponentKind::kFloat:
        return run_with<float>(run, plan, *a, *b, y);
      case ExponentKind::kDouble:
        return run_with<double>(run, plan, *a, *b, y);
      case ExponentKind::kInt64:
        return run_with<int64_t>(run, plan, *a, *b, y);
    }
    return Status::ok();
  }

 private:
  template <typename E>
  static Status run_with(OpRun& run, const BroadcastPlan& plan, const Tensor& a, const Tensor& b,
                         Tensor* y) {
    Tensor exponents = b;
    if (b.dtype() != dtype_of<E>()) {
      FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(b.count()) * sizeof(E)));
      convert_exponents<E>(b, reinterpret_cast<E*>(memory));
      exponents = Tensor(dtype_of<E>(), b.shape(), memory, {});
    }
    const bool is_square = b.count() == 1 && *exponents.data<E>() == E{2};
    if (a.dtype() == DType::kFloat) {
      run_f32(run, plan, is_square, a, exponents, y);
    } else if (is_square && squares_exactly<E>(a.dtype())) {
      FOLIO_TRY(const BroadcastPlan squares, plan_broadcast(Shape{a.count()}, Shape{a.count()}));
      run_binary_rows(run, squares, square_row(a.dtype()), a, a, y);
    } else {
      run_binary_rows(run, plan, row_for<E>(a.dtype()), a, exponents, y);
    }
    return Status::ok();
  }

  static void run_f32(OpRun& run, const BroadcastPlan& plan, bool is_square, const Tensor& a,
                      const Tensor& exponents, Tensor* y) {
    const float* a_data = a.data<float>();
    const float* b_data = exponents.data<float>();
    float* y_data = y->data_mut<float>();
    const FolioKernels& kernels = run.kernels();
    for_broadcast_rows(run.parallel(), plan,
                       [&](int64_t a_at, int64_t b_at, int64_t y_at, int64_t count) {
                         if (is_square) {
                           kernels.binary_f32[kFolioMul](count, a_data + a_at, plan.a_step,
                                                         a_data + a_at, plan.a_step, y_data + y_at);
                         } else {
                           kernels.binary_f32[kFolioPow](count, a_data + a_at, plan.a_step,
                                                         b_data + b_at, plan.b_step, y_data + y_at);
                         }
                       });
  }

  LegacyBroadcast legacy_;
};

Result<std::unique_ptr<OpKernel>> make_pow(OpBuild& build) {
  FOLIO_TRY(const LegacyBroadcast legacy, LegacyBroadcast::parse(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<PowKernel>(legacy));
}

Status infer_pow(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_binary_dims(infer));
  if (infer.input(0).is_tensor()) infer.set_tensor(0, infer.dtype(0), dims);
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_pow(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "Pow",
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_pow,
                .make = make_pow,
                .elementwise = true});
}

}  // namespace folio
