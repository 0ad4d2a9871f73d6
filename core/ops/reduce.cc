// ReduceSum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare.
//
// Source: ONNX operator spec; opsets 1, 11, 12, 13, 18, 20. Axes are an attribute before 13
//         (ReduceSum) or 18 (the others), an optional input since.
// Shapes: reduced axes become 1 (keepdims, the default) or go. No axes: all of them, unless
//         noop_with_empty_axes: then each element is reduced alone.
// Math:   floats add up in their compute type, integers in 64 bits, wrapping. An empty set gives
// the
//         neutral element (-inf and +inf, or the type's bounds, for Max and Min; NaN for Mean).
//         LogSumExp subtracts the maximum first.
// Types:  float, double, (u)int32, (u)int64; float16 and bfloat16 in float. ReduceMax, ReduceMin:
//         all numbers, bool.
// Errors: kInvalidArgument for axes out of range, element types, an integer mean of nothing.
#include <cmath>
#include <limits>

#include "core/ops/op_reduce.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum class ReduceKind : uint8_t {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kSumSquare,
};

struct ReduceRow {
  std::string_view type;
  ReduceKind kind;
  int axes_input_since;
};

constexpr ReduceRow kRows[] = {
    {"ReduceSum", ReduceKind::kSum, 13},
    {"ReduceMean", ReduceKind::kMean, 18},
    {"ReduceMax", ReduceKind::kMax, 18},
    {"ReduceMin", ReduceKind::kMin, 18},
    {"ReduceProd", ReduceKind::kProd, 18},
    {"ReduceL1", ReduceKind::kL1, 18},
    {"ReduceL2", ReduceKind::kL2, 18},
    {"ReduceLogSum", ReduceKind::kLogSum, 18},
    {"ReduceLogSumExp", ReduceKind::kLogSumExp, 18},
    {"ReduceSumSquare", ReduceKind::kSumSquare, 18},
};

// What elements of type T add up in.
template <typename T>
using Accumulator = std::conditional_t<!std::is_integral_v<T>, Compute<T>,
                                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// ---------------------------------------------------------------- steps

template <typename A>
A wrapping_add(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) return a + b;
  return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename A>
A wrapping_mul(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) return a * b;
  return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// One element into an accumulator; `shift` only matters to LogSumExp.
template <ReduceKind kKind, typename A>
A combine(A acc, A x, [[maybe_unused]] A shift) {
  if constexpr (kKind == ReduceKind::kMax) {
    return x > acc || x != x ? x : acc;
  } else if constexpr (kKind == ReduceKind::kMin) {
    return x < acc || x != x ? x : acc;
  } else if constexpr (kKind == ReduceKind::kProd) {
    return wrapping_mul(acc, x);
  } else if constexpr (kKind == ReduceKind::kL1) {
    return wrapping_add(acc, x < A{0} ? wrapping_mul(x, static_cast<A>(-1)) : x);
  } else if constexpr (kKind == ReduceKind::kL2 || kKind == ReduceKind::kSumSquare) {
    return wrapping_add(acc, wrapping_mul(x, x));
  } else if constexpr (kKind == ReduceKind::kLogSumExp) {
    return acc + static_cast<A>(std::exp(static_cast<double>(x) - static_cast<double>(shift)));
  } else {
    return wrapping_add(acc, x);
  }
}

// Step of reduce_groups. The extremes start at their own neutral element, given by the caller.
template <ReduceKind kKind, typename T, typename A>
struct Step {
  const FolioKernels& kernels;
  A start;

  A first() const { return start; }

  A row(A acc, const T* x, int64_t n, A shift) const {
    if constexpr (std::is_same_v<T, float>) {
      constexpr int64_t kFew = 8;  // not worth a call
      switch (n < kFew ? ReduceKind::kProd : kKind) {
        case ReduceKind::kSum:
        case ReduceKind::kMean:
        case ReduceKind::kLogSum:
          return acc + kernels.sum_f32(n, x);
        case ReduceKind::kL2:
        case ReduceKind::kSumSquare:
          return acc + kernels.sum_squares_f32(n, x);
        case ReduceKind::kMax:
          return combine<kKind>(acc, kernels.max_f32(n, x), shift);
        case ReduceKind::kMin:
          return combine<kKind>(acc, kernels.min_f32(n, x), shift);
        default:
          break;
      }
    }
    for (int64_t i = 0; i < n; ++i) acc = combine<kKind>(acc, static_cast<A>(x[i]), shift);
    return acc;
  }

  void column(A* acc, const T* x, int64_t n, const A* shifts) const {
    if constexpr (std::is_same_v<T, float>) {
      constexpr bool kAdds =
          kKind == ReduceKind::kSum || kKind == ReduceKind::kMean || kKind == ReduceKind::kLogSum;
      if (kAdds) return kernels.binary_f32[kFolioAdd](n, acc, 1, x, 1, acc);
    }
    for (int64_t i = 0; i < n; ++i) {
      acc[i] = combine<kKind>(acc[i], static_cast<A>(x[i]), shifts ? shifts[i] : A{});
    }
  }
};

template <ReduceKind kKind, typename T, typename A>
A start_value() {
  if constexpr (kKind == ReduceKind::kProd) return A{1};
  if constexpr (kKind == ReduceKind::kMax || kKind == ReduceKind::kMin) {
    constexpr bool kIsMax = kKind == ReduceKind::kMax;
    if constexpr (std::is_floating_point_v<A>) {
      return kIsMax ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::infinity();
    } else {
      return static_cast<A>(kIsMax ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
    }
  }
  return A{0};
}

// ---------------------------------------------------------------- results

template <typename T, typename A>
T narrow(A value) {
  return static_cast<T>(value);  // integers wrap
}

// A function of the accumulated value that is not integer arithmetic.
template <typename T, typename A, typename F>
T through_double(A value, F function) {
  const auto result = function(static_cast<double>(value));
  if constexpr (std::is_integral_v<T>) {
    return saturating_cast<T>(result);
  } else {
    return static_cast<T>(static_cast<Compute<T>>(result));
  }
}

template <ReduceKind kKind, typename T, typename A>
T finish(A acc, int64_t count, A shift) {
  if constexpr (kKind == ReduceKind::kMean) {
    return narrow<T>(static_cast<A>(acc / static_cast<A>(count)));
  } else if constexpr (kKind == ReduceKind::kL2) {
    return through_double<T>(acc, [](double v) { return std::sqrt(v); });
  } else if constexpr (kKind == ReduceKind::kLogSum) {
    return through_double<T>(acc, [](double v) { return std::log(v); });
  } else if constexpr (kKind == ReduceKind::kLogSumExp) {
    const auto add = static_cast<double>(shift);
    return through_double<T>(acc, [add](double v) { return std::log(v) + add; });
  } else {
    return narrow<T>(acc);
  }
}

template <ReduceKind kKind, typename T>
Status reduce(OpRun& run, const ReducePlan& plan, const T* x, T* y) {
  // LogSumExp of integers is a sum of fractions.
  using Sum = Accumulator<T>;
  using A =
      std::conditional_t<kKind == ReduceKind::kLogSumExp && std::is_integral_v<T>, double, Sum>;
  const int64_t outputs = plan.out.count();
  if (outputs == 0) return Status::ok();
  if (kKind == ReduceKind::kMean && std::is_integral_v<T> && plan.reduced_count == 0) {
    return invalid_argument("the mean of no integers is not defined");
  }
  A* acc = nullptr;
  A* shifts = nullptr;
  if constexpr (std::is_same_v<A, T>) {
    acc = y;
  } else {
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(outputs) * sizeof(A)));
    acc = reinterpret_cast<A*>(memory);
  }
  if constexpr (kKind == ReduceKind::kLogSumExp) {
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(outputs) * sizeof(A)));
    shifts = reinterpret_cast<A*>(memory);
    const Step<ReduceKind::kMax, T, A> largest{run.kernels(), -std::numeric_limits<A>::infinity()};
    reduce_groups<T, A>(run.parallel(), plan, largest, x, static_cast<const A*>(nullptr), shifts);
    // exp(inf - inf) is no number; without a shift infinities take care of themselves.
    for (int64_t o = 0; o < outputs; ++o) shifts[o] = std::isfinite(shifts[o]) ? shifts[o] : A{0};
  }
  const Step<kKind, T, A> step{run.kernels(), start_value<kKind, T, A>()};
  reduce_groups<T, A>(run.parallel(), plan, step, x, static_cast<const A*>(shifts), acc);
  for (int64_t o = 0; o < outputs; ++o) {
    y[o] = finish<kKind, T>(acc[o], plan.reduced_count, shifts ? shifts[o] : A{});
  }
  return Status::ok();
}

// ---------------------------------------------------------------- types

using SumTypes = TypeList<float, double, Float16, BFloat16, int32_t, int64_t, uint32_t, uint64_t>;

template <ReduceKind kKind, typename Types>
Status reduce_types(OpRun& run, const ReducePlan& plan, const Tensor& x, Tensor* y) {
  Status status = wrong_type(0, x.dtype());
  dispatch(Types{}, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = reduce<kKind, T>(run, plan, x.data<T>(), y->data_mut<T>());
  });
  return status;
}

template <ReduceKind kKind>
Status reduce_extreme(OpRun& run, const ReducePlan& plan, const Tensor& x, Tensor* y) {
  if (x.dtype() != DType::kBool) return reduce_types<kKind, NumericTypes>(run, plan, x, y);
  // Bools are bytes; an empty set's 255 is true.
  FOLIO_RETURN_IF_ERROR((reduce<kKind, uint8_t>(run, plan, x.raw(), y->raw_mut())));
  for (int64_t i = 0; i < y->count(); ++i) y->raw_mut()[i] = y->raw()[i] != 0;
  return Status::ok();
}

Status reduce_kind(ReduceKind kind, OpRun& run, const ReducePlan& plan, const Tensor& x,
                   Tensor* y) {
  switch (kind) {
    case ReduceKind::kSum:
      return reduce_types<ReduceKind::kSum, SumTypes>(run, plan, x, y);
    case ReduceKind::kMean:
      return reduce_types<ReduceKind::kMean, SumTypes>(run, plan, x, y);
    case ReduceKind::kMax:
      return reduce_extreme<ReduceKind::kMax>(run, plan, x, y);
    case ReduceKind::kMin:
      return reduce_extreme<ReduceKind::kMin>(run, plan, x, y);
    case ReduceKind::kProd:
      return reduce_types<ReduceKind::kProd, SumTypes>(run, plan, x, y);
    case ReduceKind::kL1:
      return reduce_types<ReduceKind::kL1, SumTypes>(run, plan, x, y);
    case ReduceKind::kL2:
      return reduce_types<ReduceKind::kL2, SumTypes>(run, plan, x, y);
    case ReduceKind::kLogSum:
      return reduce_types<ReduceKind::kLogSum, SumTypes>(run, plan, x, y);
    case ReduceKind::kLogSumExp:
      return reduce_types<ReduceKind::kLogSumExp, SumTypes>(run, plan, x, y);
    case ReduceKind::kSumSquare:
      return reduce_types<ReduceKind::kSumSquare, SumTypes>(run, plan, x, y);
  }
  return Status::ok();
}

// ---------------------------------------------------------------- the operator

// Attributes, and how axes become a mask.
struct ReduceOptions {
  ReduceKind kind = ReduceKind::kSum;
  bool axes_are_input = false;
  bool keep_dims = true;
  bool empty_is_noop = false;
  std::vector<int64_t> axes;  // the attribute, or a constant input
  bool axes_known = false;

  static Result<ReduceOptions> parse(const Node& node, const Attributes& attributes) {
    ReduceOptions options;
    for (const ReduceRow& row : kRows) {
      if (row.type != node.op_type) continue;
      options.kind = row.kind;
      options.axes_are_input = node.version >= row.axes_input_since;
    }
    FOLIO_TRY(const int64_t keep, attributes.get_int("keepdims", 1));
    options.keep_dims = keep != 0;
    if (options.axes_are_input) {
      FOLIO_TRY(const int64_t noop, attributes.get_int("noop_with_empty_axes", 0));
      options.empty_is_noop = noop != 0;
    } else {
      FOLIO_TRY(options.axes, attributes.get_ints("axes"));
      options.axes_known = true;
    }
    return options;
  }

  Status mask(Span<const int64_t> given, int rank, bool* reduce) const {
    std::fill_n(reduce, kMaxRank, given.empty() && !empty_is_noop);
    for (const int64_t axis : given) {
      FOLIO_TRY(const int at, normalize_axis(axis, rank));
      reduce[at] = true;
    }
    return Status::ok();
  }
};

class Reduce final : public OpKernel {
 public:
  explicit Reduce(ReduceOptions options) : options_(std::move(options)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    bool reduce[kMaxRank];
    if (options_.axes_known || !run.has_input(1)) {
      FOLIO_RETURN_IF_ERROR(options_.mask(options_.axes, x->rank(), reduce));
    } else {
      FOLIO_TRY(const std::vector<int64_t> axes, run.ints(1));
      FOLIO_RETURN_IF_ERROR(options_.mask(axes, x->rank(), reduce));
    }
    const ReducePlan plan = plan_reduce(x->shape(), reduce, options_.keep_dims);
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), plan.out));
    return reduce_kind(options_.kind, run, plan, *x, y);
  }

 private:
  ReduceOptions options_;
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(ReduceOptions options, ReduceOptions::parse(build.node(), build.attrs()));
  if (options.axes_are_input) {
    auto axes = build.ints(1);
    options.axes_known = axes.has_value();
    if (axes) options.axes = std::move(*axes);
  }
  return std::unique_ptr<OpKernel>(std::make_unique<Reduce>(std::move(options)));
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(ReduceOptions options, ReduceOptions::parse(infer.node(), infer.attrs()));
  if (!infer.input(0).is_tensor()) return Status::ok();
  infer.set_tensor(0, infer.dtype(0));
  const Dims* dims = infer.dims_of(0);
  if (!dims || dims->size() > static_cast<size_t>(kMaxRank)) return Status::ok();
  if (options.axes_are_input && infer.has_input(1)) {
    const auto axes = infer.ints(1);
    if (!axes) {
      if (options.keep_dims) {
        infer.set_tensor(0, infer.dtype(0), Dims(dims->size()));
      }
      return Status::ok();
    }
    options.axes = *axes;
  }
  bool reduce[kMaxRank];
  FOLIO_RETURN_IF_ERROR(options.mask(options.axes, static_cast<int>(dims->size()), reduce));
  Dims out;
  for (size_t i = 0; i < dims->size(); ++i) {
    if (!reduce[i]) {
      out.push_back((*dims)[i]);
    } else if (options.keep_dims) {
      out.push_back(Dim::of(1));
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_reduce(OpRegistry& registry) {
  for (const ReduceRow& row : kRows) {
    registry.add({.domain = "",
                  .type = row.type,
                  .since = 1,
                  .until = row.axes_input_since - 1,
                  .infer = infer,
                  .make = make});
    registry.add({.domain = "",
                  .type = row.type,
                  .since = row.axes_input_since,
                  .max_inputs = 2,
                  .infer = infer,
                  .make = make});
  }
}

}  // namespace folio
