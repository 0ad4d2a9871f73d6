// UnfoldTensor: every slice of some length along an axis.
//
// Source: com.microsoft UnfoldTensor 1 (ONNX Runtime's contrib operators).
// Shapes: x [outer.., n, inner..] -> y [outer.., (n - size) / step + 1, inner.., size].
// Math:   y[o, i, j, k] = x[o, i * step + k, j]
// Types:  all types.
// Errors: kInvalidArgument where size is not in [1, n].
#include "core/base/checked_math.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

struct Options {
  int64_t axis = -1;
  int64_t size = 0;
  int64_t step = 1;

  static Result<Options> parse(const Attributes& attrs) {
    Options options;
    FOLIO_TRY(options.axis, attrs.get_int("dim", -1));
    FOLIO_TRY(options.size, attrs.get_int("size"));
    FOLIO_TRY(options.step, attrs.get_int("step", 1));
    if (options.size < 1 || options.step < 1) {
      return invalid_graph("size is ", options.size, " and step ", options.step,
                           ", expected 1 or more");
    }
    return options;
  }

  // How many slices an axis of `n` elements has.
  Result<int64_t> count(int64_t n) const {
    if (size > n) return invalid_argument("size is ", size, " along an axis of ", n, " elements");
    return (n - size) / step + 1;
  }
};

class UnfoldTensor final : public OpKernel {
 public:
  explicit UnfoldTensor(const Options& options) : options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int axis, normalize_axis(options_.axis, x->rank()));
    FOLIO_TRY(const int64_t count, options_.count(x->dim(axis)));
    std::vector<int64_t> dims(x->shape().begin(), x->shape().end());
    dims[static_cast<size_t>(axis)] = count;
    dims.push_back(options_.size);
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    StridedView view;
    const int64_t inner = x->shape().product(axis + 1, x->rank());
    view.add(x->shape().product(0, axis), x->dim(axis) * inner);
    view.add(count, count > 1 ? options_.step * inner : 0);  // a step beyond the end may be huge
    view.add(inner, 1);
    view.add(options_.size, inner);
    return copy_strided(run, view, *x, y);
  }

 private:
  Options options_;
};

Status infer_unfold(OpInfer& infer) {
  FOLIO_TRY(const Options options, Options::parse(infer.attrs()));
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> out;
  if (x) {
    FOLIO_TRY(const int axis, normalize_axis(options.axis, static_cast<int>(x->size())));
    Dim& dim = out.emplace(*x)[static_cast<size_t>(axis)];
    if (dim.is_value()) {
      FOLIO_TRY(const int64_t count, options.count(dim.value));
      dim = Dim::of(count);
    } else if (options.size != 1 || options.step != 1) {
      dim = Dim::unknown();
    }
    out->push_back(Dim::of(options.size));
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_unfold(OpBuild& build) {
  FOLIO_TRY(const Options options, Options::parse(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<UnfoldTensor>(options));
}

}  // namespace

[[gnu::cold]] void register_unfold_tensor(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "UnfoldTensor";
  def.keeps_half = true;
  def.is_exact = true;
  def.unaligned_inputs = 1;
  def.infer = infer_unfold;
  def.make = make_unfold;
  registry.add(def);
}

}  // namespace folio
