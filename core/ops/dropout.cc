// Dropout, as inference: y is x, and the mask keeps everything.
//
// Source: ONNX operator spec, Dropout, opsets 1, 6, 7, 10 (bool mask), 12 (ratio and training_mode
//         are inputs), 13, 22.
// Shapes: mask has x's shape: of x's type before opset 10, bool from there.
// Types:  all types; a mask before opset 10: float, double, float16, bool.
// Notes:  training with a ratio other than 0 is refused.
// Errors: kNotImplemented when training_mode is true with a ratio other than 0, or is_test is 0.
#include "core/ops/op_half.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Ones of the mask's type.
Status fill_ones(Tensor* mask) {
  const int64_t count = mask->count();
  switch (mask->dtype()) {
    case DType::kBool:
      std::fill_n(mask->data_mut<uint8_t>(), count, uint8_t{1});
      return Status::ok();
    case DType::kFloat:
      std::fill_n(mask->data_mut<float>(), count, 1.0F);
      return Status::ok();
    case DType::kDouble:
      std::fill_n(mask->data_mut<double>(), count, 1.0);
      return Status::ok();
    case DType::kFloat16:
      std::fill_n(mask->data_mut<Float16>(), count, Float16(1.0F));
      return Status::ok();
    default:
      return invalid_argument("the mask would be ", dtype_name(mask->dtype()),
                              ", expected a floating point type");
  }
}

Result<bool> ratio_is_zero(OpRun& run) {
  if (!run.has_input(1)) return false;
  FOLIO_TRY(const Tensor* ratio, run.tensor(1));
  if (ratio->count() < 1) return invalid_argument("ratio is empty, expected one number");
  if (ratio->dtype() == DType::kFloat) return ratio->data<float>()[0] == 0;
  if (ratio->dtype() == DType::kDouble) return ratio->data<double>()[0] == 0;
  if (ratio->dtype() == DType::kFloat16) return float{ratio->data<Float16>()[0]} == 0;
  return false;
}

class Dropout final : public OpKernel {
 public:
  explicit Dropout(int version) : version_(version) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (version_ >= 12 && run.has_input(2)) {
      FOLIO_TRY(const Tensor* training, run.tensor(2, DType::kBool));
      if (training->count() < 1) return invalid_argument("training_mode is empty, expected a bool");
      if (training->data<uint8_t>()[0] != 0) {
        FOLIO_TRY(const bool harmless, ratio_is_zero(run));
        if (!harmless) return not_implemented("Dropout in training mode");
      }
    }
    if (run.has_output(1)) {
      const DType dtype = version_ >= 10 ? DType::kBool : x->dtype();
      FOLIO_TRY(Tensor * mask, run.output(1, dtype, x->shape()));
      FOLIO_RETURN_IF_ERROR(fill_ones(mask));
    }
    run.set_output(0, *x);
    return Status::ok();
  }

 private:
  int version_;
};

Status infer_dropout(OpInfer& infer) {
  infer_same(infer, 0, 0);
  if (!infer.has_output(1)) return Status::ok();
  TypeInfo mask = infer.input(0);
  if (infer.version() >= 10 && mask.is_tensor()) mask.dtype = DType::kBool;
  infer.set_output(1, std::move(mask));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_dropout(OpBuild& build) {
  if (build.version() < 7) {
    FOLIO_TRY(const int64_t is_test, build.attrs().get_int("is_test", 0));
    if (is_test == 0) return not_implemented("Dropout with is_test = 0 trains");
  }
  return std::unique_ptr<OpKernel>(std::make_unique<Dropout>(build.version()));
}

}  // namespace

[[gnu::cold]] void register_dropout(OpRegistry& registry) {
  OpDef def;
  def.type = "Dropout";
  def.until = 11;
  def.max_outputs = 2;
  def.infer = infer_dropout;
  def.make = make_dropout;
  def.view_of = 0;
  registry.add(def);
  def.since = 12;
  def.until = kLatest;
  def.max_inputs = 3;
  registry.add(def);
}

}  // namespace folio
