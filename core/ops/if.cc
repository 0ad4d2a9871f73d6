// If: one of two subgraphs.
//
// Source: ONNX operator spec, If, opsets 1, 11, 13 (sequences), 16 (optionals), 19 to 25.
// Shapes: what the branch that runs gives; the branches need agree in number and type only.
// Errors: kInvalidArgument when the condition is not one bool.
#include "core/ops/op_control.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class If final : public OpKernel {
 public:
  If(int then_branch, int else_branch) : then_(then_branch), else_(else_branch) {}

  Status run(OpRun& run) const override {
    if (!run.has_input(0)) return invalid_argument("the condition is missing");
    FOLIO_TRY(const bool condition, as_condition(run.value(0)));
    std::vector<Value> outputs;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(condition ? then_ : else_, {}, &outputs));
    if (outputs.size() != static_cast<size_t>(run.output_count())) {
      return invalid_graph("the branch gives ", outputs.size(), " values, expected ",
                           run.output_count());
    }
    for (int i = 0; i < run.output_count(); ++i) {
      if (run.has_output(i)) run.set_output(i, std::move(outputs[static_cast<size_t>(i)]));
    }
    return Status::ok();
  }

 private:
  int then_;
  int else_;
};

Status infer_if(OpInfer& infer) {
  FOLIO_TRY(const int then_branch, subgraph_index(infer.node(), "then_branch"));
  FOLIO_TRY(const int else_branch, subgraph_index(infer.node(), "else_branch"));
  FOLIO_TRY(const std::vector<TypeInfo> a, infer.infer_subgraph(then_branch, {}));
  FOLIO_TRY(const std::vector<TypeInfo> b, infer.infer_subgraph(else_branch, {}));
  const auto expected = static_cast<size_t>(infer.output_count());
  if (a.size() != expected || b.size() != expected) {
    return invalid_graph("the branches have ", a.size(), " and ", b.size(), " outputs, expected ",
                         expected);
  }
  for (size_t i = 0; i < expected; ++i) {
    infer.set_output(static_cast<int>(i), merge_types(a[i], b[i]));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_if(OpBuild& build) {
  FOLIO_TRY(const int then_branch, subgraph_index(build.node(), "then_branch"));
  FOLIO_TRY(const int else_branch, subgraph_index(build.node(), "else_branch"));
  return std::unique_ptr<OpKernel>(std::make_unique<If>(then_branch, else_branch));
}

}  // namespace

void register_if(OpRegistry& registry) {
  OpDef def;
  def.type = "If";
  def.max_outputs = kVariadic;
  def.infer = infer_if;
  def.make = make_if;
  registry.add(def);
}

}  // namespace folio
