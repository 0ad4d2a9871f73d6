// Tree ensembles: decision trees in one array, checked once at load.
//
// Flow:    make_forest() (or parse_forest_v5 in tree_ensemble.cc) fills nodes, then check() proves
//          that every walk ends; leaf_of() walks one tree for one row.
// Owns:    nodes, leaf weights, membership sets.
// Threads: immutable after check().
// Errors:  kInvalidGraph for children outside, cycles, missing roots, feature ids below 0.
#pragma once

#include <vector>

#include "core/model/attributes.h"

namespace folio {

enum class NodeMode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

struct TreeNode {
  double value = 0;
  int32_t feature = 0;
  int32_t when_true = -1;
  int32_t when_false = -1;
  // kLeaf: weights [first, last); kMember: members [first, last).
  int32_t first = 0;
  int32_t last = 0;
  NodeMode mode = NodeMode::kLeaf;
  bool missing_is_true = false;
};

struct LeafWeight {
  int32_t target = 0;
  double weight = 0;
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<int32_t> roots;
  std::vector<LeafWeight> weights;
  std::vector<double> members;
  int32_t features = 0;  // columns that X must have

  // All walks end; targets lie below `targets`.
  Status check(int64_t targets);
  const TreeNode& leaf_of(int32_t root, const double* x) const;
};

// From the attributes nodes_*, and `prefix` ("class" or "target") _ids, _nodeids, _treeids,
// _weights, of versions 1 and 3.
Result<Forest> make_forest(const Attributes& attrs, const std::string& prefix);

// A list of numbers: attribute `name`, or the tensor `name`_as_tensor.
Result<std::vector<double>> forest_numbers(const Attributes& attrs, const std::string& name);
// All elements of a float, float16 or double tensor attribute.
Result<std::vector<double>> tensor_numbers(const Attributes& attrs, const std::string& name);

}  // namespace folio
