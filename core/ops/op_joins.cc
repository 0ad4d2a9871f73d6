#include "core/ops/op_joins.h"

#include <bit>
#include <cstring>
#include <limits>

namespace folio {
namespace {

constexpr int64_t kStage = 1024;  // elements that are staged at a time
constexpr int64_t kWide = 128;    // columns that keep a kernel busy
constexpr int64_t kLanes = 8;     // results side by side, which compilers turn into vectors

template <typename A>
A add(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) return a + b;
  return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename A>
A multiply(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) return a * b;
  return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Two results. Comparisons alone lose a NaN: see `doubts`.
template <FolioReduce kHow, typename A>
A join(A a, A b) {
  if constexpr (kHow == kFolioReduceProd) return multiply(a, b);
  if constexpr (kHow == kFolioReduceMax) return b > a ? b : a;
  if constexpr (kHow == kFolioReduceMin) return b < a ? b : a;
  return add(a, b);
}
template <FolioReduce kHow, typename A>
A step(A acc, A x) {
  if constexpr (kHow == kFolioReduceSquares) return add(acc, multiply(x, x));
  if constexpr (kHow == kFolioReduceMagnitudes) {
    return add(acc, x < A{0} ? multiply(x, static_cast<A>(-1)) : x);
  }
  return join<kHow>(acc, x);
}

template <FolioReduce kHow, typename A>
constexpr A start_of() {
  using Limits = std::numeric_limits<A>;
  if (kHow == kFolioReduceProd) return A{1};
  if (kHow == kFolioReduceMax) return Limits::has_infinity ? -Limits::infinity() : Limits::min();
  if (kHow == kFolioReduceMin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return A{0};
}

// Extremes of floats: sums of x * 0 are NaN where an x is, or infinite; then it is looked for.
template <FolioReduce kHow, typename A>
constexpr bool kDoubts = std::is_floating_point_v<A> &&
                         (kHow == kFolioReduceMax || kHow == kFolioReduceMin);

template <typename A>
struct WrappingType {
  using type = A;
};
template <>
struct WrappingType<int32_t> {
  using type = uint32_t;
};
template <>
struct WrappingType<int64_t> {
  using type = uint64_t;
};

// kLanes results. Elements that are results' type are kept as vectors of 16 bytes: of a plain array
// compilers at -O2 keep each sum in memory.
template <typename T, typename A>
struct Lanes {
  A value[kLanes];

  void fill(A with) { std::fill_n(value, kLanes, with); }
  void load(const T* x) { std::copy_n(x, kLanes, value); }
  void store(A* to) const { std::copy_n(value, kLanes, to); }
  template <FolioReduce kHow>
  void take(const T* x) {
    for (int64_t u = 0; u < kLanes; ++u) value[u] = step<kHow, A>(value[u], static_cast<A>(x[u]));
  }
  void doubt(const T*) {}
};

template <typename A>
struct Lanes<A, A> {
  typedef A Some __attribute__((vector_size(16)));
  // In which arithmetic wraps.
  using Wraps = typename WrappingType<A>::type;
  typedef Wraps Wrapping __attribute__((vector_size(16)));
  static constexpr int64_t kEach = 16 / sizeof(A);
  static constexpr int64_t kCount = kLanes / kEach;
  Some value[kCount];

  static Some at(const A* x, int64_t u) {
    Some some;
    std::memcpy(&some, x + u * kEach, sizeof some);
    return some;
  }
  void fill(A with) {
    for (int64_t u = 0; u < kCount; ++u) value[u] = Some{} + with;
  }
  void load(const A* x) {
    for (int64_t u = 0; u < kCount; ++u) value[u] = at(x, u);
  }
  void store(A* to) const { std::memcpy(to, value, sizeof value); }
  template <FolioReduce kHow>
  void take(const A* x) {
#pragma GCC unroll 4
    for (int64_t u = 0; u < kCount; ++u) {
      const Some each = at(x, u);
      Some& to = value[u];
      const Wrapping a = (Wrapping)to;
      const Wrapping b = (Wrapping)each;
      if constexpr (kHow == kFolioReduceProd) {
        to = (Some)(a * b);
      } else if constexpr (kHow == kFolioReduceMax) {
        to = each > to ? each : to;
      } else if constexpr (kHow == kFolioReduceMin) {
        to = each < to ? each : to;
      } else if constexpr (kHow == kFolioReduceSquares) {
        to = (Some)(a + b * b);
      } else if constexpr (kHow == kFolioReduceMagnitudes) {
        to = (Some)(a + (each < 0 ? -b : b));
      } else {
        to = (Some)(a + b);
      }
    }
  }
  void doubt(const A* x) {
#pragma GCC unroll 4
    for (int64_t u = 0; u < kCount; ++u) value[u] += at(x, u) * 0;
  }
};

template <FolioReduce kHow, typename T, typename A>
A join_row(int64_t n, const T* x, A acc) {
  Lanes<T, A> lanes;
  Lanes<T, A> doubts;
  lanes.fill(start_of<kHow, A>());
  doubts.fill(A{0});
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    lanes.template take<kHow>(x + j);
    if constexpr (kDoubts<kHow, A>) doubts.doubt(x + j);
  }
  A part[kLanes];
  A lost[kLanes];
  lanes.store(part);
  doubts.store(lost);
  for (; j < n; ++j) {
    const A value = static_cast<A>(x[j]);
    part[0] = step<kHow, A>(part[0], value);
    if constexpr (kDoubts<kHow, A>) lost[0] += value * 0;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t u = 0; u < half; ++u) {
      part[u] = join<kHow>(part[u], part[u + half]);
      lost[u] += lost[u + half];
    }
  }
  if constexpr (kDoubts<kHow, A>) {
    if (acc != acc) return acc;
    if (lost[0] != 0) {
      for (j = 0; j < n; ++j) {
        if (x[j] != x[j]) return static_cast<A>(x[j]);
      }
    }
  }
  return join<kHow>(acc, part[0]);
}

template <FolioReduce kHow, typename T, typename A>
void join_rows(int64_t rows, int64_t n, const T* x, int64_t stride, A* acc) {
  for (int64_t i = 0; i < rows; ++i) acc[i] = join_row<kHow>(n, x + i * stride, acc[i]);
}

// One column, with care for NaN.
template <FolioReduce kHow, typename T, typename A>
A join_column(int64_t rows, const T* x, int64_t stride, A acc) {
  for (int64_t i = 0; i < rows; ++i) {
    const A value = static_cast<A>(x[i * stride]);
    if (kDoubts<kHow, A> && (acc != acc || value != value)) {
      acc = acc != acc ? acc : value;
    } else {
      acc = step<kHow, A>(acc, value);
    }
  }
  return acc;
}

template <FolioReduce kHow, typename T, typename A>
void join_columns(int64_t rows, int64_t n, const T* x, int64_t stride, A* acc) {
  constexpr int64_t kRows = 8;  // while a result is in a register
  for (int64_t i = 0; i < rows; i += kRows) {
    const int64_t count = std::min(kRows, rows - i);
    const T* from = x + i * stride;
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      Lanes<T, A> lanes;
      if constexpr (std::is_same_v<T, A>) {
        lanes.load(acc + j);
      } else {
        std::copy_n(acc + j, kLanes, lanes.value);
      }
      Lanes<T, A> doubts;
      doubts.fill(A{0});
      for (int64_t r = 0; r < count; ++r) {
        lanes.template take<kHow>(from + r * stride + j);
        if constexpr (kDoubts<kHow, A>) doubts.doubt(from + r * stride + j);
      }
      A doubt = 0;
      if constexpr (kDoubts<kHow, A>) {
        A lost[kLanes];
        doubts.store(lost);
        for (int64_t u = 0; u < kLanes; ++u) doubt += lost[u] + acc[j + u] * 0;
      }
      if (doubt == 0) {
        lanes.store(acc + j);
      } else {
        for (int64_t u = 0; u < kLanes; ++u) {
          acc[j + u] = join_column<kHow>(count, from + j + u, stride, acc[j + u]);
        }
      }
    }
    for (; j < n; ++j) acc[j] = join_column<kHow>(count, from + j, stride, acc[j]);
  }
}

template <FolioReduce kHow, typename T, typename A>
Joins<T, A> joins_of() {
  constexpr bool kPicks =
      kHow == kFolioReduceMax || kHow == kFolioReduceMin || kHow == kFolioReduceProd;
  return {join_rows<kHow, T, A>,
          join_columns<kHow, T, A>,
          join_columns < kPicks ? kHow : kFolioReduceSum,
          A,
          A >,
          start_of<kHow, A>()};
}

template <typename T, typename A>
Joins<T, A> sum_joins(FolioReduce how) {
  switch (how) {
    case kFolioReduceSquares:
      return joins_of<kFolioReduceSquares, T, A>();
    case kFolioReduceMagnitudes:
      return joins_of<kFolioReduceMagnitudes, T, A>();
    case kFolioReduceProd:
      return joins_of<kFolioReduceProd, T, A>();
    default:
      return joins_of<kFolioReduceSum, T, A>();
  }
}
template <typename A>
Joins<A, A> extreme_joins(FolioReduce how) {
  return how == kFolioReduceMax ? joins_of<kFolioReduceMax, A, A>()
                                : joins_of<kFolioReduceMin, A, A>();
}
bool is_extreme(FolioReduce how) { return how == kFolioReduceMax || how == kFolioReduceMin; }

// ---------------------------------------------------------------- the walk

template <typename T, typename A>
class Walk {
 public:
  explicit Walk(const ReduceJob<T, A>& job) : job_(job) {}

  // Outputs [begin, end) of a plan whose innermost dim is reduced.
  void reduce_rows(int64_t begin, int64_t end, A* acc) {
    const ReducePlan& plan = job_.plan;
    const int last = plan.kept.rank - 1;
    const int64_t side = last < 0 ? 1 : plan.kept.dims[last];
    const int64_t stride = last < 0 ? 0 : plan.kept.strides[last];
    for (int64_t o = begin; o < end;) {
      const int64_t count = std::min({end - o, side - o % side, kStage});
      A* out = acc + o;
      std::fill_n(out, count, job_.joins.start);
      for_each_offset(plan.reduced, plan.kept.offset(o),
                      [&](int64_t at) { rows(count, plan.inner, at, stride, out, o); });
      o += count;
    }
  }

  // Columns [from, from + n) of position o of a plan whose innermost dim is kept.
  void reduce_columns(int64_t o, int64_t from, int64_t n, A* acc) {
    const ReducePlan& plan = job_.plan;
    const int last = plan.reduced.rank - 1;
    const int64_t count = last < 0 ? plan.reduced.count : plan.reduced.dims[last];
    const int64_t stride = last < 0 ? 0 : plan.reduced.strides[last];
    ReduceLoop outer = plan.reduced;
    if (last >= 0) outer.rank = last;
    if (last >= 0) outer.count = count == 0 ? 0 : plan.reduced.count / count;
    const int64_t first = o * plan.inner + from;
    A* out = acc + first;
    std::fill_n(out, n, job_.joins.start);
    const int64_t fold =
        n * 4 <= kWide && stride == n
            ? static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kWide / n)))
            : 1;
    for_each_offset(outer, plan.kept.offset(o) + from, [&](int64_t at) {
      if (fold > 1 && count >= 2 * fold) {
        folded(count, n, fold, at, out, first);
      } else {
        columns(count, n, at, stride, out, job_.shifts ? job_.shifts + first : nullptr);
      }
    });
  }

 private:
  bool is_staged() const { return job_.stage || job_.shifts; }
  const T* direct(int64_t at) const { return static_cast<const T*>(job_.x) + at; }

  // Rows of x that stand from `at` on as T in the buffer, one behind the other.
  void load(int64_t rows, int64_t n, int64_t at, int64_t stride) {
    const int64_t calls = stride == n ? 1 : rows;
    const int64_t each = stride == n ? rows * n : n;
    for (int64_t i = 0; i < calls; ++i) {
      if (job_.stage) {
        job_.stage(job_.kernels, job_.x, at + i * stride, each, buffer_ + i * each);
      } else {
        std::copy_n(direct(at + i * stride), each, buffer_ + i * each);
      }
    }
  }
  // buffer = exp(buffer - shift), the shift of a row or of each column.
  void raise(int64_t rows, int64_t n, const A* shifts, bool by_row) {
    if (!job_.shifts) return;
    if constexpr (std::is_same_v<T, float>) {
      const FolioKernels& kernels = job_.kernels;
      for (int64_t i = 0; i < rows; ++i) {
        T* row = buffer_ + i * n;
        kernels.binary_f32[kFolioSub](n, row, 1, by_row ? shifts + i : shifts, by_row ? 0 : 1, row);
      }
      kernels.unary_f32[kFolioExp](rows * n, buffer_, buffer_);
    } else if constexpr (std::is_same_v<T, double>) {
      for (int64_t i = 0; i < rows * n; ++i) {
        buffer_[i] = std::exp(buffer_[i] - shifts[by_row ? i / n : i % n]);
      }
    }
  }

  void rows(int64_t count, int64_t n, int64_t at, int64_t stride, A* acc, int64_t o) {
    if (n == 0) return;
    if (!is_staged()) return job_.joins.rows(count, n, direct(at), stride, acc);
    const A* shifts = job_.shifts ? job_.shifts + o : nullptr;
    const int64_t most = std::max<int64_t>(1, kStage / n);
    for (int64_t i = 0; i < count; i += most) {
      const int64_t together = std::min(most, count - i);
      for (int64_t j = 0; j < n; j += kStage) {
        const int64_t piece = std::min(kStage, n - j);
        load(together, piece, at + i * stride + j, stride);
        raise(together, piece, shifts ? shifts + i : nullptr, true);
        job_.joins.rows(together, piece, buffer_, piece, acc + i);
      }
    }
  }

  // n <= kStage.
  void columns(int64_t count, int64_t n, int64_t at, int64_t stride, A* acc, const A* shifts) {
    if (!is_staged()) return job_.joins.columns(count, n, direct(at), stride, acc);
    const int64_t most = kStage / n;
    for (int64_t i = 0; i < count; i += most) {
      const int64_t together = std::min(most, count - i);
      load(together, n, at + i * stride, stride);
      raise(together, n, shifts, false);
      job_.joins.columns(together, n, buffer_, n, acc);
    }
  }

  // Few columns: `fold` rows, a power of two, as one, whose results are merged half by half.
  void folded(int64_t count, int64_t n, int64_t fold, int64_t at, A* acc, int64_t first) {
    A wide[kWide];
    A shifts[kWide];
    std::fill_n(wide, fold * n, job_.joins.start);
    if (job_.shifts) {
      for (int64_t i = 0; i < fold * n; ++i) shifts[i] = job_.shifts[first + i % n];
    }
    const A* given = job_.shifts ? shifts : nullptr;
    const int64_t turns = count / fold;
    const int64_t left = count % fold;
    columns(turns, fold * n, at, fold * n, wide, given);
    if (left > 0) columns(1, left * n, at + turns * fold * n, 0, wide, given);
    for (int64_t half = fold / 2; half > 0; half /= 2) {
      job_.joins.merge(1, half * n, wide + half * n, 0, wide);
    }
    job_.joins.merge(1, n, wide, 0, acc);
  }

  const ReduceJob<T, A>& job_;
  T buffer_[kStage];  // NOLINT: written before it is read
};

}  // namespace

template <typename T, typename A>
void reduce_elements(Parallel& parallel, const ReduceJob<T, A>& job, A* acc) {
  const ReducePlan& plan = job.plan;
  const int64_t per_output = std::max<int64_t>(1, plan.reduced_count);
  if (plan.inner_reduced) {
    // Several rows at a time where they are short or have parts elsewhere.
    const int64_t least = plan.reduced.rank > 0 || plan.inner < kWide ? 8 : 1;
    const int64_t grain = std::max(least, kElementGrain / per_output);
    parallel.for_range(plan.kept.count, grain, [&](int64_t begin, int64_t end) {
      Walk<T, A>(job).reduce_rows(begin, end, acc);
    });
    return;
  }
  const int64_t blocks = (plan.inner + kStage - 1) / kStage;
  const int64_t per_block = per_output * std::min(kStage, std::max<int64_t>(1, plan.inner));
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, per_block));
  parallel.for_range(plan.kept.count * blocks, grain, [&](int64_t begin, int64_t end) {
    Walk<T, A> walk(job);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t from = task % blocks * kStage;
      walk.reduce_columns(task / blocks, from, std::min(kStage, plan.inner - from), acc);
    }
  });
}

template void reduce_elements(Parallel&, const ReduceJob<float, float>&, float*);
template void reduce_elements(Parallel&, const ReduceJob<double, double>&, double*);
template void reduce_elements(Parallel&, const ReduceJob<int32_t, int32_t>&, int32_t*);
template void reduce_elements(Parallel&, const ReduceJob<int32_t, int64_t>&, int64_t*);
template void reduce_elements(Parallel&, const ReduceJob<int64_t, int64_t>&, int64_t*);

Joins<float, float> float_joins(const FolioKernels& kernels, FolioReduce how) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const bool is_sum = how != kFolioReduceProd && !is_extreme(how);
  return {kernels.reduce_rows_f32[how], kernels.reduce_columns_f32[how],
          kernels.reduce_columns_f32[is_sum ? kFolioReduceSum : how],
          how == kFolioReduceProd  ? 1.0F
          : how == kFolioReduceMax ? -kInf
          : how == kFolioReduceMin ? kInf
                                   : 0.0F};
}
Joins<double, double> double_joins(FolioReduce how) {
  return is_extreme(how) ? extreme_joins<double>(how) : sum_joins<double, double>(how);
}
Joins<int32_t, int32_t> int32_joins(FolioReduce how) { return extreme_joins<int32_t>(how); }
Joins<int32_t, int64_t> wide_joins(FolioReduce how) { return sum_joins<int32_t, int64_t>(how); }
Joins<int64_t, int64_t> int64_joins(FolioReduce how) {
  return is_extreme(how) ? extreme_joins<int64_t>(how) : sum_joins<int64_t, int64_t>(how);
}

}  // namespace folio
