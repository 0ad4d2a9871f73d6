// ArrayFeatureExtractor: columns of the last dim, by index.
//
// Source: ONNX operator spec, ai.onnx.ml ArrayFeatureExtractor, opset 1.
// Shapes: x [..., n], y int64 [k] (any shape, flattened) -> z [..., k]; a 1-D x gives [1, k].
// Types:  X: all types but those of 2 and 4 bits; Y: int32, int64.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class ArrayFeatureExtractor final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> columns, run.ints(1));
    if (x->rank() == 0 || columns.empty()) return invalid_argument("X is a scalar, or Y is empty");
    const int64_t n = x->dim(x->rank() - 1);
    for (const int64_t column : columns) {
      if (column < 0 || column >= n) {
        return invalid_argument("index ", column, " is outside [0, ", n, ")");
      }
    }
    const auto k = static_cast<int64_t>(columns.size());
    Shape shape = x->rank() == 1 ? Shape{1, k} : x->shape();
    shape[shape.rank() - 1] = k;
    FOLIO_TRY(shape, shape_from(shape.dims()));
    FOLIO_TRY(Tensor * z, run.output(0, x->dtype(), shape));
    return dispatch_move(x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = z->data_mut<T>();
      const int64_t rows = n == 0 ? 0 : x->count() / n;
      for (int64_t row = 0; row < rows; ++row) {
        const T* from = x->data<T>() + row * n;
        for (const int64_t column : columns) *to++ = from[column];
      }
      return Status::ok();
    });
  }
};

Status infer(OpInfer& infer) {
  infer.set_tensor(0, infer.dtype(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<ArrayFeatureExtractor>());
}

}  // namespace

[[gnu::cold]] void register_array_feature_extractor(OpRegistry& registry) {
  OpDef def;
  def.domain = "ai.onnx.ml";
  def.type = "ArrayFeatureExtractor";
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
