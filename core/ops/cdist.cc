// CDist: distances between all rows of one matrix and all rows of another.
//
// Source: ONNX Runtime ContribOperators, com.microsoft CDist.
// Shapes: a [m, n], b [k, n] -> c [m, k]; n is at least 1.
// Math:   metric sqeuclidean (the default): the sum of squared differences; euclidean: its root.
//         In double (op_row_products.h; double difference by difference): rows that are equal have
//         0.
// Types:  float, double.
// Errors: kNotImplemented for other metrics, by name.
#include <algorithm>
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_row_products.h"

namespace folio {
namespace {

using CDistTypes = TypeList<float, double>;

double squared_distance(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

class CDist final : public OpKernel {
 public:
  explicit CDist(bool root) : root_(root) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0));
    if (!contains(CDistTypes{}, a->dtype())) return wrong_type(0, a->dtype());
    FOLIO_TRY(const Tensor* b, run.tensor(1, a->dtype()));
    if (a->rank() != 2 || b->rank() != 2 || a->dim(1) != b->dim(1) || a->dim(1) < 1) {
      return invalid_argument("A ", a->shape().to_string(), " and B ", b->shape().to_string(),
                              " must be [M,N] and [K,N], N at least 1");
    }
    FOLIO_TRY(Tensor * c, run.output(0, a->dtype(), Shape{a->dim(0), b->dim(0)}));
    if (c->count() == 0) return Status::ok();
    if (a->dtype() == DType::kFloat) return of_floats(run, *a, *b, c->data_mut<float>());
    of_doubles(run, *a, *b, c->data_mut<double>());
    return Status::ok();
  }

 private:
  Status of_floats(OpRun& run, const Tensor& a, const Tensor& b, float* c) const {
    const int64_t n = a.dim(1);
    const int64_t columns = b.dim(0);
    const int64_t most = std::min(a.dim(0), kProductRows);
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(most * columns) * sizeof(double)));
    auto* const squares = reinterpret_cast<double*>(bytes);
    for (int64_t row = 0; row < a.dim(0); row += most) {
      const int64_t rows = std::min(most, a.dim(0) - row);
      FOLIO_RETURN_IF_ERROR(row_products(run, rows, a.data<float>() + row * n, columns,
                                         b.data<float>(), n, /*distances=*/true, squares));
      float* const to = c + row * columns;
      for (int64_t i = 0; i < rows * columns; ++i) {
        to[i] = static_cast<float>(root_ ? std::sqrt(squares[i]) : squares[i]);
      }
    }
    return Status::ok();
  }

  void of_doubles(OpRun& run, const Tensor& a, const Tensor& b, double* c) const {
    const int64_t n = a.dim(1);
    const int64_t columns = b.dim(0);
    const int64_t grain = std::max<int64_t>(1, kElementGrain / n);
    run.parallel().for_range(a.dim(0) * columns, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double square = squared_distance(a.data<double>() + i / columns * n,
                                               b.data<double>() + i % columns * n, n);
        c[i] = root_ ? std::sqrt(square) : square;
      }
    });
  }

  bool root_;
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(const std::string metric, build.attrs().get_string("metric", "sqeuclidean"));
  if (metric != "sqeuclidean" && metric != "euclidean") {
    return not_implemented("metric is '", metric, "', expected sqeuclidean or euclidean");
  }
  return std::unique_ptr<OpKernel>(std::make_unique<CDist>(metric == "euclidean"));
}

Status infer(OpInfer& infer) {
  const Dims* a = infer.dims_of(0);
  const Dims* b = infer.dims_of(1);
  std::optional<Dims> out;
  for (const Dims* dims : {a, b}) {
    if (dims && dims->size() != 2) {
      return invalid_graph("input ", dims == a ? 0 : 1, " has rank ", dims->size(), ", expected 2");
    }
  }
  if (a && b) out = Dims{(*a)[0], (*b)[0]};
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_cdist(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "CDist";
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
