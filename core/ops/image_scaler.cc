// ImageScaler: y = x * scale + bias[channel].
//
// Source: ONNX operator spec before 1.5, ImageScaler, experimental opset 1 (CoreML converters).
// Shapes: x, y [N, C, H, W]; bias attribute of C floats.
// Types:  float.
#include <algorithm>

#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int64_t kPartFloats = 4096;  // of a plane: they stay in L1 between the two steps
constexpr int64_t kGrainParts = 8;

class ImageScaler final : public OpKernel {
 public:
  float scale = 1.0F;
  std::vector<float> bias;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    if (x->rank() != 4 || x->dim(1) != static_cast<int64_t>(bias.size())) {
      return invalid_argument("X ", x->shape().to_string(), " must be [N,", bias.size(), ",H,W]");
    }
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, x->shape()));
    const int64_t inner = x->dim(2) * x->dim(3);
    const int64_t parts = (inner + kPartFloats - 1) / kPartFloats;
    const FolioKernels& kernels = run.kernels();
    run.parallel().for_range(
        x->dim(0) * x->dim(1) * parts, kGrainParts, [&](int64_t begin, int64_t end) {
          for (int64_t part = begin; part < end; ++part) {
            const int64_t row = part / parts;
            const int64_t first = part % parts * kPartFloats;
            const int64_t count = std::min(kPartFloats, inner - first);
            float* const to = y->data_mut<float>() + row * inner + first;
            const float* const plus = &bias[static_cast<size_t>(row % x->dim(1))];
            kernels.binary_f32[kFolioMul](count, x->data<float>() + row * inner + first, 1, &scale,
                                          0, to);
            kernels.binary_f32[kFolioAdd](count, to, 1, plus, 0, to);
          }
        });
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<ImageScaler>();
  FOLIO_TRY(kernel->scale, build.attrs().get_float("scale", 1.0F));
  FOLIO_TRY(kernel->bias, build.attrs().get_floats("bias"));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_image_scaler(OpRegistry& registry) {
  OpDef def;
  def.type = "ImageScaler";
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
