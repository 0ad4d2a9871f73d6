#include "core/ops/op_trees.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"

namespace folio {
namespace {

constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();

struct NodeKey {
  int64_t tree;
  int64_t node;
  bool operator==(const NodeKey&) const = default;
};

struct NodeKeyHash {
  size_t operator()(const NodeKey& key) const {
    const auto mixed = static_cast<uint64_t>(key.tree) * 0x9e3779b97f4a7c15u;
    return static_cast<size_t>((mixed ^ static_cast<uint64_t>(key.node)) * 0xff51afd7ed558ccdu);
  }
};

using NodeIndex = std::unordered_map<NodeKey, int32_t, NodeKeyHash>;

// The attributes of versions 1 and 3 as they stand.
struct NodeLists {
  std::vector<int64_t> trees, nodes, features, when_true, when_false, missing;
  std::vector<std::string> modes;
  std::vector<double> values;
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
  FOLIO_TRY(lists.trees, attrs.get_ints("nodes_treeids"));
  FOLIO_TRY(lists.nodes, attrs.get_ints("nodes_nodeids"));
  FOLIO_TRY(lists.features, attrs.get_ints("nodes_featureids"));
  FOLIO_TRY(lists.when_true, attrs.get_ints("nodes_truenodeids"));
  FOLIO_TRY(lists.when_false, attrs.get_ints("nodes_falsenodeids"));
  FOLIO_TRY(lists.missing, attrs.get_ints("nodes_missing_value_tracks_true"));
  FOLIO_TRY(lists.modes, attrs.get_strings("nodes_modes"));
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
      const auto child = index.find({lists.trees[i], id});
      if (child == index.end()) {
        return invalid_graph("node ", lists.nodes[i], " of tree ", lists.trees[i], " has child ",
                             id, ", which does not exist");
      }
      (side ? node.when_true : node.when_false) = child->second;
      has_parent[static_cast<size_t>(child->second)] = true;
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
  FOLIO_TRY(const std::vector<int64_t> trees, attrs.get_ints(prefix + "_treeids"));
  FOLIO_TRY(const std::vector<int64_t> nodes, attrs.get_ints(prefix + "_nodeids"));
  FOLIO_TRY(const std::vector<int64_t> ids, attrs.get_ints(prefix + "_ids"));
  FOLIO_TRY(const std::vector<double> weights, forest_numbers(attrs, prefix + "_weights"));
  const size_t count = trees.size();
  if (nodes.size() != count || ids.size() != count || weights.size() != count ||
      count > static_cast<size_t>(kMaxId)) {
    return invalid_graph("the attributes ", prefix, "_* differ in length");
  }
  std::vector<std::pair<int32_t, size_t>> order;
  for (size_t i = 0; i < count; ++i) {
    const auto leaf = index.find({trees[i], nodes[i]});
    if (leaf == index.end()) {
      return invalid_graph("attribute '", prefix, "_nodeids' names node ", nodes[i], " of tree ",
                           trees[i], ", which does not exist");
    }
    if (ids[i] < 0 || ids[i] > kMaxId) {
      return invalid_graph("attribute '", prefix, "_ids' holds ", ids[i]);
    }
    order.emplace_back(leaf->second, i);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < count;) {
    TreeNode& node = forest->nodes[static_cast<size_t>(order[i].first)];
    const int32_t leaf = order[i].first;
    const auto first = static_cast<int32_t>(forest->weights.size());
    for (; i < count && order[i].first == leaf; ++i) {
      const size_t at = order[i].second;
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
  Forest forest;
  NodeIndex index;
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
    const NodeKey key{lists.trees[i], lists.nodes[i]};
    if (!index.emplace(key, static_cast<int32_t>(i)).second) {
      return invalid_graph("node ", key.node, " of tree ", key.tree, " is there twice");
    }
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
