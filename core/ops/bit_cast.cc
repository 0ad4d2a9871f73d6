// BitCast: the same bits as another element type.
//
// Source: ONNX operator spec, BitCast, opset 26.
// Shapes: y as x; the output is a view.
// Types:  all types but strings, to one of the same width, but not to bool.
// Errors: kInvalidArgument when the types differ in size, or one has no bits of its own (strings,
//         and bool, of which not every byte is a value).
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<DType> target_of(const Attributes& attrs) {
  FOLIO_TRY(const int64_t to, attrs.get_int("to"));
  if (!dtype_known(to)) return invalid_graph("to is ", to, ", which is no element type");
  const auto dtype = static_cast<DType>(to);
  if (dtype == DType::kString || dtype == DType::kBool || dtype == DType::kUndefined) {
    return invalid_graph("to is ", dtype_name(dtype), ", which cannot be made of bits");
  }
  return dtype;
}

Status check_types(DType from, DType to) {
  if (from != DType::kString && dtype_bits(from) == dtype_bits(to)) return Status::ok();
  return invalid_argument(dtype_name(from), " cannot be seen as ", dtype_name(to));
}

class BitCast final : public OpKernel {
 public:
  explicit BitCast(DType to) : to_(to) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_RETURN_IF_ERROR(check_types(x->dtype(), to_));
    Tensor view = *x;  // the constness of its bytes goes with its buffer
    run.set_output(0, Tensor(to_, x->shape(), view.raw_mut(), x->buffer()));
    return Status::ok();
  }

 private:
  DType to_;
};

Status infer_bit_cast(OpInfer& infer) {
  FOLIO_TRY(const DType to, target_of(infer.attrs()));
  if (infer.dtype(0) != DType::kUndefined) {
    FOLIO_RETURN_IF_ERROR(check_types(infer.dtype(0), to));
  }
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, to, x ? std::optional<Dims>(*x) : std::nullopt);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_bit_cast(OpBuild& build) {
  FOLIO_TRY(const DType to, target_of(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<BitCast>(to));
}

}  // namespace

[[gnu::cold]] void register_bit_cast(OpRegistry& registry) {
  OpDef def;
  def.type = "BitCast";
  def.since = 26;
  def.infer = infer_bit_cast;
  def.make = make_bit_cast;
  def.view_of = 0;
  def.keeps_half = true;
  def.is_exact = true;
  registry.add(def);
}

}  // namespace folio
