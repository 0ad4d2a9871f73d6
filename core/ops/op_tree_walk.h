// TreeWalk: decision trees laid out for walks of eight lanes without branches.
//
// Flow:    make() takes a checked Forest whose nodes all compare for order; walk() goes down for
//          float rows that hold no NaN. What make() refuses, and rows with NaN, go by Forest.
// Math:    every comparison becomes x <= threshold: of floats, < and the thresholds of doubles are
//          that with the next float below; >= and > are < and <= with the children exchanged.
//          Children stand side by side, and a leaf is its own child: no step asks where it is.
// Owns:    a copy of the nodes, 16 bytes each.
// Threads: immutable after make().
#pragma once

#include "core/ops/op_trees.h"

namespace folio {

class TreeWalk {
 public:
  static constexpr int kLanes = 8;

  // False when the forest has nodes that are not for order, thresholds that are no number, or
  // nodes with two parents. `sums`: how many targets leaves add to, where they add.
  bool make(const Forest& forest, int64_t sums);

  int64_t trees() const { return static_cast<int64_t>(roots_.size()); }

  // Each leaf counts once, for target 0, by a float: what walk() gives is that number's bits.
  bool gives_weights() const { return gives_weights_; }

  // Each leaf adds to all targets: what walk() gives is the number of its weights' row.
  bool gives_rows() const { return !rows_.empty(); }
  const double* row(int32_t leaf) const { return rows_.data() + leaf * row_; }

  // Of the leaf that lane i's row x[i] ends in of tree[i]: its index in Forest::nodes, its weight
  // or its row.
  void walk(const int32_t* tree, const float* const* x, int32_t* leaf) const;
  // The same for one row and kLanes trees, of which those behind the last one are the last again.
  void walk_row(int64_t first, const float* x, int32_t* leaf) const;

 private:
  struct Node {
    float threshold;
    int32_t feature;
    int32_t child;   // when x <= threshold; the other one is next to it
    int32_t origin;  // in Forest::nodes; in the end of leaves what walk() gives
  };

  bool add(int32_t origin, std::vector<bool>* seen);
  bool add_children(const Forest& forest, size_t at, std::vector<bool>* seen);
  void take_weights(const Forest& forest);
  void take_rows(const Forest& forest, int64_t sums);
  template <typename TreeOf, typename RowOf>
  void walk_lanes(TreeOf tree_of, RowOf row_of, int32_t* leaf) const;

  std::vector<Node> nodes_;
  struct Root {
    int32_t node;
    int32_t depth;  // no walk takes more steps
  };

  std::vector<Root> roots_;
  bool gives_weights_ = false;
  std::vector<double> rows_;
  int64_t row_ = 0;  // weights of one
};

}  // namespace folio
