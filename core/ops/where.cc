// Where: x where the condition holds, else y.
//
// Source: ONNX operator spec, Where, opsets 9, 16.
// Shapes: condition (bool), x and y broadcast together.
// Types:  condition bool; X and Y: all types but those of 2 and 4 bits.
// Errors: kInvalidArgument when types differ or shapes do not broadcast.
#include <algorithm>
#include <type_traits>

#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

struct Operands {
  const uint8_t* condition;  // any byte but 0 holds
  const uint8_t* x;
  const uint8_t* y;
  int64_t steps[3];  // along the last dim: 0 or 1
};

template <typename T>
void repeat_or_move(int64_t n, const T* from, int64_t step, T* out) {
  if (step != 0) return move_run(out, from, n);
  std::fill_n(out, n, *from);
}

// By masks: vector instructions choose some elements, and nothing has to be guessed.
template <typename T, int kXStep, int kYStep>
void choose_each(int64_t n, const uint8_t* condition, const T* x, const T* y, T* out) {
  for (int64_t i = 0; i < n; ++i) {
    const T& yes = x[i * kXStep];
    const T& no = y[i * kYStep];
    if constexpr (std::is_arithmetic_v<T>) {
      const T mask = static_cast<T>(T{0} - T{condition[i] != 0});
      out[i] = static_cast<T>((yes & mask) | (no & static_cast<T>(~mask)));
    } else {
      out[i] = condition[i] != 0 ? yes : no;
    }
  }
}

template <typename T>
void choose_row(const Operands& in, const int64_t (&at)[3], int64_t n, T* out) {
  const uint8_t* condition = in.condition + at[0];
  const T* x = reinterpret_cast<const T*>(in.x) + at[1];
  const T* y = reinterpret_cast<const T*>(in.y) + at[2];
  if (in.steps[0] == 0) {
    if (*condition != 0) return repeat_or_move(n, x, in.steps[1], out);
    return repeat_or_move(n, y, in.steps[2], out);
  }
  if (in.steps[1] != 0 && in.steps[2] != 0) return choose_each<T, 1, 1>(n, condition, x, y, out);
  if (in.steps[1] != 0) return choose_each<T, 1, 0>(n, condition, x, y, out);
  if (in.steps[2] != 0) return choose_each<T, 0, 1>(n, condition, x, y, out);
  choose_each<T, 0, 0>(n, condition, x, y, out);
}

class Where final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* condition, run.tensor(0, DType::kBool));
    FOLIO_TRY(const Tensor* x, run.tensor(1));
    FOLIO_TRY(const Tensor* y, run.tensor(2, x->dtype()));
    FOLIO_TRY(const Shape both, broadcast(x->shape(), y->shape()));
    FOLIO_TRY(const Shape shape, broadcast(condition->shape(), both));
    FOLIO_TRY(Tensor * out, run.output(0, x->dtype(), shape));
    if (out->count() == 0) return Status::ok();
    return dispatch_move(x->dtype(), [&](auto tag) {
      choose<typename decltype(tag)::type>(run, *condition, *x, *y, out);
      return Status::ok();
    });
  }

 private:
  template <typename T>
  static void choose(OpRun& run, const Tensor& condition, const Tensor& x, const Tensor& y,
                     Tensor* out) {
    const Shape& shape = out->shape();
    const Tensor* inputs[3] = {&condition, &x, &y};
    int64_t strides[3][kMaxRank];
    const int last = std::max(0, shape.rank() - 1);
    Operands operands{condition.raw(), x.raw(), y.raw(), {}};
    for (int k = 0; k < 3; ++k) {
      broadcast_strides(inputs[k]->shape(), shape, strides[k]);
      operands.steps[k] = shape.rank() > 0 ? strides[k][last] : 0;
    }
    const int64_t n = shape.rank() > 0 ? shape[last] : 1;
    const int64_t rows = shape.count() / n;
    T* to = out->data_mut<T>();
    if (rows == 1) {
      run.parallel().for_range(n, kMoveGrain, [&](int64_t begin, int64_t end) {
        const int64_t at[3] = {begin * operands.steps[0], begin * operands.steps[1],
                               begin * operands.steps[2]};
        choose_row(operands, at, end - begin, to + begin);
      });
      return;
    }
    run.parallel().for_range(rows, rows_per_task(n), [&](int64_t begin, int64_t end) {
      Odometer<3> odometer(last, shape.begin(), {strides[0], strides[1], strides[2]});
      odometer.seek(begin);
      for (int64_t row = begin; row < end; ++row, odometer.advance()) {
        const int64_t at[3] = {odometer.offset(0), odometer.offset(1), odometer.offset(2)};
        choose_row(operands, at, n, to + row * n);
      }
    });
  }
};

std::optional<Dims> broadcast_dims(DimTable& table, const Dims* a, const Dims* b) {
  if (!a || !b) return std::nullopt;
  Dims out(std::max(a->size(), b->size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t skip_a = out.size() - a->size();
    const size_t skip_b = out.size() - b->size();
    out[i] = table.broadcast(i < skip_a ? Dim::of(1) : (*a)[i - skip_a],
                             i < skip_b ? Dim::of(1) : (*b)[i - skip_b]);
  }
  return out;
}

Status infer_where(OpInfer& infer) {
  DimTable& table = infer.table();
  const auto both = broadcast_dims(table, infer.dims_of(1), infer.dims_of(2));
  auto out = broadcast_dims(table, infer.dims_of(0), both ? &*both : nullptr);
  // Exporters choose between -1 and a dim with it: contents are known where the condition is, or
  // where they are the same dims either way.
  const auto condition = infer.data(0);
  const auto x = infer.data(1);
  const auto y = infer.data(2);
  if (x && y && x->size() == y->size() && out && out->size() <= 1 &&
      infer.dims_of(1)->size() == out->size() && infer.dims_of(2)->size() == out->size()) {
    std::vector<Dim> data;
    for (size_t i = 0; i < x->size(); ++i) {
      const bool chosen = condition && condition->size() == x->size() && (*condition)[i].is_value();
      const Dim either = (*x)[i] == (*y)[i] ? (*x)[i] : Dim::unknown();
      data.push_back(!chosen ? either : (*condition)[i].value != 0 ? (*x)[i] : (*y)[i]);
    }
    const bool same_count = out->empty() || (*out)[0] == Dim::of(static_cast<int64_t>(x->size()));
    if (same_count) infer.set_data(0, std::move(data));
  }
  const DType dtype = infer.dtype(1) != DType::kUndefined ? infer.dtype(1) : infer.dtype(2);
  infer.set_tensor(0, dtype, std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_where(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Where>());
}

}  // namespace

[[gnu::cold]] void register_where(OpRegistry& registry) {
  OpDef def;
  def.type = "Where";
  def.is_exact = true;
  def.since = 9;
  def.min_inputs = 3;
  def.max_inputs = 3;
  def.infer = infer_where;
  def.make = make_where;
  def.one_type = 0b110;
  registry.add(def);
}

}  // namespace folio
