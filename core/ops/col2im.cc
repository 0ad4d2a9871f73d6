// Col2Im: columns of blocks summed into an image.
//
// Source: ONNX operator spec, Col2Im, opset 18.
// Shapes: x [n, c * blocks' elements, positions], image_shape [s..], block_shape [s..] ->
//         y [n, c, image_shape..], for any number of spatial axes.
// Math:   y[n, c, p * stride + k * dilation - pad] += x[n, c * elements + k, p].
// Types:  all numbers; float16 and bfloat16 in float, each sum rounded.
// Errors: kInvalidArgument when attributes do not fit the shapes.
#include "core/base/checked_math.h"
#include "core/ops/op_arithmetic.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Axis {
  int64_t image = 0;
  int64_t block = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;
  int64_t positions = 0;
};

// Adds one row of positions to the image: those of the innermost axis.
template <typename T>
void add_row(const FolioKernels& kernels, const Axis& axis, int64_t k, const T* x, T* y) {
  using C = Compute<T>;
  const int64_t at = k * axis.dilation - axis.pad;
  // The positions from `begin` to `end` are in the image.
  const int64_t begin = at < 0 ? (axis.stride - 1 - at) / axis.stride : 0;
  const int64_t room = axis.image - at + axis.stride - 1;
  const int64_t end = std::min(axis.positions, room < 0 ? 0 : room / axis.stride);
  if (begin >= end) return;
  T* to = y + at + begin * axis.stride;
  if constexpr (std::is_same_v<T, float>) {
    if (axis.stride == 1) {
      return kernels.binary_f32[kFolioAdd](end - begin, to, 1, x + begin, 1, to);
    }
  }
  for (int64_t p = begin; p < end; ++p, to += axis.stride) {
    *to = static_cast<T>(AddFunction()(static_cast<C>(*to), static_cast<C>(x[p])));
  }
}

// One element of the block over all positions: walks all axes but the last.
template <typename T>
void add_column(const FolioKernels& kernels, const std::vector<Axis>& axes, const int64_t* k,
                const T* x, T* y) {
  const size_t last = axes.size() - 1;
  int64_t p[kMaxRank] = {};
  for (;;) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t i = 0; i < last; ++i) {
      const int64_t at = p[i] * axes[i].stride + k[i] * axes[i].dilation - axes[i].pad;
      inside &= at >= 0 && at < axes[i].image;
      offset = offset * axes[i].image + at;
    }
    if (inside) add_row(kernels, axes[last], k[last], x, y + offset * axes[last].image);
    x += axes[last].positions;
    size_t i = last;
    while (i > 0 && ++p[i - 1] == axes[i - 1].positions) p[--i] = 0;
    if (i == 0) return;
  }
}

template <typename T>
void sum_columns(OpRun& run, const std::vector<Axis>& axes, int64_t planes, const T* x, T* y) {
  int64_t elements = 1;
  int64_t positions = 1;
  int64_t image = 1;
  for (const Axis& axis : axes) {
    elements *= axis.block;
    positions *= axis.positions;
    image *= axis.image;
  }
  run.parallel().for_range(planes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      std::fill_n(y + plane * image, image, static_cast<T>(Compute<T>{0}));
      int64_t k[kMaxRank] = {};
      for (int64_t element = 0; element < elements; ++element) {
        add_column(run.kernels(), axes, k, x + (plane * elements + element) * positions,
                   y + plane * image);
        for (size_t i = axes.size(); i-- > 0 && ++k[i] == axes[i].block;) k[i] = 0;
      }
    }
  });
}

class Col2Im final : public OpKernel {
 public:
  std::vector<int64_t> dilations, pads, strides;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> image, run.ints(1));
    FOLIO_TRY(const std::vector<int64_t> block, run.ints(2));
    FOLIO_TRY(const std::vector<Axis> axes, plan(image, block));
    FOLIO_TRY(const Shape shape, shape_of(*x, axes));
    if (!contains(NumericTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    if (x->count() == 0) {
      std::memset(y->raw_mut(), 0, y->bytes());
      return Status::ok();
    }
    dispatch(NumericTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      sum_columns(run, axes, shape[0] * shape[1], x->data<T>(), y->data_mut<T>());
    });
    return Status::ok();
  }

 private:
  Result<std::vector<Axis>> plan(const std::vector<int64_t>& image,
                                 const std::vector<int64_t>& block) const {
    const size_t n = image.size();
    const auto fits = [](const std::vector<int64_t>& list, size_t size) {
      return list.empty() || list.size() == size;
    };
    if (n < 1 || n > static_cast<size_t>(kMaxRank) - 2 || block.size() != n ||
        !fits(dilations, n) || !fits(strides, n) || !fits(pads, 2 * n)) {
      return invalid_argument("image_shape has ", n, " entries, block_shape ", block.size(),
                              ", dilations, strides and pads ", dilations.size(), ", ",
                              strides.size(), " and ", pads.size());
    }
    std::vector<Axis> axes(n);
    for (size_t i = 0; i < n; ++i) {
      Axis& axis = axes[i];
      axis.image = image[i];
      axis.block = block[i];
      if (!strides.empty()) axis.stride = strides[i];
      if (!dilations.empty()) axis.dilation = dilations[i];
      if (!pads.empty()) axis.pad = pads[i];
      const int64_t end = pads.empty() ? 0 : pads[i + n];
      // Far above any image, far below what overflows.
      constexpr int64_t kMost = int64_t{1} << 30;
      const auto bad = [](int64_t value, int64_t least) { return value < least || value > kMost; };
      if (bad(axis.image, 0) || bad(axis.block, 1) || bad(axis.stride, 1) ||
          bad(axis.dilation, 1) || bad(axis.pad, 0) || bad(end, 0)) {
        return invalid_argument("axis ", i, " has image ", axis.image, ", block ", axis.block,
                                ", stride ", axis.stride, ", dilation ", axis.dilation, ", pads ",
                                axis.pad, " and ", end);
      }
      const int64_t room = axis.image + axis.pad + end - axis.dilation * (axis.block - 1) - 1;
      axis.positions = room < 0 ? 0 : room / axis.stride + 1;
    }
    return axes;
  }

  static Result<Shape> shape_of(const Tensor& x, const std::vector<Axis>& axes) {
    int64_t elements = 1;
    int64_t positions = 1;
    bool fits = x.rank() == 3;
    for (const Axis& axis : axes) {
      fits = fits && checked_mul(elements, axis.block, &elements) &&
             checked_mul(positions, axis.positions, &positions);
    }
    if (!fits || x.dim(1) % elements != 0 || x.dim(2) != positions) {
      return invalid_argument("input 0 is ", x.shape().to_string(), ", expected [n, c * ", elements,
                              ", ", positions, "]");
    }
    std::vector<int64_t> dims{x.dim(0), x.dim(1) / elements};
    for (const Axis& axis : axes) dims.push_back(axis.image);
    return shape_from(dims);
  }
};

Status infer_col2im(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  const auto image = infer.data(1);
  std::optional<Dims> out;
  if (image && image->size() + 2 <= static_cast<size_t>(kMaxRank)) {
    out = Dims{x && x->size() == 3 ? (*x)[0] : Dim::unknown(), Dim::unknown()};
    out->insert(out->end(), image->begin(), image->end());
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_col2im(OpBuild& build) {
  auto kernel = std::make_unique<Col2Im>();
  FOLIO_TRY(kernel->dilations, build.attrs().get_ints("dilations"));
  FOLIO_TRY(kernel->pads, build.attrs().get_ints("pads"));
  FOLIO_TRY(kernel->strides, build.attrs().get_ints("strides"));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_col2im(OpRegistry& registry) {
  OpDef def;
  def.type = "Col2Im";
  def.since = 18;
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer_col2im;
  def.make = make_col2im;
  registry.add(def);
}

}  // namespace folio
