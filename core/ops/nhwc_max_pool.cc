// NhwcMaxPool: max pooling of bytes with channels last.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.NhwcMaxPool; attributes as ONNX's MaxPool.
// Shapes: x [N, spatial.., C] -> y [N, out.., C].
// Types:  int8, uint8.
#include <limits>

#include "core/ops/op_registry.h"
#include "core/ops/op_window.h"

namespace folio {
namespace {

template <typename T>
void pool_pixel(const Window& w, const WindowTaps r[], int64_t channels, const T* x, T* y) {
  std::fill_n(y, channels, std::numeric_limits<T>::lowest());
  for (int64_t kd = r[0].from; kd < r[0].to; ++kd) {
    const int64_t d = r[0].first + kd * w.dilation[0];
    for (int64_t kh = r[1].from; kh < r[1].to; ++kh) {
      const int64_t row = (d * w.in[1] + r[1].first + kh * w.dilation[1]) * w.in[2];
      for (int64_t kw = r[2].from; kw < r[2].to; ++kw) {
        const T* from = x + (row + r[2].first + kw * w.dilation[2]) * channels;
        for (int64_t c = 0; c < channels; ++c) y[c] = std::max(y[c], from[c]);
      }
    }
  }
}

template <typename T>
void pool(OpRun& run, const Window& w, int64_t batch, int64_t channels, const T* x, T* y) {
  const int64_t rows = w.out[0] * w.out[1];
  const int64_t work = std::max<int64_t>(w.out[2] * w.kernel_count() * channels, 1);
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / work);
  run.parallel().for_range(batch * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const T* image = x + at / rows * w.in_count() * channels;
      WindowTaps r[kSpatial] = {taps_inside(w, 0, at % rows / w.out[1]),
                                taps_inside(w, 1, at % w.out[1]), WindowTaps{}};
      for (int64_t v = 0; v < w.out[2]; ++v) {
        r[2] = taps_inside(w, 2, v);
        pool_pixel(w, r, channels, image, y + (at * w.out[2] + v) * channels);
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
    if (x->dtype() == DType::kUint8) {
      pool(run, w, x->dim(0), channels, x->data<uint8_t>(), y->data_mut<uint8_t>());
    } else if (x->dtype() == DType::kInt8) {
      pool(run, w, x->dim(0), channels, x->data<int8_t>(), y->data_mut<int8_t>());
    } else {
      return not_implemented("pooling of ", dtype_name(x->dtype()), " with channels last");
    }
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

void register_nhwc_max_pool(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "NhwcMaxPool";
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
