// ArgMax and ArgMin.
//
// Source: ONNX operator spec, opsets 1, 11, 12 (select_last_index), 13.
// Shapes: x [outer, n, inner] -> y [outer, 1 or nothing, inner] int64.
// Types:  all numeric types. A NaN is never larger or smaller: it wins only where it stands first.
#include <algorithm>
#include <cstring>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class ArgMax final : public OpKernel {
 public:
  bool is_max = true;
  bool last = false;
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
      if constexpr (std::is_same_v<T, float>) {
        if (n <= kMostInt32) return find_floats(run, y->count() / inner, n, inner, from, to);
      }
      run.parallel().for_range(y->count(), 1 + 16384 / n, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          to[row] = best(from + row / inner * n * inner + row % inner, n, inner);
        }
      });
    });
    return known ? Status::ok() : wrong_type(0, x->dtype());
  }

 private:
  void find_floats(OpRun& run, int64_t outer, int64_t n, int64_t inner, const float* x,
                   int64_t* y) const {
    if (inner == 1) {
      run.parallel().for_range(outer, 1 + 16384 / n, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          y[row] = best_of_row(run.kernels(), n, x + row * n);
        }
      });
      return;
    }
    const int64_t strips = (inner + kStrip - 1) / kStrip;
    const int64_t grain = 1 + 16384 / (n * std::min(kStrip, inner));
    run.parallel().for_range(outer * strips, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t from = task % strips * kStrip;
        const int64_t count = std::min(kStrip, inner - from);
        const float* first = x + task / strips * n * inner + from;
        int64_t* to = y + task / strips * inner + from;
        const int64_t whole = count / kLanes * kLanes;
        if (is_max) {
          last ? best_of_strip<true, true>(n, inner, whole, first, to)
               : best_of_strip<true, false>(n, inner, whole, first, to);
        } else {
          last ? best_of_strip<false, true>(n, inner, whole, first, to)
               : best_of_strip<false, false>(n, inner, whole, first, to);
        }
        for (int64_t c = whole; c < count; ++c) to[c] = best(first + c, n, inner);
      }
    });
  }

  // The extreme first, then where it stands.
  int64_t best_of_row(const FolioKernels& kernels, int64_t n, const float* x) const {
    const float extreme = is_max ? kernels.max_f32(n, x) : kernels.min_f32(n, x);
    if (extreme != extreme) return best(x, n, 1);  // there is a NaN
    constexpr int64_t kBlock = 16;
    int64_t from = 0;
    if (last) {
      for (int64_t i = n - 1;; --i) {
        if (x[i] == extreme) return i;
      }
    }
    for (; from + kBlock <= n; from += kBlock) {
      int32_t found = 0;
      for (int64_t u = 0; u < kBlock; ++u) found |= x[from + u] == extreme ? 1 : 0;
      if (found) break;
    }
    while (x[from] != extreme) ++from;
    return from;
  }

  static constexpr int64_t kStrip = 512;  // columns side by side, whose state stays in L1
  static constexpr int64_t kLanes = 8;
  static constexpr int64_t kMostInt32 = 0x7fffffff;

  // `count` columns, a multiple of kLanes, row by row; as vectors of 16 bytes, which g++ does not
  // make of selections at -O2.
  template <bool kMax, bool kLast>
  static void best_of_strip(int64_t n, int64_t inner, int64_t count, const float* x, int64_t* y) {
    typedef float F __attribute__((vector_size(16)));
    typedef int32_t I __attribute__((vector_size(16)));
    F value[kStrip / 4];
    I at[kStrip / 4];
    std::memcpy(value, x, static_cast<size_t>(count) * sizeof(float));
    std::memset(at, 0, static_cast<size_t>(count) * sizeof(int32_t));
    for (int32_t i = 1; i < n; ++i) {
      const float* row = x + i * inner;
      for (int64_t c = 0; c < count / 4; c += 2) {
#pragma GCC unroll 2
        for (int64_t u = c; u < c + 2; ++u) {
          F next;
          std::memcpy(&next, row + 4 * u, sizeof next);
          const F now = value[u];
          const I better =
              kMax ? (kLast ? next >= now : next > now) : (kLast ? next <= now : next < now);
          value[u] = better ? next : now;
          at[u] = better ? I{} + i : at[u];
        }
      }
    }
    for (int64_t c = 0; c < count; ++c) y[c] = at[c / 4][c % 4];
  }

  template <typename T>
  int64_t best(const T* x, int64_t n, int64_t step) const {
    using C = Compute<T>;
    int64_t at = 0;
    auto value = static_cast<C>(x[0]);
    for (int64_t i = 1; i < n; ++i) {
      const auto next = static_cast<C>(x[i * step]);
      const bool better = is_max ? next > value : next < value;
      if (!better && !(last && next == value)) continue;
      at = i;
      value = next;
    }
    return at;
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", 0));
  FOLIO_TRY(const int64_t keep, infer.attrs().get_int("keepdims", 1));
  std::optional<Dims> dims;
  if (const Dims* x = infer.dims_of(0)) {
    FOLIO_TRY(const int at, normalize_axis(axis, static_cast<int>(x->size())));
    dims = *x;
    if (keep != 0) {
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
  kernel->is_max = build.node().op_type == "ArgMax";
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", 0));
  FOLIO_TRY(const int64_t keep, build.attrs().get_int("keepdims", 1));
  FOLIO_TRY(const int64_t last, build.attrs().get_int("select_last_index", 0));
  kernel->keep_dims = keep != 0;
  kernel->last = last != 0;
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
