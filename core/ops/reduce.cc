// ReduceSum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare.
//
// Source: ONNX operator spec; opsets 1, 11, 12, 13, 18, 20. Axes are an attribute before 13
//         (ReduceSum) or 18 (the others), an optional input since.
// Shapes: reduced axes become 1 (keepdims, the default) or go. No axes: all of them, unless
//         noop_with_empty_axes: then each element is reduced alone.
// Math:   floats add up in their compute type, integers in 64 bits, wrapping. An empty set gives
//         the neutral element (-inf and +inf, or the type's bounds, for Max and Min; NaN for Mean).
//         LogSumExp subtracts the maximum first.
// Method: three passes: elements are joined (op_joins.h) in float, double, uint8, int32 or int64,
//         whatever their type; what becomes of the sums is one map over the results. Sums that are
//         results as they stand are joined in 32 bits where the results have no more: they wrap
//         alike.
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

// Numbers without a sign keep their order as signed ones when their top bit is turned, and back.
template <typename T>
constexpr T kTopBit = static_cast<T>(T{1} << (8 * sizeof(T) - 1));

// Of blocks of a constant length, and of arguments that are said not to overlap, compilers at -O2
// make vectors.
template <bool kKeepsOrder, typename From, typename T>
void widen(int64_t n, const From* __restrict__ x, T* __restrict__ y) {
  constexpr From kTurned = kKeepsOrder ? kTopBit<From> : From{0};
  constexpr int64_t kBlock = 16;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int64_t u = 0; u < kBlock; ++u) y[i + u] = static_cast<T>(x[i + u] ^ kTurned);
  }
  for (; i < n; ++i) y[i] = static_cast<T>(x[i] ^ kTurned);
}

// Elements of From as T.
template <typename From, typename T, bool kKeepsOrder = false>
void stage(const FolioKernels& kernels, const void* from, int64_t at, int64_t n, void* to) {
  const From* x = static_cast<const From*>(from) + at;
  if constexpr (std::is_same_v<From, Float16>) {
    kernels.f16_to_f32(n, x, static_cast<float*>(to));
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    kernels.bf16_to_f32(n, x, static_cast<float*>(to));
  } else {
    widen<kKeepsOrder>(n, x, static_cast<T*>(to));
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

// Whether something is made of the sums.
bool is_finished(ReduceKind kind) {
  return kind == ReduceKind::kMean || kind == ReduceKind::kL2 || kind == ReduceKind::kLogSum ||
         kind == ReduceKind::kLogSumExp;
}

// As through the C library.
double finish_double(ReduceKind kind, double value) {
  if (kind == ReduceKind::kL2) return std::sqrt(value);
  const bool is_log = kind == ReduceKind::kLogSum || kind == ReduceKind::kLogSumExp;
  return is_log ? std::log(value) : value;
}

// What Mean, L2 and LogSum make of a sum of integers; fractions are cut off.
template <typename T>
T finish_integer(ReduceKind kind, int64_t sum, int64_t count) {
  constexpr bool kUnsigned = std::is_unsigned_v<T>;
  if (kind == ReduceKind::kMean) {
    if constexpr (sizeof(T) <= 4) {
      // Quotients of less than 2^53 are never rounded up to a whole number, and take a third of
      // the time of whole ones.
      constexpr int64_t kExact = 1 << 20;
      if (count <= kExact) {
        return static_cast<T>(
            static_cast<int64_t>(static_cast<double>(sum) / static_cast<double>(count)));
      }
    }
    if constexpr (kUnsigned) {
      return static_cast<T>(static_cast<uint64_t>(sum) / static_cast<uint64_t>(count));
    }
    return static_cast<T>(sum / count);
  }
  const double wide =
      kUnsigned ? static_cast<double>(static_cast<uint64_t>(sum)) : static_cast<double>(sum);
  return saturating_cast<T>(finish_double(kind, wide));
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

  template <typename T>
  void join(const Joins<T>& joins, StageFn stage, const T* shifts, T* acc) const {
    const ReduceJob<T> job{run.kernels(), plan, joins, x.raw(), stage, shifts};
    reduce_elements(run.parallel(), job, acc);
  }
};

// LogSumExp subtracts these. exp(inf - inf) is no number; without a shift infinities take care of
// themselves.
template <typename A>
Result<A*> largest(const Reduction& r, StageFn stage) {
  FOLIO_TRY(A * shifts, r.scratch<A>());
  r.join<A>(kernel_joins<A>(r.run.kernels(), kFolioReduceMax), stage, nullptr, shifts);
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
    FOLIO_TRY(shifts, largest<float>(r, stage));
  }
  r.join(kernel_joins<float>(kernels, join_of(r.kind, false)), stage, shifts, acc);
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
    FOLIO_TRY(shifts, largest<double>(r, from_integer));
  }
  const FolioReduce how = join_of(r.kind, false);
  r.join(kernel_joins<double>(r.run.kernels(), how), from_integer, shifts, acc);
  if (std::is_same_v<T, double> && !is_finished(r.kind)) return Status::ok();
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

// Integers whose results are what joining them in a J gives, but for the top bit.
template <typename T, typename J>
Status join_integers(const Reduction& r) {
  const bool is_extreme = r.kind == ReduceKind::kMax || r.kind == ReduceKind::kMin;
  const FolioReduce how = join_of(r.kind, std::is_unsigned_v<T>);
  Joins<J> joins = kernel_joins<J>(r.run.kernels(), how);
  T* y = r.y->data_mut<T>();
  if constexpr (sizeof(T) == sizeof(J)) {
    constexpr bool kTurned = std::is_signed_v<T> != std::is_signed_v<J>;
    J* acc = reinterpret_cast<J*>(r.y->raw_mut());
    if (!kTurned || !is_extreme) {
      r.join<J>(joins, nullptr, nullptr, acc);
      return Status::ok();
    }
    r.join<J>(joins, stage<T, J, kTurned>, nullptr, acc);
    for (int64_t o = 0; o < r.outputs(); ++o) y[o] = static_cast<T>(y[o] ^ kTopBit<T>);
  } else {
    using Limits = std::numeric_limits<T>;
    if (is_extreme) joins.start = how == kFolioReduceMax ? Limits::min() : Limits::max();
    FOLIO_TRY(J * acc, r.scratch<J>());
    r.join<J>(joins, stage<T, J>, nullptr, acc);
    for (int64_t o = 0; o < r.outputs(); ++o) y[o] = static_cast<T>(acc[o]);
  }
  return Status::ok();
}

// Integers of which something is made of the sum, which takes all of its 64 bits.
template <typename T>
Status finish_integers(const Reduction& r) {
  const FolioReduce how = join_of(r.kind, std::is_unsigned_v<T>);
  FOLIO_TRY(int64_t * acc, r.scratch<int64_t>());
  r.join<int64_t>(kernel_joins<int64_t>(r.run.kernels(), how),
                  sizeof(T) == 8 ? nullptr : stage<T, int64_t>, nullptr, acc);
  T* y = r.y->data_mut<T>();
  for (int64_t o = 0; o < r.outputs(); ++o) {
    y[o] = finish_integer<T>(r.kind, acc[o], r.plan.reduced_count);
  }
  return Status::ok();
}

// Of bytes there are extremes alone.
template <typename T>
using JoinedIn = std::conditional_t<sizeof(T) == 8, int64_t,
                                    std::conditional_t<sizeof(T) == 1, uint8_t, int32_t>>;

template <typename T>
Status reduce_integers(const Reduction& r) {
  switch (r.kind) {
    case ReduceKind::kLogSumExp:
      return reduce_doubles<T>(r);
    case ReduceKind::kMean:
      if (r.plan.reduced_count == 0) {
        return invalid_argument("the mean of no integers is not defined");
      }
      return finish_integers<T>(r);
    case ReduceKind::kL2:
    case ReduceKind::kLogSum:
      return finish_integers<T>(r);
    default:
      return join_integers<T, JoinedIn<T>>(r);
  }
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
  for (int64_t i = 0, end = y->count(); i < end; ++i) y->raw_mut()[i] = y->raw()[i] != 0;
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
    FOLIO_TRY(options.keep_dims, keeps_dims(attributes));
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
      // As in PyTorch and ONNX Runtime a scalar has the axes 0 and -1.
      FOLIO_TRY(const int at, normalize_axis(axis, std::max(rank, 1)));
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
