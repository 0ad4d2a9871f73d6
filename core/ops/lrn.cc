// LRN: local response normalization across channels.
//
// Source: ONNX operator spec, opsets 1 and 13.
// Shapes: x, y [n, c, ...].
// Math:   y = x / (bias + alpha / size * s)^beta, s = the sum of squares of the same place in the
//         channels [c - floor((size - 1) / 2), c + ceil((size - 1) / 2)], those outside left out.
// Types:  float, double; float16 and bfloat16 in float.
// Errors: kInvalidGraph for a size below 1; kInvalidArgument below rank 2.
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Lrn final : public OpKernel {
 public:
  int64_t size = 1;
  float alpha = 0.0001f;
  float beta = 0.75f;
  float bias = 1.0f;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->rank() < 2) {
      return invalid_argument("input 0 has ", x->rank(), " dims, expected at least 2");
    }
    const bool is_half = x->dtype() == DType::kFloat16 || x->dtype() == DType::kBfloat16;
    if (!is_half && x->dtype() != DType::kFloat && x->dtype() != DType::kDouble) {
      return wrong_type(0, x->dtype());
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (x->dtype() == DType::kDouble) {
      normalize<double>(run, x->shape(), x->data<double>(), y->data_mut<double>());
    } else if (is_half) {
      FOLIO_TRY(const float* wide, widen_half(run, *x));
      FOLIO_TRY(uint8_t * out, run.scratch(static_cast<size_t>(x->count()) * sizeof(float)));
      normalize<float>(run, x->shape(), wide, reinterpret_cast<float*>(out));
      narrow_half(run, reinterpret_cast<float*>(out), y);
    } else {
      normalize<float>(run, x->shape(), x->data<float>(), y->data_mut<float>());
    }
    return Status::ok();
  }

 private:
  template <typename T>
  void normalize(OpRun& run, const Shape& shape, const T* x, T* y) const {
    const int64_t channels = shape[1];
    const int64_t inner = shape.product(2, shape.rank());
    const int64_t before = std::min((size - 1) / 2, channels);
    const int64_t after = std::min(size - 1 - (size - 1) / 2, channels);
    const int64_t grain = std::max<int64_t>(1, kElementGrain / 8 / std::max<int64_t>(1, inner));
    run.parallel().for_range(shape[0] * channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = row % channels;
        T* out = y + row * inner;
        std::fill_n(out, inner, T{0});
        for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(channels - 1, c + after);
             ++k) {
          const T* other = x + (row - c + k) * inner;
          for (int64_t i = 0; i < inner; ++i) out[i] += other[i] * other[i];
        }
        divide(run.kernels(), inner, x + row * inner, out);
      }
    });
  }

  // y = x / (bias + alpha / size * y)^beta
  template <typename T>
  void divide(const FolioKernels& kernels, int64_t n, const T* x, T* y) const {
    const T factor = static_cast<T>(alpha) / static_cast<T>(size);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(bias) + factor * y[i];
    if constexpr (std::is_same_v<T, float>) {
      kernels.binary_f32[kFolioPow](n, y, 1, &beta, 0, y);
      kernels.binary_f32[kFolioDiv](n, x, 1, y, 1, y);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] / std::pow(y[i], static_cast<T>(beta));
    }
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Lrn>();
  FOLIO_TRY(kernel->size, build.attrs().get_int("size"));
  if (kernel->size < 1) {
    return invalid_graph("attribute 'size' is ", kernel->size, ", expected >= 1");
  }
  FOLIO_TRY(kernel->alpha, build.attrs().get_float("alpha", 0.0001f));
  FOLIO_TRY(kernel->beta, build.attrs().get_float("beta", 0.75f));
  FOLIO_TRY(kernel->bias, build.attrs().get_float("bias", 1.0f));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  if (infer.input(0).is_tensor()) infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_lrn(OpRegistry& registry) {
  registry.add({.domain = "", .type = "LRN", .infer = infer, .make = make});
}

}  // namespace folio
