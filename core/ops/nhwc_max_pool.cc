// NhwcMaxPool: max pooling of bytes with channels last.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.NhwcMaxPool; attributes as ONNX's MaxPool.
// Shapes: x [N, spatial.., C] -> y [N, out.., C].
// Types:  int8, uint8.
#include <algorithm>

#include "core/ops/op_registry.h"
#include "core/ops/op_window.h"

namespace folio {
namespace {

// What is pooled: taps are taken together, as many as fit.
struct Taps {
  static constexpr int64_t kMost = 32;
  const uint8_t* rows[kMost];
  int64_t count = 0;
};

void pool_pixel(const FolioKernels& kernels, const Window& w, const WindowTaps r[],
                int64_t channels, bool is_signed, const uint8_t* x, uint8_t* y) {
  Taps taps;
  const auto take = [&] {
    kernels.max_b8(channels, taps.count, taps.rows, is_signed ? 1 : 0, y);
    taps.rows[0] = y;
    taps.count = 1;
  };
  for (int64_t kd = r[0].from; kd < r[0].to; ++kd) {
    const int64_t d = r[0].first + kd * w.dilation[0];
    for (int64_t kh = r[1].from; kh < r[1].to; ++kh) {
      const int64_t row = (d * w.in[1] + r[1].first + kh * w.dilation[1]) * w.in[2];
      for (int64_t kw = r[2].from; kw < r[2].to; ++kw) {
        if (taps.count == Taps::kMost) take();
        taps.rows[taps.count++] = x + (row + r[2].first + kw * w.dilation[2]) * channels;
      }
    }
  }
  if (taps.count > 0) {
    take();
  } else {
    std::fill_n(y, channels, static_cast<uint8_t>(is_signed ? 0x80 : 0));
  }
}

void pool(OpRun& run, const Window& w, int64_t batch, int64_t channels, bool is_signed,
          const uint8_t* x, uint8_t* y) {
  const int64_t rows = w.out[0] * w.out[1];
  const int64_t work = std::max<int64_t>(w.out[2] * w.kernel_count() * channels, 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / work);
  run.parallel().for_range(batch * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const uint8_t* image = x + at / rows * w.in_count() * channels;
      WindowTaps r[kSpatial] = {taps_inside(w, 0, at % rows / w.out[1]),
                                taps_inside(w, 1, at % w.out[1]), WindowTaps{}};
      for (int64_t v = 0; v < w.out[2]; ++v) {
        r[2] = taps_inside(w, 2, v);
        pool_pixel(run.kernels(), w, r, channels, is_signed, image,
                   y + (at * w.out[2] + v) * channels);
      }
    }
  });
}

class NhwcMaxPool final : public OpKernel {
 public:
  WindowAttrs window;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->rank() < 3) {
      return invalid_argument("input ", x->shape().to_string(), " has too few dims");
    }
    FOLIO_TRY(const Window w, make_window(window, channels_first(x->shape()), window.kernel));
    const int64_t channels = x->dim(x->rank() - 1);
    Shape out{x->dim(0)};
    w.append_out(&out);
    out.push_back(channels);
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), out));
    if (y->count() == 0) return Status::ok();
    if (x->dtype() != DType::kUint8 && x->dtype() != DType::kInt8) {
      return not_implemented("pooling of ", dtype_name(x->dtype()), " with channels last");
    }
    pool(run, w, x->dim(0), channels, x->dtype() == DType::kInt8, x->raw(), y->raw_mut());
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> out;
  if (x && x->size() >= 3) {
    FOLIO_TRY(const WindowAttrs attrs, parse_window(infer.attrs()));
    const size_t rank = x->size() - 2;
    if (attrs.kernel.size() != rank) {
      return invalid_graph("kernel_shape has ", attrs.kernel.size(), " entries, the input ",
                           type_to_string(infer.input(0)), " ", rank, " spatial dims");
    }
    out = Dims{(*x)[0]};
    for (size_t axis = 0; axis < rank; ++axis) {
      out->push_back(
          window_out_dim(attrs, infer.table(), (*x)[axis + 1], attrs.kernel[axis], axis, rank));
    }
    out->push_back(x->back());
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<NhwcMaxPool>();
  FOLIO_TRY(kernel->window, parse_window(build.attrs()));
  if (kernel->window.kernel.empty()) {
    return invalid_graph("attribute 'kernel_shape' is required but missing");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_max_pool(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "NhwcMaxPool";
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
