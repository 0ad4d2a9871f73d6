// ArgMax and ArgMin.
//
// Source: ONNX operator spec, opsets 1, 11, 12 (select_last_index), 13.
// Shapes: x [outer, n, inner] -> y [outer, 1 or nothing, inner] int64.
// Types:  all numeric types. A NaN is never larger or smaller: it wins only where it stands first.
#include <algorithm>

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
      run.parallel().for_range(y->count(), 1 + 16384 / n, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          to[row] = best(from + row / inner * n * inner + row % inner, n, inner);
        }
      });
    });
    return known ? Status::ok() : wrong_type(0, x->dtype());
  }

 private:
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
