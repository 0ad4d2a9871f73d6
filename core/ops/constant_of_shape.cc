// ConstantOfShape: a tensor of one repeated value.
//
// Source: ONNX operator spec, ConstantOfShape, opsets 9 and later.
// Inputs: the shape, int64 [rank]. Attribute value: one element, default float 0.
#include "core/ops/op_elements.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<Tensor> value_of(const Attributes& attrs) {
  if (attrs.has("value")) {
    FOLIO_TRY(Tensor value, attrs.get_tensor("value"));
    if (value.count() != 1) {
      return invalid_graph("attribute 'value' has ", value.count(), " elements, expected 1");
    }
    FOLIO_RETURN_IF_ERROR(check_whole_bytes(value));
    return copy_tensor(value);
  }
  FOLIO_TRY(Tensor zero, allocate_tensor(DType::kFloat, Shape{1}));
  *zero.data_mut<float>() = 0.0F;
  return zero;
}

class ConstantOfShape final : public OpKernel {
 public:
  Tensor value;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const std::vector<int64_t> dims, run.ints(0));
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor* y, run.output(0, value.dtype(), shape));
    fill_elements(value, y, 0, y->count());
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const Tensor value, value_of(infer.attrs()));
  std::optional<Dims> dims;
  if (const auto data = infer.data(0)) dims = Dims(data->begin(), data->end());
  const bool is_list = dims && dims->size() == 1 && (*dims)[0].is_value() && (*dims)[0].value < 64;
  infer.set_tensor(0, value.dtype(), dims);
  // A list of equal dims, as Expand and Tile targets are made of.
  if (is_list && value.dtype() == DType::kInt64 && *value.data<int64_t>() >= 0) {
    infer.set_data(0, std::vector<Dim>(static_cast<size_t>((*dims)[0].value),
                                       Dim::of(*value.data<int64_t>())));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<ConstantOfShape>();
  FOLIO_TRY(kernel->value, value_of(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_constant_of_shape(OpRegistry& registry) {
  OpDef def;
  def.type = "ConstantOfShape";
  def.since = 9;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
