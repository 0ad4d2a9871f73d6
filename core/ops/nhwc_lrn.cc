// LRN with channels last.
//
// Source: ONNX operator spec, LRN 13; made by the pass channels_last only.
// Shapes: x, y [N, spatial..., C].
// Math:   as LRN's with channels first; the same bits as its rows.
// Method: the squares of some pixels stand in scratch, zeros between them, so that one call of the
//         slot shifted_sum_f32 makes the sums of all of their channels. What it makes of the zeros
//         is not read.
// Types:  float.
// Splits: blocks of pixels, each element alone; bit-identical for any number of threads.
#include <vector>

#include "core/ops/op_lrn.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kBlockFloats = 2048;  // of squares, and of their sums: they stay in L1

class NhwcLrn final : public OpKernel {
 public:
  LrnAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    const Shape& shape = x->shape();
    if (shape.rank() < 3) return invalid_argument("X ", shape.to_string(), " is too flat");
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, shape));
    if (y->count() == 0) return Status::ok();
    const int64_t channels = shape[shape.rank() - 1];
    const int64_t pixels = shape.product(0, shape.rank() - 1);
    const Rows rows = rows_of(channels);
    const int64_t together = std::clamp<int64_t>(kBlockFloats / rows.stride, 1, pixels);
    const int64_t blocks = (pixels + together - 1) / together;
    const int64_t floats = (together - 1) * rows.stride + rows.reach() + channels;
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(
        ThreadScratch::make(run, static_cast<size_t>(2 * floats) * sizeof(float), &scratch));
    run.parallel().for_range(blocks, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      auto* const squares = reinterpret_cast<float*>(block.data());
      std::fill_n(squares, floats, 0.0F);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * together;
        normalize(run.kernels(), rows, std::min(together, pixels - first),
                  x->data<float>() + first * channels, squares, squares + floats,
                  y->data_mut<float>() + first * channels);
      }
    });
    return Status::ok();
  }

 private:
  // Of squares: a pixel's follow after as many zeros as either side of it needs.
  struct Rows {
    int64_t channels, before, after, stride;
    std::vector<float> weights;
    std::vector<int64_t> offsets;

    int64_t reach() const { return before + after; }
  };

  Rows rows_of(int64_t channels) const {
    Rows rows;
    rows.channels = channels;
    rows.before = attrs.before(channels);
    rows.after = attrs.after(channels);
    rows.stride = channels + std::max(rows.before, rows.after);
    for (int64_t k = 0; k <= rows.reach(); ++k) rows.offsets.push_back(k);
    rows.weights.assign(rows.offsets.size(), attrs.alpha / static_cast<float>(attrs.size));
    return rows;
  }

  void normalize(const FolioKernels& kernels, const Rows& rows, int64_t pixels, const float* x,
                 float* squares, float* sums, float* y) const {
    const int64_t c = rows.channels;
    for (int64_t p = 0; p < pixels; ++p) {
      const float* const pixel = x + p * c;
      kernels.binary_f32[kFolioMul](c, pixel, 1, pixel, 1, squares + p * rows.stride + rows.before);
    }
    const int64_t n = (pixels - 1) * rows.stride + c;
    kernels.shifted_sum_f32(n, rows.reach() + 1, rows.weights.data(), rows.offsets.data(), squares,
                            attrs.bias, sums);
    attrs.raise(kernels, n, sums);
    for (int64_t p = 0; p < pixels; ++p) {
      kernels.binary_f32[kFolioDiv](c, x + p * c, 1, sums + p * rows.stride, 1, y + p * c);
    }
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<NhwcLrn>();
  FOLIO_TRY(kernel->attrs, parse_lrn(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_lrn(OpRegistry& registry) {
  registry.add({.domain = kNhwcDomain, .type = "LRN", .infer = infer_lrn, .make = make});
}

}  // namespace folio
