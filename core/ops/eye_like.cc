// EyeLike: a matrix of ones on a diagonal, zeros elsewhere.
//
// Source: ONNX operator spec, EyeLike, opsets 9, 22.
// Shapes: x [n, m] -> y as x, of type `dtype` or x's.
// Math:   y[i, i + k] = 1.
// Types:  y: all numbers, bool; x: any type where dtype names y's.
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using Types = TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                       uint16_t, uint32_t, uint64_t, bool>;

Result<std::optional<DType>> dtype_of_output(const Attributes& attrs) {
  if (!attrs.has("dtype")) return std::optional<DType>();
  FOLIO_TRY(const int64_t dtype, attrs.get_int("dtype"));
  if (!dtype_known(dtype) || !contains(Types{}, static_cast<DType>(dtype))) {
    return invalid_graph("dtype is ", dtype, ", which is no type with a 1");
  }
  return std::optional<DType>(static_cast<DType>(dtype));
}

class EyeLike final : public OpKernel {
 public:
  EyeLike(std::optional<DType> dtype, int64_t k) : dtype_(dtype), k_(k) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->rank() != 2) return invalid_argument("input 0 has rank ", x->rank(), ", expected 2");
    const DType dtype = dtype_.value_or(x->dtype());
    if (!contains(Types{}, dtype)) return wrong_type(0, dtype);
    FOLIO_TRY(Tensor * y, run.output(0, dtype, x->shape()));
    if (y->count() == 0) return Status::ok();
    std::memset(y->raw_mut(), 0, y->bytes());
    const int64_t cols = x->dim(1);
    const int64_t k = std::clamp(k_, -x->dim(0), cols);
    dispatch(Types{}, dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < x->dim(0); ++i) {
        const int64_t j = i + k;
        if (j >= 0 && j < cols) y->data_mut<T>()[i * cols + j] = static_cast<T>(Compute<T>{1});
      }
    });
    return Status::ok();
  }

 private:
  std::optional<DType> dtype_;
  int64_t k_;
};

Status infer_eye_like(OpInfer& infer) {
  FOLIO_TRY(const std::optional<DType> dtype, dtype_of_output(infer.attrs()));
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, dtype.value_or(infer.dtype(0)), x ? std::optional<Dims>(*x) : std::nullopt);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_eye_like(OpBuild& build) {
  FOLIO_TRY(const std::optional<DType> dtype, dtype_of_output(build.attrs()));
  FOLIO_TRY(const int64_t k, build.attrs().get_int("k", 0));
  return std::unique_ptr<OpKernel>(std::make_unique<EyeLike>(dtype, k));
}

}  // namespace

[[gnu::cold]] void register_eye_like(OpRegistry& registry) {
  OpDef def;
  def.type = "EyeLike";
  def.since = 9;
  def.infer = infer_eye_like;
  def.make = make_eye_like;
  registry.add(def);
}

}  // namespace folio
