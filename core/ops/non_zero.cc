// NonZero: the indices of the elements that are not zero.
//
// Source: ONNX operator spec, NonZero, opsets 9, 13.
// Shapes: x of rank r -> y int64 [r, count], one column for each such element, in row-major order.
// Types:  numbers, complex numbers, bool (not false), strings (not empty). NaN is not zero, -0 is.
#include <complex>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using Types = TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                       uint16_t, uint32_t, uint64_t, std::string>;

template <typename T>
bool is_set(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return !value.empty();
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return value != T{};
  } else {
    return static_cast<Compute<T>>(value) != Compute<T>{};
  }
}

// Writes the index of each set element into column after column.
template <typename T>
void write_columns(const Tensor& x, int64_t columns, int64_t* y) {
  const T* values = x.data<T>();
  const int last = x.rank() - 1;
  if (last < 0) return;
  int64_t index[kMaxRank] = {};
  const int64_t n = x.dim(last);
  int64_t column = 0;
  for (int64_t begin = 0; begin < x.count(); begin += n) {
    for (int64_t j = 0; j < n; ++j) {
      if (!is_set(values[begin + j])) continue;
      for (int i = 0; i < last; ++i) y[i * columns + column] = index[i];
      y[last * columns + column++] = j;
    }
    for (int i = last - 1; i >= 0; --i) {
      if (++index[i] < x.dim(i)) break;
      index[i] = 0;
    }
  }
}

class NonZero final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    // Each byte but 0 is true; no C++ bool may hold all of them.
    if (x->dtype() == DType::kBool) return find<uint8_t>(run, *x);
    if (x->dtype() == DType::kComplex64) return find<std::complex<float>>(run, *x);
    if (x->dtype() == DType::kComplex128) return find<std::complex<double>>(run, *x);
    return dispatch_input(Types{}, x->dtype(),
                          [&](auto tag) { return find<typename decltype(tag)::type>(run, *x); });
  }

 private:
  template <typename T>
  static Status find(OpRun& run, const Tensor& x) {
    const T* values = x.data<T>();
    const int64_t columns =
        std::count_if(values, values + x.count(), [](const T& value) { return is_set(value); });
    FOLIO_TRY(const Shape shape, shape_from(std::vector<int64_t>{x.rank(), columns}));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kInt64, shape));
    write_columns<T>(x, columns, y->data_mut<int64_t>());
    return Status::ok();
  }
};

Status infer_non_zero(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  Dims out(2);
  if (x) out[0] = Dim::of(static_cast<int64_t>(x->size()));
  infer.set_tensor(0, DType::kInt64, std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_non_zero(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<NonZero>());
}

}  // namespace

[[gnu::cold]] void register_non_zero(OpRegistry& registry) {
  OpDef def;
  def.type = "NonZero";
  def.since = 9;
  def.infer = infer_non_zero;
  def.make = make_non_zero;
  registry.add(def);
}

}  // namespace folio
