// Optional, OptionalHasElement, OptionalGetElement: values that may be absent.
//
// Source: ONNX operator spec, Optional, opset 15; OptionalHasElement and OptionalGetElement, opsets
//         15, 18 (tensors and sequences too; OptionalHasElement without an input).
// Math:   an optional that holds a value is that value; an empty one is no value.
// Types:  values of any kind.
// Errors: kInvalidArgument when an empty optional is asked for its element.
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Optional final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    if (run.has_input(0)) run.set_output(0, run.value(0));
    return Status::ok();
  }
};

class OptionalHasElement final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(Tensor * out, run.output(0, DType::kBool, Shape()));
    *out->raw_mut() = run.has_input(0) ? 1 : 0;
    return Status::ok();
  }
};

class OptionalGetElement final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    if (!run.has_input(0)) return invalid_argument("the optional is empty");
    run.set_output(0, run.value(0));
    return Status::ok();
  }
};

Status infer_optional(OpInfer& infer) {
  // What the attribute `type` says of an empty one matters to nobody.
  infer.set_output(0, TypeInfo::optional_of(infer.input(0)));
  return Status::ok();
}

Status infer_has(OpInfer& infer) {
  infer.set_tensor(0, DType::kBool, Dims{});
  return Status::ok();
}

Status infer_get(OpInfer& infer) {
  const TypeInfo& type = infer.input(0);
  if (type.kind != TypeInfo::Kind::kOptional) {
    infer.set_output(0, type);
  } else {
    infer.set_output(0, type.element ? *type.element : TypeInfo());
  }
  return Status::ok();
}

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Kernel>());
}

}  // namespace

[[gnu::cold]] void register_optional(OpRegistry& registry) {
  OpDef def;
  def.type = "Optional";
  def.since = 15;
  def.min_inputs = 0;
  def.infer = infer_optional;
  def.make = make<Optional>;
  registry.add(def);
  def.type = "OptionalHasElement";
  def.infer = infer_has;
  def.make = make<OptionalHasElement>;
  registry.add(def);
  def.type = "OptionalGetElement";
  def.min_inputs = 1;
  def.infer = infer_get;
  def.make = make<OptionalGetElement>;
  def.view_of = 0;
  registry.add(def);
}

}  // namespace folio
