// Where: elements of x where cond holds, else of y.
//
// Source: ONNX operator spec, Where, opset 9 and later.
// Shapes: cond bool, x and y broadcast to one shape.
#include "core/ops/op_broadcast.h"
#include "core/ops/op_elements.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Strides of `from` seen as `to`, 0 where it is broadcast.
void strides_as(const Shape& from, const Shape& to, int64_t out[]) {
  int64_t step = 1;
  for (int i = to.rank() - 1; i >= 0; --i) {
    const int own = i - (to.rank() - from.rank());
    out[i] = own < 0 || from[own] == 1 ? 0 : step;
    if (own >= 0) step *= from[own];
  }
}

class Where final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* cond, run.tensor(0, DType::kBool));
    FOLIO_TRY(const Tensor* x, run.tensor(1));
    FOLIO_TRY(const Tensor* y, run.tensor(2, x->dtype()));
    FOLIO_RETURN_IF_ERROR(check_whole_bytes(*x));
    FOLIO_TRY(const Shape both, broadcast(x->shape(), y->shape()));
    FOLIO_TRY(const Shape shape, broadcast(cond->shape(), both));
    FOLIO_TRY(Tensor* out, run.output(0, x->dtype(), shape));
    const int64_t count = out->count();
    if (count == 0) return Status::ok();
    const int rank = shape.rank();
    int64_t strides[3][kMaxRank] = {};
    strides_as(cond->shape(), shape, strides[0]);
    strides_as(x->shape(), shape, strides[1]);
    strides_as(y->shape(), shape, strides[2]);
    const int64_t row = rank > 0 ? shape[rank - 1] : 1;
    run.parallel().for_range(count / row, 1 + 16384 / row, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t at[3] = {0, 0, 0};
        int64_t rest = r;
        for (int d = rank - 2; d >= 0; --d) {
          for (int k = 0; k < 3; ++k) at[k] += rest % shape[d] * strides[k][d];
          rest /= shape[d];
        }
        int64_t step[3] = {0, 0, 0};
        for (int k = 0; rank > 0 && k < 3; ++k) step[k] = strides[k][rank - 1];
        pick_row(*cond, *x, *y, at, step, r * row, row, out);
      }
    });
    return Status::ok();
  }

 private:
  static void pick_row(const Tensor& cond, const Tensor& x, const Tensor& y, const int64_t at[],
                       const int64_t step[], int64_t to, int64_t count, Tensor* out) {
    const uint8_t* flags = cond.data<uint8_t>() + at[0];
    if (dtype_bits(x.dtype()) == 32) {
      const auto* a = x.data<uint32_t>() + at[1];
      const auto* b = y.data<uint32_t>() + at[2];
      uint32_t* o = out->data_mut<uint32_t>() + to;
      for (int64_t i = 0; i < count; ++i) {
        o[i] = flags[i * step[0]] != 0 ? a[i * step[1]] : b[i * step[2]];
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const bool first = flags[i * step[0]] != 0;
      move_elements(first ? x : y, first ? at[1] + i * step[1] : at[2] + i * step[2], out, to + i, 1);
    }
  }
};

Status infer(OpInfer& infer) {
  const DType dtype = infer.dtype(1) != DType::kUndefined ? infer.dtype(1) : infer.dtype(2);
  const Dims* cond = infer.dims_of(0);
  const Dims* x = infer.dims_of(1);
  const Dims* y = infer.dims_of(2);
  infer.set_tensor(0, dtype);
  if (!cond || !x || !y) return Status::ok();
  FOLIO_TRY(const Dims both, infer_broadcast(infer.table(), *x, *y));
  FOLIO_TRY(Dims dims, infer_broadcast(infer.table(), *cond, both));
  infer.set_tensor(0, dtype, std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Where>());
}

}  // namespace

void register_where(OpRegistry& registry) {
  OpDef def;
  def.type = "Where";
  def.since = 9;
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
