// LRN: local response normalization across channels.
//
// Source: ONNX operator spec, opsets 1 and 13.
// Shapes: x, y [n, c, ...].
// Math:   y = x / (bias + alpha / size * s)^beta, s = the sum of squares of the same place in the
//         channels [c - floor((size - 1) / 2), c + ceil((size - 1) / 2)], those outside left out.
// Method: floats: some places of all channels at a time, whose squares stay in L2; their sums are
//         rows of the slot shifted_sum_f32.
// Types:  float, double; float16 and bfloat16 in float.
// Errors: kInvalidGraph for a size below 1; kInvalidArgument below rank 2.
#include <cmath>
#include <vector>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_lrn.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kBlockFloats = 48 * 1024;  // of squares
constexpr int64_t kFewestPlaces = 16;        // of a row of a slot

class Lrn final : public OpKernel {
 public:
  LrnAttrs attrs;

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
      FOLIO_RETURN_IF_ERROR(normalize_floats(run, x->shape(), wide, reinterpret_cast<float*>(out)));
      narrow_half(run, reinterpret_cast<float*>(out), y);
    } else {
      return normalize_floats(run, x->shape(), x->data<float>(), y->data_mut<float>());
    }
    return Status::ok();
  }

 private:
  Status normalize_floats(OpRun& run, const Shape& shape, const float* x, float* y) const {
    const int64_t channels = shape[1];
    const int64_t inner = shape.product(2, shape.rank());
    if (inner < kFewestPlaces || channels > kBlockFloats / kFewestPlaces) {
      normalize<float>(run, shape, x, y);
      return Status::ok();
    }
    const int64_t most = std::max(kBlockFloats / std::max<int64_t>(channels, 1), kFewestPlaces);
    const int64_t blocks = (inner + most - 1) / most;
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(
        ThreadScratch::make(run, static_cast<size_t>(channels * most) * sizeof(float), &scratch));
    const int64_t reach = attrs.before(channels) + attrs.after(channels) + 1;
    const std::vector<float> weights(static_cast<size_t>(reach),
                                     attrs.alpha / static_cast<float>(attrs.size));
    std::vector<int64_t> offsets;
    for (int64_t k = 0; k < reach; ++k) offsets.push_back(k * most);
    run.parallel().for_range(shape[0] * blocks, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      auto* squares = reinterpret_cast<float*>(block.data());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = inner * (i % blocks) / blocks;
        const int64_t count = inner * (i % blocks + 1) / blocks - place;
        const int64_t at = i / blocks * channels * inner + place;
        square_rows(run.kernels(), channels, inner, count, x + at, squares, most);
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t first = std::max<int64_t>(0, c - attrs.before(channels));
          const int64_t last = std::min(channels - 1, c + attrs.after(channels));
          float* out = y + at + c * inner;
          run.kernels().shifted_sum_f32(count, last - first + 1, weights.data(), offsets.data(),
                                        squares + first * most, attrs.bias, out);
          divide_by_power(run.kernels(), count, x + at + c * inner, out);
        }
      }
    });
    return Status::ok();
  }

  static void square_rows(const FolioKernels& kernels, int64_t rows, int64_t row_stride, int64_t n,
                          const float* x, float* squares, int64_t square_stride) {
    for (int64_t i = 0; i < rows; ++i) {
      const float* row = x + i * row_stride;
      kernels.binary_f32[kFolioMul](n, row, 1, row, 1, squares + i * square_stride);
    }
  }

  // y = x / y^beta
  void divide_by_power(const FolioKernels& kernels, int64_t n, const float* x, float* y) const {
    attrs.raise(kernels, n, y);
    kernels.binary_f32[kFolioDiv](n, x, 1, y, 1, y);
  }

  template <typename T>
  void normalize(OpRun& run, const Shape& shape, const T* x, T* y) const {
    const int64_t channels = shape[1];
    const int64_t inner = shape.product(2, shape.rank());
    const T factor = static_cast<T>(attrs.alpha) / static_cast<T>(attrs.size);
    const int64_t grain = std::max<int64_t>(1, kElementGrain / 8 / std::max<int64_t>(1, inner));
    run.parallel().for_range(shape[0] * channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = row % channels;
        const int64_t first = std::max<int64_t>(0, c - attrs.before(channels));
        const int64_t last = std::min(channels - 1, c + attrs.after(channels));
        T* out = y + row * inner;
        std::fill_n(out, inner, T{0});
        for (int64_t k = first; k <= last; ++k) {
          const T* other = x + (row - c + k) * inner;
          for (int64_t i = 0; i < inner; ++i) out[i] += other[i] * other[i];
        }
        for (int64_t i = 0; i < inner; ++i) {
          out[i] = x[row * inner + i] / std::pow(static_cast<T>(attrs.bias) + factor * out[i],
                                                 static_cast<T>(attrs.beta));
        }
      }
    });
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Lrn>();
  FOLIO_TRY(kernel->attrs, parse_lrn(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_lrn(OpRegistry& registry) {
  registry.add({.domain = "", .type = "LRN", .infer = infer_lrn, .make = make});
}

}  // namespace folio
