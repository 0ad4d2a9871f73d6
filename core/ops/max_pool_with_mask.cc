// MaxpoolWithMask: MaxPool of what stands before the first hidden element of each row.
//
// Source: com.microsoft MaxpoolWithMask 1 (ONNX Runtime's contrib operators: "for internal use").
// Shapes: x [N, C, spatial...], mask int32 [1, 1, spatial...] -> y [N, C, out...].
// Math:   each row of a window along the last axis ends where the mask is 0, but that the first
//         element of an image of two or three spatial dims is never hidden; the largest of what is
//         left, or the lowest number. A NaN is never the largest.
// Types:  float; mask int32.
// Notes:  1 to 3 spatial dims; masks of several planes are refused.
// Errors: kNotImplemented for masks of several planes, which ONNX Runtime reads from places that
//         have nothing to do with an image's plane.
#include <limits>

#include "core/ops/op_pool.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

float max_of_window(const Window& w, const WindowTaps r[], const float* x, const int32_t* mask) {
  float most = std::numeric_limits<float>::lowest();
  for (int64_t d = r[0].from; d < r[0].to; ++d) {
    for (int64_t h = r[1].from; h < r[1].to; ++h) {
      const int64_t row = ((r[0].first + d) * w.in[1] + r[1].first + h) * w.in[2] + r[2].first;
      for (int64_t at = row + r[2].from; at < row + r[2].to; ++at) {
        if (mask[at] == 0 && (w.rank == 1 || at > 0)) break;
        if (x[at] > most) most = x[at];
      }
    }
  }
  return most;
}

class MaxPoolWithMask final : public OpKernel {
 public:
  PoolAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    FOLIO_TRY(const Tensor* mask, run.tensor(1, DType::kInt32));
    FOLIO_TRY(const Window w, pool_window(attrs, x->shape()));
    FOLIO_RETURN_IF_ERROR(check_mask(x->shape(), mask->shape()));
    Shape out{x->dim(0), x->dim(1)};
    w.append_out(&out);
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, out));
    if (y->count() == 0) return Status::ok();
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / (w.out_count() * w.kernel_count()));
    run.parallel().for_range(x->dim(0) * x->dim(1), grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const float* from = x->data<float>() + p * w.in_count();
        float* to = y->data_mut<float>() + p * w.out_count();
        for (int64_t at = 0; at < w.out_count(); ++at) {
          const int64_t row = at / w.out[2];
          const WindowTaps r[kSpatial] = {taps_inside(w, 0, row / w.out[1]),
                                          taps_inside(w, 1, row % w.out[1]),
                                          taps_inside(w, 2, at % w.out[2])};
          to[at] = max_of_window(w, r, from, mask->data<int32_t>());
        }
      }
    });
    return Status::ok();
  }

 private:
  static Status check_mask(const Shape& x, const Shape& mask) {
    bool fits = mask.rank() == x.rank();
    for (int i = 2; i < x.rank() && fits; ++i) fits = mask[i] == x[i];
    if (!fits) {
      return invalid_argument("mask is ", mask.to_string(), ", expected the spatial dims of ",
                              x.to_string());
    }
    if (mask[0] == 1 && mask[1] == 1) return Status::ok();
    return not_implemented("a mask of several planes, ", mask.to_string());
  }
};

Status infer_max_pool(OpInfer& infer) {
  return infer_pool(infer, /*global=*/false, /*channels_last=*/false);
}

Result<std::unique_ptr<OpKernel>> make_max_pool(OpBuild& build) {
  auto kernel = std::make_unique<MaxPoolWithMask>();
  FOLIO_TRY(kernel->attrs, parse_pool(build.attrs(), PoolKind::kMax, /*global=*/false));
  if (!all_are(kernel->attrs.window.dilations, 1)) {
    return invalid_graph("attribute 'dilations', which MaxpoolWithMask does not have");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_max_pool_with_mask(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "MaxpoolWithMask";
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_max_pool;
  def.make = make_max_pool;
  registry.add(def);
}

}  // namespace folio
