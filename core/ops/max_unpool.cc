// MaxUnpool: what MaxPool kept, put back where it came from, zeros elsewhere.
//
// Source: ONNX operator spec, MaxUnpool, opsets 9, 11, 22.
// Shapes: x and indices [n, c, in..] -> y [n, c, (in - 1) * stride + kernel - pads], or
// output_shape
//         (input 2), in which that lies at the start.
// Types:  X: all types but those of 2 and 4 bits; indices int32, int64.
// Errors: kInvalidArgument for indices outside, attributes and shapes that do not fit.
#include "core/base/checked_math.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

class MaxUnpool final : public OpKernel {
 public:
  std::vector<int64_t> kernel, pads, strides;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> indices, run.ints(1));
    const Shape& in = x->shape();
    if (!(run.value(1).tensor().shape() == in)) {
      return invalid_argument("input 0 is ", in.to_string(), ", indices ",
                              run.value(1).tensor().shape().to_string());
    }
    FOLIO_TRY(const Shape inner, pooled_from(in));
    Shape shape = inner;
    if (run.has_input(2)) {
      FOLIO_TRY(const std::vector<int64_t> given, run.ints(2));
      FOLIO_TRY(shape, shape_from(given));
      bool fits = shape.rank() == inner.rank();
      for (int i = 0; fits && i < shape.rank(); ++i) fits = shape[i] >= inner[i];
      if (!fits) {
        return invalid_argument("output_shape is ", shape.to_string(), ", expected at least ",
                                inner.to_string());
      }
    }
    for (const int64_t index : indices) {
      if (index < 0 || index >= inner.count()) {
        return invalid_argument("index ", index, " is outside ", inner.to_string());
      }
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    return dispatch_move(x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      put(indices, inner, x->data<T>(), y);
      return Status::ok();
    });
  }

 private:
  template <typename T>
  static void put(const std::vector<int64_t>& indices, const Shape& inner, const T* x, Tensor* y) {
    T* to = y->data_mut<T>();
    std::fill_n(to, y->count(), T{});
    int64_t strides_of_y[kMaxRank];
    row_strides(y->shape(), strides_of_y);
    for (const int64_t index : indices) {
      int64_t rest = index;
      int64_t at = 0;
      for (int i = inner.rank() - 1; i >= 0; --i) {
        at += rest % inner[i] * strides_of_y[i];
        rest /= inner[i];
      }
      to[at] = *x++;
    }
  }

  Result<Shape> pooled_from(const Shape& in) const {
    const size_t spatial = kernel.size();
    const bool fits = spatial > 0 && static_cast<size_t>(in.rank()) == spatial + 2 &&
                      (strides.empty() || strides.size() == spatial) &&
                      (pads.empty() || pads.size() == 2 * spatial);
    if (!fits) {
      return invalid_argument("input 0 is ", in.to_string(), ", kernel_shape has ", spatial,
                              " entries, strides ", strides.size(), ", pads ", pads.size());
    }
    std::vector<int64_t> dims{in[0], in[1]};
    for (size_t i = 0; i < spatial; ++i) {
      int64_t dim = in[static_cast<int>(i) + 2] - 1;
      bool good = checked_mul(dim, strides.empty() ? 1 : strides[i], &dim) &&
                  checked_add(dim, kernel[i], &dim);
      if (good && !pads.empty()) {
        good = checked_sub(dim, pads[i], &dim) && checked_sub(dim, pads[i + spatial], &dim);
      }
      if (!good) return invalid_argument("axis ", i + 2, " overflows");
      dims.push_back(dim);
    }
    return shape_from(dims);
  }
};

Status infer_unpool(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> out;
  if (infer.has_input(2)) {
    const auto given = infer.data(2);
    if (given && given->size() <= static_cast<size_t>(kMaxRank)) out = *given;
  } else if (x && x->size() >= 2) {
    out = Dims(x->size());
    (*out)[0] = (*x)[0];
    (*out)[1] = (*x)[1];
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_unpool(OpBuild& build) {
  auto made = std::make_unique<MaxUnpool>();
  FOLIO_TRY(made->kernel, build.attrs().get_ints("kernel_shape"));
  FOLIO_TRY(made->pads, build.attrs().get_ints("pads"));
  FOLIO_TRY(made->strides, build.attrs().get_ints("strides"));
  return std::unique_ptr<OpKernel>(std::move(made));
}

}  // namespace

[[gnu::cold]] void register_max_unpool(OpRegistry& registry) {
  OpDef def;
  def.type = "MaxUnpool";
  def.since = 9;
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.infer = infer_unpool;
  def.make = make_unpool;
  registry.add(def);
}

}  // namespace folio
