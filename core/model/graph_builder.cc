#include "core/model/graph_builder.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <unordered_map>

#include "core/model/inline_functions.h"

namespace folio {
namespace {

// The names stand in the GraphDef, which outlives the map.
using Names = std::unordered_map<std::string_view, ValueId>;

struct Scope {
  Graph* graph;
  Names names;
  Scope* outer;
  int depth;
};

// What passes write onto nodes, for Folio's own kernels to read. No operator of other domains has
// attributes of these names: from a file, where unknown attributes mean nothing, they would count
// as if a pass had written them.
bool is_of_passes(const Node& node, std::string_view name) {
  if (std::string_view(node.domain).starts_with("folio")) return false;
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of({"half_weights", "keeps_finite", "planes", "winograd"})) return true;
  // com.microsoft's fused operators have these themselves, and one of ONNX's.
  return node.domain.empty() && node.op_type != "CausalConvWithState" &&
         is_one_of({"activation", "activation_params", "channels_last"});
}

class Builder {
 public:
  Builder(Model* model, bool initializers_overridable)
      : model_(model), initializers_overridable_(initializers_overridable) {}

  Status build(GraphDef def, Graph* graph, Scope* outer, int depth);

 private:
  TypeInfo type_of(const TypeDef& def, bool is_input, int depth = 0);
  Status declare(Scope* scope, const std::string& name, std::string_view what, ValueId* out);
  Status add_inputs(Scope* scope, const GraphDef& def);
  Status add_initializers(Scope* scope, GraphDef* def);
  Status add_initializer(Scope* scope, const std::string& name, InitializerDef* def,
                         bool may_be_input);
  Status add_nodes(Scope* scope, GraphDef* def);
  Status add_node(Scope* scope, NodeDef* def);
  Status add_constant(Scope* scope, const NodeDef& def);
  Status connect_node(Scope* scope, NodeDef* def, Node* node);
  Status add_outputs(Scope* scope, const GraphDef& def);
  Status sort(Graph* graph);
  ValueId resolve(Scope* scope, const std::string& name);

  Model* model_;
  bool initializers_overridable_;
};

Result<Tensor> constant_tensor(const NodeDef& def) {
  const Attributes attrs(def.attributes);
  if (def.attributes.size() != 1) {
    return invalid_graph("a Constant has ", def.attributes.size(), " attributes, expected 1");
  }
  const AttributeDef& a = def.attributes[0];
  const auto wrong = [&] {
    return invalid_graph("attribute '", a.name, "' of a Constant has the wrong type");
  };
  using Type = AttributeDef::Type;
  if (a.name == "value" || a.name == "sparse_value") {
    const Type expected = a.name == "value" ? Type::kTensor : Type::kSparseTensor;
    if (a.type != expected || a.tensors.empty()) return wrong();
    return a.tensors[0];
  }
  const bool is_list = a.name.size() > 1 && a.name.back() == 's';
  // Protobuf leaves out a field that holds its default: a single value may be absent.
  const auto make = [&](DType dtype, const auto& values) -> Result<Tensor> {
    using T = typename std::decay_t<decltype(values)>::value_type;
    if (!is_list && values.size() > 1) return wrong();
    FOLIO_TRY(Tensor t, allocate_tensor(
                            dtype, is_list ? Shape{static_cast<int64_t>(values.size())} : Shape()));
    if (!is_list && values.empty()) *t.data_mut<T>() = T{};
    std::copy(values.begin(), values.end(), t.data_mut<T>());
    return t;
  };
  if (a.name == "value_int" || a.name == "value_ints") {
    if (a.type != (is_list ? Type::kInts : Type::kInt)) return wrong();
    return make(DType::kInt64, a.ints);
  }
  if (a.name == "value_float" || a.name == "value_floats") {
    if (a.type != (is_list ? Type::kFloats : Type::kFloat)) return wrong();
    return make(DType::kFloat, a.floats);
  }
  if (a.name == "value_string" || a.name == "value_strings") {
    if (a.type != (is_list ? Type::kStrings : Type::kString)) return wrong();
    return make(DType::kString, a.strings);
  }
  return invalid_graph("a Constant has the unknown attribute '", a.name, "'");
}

TypeInfo Builder::type_of(const TypeDef& def, bool is_input, int depth) {
  TypeInfo type;
  type.kind = def.kind;
  type.dtype = def.dtype;
  if (def.element && depth < kMaxTypeDepth) {
    type.element = std::make_shared<const TypeInfo>(type_of(*def.element, false, depth + 1));
  }
  if (!def.has_shape) return type;
  Dims dims;
  for (const DimDef& dim : def.dims) {
    if (dim.kind == DimDef::Kind::kValue && dim.value >= 0) {
      dims.push_back(Dim::of(dim.value));
    } else if (dim.kind == DimDef::Kind::kParam && !dim.param.empty()) {
      dims.push_back(model_->dims.named(dim.param));
    } else {
      dims.push_back(is_input ? model_->dims.anonymous() : Dim::unknown());
    }
  }
  type.dims = std::move(dims);
  return type;
}

Status Builder::declare(Scope* scope, const std::string& name, std::string_view what,
                        ValueId* out) {
  const auto [it, added] = scope->names.try_emplace(name, kNone);
  if (!added) return invalid_graph(what, " '", name, "': a value of this name exists already");
  it->second = *out = scope->graph->add_value(name);
  return Status::ok();
}

ValueId Builder::resolve(Scope* scope, const std::string& name) {
  if (const auto it = scope->names.find(name); it != scope->names.end()) return it->second;
  if (!scope->outer) return kNone;
  const ValueId outer = resolve(scope->outer, name);
  return outer == kNone ? kNone : scope->graph->capture(outer);
}

Status Builder::add_inputs(Scope* scope, const GraphDef& def) {
  for (const ValueDef& input : def.inputs) {
    if (input.name.empty()) return invalid_graph("a graph input has no name");
    ValueId id = kNone;
    FOLIO_RETURN_IF_ERROR(declare(scope, input.name, "input", &id));
    GraphValue& value = scope->graph->value(id);
    value.is_input = true;
    value.type = value.declared = type_of(input.type, true);
    if (value.type.has_rank() && value.type.rank() > kMaxRank) {
      return not_implemented("input '", input.name, "' has ", value.type.rank(), " dims; at most ",
                             kMaxRank, " are supported");
    }
    scope->graph->inputs.push_back(id);
  }
  return Status::ok();
}

// A default must be what its input may be: runs plan with the declared type.
Status check_default(const GraphValue& value, const Tensor& tensor) {
  const TypeInfo& type = value.declared;
  if (type.kind == TypeInfo::Kind::kUnknown) return Status::ok();
  bool fits = type.is_tensor() && type.dtype == tensor.dtype();
  if (fits && type.dims) {
    fits = type.rank() == tensor.rank();
    for (int i = 0; fits && i < tensor.rank(); ++i) {
      const Dim dim = (*type.dims)[static_cast<size_t>(i)];
      fits = !dim.is_value() || dim.value == tensor.dim(i);
    }
  }
  if (fits) return Status::ok();
  return invalid_graph("initializer '", value.name, "' is ", dtype_name(tensor.dtype()), " ",
                       tensor.shape().to_string(), ", the input of this name is declared as ",
                       type_to_string(type));
}

// `name` stands in the GraphDef.
Status Builder::add_initializer(Scope* scope, const std::string& name, InitializerDef* def,
                                bool may_be_input) {
  Graph& graph = *scope->graph;
  ValueId id = kNone;
  if (const auto it = scope->names.find(name); it != scope->names.end()) {
    id = it->second;
    GraphValue& value = graph.value(id);
    if (!may_be_input || !value.is_input || value.initializer) {
      return invalid_graph("initializer '", name, "': a value of this name exists already");
    }
    if (initializers_overridable_ && !graph.parent) {
      FOLIO_RETURN_IF_ERROR(check_default(value, def->tensor));
      graph.overridable.push_back(id);
    } else {
      value.is_input = false;
    }
  } else {
    FOLIO_RETURN_IF_ERROR(declare(scope, name, "initializer", &id));
  }
  auto initializer = make_ref<Initializer>();
  initializer->name = name;
  initializer->dtype = def->tensor.dtype();
  initializer->shape = def->tensor.shape();
  initializer->tensor = std::move(def->tensor);
  initializer->source = std::move(def->source);
  initializer->offset = def->offset;
  Dims dims;
  for (const int64_t dim : initializer->shape.dims()) dims.push_back(Dim::of(dim));
  GraphValue& value = graph.value(id);
  if (!value.is_input) value.type = TypeInfo::tensor(initializer->dtype, std::move(dims));
  value.initializer = std::move(initializer);
  return Status::ok();
}

Status Builder::add_initializers(Scope* scope, GraphDef* def) {
  for (InitializerDef& initializer : def->initializers) {
    FOLIO_RETURN_IF_ERROR(
        add_initializer(scope, initializer.name, &initializer, /*may_be_input=*/true));
  }
  // In one pass: old files list every weight as an input.
  Graph& graph = *scope->graph;
  std::erase_if(graph.inputs, [&](ValueId id) { return graph.value(id).initializer; });
  return Status::ok();
}

Status Builder::add_constant(Scope* scope, const NodeDef& def) {
  if (def.outputs.size() != 1 || def.outputs[0].empty()) {
    return invalid_graph("node '", def.name, "' (Constant) must have one output");
  }
  auto tensor = constant_tensor(def);
  if (!tensor.is_ok()) {
    return std::move(tensor).take_status().with_context(cat("node '", def.name, "'"));
  }
  InitializerDef initializer;
  initializer.tensor = std::move(tensor).take();
  auto status = add_initializer(scope, def.outputs[0], &initializer, /*may_be_input=*/false);
  return std::move(status).with_context(cat("node '", def.name, "' (Constant)"));
}

bool is_constant(const NodeDef& node) { return node.op_type == "Constant" && node.domain.empty(); }

// Declares the outputs of all nodes first, so that order in the file does not matter.
Status Builder::add_nodes(Scope* scope, GraphDef* def) {
  Graph& graph = *scope->graph;
  graph.nodes.reserve(def->nodes.size());
  for (const NodeDef& node : def->nodes) {
    if (is_constant(node)) FOLIO_RETURN_IF_ERROR(add_constant(scope, node));
  }
  for (NodeDef& node : def->nodes) {
    if (!is_constant(node)) FOLIO_RETURN_IF_ERROR(add_node(scope, &node));
  }
  // Subgraphs capture values of this graph but never add nodes to it: a node stays put.
  auto added = graph.nodes.begin();
  for (NodeDef& node : def->nodes) {
    if (!is_constant(node)) FOLIO_RETURN_IF_ERROR(connect_node(scope, &node, &*added++));
  }
  return Status::ok();
}

// Copies the operator's name, by which a Constant is told; the rest is left for connect_node.
Status Builder::add_node(Scope* scope, NodeDef* def) {
  Graph& graph = *scope->graph;
  Node node;
  // Exporters may leave nodes unnamed; messages still need to point at one.
  node.name = def->name.empty() && !def->outputs.empty() ? def->outputs[0] : std::move(def->name);
  node.domain = def->domain;
  node.op_type = def->op_type;
  // ONNX Runtime writes and reads models that use its own operators without importing them.
  const int assumed = node.domain == "com.microsoft" ? 1 : 0;
  const int imported = std::max(model_->opset_version(node.domain), assumed);
  node.version = def->since_version != 0 ? def->since_version : imported;
  if (node.version == 0) {
    return invalid_graph(node.label(), ": the model imports no opset for domain '", node.domain,
                         "'");
  }
  node.outputs.reserve(def->outputs.size());
  for (const std::string& output : def->outputs) {
    ValueId id = kNone;
    if (!output.empty()) {
      auto status = declare(scope, output, "output", &id);
      if (!status.is_ok()) return std::move(status).with_context(node.label());
      graph.value(id).producer = static_cast<NodeId>(graph.nodes.size());
    }
    node.outputs.push_back(id);
  }
  graph.nodes.push_back(std::move(node));
  return Status::ok();
}

Status Builder::connect_node(Scope* scope, NodeDef* def, Node* node) {
  node->inputs.reserve(def->inputs.size());
  for (const std::string& input : def->inputs) {
    const ValueId id = input.empty() ? kNone : resolve(scope, input);
    if (!input.empty() && id == kNone) {
      return invalid_graph(node->label(), ": input '", input,
                           "' is produced by no node, input or initializer");
    }
    node->inputs.push_back(id);
  }
  for (AttributeDef& attribute : def->attributes) {
    if (!attribute.ref_attr_name.empty()) {
      return invalid_graph(node->label(), ": attribute '", attribute.name, "' refers to '",
                           attribute.ref_attr_name, "' of a function, but stands in none");
    }
    for (const auto& graph_def : attribute.graphs) {
      auto subgraph = std::make_unique<Graph>();
      subgraph->parent = scope->graph;
      auto status = build(std::move(*graph_def), subgraph.get(), scope, scope->depth + 1);
      if (!status.is_ok()) return std::move(status).with_context(node->label());
      node->subgraph_names.push_back(attribute.name);
      node->subgraphs.push_back(std::move(subgraph));
    }
  }
  std::erase_if(def->attributes, [](const AttributeDef& each) { return !each.graphs.empty(); });
  std::erase_if(def->attributes,
                [&](const AttributeDef& each) { return is_of_passes(*node, each.name); });
  node->attributes = Attributes(std::move(def->attributes));
  return Status::ok();
}

Status Builder::add_outputs(Scope* scope, const GraphDef& def) {
  for (const ValueDef& output : def.outputs) {
    const ValueId id = resolve(scope, output.name);
    if (id == kNone) {
      return invalid_graph("graph output '", output.name,
                           "' is produced by no node, input or initializer");
    }
    GraphValue& value = scope->graph->value(id);
    if (value.declared.kind == TypeInfo::Kind::kUnknown) {
      value.declared = type_of(output.type, false);
    }
    scope->graph->outputs.push_back(id);
  }
  return Status::ok();
}

// Every node stands after those that make what it reads.
bool is_sorted(const Graph& graph) {
  bool sorted = true;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Graph::for_each_read(graph.nodes[i], [&](ValueId read) {
      sorted = sorted && graph.value(read).producer < static_cast<NodeId>(i);
    });
  }
  return sorted;
}

// Kahn's algorithm, keeping the file's order where it is free.
Status Builder::sort(Graph* graph) {
  const size_t count = graph->nodes.size();
  if (is_sorted(*graph)) return Status::ok();
  std::vector<int> waits(count, 0);
  std::vector<std::vector<NodeId>> readers(count);
  for (size_t i = 0; i < count; ++i) {
    Graph::for_each_read(graph->nodes[i], [&](ValueId read) {
      const NodeId producer = graph->value(read).producer;
      if (producer == kNone) return;
      readers[static_cast<size_t>(producer)].push_back(static_cast<NodeId>(i));
      ++waits[i];
    });
  }
  std::vector<size_t> heap;  // a min-heap of ready nodes by position
  const auto later = std::greater<>();
  for (size_t i = 0; i < count; ++i) {
    if (waits[i] == 0) heap.push_back(i);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  std::vector<Node> sorted;
  sorted.reserve(count);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const size_t at = heap.back();
    heap.pop_back();
    for (const NodeId reader : readers[at]) {
      if (--waits[static_cast<size_t>(reader)] > 0) continue;
      heap.push_back(static_cast<size_t>(reader));
      std::push_heap(heap.begin(), heap.end(), later);
    }
    sorted.push_back(std::move(graph->nodes[at]));
  }
  if (sorted.size() != count) {
    const auto stuck = std::find_if(waits.begin(), waits.end(), [](int w) { return w > 0; });
    const Node& node = graph->nodes[static_cast<size_t>(stuck - waits.begin())];
    return invalid_graph(node.label(), ": the graph has a cycle through this node");
  }
  graph->nodes = std::move(sorted);
  graph->compact();
  return Status::ok();
}

Status Builder::build(GraphDef def, Graph* graph, Scope* outer, int depth) {
  if (depth > kMaxSubgraphDepth) {
    return invalid_graph("subgraphs are nested deeper than ", kMaxSubgraphDepth);
  }
  Scope scope{graph, {}, outer, depth};
  graph->name = def.name;
  // Most nodes have one output.
  const size_t values = def.inputs.size() + def.initializers.size() + def.nodes.size();
  scope.names.reserve(values);
  graph->values.reserve(2 * values);  // passes add some; memory that is not written costs nothing
  FOLIO_RETURN_IF_ERROR(add_inputs(&scope, def));
  FOLIO_RETURN_IF_ERROR(add_initializers(&scope, &def));
  FOLIO_RETURN_IF_ERROR(add_nodes(&scope, &def));
  FOLIO_RETURN_IF_ERROR(add_outputs(&scope, def));
  return sort(graph);
}

Status check_opsets(const std::vector<OpsetImport>& opsets) {
  for (const OpsetImport& import : opsets) {
    if (import.version < 1 || import.version > (1 << 20)) {
      return invalid_graph("opset import '", import.domain, "' has version ", import.version);
    }
  }
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Model>> build_model(ModelDef def, const FreeDims& free_dims,
                                           const std::function<bool()>& goes_on) {
  FOLIO_RETURN_IF_ERROR(check_opsets(def.opsets));
  for (const FunctionDef& function : def.functions) {
    FOLIO_RETURN_IF_ERROR(
        check_opsets(function.opsets).with_context(cat("function '", function.name, "'")));
  }
  FOLIO_RETURN_IF_ERROR(inline_functions(&def, goes_on));
  auto model = std::make_unique<Model>();
  for (const auto& [name, value] : free_dims) {
    if (value < 0) return invalid_argument("free dimension '", name, "' is set to ", value);
    model->dims.fix(name, value);
  }
  static_cast<ModelHeader&>(*model) = static_cast<ModelHeader&&>(def);
  // ONNX IR: before version 4 every initializer had to be listed as an input and was constant.
  Builder builder(model.get(), model->ir_version >= 4);
  FOLIO_RETURN_IF_ERROR(builder.build(std::move(def.graph), &model->graph, nullptr, 0));
  return model;
}

}  // namespace folio
