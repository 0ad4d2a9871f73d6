// GatherElements, ScatterElements and Scatter: one index for each element.
//
// Source: ONNX operator spec, GatherElements, opsets 11, 13; Scatter, opset 9 (the same as
//         ScatterElements, deprecated in 11); ScatterElements, opsets 11, 13, 16 (reduction), 18
//         (max, min).
// Shapes: indices and updates have x's rank and no dim above x's, except along the axis. Of
//         ScatterElements of domain folio (passes/keep_indices only, of the version that it was)
//         dims of 1 of the indices stand for as many as the updates have.
// Math:   GatherElements: y[i][j][k] = x[indices[i][j][k]][j][k] for axis 0; ScatterElements: y is
//         x, then y[indices[i][j][k]][j][k] meets updates[i][j][k], in order.
// Types:  GatherElements: all types but those of 2 and 4 bits; indices int32, int64.
//         ScatterElements, Scatter: all types but those of 2 and 4 bits, with a reduction all
//         numbers, float16 and bfloat16 in float; indices int32, int64.
// Errors: kInvalidArgument when an index is outside [-n, n), or dims do not fit.
#include <atomic>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/ops/op_registry.h"
#include "core/ops/op_scatter.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

// Rows of an index tensor and where they lie in the data.
struct Rows {
  int rank = 0;  // of what is outside a row
  int64_t count = 0;
  int64_t length = 0;  // indices in a row
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};        // of the data; 0 along the axis
  int64_t step = 0;                      // of the data along the row; 0 when that is the axis
  int64_t index_strides[kMaxRank] = {};  // of the indices
  int64_t index_step = 0;
  int64_t axis_stride = 0;
  int64_t axis_dim = 0;
};

// `all`: the dims of the indices, or what they broadcast to.
Result<Rows> plan_rows(const Tensor& x, const Tensor& indices, const Shape& all, int axis) {
  bool fits = x.rank() == all.rank() && indices.rank() == all.rank() && x.rank() > 0;
  for (int i = 0; fits && i < x.rank(); ++i) {
    fits = (i == axis || all[i] <= x.dim(i)) && (indices.dim(i) == all[i] || indices.dim(i) == 1);
  }
  if (!fits) {
    return invalid_argument("indices are ", indices.shape().to_string(), ", which does not fit ",
                            x.shape().to_string(), " along axis ", axis);
  }
  int64_t strides[kMaxRank];
  int64_t index_strides[kMaxRank];
  row_strides(x.shape(), strides);
  row_strides(indices.shape(), index_strides);
  Rows rows;
  rows.rank = x.rank() - 1;
  rows.length = all[rows.rank];
  rows.count = rows.length == 0 ? 0 : all.count() / rows.length;
  for (int i = 0; i < rows.rank; ++i) {
    rows.dims[i] = all[i];
    rows.strides[i] = i == axis ? 0 : strides[i];
    rows.index_strides[i] = indices.dim(i) == all[i] ? index_strides[i] : 0;
  }
  rows.index_step = indices.dim(rows.rank) == rows.length ? 1 : 0;
  rows.step = axis == rows.rank ? 0 : 1;
  rows.axis_stride = strides[axis];
  rows.axis_dim = x.dim(axis);
  return rows;
}

// All indices as offsets from the first element along the axis.
Result<std::vector<int64_t>> offsets_of(OpRun& run, int i, const Rows& rows) {
  FOLIO_TRY(std::vector<int64_t> indices, run.ints(i));
  for (int64_t& index : indices) {
    const int64_t given = index;
    if (!wrap_index(&index, rows.axis_dim)) {
      return invalid_argument("index ", given, " is outside an axis of ", rows.axis_dim);
    }
    index *= rows.axis_stride;
  }
  return indices;
}

constexpr std::string_view kFolioDomain = "folio";

// Places along the axis that are found at a time, in L1.
constexpr int64_t kPlaces = 128;

// Places of the first indices, four at a time; how many. `outside` gets a sign where one is not in
// [-dim, dim). Written with SSE2, whose vectors have neither comparisons nor signed shifts of 64
// bits: the high halves must be what the signs of the low ones are.
template <typename I>
int64_t find_fours(int64_t n, const I* indices, int64_t dim, int64_t* places, int64_t* outside) {
#if defined(__SSE2__)
  if (dim > int64_t{1} << 30) return 0;
  const auto load = [indices](int64_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(indices + i));
  };
  const __m128i zero = _mm_setzero_si128();
  const __m128i dims = _mm_set1_epi32(static_cast<int32_t>(dim));
  const __m128i last = _mm_set1_epi32(static_cast<int32_t>(dim - 1));
  __m128i wide = zero;
  __m128i signs = zero;
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    __m128i four = load(j);
    if constexpr (sizeof(I) == 8) {
      const __m128 low = _mm_castsi128_ps(four);
      const __m128 high = _mm_castsi128_ps(load(j + 2));
      four = _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88));
      const __m128i over = _mm_castps_si128(_mm_shuffle_ps(low, high, 0xDD));
      wide = _mm_or_si128(wide, _mm_xor_si128(over, _mm_srai_epi32(four, 31)));
    }
    four = _mm_add_epi32(four, _mm_and_si128(_mm_srai_epi32(four, 31), dims));
    signs = _mm_or_si128(signs, _mm_or_si128(four, _mm_sub_epi32(last, four)));
    auto* const to = reinterpret_cast<__m128i*>(places + j);
    _mm_storeu_si128(to, _mm_unpacklo_epi32(four, zero));
    _mm_storeu_si128(to + 1, _mm_unpackhi_epi32(four, zero));
  }
  const bool fit = _mm_movemask_epi8(_mm_cmpeq_epi32(wide, zero)) == 0xFFFF &&
                   _mm_movemask_ps(_mm_castsi128_ps(signs)) == 0;
  if (!fit) *outside = -1;
  return j;
#else
  static_cast<void>(n), static_cast<void>(indices), static_cast<void>(dim);
  static_cast<void>(places), static_cast<void>(outside);
  return 0;
#endif
}

// Indices as places in [0, dim); false where one is not in [-dim, dim). Each is read once: nobody
// may rely on what another reads, as a caller's tensor may change.
template <typename I>
bool find_places(int64_t n, const I* indices, int64_t dim, int64_t* places) {
  int64_t outside = 0;
  for (int64_t j = find_fours(n, indices, dim, places, &outside); j < n; ++j) {
    const auto index = static_cast<int64_t>(indices[j]);
    const uint64_t place =
        static_cast<uint64_t>(index) + static_cast<uint64_t>(index < 0 ? dim : 0);
    outside |= static_cast<int64_t>(place | (static_cast<uint64_t>(dim) - 1 - place));
    places[j] = static_cast<int64_t>(place);
  }
  return outside >= 0;
}

// Elements to[j] = from[..] of n places, made for each size of element: the walk is made once.
using GatherPlaces = void (*)(int64_t n, const int64_t* places, const Rows& rows, const void* from,
                              void* to);

template <typename T>
void gather_places(int64_t n, const int64_t* places, const Rows& rows, const void* data,
                   void* out) {
  const T* const from = static_cast<const T*>(data);
  T* const to = static_cast<T*>(out);
  if (rows.step == 0) {  // along the last axis
#pragma GCC unroll 4
    for (int64_t j = 0; j < n; ++j) to[j] = from[places[j]];
    return;
  }
  const int64_t stride = rows.axis_stride;
#pragma GCC unroll 4
  for (int64_t j = 0; j < n; ++j) to[j] = from[places[j] * stride + j];
}

// What is gathered: elements of `size` bytes.
struct Gathering {
  GatherPlaces call;
  int64_t size;
  const uint8_t* from;
  uint8_t* to;
};

// Whether all indices are inside; else some elements are not written.
template <typename I>
bool gather_all(OpRun& run, const Rows& rows, const I* indices, const Gathering& gathering) {
  const int64_t n = rows.length;
  std::atomic<bool> all_inside = true;
  run.parallel().for_range(rows.count, rows_per_task(n), [&](int64_t begin, int64_t end) {
    int64_t places[kPlaces];
    Odometer<1> at(rows.rank, rows.dims, {rows.strides});
    at.seek(begin);
    for (int64_t row = begin; row < end; ++row, at.advance()) {
      for (int64_t j = 0; j < n; j += kPlaces) {
        const int64_t count = std::min(kPlaces, n - j);
        if (!find_places(count, indices + row * n + j, rows.axis_dim, places)) {
          all_inside.store(false, std::memory_order_relaxed);
          return;
        }
        gathering.call(count, places, rows,
                       gathering.from + (at.offset() + j * rows.step) * gathering.size,
                       gathering.to + (row * n + j) * gathering.size);
      }
    }
  });
  return all_inside.load(std::memory_order_relaxed);
}

class GatherElements final : public OpKernel {
 public:
  explicit GatherElements(int64_t axis) : axis_(axis) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* where, run.tensor(1));
    FOLIO_TRY(const int axis, normalize_axis(axis_, x->rank()));
    FOLIO_TRY(const Rows rows, plan_rows(*x, *where, where->shape(), axis));
    if (where->dtype() != DType::kInt32 && where->dtype() != DType::kInt64) {
      return wrong_type(1, where->dtype());
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), where->shape()));
    if (y->count() == 0) return Status::ok();
    Gathering gathering{};
    FOLIO_RETURN_IF_ERROR(dispatch_move(x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      gathering = {gather_places<T>, static_cast<int64_t>(sizeof(T)),
                   reinterpret_cast<const uint8_t*>(x->data<T>()),
                   reinterpret_cast<uint8_t*>(y->data_mut<T>())};
      return Status::ok();
    }));
    const bool all_inside = where->dtype() == DType::kInt32
                                ? gather_all(run, rows, where->data<int32_t>(), gathering)
                                : gather_all(run, rows, where->data<int64_t>(), gathering);
    if (all_inside) return Status::ok();
    FOLIO_RETURN_IF_ERROR(offsets_of(run, 1, rows).status());  // says which
    return invalid_argument("an index was outside an axis of ", rows.axis_dim);
  }

 private:
  int64_t axis_;
};

// Whether all indices are the first one: a row is scattered, or gathered, as a whole then.
template <typename I>
bool are_same(int64_t n, const I* indices, I first) {
  uint64_t differs = 0;
  for (int64_t j = 0; j < n; ++j) {
    differs |= static_cast<uint64_t>(indices[j]) ^ static_cast<uint64_t>(first);
  }
  return differs == 0;
}

// Updates of a row that are brought in at once, and the elements that they meet: i-th of them
// updates[from + i] and y[to + place * axis_stride + i * step].
struct Meeting {
  int64_t to;
  int64_t from;
  int64_t count;
  const int64_t* places;  // or one for all
  bool is_one;
};

// What is made for each type and reduction: a plain pair, so that the walk is made once.
struct Meet {
  void (*call)(const void* state, const Meeting& meeting);
  const void* state;
};

// What one thread brings in: of rows [begin, end) the columns [from, to).
struct Part {
  int64_t begin, end;
  int64_t from, to;
};

// Whether all indices are inside; else some updates are left out.
template <typename I>
bool meet_part(const Rows& rows, const Part& part, const I* indices, const Meet& meet) {
  int64_t places[kPlaces];
  Odometer<2> at(rows.rank, rows.dims, {rows.strides, rows.index_strides});
  at.seek(part.begin);
  for (int64_t row = part.begin; row < part.end; ++row, at.advance()) {
    for (int64_t j = part.from; j < part.to; j += kPlaces) {
      const int64_t count = std::min(kPlaces, part.to - j);
      const I* const index = indices + at.offset(1) + j * rows.index_step;
      const I first = index[0];
      const bool is_one = rows.index_step == 0 || are_same(count, index, first);
      if (!find_places(is_one ? 1 : count, is_one ? &first : index, rows.axis_dim, places)) {
        return false;
      }
      meet.call(meet.state,
                {at.offset() + j * rows.step, row * rows.length + j, count, places, is_one});
    }
  }
  return true;
}

class ScatterElements final : public OpKernel {
 public:
  ScatterElements(int64_t axis, ScatterReduction reduction, bool broadcasts)
      : axis_(axis), reduction_(reduction), broadcasts_(broadcasts) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* where, run.tensor(1));
    FOLIO_TRY(const Tensor* updates, run.tensor(2, x->dtype()));
    FOLIO_TRY(const int axis, normalize_axis(axis_, x->rank()));
    if (!broadcasts_ && !(updates->shape() == where->shape())) {
      return invalid_argument("updates are ", updates->shape().to_string(), ", indices ",
                              where->shape().to_string());
    }
    FOLIO_TRY(const Rows rows, plan_rows(*x, *where, updates->shape(), axis));
    if (where->dtype() != DType::kInt32 && where->dtype() != DType::kInt64) {
      return wrong_type(1, where->dtype());
    }
    // Before anything is written: y may be a cache of the caller.
    FOLIO_RETURN_IF_ERROR(
        scatter(run, rows, *where, {[](const void*, const Meeting&) {}, nullptr}));
    FOLIO_RETURN_IF_ERROR(copy_to_output(run, 0, *x));
    Tensor* y = &run.outputs()[0].tensor();
    return dispatch_scatter(reduction_, y->dtype(), [&](auto update) {
      using T = typename decltype(update)::Element;
      T* const to = y->template data_mut<T>();
      const T* const from = updates->template data<T>();
      const auto meet = [&](const Meeting& m) {
        T* const all = to + m.to;
        if (m.is_one && rows.step == 1) {
          return update(all + m.places[0] * rows.axis_stride, from + m.from, m.count);
        }
        for (int64_t i = 0; i < m.count; ++i) {
          const int64_t place = m.places[m.is_one ? 0 : i];
          update(all + place * rows.axis_stride + i * rows.step, from + m.from + i, 1);
        }
      };
      const auto call = [](const void* state, const Meeting& m) {
        (*static_cast<const decltype(meet)*>(state))(m);
      };
      return scatter(run, rows, *where, {call, &meet});
    });
  }

 private:
  static Status scatter(OpRun& run, const Rows& rows, const Tensor& where, const Meet& meet) {
    std::atomic<bool> all_inside = true;
    for_each_part(run, rows, [&](const Part& part) {
      const bool inside = where.dtype() == DType::kInt32
                              ? meet_part(rows, part, where.data<int32_t>(), meet)
                              : meet_part(rows, part, where.data<int64_t>(), meet);
      if (!inside) all_inside.store(false, std::memory_order_relaxed);
    });
    if (all_inside.load(std::memory_order_relaxed)) return Status::ok();
    FOLIO_RETURN_IF_ERROR(offsets_of(run, 1, rows).status());  // says which
    return invalid_argument("an index was outside an axis of ", rows.axis_dim);
  }

  // Parts that write to different elements, so that each sees its updates in their order: rows
  // along the last axis, or else columns.
  template <typename Body>
  static void for_each_part(OpRun& run, const Rows& rows, const Body& body) {
    constexpr int64_t kColumns = 16;  // a line of cache, of floats
    const int64_t n = rows.length;
    if (rows.step == 0) {
      run.parallel().for_range(rows.count, rows_per_task(n), [&](int64_t begin, int64_t end) {
        body(Part{begin, end, 0, n});
      });
      return;
    }
    const int64_t columns = std::max(kColumns, rows_per_task(rows.count));
    const int64_t threads = run.parallel().thread_count();
    const int64_t share = (n + threads - 1) / threads;
    run.parallel().for_range(n, std::max(columns, share), [&](int64_t from, int64_t to) {
      body(Part{0, rows.count, from, to});
    });
  }

  int64_t axis_;
  ScatterReduction reduction_;
  bool broadcasts_;
};

Status check_axis(const OpInfer& infer) {
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", 0));
  if (const Dims* x = infer.dims_of(0)) {
    return normalize_axis(axis, static_cast<int>(x->size())).status();
  }
  return Status::ok();
}

Status infer_gather(OpInfer& infer) {
  FOLIO_RETURN_IF_ERROR(check_axis(infer));
  const Dims* where = infer.dims_of(1);
  infer.set_tensor(0, infer.dtype(0), where ? std::optional<Dims>(*where) : std::nullopt);
  return Status::ok();
}

Status infer_scatter(OpInfer& infer) {
  FOLIO_RETURN_IF_ERROR(check_axis(infer));
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_gather(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", 0));
  return std::unique_ptr<OpKernel>(std::make_unique<GatherElements>(axis));
}

Result<std::unique_ptr<OpKernel>> make_scatter(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", 0));
  FOLIO_TRY(const ScatterReduction reduction, scatter_reduction(build.attrs(), build.version()));
  build.may_overwrite(0);
  const bool broadcasts = build.node().domain == kFolioDomain;
  return std::unique_ptr<OpKernel>(std::make_unique<ScatterElements>(axis, reduction, broadcasts));
}

}  // namespace

[[gnu::cold]] void register_gather_elements(OpRegistry& registry) {
  OpDef def;
  def.type = "GatherElements";
  def.keeps_half = true;
  def.since = 11;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_gather;
  def.make = make_gather;
  registry.add(def);
  def.type = "ScatterElements";
  def.min_inputs = def.max_inputs = 3;
  def.in_place = {0, -1, -1};
  def.one_type = 0b101;
  def.infer = infer_scatter;
  def.make = make_scatter;
  registry.add(def);
  OpDef own = def;
  own.domain = kFolioDomain;
  registry.add(own);
  def.type = "Scatter";
  def.keeps_half = false;
  def.since = 9;
  registry.add(def);
}

}  // namespace folio
