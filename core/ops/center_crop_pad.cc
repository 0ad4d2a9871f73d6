// CenterCropPad: each axis cut or filled with zeros on both sides to a given length.
//
// Source: ONNX operator spec, CenterCropPad, opset 18.
// Shapes: shape has an entry for each of `axes` (of all when absent) -> y with these dims.
// Math:   what does not divide by two is cut or filled more at the end.
// Types:  all types but those of 2 and 4 bits.
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

class CenterCropPad final : public OpKernel {
 public:
  explicit CenterCropPad(std::optional<std::vector<int64_t>> axes) : axes_(std::move(axes)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> sizes, run.ints(1));
    std::vector<int> axes;
    if (axes_) {
      FOLIO_TRY(axes, normalize_axes(*axes_, x->rank()));
    } else {
      for (int i = 0; i < x->rank(); ++i) axes.push_back(i);
    }
    if (axes.size() != sizes.size()) {
      return invalid_argument("shape has ", sizes.size(), " entries for ", axes.size(), " axes");
    }
    std::vector<int64_t> dims(x->shape().begin(), x->shape().end());
    for (size_t i = 0; i < axes.size(); ++i) dims[static_cast<size_t>(axes[i])] = sizes[i];
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    return dispatch_move(x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(y->data_mut<T>(), y->count(), T{});
      if (x->count() > 0) move_center(x->shape(), shape, x->data<T>(), y->data_mut<T>());
      return Status::ok();
    });
  }

 private:
  // The block that both have.
  template <typename T>
  static void move_center(const Shape& in, const Shape& out, const T* x, T* y) {
    int64_t in_strides[kMaxRank];
    int64_t out_strides[kMaxRank];
    row_strides(in, in_strides);
    row_strides(out, out_strides);
    int64_t both[kMaxRank];
    int64_t rows = 1;
    const int last = in.rank() - 1;
    for (int i = 0; i <= last; ++i) {
      both[i] = std::min(in[i], out[i]);
      if (i < last) rows *= both[i];
      x += (in[i] - both[i]) / 2 * in_strides[i];
      y += (out[i] - both[i]) / 2 * out_strides[i];
    }
    if (last < 0) {
      *y = *x;
      return;
    }
    if (rows == 0 || both[last] == 0) return;
    Odometer<2> at(last, both, {in_strides, out_strides});
    at.seek(0);
    for (int64_t row = 0; row < rows; ++row, at.advance()) {
      move_run(y + at.offset(1), x + at.offset(0), both[last]);
    }
  }

  std::optional<std::vector<int64_t>> axes_;
};

Result<std::optional<std::vector<int64_t>>> axes_of(const Attributes& attrs) {
  if (!attrs.has("axes")) return std::optional<std::vector<int64_t>>();
  FOLIO_TRY(std::vector<int64_t> axes, attrs.get_ints("axes"));
  return std::optional<std::vector<int64_t>>(std::move(axes));
}

Status infer_crop(OpInfer& infer) {
  FOLIO_TRY(const auto given, axes_of(infer.attrs()));
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> out;
  if (x) {
    const auto sizes = infer.data(1);
    std::vector<int> axes;
    if (given) {
      FOLIO_TRY(axes, normalize_axes(*given, static_cast<int>(x->size())));
    } else {
      for (size_t i = 0; i < x->size(); ++i) axes.push_back(static_cast<int>(i));
    }
    out = *x;
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool known = sizes && sizes->size() == axes.size();
      (*out)[static_cast<size_t>(axes[i])] = known ? (*sizes)[i] : Dim::unknown();
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_crop(OpBuild& build) {
  FOLIO_TRY(auto axes, axes_of(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<CenterCropPad>(std::move(axes)));
}

}  // namespace

[[gnu::cold]] void register_center_crop_pad(OpRegistry& registry) {
  OpDef def;
  def.type = "CenterCropPad";
  def.since = 18;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_crop;
  def.make = make_crop;
  registry.add(def);
}

}  // namespace folio
