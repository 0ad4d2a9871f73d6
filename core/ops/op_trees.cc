#include "core/ops/op_trees.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"

namespace folio {
namespace {

constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();

// The attributes of versions 1 and 3 as they stand.
struct NodeLists {
  Span<const int64_t> trees, nodes, features, when_true, when_false, missing;
  Span<const std::string> modes;
  std::vector<double> values;
};

// Where the lists have a node. What exporters write, trees one after the other with nodes that are
// numbered as they come, is found by counting.
class NodeIndex {
 public:
  static Result<NodeIndex> make(const NodeLists& lists) {
    NodeIndex index;
    index.trees_ = lists.trees;
    index.nodes_ = lists.nodes;
    const auto count = static_cast<int32_t>(lists.trees.size());
    int32_t i = 1;
    while (i < count && index.key(i - 1) < index.key(i)) ++i;
    if (i >= count) return index;
    index.order_.resize(lists.trees.size());
    std::iota(index.order_.begin(), index.order_.end(), 0);
    std::sort(index.order_.begin(), index.order_.end(),
              [&](int32_t a, int32_t b) { return index.key(a) < index.key(b); });
    const auto twice =
        std::adjacent_find(index.order_.begin(), index.order_.end(),
                           [&](int32_t a, int32_t b) { return index.key(a) == index.key(b); });
    if (twice == index.order_.end()) return index;
    const Key key = index.key(*twice);
    return invalid_graph("node ", key.second, " of tree ", key.first, " is there twice");
  }

  // Its place, or -1. `near`: the place of a node that may be one of the same tree.
  int32_t find(int64_t tree, int64_t node, int32_t near) const {
    const Key wanted{tree, node};
    const auto count = static_cast<int64_t>(trees_.size());
    const int64_t from = nodes_[static_cast<size_t>(near)];
    if (from >= 0 && node >= 0 && node - from >= -near && node - from < count - near) {
      const auto guess = static_cast<int32_t>(near + (node - from));
      if (key(guess) == wanted) return guess;
    }
    int64_t low = 0;
    int64_t high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (key(place(middle)) < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < count && key(place(low)) == wanted ? place(low) : -1;
  }

 private:
  using Key = std::pair<int64_t, int64_t>;

  Key key(int32_t place) const {
    return {trees_[static_cast<size_t>(place)], nodes_[static_cast<size_t>(place)]};
  }
  int32_t place(int64_t nth) const {
    return order_.empty() ? static_cast<int32_t>(nth) : order_[static_cast<size_t>(nth)];
  }

  Span<const int64_t> trees_, nodes_;
  std::vector<int32_t> order_;  // places by tree and node; empty: as they come
};

Result<NodeMode> mode_of(const std::string& name) {
  const std::string_view names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                    "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (size_t i = 0; i < std::size(names); ++i) {
    // Membership came with version 5, which has no names.
    if (name == names[i] && i != 6) return static_cast<NodeMode>(i);
  }
  return invalid_graph("attribute 'nodes_modes' holds '", name, "'");
}

Result<NodeLists> node_lists(const Attributes& attrs) {
  NodeLists lists;
  FOLIO_TRY(lists.trees, attrs.view_ints("nodes_treeids"));
  FOLIO_TRY(lists.nodes, attrs.view_ints("nodes_nodeids"));
  FOLIO_TRY(lists.features, attrs.view_ints("nodes_featureids"));
  FOLIO_TRY(lists.when_true, attrs.view_ints("nodes_truenodeids"));
  FOLIO_TRY(lists.when_false, attrs.view_ints("nodes_falsenodeids"));
  FOLIO_TRY(lists.missing, attrs.view_ints("nodes_missing_value_tracks_true"));
  FOLIO_TRY(lists.modes, attrs.view_strings("nodes_modes"));
  FOLIO_TRY(lists.values, forest_numbers(attrs, "nodes_values"));
  const size_t count = lists.trees.size();
  const bool agree = count > 0 && lists.nodes.size() == count && lists.features.size() == count &&
                     lists.when_true.size() == count && lists.when_false.size() == count &&
                     lists.modes.size() == count && lists.values.size() == count &&
                     (lists.missing.empty() || lists.missing.size() == count);
  if (!agree || count > static_cast<size_t>(kMaxId)) {
    return invalid_graph("the attributes nodes_* are empty or differ in length (nodes_treeids has ",
                         count, ")");
  }
  return lists;
}

Status link_children(const NodeLists& lists, const NodeIndex& index, Forest* forest) {
  std::vector<bool> has_parent(forest->nodes.size());
  for (size_t i = 0; i < forest->nodes.size(); ++i) {
    TreeNode& node = forest->nodes[i];
    if (node.mode == NodeMode::kLeaf) continue;
    for (const bool side : {true, false}) {
      const int64_t id = side ? lists.when_true[i] : lists.when_false[i];
      const int32_t child = index.find(lists.trees[i], id, static_cast<int32_t>(i));
      if (child < 0) {
        return invalid_graph("node ", lists.nodes[i], " of tree ", lists.trees[i], " has child ",
                             id, ", which does not exist");
      }
      (side ? node.when_true : node.when_false) = child;
      has_parent[static_cast<size_t>(child)] = true;
    }
  }
  for (size_t i = 0; i < forest->nodes.size(); ++i) {
    if (!has_parent[i]) forest->roots.push_back(static_cast<int32_t>(i));
  }
  return Status::ok();
}

// Weights sorted by leaf; within a leaf in the order of the file.
Status add_weights(const Attributes& attrs, const std::string& prefix, const NodeIndex& index,
                   Forest* forest) {
  FOLIO_TRY(const Span<const int64_t> trees, attrs.view_ints(prefix + "_treeids"));
  FOLIO_TRY(const Span<const int64_t> nodes, attrs.view_ints(prefix + "_nodeids"));
  FOLIO_TRY(const Span<const int64_t> ids, attrs.view_ints(prefix + "_ids"));
  FOLIO_TRY(const std::vector<double> weights, forest_numbers(attrs, prefix + "_weights"));
  const size_t count = trees.size();
  if (nodes.size() != count || ids.size() != count || weights.size() != count ||
      count > static_cast<size_t>(kMaxId)) {
    return invalid_graph("the attributes ", prefix, "_* differ in length");
  }
  std::vector<std::pair<int32_t, int32_t>> order;  // by leaf
  order.reserve(count);
  forest->weights.reserve(count);
  int32_t leaf = 0;
  for (size_t i = 0; i < count; ++i) {
    leaf = index.find(trees[i], nodes[i], leaf);
    if (leaf < 0) {
      return invalid_graph("attribute '", prefix, "_nodeids' names node ", nodes[i], " of tree ",
                           trees[i], ", which does not exist");
    }
    if (ids[i] < 0 || ids[i] > kMaxId) {
      return invalid_graph("attribute '", prefix, "_ids' holds ", ids[i]);
    }
    order.emplace_back(leaf, static_cast<int32_t>(i));
  }
  if (!std::is_sorted(order.begin(), order.end())) std::sort(order.begin(), order.end());
  for (size_t i = 0; i < count;) {
    TreeNode& node = forest->nodes[static_cast<size_t>(order[i].first)];
    leaf = order[i].first;
    const auto first = static_cast<int32_t>(forest->weights.size());
    for (; i < count && order[i].first == leaf; ++i) {
      const auto at = static_cast<size_t>(order[i].second);
      forest->weights.push_back({static_cast<int32_t>(ids[at]), weights[at]});
    }
    if (node.mode != NodeMode::kLeaf) continue;  // weights of inner nodes mean nothing
    node.first = first;
    node.last = static_cast<int32_t>(forest->weights.size());
  }
  return Status::ok();
}

// Depth first from each root; a node that is open when it is met again closes a cycle.
Status check_acyclic(const Forest& forest) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(forest.nodes.size(), kNew);
  std::vector<int32_t> stack;
  for (const int32_t root : forest.roots) {
    stack.push_back(root);
    while (!stack.empty()) {
      const int32_t at = stack.back();
      uint8_t& mine = state[static_cast<size_t>(at)];
      if (mine != kNew) {
        mine = kDone;
        stack.pop_back();
        continue;
      }
      mine = kOpen;
      const TreeNode& node = forest.nodes[static_cast<size_t>(at)];
      if (node.mode == NodeMode::kLeaf) continue;
      for (const int32_t child : {node.when_true, node.when_false}) {
        const uint8_t theirs = state[static_cast<size_t>(child)];
        if (theirs == kOpen) return invalid_graph("the tree nodes form a cycle at node ", child);
        if (theirs == kNew) stack.push_back(child);
      }
    }
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<double>> tensor_numbers(const Attributes& attrs, const std::string& name) {
  std::vector<double> out;
  if (!attrs.has(name)) return out;
  FOLIO_TRY(const Tensor stored, attrs.get_tensor(name));
  FOLIO_TRY(const Tensor tensor, aligned(stored));
  const bool known = dispatch(FloatTypes{}, tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T value : tensor.span<T>()) out.push_back(static_cast<Compute<T>>(value));
  });
  if (!known) return invalid_graph("attribute '", name, "' is ", dtype_name(tensor.dtype()));
  return out;
}

Result<std::vector<double>> forest_numbers(const Attributes& attrs, const std::string& name) {
  if (attrs.has(name + "_as_tensor")) return tensor_numbers(attrs, name + "_as_tensor");
  FOLIO_TRY(const std::vector<float> floats, attrs.get_floats(name));
  return std::vector<double>(floats.begin(), floats.end());
}

Result<Forest> make_forest(const Attributes& attrs, const std::string& prefix) {
  FOLIO_TRY(const NodeLists lists, node_lists(attrs));
  FOLIO_TRY(const NodeIndex index, NodeIndex::make(lists));
  Forest forest;
  forest.nodes.reserve(lists.trees.size());
  for (size_t i = 0; i < lists.trees.size(); ++i) {
    TreeNode node;
    FOLIO_TRY(node.mode, mode_of(lists.modes[i]));
    const int64_t feature = lists.features[i];
    if (node.mode != NodeMode::kLeaf && (feature < 0 || feature >= kMaxId)) {
      return invalid_graph("attribute 'nodes_featureids' holds ", feature);
    }
    node.feature = node.mode == NodeMode::kLeaf ? 0 : static_cast<int32_t>(feature);
    node.value = lists.values[i];
    node.missing_is_true = !lists.missing.empty() && lists.missing[i] != 0;
    forest.nodes.push_back(node);
  }
  FOLIO_RETURN_IF_ERROR(link_children(lists, index, &forest));
  FOLIO_RETURN_IF_ERROR(add_weights(attrs, prefix, index, &forest));
  return forest;
}

Status Forest::check(int64_t targets) {
  if (roots.empty()) return invalid_graph("the tree nodes form a cycle: no node is a root");
  FOLIO_RETURN_IF_ERROR(check_acyclic(*this));
  for (const LeafWeight& weight : weights) {
    if (weight.target >= targets) {
      return invalid_graph("a leaf counts for target ", weight.target, " of ", targets);
    }
  }
  for (const TreeNode& node : nodes) {
    if (node.mode != NodeMode::kLeaf) features = std::max(features, node.feature + 1);
  }
  return Status::ok();
}

const TreeNode& Forest::leaf_of(int32_t root, const double* x) const {
  const TreeNode* node = &nodes[static_cast<size_t>(root)];
  while (node->mode != NodeMode::kLeaf) {
    const double v = x[node->feature];
    bool is_true = node->missing_is_true && std::isnan(v);
    switch (node->mode) {
      case NodeMode::kLeq:
        is_true |= v <= node->value;
        break;
      case NodeMode::kLt:
        is_true |= v < node->value;
        break;
      case NodeMode::kGte:
        is_true |= v >= node->value;
        break;
      case NodeMode::kGt:
        is_true |= v > node->value;
        break;
      case NodeMode::kEq:
        is_true |= v == node->value;
        break;
      case NodeMode::kNeq:
        is_true |= v != node->value;
        break;
      default:  // kMember
        is_true |= std::find(members.begin() + node->first, members.begin() + node->last, v) !=
                   members.begin() + node->last;
    }
    node = &nodes[static_cast<size_t>(is_true ? node->when_true : node->when_false)];
  }
  return *node;
}

}  // namespace folio
