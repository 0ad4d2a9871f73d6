// ConstantOfShape: a tensor of given dims with one value throughout.
//
// Source: ONNX operator spec, ConstantOfShape, opsets 9, 20, 21 (4-bit), 23 to 25.
// Shapes: input [rank] int64: the dims. `value` has one element; float 0 by default.
// Types:  all types; the dims int64.
// Errors: kInvalidArgument when a dim is negative or the count overflows.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<Tensor> value_of(const Attributes& attrs) {
  if (!attrs.has("value")) {
    FOLIO_TRY(Tensor zero, allocate_tensor(DType::kFloat, Shape{}));
    *zero.data_mut<float>() = 0;
    return zero;
  }
  FOLIO_TRY(const Tensor value, attrs.get_tensor("value"));
  if (value.count() != 1) {
    return invalid_graph("'value' has ", value.count(), " elements, expected 1");
  }
  return copy_tensor(value);  // aligned
}

class ConstantOfShape final : public OpKernel {
 public:
  explicit ConstantOfShape(Tensor value) : value_(std::move(value)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* given, run.tensor(0, DType::kInt64));
    if (given->rank() > 1) {
      return invalid_argument("the dims are a tensor of rank ", given->rank(), ", expected 1");
    }
    FOLIO_TRY(const Shape shape, shape_from(given->span<int64_t>()));
    FOLIO_TRY(Tensor * out, run.output(0, value_.dtype(), shape));
    if (out->count() == 0) return Status::ok();
    if (dtype_is_subbyte(value_.dtype())) {
      // The element side by side in every byte.
      const int bits = dtype_bits(value_.dtype());
      const int one = value_.raw()[0] & ((1 << bits) - 1);
      const int byte = one * (bits == 4 ? 0x11 : 0x55);
      std::memset(out->raw_mut(), byte, out->bytes());
      return Status::ok();
    }
    return dispatch_move(value_.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T& value = *value_.data<T>();
      T* to = out->data_mut<T>();
      run.parallel().for_range(out->count(), kMoveGrain, [&](int64_t begin, int64_t end) {
        std::fill(to + begin, to + end, value);
      });
      return Status::ok();
    });
  }

 private:
  Tensor value_;
};

// More contents than this are data, not a shape.
constexpr int64_t kMaxKnown = 64;

Status infer_constant_of_shape(OpInfer& infer) {
  FOLIO_TRY(const Tensor value, value_of(infer.attrs()));
  std::optional<Dims> out;
  if (auto dims = infer.data(0)) {
    if (dims->size() > static_cast<size_t>(kMaxRank)) {
      return invalid_graph("the result would have ", dims->size(), " dims, at most ", kMaxRank,
                           " are supported");
    }
    out = std::move(*dims);
  } else if (const Dims* shape = infer.dims_of(0); shape && shape->size() == 1 &&
                                                   (*shape)[0].is_value() &&
                                                   (*shape)[0].value <= kMaxRank) {
    out.emplace(static_cast<size_t>((*shape)[0].value));
  }
  const bool is_list =
      out &&
      (out->empty() || (out->size() == 1 && (*out)[0].is_value() && (*out)[0].value <= kMaxKnown));
  if (is_list && (value.dtype() == DType::kInt64 || value.dtype() == DType::kInt32)) {
    const int64_t number =
        value.dtype() == DType::kInt64 ? *value.data<int64_t>() : *value.data<int32_t>();
    const auto count = static_cast<size_t>(out->empty() ? 1 : (*out)[0].value);
    infer.set_data(0, std::vector<Dim>(count, number >= 0 ? Dim::of(number) : Dim::unknown()));
  }
  infer.set_tensor(0, value.dtype(), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_constant_of_shape(OpBuild& build) {
  FOLIO_TRY(Tensor value, value_of(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<ConstantOfShape>(std::move(value)));
}

}  // namespace

[[gnu::cold]] void register_constant_of_shape(OpRegistry& registry) {
  OpDef def;
  def.type = "ConstantOfShape";
  def.keeps_half = true;
  def.is_exact = true;
  def.since = 9;
  def.infer = infer_constant_of_shape;
  def.make = make_constant_of_shape;
  registry.add(def);
}

}  // namespace folio
