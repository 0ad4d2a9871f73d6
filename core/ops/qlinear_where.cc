// QLinearWhere and QLinearReduceMean: choosing from, and averaging, tensors of codes.
//
// Source: com.microsoft, version 1.
// Shapes: Where: condition, X and Y broadcast together; ReduceMean: `axes` (all when absent) become
//         1, or go away without keepdims.
// Math:   Where: the code of the chosen number in z's scale. ReduceMean: the mean of the codes less
//         the zero point, exact, then one multiplication by the scales' quotient.
// Types:  int8 and uint8, the same for inputs and output; each operand has one scale.
// Errors: kInvalidArgument for other types, scales of more elements, shapes that do not broadcast;
//         the mean of nothing.
#include <algorithm>
#include <array>

#include "core/ops/op_quantized.h"
#include "core/ops/op_reduce.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

using ByteTable = std::array<uint8_t, 256>;

// The code in `to` of each code in `from`.
ByteTable recode(DType dtype, QuantScalar from, QuantScalar to) {
  ByteTable table{};
  dispatch_byte(dtype, [&](auto quantized) {
    using Q = decltype(quantized);
    for (int code = 0; code < 256; ++code) {
      const auto byte = static_cast<uint8_t>(code);
      const float number = static_cast<float>(Q::get(&byte, 0) - from.zero) * from.scale;
      Q::set(table.data(), code, quantize_one<Q>(number, to.scale, to.zero));
    }
  });
  return table;
}

// ---------------------------------------------------------------- Where

// Inputs condition, X, X_scale, X_zero, Y, Y_scale, Y_zero, Z_scale, Z_zero.
class QLinearWhere final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* condition, run.tensor(0, DType::kBool));
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 1));
    const DType dtype = x->dtype();
    FOLIO_TRY(const Tensor* y, run.tensor(4, dtype));
    FOLIO_TRY(const QuantScalar qx, quant_scalar(run, 2, 3, dtype));
    FOLIO_TRY(const QuantScalar qy, quant_scalar(run, 5, 6, dtype));
    FOLIO_TRY(const QuantScalar qz, quant_scalar(run, 7, 8, dtype));
    FOLIO_TRY(const Shape both, broadcast(x->shape(), y->shape()));
    FOLIO_TRY(const Shape shape, broadcast(condition->shape(), both));
    FOLIO_TRY(Tensor * z, run.output(0, dtype, shape));
    if (z->count() == 0) return Status::ok();
    const ByteTable of_x = recode(dtype, qx, qz);
    const ByteTable of_y = recode(dtype, qy, qz);
    const Tensor* inputs[3] = {condition, x, y};
    int64_t strides[3][kMaxRank] = {};
    const int last = std::max(0, shape.rank() - 1);
    int64_t steps[3] = {};
    for (int k = 0; k < 3; ++k) {
      broadcast_strides(inputs[k]->shape(), shape, strides[k]);
      steps[k] = shape.rank() > 0 ? strides[k][last] : 0;
    }
    const int64_t n = shape.rank() > 0 ? shape[last] : 1;
    run.parallel().for_range(shape.count() / n, rows_per_task(n), [&](int64_t begin, int64_t end) {
      Odometer<3> odometer(last, shape.begin(), {strides[0], strides[1], strides[2]});
      odometer.seek(begin);
      for (int64_t row = begin; row < end; ++row, odometer.advance()) {
        const uint8_t* choice = condition->raw() + odometer.offset(0);
        const uint8_t* x_row = x->raw() + odometer.offset(1);
        const uint8_t* y_row = y->raw() + odometer.offset(2);
        uint8_t* to = z->raw_mut() + row * n;
        for (int64_t i = 0; i < n; ++i) {
          to[i] = choice[i * steps[0]] != 0 ? of_x[x_row[i * steps[1]]] : of_y[y_row[i * steps[2]]];
        }
      }
    });
    return Status::ok();
  }
};

Status infer_where(OpInfer& infer) {
  infer.set_tensor(0, infer.dtype(1));
  const Dims* condition = infer.dims_of(0);
  const Dims* x = infer.dims_of(1);
  const Dims* y = infer.dims_of(4);
  if (!condition || !x || !y) return Status::ok();
  FOLIO_TRY(const Dims both, infer_broadcast(infer.table(), *x, *y));
  FOLIO_TRY(Dims out, infer_broadcast(infer.table(), *condition, both));
  infer.set_tensor(0, infer.dtype(1), std::move(out));
  return Status::ok();
}

// ---------------------------------------------------------------- ReduceMean

// Marks the axes that are averaged over; none given: all.
Result<std::array<bool, kMaxRank>> reduced_axes(const std::vector<int64_t>& axes, int rank) {
  std::array<bool, kMaxRank> reduced{};
  if (axes.empty()) std::fill_n(reduced.begin(), rank, true);
  for (const int64_t axis : axes) {
    FOLIO_TRY(const int at, normalize_axis(axis, rank));
    reduced[static_cast<size_t>(at)] = true;
  }
  return reduced;
}

// Inputs data, data_scale, data_zero, reduced_scale, reduced_zero.
class QLinearReduceMean final : public OpKernel {
 public:
  std::vector<int64_t> axes;
  bool keepdims = true;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const QuantScalar from, quant_scalar(run, 1, 2, x->dtype()));
    FOLIO_TRY(const QuantScalar to, quant_scalar(run, 3, 4, x->dtype()));
    const Shape& shape = x->shape();
    FOLIO_TRY(const auto reduced, reduced_axes(axes, shape.rank()));
    Shape kept;
    Shape whole = shape;
    for (int i = 0; i < shape.rank(); ++i) {
      if (reduced[static_cast<size_t>(i)]) whole[i] = 1;
      if (keepdims || !reduced[static_cast<size_t>(i)]) kept.push_back(whole[i]);
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), kept));
    if (y->count() == 0) return Status::ok();
    if (x->count() == 0) return invalid_argument("the mean of no element");
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(y->count()) * sizeof(int64_t)));
    auto* sums = reinterpret_cast<int64_t*>(memory);
    std::fill_n(sums, y->count(), int64_t{0});
    add_up(*x, whole, sums);
    const int64_t each = x->count() / y->count();
    const double factor =
        static_cast<double>(from.scale) / static_cast<double>(to.scale) / static_cast<double>(each);
    dispatch_byte(x->dtype(), [&](auto quantized) {
      using Q = decltype(quantized);
      for (int64_t i = 0, end = y->count(); i < end; ++i) {
        const auto sum = static_cast<double>(sums[i] - each * from.zero);
        Q::set(y->raw_mut(), i, quantize_ratio<Q>(static_cast<float>(sum * factor), to.zero));
      }
    });
    return Status::ok();
  }

 private:
  // Adds each code of x to the sum of its place in `whole`, x's shape with 1 for averaged axes.
  static void add_up(const Tensor& x, const Shape& whole, int64_t* sums) {
    int64_t strides[kMaxRank] = {};
    broadcast_strides(whole, x.shape(), strides);
    const int last = std::max(0, x.rank() - 1);
    const int64_t n = x.rank() > 0 ? x.dim(last) : 1;
    const int64_t step = x.rank() > 0 ? strides[last] : 0;
    dispatch_byte(x.dtype(), [&](auto quantized) {
      using Q = decltype(quantized);
      Odometer<1> odometer(last, x.shape().begin(), {strides});
      odometer.seek(0);
      for (int64_t row = 0; row < x.count() / n; ++row, odometer.advance()) {
        const uint8_t* codes = x.raw() + row * n;
        int64_t* to = sums + odometer.offset(0);
        for (int64_t i = 0; i < n; ++i) to[i * step] += Q::get(codes, i);
      }
    });
  }
};

Status infer_reduce(OpInfer& infer) {
  infer.set_tensor(0, infer.dtype(0));
  const Dims* dims = infer.dims_of(0);
  if (!dims || dims->size() > static_cast<size_t>(kMaxRank)) return Status::ok();
  FOLIO_TRY(const std::vector<int64_t> axes, infer.attrs().get_ints("axes"));
  FOLIO_TRY(const bool keeps, keeps_dims(infer.attrs()));
  FOLIO_TRY(const auto reduced, reduced_axes(axes, static_cast<int>(dims->size())));
  Dims out;
  for (size_t i = 0; i < dims->size(); ++i) {
    if (!reduced[i]) out.push_back((*dims)[i]);
    if (reduced[i] && keeps) out.push_back(Dim::of(1));
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_where(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<QLinearWhere>());
}

Result<std::unique_ptr<OpKernel>> make_reduce(OpBuild& build) {
  auto kernel = std::make_unique<QLinearReduceMean>();
  FOLIO_TRY(kernel->axes, build.attrs().get_ints("axes"));
  FOLIO_TRY(kernel->keepdims, keeps_dims(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_qlinear_where(OpRegistry& registry) {
  registry.add({.domain = "com.microsoft",
                .type = "QLinearWhere",
                .min_inputs = 9,
                .max_inputs = 9,
                .infer = infer_where,
                .make = make_where,
                .float_inputs = 1U << 2 | 1U << 5 | 1U << 7,
                .elementwise = true});
  registry.add({.domain = "com.microsoft",
                .type = "QLinearReduceMean",
                .min_inputs = 4,
                .max_inputs = 5,
                .infer = infer_reduce,
                .make = make_reduce,
                .optional_inputs = 1U << 2,  // its zero point
                .float_inputs = 1U << 1 | 1U << 3});
}

}  // namespace folio
