// Graph and Model: nodes and values as indices; what passes change.
//
// Flow:    build_model (graph_builder.h) makes it from a ModelDef, verified; passes/ rewrite it;
//          plan/ reads it.
// Owns:    structure as private copies; initializers by count (their bytes belong to mappings).
// Threads: one thread until planned; then immutable.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/ref.h"
#include "core/model/attributes.h"
#include "core/model/dim_table.h"
#include "core/model/model_def.h"

namespace folio {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr int32_t kNone = -1;

class Graph;
struct Initializer;

// How a constant is made from others: one operator applied to constants, not yet computed.
struct Recipe {
  std::string domain;
  std::string op_type;
  std::string node_name;
  int version = 0;
  Attributes attributes;
  std::vector<Ref<Initializer>> inputs;  // null = absent optional input
  int output = 0;                        // which output of the operator this is
  int output_count = 1;
};

// A constant tensor: bytes with their keeper, or a recipe with known dtype and shape.
struct Initializer : RefCounted {
  ~Initializer() override;  // frees long chains of recipes without recursion

  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  std::optional<Tensor> tensor;    // the bytes, when there are any yet
  std::unique_ptr<Recipe> recipe;  // otherwise
  Ref<ByteSource> source;          // where a mapped payload stands (content ids, reports)
  uint64_t offset = 0;
};

// Of its elements, whether they are there or to be computed; 0 for strings, which have no width.
uint64_t plain_bytes(const Initializer& constant);

// "node 'conv3' (Conv)": how every message names a node.
std::string node_label(std::string_view name, std::string_view op_type);

struct Node {
  Node();
  Node(Node&& other) noexcept;
  Node& operator=(Node&& other) noexcept;
  ~Node();

  std::string name;
  std::string domain;
  std::string op_type;
  int version = 0;               // version of the operator's domain that is in force
  std::vector<ValueId> inputs;   // kNone = absent
  std::vector<ValueId> outputs;  // kNone = not wanted
  Attributes attributes;
  // Graph-valued attributes, in the order of `subgraph_names`.
  std::vector<std::string> subgraph_names;
  std::vector<std::unique_ptr<Graph>> subgraphs;
  bool dead = false;

  std::string label() const { return node_label(name, op_type); }
  // The subgraph under an attribute name; null when absent.
  Graph* subgraph(std::string_view attribute) const;
};

struct GraphValue {
  std::string name;
  TypeInfo type;      // inferred; inputs: declared
  TypeInfo declared;  // as the file says; only reports use it for anything but inputs
  NodeId producer = kNone;
  bool is_input = false;
  // The constant, or an overridable default when is_input (then never folded).
  Ref<Initializer> initializer;
  // In a subgraph: the value of the enclosing graph that this one is.
  ValueId outer = kNone;
  // Integer contents as far as shape inference knows them (rank 0 or 1, few elements); of bools 0
  // and 1.
  std::optional<std::vector<Dim>> data;

  GraphValue();
  GraphValue(const GraphValue& other);
  GraphValue(GraphValue&& other) noexcept;
  GraphValue& operator=(const GraphValue& other);
  GraphValue& operator=(GraphValue&& other) noexcept;
  ~GraphValue();

  bool is_constant() const { return initializer && !is_input; }
};

class Graph {
 public:
  std::string name;
  std::vector<Node> nodes;  // topologically ordered; dead ones stay until compacted
  std::vector<GraphValue> values;
  std::vector<ValueId> inputs;  // in the file's order, overridable initializers excluded
  std::vector<ValueId> overridable;
  std::vector<ValueId> outputs;  // kNone never

  Graph* parent = nullptr;  // enclosing graph of a subgraph

  GraphValue& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const GraphValue& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  ValueId add_value(std::string name);
  // The value of this graph that stands for `outer` of the parent; made when absent.
  ValueId capture(ValueId outer);

  // The constant that a value is, seen through captures; null when it is none.
  const GraphValue* constant_value(ValueId id) const;
  // Calls `visit` with each value of this graph that `node` reads: its inputs and what its
  // subgraphs capture.
  template <typename Visit>
  static void for_each_read(const Node& node, Visit&& visit);
  // Readers of each value: node inputs, subgraph captures and graph outputs.
  std::vector<int> use_counts() const;
  // Makes every reader of a key (in this graph and, as captures, in subgraphs) read its value, all
  // in one pass; no value is a key itself. Graph outputs are left as they are.
  using Replacements = std::unordered_map<ValueId, ValueId>;
  void replace_uses(const Replacements& replacements);
  // Removes dead nodes.
  void compact();
  // Forgets captures that nothing in this graph reads.
  void drop_unused_captures();

 private:
  void replace_captures(const Replacements& replacements);

  std::unordered_map<ValueId, ValueId> captures_;  // outer -> inner
};

template <typename Visit>
void Graph::for_each_read(const Node& node, Visit&& visit) {
  for (const ValueId input : node.inputs) {
    if (input != kNone) visit(input);
  }
  for (const auto& subgraph : node.subgraphs) {
    for (const GraphValue& inner : subgraph->values) {
      if (inner.outer != kNone) visit(inner.outer);
    }
  }
}

// Calls `visit` with a graph and those inside of it, inner ones first.
template <typename Visit>
void for_inner_graphs_first(Graph* graph, const Visit& visit) {
  for (Node& node : graph->nodes) {
    for (auto& subgraph : node.subgraphs) for_inner_graphs_first(subgraph.get(), visit);
  }
  visit(*graph);
}

struct Model : ModelHeader {
  DimTable dims;
  Graph graph;

  // 0 when the domain is not imported.
  int opset_version(std::string_view for_domain) const;
};

}  // namespace folio
