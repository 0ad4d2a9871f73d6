// Softmax, LogSoftmax and Hardmax.
//
// Source: ONNX operator spec, opsets 1 and 11 (x is flattened to [outer, rest] at axis, default 1)
//         and 13 (along one axis, default -1).
// Shapes: x, y [outer, n, inner]; inner is 1 in the flattened form.
// Math:   exp(x - max) / sum(exp(x - max)), its logarithm, or 1 at the first maximum
//         and 0 elsewhere.
// Types:  float, double; float16 and bfloat16 in float.
#include <algorithm>
#include <cmath>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_softmax.h"

namespace folio {
namespace {

enum class SoftmaxKind : uint8_t { kSoftmax, kLog, kHard };

// The place of the first maximum; a NaN is larger than nothing.
int64_t first_largest(const FolioKernels& kernels, int64_t n, const float* x) {
  const float most = kernels.max_f32(n, x);
  if (most != most) return std::max_element(x, x + n) - x;
  return std::find(x, x + n, most) - x;
}

int64_t first_largest(const FolioKernels&, int64_t n, const double* x) {
  return std::max_element(x, x + n) - x;
}

template <typename T>
void hardmax_rows(const FolioKernels& kernels, int64_t rows, int64_t n, const T* x, T* y) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const int64_t best = first_largest(kernels, n, x);  // before y, which may be x, is written
    std::fill_n(y, n, T(0));
    y[best] = T(1);
  }
}

void log_softmax_rows(const FolioKernels& kernels, int64_t rows, int64_t n, const float* x,
                      float* y) {
  kernels.log_softmax_f32(rows, n, x, y);
}

void log_softmax_rows(const FolioKernels& kernels, int64_t rows, int64_t n, const double* x,
                      double* y) {
  constexpr int64_t kPart = 256;
  double part[kPart];
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const double most = largest_of(kernels, n, x);
    double sum = 0;
    for (int64_t at = 0; at < n; at += kPart) {
      const int64_t count = std::min(kPart, n - at);
      for (int64_t i = 0; i < count; ++i) part[i] = x[at + i] - most;
      kernels.unary_f64[kFolioExpF64](count, part, part);
      kernels.reduce_rows_f64[kFolioReduceSum](1, count, part, count, &sum);
    }
    const double log_sum = std::log(sum);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - most - log_sum;
  }
}

template <typename T>
void rows_of(const FolioKernels& kernels, SoftmaxKind kind, int64_t rows, int64_t n, const T* x,
             T* y) {
  switch (kind) {
    case SoftmaxKind::kSoftmax:
      return softmax_rows(kernels, rows, n, x, y);
    case SoftmaxKind::kLog:
      return log_softmax_rows(kernels, rows, n, x, y);
    case SoftmaxKind::kHard:
      return hardmax_rows(kernels, rows, n, x, y);
  }
}

class Softmax final : public OpKernel {
 public:
  SoftmaxKind kind = SoftmaxKind::kSoftmax;
  int64_t axis = -1;
  bool flatten = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const Shape& shape = x->shape();
    int at = 0;
    if (shape.rank() > 0) {
      FOLIO_TRY(at, normalize_axis(axis, shape.rank()));
    }
    const int64_t outer = shape.product(0, at);
    const int64_t n =
        flatten ? shape.product(at, shape.rank()) : (shape.rank() > 0 ? shape[at] : 1);
    const int64_t inner = flatten || shape.rank() == 0 ? 1 : shape.product(at + 1, shape.rank());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    switch (x->dtype()) {
      case DType::kFloat:
        return rows(run, outer, n, inner, x->data<float>(), y->data_mut<float>());
      case DType::kDouble:
        return rows(run, outer, n, inner, x->data<double>(), y->data_mut<double>());
      case DType::kFloat16:
      case DType::kBfloat16: {
        FOLIO_TRY(float* wide, widen_half(run, *x));
        FOLIO_RETURN_IF_ERROR(rows(run, outer, n, inner, wide, wide));
        narrow_half(run, wide, y);
        return Status::ok();
      }
      default:
        return wrong_type(0, x->dtype());
    }
  }

 private:
  // Strips of columns.
  void columns(OpRun& run, int64_t outer, int64_t n, int64_t inner, const float* x,
               float* y) const {
    constexpr int64_t kStrip = 64;  // columns that keep a kernel busy
    const FolioKernels& kernels = run.kernels();
    const auto kernel =
        kind == SoftmaxKind::kLog ? kernels.log_softmax_columns_f32 : kernels.softmax_columns_f32;
    const int64_t strips = (inner + kStrip - 1) / kStrip;
    const int64_t grain = std::max<int64_t>(1, 8192 / (n * std::min(kStrip, inner)));
    run.parallel().for_range(outer * strips, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t from = task % strips * kStrip;
        const int64_t at = task / strips * n * inner + from;
        kernel(n, std::min(kStrip, inner - from), x + at, inner, y + at, inner);
      }
    });
  }

  template <typename T>
  Status rows(OpRun& run, int64_t outer, int64_t n, int64_t inner, const T* x, T* y) const {
    if (inner == 1) {
      run.parallel().for_range(
          outer, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
            rows_of(run.kernels(), kind, end - begin, n, x + begin * n, y + begin * n);
          });
      return Status::ok();
    }
    if constexpr (std::is_same_v<T, float>) {
      if (kind != SoftmaxKind::kHard) {
        columns(run, outer, n, inner, x, y);
        return Status::ok();
      }
    }
    // A strided axis: one line is gathered, computed and scattered.
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(n) * sizeof(T)));
    auto* line = reinterpret_cast<T*>(bytes);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t base = o * n * inner + i;
        for (int64_t j = 0; j < n; ++j) line[j] = x[base + j * inner];
        rows_of(run.kernels(), kind, 1, n, line, line);
        for (int64_t j = 0; j < n; ++j) y[base + j * inner] = line[j];
      }
    }
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Softmax>();
  const std::string& type = build.node().op_type;
  kernel->kind = type == "Softmax"      ? SoftmaxKind::kSoftmax
                 : type == "LogSoftmax" ? SoftmaxKind::kLog
                                        : SoftmaxKind::kHard;
  kernel->flatten = build.version() < 13;
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", kernel->flatten ? 1 : -1));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_softmax(OpRegistry& registry) {
  OpDef def;
  def.infer = infer;
  def.make = make;
  for (const char* type : {"Softmax", "LogSoftmax", "Hardmax"}) {
    def.type = type;
    registry.add(def);
  }
}

}  // namespace folio
