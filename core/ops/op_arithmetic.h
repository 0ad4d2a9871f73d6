// Arithmetic on elements: functors over a compute type, with integers that wrap.
//
// Math:    signed overflow wraps as in two's complement (and INT_MIN / -1 is INT_MIN); min and max
//          are NaN when either operand is.
// Errors:  none here: callers refuse integer division by zero before it is computed.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/kernels/kernels.h"

namespace folio {

struct AddFunction {
  static constexpr int kSlot = kFolioAdd;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};

struct SubFunction {
  static constexpr int kSlot = kFolioSub;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a - b;
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};

struct MulFunction {
  static constexpr int kSlot = kFolioMul;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a * b;
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

struct DivFunction {
  static constexpr int kSlot = kFolioDiv;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == T{-1}) return SubFunction()(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};

struct MinFunction {
  static constexpr int kSlot = kFolioMin;
  template <typename T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

struct MaxFunction {
  static constexpr int kSlot = kFolioMax;
  template <typename T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

}  // namespace folio
