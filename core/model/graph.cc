#include "core/model/graph.h"

#include <algorithm>

namespace folio {

Initializer::~Initializer() {
  std::vector<std::unique_ptr<Recipe>> dying;
  if (recipe) dying.push_back(std::move(recipe));
  while (!dying.empty()) {
    const std::unique_ptr<Recipe> top = std::move(dying.back());
    dying.pop_back();
    for (Ref<Initializer>& input : top->inputs) {
      // The last owner takes the recipe out, so that the destructor it runs has nothing to do.
      if (input && input->is_unique() && input->recipe) dying.push_back(std::move(input->recipe));
      input = nullptr;
    }
  }
}

uint64_t plain_bytes(const Initializer& constant) {
  uint64_t bytes = 0;
  const auto count = static_cast<uint64_t>(constant.shape.count());
  return dtype_bytes(constant.dtype, count, &bytes) ? bytes : 0;
}

std::string node_label(std::string_view name, std::string_view op_type) {
  return cat("node '", name, "' (", op_type, ")");
}

Node::Node() = default;
Node::Node(Node&& other) noexcept = default;
Node& Node::operator=(Node&& other) noexcept = default;
Node::~Node() = default;

GraphValue::GraphValue() = default;
GraphValue::GraphValue(const GraphValue& other) = default;
GraphValue::GraphValue(GraphValue&& other) noexcept = default;
GraphValue& GraphValue::operator=(const GraphValue& other) = default;
GraphValue& GraphValue::operator=(GraphValue&& other) noexcept = default;
GraphValue::~GraphValue() = default;

Graph* Node::subgraph(std::string_view attribute) const {
  for (size_t i = 0; i < subgraph_names.size(); ++i) {
    if (subgraph_names[i] == attribute) return subgraphs[i].get();
  }
  return nullptr;
}

ValueId Graph::add_value(std::string value_name) {
  values.push_back({});
  values.back().name = std::move(value_name);
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::capture(ValueId outer) {
  const auto [it, added] = captures_.try_emplace(outer, kNone);
  if (added) {
    const std::string outer_name = parent->value(outer).name;
    it->second = add_value(outer_name);
    value(it->second).outer = outer;
    value(it->second).type = parent->value(outer).type;
  }
  return it->second;
}

const GraphValue* Graph::constant_value(ValueId id) const {
  const Graph* at = this;
  while (id != kNone) {
    const GraphValue& found = at->value(id);
    if (found.is_constant()) return &found;
    if (found.outer == kNone || !at->parent) return nullptr;
    id = found.outer;
    at = at->parent;
  }
  return nullptr;
}

std::vector<int> Graph::use_counts() const {
  std::vector<int> counts(values.size(), 0);
  for (const Node& node : nodes) {
    if (node.dead) continue;
    for_each_read(node, [&](ValueId read) { ++counts[static_cast<size_t>(read)]; });
  }
  for (const ValueId output : outputs) ++counts[static_cast<size_t>(output)];
  return counts;
}

void Graph::replace_uses(const Replacements& replacements) {
  if (replacements.empty()) return;
  for (Node& node : nodes) {
    for (ValueId& input : node.inputs) {
      if (const auto it = replacements.find(input); it != replacements.end()) input = it->second;
    }
    for (auto& subgraph : node.subgraphs) subgraph->replace_captures(replacements);
  }
}

void Graph::replace_captures(const Replacements& replacements) {
  Replacements merged;                             // inner values that became one with another
  std::vector<std::pair<ValueId, ValueId>> moved;  // outer value now captured, inner value
  for (auto it = captures_.begin(); it != captures_.end();) {
    const auto found = replacements.find(it->first);
    if (found == replacements.end()) {
      ++it;
      continue;
    }
    moved.emplace_back(found->second, it->second);
    it = captures_.erase(it);
  }
  for (const auto& [outer, inner] : moved) {
    const auto [existing, added] = captures_.try_emplace(outer, inner);
    value(inner).outer = added ? outer : kNone;
    if (!added) merged.emplace(inner, existing->second);
  }
  replace_uses(merged);
  for (ValueId& output : outputs) {
    if (const auto it = merged.find(output); it != merged.end()) output = it->second;
  }
}

void Graph::compact() {
  std::erase_if(nodes, [](const Node& node) { return node.dead; });
  for (GraphValue& each : values) each.producer = kNone;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const ValueId output : nodes[i].outputs) {
      if (output != kNone) value(output).producer = static_cast<NodeId>(i);
    }
  }
}

void Graph::drop_unused_captures() {
  if (captures_.empty()) return;
  const std::vector<int> uses = use_counts();
  for (auto it = captures_.begin(); it != captures_.end();) {
    if (uses[static_cast<size_t>(it->second)] == 0) {
      value(it->second).outer = kNone;
      it = captures_.erase(it);
    } else {
      ++it;
    }
  }
}

int Model::opset_version(std::string_view for_domain) const {
  for (const OpsetImport& import : opsets) {
    if (import.domain == for_domain) return static_cast<int>(import.version);
  }
  return 0;
}

}  // namespace folio
