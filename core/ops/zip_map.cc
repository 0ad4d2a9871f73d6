// ZipMap: a sequence of maps from class labels to scores.
//
// Source: ONNX operator spec, ai.onnx.ml ZipMap, opset 1.
// Shapes: x float [n, classes] or [classes] -> seq(map(int64 or string, float)) of n entries.
// Types:  X float; keys int64 or strings.
#include <algorithm>

#include "core/ops/op_registry.h"

namespace folio {
namespace {

class ZipMap final : public OpKernel {
 public:
  Tensor keys;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    if (x->rank() < 1 || x->rank() > 2 || x->dim(x->rank() - 1) != keys.count()) {
      return invalid_argument("X ", x->shape().to_string(), " must have ", keys.count(),
                              " columns, one for each label");
    }
    const int64_t rows = x->rank() == 2 ? x->dim(0) : 1;
    auto sequence = make_ref<SequenceData>();
    for (int64_t row = 0; row < rows; ++row) {
      FOLIO_TRY(Tensor values, allocate_tensor(DType::kFloat, keys.shape()));
      std::copy_n(x->data<float>() + row * keys.count(), keys.count(), values.data_mut<float>());
      auto map = make_ref<MapData>();
      map->keys = keys;
      map->values = std::move(values);
      sequence->elements.emplace_back(Ref<const MapData>(map));
    }
    run.set_output(0, Value(Ref<const SequenceData>(sequence)));
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  const DType key = infer.attrs().has("classlabels_strings") ? DType::kString : DType::kInt64;
  infer.set_output(0, TypeInfo::sequence(TypeInfo::map(key, TypeInfo::tensor(DType::kFloat))));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<ZipMap>();
  FOLIO_TRY(const std::vector<std::string> strings,
            build.attrs().get_strings("classlabels_strings"));
  FOLIO_TRY(const std::vector<int64_t> numbers, build.attrs().get_ints("classlabels_int64s"));
  if (strings.empty() == numbers.empty()) {
    return invalid_graph("one of classlabels_strings and classlabels_int64s must be given");
  }
  if (strings.empty()) {
    FOLIO_TRY(kernel->keys,
              make_int64_tensor(numbers, Shape{static_cast<int64_t>(numbers.size())}));
  } else {
    FOLIO_TRY(kernel->keys,
              allocate_tensor(DType::kString, Shape{static_cast<int64_t>(strings.size())}));
    std::copy(strings.begin(), strings.end(), kernel->keys.data_mut<std::string>());
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_zip_map(OpRegistry& registry) {
  OpDef def;
  def.domain = "ai.onnx.ml";
  def.type = "ZipMap";
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
