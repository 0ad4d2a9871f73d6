// InstanceNormalization and GroupNormalization.
//
// Source: ONNX operator spec; InstanceNormalization 1, 6, 22; GroupNormalization 18 (scale and bias
//         per group), 21 (per channel).
// Shapes: x, y [n, c, ...]; an instance is one channel, a group c / num_groups of them.
// Math:   y = (x - mean) / sqrt(variance + epsilon) * scale + bias over each instance or group.
// Types:  float by kernels, float16 and bfloat16 in float, double.
// Errors: kInvalidArgument when channels do not divide into groups or scale and bias do not fit.
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_group_norm.h"
#include "core/ops/op_norm.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Groups {
  int64_t count = 0;     // of all groups: n * groups
  int64_t groups = 0;    // in one batch item
  int64_t channels = 0;  // in one group
  int64_t inner = 0;     // elements of one channel
  bool scale_per_channel = true;
};

// y = x - mean; returns 1 / sqrt(variance + epsilon).
float center_row(const FolioKernels& kernels, int64_t n, const float* x, float epsilon, float* y) {
  const float mean = kernels.sum_f32(n, x) / static_cast<float>(n);
  kernels.binary_f32[kFolioSub](n, x, 1, &mean, 0, y);
  return 1 / std::sqrt(kernels.sum_squares_f32(n, y) / static_cast<float>(n) + epsilon);
}

double center_row(const FolioKernels&, int64_t n, const double* x, float epsilon, double* y) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = x[i] - mean;
    squares += y[i] * y[i];
  }
  return 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(epsilon));
}

template <typename T>
void normalize(OpRun& run, const Groups& g, const T* x, const T* scale, const T* bias,
               float epsilon, T* y) {
  const int64_t size = g.channels * g.inner;
  if (size == 0) return;
  const int64_t grain = std::max<int64_t>(1, kElementGrain / size);
  run.parallel().for_range(g.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      T* out = y + group * size;
      const T factor = center_row(run.kernels(), size, x + group * size, epsilon, out);
      for (int64_t c = 0; c < g.channels; ++c) {
        const int64_t at =
            g.scale_per_channel ? group % g.groups * g.channels + c : group % g.groups;
        T* row = out + c * g.inner;
        scale_row(run.kernels(), g.inner, row, factor * scale[at], bias[at], row);
      }
    }
  });
}

class GroupNorm final : public OpKernel {
 public:
  GroupNormAttrs attrs;
  bool scale_per_channel = true;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(const Tensor* scale, run.tensor(1, x->dtype()));
    FOLIO_TRY(const Tensor* bias, run.tensor(2, x->dtype()));
    FOLIO_TRY(const Groups g, groups_of(x->shape()));
    const int64_t expected = scale_per_channel ? g.groups * g.channels : g.groups;
    FOLIO_RETURN_IF_ERROR(check_parameters(*scale, *bias, expected));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (x->dtype() == DType::kDouble) {
      normalize(run, g, x->data<double>(), scale->data<double>(), bias->data<double>(),
                attrs.epsilon, y->data_mut<double>());
    } else if (x->dtype() == DType::kFloat) {
      normalize(run, g, x->data<float>(), scale->data<float>(), bias->data<float>(), attrs.epsilon,
                y->data_mut<float>());
    } else {
      FOLIO_TRY(float* wide, widen_half(run, *x));
      FOLIO_TRY(const float* wide_scale, widen_half(run, *scale));
      FOLIO_TRY(const float* wide_bias, widen_half(run, *bias));
      normalize<float>(run, g, wide, wide_scale, wide_bias, attrs.epsilon, wide);
      narrow_half(run, wide, y);
    }
    return Status::ok();
  }

 private:
  Result<Groups> groups_of(const Shape& shape) const {
    if (shape.rank() < 2) {
      return invalid_argument("input 0 has ", shape.rank(), " dims, expected at least 2");
    }
    Groups g;
    FOLIO_RETURN_IF_ERROR(check_channels(attrs, shape[1]));
    g.groups = attrs.groups(shape[1]);
    g.channels = attrs.num_groups == 0 ? 1 : shape[1] / g.groups;
    g.count = shape[0] * g.groups;
    g.inner = shape.product(2, shape.rank());
    g.scale_per_channel = scale_per_channel;
    return g;
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<GroupNorm>();
  const bool is_instance = build.node().op_type == "InstanceNormalization";
  FOLIO_TRY(kernel->attrs, parse_group_norm(build.attrs(), is_instance));
  kernel->scale_per_channel = is_instance || build.version() >= 21;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_instance_normalization(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "InstanceNormalization",
                .min_inputs = 3,
                .max_inputs = 3,
                .infer = infer_group_norm,
                .make = make});
  registry.add({.domain = "",
                .type = "GroupNormalization",
                .since = 18,
                .min_inputs = 3,
                .max_inputs = 3,
                .infer = infer_group_norm,
                .make = make});
}

}  // namespace folio
