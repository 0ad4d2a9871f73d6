// Identity, and SampleOp of com.microsoft: y is x.
//
// Source: ONNX operator spec, Identity, opsets 1, 13, 14 (sequences), 16 (optionals), 19 to 25;
//         com.microsoft SampleOp 1 (ONNX Runtime's contrib operators).
// Shapes: any; any kind of value. The output is a view.
// Types:  Identity: all types; sequences, maps and optionals too. SampleOp: all types.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class Identity final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    if (run.has_input(0)) run.set_output(0, run.value(0));
    return Status::ok();
  }
};

Status infer_identity(OpInfer& infer) {
  infer_same(infer, 0, 0);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_identity(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<Identity>());
}

}  // namespace

[[gnu::cold]] void register_identity(OpRegistry& registry) {
  OpDef def;
  def.type = "Identity";
  def.keeps_half = true;
  def.is_exact = true;
  def.infer = infer_identity;
  def.make = make_identity;
  def.view_of = 0;
  registry.add(def);
  def.domain = "com.microsoft";
  def.type = "SampleOp";
  registry.add(def);
}

}  // namespace folio
