// CropAndResize: regions of an image, each resized to one size.
//
// Source: ONNX Runtime ContribOperators, com.microsoft CropAndResize (after TensorFlow's).
// Shapes: x [n, c, h, w], rois [r, 4] (y1, x1, y2, x2, in parts of height - 1 and width - 1),
//         batch_indices [r], crop_size [2] (height, width) -> y [r, c, height, width].
// Math:   the first and last row of a crop are y1 and y2, the others evenly between; a single row
//         is in the middle. Places outside x have extrapolation_value; others are bilinear, or the
//         nearest element, halves away from zero.
// Types:  float, double; float16 in float. Indices and sizes int32.
// Errors: kInvalidArgument for shapes that do not agree, batch indices outside, negative sizes.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_copied_input.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using ImageTypes = TypeList<float, double, Float16>;

struct Crops {
  int64_t channels = 0, height = 0, width = 0;  // of x
  int64_t rois = 0, out_height = 0, out_width = 0;
  const int32_t* batches = nullptr;  // a copy that nobody else can write to
};

// A place along one axis: between two elements, or outside.
template <typename C>
struct Place {
  bool inside = false;
  int64_t low = 0;
  int64_t high = 0;
  int64_t nearest = 0;
  C part = 0;
};

template <typename C>
Place<C> place_of(C first, C last, int64_t i, int64_t count, int64_t size) {
  const C edge = static_cast<C>(size - 1);
  C at = 0;
  if (count == 1) {
    at = C(0.5) * (first + last) * edge;
  } else if (i == count - 1) {
    at = last * edge;
  } else {
    const C step = (last - first) * edge / static_cast<C>(count - 1);
    at = first * edge + static_cast<C>(i) * step;
  }
  Place<C> place;
  place.inside = at >= 0 && at <= edge;  // false for NaN, and where there are no elements
  if (!place.inside) return place;
  place.low = static_cast<int64_t>(std::floor(at));
  place.high = static_cast<int64_t>(std::ceil(at));
  place.nearest = static_cast<int64_t>(std::round(at));
  place.part = at - std::floor(at);
  return place;
}

class CropAndResize final : public OpKernel {
 public:
  bool nearest = false;
  float outside = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(ImageTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(const Tensor* rois, run.tensor(1, x->dtype()));
    FOLIO_TRY(const Crops crops, crops_of(run, *x, *rois));
    const int64_t dims[] = {crops.rois, crops.channels, crops.out_height, crops.out_width};
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    dispatch(ImageTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t grain = std::max<int64_t>(1, kElementGrain / crops.channels / crops.out_width);
      run.parallel().for_range(crops.rois * crops.out_height, grain,
                               [&](int64_t begin, int64_t end) {
                                 for (int64_t i = begin; i < end; ++i) {
                                   row(crops, i, x->data<T>(), rois->data<T>(), y->data_mut<T>());
                                 }
                               });
    });
    return Status::ok();
  }

 private:
  static Result<Crops> crops_of(OpRun& run, const Tensor& x, const Tensor& rois) {
    FOLIO_TRY(const Tensor* batches, run.tensor(2, DType::kInt32));
    FOLIO_TRY(const Tensor* size, run.tensor(3, DType::kInt32));
    if (x.rank() != 4) {
      return invalid_argument("X ", x.shape().to_string(), " must be [N,C,H,W]");
    }
    if (rois.rank() != 2 || rois.dim(1) != 4 || batches->rank() != 1 ||
        batches->dim(0) != rois.dim(0)) {
      return invalid_argument("rois ", rois.shape().to_string(), " and batch_indices ",
                              batches->shape().to_string(), " must be [R,4] and [R]");
    }
    if (size->rank() != 1 || size->count() != 2) {
      return invalid_argument("crop_size ", size->shape().to_string(), " must be [2]");
    }
    Crops crops{x.dim(1), x.dim(2), x.dim(3), rois.dim(0)};
    crops.out_height = size->data<int32_t>()[0];
    crops.out_width = size->data<int32_t>()[1];
    if (crops.out_height < 0 || crops.out_width < 0) {
      return invalid_argument("crop_size is ", crops.out_height, " by ", crops.out_width);
    }
    FOLIO_TRY(crops.batches, copied_input<int32_t>(run, *batches, crops.rois));
    for (int64_t i = 0; i < crops.rois; ++i) {
      if (crops.batches[i] >= 0 && crops.batches[i] < x.dim(0)) continue;
      return invalid_argument("batch_indices[", i, "] is ", crops.batches[i], ", X holds ",
                              x.dim(0), " images");
    }
    return crops;
  }

  // Row i of all crops, in every channel.
  template <typename T>
  void row(const Crops& crops, int64_t i, const T* x, const T* rois, T* y) const {
    using C = Compute<T>;
    const int64_t roi = i / crops.out_height;
    const int64_t line = i % crops.out_height;
    const auto corner = [&](int64_t k) { return static_cast<C>(rois[roi * 4 + k]); };
    const Place<C> v = place_of(corner(0), corner(2), line, crops.out_height, crops.height);
    const int64_t plane = crops.height * crops.width;
    const T* image = x + crops.batches[roi] * crops.channels * plane;
    T* to = y + (roi * crops.channels * crops.out_height + line) * crops.out_width;
    for (int64_t k = 0; k < crops.out_width; ++k) {
      const Place<C> u = place_of(corner(1), corner(3), k, crops.out_width, crops.width);
      for (int64_t c = 0; c < crops.channels; ++c) {
        T& out = to[c * crops.out_height * crops.out_width + k];
        const bool inside = u.inside && v.inside;
        out = static_cast<T>(inside ? sample(image + c * plane, crops.width, v, u)
                                    : static_cast<C>(outside));
      }
    }
  }

  template <typename T, typename C>
  C sample(const T* plane, int64_t width, const Place<C>& v, const Place<C>& u) const {
    const auto at = [&](int64_t r, int64_t c) { return static_cast<C>(plane[r * width + c]); };
    if (nearest) return at(v.nearest, u.nearest);
    const C top = at(v.low, u.low) + (at(v.low, u.high) - at(v.low, u.low)) * u.part;
    const C bottom = at(v.high, u.low) + (at(v.high, u.high) - at(v.high, u.low)) * u.part;
    return top + (bottom - top) * v.part;
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<CropAndResize>();
  FOLIO_TRY(std::string mode, build.attrs().get_string("mode", "bilinear"));
  for (char& c : mode) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (mode != "bilinear" && mode != "nearest") {
    return invalid_graph("mode is '", mode, "', expected bilinear or nearest");
  }
  kernel->nearest = mode == "nearest";
  FOLIO_TRY(kernel->outside, build.attrs().get_float("extrapolation_value", 0));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  Dims out(4, Dim::unknown());
  if (const Dims* x = infer.dims_of(0)) {
    if (x->size() != 4) return invalid_graph("X has rank ", x->size(), ", expected 4");
    out[1] = (*x)[1];
  }
  if (const Dims* rois = infer.dims_of(1); rois && !rois->empty()) out[0] = (*rois)[0];
  if (const auto size = infer.data(3); size && size->size() == 2) {
    out[2] = (*size)[0];
    out[3] = (*size)[1];
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_crop_and_resize(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "CropAndResize";
  def.min_inputs = 4;
  def.max_inputs = 4;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
