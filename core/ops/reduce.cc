// ReduceSum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare.
//
// Source: ONNX operator spec; opsets 1, 11, 12, 13, 18, 20. Axes are an attribute before 13
//         (ReduceSum) or 18 (the others), an optional input since.
// Shapes: reduced axes become 1 (keepdims, the default) or go. No axes: all of them, unless
//         noop_with_empty_axes: then each element is reduced alone.
// Math:   floats add up in their compute type, integers in 64 bits, wrapping. An empty set gives
//         the neutral element (-inf and +inf, or the type's bounds, for Max and Min; NaN for Mean).
//         LogSumExp subtracts the maximum first.
// Method: three passes: elements are joined (op_joins.h) in float, double, int32 or int64, whatever
//         their type; what becomes of the sums is one map over the results.
// Types:  float, double, (u)int32, (u)int64; float16 and bfloat16 in float. ReduceMax, ReduceMin:
//         all numbers, bool.
// Errors: kInvalidArgument for axes out of range, element types, an integer mean of nothing.
#include <cmath>
#include <limits>

#include "core/ops/op_joins.h"
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

FolioReduce join_of(ReduceKind kind, bool is_unsigned) {
  switch (kind) {
    case ReduceKind::kMax:
      return kFolioReduceMax;
    case ReduceKind::kMin:
      return kFolioReduceMin;
    case ReduceKind::kProd:
      return kFolioReduceProd;
    case ReduceKind::kL1:
      return is_unsigned ? kFolioReduceSum : kFolioReduceMagnitudes;
    case ReduceKind::kL2:
    case ReduceKind::kSumSquare:
      return kFolioReduceSquares;
    default:
      return kFolioReduceSum;
  }
}

// ---------------------------------------------------------------- elements

// Elements of From as T; those of 64 bits without a sign keep their order as signed ones.
constexpr uint64_t kTopBit = uint64_t{1} << 63;
template <typename From, typename T, bool kKeepsOrder = false>
void stage(const FolioKernels& kernels, const void* from, int64_t at, int64_t n, void* to) {
  const From* x = static_cast<const From*>(from) + at;
  if constexpr (std::is_same_v<From, Float16>) {
    kernels.f16_to_f32(n, x, static_cast<float*>(to));
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    kernels.bf16_to_f32(n, x, static_cast<float*>(to));
  } else {
    T* y = static_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (kKeepsOrder) {
        y[i] = static_cast<T>(x[i] ^ kTopBit);
      } else {
        y[i] = static_cast<T>(x[i]);
      }
    }
  }
}

// ---------------------------------------------------------------- results

// In the type of the sums; `count` elements went into each.
void finish_floats(const FolioKernels& kernels, ReduceKind kind, float count, const float* shifts,
                   int64_t n, float* y) {
  switch (kind) {
    case ReduceKind::kMean:
      return kernels.binary_f32[kFolioDiv](n, y, 1, &count, 0, y);
    case ReduceKind::kL2:
      return kernels.unary_f32[kFolioSqrt](n, y, y);
    case ReduceKind::kLogSum:
      return kernels.unary_f32[kFolioLog](n, y, y);
    case ReduceKind::kLogSumExp:
      kernels.unary_f32[kFolioLog](n, y, y);
      return kernels.binary_f32[kFolioAdd](n, y, 1, shifts, 1, y);
    default:
      return;
  }
}

// As through the C library.
double finish_double(ReduceKind kind, double value) {
  if (kind == ReduceKind::kL2) return std::sqrt(value);
  const bool is_log = kind == ReduceKind::kLogSum || kind == ReduceKind::kLogSumExp;
  return is_log ? std::log(value) : value;
}

// What `kind` makes of a sum of integers; fractions are cut off.
template <typename T>
T finish_integer(ReduceKind kind, int64_t sum, int64_t count) {
  constexpr bool kUnsigned = std::is_unsigned_v<T>;
  if (kind == ReduceKind::kMean) {
    if constexpr (kUnsigned) {
      return static_cast<T>(static_cast<uint64_t>(sum) / static_cast<uint64_t>(count));
    }
    return static_cast<T>(sum / count);
  }
  if (kind == ReduceKind::kL2 || kind == ReduceKind::kLogSum) {
    const double wide =
        kUnsigned ? static_cast<double>(static_cast<uint64_t>(sum)) : static_cast<double>(sum);
    return saturating_cast<T>(finish_double(kind, wide));
  }
  return static_cast<T>(sum);  // wraps
}

// ---------------------------------------------------------------- by type

// One reduction: what is known of it.
struct Reduction {
  OpRun& run;
  ReduceKind kind;
  const ReducePlan& plan;
  const Tensor& x;
  Tensor* y;

  int64_t outputs() const { return plan.out.count(); }
  template <typename A>
  Result<A*> scratch() const {
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(outputs()) * sizeof(A)));
    return reinterpret_cast<A*>(memory);
  }
  // body(begin, end) over the outputs.
  template <typename Body>
  void for_outputs(Body&& body) const {
    run.parallel().for_range(outputs(), kElementGrain, body);
  }

  template <typename T, typename A>
  void join(const Joins<T, A>& joins, StageFn stage, const A* shifts, A* acc) const {
    const ReduceJob<T, A> job{run.kernels(), plan, joins, x.raw(), stage, shifts};
    reduce_elements(run.parallel(), job, acc);
  }
};

// LogSumExp subtracts these. exp(inf - inf) is no number; without a shift infinities take care of
// themselves.
template <typename A>
Result<A*> largest(const Reduction& r, const Joins<A, A>& joins, StageFn stage) {
  FOLIO_TRY(A * shifts, r.scratch<A>());
  r.join<A, A>(joins, stage, nullptr, shifts);
  for (int64_t o = 0; o < r.outputs(); ++o) shifts[o] = std::isfinite(shifts[o]) ? shifts[o] : A{0};
  return shifts;
}

// float, float16 and bfloat16: `to_half` rounds results of the two.
Status reduce_floats(const Reduction& r, StageFn stage,
                     void (*to_half)(int64_t n, const float* x, void* y)) {
  const FolioKernels& kernels = r.run.kernels();
  float* acc = nullptr;
  if (to_half) {
    FOLIO_TRY(acc, r.scratch<float>());
  } else {
    acc = r.y->data_mut<float>();
  }
  const float* shifts = nullptr;
  if (r.kind == ReduceKind::kLogSumExp) {
    FOLIO_TRY(shifts, largest(r, float_joins(kernels, kFolioReduceMax), stage));
  }
  r.join<float, float>(float_joins(kernels, join_of(r.kind, false)), stage, shifts, acc);
  const auto count = static_cast<float>(r.plan.reduced_count);
  uint8_t* y = r.y->raw_mut();
  r.for_outputs([&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    finish_floats(kernels, r.kind, count, shifts ? shifts + begin : nullptr, n, acc + begin);
    if (to_half) to_half(n, acc + begin, y + 2 * begin);
  });
  return Status::ok();
}

// In double; T is double or, for LogSumExp, an integer.
template <typename T>
Status reduce_doubles(const Reduction& r) {
  StageFn from_integer = nullptr;
  double* acc = nullptr;
  if constexpr (std::is_integral_v<T>) {
    from_integer = stage<T, double>;
    FOLIO_TRY(acc, r.scratch<double>());
  } else {
    acc = r.y->data_mut<double>();
  }
  const double* shifts = nullptr;
  if (r.kind == ReduceKind::kLogSumExp) {
    FOLIO_TRY(shifts, largest(r, double_joins(kFolioReduceMax), from_integer));
  }
  r.join<double, double>(double_joins(join_of(r.kind, false)), from_integer, shifts, acc);
  const auto count = static_cast<double>(r.plan.reduced_count);
  T* y = r.y->data_mut<T>();
  r.for_outputs([&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const double sum = r.kind == ReduceKind::kMean ? acc[o] / count : acc[o];
      const double result = finish_double(r.kind, sum) + (shifts ? shifts[o] : 0.0);
      if constexpr (std::is_integral_v<T>) {
        y[o] = saturating_cast<T>(result);
      } else {
        y[o] = result;
      }
    }
  });
  return Status::ok();
}

// Integers: sums in 64 bits, extremes in 32 where they fit.
template <typename T>
Status reduce_integers(const Reduction& r) {
  const bool is_extreme = r.kind == ReduceKind::kMax || r.kind == ReduceKind::kMin;
  const FolioReduce how = join_of(r.kind, std::is_unsigned_v<T>);
  if (r.kind == ReduceKind::kLogSumExp) return reduce_doubles<T>(r);
  if (r.kind == ReduceKind::kMean && r.plan.reduced_count == 0) {
    return invalid_argument("the mean of no integers is not defined");
  }
  T* y = r.y->data_mut<T>();
  constexpr bool kFits32 = sizeof(T) < 4 || std::is_same_v<T, int32_t>;
  if constexpr (kFits32) {
    const StageFn to_int32 = std::is_same_v<T, int32_t> ? nullptr : stage<T, int32_t>;
    if (is_extreme) {
      FOLIO_TRY(int32_t * acc, r.scratch<int32_t>());
      Joins<int32_t, int32_t> joins = int32_joins(how);
      using Limits = std::numeric_limits<T>;
      joins.start = how == kFolioReduceMax ? Limits::min() : Limits::max();
      r.join<int32_t, int32_t>(joins, to_int32, nullptr, acc);
      for (int64_t o = 0; o < r.outputs(); ++o) y[o] = static_cast<T>(acc[o]);
      return Status::ok();
    }
  }
  FOLIO_TRY(int64_t * acc, r.scratch<int64_t>());
  uint64_t flip = 0;
  if constexpr (std::is_same_v<T, int32_t>) {
    r.join<int32_t, int64_t>(wide_joins(how), nullptr, nullptr, acc);
  } else {
    Joins<int64_t, int64_t> joins = int64_joins(how);
    StageFn to_int64 = sizeof(T) == 8 ? nullptr : stage<T, int64_t>;
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (is_extreme) to_int64 = stage<T, int64_t, true>;
      if (is_extreme) flip = kTopBit;
    }
    if constexpr (std::is_same_v<T, uint32_t>) {
      if (is_extreme) joins.start = how == kFolioReduceMax ? 0 : std::numeric_limits<T>::max();
    }
    r.join<int64_t, int64_t>(joins, to_int64, nullptr, acc);
  }
  for (int64_t o = 0; o < r.outputs(); ++o) {
    const auto sum = static_cast<int64_t>(static_cast<uint64_t>(acc[o]) ^ flip);
    y[o] = finish_integer<T>(r.kind, sum, r.plan.reduced_count);
  }
  return Status::ok();
}

using SumTypes = TypeList<float, double, Float16, BFloat16, int32_t, int64_t, uint32_t, uint64_t>;

Status reduce_tensor(const Reduction& r, DType dtype) {
  const FolioKernels& kernels = r.run.kernels();
  Status status;
  switch (dtype) {
    case DType::kFloat:
      return reduce_floats(r, nullptr, nullptr);
    case DType::kFloat16:
      return reduce_floats(r, stage<Float16, float>, kernels.f32_to_f16);
    case DType::kBfloat16:
      return reduce_floats(r, stage<BFloat16, float>, kernels.f32_to_bf16);
    case DType::kDouble:
      return reduce_doubles<double>(r);
    default:
      dispatch(IntegerTypes{}, dtype,
               [&](auto tag) { status = reduce_integers<typename decltype(tag)::type>(r); });
      return status;
  }
}

Status reduce_kind(ReduceKind kind, OpRun& run, const ReducePlan& plan, const Tensor& x,
                   Tensor* y) {
  const bool is_extreme = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  const bool is_bool = is_extreme && x.dtype() == DType::kBool;
  const bool is_known =
      is_extreme ? is_bool || contains(NumericTypes{}, x.dtype()) : contains(SumTypes{}, x.dtype());
  if (!is_known) return wrong_type(0, x.dtype());
  const Reduction reduction{run, kind, plan, x, y};
  if (reduction.outputs() == 0) return Status::ok();
  if (!is_bool) return reduce_tensor(reduction, x.dtype());
  // Bools are bytes; an empty set's 255 is true.
  FOLIO_RETURN_IF_ERROR(reduce_tensor(reduction, DType::kUint8));
  for (int64_t i = 0; i < y->count(); ++i) y->raw_mut()[i] = y->raw()[i] != 0;
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
