// LpNormalization and MeanVarianceNormalization.
//
// Source: ONNX operator spec; LpNormalization 1, 22 (axis, p = 1 or 2);
//         MeanVarianceNormalization 9, 13 (axes, by default [0, 2, 3]).
// Shapes: y has x's shape.
// Math:   x / norm along the axis (0 where the norm is 0);
//         (x - mean) / (sqrt(variance) + 1e-9) over the axes.
// Types:  float, double, float16 and bfloat16 (in float).
// Errors: kInvalidArgument for axes out of range; kInvalidGraph for another p.
#include <cmath>

#include "core/ops/op_gemm.h"
#include "core/ops/op_norm.h"
#include "core/ops/op_reduce.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum class Term { kValue, kAbsolute, kSquare };

template <typename T>
struct SumStep {
  const FolioKernels& kernels;
  Term term;
  T first() const { return T{0}; }
  T of(T x, T shift) const {
    const T v = x - shift;
    return term == Term::kSquare ? v * v : term == Term::kAbsolute ? std::abs(v) : v;
  }
  T row(T acc, const T* x, int64_t n, T shift) const {
    constexpr int64_t kFew = 16;  // that a call is not worth
    if constexpr (std::is_same_v<T, float>) {
      if (n > kFew) return acc + sum_of(x, n, shift);
    }
    for (int64_t i = 0; i < n; ++i) acc += of(x[i], shift);
    return acc;
  }
  void column(T* acc, const T* x, int64_t n, const T* shifts) const {
    if constexpr (std::is_same_v<T, float>) {
      add_columns(x, n, shifts, acc);
    } else {
      for (int64_t i = 0; i < n; ++i) acc[i] += of(x[i], shifts ? shifts[i] : T{0});
    }
  }

 private:
  FolioReduce reduction() const {
    return term == Term::kSquare     ? kFolioReduceSquares
           : term == Term::kAbsolute ? kFolioReduceMagnitudes
                                     : kFolioReduceSum;
  }
  // A piece at a time: what is shifted stays in L1.
  static constexpr int64_t kPiece = 1024;

  void add_columns(const float* x, int64_t n, const float* shifts, float* acc) const {
    float shifted[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t count = std::min(kPiece, n - i);
      if (shifts) kernels.binary_f32[kFolioSub](count, x + i, 1, shifts + i, 1, shifted);
      kernels.reduce_columns_f32[reduction()](1, count, shifts ? shifted : x + i, count, acc + i);
    }
  }
  float sum_of(const float* x, int64_t n, float shift) const {
    float shifted[kPiece];
    float sum = 0;
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t count = std::min(kPiece, n - i);
      const float* from = x + i;
      if (shift != 0) {
        kernels.binary_f32[kFolioSub](count, from, 1, &shift, 0, shifted);
        from = shifted;
      }
      kernels.reduce_rows_f32[reduction()](1, count, from, count, &sum);
    }
    return sum;
  }
};

// A reduction over fixed axes whose results are then broadcast over the input again.
template <typename T>
class AxesNorm {
 public:
  AxesNorm(OpRun& run, const Shape& shape, const bool* reduce)
      : run_(run), plan_(plan_reduce(shape, reduce, /*keep_dims=*/true)) {}

  Status prepare(const Shape& shape) {
    const auto groups = static_cast<size_t>(plan_.out.count());
    FOLIO_TRY(uint8_t * memory, run_.scratch(groups * 2 * sizeof(T)));
    first_ = reinterpret_cast<T*>(memory);
    second_ = first_ + plan_.out.count();
    FOLIO_TRY(spread_, plan_broadcast(shape, plan_.out));
    return Status::ok();
  }

  void lp(const T* x, int64_t p, T* y) {
    const Term term = p == 1 ? Term::kAbsolute : Term::kSquare;
    reduce_groups<T, T>(run_.parallel(), plan_, SumStep<T>{run_.kernels(), term}, x,
                        static_cast<const T*>(nullptr), first_);
    for (int64_t i = 0, end = plan_.out.count(); i < end; ++i) {
      const T norm = p == 1 ? first_[i] : std::sqrt(first_[i]);
      first_[i] = norm == T{0} ? T{1} : norm;  // then all of x is 0
    }
    for_broadcast_rows(run_.parallel(), spread_,
                       [&](int64_t from, int64_t group, int64_t to, int64_t count) {
                         scale(count, x + from, first_ + group, y + to);
                       });
  }

  void mean_variance(const T* x, T* y) {
    const auto count = static_cast<T>(plan_.reduced_count);
    reduce_groups<T, T>(run_.parallel(), plan_, SumStep<T>{run_.kernels(), Term::kValue}, x,
                        static_cast<const T*>(nullptr), first_);
    for (int64_t i = 0, end = plan_.out.count(); i < end; ++i) first_[i] /= count;
    reduce_groups<T, T>(run_.parallel(), plan_, SumStep<T>{run_.kernels(), Term::kSquare}, x,
                        static_cast<const T*>(first_), second_);
    for (int64_t i = 0, end = plan_.out.count(); i < end; ++i) {
      second_[i] = std::sqrt(second_[i] / count) + T{1e-9f};
    }
    for_broadcast_rows(run_.parallel(), spread_,
                       [&](int64_t from, int64_t group, int64_t to, int64_t n) {
                         center(n, x + from, group, y + to);
                       });
  }

 private:
  // y = x / norms, one for all or for each.
  void scale(int64_t n, const T* x, const T* norms, T* y) const {
    if constexpr (std::is_same_v<T, float>) {
      run_.kernels().binary_f32[kFolioDiv](n, x, spread_.a_step, norms, spread_.b_step, y);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = x[i * spread_.a_step] / norms[i * spread_.b_step];
    }
  }

  // y = (x - mean) / deviation, those of the group, or of each from it on.
  void center(int64_t n, const T* x, int64_t group, T* y) const {
    if constexpr (std::is_same_v<T, float>) {
      if (spread_.a_step == 1 && spread_.b_step == 0) {
        return two_steps<kFolioSub, kFolioDiv>(run_.kernels(), n, x, first_[group], second_[group],
                                               y);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = group + i * spread_.b_step;
      y[i] = (x[i * spread_.a_step] - first_[at]) / second_[at];
    }
  }

  OpRun& run_;
  ReducePlan plan_;
  BroadcastPlan spread_;
  T* first_ = nullptr;
  T* second_ = nullptr;
};

class Normalize final : public OpKernel {
 public:
  bool is_lp = true;
  int64_t p = 2;
  std::vector<int64_t> axes;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    bool reduce[kMaxRank] = {};
    for (const int64_t axis : axes) {
      FOLIO_TRY(const int at, normalize_axis(axis, x->rank()));
      reduce[at] = true;
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (x->count() == 0) return Status::ok();
    if (x->dtype() == DType::kFloat) {
      return apply(run, x->shape(), reduce, x->data<float>(), y->data_mut<float>());
    }
    if (x->dtype() == DType::kDouble) {
      return apply(run, x->shape(), reduce, x->data<double>(), y->data_mut<double>());
    }
    FOLIO_TRY(float* wide, widen_half(run, *x));
    FOLIO_RETURN_IF_ERROR(apply<float>(run, x->shape(), reduce, wide, wide));
    narrow_half(run, wide, y);
    return Status::ok();
  }

 private:
  template <typename T>
  Status apply(OpRun& run, const Shape& shape, const bool* reduce, const T* x, T* y) const {
    AxesNorm<T> norm(run, shape, reduce);
    FOLIO_RETURN_IF_ERROR(norm.prepare(shape));
    if (is_lp) {
      norm.lp(x, p, y);
    } else {
      norm.mean_variance(x, y);
    }
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Normalize>();
  kernel->is_lp = build.node().op_type == "LpNormalization";
  if (kernel->is_lp) {
    FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", -1));
    FOLIO_TRY(kernel->p, build.attrs().get_int("p", 2));
    kernel->axes = {axis};
    if (kernel->p != 1 && kernel->p != 2) {
      return invalid_graph("attribute 'p' is ", kernel->p, ", expected 1 or 2");
    }
  } else {
    FOLIO_TRY(kernel->axes, build.attrs().get_ints("axes", {0, 2, 3}));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  if (infer.input(0).is_tensor()) infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_lp_normalization(OpRegistry& registry) {
  registry.add({.domain = "", .type = "LpNormalization", .infer = infer, .make = make});
  registry.add({.domain = "",
                .type = "MeanVarianceNormalization",
                .since = 9,
                .infer = infer,
                .make = make});
}

}  // namespace folio
