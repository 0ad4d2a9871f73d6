#include "core/ops/op_joins.h"

#include <bit>
#include <limits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace folio {
namespace {

constexpr int64_t kStage = 1024;     // elements that are staged at a time
constexpr int64_t kWideBytes = 256;  // of columns that keep a kernel busy
constexpr int64_t kShort = 128;      // rows of fewer elements are joined several at a time
constexpr int64_t kMerged = 16;      // results that are merged row by row

// As std::fill_n; of a constant number compilers at -O2 make vectors.
template <typename T>
void fill(T* to, int64_t n, T value) {
  constexpr int64_t kBlock = 16;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int64_t u = 0; u < kBlock; ++u) to[i + u] = value;
  }
  for (; i < n; ++i) to[i] = value;
}

// ---------------------------------------------------------------- the walk

template <typename T>
class Walk {
 public:
  explicit Walk(const ReduceJob<T>& job) : job_(job) {}

  // Outputs [begin, end) of a plan whose innermost dim is reduced.
  void reduce_rows(int64_t begin, int64_t end, T* acc) {
    const ReducePlan& plan = job_.plan;
    const int last = plan.kept.rank - 1;
    const int64_t side = last < 0 ? 1 : plan.kept.dims[last];
    const int64_t stride = last < 0 ? 0 : plan.kept.strides[last];
    for (int64_t o = begin; o < end;) {
      const int64_t count = std::min({end - o, side - o % side, kStage});
      T* out = acc + o;
      fill(out, count, job_.joins.start);
      for_each_offset(plan.reduced, plan.kept.offset(o),
                      [&](int64_t at) { rows(count, plan.inner, at, stride, out, o); });
      o += count;
    }
  }

  // Columns [from, from + n) of position o of a plan whose innermost dim is kept.
  void reduce_columns(int64_t o, int64_t from, int64_t n, T* acc) {
    const ReducePlan& plan = job_.plan;
    const int last = plan.reduced.rank - 1;
    const int64_t count = last < 0 ? plan.reduced.count : plan.reduced.dims[last];
    const int64_t stride = last < 0 ? 0 : plan.reduced.strides[last];
    ReduceLoop outer = plan.reduced;
    if (last >= 0) outer.rank = last;
    if (last >= 0) outer.count = count == 0 ? 0 : plan.reduced.count / count;
    const int64_t first = o * plan.inner + from;
    T* out = acc + first;
    fill(out, n, job_.joins.start);
    const int64_t fold =
        n * 2 <= kWide && stride == n && !kernel_folds(n)
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
  static constexpr int64_t kWide = kWideBytes / static_cast<int64_t>(sizeof(T));

  // Whether joins.columns itself has several rows of so few columns in a vector. (Shifts are
  // subtracted row by row: they want wide ones.)
  bool kernel_folds(int64_t n) const {
    return sizeof(T) >= 4 && (n == 2 || n == 4) && !job_.shifts;
  }
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
  void raise(int64_t rows, int64_t n, const T* shifts, bool by_row) {
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

  void rows(int64_t count, int64_t n, int64_t at, int64_t stride, T* acc, int64_t o) {
    if (n == 0) return;
    if (!is_staged()) return job_.joins.rows(count, n, direct(at), stride, acc);
    const T* shifts = job_.shifts ? job_.shifts + o : nullptr;
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
  void columns(int64_t count, int64_t n, int64_t at, int64_t stride, T* acc, const T* shifts) {
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
  void folded(int64_t count, int64_t n, int64_t fold, int64_t at, T* acc, int64_t first) {
    alignas(64) T wide[kWide];  // where stores and the loads of what they wrote cross no lines
    T shifts[kWide];
    fill(wide, fold * n, job_.joins.start);
    if (job_.shifts) {
      for (int64_t i = 0; i < fold * n; ++i) shifts[i] = job_.shifts[first + i % n];
    }
    const T* given = job_.shifts ? shifts : nullptr;
    const int64_t turns = count / fold;
    const int64_t left = count % fold;
    columns(turns, fold * n, at, fold * n, wide, given);
    if (left > 0) columns(1, left * n, at + turns * fold * n, 0, wide, given);
    int64_t rows = fold;
    for (; rows > 1 && rows * n > kMerged; rows /= 2) {
      job_.joins.merge(1, rows / 2 * n, wide + rows / 2 * n, 0, wide);
    }
    job_.joins.merge(rows, n, wide, n, acc);
  }

  const ReduceJob<T>& job_;
  T buffer_[kStage];  // NOLINT: written before it is read
};

}  // namespace

template <typename T>
void reduce_elements(Parallel& parallel, const ReduceJob<T>& job, T* acc) {
  const ReducePlan& plan = job.plan;
  const int64_t per_output = std::max<int64_t>(1, plan.reduced_count);
  if (plan.inner_reduced) {
    // Several rows at a time where they are short or have parts elsewhere.
    const int64_t least = plan.reduced.rank > 0 || plan.inner < kShort ? 8 : 1;
    const int64_t grain = std::max(least, kElementGrain / per_output);
    parallel.for_range(plan.kept.count, grain, [&](int64_t begin, int64_t end) {
      Walk<T>(job).reduce_rows(begin, end, acc);
    });
    return;
  }
  const int64_t blocks = (plan.inner + kStage - 1) / kStage;
  const int64_t per_block = per_output * std::min(kStage, std::max<int64_t>(1, plan.inner));
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, per_block));
  parallel.for_range(plan.kept.count * blocks, grain, [&](int64_t begin, int64_t end) {
    Walk<T> walk(job);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t from = task % blocks * kStage;
      walk.reduce_columns(task / blocks, from, std::min(kStage, plan.inner - from), acc);
    }
  });
}

template void reduce_elements(Parallel&, const ReduceJob<float>&, float*);
template void reduce_elements(Parallel&, const ReduceJob<double>&, double*);
template void reduce_elements(Parallel&, const ReduceJob<uint8_t>&, uint8_t*);
template void reduce_elements(Parallel&, const ReduceJob<int32_t>&, int32_t*);
template void reduce_elements(Parallel&, const ReduceJob<int64_t>&, int64_t*);

namespace {

template <typename T, typename Slot>
Joins<T> joins_of(const Slot* rows, const Slot* columns, FolioReduce how) {
  using Limits = std::numeric_limits<T>;
  Joins<T> joins{rows[how], columns[how], columns[how], T{0}};
  if (how == kFolioReduceProd) {
    joins.start = T{1};
  } else if (how == kFolioReduceMax) {
    joins.start = Limits::has_infinity ? -Limits::infinity() : Limits::min();
  } else if (how == kFolioReduceMin) {
    joins.start = Limits::has_infinity ? Limits::infinity() : Limits::max();
  } else {
    joins.merge = columns[kFolioReduceSum];
  }
  return joins;
}

// ---------------------------------------------------------------- extremes of bytes

// Every x86-64 CPU has them for 16 unsigned bytes at a time, and compilers at -O2 find them in
// loops of a constant length.
template <bool kMax>
uint8_t extreme(uint8_t a, uint8_t b) {
  return kMax ? std::max(a, b) : std::min(a, b);
}

template <bool kMax, int64_t kCount>
void join_block(int64_t rows, const uint8_t* __restrict__ x, int64_t stride,
                uint8_t* __restrict__ acc) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride) {
    for (int64_t u = 0; u < kCount; ++u) {
      const uint8_t both = extreme<kMax>(x[u], x[stride + u]);
      const uint8_t others = extreme<kMax>(x[2 * stride + u], x[3 * stride + u]);
      acc[u] = extreme<kMax>(acc[u], extreme<kMax>(both, others));
    }
  }
  for (; i < rows; ++i, x += stride) {
    for (int64_t u = 0; u < kCount; ++u) acc[u] = extreme<kMax>(acc[u], x[u]);
  }
}

// An element that is joined twice changes nothing: the last block overlaps the one before.
template <bool kMax>
void join_byte_columns(int64_t rows, int64_t n, const uint8_t* x, int64_t stride, uint8_t* acc) {
  constexpr int64_t kMany = 64;
  constexpr int64_t kFew = 16;
  int64_t j = 0;
  for (; j + kMany <= n; j += kMany) join_block<kMax, kMany>(rows, x + j, stride, acc + j);
  for (; j + kFew <= n; j += kFew) join_block<kMax, kFew>(rows, x + j, stride, acc + j);
  if (j < n && n >= kFew) {
    join_block<kMax, kFew>(rows, x + n - kFew, stride, acc + n - kFew);
  } else {
    for (; j < n; ++j) join_block<kMax, 1>(rows, x + j, stride, acc + j);
  }
}

#if defined(__SSE2__)
__m128i load_bytes(const uint8_t* x) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
}
template <bool kMax>
__m128i extremes(__m128i a, __m128i b) {
  return kMax ? _mm_max_epu8(a, b) : _mm_min_epu8(a, b);
}

// Of n >= 16 * kVectors.
template <bool kMax, int kVectors>
__m128i join_vectors(int64_t n, const uint8_t* x) {
  constexpr int64_t kLanes = 16;
  __m128i best[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) best[v] = load_bytes(x + v * kLanes);
  const auto join = [&](const uint8_t* from) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      best[v] = extremes<kMax>(best[v], load_bytes(from + v * kLanes));
    }
  };
  for (int64_t j = kVectors * kLanes; j + kVectors * kLanes <= n; j += kVectors * kLanes)
    join(x + j);
  join(x + n - kVectors * kLanes);
#pragma GCC unroll 4
  for (int v = 1; v < kVectors; ++v) best[0] = extremes<kMax>(best[0], best[v]);
  return best[0];
}

// Of n >= 16.
template <bool kMax>
uint8_t join_long_row(int64_t n, const uint8_t* x) {
  __m128i best = n < 64 ? join_vectors<kMax, 1>(n, x) : join_vectors<kMax, 4>(n, x);
  best = extremes<kMax>(best, _mm_srli_si128(best, 8));
  best = extremes<kMax>(best, _mm_srli_si128(best, 4));
  best = extremes<kMax>(best, _mm_srli_si128(best, 2));
  best = extremes<kMax>(best, _mm_srli_si128(best, 1));
  return static_cast<uint8_t>(_mm_cvtsi128_si32(best));
}
#endif

template <bool kMax>
uint8_t join_byte_row(int64_t n, const uint8_t* x, uint8_t best) {
#if defined(__SSE2__)
  if (n >= 16) return extreme<kMax>(best, join_long_row<kMax>(n, x));
#endif
  for (int64_t j = 0; j < n; ++j) best = extreme<kMax>(best, x[j]);
  return best;
}

template <bool kMax>
void join_byte_rows(int64_t rows, int64_t n, const uint8_t* x, int64_t stride, uint8_t* acc) {
  for (int64_t i = 0; i < rows; ++i) acc[i] = join_byte_row<kMax>(n, x + i * stride, acc[i]);
}

}  // namespace

template <>
Joins<uint8_t> kernel_joins(const FolioKernels& /*kernels*/, FolioReduce how) {
  if (how == kFolioReduceMin) {
    return {join_byte_rows<false>, join_byte_columns<false>, join_byte_columns<false>, 0xFF};
  }
  return {join_byte_rows<true>, join_byte_columns<true>, join_byte_columns<true>, 0};
}
template <>
Joins<float> kernel_joins(const FolioKernels& kernels, FolioReduce how) {
  return joins_of<float>(kernels.reduce_rows_f32, kernels.reduce_columns_f32, how);
}
template <>
Joins<double> kernel_joins(const FolioKernels& kernels, FolioReduce how) {
  return joins_of<double>(kernels.reduce_rows_f64, kernels.reduce_columns_f64, how);
}
template <>
Joins<int32_t> kernel_joins(const FolioKernels& kernels, FolioReduce how) {
  return joins_of<int32_t>(kernels.reduce_rows_s32, kernels.reduce_columns_s32, how);
}
template <>
Joins<int64_t> kernel_joins(const FolioKernels& kernels, FolioReduce how) {
  return joins_of<int64_t>(kernels.reduce_rows_s64, kernels.reduce_columns_s64, how);
}

}  // namespace folio
