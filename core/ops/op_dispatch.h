// From a run's element type to a template's: dispatch(FloatTypes{}, dtype, [&](auto tag) {...}).
//
// Flow:    an operator lists the types that its specification allows; the body is instantiated
//          once for each, as `typename decltype(tag)::type`.
// Errors:  dispatch() is false when the type is not in the list; wrong_type() words it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "core/base/dtype.h"
#include "core/base/status.h"
#include "core/ops/op_half.h"

namespace folio {

template <typename T>
struct TypeTag {
  using type = T;
};

template <typename... Ts>
struct TypeList {};

using FloatTypes = TypeList<float, double, Float16, BFloat16>;
using SignedTypes = TypeList<int8_t, int16_t, int32_t, int64_t>;
using UnsignedTypes = TypeList<uint8_t, uint16_t, uint32_t, uint64_t>;
using IntegerTypes =
    TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using NumericTypes = TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t,
                              uint8_t, uint16_t, uint32_t, uint64_t>;
// Those that a CPU computes with.
using PlainNumericTypes = TypeList<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t,
                                   uint16_t, uint32_t, uint64_t>;
using SignedNumericTypes =
    TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t>;

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat;
  if constexpr (std::is_same_v<T, double>) return DType::kDouble;
  if constexpr (std::is_same_v<T, Float16>) return DType::kFloat16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::kBfloat16;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUint8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kUint16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kUint32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kUint64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, std::string>) return DType::kString;
  return DType::kUndefined;
}

// Before a loop over elements, each of which depends on those at its own place alone: an output in
// place of an input is no dependency. g++ does not see that; clang asks when it runs.
#if defined(__clang__)
#define FOLIO_IVDEP
#else
#define FOLIO_IVDEP _Pragma("GCC ivdep")
#endif

// Calls body(TypeTag<T>{}) for the T of the list that `dtype` names; false when there is none.
template <typename... Ts, typename Body>
bool dispatch(TypeList<Ts...>, DType dtype, Body&& body) {
  return ((dtype == dtype_of<Ts>() ? (body(TypeTag<Ts>{}), true) : false) || ...);
}

template <typename... Ts>
constexpr bool contains(TypeList<Ts...>, DType dtype) {
  return ((dtype == dtype_of<Ts>()) || ...);
}

inline Status wrong_type(int input, DType dtype) {
  return invalid_argument("input ", input, " is ", dtype_name(dtype),
                          ", which this operator does not take");
}

// The same with a body that gives a Status; wrong_type(0) when there is none. An error must not be
// made before: a compiler takes all that follows for as seldom as errors are.
template <typename... Ts, typename Body>
Status dispatch_input(TypeList<Ts...> types, DType dtype, Body&& body) {
  Status status;
  const bool known = dispatch(types, dtype, [&](auto tag) { status = body(tag); });
  return known ? std::move(status) : wrong_type(0, dtype);
}

// What a T is computed in: float for the 16-bit formats, else T.
template <typename T>
using Compute =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

// Float to integer as a clamp (NaN is 0): the plain cast is undefined out of range.
template <typename T, typename F>
T saturating_cast(F value) {
  static_assert(std::is_integral_v<T> && std::is_floating_point_v<F>);
  // Both bounds are powers of two (or zero), so exact in F; the upper one is exclusive.
  constexpr F kLow = static_cast<F>(std::numeric_limits<T>::min());
  constexpr F kHigh = static_cast<F>(std::numeric_limits<T>::max() / 2 + 1) * 2;
  // Without branches, so that loops of it are vectorized.
  const bool is_inside = (value >= kLow) & (value < kHigh);
  T number = static_cast<T>(is_inside ? value : F{0});
  number = value < kLow ? std::numeric_limits<T>::min() : number;
  return value >= kHigh ? std::numeric_limits<T>::max() : number;
}

}  // namespace folio
