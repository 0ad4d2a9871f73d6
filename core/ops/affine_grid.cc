// AffineGrid: the places that an affine map reads an image at, for GridSample.
//
// Source: ONNX operator spec, AffineGrid, opset 20.
// Shapes: theta [n, k, k + 1], size [n, c, out..] with k = 2 or 3 -> grid [n, out.., k].
// Math:   grid = theta * (.., y, x, 1), each from -1 to 1 over an axis: its corners with
//         align_corners, else its elements' centres.
// Types:  float, double; float16 and bfloat16 in float.
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

template <typename C>
C place_of(int64_t i, int64_t n, bool align) {
  if (align) return n > 1 ? static_cast<C>(2 * i) / static_cast<C>(n - 1) - 1 : C{0};
  return static_cast<C>(2 * i + 1) / static_cast<C>(n) - 1;
}

template <typename T>
void fill_grid(const Tensor& theta, const Shape& shape, bool align, Tensor* y) {
  using C = Compute<T>;
  const int k = shape.rank() - 2;
  const int64_t points = shape.product(1, k + 1);
  T* to = y->data_mut<T>();
  for (int64_t b = 0; b < shape[0]; ++b) {
    const T* map = theta.data<T>() + b * k * (k + 1);
    for (int64_t p = 0; p < points; ++p) {
      C place[4] = {};
      int64_t rest = p;
      for (int i = 0; i < k; ++i) {  // x is the last axis
        const int64_t n = shape[k - i];
        place[i] = place_of<C>(rest % n, n, align);
        rest /= n;
      }
      place[k] = 1;
      for (int r = 0; r < k; ++r) {
        C sum = 0;
        for (int i = 0; i <= k; ++i) sum += static_cast<C>(map[r * (k + 1) + i]) * place[i];
        *to++ = static_cast<T>(sum);
      }
    }
  }
}

class AffineGrid final : public OpKernel {
 public:
  explicit AffineGrid(bool align) : align_(align) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* theta, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> size, run.ints(1));
    const auto k = static_cast<int64_t>(size.size()) - 2;
    const bool fits = (k == 2 || k == 3) && theta->rank() == 3 && theta->dim(0) == size[0] &&
                      theta->dim(1) == k && theta->dim(2) == k + 1;
    if (!fits) {
      return invalid_argument("theta is ", theta->shape().to_string(), " and size has ",
                              size.size(), " entries, expected [n,k,k+1] and k + 2");
    }
    std::vector<int64_t> dims{size[0]};
    dims.insert(dims.end(), size.begin() + 2, size.end());
    dims.push_back(k);
    FOLIO_TRY(const Shape shape, shape_from(dims));
    if (!contains(FloatTypes{}, theta->dtype())) return wrong_type(0, theta->dtype());
    FOLIO_TRY(Tensor * y, run.output(0, theta->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    dispatch(FloatTypes{}, theta->dtype(),
             [&](auto tag) { fill_grid<typename decltype(tag)::type>(*theta, shape, align_, y); });
    return Status::ok();
  }

 private:
  bool align_;
};

Status infer_affine_grid(OpInfer& infer) {
  std::optional<Dims> out;
  if (const auto size = infer.data(1); size && (size->size() == 4 || size->size() == 5)) {
    out = Dims{(*size)[0]};
    out->insert(out->end(), size->begin() + 2, size->end());
    out->push_back(Dim::of(static_cast<int64_t>(size->size()) - 2));
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_affine_grid(OpBuild& build) {
  FOLIO_TRY(const int64_t align, build.attrs().get_int("align_corners", 0));
  return std::unique_ptr<OpKernel>(std::make_unique<AffineGrid>(align != 0));
}

}  // namespace

[[gnu::cold]] void register_affine_grid(OpRegistry& registry) {
  OpDef def;
  def.type = "AffineGrid";
  def.since = 20;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_affine_grid;
  def.make = make_affine_grid;
  registry.add(def);
}

}  // namespace folio
