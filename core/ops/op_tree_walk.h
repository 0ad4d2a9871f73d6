// TreeWalk: decision trees laid out for walks of eight lanes without branches.
//
// Flow:    make() takes a checked Forest; for float rows, keys_of() makes a row's keys, and walk()
// or
//          walk_row() go down by them. What make() refuses goes by Forest.
// Math:    every comparison becomes key <= width, of unsigned integers. A key is the float's bits,
// in
//          the order of floats, less those of the value that a node compares for equality, or
//          whether the float is one of a set; NaN has the least or the greatest key, whichever goes
//          where the node sends it. Nodes that ask for the same key share a column. With < instead
//          of
//          <= the width is that of the next float below, and >, >= and != exchange the children.
//          Children stand side by side, and a leaf is its own child: no step asks where it is.
// Owns:    a copy of the nodes, 16 bytes each, and of the leaves' weights.
// Threads: immutable after make().
#pragma once

#include "core/ops/op_trees.h"

namespace folio {

class TreeWalk {
 public:
  static constexpr int kLanes = 8;
  using Lanes = uint32_t[kLanes];  // keys of a column

  // What a walk gives of a leaf.
  enum class Gives : uint8_t {
    kWeight,  // the bits of a float, its only weight, which counts for target_of() its tree
    kRow,     // the number of a row() of weights, one for each target
    kNode,    // an index in `leaves`
  };

  // False when nodes have two parents, or there are too many of them or of their sets. `sums`: how
  // many targets leaves add to, where they add.
  bool make(const Forest& forest, int64_t sums);

  int64_t trees() const { return static_cast<int64_t>(roots_.size()); }
  int64_t columns() const { return static_cast<int64_t>(columns_.size()) + set_columns_; }

  Gives gives() const { return gives_; }
  int32_t target_of(int64_t tree) const { return roots_[static_cast<size_t>(tree)].target; }
  const double* row(int32_t leaf) const { return rows_.data() + leaf * row_; }
  // Weights [first, last) of Forest::weights.
  struct Leaf {
    int32_t first;
    int32_t last;
  };
  const Leaf& leaf(int32_t index) const { return leaves_[static_cast<size_t>(index)]; }

  // The keys of up to kLanes rows, `stride` apart, into a lane each of columns() columns.
  void keys_of(const float* x, int64_t stride, int64_t rows, Lanes* keys) const;
  // What each lane's leaf in the tree gives.
  void walk(int64_t tree, const Lanes* keys, int32_t* leaf) const;
  // The same for one lane and kLanes trees, of which those behind the last one are the last again.
  void walk_row(int64_t first, const Lanes* keys, int lane, int32_t* leaf) const;

 private:
  struct Node {
    uint32_t width;
    uint32_t column;  // its place in bytes
    uint32_t child;   // for keys up to width, in bytes; the other one is next to it
    int32_t gives;    // of leaves
  };
  struct Root {
    uint32_t node;  // in bytes
    int32_t depth;  // no walk takes more steps
    int32_t target;
  };
  struct Column {
    int32_t feature;
    uint32_t least;     // that much is taken off the bits
    bool nan_is_least;  // else NaN has the greatest key
    auto operator<=>(const Column&) const = default;
  };
  // The sets that nodes look for a feature in: columns of 0, a member, and 1.
  struct Sets {
    int32_t feature;
    int64_t count;
    std::vector<float> members;  // of any, in order
    // For each member, for what is none, and for NaN: its keys, a bit for each column.
    std::vector<uint64_t> keys;
    int64_t words() const { return (count + 63) / 64; }
    const uint64_t* keys_of(float value) const;
  };
  class Maker;
  class SetMaker;

  template <int kRows>
  void keys_of_rows(const float* const* x, int lane, Lanes* keys) const;
  template <typename StartOf, typename LaneOf>
  void walk_lanes(int32_t depth, StartOf start_of, const Lanes* keys, LaneOf lane_of,
                  int32_t* leaf) const;

  std::vector<Node> nodes_;
  std::vector<Root> roots_;
  std::vector<Column> columns_;
  std::vector<Sets> sets_;  // of the columns behind columns_
  int64_t set_columns_ = 0;
  Gives gives_ = Gives::kNode;
  std::vector<double> rows_;
  int64_t row_ = 0;  // weights of one
  std::vector<Leaf> leaves_;
};

}  // namespace folio
