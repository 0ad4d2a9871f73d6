#include "core/ops/op_tree_walk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace folio {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kGreatest = std::numeric_limits<uint32_t>::max();

// Steps between two looks at whether all lanes have arrived.
constexpr int kSteps = 4;

// A float's bits in the order of floats, both zeros the same. 0 and kGreatest are no number's.
uint32_t ordered(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0F);
  return bits ^ ((bits >> 31) != 0 ? kGreatest : uint32_t{1} << 31);
}

// The greatest float of those up to `value`, or below it with `strict`. False: there is none.
bool float_below(double value, bool strict, float* result) {
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

bool is_float(double value) { return static_cast<double>(static_cast<float>(value)) == value; }

// More words of Sets::keys than a forest of many large sets has.
constexpr size_t kMostWords = size_t{1} << 20;

}  // namespace

// The nodes that look for a member, until there is a column for each.
class TreeWalk::SetMaker {
 public:
  explicit SetMaker(const Forest& forest) : forest_(forest) {}

  void add(size_t place, const TreeNode& node, bool nan_is_member) {
    wanted_.push_back({node.feature, place, node.first, node.last, nan_is_member});
  }

  // After the walk's other columns.
  bool place(TreeWalk* walk) {
    std::sort(wanted_.begin(), wanted_.end(), [](const Wanted& a, const Wanted& b) {
      return a.feature != b.feature ? a.feature < b.feature : a.place < b.place;
    });
    size_t words = 0;
    for (auto from = wanted_.begin(); from != wanted_.end();) {
      const auto to = std::find_if(
          from, wanted_.end(), [&](const Wanted& each) { return each.feature != from->feature; });
      for (auto it = from; it != to; ++it) {
        const auto column = static_cast<size_t>(walk->columns() + (it - from));
        walk->nodes_[it->place].column = static_cast<uint32_t>(column * sizeof(Lanes));
      }
      Sets sets{from->feature, to - from, members_of(from, to), {}};
      words += (sets.members.size() + 2) * static_cast<size_t>(sets.words());
      if (words > kMostWords) return false;
      fill(from, to, &sets);
      walk->set_columns_ += sets.count;
      walk->sets_.push_back(std::move(sets));
      from = to;
    }
    return true;
  }

 private:
  struct Wanted {
    int32_t feature;
    size_t place;
    int32_t first;
    int32_t last;  // of Forest::members
    bool nan_is_member;
  };
  using Some = std::vector<Wanted>::const_iterator;

  // Calls body(set, member) for those that floats can be.
  template <typename Body>
  void for_members(Some from, Some to, Body&& body) const {
    for (Some it = from; it != to; ++it) {
      for (int32_t i = it->first; i < it->last; ++i) {
        const double member = forest_.members[static_cast<size_t>(i)];
        if (is_float(member)) body(it - from, static_cast<float>(member));
      }
    }
  }

  std::vector<float> members_of(Some from, Some to) const {
    std::vector<float> members;
    for_members(from, to, [&](int64_t, float member) { members.push_back(member); });
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    return members;
  }

  void fill(Some from, Some to, Sets* sets) const {
    const auto words = static_cast<size_t>(sets->words());
    sets->keys.assign((sets->members.size() + 2) * words, ~uint64_t{0});
    const auto clear = [&](size_t row, int64_t set) {
      sets->keys[row * words + static_cast<size_t>(set / 64)] &= ~(uint64_t{1} << (set % 64));
    };
    const std::vector<float>& members = sets->members;
    for_members(from, to, [&](int64_t set, float member) {
      const auto found = std::lower_bound(members.begin(), members.end(), member);
      clear(static_cast<size_t>(found - members.begin()), set);
    });
    for (Some it = from; it != to; ++it) {
      if (it->nan_is_member) clear(members.size() + 1, it - from);
    }
  }

  const Forest& forest_;
  std::vector<Wanted> wanted_;
};

class TreeWalk::Maker {
 public:
  Maker(const Forest& forest, TreeWalk* walk)
      : forest_(forest), walk_(*walk), seen_(forest.nodes.size()), sets_(forest) {}

  bool add_trees() {
    if (forest_.nodes.size() >= (size_t{1} << 32) / sizeof(Lanes)) return false;
    walk_.nodes_.reserve(forest_.nodes.size());
    origin_.reserve(forest_.nodes.size());
    return std::all_of(forest_.roots.begin(), forest_.roots.end(),
                       [&](int32_t root) { return add_tree(root); }) &&
           sets_.place(&walk_);
  }

  // What leaves give: the first of these that all of them can.
  void take_leaves(int64_t sums) {
    if (!take_weights() && (sums <= 0 || !take_rows(sums))) take_ranges();
  }

 private:
  const TreeNode& from(size_t at) const { return forest_.nodes[static_cast<size_t>(origin_[at])]; }

  // A leaf, until its children are added.
  bool add(int32_t origin) {
    if (seen_[static_cast<size_t>(origin)]) return false;
    seen_[static_cast<size_t>(origin)] = true;
    walk_.nodes_.push_back({kGreatest, 0, place(walk_.nodes_.size()), 0});
    origin_.push_back(origin);
    return true;
  }

  static uint32_t place(size_t node) { return static_cast<uint32_t>(node * sizeof(Node)); }

  bool add_tree(int32_t origin) {
    struct Open {
      size_t node;
      int32_t depth;
    };
    std::vector<Open> open{{walk_.nodes_.size(), 0}};
    walk_.roots_.push_back({place(walk_.nodes_.size()), 0, 0});
    if (!add(origin)) return false;
    // A branch to its end, then the next one: what a walk comes by lies close together.
    while (!open.empty()) {
      const auto [at, depth] = open.back();
      open.pop_back();
      int32_t& deepest = walk_.roots_.back().depth;
      deepest = std::max(deepest, depth);
      if (from(at).mode == NodeMode::kLeaf) continue;
      const size_t child = walk_.nodes_.size();
      if (!add_children(at)) return false;
      open.push_back({child + 1, depth + 1});
      open.push_back({child, depth + 1});
    }
    return true;
  }

  bool add_children(size_t at) {
    const TreeNode& node = from(at);
    const NodeMode mode = node.mode;
    const bool exchanged =
        mode == NodeMode::kGte || mode == NodeMode::kGt || mode == NodeMode::kNeq;
    const bool nan_is_true = node.missing_is_true || mode == NodeMode::kNeq;
    Column column{node.feature, 0, nan_is_true != exchanged};
    uint32_t width = 0;  // alone, that of nothing
    float bound = 0;
    if (mode == NodeMode::kEq || mode == NodeMode::kNeq) {
      if (is_float(node.value)) column.least = ordered(static_cast<float>(node.value));
    } else if (std::isnan(node.value)) {  // which nothing is below, nor above
      width = exchanged ? kGreatest - 1 : 0;
    } else if (float_below(node.value, mode == NodeMode::kLt || mode == NodeMode::kGte, &bound)) {
      width = ordered(bound);
    }
    const bool is_set = mode == NodeMode::kMember;
    if (is_set) sets_.add(at, node, nan_is_true);
    walk_.nodes_[at] = {is_set ? 0 : width, is_set ? 0 : place_of(column),
                        place(walk_.nodes_.size()), 0};
    return add(exchanged ? node.when_false : node.when_true) &&
           add(exchanged ? node.when_true : node.when_false);
  }

  uint32_t place_of(const Column& column) {
    const auto [found, is_new] = index_.emplace(column, walk_.columns_.size());
    if (is_new) walk_.columns_.push_back(column);
    return static_cast<uint32_t>(found->second * sizeof(Lanes));
  }

  // Calls body(index, tree, leaf) until it says false.
  template <typename Body>
  bool for_leaves(Body&& body) {
    size_t tree = 0;
    for (size_t i = 0; i < walk_.nodes_.size(); ++i) {
      while (tree + 1 < walk_.roots_.size() && place(i) >= walk_.roots_[tree + 1].node) ++tree;
      const TreeNode& leaf = from(i);
      if (leaf.mode == NodeMode::kLeaf && !body(i, tree, leaf)) return false;
    }
    return true;
  }

  bool take_weights() {
    std::vector<int32_t> target(walk_.roots_.size(), -1);
    const bool all = for_leaves([&](size_t i, size_t tree, const TreeNode& leaf) {
      if (leaf.last - leaf.first != 1) return false;
      const LeafWeight& weight = forest_.weights[static_cast<size_t>(leaf.first)];
      if (target[tree] >= 0 && weight.target != target[tree]) return false;
      target[tree] = weight.target;
      walk_.nodes_[i].gives = std::bit_cast<int32_t>(static_cast<float>(weight.weight));
      return is_float(weight.weight);
    });
    if (!all) return false;
    for (size_t tree = 0; tree < target.size(); ++tree) walk_.roots_[tree].target = target[tree];
    walk_.gives_ = Gives::kWeight;
    return true;
  }

  // Where each leaf has a weight for each target, in their order, as forests of probabilities have.
  bool take_rows(int64_t sums) {
    std::vector<double> rows;
    int32_t count = 0;
    const bool all = for_leaves([&](size_t i, size_t, const TreeNode& leaf) {
      if (leaf.last - leaf.first != sums) return false;
      for (int64_t t = 0; t < sums; ++t) {
        const LeafWeight& weight = forest_.weights[static_cast<size_t>(leaf.first + t)];
        if (weight.target != t) return false;
        rows.push_back(weight.weight);
      }
      walk_.nodes_[i].gives = count++;
      return true;
    });
    if (!all) return false;
    walk_.rows_ = std::move(rows);
    walk_.row_ = sums;
    walk_.gives_ = Gives::kRow;
    return true;
  }

  void take_ranges() {
    for_leaves([&](size_t i, size_t, const TreeNode& leaf) {
      walk_.nodes_[i].gives = static_cast<int32_t>(walk_.leaves_.size());
      walk_.leaves_.push_back({leaf.first, leaf.last});
      return true;
    });
    walk_.gives_ = Gives::kNode;
  }

  const Forest& forest_;
  TreeWalk& walk_;
  std::vector<bool> seen_;       // of the forest's nodes
  std::vector<int32_t> origin_;  // of ours, theirs
  std::map<Column, size_t> index_;
  SetMaker sets_;
};

bool TreeWalk::make(const Forest& forest, int64_t sums) {
  Maker maker(forest, this);
  if (!maker.add_trees()) return false;
  maker.take_leaves(sums);
  return true;
}

const uint64_t* TreeWalk::Sets::keys_of(float value) const {
  const auto found = std::lower_bound(members.begin(), members.end(), value);
  int64_t row = found - members.begin();
  if (found == members.end() || *found != value) row = std::ssize(members);
  if (value != value) row = std::ssize(members) + 1;
  return keys.data() + row * words();
}

template <int kRows>
void TreeWalk::keys_of_rows(const float* const* x, int lane, Lanes* keys) const {
  for (const Column column : columns_) {  // a copy: keys may be anywhere
    float value[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) value[i] = x[i][column.feature];
    uint32_t* to = *keys++ + lane;
    const uint32_t of_nan = column.nan_is_least ? 0 : kGreatest;
    for (int i = 0; i < kRows; ++i) {
      const uint32_t key = ordered(value[i]) - column.least;
      to[i] = value[i] != value[i] ? of_nan : key;
    }
  }
  for (const Sets& sets : sets_) {
    for (int i = 0; i < kRows; ++i) {
      const uint64_t* bits = sets.keys_of(x[i][sets.feature]);
      for (int64_t set = 0; set < sets.count; ++set) {
        keys[set][lane + i] = bits[set / 64] >> (set % 64) & 1;
      }
    }
    keys += sets.count;
  }
}

void TreeWalk::keys_of(const float* x, int64_t stride, int64_t rows, Lanes* keys) const {
  const float* row[kLanes];
  for (int i = 0; i < rows; ++i) row[i] = x + i * stride;
  if (rows == kLanes) return keys_of_rows<kLanes>(row, 0, keys);
  for (int i = 0; i < rows; ++i) keys_of_rows<1>(row + i, i, keys);
}

template <typename StartOf, typename LaneOf>
void TreeWalk::walk_lanes(int32_t depth, StartOf start_of, const Lanes* keys, LaneOf lane_of,
                          int32_t* leaf) const {
  const auto* nodes = reinterpret_cast<const char*>(nodes_.data());
  const auto* rows = reinterpret_cast<const char*>(keys);
  const auto node_at = [&](uint32_t place) { return reinterpret_cast<const Node*>(nodes + place); };
  const auto step = [&](uint32_t at, int lane) {
    const Node* node = node_at(at);
    const uint32_t key = reinterpret_cast<const uint32_t*>(rows + node->column)[lane_of(lane)];
    return node->child + (key > node->width ? uint32_t{sizeof(Node)} : 0);
  };
  uint32_t at[kLanes];
#pragma GCC unroll 8
  for (int lane = 0; lane < kLanes; ++lane) at[lane] = start_of(lane);
  uint32_t moved = 1;
  for (int32_t left = depth; left > 0 && moved != 0; left -= kSteps) {
#pragma GCC unroll 4
    for (int i = 1; i < kSteps; ++i) {
#pragma GCC unroll 8
      for (int lane = 0; lane < kLanes; ++lane) at[lane] = step(at[lane], lane);
    }
    moved = 0;
#pragma GCC unroll 8
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t next = step(at[lane], lane);
      moved |= next ^ at[lane];
      at[lane] = next;
    }
  }
#pragma GCC unroll 8
  for (int lane = 0; lane < kLanes; ++lane) leaf[lane] = node_at(at[lane])->gives;
}

void TreeWalk::walk(int64_t tree, const Lanes* keys, int32_t* leaf) const {
  const Root& root = roots_[static_cast<size_t>(tree)];
  walk_lanes(
      root.depth, [&](int) { return root.node; }, keys, [](int lane) { return lane; }, leaf);
}

void TreeWalk::walk_row(int64_t first, const Lanes* keys, int lane, int32_t* leaf) const {
  const Root* roots[kLanes];
  int32_t depth = 0;
  for (int i = 0; i < kLanes; ++i) {
    roots[i] = &roots_[static_cast<size_t>(std::min(first + i, trees() - 1))];
    depth = std::max(depth, roots[i]->depth);
  }
  walk_lanes(
      depth, [&](int i) { return roots[i]->node; }, keys, [&](int) { return lane; }, leaf);
}

}  // namespace folio
