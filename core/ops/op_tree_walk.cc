#include "core/ops/op_tree_walk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace folio {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Steps between two looks at whether all lanes have arrived.
constexpr int32_t kSteps = 4;

// For floats x: x <= result is x <= value, or x < value with `strict`. False: there is none.
bool threshold_of(double value, bool strict, float* result) {
  if (std::isnan(value)) return false;
  auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back > value || (strict && back >= value)) {
    if (nearest == -kInfinity) return false;
    nearest = std::nextafter(nearest, -kInfinity);
  }
  *result = nearest;
  return true;
}

}  // namespace

// A leaf, until its children are added.
bool TreeWalk::add(int32_t origin, std::vector<bool>* seen) {
  if ((*seen)[static_cast<size_t>(origin)]) return false;
  (*seen)[static_cast<size_t>(origin)] = true;
  nodes_.push_back({kInfinity, 0, static_cast<int32_t>(nodes_.size()), origin});
  return true;
}

bool TreeWalk::add_children(const Forest& forest, size_t at, std::vector<bool>* seen) {
  const TreeNode& from = forest.nodes[static_cast<size_t>(nodes_[at].origin)];
  if (from.mode > NodeMode::kGt) return false;
  const bool exchanged = from.mode == NodeMode::kGte || from.mode == NodeMode::kGt;
  const bool strict = from.mode == NodeMode::kLt || from.mode == NodeMode::kGte;
  if (!threshold_of(from.value, strict, &nodes_[at].threshold)) return false;
  nodes_[at].feature = from.feature;
  nodes_[at].child = static_cast<int32_t>(nodes_.size());
  return add(exchanged ? from.when_false : from.when_true, seen) &&
         add(exchanged ? from.when_true : from.when_false, seen);
}

// Where that is possible: a row then ends in the last node that it comes by.
void TreeWalk::take_weights(const Forest& forest) {
  std::vector<int32_t> bits(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const TreeNode& from = forest.nodes[static_cast<size_t>(nodes_[i].origin)];
    if (from.mode != NodeMode::kLeaf) continue;
    if (from.last - from.first != 1) return;
    const LeafWeight& weight = forest.weights[static_cast<size_t>(from.first)];
    const auto narrow = static_cast<float>(weight.weight);
    if (weight.target != 0 || static_cast<double>(narrow) != weight.weight) return;
    bits[i] = std::bit_cast<int32_t>(narrow);
  }
  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].origin = bits[i];
  gives_weights_ = true;
}

// Where each leaf has a weight for each target, in their order, as forests of probabilities have.
void TreeWalk::take_rows(const Forest& forest, int64_t sums) {
  std::vector<int32_t> number(nodes_.size());
  std::vector<double> rows;
  int32_t leaves = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const TreeNode& from = forest.nodes[static_cast<size_t>(nodes_[i].origin)];
    if (from.mode != NodeMode::kLeaf) continue;
    if (from.last - from.first != sums) return;
    for (int64_t t = 0; t < sums; ++t) {
      const LeafWeight& weight = forest.weights[static_cast<size_t>(from.first + t)];
      if (weight.target != t) return;
      rows.push_back(weight.weight);
    }
    number[i] = leaves++;
  }
  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].origin = number[i];
  rows_ = std::move(rows);
  row_ = sums;
}

bool TreeWalk::make(const Forest& forest, int64_t sums) {
  std::vector<bool> seen(forest.nodes.size());
  struct Open {
    size_t node;
    int32_t depth;
  };
  std::vector<Open> open;
  nodes_.reserve(forest.nodes.size());
  for (const int32_t root : forest.roots) {
    open.push_back({nodes_.size(), 0});
    roots_.push_back({static_cast<int32_t>(nodes_.size()), 0});
    if (!add(root, &seen)) return false;
    // A branch to its end, then the next one: what a walk comes by lies close together.
    while (!open.empty()) {
      const auto [at, depth] = open.back();
      open.pop_back();
      roots_.back().depth = std::max(roots_.back().depth, depth);
      if (forest.nodes[static_cast<size_t>(nodes_[at].origin)].mode == NodeMode::kLeaf) continue;
      if (!add_children(forest, at, &seen)) return false;
      const auto child = static_cast<size_t>(nodes_[at].child);
      open.push_back({child + 1, depth + 1});
      open.push_back({child, depth + 1});
    }
  }
  take_weights(forest);
  if (!gives_weights_ && sums > 0) take_rows(forest, sums);
  return true;
}

template <typename TreeOf, typename RowOf>
void TreeWalk::walk_lanes(TreeOf tree_of, RowOf row_of, int32_t* leaf) const {
  int32_t at[kLanes];
  int32_t depth = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const Root& root = roots_[tree_of(lane)];
    at[lane] = root.node;
    depth = std::max(depth, root.depth);
  }
  const Node* nodes = nodes_.data();
  int32_t moved = 1;
  for (int32_t left = depth; left > 0 && moved != 0; left -= kSteps) {
    for (int32_t step = std::min(left, kSteps); step > 0; --step) {
      moved = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        const Node& node = nodes[at[lane]];
        const int32_t next = node.child + (row_of(lane)[node.feature] <= node.threshold ? 0 : 1);
        moved |= next ^ at[lane];
        at[lane] = next;
      }
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) leaf[lane] = nodes[at[lane]].origin;
}

void TreeWalk::walk(const int32_t* tree, const float* const* x, int32_t* leaf) const {
  walk_lanes([&](int lane) { return static_cast<size_t>(tree[lane]); },
             [&](int lane) { return x[lane]; }, leaf);
}

void TreeWalk::walk_row(int64_t first, const float* x, int32_t* leaf) const {
  walk_lanes([&](int lane) { return static_cast<size_t>(std::min(first + lane, trees() - 1)); },
             [&](int) { return x; }, leaf);
}

}  // namespace folio
