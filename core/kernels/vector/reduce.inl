/* Reductions of many rows, or of columns, at once, of floats, doubles and integers. The order in
 * which a row is joined depends on its length only: up to 8 elements one after the other; shorter
 * than 8 vectors by one vector, longer ones by four, whose lanes are then joined half by half. */

/* Vectors of T: kBytes, all lanes, and four of them. Elements are loaded, stored and turned as
 * floats, which moves bits. */
template <typename T, int64_t kBytes>
struct SomeOf {
  typedef T Type __attribute__((vector_size(kBytes)));
};
template <typename T, int64_t kBytes>
using Some = typename SomeOf<T, kBytes>::Type;
template <typename T>
using Whole = Some<T, (int64_t)sizeof(V)>;
template <typename T>
using Quad = Some<T, 4 * (int64_t)sizeof(T)>;

template <typename T>
constexpr bool kIsReal = (T)0.5 != (T)0;
template <typename T>
constexpr int64_t kFloats = (int64_t)(sizeof(T) / sizeof(float)); /* that an element takes */
template <typename T>
constexpr int64_t kSlots = kLanes / kFloats<T>; /* elements of a whole vector */

/* In which integers wrap. */
template <typename T>
struct BitsOf {
  typedef uint32_t Type;
};
template <>
struct BitsOf<double> {
  typedef uint64_t Type;
};
template <>
struct BitsOf<int64_t> {
  typedef uint64_t Type;
};
template <typename T>
using Bits = typename BitsOf<T>::Type;

template <FolioReduce kHow, typename T>
constexpr T reduction_start() {
  if (kHow == kFolioReduceProd) return 1;
  if (kHow != kFolioReduceMax && kHow != kFolioReduceMin) return 0;
  if constexpr (kIsReal<T>) {
    return kHow == kFolioReduceMax ? (T)-__builtin_inf() : (T)__builtin_inf();
  }
  constexpr Bits<T> kTop = (Bits<T>)1 << (8 * sizeof(T) - 1);
  return (T)(kHow == kFolioReduceMax ? kTop : (Bits<T>)(kTop - 1));
}

/* NaN stays, which is what the second operand of the instructions is for. */
template <FolioReduce kHow, typename T, typename S>
VFN S pick_real(S a, S b) {
  constexpr bool kMax = kHow == kFolioReduceMax;
  S best;
  if constexpr (sizeof(S) == sizeof(V) && sizeof(T) == 4) {
    return (S)(kMax ? v_pick_max((V)a, (V)b) : v_pick_min((V)a, (V)b));
  } else if constexpr (sizeof(S) == sizeof(V)) {
    return (S)(kMax ? vd_pick_max((VD)a, (VD)b) : vd_pick_min((VD)a, (VD)b));
  } else if constexpr (sizeof(S) == 16) {
    best = (S)(kMax ? _mm_max_ps((__m128)a, (__m128)b) : _mm_min_ps((__m128)a, (__m128)b));
  } else if constexpr (sizeof(T) == 4) {
    best = (S)(kMax ? _mm256_max_ps((__m256)a, (__m256)b) : _mm256_min_ps((__m256)a, (__m256)b));
  } else {
    best =
        (S)(kMax ? _mm256_max_pd((__m256d)a, (__m256d)b) : _mm256_min_pd((__m256d)a, (__m256d)b));
  }
  return a != a ? a : best;
}

/* Of two results. */
template <FolioReduce kHow, typename T, typename S>
VFN S join(S a, S b) {
  if constexpr (kHow == kFolioReduceMax || kHow == kFolioReduceMin) {
    if constexpr (kIsReal<T>) return pick_real<kHow, T>(a, b);
    if constexpr (kHow == kFolioReduceMax) return a > b ? a : b;
    return a < b ? a : b;
  } else if constexpr (kIsReal<T>) {
    return kHow == kFolioReduceProd ? a * b : a + b;
  } else {
    using Wrapping = Some<Bits<T>, (int64_t)sizeof(S)>;
    if constexpr (kHow == kFolioReduceProd) return (S)((Wrapping)a * (Wrapping)b);
    return (S)((Wrapping)a + (Wrapping)b);
  }
}

template <typename T, typename S>
VFN S add_square(S acc, S x) {
  if constexpr (!kIsReal<T>) {
    using Wrapping = Some<Bits<T>, (int64_t)sizeof(S)>;
    return (S)((Wrapping)acc + (Wrapping)x * (Wrapping)x);
  } else if constexpr (sizeof(S) == sizeof(V) && sizeof(T) == 4) {
    return (S)v_fma((V)x, (V)x, (V)acc);
  } else if constexpr (sizeof(S) == sizeof(V)) {
    return (S)vd_fma((VD)x, (VD)x, (VD)acc);
  } else if constexpr (sizeof(T) == 4) {
    return (S)_mm256_fmadd_ps((__m256)x, (__m256)x, (__m256)acc);
  } else {
    return (S)_mm256_fmadd_pd((__m256d)x, (__m256d)x, (__m256d)acc);
  }
}

/* An element into a result. */
template <FolioReduce kHow, typename T, typename S>
VFN S step(S acc, S x) {
  if constexpr (kHow == kFolioReduceSquares) return add_square<T>(acc, x);
  if constexpr (kHow == kFolioReduceMagnitudes) {
    using AsBits = Some<Bits<T>, (int64_t)sizeof(S)>;
    if constexpr (kIsReal<T>) {
      x = (S)((AsBits)x & ((Bits<T>)-1 >> 1));
    } else {
      x = x < 0 ? (S)-(AsBits)x : x;
    }
  }
  return join<kHow, T>(acc, x);
}

template <typename T>
VFN Whole<T> load_whole(const T* p) {
  return (Whole<T>)v_load((const float*)p);
}
template <typename T>
VFN VM first_slots(int64_t count) {
  return v_first(count * kFloats<T>);
}

template <FolioReduce kHow, typename T>
VFN Quad<T> to_four(Whole<T> a) {
  if constexpr (sizeof(a) == sizeof(Quad<T>)) return (Quad<T>)a;
  using Eight = Some<T, 32>;
  Eight half = (Eight)v_low8((V)a);
  if constexpr (sizeof(a) == 64) half = join<kHow, T>(half, (Eight)v_high8((V)a));
  if constexpr (sizeof(half) == sizeof(Quad<T>)) {
    return (Quad<T>)half;
  } else {
    const __m256 both = (__m256)half;
    return join<kHow, T>((Quad<T>)_mm256_castps256_ps128(both),
                         (Quad<T>)_mm256_extractf128_ps(both, 1));
  }
}
/* The lanes of a, of b, ... joined, side by side. */
template <FolioReduce kHow, typename T>
VFN Quad<T> join_lanes(Quad<T> a, Quad<T> b, Quad<T> c, Quad<T> d) {
  const Quad<T> ab = join<kHow, T>(__builtin_shufflevector(a, b, 0, 1, 4, 5),
                                   __builtin_shufflevector(a, b, 2, 3, 6, 7));
  const Quad<T> cd = join<kHow, T>(__builtin_shufflevector(c, d, 0, 1, 4, 5),
                                   __builtin_shufflevector(c, d, 2, 3, 6, 7));
  return join<kHow, T>(__builtin_shufflevector(ab, cd, 0, 2, 4, 6),
                       __builtin_shufflevector(ab, cd, 1, 3, 5, 7));
}

/* As many short rows as 32 bytes have elements, turned into 8 columns. */
template <typename T>
constexpr int64_t kSide = 32 / (int64_t)sizeof(T);

template <FolioReduce kHow, typename T>
VFN __m256 join_turned(__m256 joined, __m256 r[8], int64_t n) {
  using Side = Some<T, 32>;
  if constexpr (sizeof(T) == 4) {
    turn8x8(r);
  } else {
    turn4x4_b64(r);
    if (n > 4) turn4x4_b64(r + 4);
  }
#pragma GCC unroll 8
  for (int64_t j = 0; j < 8; ++j) {
    if (j < n) joined = (__m256)step<kHow, T>((Side)joined, (Side)r[j]);
  }
  return joined;
}

template <FolioReduce kHow, typename T>
VFN void reduce_short_rows(int64_t rows, int64_t n, const T* x, int64_t x_stride, T* acc) {
  constexpr int64_t kParts = 8 / kSide<T>; /* of 32 bytes, in 8 elements */
  __m256i used[kParts];
  for (int64_t p = 0; p < kParts; ++p) used[p] = first8((n - p * kSide<T>)*kFloats<T>);
  int64_t i = 0;
  /* With eight more rows behind them, 8 elements of each can be read. */
  for (; x_stride > 0 && i + kSide<T> + 8 <= rows; i += kSide<T>) {
    const T* row = x + i * x_stride;
    __m256 r[8];
#pragma GCC unroll 8
    for (int64_t u = 0; u < 8; ++u) {
      r[u] =
          _mm256_loadu_ps((const float*)(row + u % kSide<T> * x_stride + u / kSide<T> * kSide<T>));
    }
    float* to = (float*)(acc + i);
    _mm256_storeu_ps(to, join_turned<kHow, T>(_mm256_loadu_ps(to), r, n));
  }
  /* The last ones are read again in place of those that are not there. */
  for (; i < rows; i += kSide<T>) {
    const int64_t left = rows - i;
    __m256 r[8];
#pragma GCC unroll 8
    for (int64_t u = 0; u < 8; ++u) {
      const int64_t row = u % kSide<T>;
      const T* from = x + (i + (row < left ? row : left - 1)) * x_stride;
      r[u] = _mm256_maskload_ps((const float*)(from + u / kSide<T> * kSide<T>), used[u / kSide<T>]);
    }
    const __m256i kept = first8(left * kFloats<T>);
    float* to = (float*)(acc + i);
    const __m256 before = _mm256_maskload_ps(to, kept);
    _mm256_maskstore_ps(to, kept, join_turned<kHow, T>(before, r, n));
  }
}

/* Up to four results. */
template <FolioReduce kHow, typename T>
VFN void join_results(int64_t count, Quad<T> joined, T* acc) {
  Quad<T> four;
  if (count == 4) {
    __builtin_memcpy(&four, acc, sizeof four);
    four = join<kHow, T>(four, joined);
    __builtin_memcpy(acc, &four, sizeof four);
    return;
  }
  T before[4] = {};
  for (int64_t u = 0; u < count; ++u) before[u] = acc[u];
  __builtin_memcpy(&four, before, sizeof four);
  four = join<kHow, T>(four, joined);
  __builtin_memcpy(before, &four, sizeof four);
  for (int64_t u = 0; u < count; ++u) acc[u] = before[u];
}

/* Bytes ahead that are fetched: a processor that is at work does not see so far by itself. */
constexpr int64_t kRowsAhead = 2048;

/* Four rows at a time, a vector each. */
template <FolioReduce kHow, typename T>
VFN void reduce_middle_rows(int64_t rows, int64_t n, const T* x, int64_t x_stride, T* acc) {
  constexpr int64_t kSize = (int64_t)sizeof(T);
  const int64_t ahead = kRowsAhead / (n * kSize) * x_stride * kSize;
  const Whole<T> start = Whole<T>{} + reduction_start<kHow, T>();
  for (int64_t i = 0; i < rows; i += 4) {
    const int64_t left = rows - i;
    const T* row[4];
    Whole<T> joined[4];
#pragma GCC unroll 4
    for (int64_t u = 0; u < 4; ++u) {
      row[u] = x + (i + (u < left ? u : left - 1)) * x_stride;
      joined[u] = start;
      for (int64_t line = 0; line < n * kSize; line += 64) {
        __builtin_prefetch((const char*)row[u] + ahead + line);
      }
    }
    int64_t j = 0;
    for (; j + kSlots<T> <= n; j += kSlots<T>) {
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) joined[u] = step<kHow, T>(joined[u], load_whole(row[u] + j));
    }
    if (j < n) {
      const VM m = first_slots<T>(n - j);
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        const V part = v_load_masked((const float*)(row[u] + j), m);
        joined[u] = step<kHow, T>(joined[u], (Whole<T>)v_select(m, part, (V)start));
      }
    }
    const Quad<T> four =
        join_lanes<kHow, T>(to_four<kHow, T>(joined[0]), to_four<kHow, T>(joined[1]),
                            to_four<kHow, T>(joined[2]), to_four<kHow, T>(joined[3]));
    join_results<kHow, T>(left < 4 ? left : 4, four, acc + i);
  }
}

/* n elements as four results, element i in the one of i % 4. */
template <FolioReduce kHow, typename T>
VFN Quad<T> join_to_four(int64_t n, const T* x) {
  const Whole<T> start = Whole<T>{} + reduction_start<kHow, T>();
  Whole<T> joined[4] = {start, start, start, start};
  int64_t j = 0;
  for (; j + 4 * kSlots<T> <= n; j += 4 * kSlots<T>) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      const T* some = x + j + u * kSlots<T>;
      __builtin_prefetch((const char*)some + kRowsAhead);
      joined[u] = step<kHow, T>(joined[u], load_whole(some));
    }
  }
  for (; j + kSlots<T> <= n; j += kSlots<T>) {
    joined[0] = step<kHow, T>(joined[0], load_whole(x + j));
  }
  if (j < n) {
    const VM m = first_slots<T>(n - j);
    const V part = v_load_masked((const float*)(x + j), m);
    joined[0] = step<kHow, T>(joined[0], (Whole<T>)v_select(m, part, (V)start));
  }
  return to_four<kHow, T>(
      join<kHow, T>(join<kHow, T>(joined[0], joined[1]), join<kHow, T>(joined[2], joined[3])));
}

template <FolioReduce kHow, typename T>
VFN void reduce_long_row(int64_t n, const T* x, T* acc) {
  const Quad<T> four = join_to_four<kHow, T>(n, x);
  /* Not by way of memory, which keeps a load of what was just written in parts waiting. */
  Quad<T> one = {*acc};
  one = join<kHow, T>(one, join_lanes<kHow, T>(four, four, four, four));
  *acc = one[0];
}

template <FolioReduce kHow, typename T>
static void reduce_rows(int64_t rows, int64_t n, const T* x, int64_t x_stride, T* acc) {
  if (n <= 8) {
    if (n > 0) reduce_short_rows<kHow, T>(rows, n, x, x_stride, acc);
  } else if (n < 8 * kSlots<T>) {
    reduce_middle_rows<kHow, T>(rows, n, x, x_stride, acc);
  } else {
    for (int64_t i = 0; i < rows; ++i) reduce_long_row<kHow, T>(n, x + i * x_stride, acc + i);
  }
}

/* kRows rows while the results of a vector of columns are in a register. */
template <FolioReduce kHow, int kRows, typename T>
VFN void reduce_some_rows(int64_t n, const T* x, int64_t x_stride, T* acc) {
  int64_t j = 0;
  for (; j + kSlots<T> <= n; j += kSlots<T>) {
    Whole<T> joined = load_whole(acc + j);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      joined = step<kHow, T>(joined, load_whole(x + r * x_stride + j));
    }
    v_store((float*)(acc + j), (V)joined);
  }
  if (j < n) {
    const VM m = first_slots<T>(n - j);
    Whole<T> joined = (Whole<T>)v_load_masked((const float*)(acc + j), m);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V part = v_load_masked((const float*)(x + r * x_stride + j), m);
      joined = step<kHow, T>(joined, (Whole<T>)part);
    }
    v_store_masked((float*)(acc + j), m, (V)joined);
  }
}

/* Columns of one vector, whose results stay in a register. */
template <FolioReduce kHow, typename T>
VFN void reduce_narrow_rows(int64_t rows, int64_t n, const T* x, int64_t x_stride, T* acc) {
  const VM m = first_slots<T>(n);
  Whole<T> joined = (Whole<T>)v_load_masked((const float*)acc, m);
  for (int64_t i = 0; i < rows; ++i) {
    const V part = v_load_masked((const float*)(x + i * x_stride), m);
    joined = step<kHow, T>(joined, (Whole<T>)part);
  }
  v_store_masked((float*)acc, m, (V)joined);
}

template <FolioReduce kHow, typename T>
static void reduce_columns(int64_t rows, int64_t n, const T* x, int64_t x_stride, T* acc) {
  if ((n == 2 || n == 4) && x_stride == n && rows > 4) {
    Quad<T> four = join_to_four<kHow, T>(rows * n, x); /* n divides 4 */
    if (n == 2) four = join<kHow, T>(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
    return join_results<kHow, T>(n, four, acc);
  }
  if (n <= kSlots<T>) return reduce_narrow_rows<kHow>(rows, n, x, x_stride, acc);
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) reduce_some_rows<kHow, 4>(n, x + i * x_stride, x_stride, acc);
  for (; i < rows; ++i) reduce_some_rows<kHow, 1>(n, x + i * x_stride, x_stride, acc);
}

template <FolioReduce kHow>
VFN void fill_reduction(FolioKernels* table) {
  table->reduce_rows_f32[kHow] = reduce_rows<kHow, float>;
  table->reduce_columns_f32[kHow] = reduce_columns<kHow, float>;
  table->reduce_rows_f64[kHow] = reduce_rows<kHow, double>;
  table->reduce_columns_f64[kHow] = reduce_columns<kHow, double>;
  table->reduce_rows_s32[kHow] = reduce_rows<kHow, int32_t>;
  table->reduce_columns_s32[kHow] = reduce_columns<kHow, int32_t>;
  table->reduce_rows_s64[kHow] = reduce_rows<kHow, int64_t>;
  table->reduce_columns_s64[kHow] = reduce_columns<kHow, int64_t>;
}

static void fill_reductions(FolioKernels* table) {
  fill_reduction<kFolioReduceSum>(table);
  fill_reduction<kFolioReduceSquares>(table);
  fill_reduction<kFolioReduceMagnitudes>(table);
  fill_reduction<kFolioReduceProd>(table);
  fill_reduction<kFolioReduceMax>(table);
  fill_reduction<kFolioReduceMin>(table);
}
