// Inverse: inverses of square matrices.
//
// Source: ONNX Runtime ContribOperators, com.microsoft Inverse.
// Shapes: x [..., n, n] -> y as x.
// Math:   LU with partial pivoting, in double. What has no inverse gives infinities and NaN: the
//         division by a pivot of 0.
// Types:  float, double, float16.
#include <algorithm>
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using InverseTypes = TypeList<float, double, Float16>;

void subtract_row(int64_t n, double factor, const double* row, double* from) {
  for (int64_t k = 0; k < n; ++k) from[k] -= factor * row[k];
}

// Destroys `a`; `b` is the identity, and then the inverse.
void solve(int64_t n, double* a, double* b) {
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r) {
      if (std::abs(a[r * n + c]) > std::abs(a[pivot * n + c])) pivot = r;
    }
    if (pivot != c) {
      std::swap_ranges(a + c * n, a + (c + 1) * n, a + pivot * n);
      std::swap_ranges(b + c * n, b + (c + 1) * n, b + pivot * n);
    }
    const double top = a[c * n + c];
    if (top == 0) continue;  // nothing below it to eliminate
    for (int64_t r = c + 1; r < n; ++r) {
      const double factor = a[r * n + c] / top;
      subtract_row(n, factor, a + c * n, a + r * n);
      subtract_row(n, factor, b + c * n, b + r * n);
    }
  }
  for (int64_t r = n - 1; r >= 0; --r) {
    for (int64_t k = 0; k < n; ++k) b[r * n + k] /= a[r * n + r];
    for (int64_t i = 0; i < r; ++i) subtract_row(n, a[i * n + r], b + r * n, b + i * n);
  }
}

// `work` holds 2 n * n.
template <typename T>
void invert(int64_t n, const T* x, double* work, T* y) {
  double* b = work + n * n;
  for (int64_t i = 0; i < n * n; ++i) {
    work[i] = static_cast<Compute<T>>(x[i]);
    b[i] = i / n == i % n ? 1 : 0;
  }
  solve(n, work, b);
  for (int64_t i = 0; i < n * n; ++i) y[i] = static_cast<T>(static_cast<Compute<T>>(b[i]));
}

class Inverse final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(InverseTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    const int rank = x->rank();
    if (rank < 2 || x->dim(rank - 1) != x->dim(rank - 2)) {
      return invalid_argument("X ", x->shape().to_string(), " must be [..., n, n]");
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (y->count() == 0) return Status::ok();
    const int64_t n = x->dim(rank - 1);
    // n * n elements are in memory already: no overflow.
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(2 * n * n) * sizeof(double)));
    auto* work = reinterpret_cast<double*>(bytes);
    dispatch(InverseTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t at = 0; at < x->count(); at += n * n) {
        invert(n, x->data<T>() + at, work, y->data_mut<T>() + at);
      }
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Inverse>());
}

Status infer(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  if (x && x->size() < 2) {
    return invalid_graph("X has rank ", x->size(), ", expected 2 or more");
  }
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_inverse(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "Inverse";
  def.infer = infer;
  def.make = make;
  def.keeps_half = true;
  registry.add(def);
}

}  // namespace folio
