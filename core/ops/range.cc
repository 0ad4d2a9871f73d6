// Range: numbers from start to limit by delta.
//
// Source: ONNX operator spec, Range, opset 11 and later.
// Shapes: three scalars -> y [max(ceil((limit - start) / delta), 0)]
// Types:  float, double, int16, int32, int64.
#include <cmath>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using RangeTypes = TypeList<float, double, int16_t, int32_t, int64_t>;

// More elements than any tensor can hold are refused before the multiplication that would overflow.
constexpr double kMaxCount = 1e15;

template <typename T>
Result<int64_t> count_of(T start, T limit, T delta) {
  if (delta == T(0)) return invalid_argument("delta is 0");
  const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                 static_cast<double>(delta));
  if (!(count <= kMaxCount)) return invalid_argument("the range has too many elements");
  return count > 0 ? static_cast<int64_t>(count) : int64_t{0};
}

class Range final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* start, run.tensor(0));
    FOLIO_TRY(const Tensor* limit, run.tensor(1, start->dtype()));
    FOLIO_TRY(const Tensor* delta, run.tensor(2, start->dtype()));
    if (start->count() != 1 || limit->count() != 1 || delta->count() != 1) {
      return invalid_argument("start, limit and delta must be scalars");
    }
    Status status;
    const bool known = dispatch(RangeTypes{}, start->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      status = fill<T>(run, *start->data<T>(), *limit->data<T>(), *delta->data<T>());
    });
    return known ? status : wrong_type(0, start->dtype());
  }

 private:
  template <typename T>
  static Status fill(OpRun& run, T start, T limit, T delta) {
    FOLIO_TRY(const int64_t count, count_of(start, limit, delta));
    FOLIO_TRY(Tensor* y, run.output(0, dtype_of<T>(), Shape{count}));
    T* to = y->data_mut<T>();
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        to[i] = static_cast<T>(static_cast<U>(start) + static_cast<U>(i) * static_cast<U>(delta));
      } else {
        to[i] = start + static_cast<T>(i) * delta;
      }
    }
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  Dim length = Dim::unknown();
  const auto start = infer.data(0);
  const auto limit = infer.data(1);
  const auto delta = infer.ints(2);
  const bool scalars = start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1;
  // The usual 0 .. n by 1, with n a dim.
  if (scalars && (*delta)[0] == 1 && (*start)[0] == Dim::of(0)) length = (*limit)[0];
  infer.set_tensor(0, infer.dtype(0), Dims{length});
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Range>());
}

}  // namespace

void register_range(OpRegistry& registry) {
  OpDef def;
  def.type = "Range";
  def.since = 11;
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
