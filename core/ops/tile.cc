// Tile: a tensor repeated along each axis.
//
// Source: ONNX operator spec, Tile, opset 6 and later.
// Shapes: x [d_i], repeats int64 [rank] -> y [d_i * repeats_i]
#include "core/base/checked_math.h"
#include "core/ops/op_elements.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Tile final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> repeats, run.ints(1));
    FOLIO_RETURN_IF_ERROR(check_whole_bytes(*x));
    if (static_cast<int>(repeats.size()) != x->rank()) {
      return invalid_argument("repeats has ", repeats.size(), " entries, the input ", x->rank(), " dims");
    }
    Shape shape;
    for (int i = 0; i < x->rank(); ++i) {
      int64_t dim = 0;
      const int64_t times = repeats[static_cast<size_t>(i)];
      if (times < 0 || !checked_mul(x->dim(i), times, &dim)) {
        return invalid_argument("repeats holds ", times, " for a dim of ", x->dim(i));
      }
      shape.push_back(dim);
    }
    FOLIO_TRY(Tensor* y, run.output(0, x->dtype(), shape));
    if (y->count() > 0) fill(*x, repeats, y);
    return Status::ok();
  }

 private:
  // Axis by axis from the inside: what is complete so far is repeated in place.
  static void fill(const Tensor& x, const std::vector<int64_t>& repeats, Tensor* y) {
    const int rank = x.rank();
    if (rank == 0) return move_elements(x, 0, y, 0, 1);
    const int64_t row = x.dim(rank - 1);
    const int64_t rows = x.count() / row;
    for (int64_t r = 0; r < rows; ++r) move_elements(x, r * row, y, place(x, *y, r) , row);
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t block = x.dim(axis) * y->shape().product(axis + 1, rank);
      const int64_t outer = x.shape().product(0, axis);
      for (int64_t o = 0; o < outer; ++o) {
        const int64_t at = block_place(x, *y, axis, o);
        for (int64_t t = 1; t < repeats[static_cast<size_t>(axis)]; ++t) {
          move_elements(*y, at, y, at + t * block, block);
        }
      }
    }
  }

  // Where row r of x (all dims but the last) starts in y.
  static int64_t place(const Tensor& x, const Tensor& y, int64_t r) {
    return block_place(x, y, x.rank() - 1, r);
  }

  // Where element `index` of x's dims [0, axis) starts in y.
  static int64_t block_place(const Tensor& x, const Tensor& y, int axis, int64_t index) {
    int64_t at = 0;
    int64_t step = y.shape().product(axis, y.rank());
    for (int d = axis - 1; d >= 0; --d) {
      at += index % x.dim(d) * step;
      index /= x.dim(d);
      step *= y.dim(d);
    }
    return at;
  }
};

Status infer(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  const auto repeats = infer.data(1);
  std::optional<Dims> dims;
  if (x) {
    dims = Dims(x->size(), Dim::unknown());
    for (size_t i = 0; repeats && repeats->size() == x->size() && i < x->size(); ++i) {
      (*dims)[i] = infer.table().mul((*x)[i], (*repeats)[i]);
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Tile>());
}

}  // namespace

void register_tile(OpRegistry& registry) {
  OpDef def;
  def.type = "Tile";
  def.since = 6;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
