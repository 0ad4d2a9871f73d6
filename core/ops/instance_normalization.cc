// InstanceNormalization and GroupNormalization.
//
// Source: ONNX operator spec; InstanceNormalization 1, 6, 22; GroupNormalization 18 (scale and bias
//         per group), 21 (per channel).
// Shapes: x, y [n, c, ...]; an instance is one channel, a group c / num_groups of them.
// Math:   y = (x - mean) / sqrt(variance + epsilon) * scale + bias over each instance or group.
// Types:  float by kernels, float16 and bfloat16 in float, double.
// Splits: by groups, or parts of each where there are fewer groups than threads; parts are summed
//         apart in every case, so bits do not depend on threads.
// Errors: kInvalidArgument when channels do not divide into groups or scale and bias do not fit.
#include <cmath>
#include <numeric>
#include <vector>

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

constexpr int64_t kPart = 1 << 14;  // numbers of a group that one thread sums

// The sum of one(begin, end) of each part, in the order of parts; threads may share them.
template <typename One>
double sum_parts(OpRun& run, bool is_shared, int64_t n, const One& one) {
  if (!is_shared) {
    double sum = 0;
    for (int64_t at = 0; at < n; at += kPart) sum += one(at, std::min(n, at + kPart));
    return sum;
  }
  std::vector<double> sums(static_cast<size_t>((n + kPart - 1) / kPart));
  run.parallel().for_range(n, kPart, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kPart) {
      sums[static_cast<size_t>(at / kPart)] = one(at, std::min(end, at + kPart));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// y = x - mean; returns 1 / sqrt(variance + epsilon).
float center_row(OpRun& run, bool is_shared, int64_t n, const float* x, float epsilon, float* y) {
  const FolioKernels& kernels = run.kernels();
  const auto count = static_cast<double>(n);
  const double sum = sum_parts(run, is_shared, n, [&](int64_t begin, int64_t end) {
    return kernels.sum_f32(end - begin, x + begin);
  });
  const auto mean = static_cast<float>(sum / count);
  const double squares = sum_parts(run, is_shared, n, [&](int64_t begin, int64_t end) {
    kernels.binary_f32[kFolioSub](end - begin, x + begin, 1, &mean, 0, y + begin);
    return kernels.sum_squares_f32(end - begin, y + begin);
  });
  return 1 / std::sqrt(static_cast<float>(squares / count) + epsilon);
}

double center_row(OpRun&, bool, int64_t n, const double* x, float epsilon, double* y) {
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
  const auto scale_part = [&](int64_t group, int64_t c, T factor, int64_t begin, int64_t end) {
    const int64_t at = g.scale_per_channel ? group % g.groups * g.channels + c : group % g.groups;
    T* row = y + group * size + c * g.inner + begin;
    scale_row(run.kernels(), end - begin, row, factor * scale[at], bias[at], row);
  };
  if (g.count < run.parallel().thread_count() && size > kPart) {  // threads share each group
    for (int64_t group = 0; group < g.count; ++group) {
      const T factor = center_row(run, true, size, x + group * size, epsilon, y + group * size);
      const int64_t parts = (g.inner + kPart - 1) / kPart;
      const int64_t grain = std::max<int64_t>(1, kPart / g.inner);
      run.parallel().for_range(g.channels * parts, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i % parts * kPart;
          scale_part(group, i / parts, factor, first, std::min(first + kPart, g.inner));
        }
      });
    }
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kElementGrain / size);
  run.parallel().for_range(g.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const T factor = center_row(run, false, size, x + group * size, epsilon, y + group * size);
      for (int64_t c = 0; c < g.channels; ++c) scale_part(group, c, factor, 0, g.inner);
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
                .make = make,
                .one_type = 0b111});
  registry.add({.domain = "",
                .type = "GroupNormalization",
                .since = 18,
                .min_inputs = 3,
                .max_inputs = 3,
                .infer = infer_group_norm,
                .make = make,
                .one_type = 0b111});
}

}  // namespace folio
