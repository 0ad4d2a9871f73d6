// Crop: the inner part of images.
//
// Source: ONNX operator spec before 1.5, Crop, experimental opset 1 (CoreML converters).
// Shapes: x [n, c, h, w] -> y [n, c, height, width] from (top, left) on: border is (left, top,
//         right, bottom), scale, if given, (height, width), else what is left of x.
// Types:  float, double, float16, bfloat16.
// Errors: kInvalidArgument when borders or scale reach beyond x; kInvalidGraph when they are
//         negative or not 4 and 2 numbers.
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Options {
  std::vector<int64_t> border;  // left, top, right, bottom
  std::vector<int64_t> scale;   // height, width; empty: absent
};

Result<Options> parse(const Attributes& attrs) {
  Options options;
  FOLIO_TRY(options.border, attrs.get_ints("border"));
  FOLIO_TRY(options.scale, attrs.get_ints("scale"));
  if (options.border.size() != 4) {
    return invalid_graph("border has ", options.border.size(), " numbers, expected 4");
  }
  if (!options.scale.empty() && options.scale.size() != 2) {
    return invalid_graph("scale has ", options.scale.size(), " numbers, expected 2");
  }
  for (const auto* list : {&options.border, &options.scale}) {
    for (const int64_t number : *list) {
      if (number < 0) return invalid_graph("border or scale has ", number, ", expected 0 or more");
    }
  }
  return options;
}

// How many of `size` elements stay; axis 0 is the rows. None of the differences overflows.
Result<int64_t> kept_of(const Options& options, size_t axis, int64_t size) {
  const int64_t before = options.border[1 - axis];
  const int64_t after = options.border[3 - axis];
  if (before > size || after > size - before) {
    return invalid_argument("borders of ", before, " and ", after, " do not fit into ", size,
                            axis == 0 ? " rows" : " columns");
  }
  if (options.scale.empty()) return size - before - after;
  if (options.scale[axis] > size - before) {
    return invalid_argument("scale ", options.scale[axis], " behind a border of ", before,
                            " does not fit into ", size, axis == 0 ? " rows" : " columns");
  }
  return options.scale[axis];
}

class Crop final : public OpKernel {
 public:
  explicit Crop(Options options) : options_(std::move(options)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    if (x->rank() != 4) {
      return invalid_argument("X ", x->shape().to_string(), " must be [N,C,H,W]");
    }
    Shape out = x->shape();
    FOLIO_TRY(out[2], kept_of(options_, 0, x->dim(2)));
    FOLIO_TRY(out[3], kept_of(options_, 1, x->dim(3)));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), out));
    if (y->count() == 0) return Status::ok();
    return dispatch_move(x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t first = options_.border[1] * x->dim(3) + options_.border[0];
      for (int64_t row = 0; row < y->count() / out[3]; ++row) {
        const int64_t at = (row / out[2] * x->dim(2) + row % out[2]) * x->dim(3) + first;
        move_run(y->data_mut<T>() + row * out[3], element_at<T>(x->raw(), at), out[3]);
      }
      return Status::ok();
    });
  }

 private:
  Options options_;
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(Options options, parse(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<Crop>(std::move(options)));
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const Options options, parse(infer.attrs()));
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, infer.dtype(0));
  if (!x) return Status::ok();
  if (x->size() != 4) return invalid_graph("X has rank ", x->size(), ", expected 4");
  Dims out = *x;
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    Dim& dim = out[2 + axis];
    if (dim.is_value()) {
      FOLIO_TRY(const int64_t kept, kept_of(options, axis, dim.value));
      dim = Dim::of(kept);
    } else {
      dim = options.scale.empty() ? Dim::unknown() : Dim::of(options.scale[axis]);
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_crop(OpRegistry& registry) {
  OpDef def;
  def.type = "Crop";
  def.infer = infer;
  def.make = make;
  def.is_exact = true;
  def.unaligned_inputs = 1;
  registry.add(def);
}

}  // namespace folio
