// What If, Loop and Scan share: finding their subgraphs, merging types, stacking scan outputs.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/op.h"

namespace folio {

// Position of the graph attribute `name` among the node's subgraphs.
Result<int> find_subgraph(const Node& node, std::string_view name);

// What is true of both: dims that differ become unknown; kinds or types that differ, unknown.
TypeInfo common_type(const TypeInfo& a, const TypeInfo& b);

// The same type with nothing known about its dims: a value that may change between iterations.
TypeInfo without_dims(const TypeInfo& type);

// False where a body is given one type of value and surely gives back another.
bool may_carry(const TypeInfo& given, const TypeInfo& result);
// Of a value that a body is given and gives back, after any number of iterations: nothing where
// only one of the two is known, since a body that never runs gives what was given.
TypeInfo carried_type(const TypeInfo& given, const TypeInfo& result);

// Type of a stack of `element`s along a new axis 0 of unknown length.
TypeInfo stacked_type(const TypeInfo& element);

// What a body's output is when no iteration makes one: as inferred, or, where inference could not
// keep it (a carried shape may change), as the file declares it.
TypeInfo type_without_iteration(const GraphValue& output);

// Collects one tensor per iteration and stacks them along a new axis.
class ScanOutput {
 public:
  // Room for `first` of them is made at once, then for more and more, up to `most`.
  ScanOutput(int64_t first, int64_t most) : first_(first), most_(most) {}
  Status add(const Value& value);
  // Stacks along `axis` of the result, in order or reversed. Without any element the result is
  // [0, dims...] with `empty_type` (0 for each dim that is not known).
  Result<Tensor> stack(int64_t axis, bool reverse, const TypeInfo& empty_type) const;

 private:
  Status make_room(const Tensor& element);

  int64_t first_;
  int64_t most_;
  int64_t count_ = 0;
  Shape shape_;   // of an element
  Tensor stack_;  // [room, shape...]
};

// Element `index` along `axis` of a tensor, as a tensor without that axis. Axis 0: a view.
Result<Tensor> slice_axis(const Tensor& tensor, int axis, int64_t index);

}  // namespace folio
