// CumSum and CumProd: sums and products up to each element of an axis.
//
// Source: ONNX operator spec, CumSum, opsets 11, 14; CumProd, opset 26.
// Shapes: y as x; the axis is input 1, one number.
// Math:   exclusive leaves the element itself out (the first is 0 or 1); reverse starts at the end.
//         The 16-bit formats are carried in float; integers wrap.
// Types:  all numbers; float16 and bfloat16 in float; integers wrap.
#include <algorithm>
#include <concepts>
#include <cstring>

#include "core/ops/op_arithmetic.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Options {
  bool product = false;
  bool exclusive = false;
  bool reverse = false;
};

template <typename T>
struct Unsigned {
  using type = T;
};
template <std::integral T>
struct Unsigned<T> {
  using type = std::make_unsigned_t<T>;
};

// One row of neighbours.
template <typename T, typename F>
void accumulate_row(const Options& options, int64_t n, const T* from, T* to) {
  T sum = options.product ? T{1} : T{0};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = options.reverse ? n - 1 - i : i;
    const T value = from[at];
    if (options.exclusive) to[at] = sum;
    sum = F()(sum, value);
    if (!options.exclusive) to[at] = sum;
  }
}

constexpr int64_t kShortRow = 128;  // floats whose sums stay in registers
constexpr int64_t kStrip = 1024;    // columns of longer rows that are carried before the next ones

// Columns of short rows, sixteen, four or one at a time, whose sums stay in registers: a call of a
// kernel for every row takes longer than the row. L holds one column or four.
template <typename L, bool kProduct, bool kExclusive>
struct Columns {
  static constexpr auto kLanes = static_cast<int64_t>(sizeof(L) / sizeof(float));

  static void carry(const float* from, float* to, L* sum) {
    L value;
    std::memcpy(&value, from, sizeof(L));
    const L next = kProduct ? *sum * value : *sum + value;
    if (kExclusive) std::memcpy(to, sum, sizeof(L));
    if (!kExclusive) std::memcpy(to, &next, sizeof(L));
    *sum = next;
  }

  // `step` is between rows.
  static void carry_one(int64_t n, int64_t step, const float* from, float* to) {
    L sum = kProduct ? L{} + 1 : L{};
    for (; n > 0; --n, from += step, to += step) carry(from, to, &sum);
  }
  static void carry_four(int64_t n, int64_t step, const float* from, float* to) {
    const L start = kProduct ? L{} + 1 : L{};
    L a = start;
    L b = start;
    L c = start;
    L d = start;
    for (; n > 0; --n, from += step, to += step) {
      carry(from, to, &a);
      carry(from + kLanes, to + kLanes, &b);
      carry(from + 2 * kLanes, to + 2 * kLanes, &c);
      carry(from + 3 * kLanes, to + 3 * kLanes, &d);
    }
  }
};

template <bool kProduct, bool kExclusive>
void carry_columns(int64_t n, int64_t step, int64_t count, const float* from, float* to) {
  typedef float Lanes __attribute__((vector_size(16)));
  int64_t c = 0;
  for (; c + 16 <= count; c += 16) {
    Columns<Lanes, kProduct, kExclusive>::carry_four(n, step, from + c, to + c);
  }
  for (; c + 4 <= count; c += 4) {
    Columns<Lanes, kProduct, kExclusive>::carry_one(n, step, from + c, to + c);
  }
  for (; c < count; ++c) {
    Columns<float, kProduct, kExclusive>::carry_one(n, step, from + c, to + c);
  }
}

void accumulate_short_rows(const Options& options, int64_t n, int64_t inner, int64_t count,
                           const float* from, float* to) {
  const auto carry =
      options.product ? (options.exclusive ? carry_columns<true, true> : carry_columns<true, false>)
      : options.exclusive ? carry_columns<false, true>
                          : carry_columns<false, false>;
  const int64_t first = options.reverse ? (n - 1) * inner : 0;
  carry(n, options.reverse ? -inner : inner, count, from + first, to + first);
}

// Each row from the one before: the same sums in the same order.
template <typename T, typename Join>
void accumulate_rows(Join join, const Options& options, int64_t n, int64_t inner, int64_t count,
                     const T* from, T* to) {
  const T start = options.product ? T{1} : T{0};
  const int64_t step = options.reverse ? -inner : inner;
  int64_t at = options.reverse ? (n - 1) * inner : 0;
  if (options.exclusive) {
    std::fill_n(to + at, count, start);
  } else {
    join(count, &start, 0, from + at, 1, to + at);
  }
  for (int64_t i = 1; i < n; ++i, at += step) {
    join(count, to + at, 1, from + at + (options.exclusive ? 0 : step), 1, to + at + step);
  }
}

template <typename T, typename F>
void accumulate(OpRun& run, const Options& options, const Shape& shape, int axis, const T* from,
                T* to) {
  const int64_t n = shape[axis];
  const int64_t inner = shape.product(axis + 1, shape.rank());
  const int64_t width = std::min(inner, kStrip);
  const int64_t strips = (inner + width - 1) / width;
  const int64_t tasks = shape.count() / n / inner * strips;
  run.parallel().for_range(tasks, rows_per_task(n * width), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % strips * width;
      const int64_t first = task / strips * n * inner + column;
      const int64_t count = std::min(width, inner - column);
      const T* x = from + first;
      T* y = to + first;
      if (inner == 1) {
        accumulate_row<T, F>(options, n, x, y);
      } else if constexpr (!std::is_same_v<T, float>) {
        accumulate_rows(binary_row<T, T, T, F>, options, n, inner, count, x, y);
      } else if (inner <= kShortRow) {
        accumulate_short_rows(options, n, inner, count, x, y);
      } else {
        accumulate_rows(run.kernels().binary_f32[F::kSlot], options, n, inner, count, x, y);
      }
    }
  });
}

class Cumulate final : public OpKernel {
 public:
  explicit Cumulate(Options options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> given, run.ints(1));
    if (given.size() != 1) return invalid_argument("axis has ", given.size(), " elements, not 1");
    FOLIO_TRY(const int axis, normalize_axis(given[0], x->rank()));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (y->count() == 0) return Status::ok();
    if (is_half(x->dtype())) {
      return run_in_float(run, *x, nullptr, y, [&](const float* from, const float*, float* to) {
        accumulate_any(run, x->shape(), axis, from, to);
        return Status::ok();
      });
    }
    return dispatch_input(PlainNumericTypes{}, x->dtype(), [&](auto tag) {
      // Integers wrap: those with signs have the bits of those without.
      using T = typename Unsigned<typename decltype(tag)::type>::type;
      accumulate_any(run, x->shape(), axis, reinterpret_cast<const T*>(x->raw()),
                     reinterpret_cast<T*>(y->raw_mut()));
      return Status::ok();
    });
  }

 private:
  template <typename T>
  void accumulate_any(OpRun& run, const Shape& x, int axis, const T* from, T* to) const {
    if (options_.product) {
      accumulate<T, MulFunction>(run, options_, x, axis, from, to);
    } else {
      accumulate<T, AddFunction>(run, options_, x, axis, from, to);
    }
  }

  Options options_;
};

Status infer_cumulate(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_cumulate(OpBuild& build) {
  Options options;
  FOLIO_TRY(const int64_t exclusive, build.attrs().get_int("exclusive", 0));
  FOLIO_TRY(const int64_t reverse, build.attrs().get_int("reverse", 0));
  options.product = build.node().op_type == "CumProd";
  options.exclusive = exclusive != 0;
  options.reverse = reverse != 0;
  return std::unique_ptr<OpKernel>(std::make_unique<Cumulate>(options));
}

}  // namespace

[[gnu::cold]] void register_cum_sum(OpRegistry& registry) {
  OpDef def;
  def.type = "CumSum";
  def.since = 11;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_cumulate;
  def.make = make_cumulate;
  registry.add(def);
  def.type = "CumProd";
  def.since = 26;
  registry.add(def);
}

}  // namespace folio
