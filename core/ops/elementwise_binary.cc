// Add, Sub, Mul, Div (two inputs), Min, Max, Sum, Mean (any number of inputs), with broadcasting.
//
// Source: ONNX operator spec; Add..Div opsets 1, 6, 7, 13, 14 (before 7: attributes broadcast and
//         axis), Min/Max 1, 6, 8, 12, 13, Sum/Mean 1, 6, 8, 13.
// Shapes: the inputs' numpy broadcast.
// Math:   integers wrap; Div of integers truncates; Min and Max are NaN when any input is; Mean is
//         the sum, taken from left to right, divided by the count.
// Types:  all numbers; float16 and bfloat16 in float, rounded after each operand. Sum, Mean:
//         float, double; float16 and bfloat16 in float, rounded after each operand.
// Errors: kInvalidArgument for integer division by zero, mixed element types, shapes that do not
//         broadcast.
#include <cmath>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/ops/op_arithmetic.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

// What is left of a row from element i on.
template <typename F, typename T>
void row_from(int64_t i, int64_t n, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y) {
  binary_row<T, T, T, F>(n - i, a + i * a_step, a_step, b + i * b_step, b_step, y + i);
}

// Quotients of doubles, two at a time: rounded, one that is not whole is further from the next
// integer than double's precision; what INT_MIN / -1 is converted to is INT_MIN.
void divide_pairs_i32(int64_t n, const void* a, int64_t a_step, const void* b, int64_t b_step,
                      void* y) {
  int64_t i = 0;
  const auto* const left = static_cast<const int32_t*>(a);
  const auto* const right = static_cast<const int32_t*>(b);
  auto* const to = static_cast<int32_t*>(y);
#if defined(__SSE2__)
  const auto two = [](const int32_t* from, int64_t at, int64_t step) {
    return _mm_cvtepi32_pd(step == 0
                               ? _mm_set1_epi32(*from)
                               : _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + at)));
  };
  for (; i + 2 <= n; i += 2) {
    const __m128d quotients = _mm_div_pd(two(left, i, a_step), two(right, i, b_step));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), _mm_cvttpd_epi32(quotients));
  }
#endif
  row_from<DivFunction>(i, n, left, a_step, right, b_step, to);
}

// Division by one number is multiplication by its reciprocal, rounded away from zero: a whole
// quotient is not missed, and any other is further from the next integer than double's precision.
void divide_row_i32(int64_t n, const void* a, int64_t a_step, const void* b, int64_t b_step,
                    void* y) {
  constexpr int64_t kWorthwhile = 8;
  const int32_t divisor = n > 0 ? *static_cast<const int32_t*>(b) : 1;
  // INT_MIN / -1 wraps, which DivFunction knows.
  if (a_step != 1 || b_step == 1 || n < kWorthwhile || divisor == -1) {
    return divide_pairs_i32(n, a, a_step, b, b_step, y);
  }
  const double reciprocal = std::nextafter(1.0 / divisor, divisor < 0 ? -2.0 : 2.0);
  const auto* const from = static_cast<const int32_t*>(a);
  auto* const to = static_cast<int32_t*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int32_t>(from[i] * reciprocal);
}

// Products of int32 (and uint32, which have the same low bits), eight at a time; how many of n.
// SSE2 multiplies every second element alone; the products are joined by a mask and a shift, as it
// shuffles less at a time than it does anything else.
template <int kBStep>
int64_t multiply_eights(int64_t n, const int32_t* a, const int32_t* b, int32_t* y) {
  int64_t i = 0;
#if defined(__SSE2__)
  const auto load = [](const int32_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  const __m128i low = _mm_set_epi32(0, -1, 0, -1);
  const __m128i second = _mm_set1_epi32(n > 0 ? *b : 0);
  const auto multiply_four = [&](int64_t at) {
    const __m128i x = load(a + at);
    const __m128i z = kBStep == 0 ? second : load(b + at);
    const __m128i even = _mm_mul_epu32(x, z);
    const __m128i odd =
        _mm_mul_epu32(_mm_srli_epi64(x, 32), kBStep == 0 ? z : _mm_srli_epi64(z, 32));
    const __m128i product = _mm_or_si128(_mm_and_si128(even, low), _mm_slli_epi64(odd, 32));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + at), product);
  };
  for (; i + 8 <= n; i += 8) multiply_four(i), multiply_four(i + 4);
#endif
  return i;
}

// Pairs of 64-bit integers, which SSE2 does not compare. Eight a step: with one a step, caches wait
// for the counting.
template <typename F>
void wide_row(int64_t n, const void* a, int64_t a_step, const void* b, int64_t b_step, void* y) {
  if (a_step == 0 || b_step == 0) {
    return binary_row<int64_t, int64_t, int64_t, F>(n, a, a_step, b, b_step, y);
  }
  const auto* const left = static_cast<const int64_t*>(a);
  const auto* const right = static_cast<const int64_t*>(b);
  auto* const to = static_cast<int64_t*>(y);
#pragma GCC unroll 8
  for (int64_t i = 0; i < n; ++i) to[i] = F()(left[i], right[i]);
}

// Products of these (and of uint64, whose low bits are the same), four at a time; how many of n:
// two by SSE2, from their halves, beside two by the integer unit, of which there is one.
template <int kBStep>
int64_t multiply_fours(int64_t n, const int64_t* a, const int64_t* b, int64_t* y) {
  int64_t i = 0;
#if defined(__SSE2__)
  const int64_t same = n > 0 ? *b : 0;
  const __m128i second = _mm_set1_epi64x(same);
  const auto multiply_two = [&](int64_t at) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + at));
    const __m128i z =
        kBStep == 0 ? second : _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + at));
    const __m128i mixed = _mm_add_epi64(_mm_mul_epu32(_mm_srli_epi64(x, 32), z),
                                        _mm_mul_epu32(x, _mm_srli_epi64(z, 32)));
    const __m128i product = _mm_add_epi64(_mm_mul_epu32(x, z), _mm_slli_epi64(mixed, 32));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + at), product);
  };
  for (; i + 4 <= n; i += 4) {
    multiply_two(i);
    y[i + 2] = MulFunction()(a[i + 2], kBStep == 0 ? same : b[i + 2]);
    y[i + 3] = MulFunction()(a[i + 3], kBStep == 0 ? same : b[i + 3]);
  }
#endif
  return i;
}

// A row by what computes its first elements, where the second operand is one number or as many;
// then the others.
template <typename T, int64_t (*kSomeOfOne)(int64_t, const T*, const T*, T*),
          int64_t (*kSomeOfPairs)(int64_t, const T*, const T*, T*)>
void multiply_row(int64_t n, const void* a, int64_t a_step, const void* b, int64_t b_step,
                  void* y) {
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  if (a_step == 0) {
    std::swap(left, right);
    std::swap(a_step, b_step);
  }
  auto* const to = static_cast<T*>(y);
  const int64_t i = a_step == 0   ? 0
                    : b_step == 0 ? kSomeOfOne(n, left, right, to)
                                  : kSomeOfPairs(n, left, right, to);
  row_from<MulFunction>(i, n, left, a_step, right, b_step, to);
}

// Of integers and doubles.
template <typename F, typename Types>
BinaryRow row_for(DType dtype) {
  if (std::is_same_v<F, DivFunction> && dtype == DType::kInt32) return divide_row_i32;
  if (std::is_same_v<F, MulFunction> && (dtype == DType::kInt32 || dtype == DType::kUint32)) {
    return multiply_row<int32_t, multiply_eights<0>, multiply_eights<1>>;
  }
  if (std::is_same_v<F, MulFunction> && (dtype == DType::kInt64 || dtype == DType::kUint64)) {
    return multiply_row<int64_t, multiply_fours<0>, multiply_fours<1>>;
  }
  if constexpr (std::is_same_v<F, MinFunction> || std::is_same_v<F, MaxFunction>) {
    if (dtype == DType::kInt64) return wide_row<F>;
  }
  BinaryRow row = nullptr;
  dispatch(Types{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) row = binary_row<T, T, T, F>;
  });
  return row;
}

bool has_zero(const Tensor& tensor) {
  bool found = false;
  dispatch(IntegerTypes{}, tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T value : tensor.span<T>()) found |= value == 0;
  });
  return found;
}

template <typename F, typename Types>
Status run_pair(OpRun& run, const BroadcastPlan& plan, const Tensor& a, const Tensor& b,
                Tensor* y) {
  if (a.dtype() == DType::kFloat || is_half(a.dtype())) {
    run_binary_f32(run, run.kernels().binary_f32[F::kSlot], plan, a, b, y);
    return Status::ok();
  }
  if (std::is_same_v<F, DivFunction> && has_zero(b)) {
    return invalid_argument("division by zero in ", dtype_name(b.dtype()));
  }
  run_binary_rows(run, plan, row_for<F, Types>(a.dtype()), a, b, y);
  return Status::ok();
}

// ---------------------------------------------------------------- two inputs

template <typename F>
class BinaryKernel final : public OpKernel {
 public:
  explicit BinaryKernel(const LegacyBroadcast& legacy) : legacy_(legacy) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    if (!contains(NumericTypes{}, a->dtype())) return wrong_type(0, a->dtype());
    FOLIO_TRY(const Tensor* b, run.tensor(1, a->dtype()));
    FOLIO_TRY(const Shape b_shape, legacy_.second(a->shape(), b->shape()));
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(a->shape(), b_shape));
    FOLIO_TRY(Tensor * y, run.output(0, a->dtype(), plan.out));
    return run_pair<F, NumericTypes>(run, plan, *a, *b, y);
  }

 private:
  LegacyBroadcast legacy_;
};

template <typename F>
Result<std::unique_ptr<OpKernel>> make_binary(OpBuild& build) {
  FOLIO_TRY(const LegacyBroadcast legacy, LegacyBroadcast::parse(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<BinaryKernel<F>>(legacy));
}

template <typename F>
Dim combine(DimTable& table, Dim a, Dim b) {
  if constexpr (std::is_same_v<F, AddFunction>) return table.add(a, b);
  if constexpr (std::is_same_v<F, SubFunction>) return table.sub(a, b);
  if constexpr (std::is_same_v<F, MulFunction>) return table.mul(a, b);
  if constexpr (std::is_same_v<F, MinFunction>) return table.min(a, b);
  if constexpr (std::is_same_v<F, MaxFunction>) return table.max(a, b);
  if constexpr (std::is_same_v<F, DivFunction>) {
    // The operator truncates and the table floors: the same only where nothing is negative.
    if (table.never_negative(a) && table.never_negative(b)) return table.floor_div(a, b);
  }
  return Dim::unknown();
}

// Contents of shape arithmetic: both sides small integer vectors (or one a scalar).
template <typename F>
void propagate_data(OpInfer& infer, const std::optional<Dims>& dims) {
  if (!dims || dims->size() > 1) return;
  auto total = infer.data(0);
  for (int i = 1; total && i < infer.input_count(); ++i) {
    const auto next = infer.data(i);
    if (!next) return;
    const size_t count = total->size() == 1 ? next->size() : total->size();
    if (next->size() != 1 && next->size() != count) return;
    std::vector<Dim> out(count);
    for (size_t k = 0; k < count; ++k) {
      out[k] = combine<F>(infer.table(), total->at(total->size() == 1 ? 0 : k),
                          next->at(next->size() == 1 ? 0 : k));
    }
    total = std::move(out);
  }
  if (total) infer.set_data(0, std::move(*total));
}

bool holds_shapes(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

template <typename F>
Status infer_binary(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, infer_common_dtype(infer));
  FOLIO_TRY(std::optional<Dims> dims, infer_binary_dims(infer));
  if (dtype == DType::kUndefined) return Status::ok();
  infer.set_tensor(0, dtype, dims);
  if (holds_shapes(dtype)) propagate_data<F>(infer, dims);
  return Status::ok();
}

// ---------------------------------------------------------------- any number of inputs

enum class Finish { kNone, kDivideByCount };

void divide_by(OpRun& run, double count, Tensor* y) {
  dispatch(FloatTypes{}, y->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = y->data_mut<T>();
    const auto divisor = static_cast<Compute<T>>(count);
    run.parallel().for_range(y->count(), kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = static_cast<T>(data[i] / divisor);
    });
  });
}

template <typename F, typename Types, Finish kFinish>
class VariadicKernel final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* first, run.tensor(0));
    const DType dtype = first->dtype();
    if (!contains(Types{}, dtype)) return wrong_type(0, dtype);
    Shape shape = first->shape();
    for (int i = 1; i < run.input_count(); ++i) {
      FOLIO_TRY(const Tensor* next, run.tensor(i, dtype));
      FOLIO_TRY(shape, broadcast(shape, next->shape()));
    }
    FOLIO_TRY(Tensor * y, run.output(0, dtype, shape));
    if (dtype == DType::kFloat && fold_floats(run, y)) return Status::ok();
    FOLIO_RETURN_IF_ERROR(fold(run, *first, y));
    if (kFinish == Finish::kDivideByCount) divide_by(run, run.input_count(), y);
    return Status::ok();
  }

 private:
  // y = f(first, second), or first where these are smaller than y; then y = f(y, next) in place: an
  // output of the full shape may be an input of the same length.
  Status fold(OpRun& run, const Tensor& first, Tensor* y) const {
    const int inputs = run.input_count();
    int i = 1;
    if (inputs > 1) {
      const Tensor& second = run.value(1).tensor();
      FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(first.shape(), second.shape()));
      if (plan.out == y->shape()) {
        FOLIO_RETURN_IF_ERROR((run_pair<F, Types>(run, plan, first, second, y)));
        i = 2;
      }
    }
    if (i == 1) FOLIO_RETURN_IF_ERROR(copy_broadcast(run, first, y));
    for (; i < inputs; ++i) {
      const Tensor& next = run.value(i).tensor();
      FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(y->shape(), next.shape()));
      FOLIO_RETURN_IF_ERROR((run_pair<F, Types>(run, plan, *y, next, y)));
    }
    return Status::ok();
  }

  // The same of floats, all steps of a piece while that is in L1, when no input is repeated.
  // Whether it was.
  static bool fold_floats(OpRun& run, Tensor* y) {
    constexpr int64_t kPiece = 2048;
    const int inputs = run.input_count();
    if (inputs == 1) return false;
    for (int i = 0; i < inputs; ++i) {
      if (run.value(i).tensor().count() != y->count()) return false;
    }
    const FolioBinaryF32 join = run.kernels().binary_f32[F::kSlot];
    const FolioBinaryF32 divide = run.kernels().binary_f32[kFolioDiv];
    const auto divisor = static_cast<float>(inputs);
    float* const out = y->data_mut<float>();
    run.parallel().for_range(y->count(), kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kPiece) {
        const int64_t n = std::min(kPiece, end - at);
        float* const to = out + at;
        for (int i = 1; i < inputs; ++i) {
          const float* left = i == 1 ? run.value(0).tensor().data<float>() + at : to;
          join(n, left, 1, run.value(i).tensor().data<float>() + at, 1, to);
        }
        if (kFinish == Finish::kDivideByCount) divide(n, to, 1, &divisor, 0, to);
      }
    });
    return true;
  }
};

template <typename F, typename Types, Finish kFinish>
Result<std::unique_ptr<OpKernel>> make_variadic(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<VariadicKernel<F, Types, kFinish>>());
}

template <typename F>
Status infer_variadic(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, infer_common_dtype(infer));
  FOLIO_TRY(std::optional<Dims> dims, infer_variadic_dims(infer));
  if (dtype == DType::kUndefined) return Status::ok();
  infer.set_tensor(0, dtype, dims);
  if (holds_shapes(dtype)) propagate_data<F>(infer, dims);
  return Status::ok();
}

template <typename F>
void add_binary(OpRegistry& registry, std::string_view type) {
  registry.add({.domain = "",
                .type = type,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_binary<F>,
                .make = make_binary<F>,
                .is_exact = true,
                .elementwise = true});
}

template <typename F, typename Types, Finish kFinish = Finish::kNone>
void add_variadic(OpRegistry& registry, std::string_view type) {
  registry.add({.domain = "",
                .type = type,
                .min_inputs = 1,
                .max_inputs = kVariadic,
                .infer = infer_variadic<F>,
                .make = make_variadic<F, Types, kFinish>,
                .elementwise = true});
}

}  // namespace

[[gnu::cold]] void register_elementwise_binary(OpRegistry& registry) {
  add_binary<AddFunction>(registry, "Add");
  add_binary<SubFunction>(registry, "Sub");
  add_binary<MulFunction>(registry, "Mul");
  add_binary<DivFunction>(registry, "Div");
  add_variadic<MinFunction, NumericTypes>(registry, "Min");
  add_variadic<MaxFunction, NumericTypes>(registry, "Max");
  add_variadic<AddFunction, FloatTypes>(registry, "Sum");
  add_variadic<AddFunction, FloatTypes, Finish::kDivideByCount>(registry, "Mean");
}

}  // namespace folio
