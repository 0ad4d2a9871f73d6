// DynamicQuantizeLinear: x to uint8 with a scale and zero point from its own range.
//
// Source: ONNX operator spec, opset 11.
// Shapes: x, y alike; scale and zero point are scalars.
// Math:   lo = min(0, min x), hi = max(0, max x); scale = (hi - lo) / 255, 1 when that is 0;
//         zero = saturate(round(-lo / scale)); y = saturate(round(x / scale) + zero).
// Types:  x float, y uint8.
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class DynamicQuantize final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    const float* data = x->data<float>();
    const int64_t count = x->count();
    const QuantScalar quant = dynamic_quant(run, count, data);
    const float scale = quant.scale;
    const int32_t zero = quant.zero;

    if (run.has_output(1)) {
      FOLIO_TRY(Tensor * y_scale, run.output(1, DType::kFloat, Shape{}));
      *y_scale->data_mut<float>() = scale;
    }
    if (run.has_output(2)) {
      FOLIO_TRY(Tensor * y_zero, run.output(2, DType::kUint8, Shape{}));
      *y_zero->raw_mut() = static_cast<uint8_t>(zero);
    }
    if (!run.has_output(0)) return Status::ok();
    FOLIO_TRY(Tensor * y, run.output(0, DType::kUint8, x->shape()));
    quantize_bytes(run, count, data, quant, DType::kUint8, y->raw_mut());
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<DynamicQuantize>());
}

Status infer(OpInfer& infer) {
  const Dims* dims = infer.dims_of(0);
  infer.set_tensor(0, DType::kUint8, dims ? std::optional<Dims>(*dims) : std::nullopt);
  infer.set_tensor(1, DType::kFloat, Dims{});
  infer.set_tensor(2, DType::kUint8, Dims{});
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_dynamic_quantize_linear(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "DynamicQuantizeLinear",
                .since = 11,
                .min_outputs = 3,
                .max_outputs = 3,
                .infer = infer,
                .make = make,
                .float_inputs = 0b1});
}

}  // namespace folio
