// Mod, BitShift, BitwiseAnd, BitwiseOr, BitwiseXor (with broadcasting) and BitwiseNot.
//
// Source: ONNX operator spec; Mod 10, 13; BitShift 11; Bitwise* 18.
// Shapes: the inputs' numpy broadcast.
// Math:   Mod has the sign of the divisor (fmod=0) or of the dividend (fmod=1, needed by floats).
//         A shift by the type's width or more gives 0.
// Types:  integers. BitShift: unsigned integers. Mod: integers; with fmod all numbers, float16 and
//         bfloat16 in float.
// Errors: kInvalidArgument for integer modulo zero, floats without fmod, signed shifts.
#include <cmath>

#include "core/ops/op_arithmetic.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct FloorMod {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return 0;  // INT_MIN % -1 traps
    }
    const T rest = static_cast<T>(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  }
};

struct TruncatedMod {
  // std::fmod goes bit by bit. The quotient of two floats that is no integer is at least 2^-24 away
  // from one, so up to 2^26 a double has the right integer, and its product with b, exactly.
  static float rest_of_floats(float a, float b) {
    const double quotient = static_cast<double>(a) / b;
    if (!(std::fabs(quotient) < 0x1p26) || std::isinf(b)) return std::fmod(a, b);
    const double whole = static_cast<int32_t>(quotient);
    return std::copysign(static_cast<float>(a - whole * b), a);
  }

  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, float>) {
      return rest_of_floats(a, b);
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (b == T{-1}) return 0;
      }
      return static_cast<T>(a % b);
    }
  }
};

struct ShiftLeft {
  template <typename T>
  T operator()(T a, T b) const {
    return b >= sizeof(T) * 8 ? T{0} : static_cast<T>(static_cast<uint64_t>(a) << b);
  }
};
struct ShiftRight {
  template <typename T>
  T operator()(T a, T b) const {
    return b >= sizeof(T) * 8 ? T{0} : static_cast<T>(a >> b);
  }
};
struct BitAnd {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

// Null when the types do not include `dtype`.
using RowOf = BinaryRow (*)(DType dtype);

template <typename F, typename Types>
BinaryRow row_of(DType dtype) {
  BinaryRow row = nullptr;
  dispatch(Types{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    row = binary_row<T, T, T, F>;
  });
  return row;
}

bool has_integer_zero(const Tensor& tensor) {
  bool found = false;
  dispatch(IntegerTypes{}, tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T value : tensor.span<T>()) found |= value == 0;
  });
  return found;
}

class IntegerKernel final : public OpKernel {
 public:
  IntegerKernel(RowOf row_of_type, bool divides) : row_of_(row_of_type), divides_(divides) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    const BinaryRow row = row_of_(a->dtype());
    if (!row) return wrong_type(0, a->dtype());
    FOLIO_TRY(const Tensor* b, run.tensor(1, a->dtype()));
    if (divides_ && has_integer_zero(*b)) {
      return invalid_argument("modulo zero in ", dtype_name(b->dtype()));
    }
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(a->shape(), b->shape()));
    FOLIO_TRY(Tensor * y, run.output(0, a->dtype(), plan.out));
    run_binary_rows(run, plan, row, *a, *b, y);
    return Status::ok();
  }

 private:
  RowOf row_of_;
  bool divides_;
};

std::unique_ptr<OpKernel> kernel(RowOf row_of_type, bool divides = false) {
  return std::make_unique<IntegerKernel>(row_of_type, divides);
}

Result<std::unique_ptr<OpKernel>> make_mod(OpBuild& build) {
  FOLIO_TRY(const int64_t fmod, build.attrs().get_int("fmod", 0));
  if (fmod != 0) return kernel(row_of<TruncatedMod, NumericTypes>, true);
  return kernel(row_of<FloorMod, IntegerTypes>, true);
}

Result<std::unique_ptr<OpKernel>> make_shift(OpBuild& build) {
  FOLIO_TRY(const std::string direction, build.attrs().get_string("direction"));
  if (direction == "LEFT") return kernel(row_of<ShiftLeft, UnsignedTypes>);
  if (direction == "RIGHT") return kernel(row_of<ShiftRight, UnsignedTypes>);
  return invalid_graph("attribute 'direction' is '", direction, "', expected LEFT or RIGHT");
}

template <typename F>
Result<std::unique_ptr<OpKernel>> make_bitwise(OpBuild&) {
  return kernel(row_of<F, IntegerTypes>);
}

Status infer_binary(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, infer_common_dtype(infer));
  FOLIO_TRY(std::optional<Dims> dims, infer_binary_dims(infer));
  if (dtype != DType::kUndefined) infer.set_tensor(0, dtype, std::move(dims));
  return Status::ok();
}

// ---------------------------------------------------------------- BitwiseNot

class BitwiseNotKernel final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(IntegerTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    const auto bytes = static_cast<int64_t>(x->bytes());
    run.parallel().for_range(bytes, kElementGrain, [&](int64_t begin, int64_t end) {
      const uint8_t* from = x->raw();
      uint8_t* to = y->raw_mut();
      FOLIO_IVDEP
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<uint8_t>(~from[i]);
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_not(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<BitwiseNotKernel>());
}

Status infer_not(OpInfer& infer) {
  if (infer.input(0).is_tensor()) infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_elementwise_integer(OpRegistry& registry) {
  const auto add = [&](std::string_view type, int since, MakeFn make) {
    registry.add({.domain = "",
                  .type = type,
                  .since = since,
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .infer = infer_binary,
                  .make = make});
  };
  add("Mod", 10, make_mod);
  add("BitShift", 11, make_shift);
  add("BitwiseAnd", 18, make_bitwise<BitAnd>);
  add("BitwiseOr", 18, make_bitwise<BitOr>);
  add("BitwiseXor", 18, make_bitwise<BitXor>);
  registry.add(
      {.domain = "", .type = "BitwiseNot", .since = 18, .infer = infer_not, .make = make_not});
}

}  // namespace folio
