// IsNaN and IsInf.
//
// Source: ONNX operator spec; IsNaN 9, 13, 20; IsInf 10, 20 (detect_positive, detect_negative).
// Shapes: y is bool, shaped like x.
// Types:  float, double, float16, bfloat16; float8 but E8M0.
#include <limits>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_flags.h"
#include "core/ops/op_narrow.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

#if defined(__SSE2__)
// Masks of two doubles each as masks of four floats.
__m128i halves_of(__m128d a, __m128d b) {
  return _mm_castps_si128(_mm_shuffle_ps(_mm_castpd_ps(a), _mm_castpd_ps(b), 0x88));
}
#endif

struct IsNan {
  static Result<IsNan> parse(OpBuild&) { return IsNan{}; }
  bool operator()(auto x) const { return x != x; }
  // Of the bits of a type whose infinity is this.
  uint8_t half(uint16_t x, uint16_t inf) const { return (x & 0x7fff) > inf ? 1 : 0; }
#if defined(__SSE2__)
  __m128i four(__m128 x) const { return _mm_castps_si128(_mm_cmpunord_ps(x, x)); }
  __m128i four(__m128d a, __m128d b) const {
    return halves_of(_mm_cmpunord_pd(a, a), _mm_cmpunord_pd(b, b));
  }
#endif
};

struct IsInf {
  bool positive = true;
  bool negative = true;

  static Result<IsInf> parse(OpBuild& build) {
    FOLIO_TRY(const int64_t positive, build.attrs().get_int("detect_positive", 1));
    FOLIO_TRY(const int64_t negative, build.attrs().get_int("detect_negative", 1));
    return IsInf{positive != 0, negative != 0};
  }
  bool operator()(auto x) const {
    constexpr auto kInf = std::numeric_limits<decltype(x)>::infinity();
    return ((x == kInf) & positive) | ((x == -kInf) & negative);
  }
  uint8_t half(uint16_t x, uint16_t inf) const {
    return static_cast<uint8_t>(((x == inf) & positive) | ((x == (inf | 0x8000)) & negative));
  }
#if defined(__SSE2__)
  // Nothing equals NaN.
  __m128i four(__m128 x) const {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const __m128 is_positive = _mm_cmpeq_ps(x, _mm_set1_ps(positive ? kInf : kNan));
    const __m128 is_negative = _mm_cmpeq_ps(x, _mm_set1_ps(negative ? -kInf : kNan));
    return _mm_castps_si128(_mm_or_ps(is_positive, is_negative));
  }
  __m128i four(__m128d a, __m128d b) const { return halves_of(two(a), two(b)); }
  __m128d two(__m128d x) const {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const __m128d is_positive = _mm_cmpeq_pd(x, _mm_set1_pd(positive ? kInf : kNan));
    const __m128d is_negative = _mm_cmpeq_pd(x, _mm_set1_pd(negative ? -kInf : kNan));
    return _mm_or_pd(is_positive, is_negative);
  }
#endif
};

#if defined(__SSE2__)
template <typename F>
__m128i test_four(const F& function, const float* x) {
  return function.four(_mm_loadu_ps(x));
}
template <typename F>
__m128i test_four(const F& function, const double* x) {
  return function.four(_mm_loadu_pd(x), _mm_loadu_pd(x + 2));
}
#endif

// The first of n floats or doubles. How many.
template <typename F, typename T>
int64_t test_blocks(const F& function, int64_t n, const T* from, uint8_t* to) {
#if defined(__SSE2__)
  const auto four = [&](int64_t i) { return test_four(function, from + i); };
  int64_t i = 0;
  for (; i + kFlagBlock <= n; i += kFlagBlock) {
    flags_detail::store_flags(four(i), four(i + 4), four(i + 8), four(i + 12), to + i);
  }
  return i;
#else
  static_cast<void>(function), static_cast<void>(n), static_cast<void>(from);
  static_cast<void>(to);
  return 0;
#endif
}

template <typename F>
class TestKernel final : public OpKernel {
 public:
  explicit TestKernel(const F& function) : function_(function) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const bool is_float8 = is_narrow_float(x->dtype()) && dtype_bits(x->dtype()) == 8;
    if (!contains(FloatTypes{}, x->dtype()) && (!is_float8 || x->dtype() == DType::kFloat8E8M0)) {
      return wrong_type(0, x->dtype());
    }
    FOLIO_TRY(Tensor * y, run.output(0, DType::kBool, x->shape()));
    uint8_t* to = y->raw_mut();
    for (int64_t i = 0, end = x->count(); is_float8 && i < end; ++i) {
      to[i] = function_(narrow_to_float(x->dtype(), x->raw()[i])) ? 1 : 0;
    }
    dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      run.parallel().for_range(x->count(), kElementGrain, [&](int64_t begin, int64_t end) {
        const F function = function_;  // in registers: writing bytes might change what is elsewhere
        const T* from = x->data<T>();
        uint8_t* bytes = y->raw_mut();
        int64_t i = begin;
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
          i += test_blocks(function, end - begin, from + begin, bytes + begin);
        }
        if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
          constexpr uint16_t kInf = std::is_same_v<T, Float16> ? 0x7c00 : 0x7f80;
          for (; i < end; ++i) bytes[i] = function.half(from[i].bits, kInf);
        }
        for (; i < end; ++i) bytes[i] = function(static_cast<Compute<T>>(from[i])) ? 1 : 0;
      });
    });
    return Status::ok();
  }

 private:
  F function_;
};

template <typename F>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(const F function, F::parse(build));
  return std::unique_ptr<OpKernel>(std::make_unique<TestKernel<F>>(function));
}

Status infer(OpInfer& infer) {
  const Dims* dims = infer.dims_of(0);
  infer.set_tensor(0, DType::kBool, dims ? std::optional<Dims>(*dims) : std::nullopt);
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_is_nan(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "IsNaN",
                .since = 9,
                .infer = infer,
                .make = make<IsNan>,
                .keeps_half = true});
  registry.add({.domain = "", .type = "IsInf", .since = 10, .infer = infer, .make = make<IsInf>});
}

}  // namespace folio
