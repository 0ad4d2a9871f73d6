// Determinants of square matrices.
//
// Source: ONNX operator spec, Det, opsets 11, 22.
// Shapes: x [..., m, m] -> y [...].
// Math:   Gaussian elimination with partial pivoting, in double; the empty matrix has 1.
// Types:  float, double, float16, bfloat16.
#include <algorithm>
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Destroys `a`.
double determinant(int64_t m, double* a) {
  double det = 1;
  for (int64_t c = 0; c < m; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < m; ++r) {
      if (std::abs(a[r * m + c]) > std::abs(a[pivot * m + c])) pivot = r;
    }
    if (pivot != c) {
      std::swap_ranges(a + c * m, a + (c + 1) * m, a + pivot * m);
      det = -det;
    }
    const double top = a[c * m + c];
    det *= top;
    if (top == 0) return det;
    for (int64_t r = c + 1; r < m; ++r) {
      const double factor = a[r * m + c] / top;
      for (int64_t k = c + 1; k < m; ++k) a[r * m + k] -= factor * a[c * m + k];
    }
  }
  return det;
}

class Det final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    const int rank = x->rank();
    if (rank < 2 || x->dim(rank - 1) != x->dim(rank - 2)) {
      return invalid_argument("X ", x->shape().to_string(), " holds no square matrices");
    }
    const int64_t m = x->dim(rank - 1);
    const Shape out(x->shape().dims().subspan(0, static_cast<size_t>(rank - 2)));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), out));
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(m * m) * sizeof(double)));
    auto* work = reinterpret_cast<double*>(bytes);
    dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = Compute<T>;
      for (int64_t i = 0, end = out.count(); i < end; ++i) {
        const T* from = x->data<T>() + i * m * m;
        for (int64_t k = 0; k < m * m; ++k) work[k] = static_cast<C>(from[k]);
        y->data_mut<T>()[i] = static_cast<T>(static_cast<C>(determinant(m, work)));
      }
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Det>());
}

Status infer(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> out;
  if (x && x->size() >= 2) out = Dims(x->begin(), x->end() - 2);
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_det(OpRegistry& registry) {
  registry.add({.domain = "", .type = "Det", .since = 11, .infer = infer, .make = make});
}

}  // namespace folio
