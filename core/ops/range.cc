// Range: start, start + delta, ... before limit.
//
// Source: ONNX operator spec, Range, opsets 11, 27 (16-bit floats); com.microsoft version 1, where
//         delta may be absent: 1.
// Shapes: three scalars of one type; n = max(ceil((limit - start) / delta), 0).
// Math:   y[i] = start + i * delta
// Types:  float, double, int8, int16, int32, int64, uint8; float16 and bfloat16 in float.
// Errors: kInvalidArgument when delta is 0, or n is not finite.
#include <cmath>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using RangeTypes =
    TypeList<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t, Float16, BFloat16>;

// Holds every difference of two int64.
__extension__ typedef __int128 Int128;

template <typename T>
Result<int64_t> count_of(T start, T limit, T delta) {
  if (delta == 0) return invalid_argument("delta is 0");
  if constexpr (std::is_integral_v<T>) {
    const Int128 distance = static_cast<Int128>(limit) - start;
    const Int128 by = delta;
    if ((distance > 0) != (by > 0) || distance == 0) return int64_t{0};
    const Int128 count = (distance + by + (by > 0 ? -1 : 1)) / by;
    if (count > INT64_MAX) return invalid_argument("the range has too many elements");
    return static_cast<int64_t>(count);
  } else {
    const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                   static_cast<double>(delta));
    // 2^53: beyond it, counting in doubles has no meaning.
    if (!(count < 0x1p53)) return invalid_argument("the range has no finite number of elements");
    return count > 0 ? static_cast<int64_t>(count) : int64_t{0};
  }
}

template <typename T>
Status fill_range(OpRun& run, DType dtype) {
  using C = Compute<T>;
  C bounds[3] = {0, 0, 1};
  for (int k = 0; k < 3 && run.has_input(k); ++k) {
    FOLIO_TRY(const Tensor* bound, run.tensor(k, dtype));
    if (bound->count() != 1) {
      return invalid_argument("input ", k, " has ", bound->count(), " elements, expected 1");
    }
    bounds[k] = static_cast<C>(*bound->data<T>());
  }
  FOLIO_TRY(const int64_t n, count_of<C>(bounds[0], bounds[1], bounds[2]));
  FOLIO_TRY(Tensor * out, run.output(0, dtype, Shape{n}));
  T* to = out->data_mut<T>();
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<C>) {
      // In range for every i < n; unsigned arithmetic because i * delta alone may wrap.
      to[i] = static_cast<T>(static_cast<uint64_t>(bounds[0]) +
                             static_cast<uint64_t>(i) * static_cast<uint64_t>(bounds[2]));
    } else {
      to[i] = static_cast<T>(bounds[0] + static_cast<C>(i) * bounds[2]);
    }
  }
  return Status::ok();
}

class Range final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* start, run.tensor(0));
    return dispatch_input(RangeTypes{}, start->dtype(), [&](auto tag) {
      return fill_range<typename decltype(tag)::type>(run, start->dtype());
    });
  }
};

// Longer ones are data, not a shape.
constexpr int64_t kMaxKnown = 64;

Status infer_range(OpInfer& infer) {
  Dims out(1);
  const auto start = infer.ints(0);
  const auto limit = infer.ints(1);
  const auto delta = infer.has_input(2) ? infer.ints(2) : std::vector<int64_t>{1};
  const bool is_int = infer.dtype(0) == DType::kInt64 || infer.dtype(0) == DType::kInt32;
  const auto one = [](const auto& list) { return list && list->size() == 1; };
  if (is_int && one(start) && one(limit) && one(delta)) {
    FOLIO_TRY(const int64_t n, count_of<int64_t>((*start)[0], (*limit)[0], (*delta)[0]));
    out[0] = Dim::of(n);
    if (n <= kMaxKnown) {
      std::vector<Dim> data;
      for (int64_t i = 0; i < n; ++i) {
        const auto value =
            static_cast<int64_t>(static_cast<uint64_t>((*start)[0]) +
                                 static_cast<uint64_t>(i) * static_cast<uint64_t>((*delta)[0]));
        data.push_back(value >= 0 ? Dim::of(value) : Dim::unknown());
      }
      infer.set_data(0, std::move(data));
    }
  } else if (is_int && one(start) && (*start)[0] == 0 && one(delta) && (*delta)[0] == 1) {
    const auto symbolic = infer.data(1);
    if (one(symbolic)) out[0] = (*symbolic)[0];
  } else if (is_int && one(delta) && (*delta)[0] == 1) {
    const auto from = infer.data(0);
    const auto to = infer.data(1);
    // Where the difference is negative the dim is 0, and where it is not known it stays so.
    if (one(from) && one(to) && !(*from)[0].is_unknown() && !(*to)[0].is_unknown()) {
      out[0] = infer.table().max(infer.table().sub((*to)[0], (*from)[0]), Dim::of(0));
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_range(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Range>());
}

}  // namespace

[[gnu::cold]] void register_range(OpRegistry& registry) {
  OpDef def;
  def.type = "Range";
  def.since = 11;
  def.min_inputs = 3;
  def.max_inputs = 3;
  def.infer = infer_range;
  def.make = make_range;
  def.one_type = 0b111;
  registry.add(def);
  def.domain = "com.microsoft";
  def.since = 1;
  def.min_inputs = 2;
  registry.add(def);
}

}  // namespace folio
