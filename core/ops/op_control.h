// What If, Loop and Scan share: types that hold in every branch or iteration, and stacks of the
// values that iterations leave behind.
#pragma once

#include <vector>

#include "core/ops/op.h"

namespace folio {

// What is true of a value that is of either type.
TypeInfo merge_types(const TypeInfo& a, const TypeInfo& b);

// The subgraph under this attribute, by its place in Node::subgraph_names.
Result<int> subgraph_index(const Node& node, std::string_view attribute);

// Body k of a loop: infers it with these input types, of which those from `first_input` on carry
// the outputs from `first_output` on into the next iteration (`carried` of them). Weakens the
// carried types until they hold in every iteration, the state before the first one included.
struct LoopTypes {
  std::vector<TypeInfo> inputs;
  std::vector<TypeInfo> outputs;
};
Result<LoopTypes> infer_loop_body(OpInfer& infer, int k, std::vector<TypeInfo> inputs,
                                  size_t first_input, size_t first_output, size_t carried);

// One boolean, of a tensor of any rank.
Result<bool> as_condition(const Value& value);

// Tensors of one type, to be one tensor with a new axis.
class Stack {
 public:
  Status push(const Value& value);
  int64_t count() const { return static_cast<int64_t>(items_.size()); }

  // All of them along `axis` of the result, in reverse order when asked, after which zeros fill
  // up to `length` entries. With no item the element's type comes from `like` (the inferred type of
  // the result): dims that it does not know are 0.
  Result<Tensor> join(OpRun& run, int64_t axis, bool reverse, int64_t length,
                      const TypeInfo& like) const;

 private:
  std::vector<Tensor> items_;
};

// Entry `at` of `axis`, which is gone from its shape: a view where the bytes allow it.
Result<Tensor> entry_of(OpRun& run, const Tensor& x, int axis, int64_t at);

}  // namespace folio
