// What the scatter operators share: how an update meets what is there already.
//
// Math:    none replaces; add, mul, max and min combine, in float for the 16-bit formats, with
//          integers that wrap.
// Errors:  kInvalidGraph for a reduction the version does not have; kInvalidArgument for element
//          types that cannot be combined.
#pragma once

#include "core/ops/op_arithmetic.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"

namespace folio {

enum class ScatterReduction : uint8_t { kReplace, kAdd, kMul, kMax, kMin };

inline Result<ScatterReduction> scatter_reduction(const Attributes& attrs, int version) {
  if (version < 16) return ScatterReduction::kReplace;
  FOLIO_TRY(const std::string name, attrs.get_string("reduction", "none"));
  if (name == "none") return ScatterReduction::kReplace;
  if (name == "add") return ScatterReduction::kAdd;
  if (name == "mul") return ScatterReduction::kMul;
  if (name == "max" && version >= 18) return ScatterReduction::kMax;
  if (name == "min" && version >= 18) return ScatterReduction::kMin;
  return invalid_graph("reduction is '", name, "', expected none, add, mul",
                       version >= 18 ? ", max or min" : "");
}

template <typename T>
struct ReplaceRun {
  using Element = T;
  void operator()(T* to, const T* from, int64_t n) const { move_run(to, from, n); }
};

template <typename T, typename F>
struct CombineRun {
  using Element = T;
  void operator()(T* to, const T* from, int64_t n) const {
    using C = Compute<T>;
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<T>(F()(static_cast<C>(to[i]), static_cast<C>(from[i])));
    }
  }
};

// Calls body(update) -> Status, where update(to, from, n) brings n elements in and
// decltype(update)::Element is their type.
template <typename Body>
Status dispatch_scatter(ScatterReduction reduction, DType dtype, Body&& body) {
  if (reduction == ScatterReduction::kReplace) {
    return dispatch_move(
        dtype, [&](auto tag) { return body(ReplaceRun<typename decltype(tag)::type>()); });
  }
  return dispatch_input(NumericTypes{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (reduction) {
      case ScatterReduction::kAdd:
        return body(CombineRun<T, AddFunction>());
      case ScatterReduction::kMul:
        return body(CombineRun<T, MulFunction>());
      case ScatterReduction::kMax:
        return body(CombineRun<T, MaxFunction>());
      default:
        return body(CombineRun<T, MinFunction>());
    }
  });
}

}  // namespace folio
