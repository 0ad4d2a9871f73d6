// NhwcMaxPool: max pooling of bytes with channels last.
//
// Source: ONNX Runtime ContribOperators, com.microsoft.NhwcMaxPool; attributes as ONNX's MaxPool.
// Shapes: x [N, spatial.., C] -> y [N, out.., C].
// Types:  int8, uint8.
#include "core/ops/op_byte_pool.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

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
    return max_pool_bytes(run, w, x->dim(0), channels, x->dtype() == DType::kInt8, x->raw(),
                          y->raw_mut());
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
