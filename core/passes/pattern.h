// Pattern: what the passes that fuse nodes ask of a graph, and how they put one node in the place
// of many.
//
// Flow:    a pass walks the nodes; from the last node of what it looks for it goes up with
// made_by()
//          (or down with sole_reader()), checks types and constants, and replace()s that last node
//          by one that reads what went in. Nodes that nobody reads any more go with it; results
//          that are outputs or read elsewhere keep their nodes, so no fusion can lose one.
// Owns:    views of the graph and counts of its readers; the graph's owner compacts it at the end.
// Threads: one, while loading.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/graph.h"

namespace folio {

// Whether the registry says that the node's operator goes element by element.
bool is_elementwise(const Node& node);

// For each value the nodes that read it, once per input. One list in one block of memory: most
// values have one reader, and each pass makes these lists anew.
class ReaderLists {
 public:
  void resize(size_t values) { first_.resize(values, kNone); }
  void reserve(size_t reads) { reads_.reserve(reads); }
  void add(ValueId value, NodeId node);
  // One of the times that `node` reads `value`.
  void remove(ValueId value, NodeId node);
  std::vector<NodeId> of(ValueId value) const;
  // The only entry; kNone when there are none or several.
  NodeId only(ValueId value) const;

 private:
  struct Read {
    NodeId node = kNone;
    int32_t next = kNone;
  };
  const Read* at(int32_t index) const {
    return index == kNone ? nullptr : &reads_[static_cast<size_t>(index)];
  }

  std::vector<int32_t> first_;  // into reads_
  std::vector<Read> reads_;
};

class Pattern {
 public:
  explicit Pattern(Graph* graph);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Node& node(NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return graph_.nodes[static_cast<size_t>(id)]; }
  NodeId count() const { return static_cast<NodeId>(graph_.nodes.size()); }

  // A live ai.onnx node (or one of another domain) of this type.
  bool is(NodeId id, std::string_view type, std::string_view domain = "") const;
  // The node of this type that makes a value; kNone when something else does.
  NodeId made_by(ValueId value, std::string_view type, std::string_view domain = "") const;
  NodeId producer(ValueId value) const;
  // The node that alone reads the value, once; kNone: several, none, a subgraph or an output.
  NodeId sole_reader(ValueId value) const;
  bool is_read_once(ValueId value) const;
  // The live nodes that read the value as an input, once for each such input.
  std::vector<NodeId> readers_of(ValueId value) const { return readers().of(value); }
  bool is_output(ValueId value) const { return is_output_[static_cast<size_t>(value)]; }
  // How often the value is read; outputs and captures count too.
  int reads(ValueId value) const { return uses_[static_cast<size_t>(value)]; }
  // Input i of a node; kNone when absent.
  ValueId input(NodeId id, size_t i) const;
  // Of a node with two inputs, the one that is not `known`.
  ValueId other_input(NodeId id, ValueId known) const;

  bool is_float(ValueId value) const;
  // The dims of a tensor of known rank, else null.
  const Dims* dims(ValueId value) const;
  // Its shape when all dims are numbers.
  std::optional<Shape> shape(ValueId value) const;
  // Both have the same rank and dims in every run.
  bool same_dims(ValueId a, ValueId b) const;
  bool same_dims(const Dims& a, const Dims& b) const;

  // The constant, whatever holds its bytes; null when the value is none.
  const Initializer* constant(ValueId value) const;
  // Its bytes when they are at hand (small constants always are).
  const Tensor* bytes(ValueId value) const;
  // A float constant of one element (of rank up to `max_rank`).
  std::optional<float> scalar(ValueId value, size_t max_rank = 8) const;
  bool is_scalar(ValueId value, double number, double tolerance = 1e-6) const;
  // A whole constant of integers.
  std::optional<std::vector<int64_t>> ints(ValueId value) const;

  // The binary node `type` that makes `value` from a scalar constant (either side when `commutes`)
  // and another value, which it gives with the constant.
  struct Scaled {
    NodeId node = kNone;
    ValueId value = kNone;
    float scalar = 0;
  };
  std::optional<Scaled> with_scalar(ValueId value, std::string_view type, bool commutes) const;

  // A constant made now, one that another was made of, and one computed when a step reads it.
  ValueId add_constant(std::string name, Tensor tensor);
  ValueId add_constant(const Ref<Initializer>& initializer);
  // One of int64, of rank 1; kNone where there is no memory for it.
  ValueId add_ints(std::string name, const std::vector<int64_t>& values);
  ValueId add_recipe(std::string name, std::string_view domain, std::string_view type, int version,
                     Attributes attributes, const std::vector<ValueId>& constants, DType dtype,
                     const Shape& shape);
  // A float32 value between new nodes.
  ValueId add_value(std::string name, TypeInfo type);

  // Puts `fused` in the place of node `at`, whose outputs it gets unless it has its own.
  void replace(NodeId at, Node fused);
  // Takes a node away whose outputs another node is about to get.
  void remove(NodeId id);
  // Makes every reader of `value` read `by`, and drops what is then unread. Not for graph outputs.
  bool bypass(ValueId value, ValueId by);
  bool can_bypass(ValueId value) const;
  bool changed() const { return changed_; }

 private:
  const ReaderLists& readers() const;
  void count_reads(NodeId id, int step);
  void drop_unread(ValueId value);

  Graph& graph_;
  std::vector<int> uses_;  // graph outputs and captures count too
  // Live nodes that read a value as an input: made when the first is asked for, which most graphs
  // that a pass looks at give no reason to.
  mutable ReaderLists readers_;
  mutable bool has_readers_ = false;
  std::vector<bool> is_output_;
  bool changed_ = false;
};

// A function that FusedConv, FusedGemm and folio's FusedMatMul apply to their result, as the
// attributes `activation` and its parameters name it; none when the node is no such function.
struct FusableFunction {
  std::string name;
  std::vector<float> parameters;
};
std::optional<FusableFunction> fusable_function(const Graph& graph, const Node& node);
// Lets a Conv, or a Gemm, that passes make apply it.
void set_function(const FusableFunction& function, Node* node);

// From this version on the target of Reshape is an input.
inline constexpr int kReshapeVersion = 5;

// A node that passes make.
Node make_node(std::string name, std::string_view domain, std::string_view type, int version,
               std::vector<ValueId> inputs);

// The same operator of the same inputs, which makes nothing yet; it has no graphs.
Node operator_of(const Node& node);

// What the node makes of constants; `constant_of` gives that of each input that is there.
Recipe recipe_of(const Node& node, const std::function<Ref<Initializer>(ValueId)>& constant_of);

// Whether one of the graph's own nodes is of this type, in any domain.
bool has_operator(const Graph& graph, std::string_view type);

// For each value of a graph as it stands, how often it is read (outputs and captures count), the
// last node that has it as an input, and the one that makes it.
struct ValueLinks {
  explicit ValueLinks(const Graph& graph);

  std::vector<int> uses;
  std::vector<NodeId> readers;
  std::vector<NodeId> makers;
};

// Applies `fuse(Pattern&)` to a graph and those inside it; sets *changed and compacts. Graphs that
// do not fit(const Graph&) are passed by before anything is made for them.
template <typename Fuse, typename Fit>
void for_each_fitting_graph(Graph* graph, bool* changed, const Fuse& fuse, const Fit& fit) {
  for_inner_graphs_first(graph, [&](Graph& each) {
    if (!fit(each)) return;
    Pattern pattern(&each);
    fuse(pattern);
    if (!pattern.changed()) return;
    each.compact();
    *changed = true;
  });
}
// The same; graphs without an operator `needed` do not fit.
template <typename Fuse>
void for_each_graph(Graph* graph, bool* changed, const Fuse& fuse, std::string_view needed = "") {
  for_each_fitting_graph(graph, changed, fuse, [needed](const Graph& each) {
    return needed.empty() || has_operator(each, needed);
  });
}

// The values of a graph that stand for constants found beside it: one for each, of its name and
// type.
class ConstantValues {
 public:
  explicit ConstantValues(Graph* graph) : graph_(*graph) {}
  ValueId of(const Ref<Initializer>& constant);
  bool empty() const { return values_.empty(); }

 private:
  Graph& graph_;
  std::unordered_map<const Initializer*, ValueId> values_;
};
// A value as `half` is, but of float.
ValueId add_float_twin(Graph* graph, ValueId half);
// A Cast of `from`, which makes `to`, named as that is.
Node make_cast(const Graph& graph, int opset, ValueId from, ValueId to, DType type);
// Values that nothing reads are constants no more: none is named, looked for or computed.
void drop_unused_constants(Graph* graph);

}  // namespace folio
