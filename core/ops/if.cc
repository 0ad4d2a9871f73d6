// If: one of two subgraphs.
//
// Source: ONNX operator spec, If, opsets 1, 11, 13, 16 and later (only types were added).
// Inputs: cond, one bool. Outputs: those of the branch taken; values of any kind.
// Types:  cond bool; values of any kind.
#include <algorithm>

#include "core/ops/op_registry.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

class If final : public OpKernel {
 public:
  int then_branch = 0;
  int else_branch = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* cond, run.tensor(0, DType::kBool));
    if (cond->count() != 1) {
      return invalid_argument("cond has ", cond->count(), " elements, expected 1");
    }
    const int branch = *cond->data<uint8_t>() != 0 ? then_branch : else_branch;
    std::vector<Value> outputs;
    FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(branch, {}, &outputs));
    if (static_cast<int>(outputs.size()) < run.output_count()) {
      return invalid_graph("a branch has ", outputs.size(), " outputs, expected ",
                           run.output_count());
    }
    for (int i = 0; i < run.output_count(); ++i) {
      if (run.has_output(i)) run.set_output(i, std::move(outputs[static_cast<size_t>(i)]));
    }
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int then_branch, find_subgraph(infer.node(), "then_branch"));
  FOLIO_TRY(const int else_branch, find_subgraph(infer.node(), "else_branch"));
  FOLIO_TRY(const std::vector<TypeInfo> taken, infer.infer_subgraph(then_branch, {}));
  FOLIO_TRY(const std::vector<TypeInfo> other, infer.infer_subgraph(else_branch, {}));
  const auto wanted = static_cast<size_t>(infer.output_count());
  if (taken.size() < wanted || other.size() < wanted) {
    return invalid_graph("has ", wanted, " outputs, its branches ", taken.size(), " and ",
                         other.size());
  }
  for (size_t i = 0; i < wanted; ++i) {
    infer.set_output(static_cast<int>(i), common_type(taken[i], other[i]));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<If>();
  FOLIO_TRY(kernel->then_branch, find_subgraph(build.node(), "then_branch"));
  FOLIO_TRY(kernel->else_branch, find_subgraph(build.node(), "else_branch"));
  for (const int branch : {kernel->then_branch, kernel->else_branch}) {
    const Graph& graph = *build.node().subgraphs[static_cast<size_t>(branch)];
    if (!graph.inputs.empty())
      return invalid_graph("a branch of If takes no inputs, found ", graph.inputs.size());
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_if(OpRegistry& registry) {
  OpDef def;
  def.type = "If";
  def.max_outputs = kVariadic;
  def.places_outputs = false;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
