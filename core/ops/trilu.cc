// Trilu: the upper or lower triangle of matrices, the rest zeros.
//
// Source: ONNX operator spec, Trilu, opset 14; com.microsoft version 1.
// Shapes: x [.., n, m], k a number (0 when absent) -> y as x.
// Math:   upper: y[i, j] = x[i, j] where j >= i + k; lower: where j <= i + k.
// Types:  all types but those of 2 and 4 bits.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Trilu final : public OpKernel {
 public:
  explicit Trilu(bool upper) : upper_(upper) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    int64_t k = 0;
    if (run.has_input(1)) {
      FOLIO_TRY(const std::vector<int64_t> given, run.ints(1));
      if (given.size() != 1) return invalid_argument("k has ", given.size(), " elements, not 1");
      k = given[0];
    }
    if (x->rank() < 2) {
      return invalid_argument("input 0 has rank ", x->rank(), ", expected 2 or more");
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (y->count() == 0) return Status::ok();
    const int64_t rows = x->dim(x->rank() - 2);
    const int64_t cols = x->dim(x->rank() - 1);
    k = std::clamp(k, -rows, cols);  // beyond, nothing changes any more
    return dispatch_move(x->dtype(), [&](auto tag) {
      triangle<typename decltype(tag)::type>(run, *x, rows, cols, k, y);
      return Status::ok();
    });
  }

 private:
  template <typename T>
  void triangle(OpRun& run, const Tensor& x, int64_t rows, int64_t cols, int64_t k,
                Tensor* y) const {
    T* to = y->data_mut<T>();
    run.parallel().for_range(x.count() / cols, rows_per_task(cols), [&](int64_t from, int64_t end) {
      for (int64_t row = from; row < end; ++row) {
        const int64_t i = row % rows;
        const int64_t first = upper_ ? std::clamp<int64_t>(i + k, 0, cols) : 0;
        const int64_t last = upper_ ? cols : std::clamp<int64_t>(i + k + 1, 0, cols);
        T* out = to + row * cols;
        std::fill(out, out + first, T{});
        move_run(out + first, element_at<T>(x.raw(), row * cols + first), last - first);
        std::fill(out + last, out + cols, T{});
      }
    });
  }

  bool upper_;
};

Status infer_trilu(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  if (x && x->size() < 2) {
    return invalid_graph("input 0 has rank ", x->size(), ", expected 2 or more");
  }
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_trilu(OpBuild& build) {
  FOLIO_TRY(const int64_t upper, build.attrs().get_int("upper", 1));
  return std::unique_ptr<OpKernel>(std::make_unique<Trilu>(upper != 0));
}

}  // namespace

[[gnu::cold]] void register_trilu(OpRegistry& registry) {
  OpDef def;
  def.type = "Trilu";
  def.since = 14;
  def.max_inputs = 2;
  def.infer = infer_trilu;
  def.make = make_trilu;
  def.unaligned_inputs = 1;
  registry.add(def);
  def.domain = "com.microsoft";
  def.since = 1;
  registry.add(def);
}

}  // namespace folio
