// ArgMax and ArgMin.
//
// Source: ONNX operator spec, opsets 1, 11, 12 (select_last_index), 13.
// Shapes: x [outer, n, inner] -> y [outer, 1 or nothing, inner] int64.
// Types:  all numeric types. A NaN is never larger or smaller: it wins only where it stands first.
#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/ops/op_dispatch.h"
#include "core/ops/op_joins.h"
#include "core/ops/op_reduce.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kStrip = 512;  // columns, or results of rows, whose state stays in L1
constexpr int64_t kMostInt32 = 0x7fffffff;

// As wide as T, so that compilers compare and select vectors.
template <typename T>
using Place = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

struct ArgRule {
  bool is_max = true;
  bool last = false;
};

// The definition, element by element.
template <typename T>
int64_t best_of(const ArgRule& rule, const T* x, int64_t n, int64_t step) {
  using C = Compute<T>;
  int64_t at = 0;
  auto value = static_cast<C>(x[0]);
  for (int64_t i = 1; i < n; ++i) {
    const auto next = static_cast<C>(x[i * step]);
    const bool better = rule.is_max ? next > value : next < value;
    if (!better && !(rule.last && next == value)) continue;
    at = i;
    value = next;
  }
  return at;
}

// ---------------------------------------------------------------- rows

// Whether `value` is among kBlock elements; as vectors of 16 bytes.
constexpr int64_t kBlock = 16;
template <typename T>
bool has(const T* x, T value) {
  typedef T Some __attribute__((vector_size(16)));
  typedef Place<T> Places __attribute__((vector_size(16)));
  constexpr int64_t kEach = 16 / sizeof(T);
  Places found{};
#pragma GCC unroll 8
  for (int64_t u = 0; u < kBlock; u += kEach) {
    Some some;
    std::memcpy(&some, x + u, sizeof some);
    found |= some == Some{} + value;
  }
  uint64_t halves[2];
  std::memcpy(halves, &found, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

// Bit i: whether element i of 16 bytes is `value`.
#if defined(__SSE2__)
template <typename T>
int equal_few(const T* x, T value) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm_movemask_ps(_mm_cmpeq_ps(_mm_loadu_ps(x), _mm_set1_ps(value)));
  } else if constexpr (std::is_same_v<T, double>) {
    return _mm_movemask_pd(_mm_cmpeq_pd(_mm_loadu_pd(x), _mm_set1_pd(value)));
  } else {
    const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    return _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(some, _mm_set1_epi32(value))));
  }
}
#endif

// Bit i: whether x[i] is `value`, i < n <= 64. Without branches, which in short rows go anywhere.
template <typename T>
uint64_t equal_bits(const T* x, int64_t n, T value) {
  uint64_t bits = 0;
  int64_t i = 0;
#if defined(__SSE2__)
  constexpr auto kEach = static_cast<int64_t>(16 / sizeof(T));
  if constexpr (std::is_same_v<T, double> || sizeof(T) == 4) {
    for (; i + kEach <= n; i += kEach) {
      bits |= static_cast<uint64_t>(equal_few(x + i, value)) << i;
    }
    if (i < n && n > kEach) {  // some once more
      return bits | static_cast<uint64_t>(equal_few(x + n - kEach, value)) << (n - kEach);
    }
  }
#endif
  for (; i < n; ++i) bits |= static_cast<uint64_t>(x[i] == value ? 1 : 0) << i;
  return bits;
}

// Where `extreme` stands in x, which has it.
template <typename T>
int64_t place_of(bool last, T extreme, const T* x, int64_t n) {
  if (n <= 64) {
    const uint64_t bits = equal_bits(x, n, extreme);
    return last ? 63 - std::countl_zero(bits) : std::countr_zero(bits);
  }
  if (last) {
    int64_t at = n - 1;
    while (x[at] != extreme) --at;
    return at;
  }
  int64_t from = 0;
  while (from + kBlock <= n && !has(x + from, extreme)) from += kBlock;
  while (x[from] != extreme) ++from;
  return from;
}

// The extremes of many rows first, then where they stand; meanwhile the next ones are fetched.
template <typename T>
void best_of_rows(const FolioKernels& kernels, const ArgRule& rule, int64_t rows, int64_t n,
                  const T* x, int64_t* y) {
  const Joins<T> joins = kernel_joins<T>(kernels, rule.is_max ? kFolioReduceMax : kFolioReduceMin);
  T extremes[kStrip];
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  const int64_t most = std::clamp<int64_t>(4096 / n, 1, kStrip);  // that are in L1 still
  for (int64_t i = 0; i < rows; i += most) {
    const int64_t count = std::min(most, rows - i);
    std::fill_n(extremes, count, joins.start);
    joins.rows(count, n, x + i * n, n, extremes);
    for (int64_t r = 0; r < count; ++r) {
      const T* row = x + (i + r) * n;
      for (int64_t ahead = 0; ahead < n; ahead += kLine) {
        __builtin_prefetch(row + count * n + ahead);
      }
      const T extreme = extremes[r];
      const bool is_nan = extreme != extreme;
      y[i + r] = is_nan ? best_of(rule, row, n, 1) : place_of(rule.last, extreme, row, n);
    }
  }
}

// ---------------------------------------------------------------- columns

// A vector of columns: the best of each and where it stands. Vectors are of 16 bytes, and written
// out: g++ makes none of selections at -O2.
template <typename T>
struct BestColumns {
  typedef T Some __attribute__((vector_size(16)));
  typedef Place<T> Places __attribute__((vector_size(16)));
  static constexpr int64_t kEach = 16 / sizeof(T);
  Some value;
  Places at;

  // Of row 0.
  void begin(const T* row) {
    std::memcpy(&value, row, sizeof value);
    at = Places{};
  }
  template <bool kMax, bool kLast>
  void take(const T* row, Place<T> i) {
    Some next;
    std::memcpy(&next, row, sizeof next);
    const Places better =
        kMax ? (kLast ? next >= value : next > value) : (kLast ? next <= value : next < value);
    value = better ? next : value;
    at = better ? Places{} + i : at;
  }
  void write(int64_t* y) const {
    for (int64_t c = 0; c < kEach; ++c) y[c] = at[c];
  }
};

// `count` columns, a multiple of what a vector has: row by row, or, of a line of cache, vector by
// vector.
template <bool kMax, bool kLast, typename T>
void best_of_strip(int64_t n, int64_t inner, int64_t count, const T* x, int64_t* y) {
  using Best = BestColumns<T>;
  constexpr int64_t kEach = Best::kEach;
  constexpr int64_t kFew = 4;  // vectors
  const int64_t vectors = count / kEach;
  if (vectors <= kFew) {
    for (int64_t u = 0; u < vectors; ++u) {
      Best best;  // in registers
      best.begin(x + u * kEach);
      for (Place<T> i = 1; i < n; ++i) {
        best.template take<kMax, kLast>(x + i * inner + u * kEach, i);
      }
      best.write(y + u * kEach);
    }
    return;
  }
  Best best[kStrip / kEach];
  for (int64_t u = 0; u < vectors; ++u) best[u].begin(x + u * kEach);
  for (Place<T> i = 1; i < n; ++i) {
    const T* row = x + i * inner;
    const auto take = [&](int64_t u) { best[u].template take<kMax, kLast>(row + u * kEach, i); };
    int64_t u = 0;
    for (; u + 2 <= vectors; u += 2) {
      take(u);
      take(u + 1);
    }
    if (u < vectors) take(u);
  }
  for (int64_t u = 0; u < vectors; ++u) best[u].write(y + u * kEach);
}

template <typename T>
void best_of_columns(const ArgRule& rule, int64_t n, int64_t inner, int64_t count, const T* x,
                     int64_t* y) {
  constexpr int64_t kEach = 16 / sizeof(T);
  const int64_t whole = count / kEach * kEach;
  if (rule.is_max) {
    rule.last ? best_of_strip<true, true>(n, inner, whole, x, y)
              : best_of_strip<true, false>(n, inner, whole, x, y);
  } else {
    rule.last ? best_of_strip<false, true>(n, inner, whole, x, y)
              : best_of_strip<false, false>(n, inner, whole, x, y);
  }
  for (int64_t c = whole; c < count; ++c) y[c] = best_of(rule, x + c, n, inner);
}

// ---------------------------------------------------------------- the operator

// Types that the kernels reduce.
template <typename T>
constexpr bool kHasKernels = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                             std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

class ArgMax final : public OpKernel {
 public:
  ArgRule rule;
  bool keep_dims = true;
  int64_t axis = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int at, normalize_axis(axis, x->rank()));
    const int64_t n = x->dim(at);
    Shape shape = x->shape();
    if (keep_dims) {
      shape[at] = 1;
    } else {
      shape.erase(at);
    }
    FOLIO_TRY(Tensor * y, run.output(0, DType::kInt64, shape));
    if (y->count() == 0) return Status::ok();
    if (n == 0) return invalid_argument("axis ", axis, " of ", x->shape().to_string(), " is empty");
    const int64_t inner = x->shape().product(at + 1, x->rank());
    const bool known = dispatch(NumericTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x->data<T>();
      int64_t* to = y->data_mut<int64_t>();
      if constexpr (kHasKernels<T>) {
        if (n <= kMostInt32) return find(run, y->count() / inner, n, inner, from, to);
      }
      run.parallel().for_range(y->count(), 1 + 16384 / n, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          to[row] = best_of(rule, from + row / inner * n * inner + row % inner, n, inner);
        }
      });
    });
    return known ? Status::ok() : wrong_type(0, x->dtype());
  }

 private:
  template <typename T>
  void find(OpRun& run, int64_t outer, int64_t n, int64_t inner, const T* x, int64_t* y) const {
    if (inner == 1) {
      run.parallel().for_range(outer, 1 + 16384 / n, [&](int64_t begin, int64_t end) {
        best_of_rows(run.kernels(), rule, end - begin, n, x + begin * n, y + begin);
      });
      return;
    }
    const int64_t strips = (inner + kStrip - 1) / kStrip;
    const int64_t grain = 1 + 16384 / (n * std::min(kStrip, inner));
    run.parallel().for_range(outer * strips, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t from = task % strips * kStrip;
        best_of_columns(rule, n, inner, std::min(kStrip, inner - from),
                        x + task / strips * n * inner + from, y + task / strips * inner + from);
      }
    });
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", 0));
  FOLIO_TRY(const bool keeps, keeps_dims(infer.attrs()));
  std::optional<Dims> dims;
  if (const Dims* x = infer.dims_of(0)) {
    FOLIO_TRY(const int at, normalize_axis(axis, static_cast<int>(x->size())));
    dims = *x;
    if (keeps) {
      (*dims)[static_cast<size_t>(at)] = Dim::of(1);
    } else {
      dims->erase(dims->begin() + at);
    }
  }
  infer.set_tensor(0, DType::kInt64, std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<ArgMax>();
  kernel->rule.is_max = build.node().op_type == "ArgMax";
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", 0));
  FOLIO_TRY(kernel->keep_dims, keeps_dims(build.attrs()));
  FOLIO_TRY(const int64_t last, build.attrs().get_int("select_last_index", 0));
  kernel->rule.last = last != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_arg_max(OpRegistry& registry) {
  OpDef def;
  def.infer = infer;
  def.make = make;
  def.type = "ArgMax";
  registry.add(def);
  def.type = "ArgMin";
  registry.add(def);
}

}  // namespace folio
