#include "core/passes/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/ops/op_registry.h"

namespace folio {

namespace {

// Before opset 7 these broadcast by attributes, which no pass looks at.
bool broadcasts_by_attribute(const Node& node) {
  return node.domain.empty() && node.version < 7 && node.attributes.has("broadcast");
}

}  // namespace

bool is_elementwise(const Node& node) {
  const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
  return def && def->elementwise;
}

void ReaderLists::add(ValueId value, NodeId node) {
  int32_t& first = first_[static_cast<size_t>(value)];
  reads_.push_back({node, first});
  first = static_cast<int32_t>(reads_.size() - 1);
}

void ReaderLists::remove(ValueId value, NodeId node) {
  int32_t* link = &first_[static_cast<size_t>(value)];
  while (*link != kNone) {
    Read& read = reads_[static_cast<size_t>(*link)];
    if (read.node == node) {
      *link = read.next;
      return;
    }
    link = &read.next;
  }
}

std::vector<NodeId> ReaderLists::of(ValueId value) const {
  std::vector<NodeId> nodes;
  for (const Read* read = at(first_[static_cast<size_t>(value)]); read; read = at(read->next)) {
    nodes.push_back(read->node);
  }
  return nodes;
}

NodeId ReaderLists::only(ValueId value) const {
  const Read* read = at(first_[static_cast<size_t>(value)]);
  return read && read->next == kNone ? read->node : kNone;
}

ValueLinks::ValueLinks(const Graph& graph)
    : uses(graph.use_counts()),
      readers(graph.values.size(), kNone),
      makers(graph.values.size(), kNone) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].dead) continue;
    for (const ValueId input : graph.nodes[i].inputs) {
      if (input != kNone) readers[static_cast<size_t>(input)] = static_cast<NodeId>(i);
    }
    for (const ValueId output : graph.nodes[i].outputs) {
      if (output != kNone) makers[static_cast<size_t>(output)] = static_cast<NodeId>(i);
    }
  }
}

Pattern::Pattern(Graph* graph) : graph_(*graph), uses_(graph->use_counts()) {
  is_output_.resize(graph->values.size());
  for (const ValueId output : graph->outputs) is_output_[static_cast<size_t>(output)] = true;
  for (NodeId i = 0; i < count(); ++i) {
    if (node(i).dead) continue;
    for (const ValueId output : node(i).outputs) {
      if (output != kNone) graph->value(output).producer = i;
    }
  }
}

const ReaderLists& Pattern::readers() const {
  if (has_readers_) return readers_;
  has_readers_ = true;
  readers_.resize(graph_.values.size());
  readers_.reserve(2 * graph_.nodes.size());
  // The first nodes stand first, as passes go from the first on: a constant that all nodes of a
  // chain read is found at once for each of them.
  for (NodeId i = count() - 1; i >= 0; --i) {
    if (node(i).dead) continue;
    for (const ValueId read : node(i).inputs) {
      if (read != kNone) readers_.add(read, i);
    }
  }
  return readers_;
}

bool Pattern::is(NodeId id, std::string_view type, std::string_view domain) const {
  if (id == kNone) return false;
  const Node& at = node(id);
  return !at.dead && at.op_type == type && at.domain == domain && !broadcasts_by_attribute(at);
}

NodeId Pattern::producer(ValueId value) const {
  if (value == kNone) return kNone;
  const NodeId id = graph_.value(value).producer;
  return id == kNone || node(id).dead ? kNone : id;
}

NodeId Pattern::made_by(ValueId value, std::string_view type, std::string_view domain) const {
  const NodeId id = producer(value);
  const bool found = is(id, type, domain) && node(id).outputs[0] == value;
  return found ? id : kNone;
}

bool Pattern::is_read_once(ValueId value) const {
  return value != kNone && uses_[static_cast<size_t>(value)] == 1;
}

NodeId Pattern::sole_reader(ValueId value) const {
  if (!is_read_once(value)) return kNone;
  const NodeId reader = readers().only(value);
  return reader != kNone && node(reader).subgraphs.empty() ? reader : kNone;
}

ValueId Pattern::input(NodeId id, size_t i) const {
  const Node& at = node(id);
  return i < at.inputs.size() ? at.inputs[i] : kNone;
}

ValueId Pattern::other_input(NodeId id, ValueId known) const {
  const Node& at = node(id);
  if (at.inputs.size() != 2) return kNone;
  return at.inputs[0] == known ? at.inputs[1] : at.inputs[0];
}

bool Pattern::is_float(ValueId value) const {
  if (value == kNone) return false;
  const TypeInfo& type = graph_.value(value).type;
  return type.is_tensor() && type.dtype == DType::kFloat;
}

const Dims* Pattern::dims(ValueId value) const {
  if (value == kNone) return nullptr;
  const TypeInfo& type = graph_.value(value).type;
  return type.is_tensor() && type.dims ? &*type.dims : nullptr;
}

std::optional<Shape> Pattern::shape(ValueId value) const {
  if (!dims(value)) return std::nullopt;
  return graph_.value(value).type.static_shape();
}

bool Pattern::same_dims(ValueId a, ValueId b) const {
  const Dims* left = dims(a);
  const Dims* right = dims(b);
  return left && right && same_dims(*left, *right);
}

bool Pattern::same_dims(const Dims& a, const Dims& b) const {
  return a == b && std::all_of(a.begin(), a.end(), [&](Dim dim) {
           return dim.is_value() || (dim.is_symbol() && !graph_.parent);
         });
}

const Initializer* Pattern::constant(ValueId value) const {
  const GraphValue* found = value == kNone ? nullptr : graph_.constant_value(value);
  return found ? found->initializer.get() : nullptr;
}

const Tensor* Pattern::bytes(ValueId value) const {
  const Initializer* found = constant(value);
  return found && found->tensor ? &*found->tensor : nullptr;
}

std::optional<float> Pattern::scalar(ValueId value, size_t max_rank) const {
  const Tensor* tensor = bytes(value);
  if (!tensor || tensor->dtype() != DType::kFloat || tensor->count() != 1 ||
      static_cast<size_t>(tensor->rank()) > max_rank) {
    return std::nullopt;
  }
  float number = 0;
  std::memcpy(&number, tensor->raw(), sizeof number);
  return number;
}

bool Pattern::is_scalar(ValueId value, double number, double tolerance) const {
  const auto found = scalar(value);
  return found && std::abs(static_cast<double>(*found) - number) <= tolerance * std::abs(number);
}

std::optional<std::vector<int64_t>> Pattern::ints(ValueId value) const {
  const Tensor* tensor = bytes(value);
  if (!tensor || tensor->rank() > 1) return std::nullopt;
  std::vector<int64_t> out(static_cast<size_t>(tensor->count()));
  if (tensor->dtype() == DType::kInt64) {
    if (!out.empty()) std::memcpy(out.data(), tensor->raw(), out.size() * sizeof(int64_t));
  } else if (tensor->dtype() == DType::kInt32) {
    for (size_t i = 0; i < out.size(); ++i) {
      int32_t narrow = 0;
      std::memcpy(&narrow, tensor->raw() + i * sizeof narrow, sizeof narrow);
      out[i] = narrow;
    }
  } else {
    return std::nullopt;
  }
  return out;
}

std::optional<Pattern::Scaled> Pattern::with_scalar(ValueId value, std::string_view type,
                                                    bool commutes) const {
  const NodeId id = made_by(value, type);
  if (id == kNone || node(id).inputs.size() != 2) return std::nullopt;
  const Node& at = node(id);
  for (size_t i = commutes ? 0 : 1; i < 2; ++i) {
    const ValueId source = at.inputs[1 - i];
    const Dims* into = dims(source);
    // A constant of higher rank would give the result its rank.
    const auto found = into ? scalar(at.inputs[i], into->size()) : std::nullopt;
    if (found && is_float(source)) return Scaled{id, source, *found};
  }
  return std::nullopt;
}

ValueId Pattern::add_value(std::string name, TypeInfo type) {
  const ValueId id = graph_.add_value(std::move(name));
  graph_.value(id).type = std::move(type);
  uses_.resize(graph_.values.size(), 0);
  if (has_readers_) readers_.resize(graph_.values.size());
  is_output_.resize(graph_.values.size());
  return id;
}

namespace {

TypeInfo type_of(DType dtype, const Shape& shape) {
  Dims dims;
  for (const int64_t dim : shape.dims()) dims.push_back(Dim::of(dim));
  return TypeInfo::tensor(dtype, std::move(dims));
}

}  // namespace

ValueId Pattern::add_constant(std::string name, Tensor tensor) {
  const ValueId id = add_value(name, type_of(tensor.dtype(), tensor.shape()));
  auto initializer = make_ref<Initializer>();
  initializer->name = std::move(name);
  initializer->dtype = tensor.dtype();
  initializer->shape = tensor.shape();
  initializer->tensor = std::move(tensor);
  graph_.value(id).initializer = std::move(initializer);
  return id;
}

ValueId Pattern::add_constant(const Ref<Initializer>& initializer) {
  const ValueId id = add_value(initializer->name, type_of(initializer->dtype, initializer->shape));
  graph_.value(id).initializer = initializer;
  return id;
}

ValueId Pattern::add_ints(std::string name, const std::vector<int64_t>& values) {
  auto made = allocate_tensor(DType::kInt64, Shape{static_cast<int64_t>(values.size())});
  if (!made.is_ok()) return kNone;
  Tensor tensor = std::move(made).take();
  std::copy(values.begin(), values.end(), tensor.data_mut<int64_t>());
  return add_constant(std::move(name), std::move(tensor));
}

ValueId Pattern::add_recipe(std::string name, std::string_view domain, std::string_view type,
                            int version, Attributes attributes,
                            const std::vector<ValueId>& constants, DType dtype,
                            const Shape& shape) {
  const ValueId id = add_value(name, type_of(dtype, shape));
  auto initializer = make_ref<Initializer>();
  initializer->name = name;
  initializer->dtype = dtype;
  initializer->shape = shape;
  initializer->recipe = std::make_unique<Recipe>();
  Recipe& recipe = *initializer->recipe;
  recipe.domain = domain;
  recipe.op_type = type;
  recipe.node_name = std::move(name);
  recipe.version = version;
  recipe.attributes = std::move(attributes);
  for (const ValueId input : constants) {
    recipe.inputs.push_back(graph_.constant_value(input)->initializer);
  }
  graph_.value(id).initializer = std::move(initializer);
  return id;
}

void Pattern::count_reads(NodeId id, int step) {
  Graph::for_each_read(node(id), [&](ValueId read) { uses_[static_cast<size_t>(read)] += step; });
  for (const ValueId read : node(id).inputs) {
    if (read == kNone || !has_readers_) continue;
    if (step > 0) {
      readers_.add(read, id);
    } else {
      readers_.remove(read, id);
    }
  }
}

void Pattern::drop_unread(ValueId value) {
  std::vector<ValueId> stack{value};
  while (!stack.empty()) {
    const NodeId id = producer(stack.back());
    stack.pop_back();
    if (id == kNone || !node(id).subgraphs.empty()) continue;
    const auto& outputs = node(id).outputs;
    const bool is_read = std::any_of(outputs.begin(), outputs.end(), [&](ValueId output) {
      return output != kNone && uses_[static_cast<size_t>(output)] > 0;
    });
    if (is_read) continue;
    count_reads(id, -1);
    node(id).dead = true;
    for (const ValueId read : node(id).inputs) {
      if (read != kNone && uses_[static_cast<size_t>(read)] == 0) stack.push_back(read);
    }
  }
}

void Pattern::replace(NodeId at, Node fused) {
  const std::vector<ValueId> before = node(at).inputs;
  count_reads(at, -1);
  if (fused.outputs.empty()) fused.outputs = node(at).outputs;
  node(at) = std::move(fused);
  count_reads(at, +1);
  for (const ValueId output : node(at).outputs) {
    if (output != kNone) graph_.value(output).producer = at;
  }
  for (const ValueId read : before) {
    if (read != kNone && uses_[static_cast<size_t>(read)] == 0) drop_unread(read);
  }
  changed_ = true;
}

void Pattern::remove(NodeId id) {
  count_reads(id, -1);
  node(id).dead = true;
  changed_ = true;
}

bool Pattern::can_bypass(ValueId value) const {
  const auto at = static_cast<size_t>(value);
  // Subgraphs would have to capture what comes instead: what they read stays.
  return !is_output_[at] && static_cast<size_t>(uses_[at]) == readers().of(value).size();
}

bool Pattern::bypass(ValueId value, ValueId by) {
  if (!can_bypass(value)) return false;
  for (const NodeId id : readers().of(value)) {
    count_reads(id, -1);
    for (ValueId& input : node(id).inputs) {
      if (input == value) input = by;
    }
    count_reads(id, +1);
  }
  drop_unread(value);
  changed_ = true;
  return true;
}

namespace {

float float_or_nan(const Attributes& attrs, std::string_view name, float otherwise) {
  const auto value = attrs.get_float(name, otherwise);
  return value.is_ok() ? value.value() : std::nanf("");
}

// Input i of Clip; NaN when it is only known at run.
float bound_of(const Graph& graph, const Node& clip, size_t i, float otherwise) {
  if (i >= clip.inputs.size() || clip.inputs[i] == kNone) return otherwise;
  const GraphValue* value = graph.constant_value(clip.inputs[i]);
  if (!value || !value->initializer->tensor) return std::nanf("");
  const Tensor& tensor = *value->initializer->tensor;
  if (tensor.dtype() != DType::kFloat || tensor.count() != 1) return std::nanf("");
  std::memcpy(&otherwise, tensor.raw(), sizeof otherwise);
  return otherwise;
}

std::optional<FusableFunction> microsoft_function(const Node& node) {
  if (node.op_type == "Gelu") return FusableFunction{"Gelu", {}};
  if (node.op_type == "QuickGelu") {
    return FusableFunction{"Swish", {float_or_nan(node.attributes, "alpha", 1.702F)}};
  }
  const bool has_bias = node.inputs.size() > 1 && node.inputs[1] != kNone;
  if (node.op_type == "FastGelu" && !has_bias) return FusableFunction{"GeluTanh", {}};
  return std::nullopt;
}

std::optional<FusableFunction> onnx_function(const Graph& graph, const Node& node) {
  const Attributes& attrs = node.attributes;
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::string& type = node.op_type;
  if (type == "Relu" || type == "Sigmoid" || type == "Tanh" || type == "HardSwish") {
    return FusableFunction{type, {}};
  }
  if (type == "LeakyRelu") return FusableFunction{type, {float_or_nan(attrs, "alpha", 0.01F)}};
  if (type == "Swish") return FusableFunction{type, {float_or_nan(attrs, "alpha", 1.0F)}};
  if (type == "HardSigmoid") {
    return FusableFunction{type,
                           {float_or_nan(attrs, "alpha", 0.2F), float_or_nan(attrs, "beta", 0.5F)}};
  }
  if (type == "Clip" && node.version < 11) {
    return FusableFunction{type,
                           {float_or_nan(attrs, "min", -kMost), float_or_nan(attrs, "max", kMost)}};
  }
  if (type == "Clip") {
    return FusableFunction{type,
                           {bound_of(graph, node, 1, -kMost), bound_of(graph, node, 2, kMost)}};
  }
  if (type == "Gelu") {
    const auto form = attrs.get_string("approximate", "none");
    if (form.is_ok() && form.value() == "none") return FusableFunction{"Gelu", {}};
    if (form.is_ok() && form.value() == "tanh") return FusableFunction{"GeluTanh", {}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<FusableFunction> fusable_function(const Graph& graph, const Node& node) {
  std::optional<FusableFunction> found;
  if (node.domain.empty()) found = onnx_function(graph, node);
  if (node.domain == "com.microsoft") found = microsoft_function(node);
  // What is only known at run, or wrong: the node itself says so.
  const auto is_nan = [](float x) { return std::isnan(x); };
  if (found && std::any_of(found->parameters.begin(), found->parameters.end(), is_nan)) {
    return std::nullopt;
  }
  return found;
}

void set_function(const FusableFunction& function, Node* node) {
  const std::vector<float>& parameters = function.parameters;
  node->attributes.set(text_attribute("activation", function.name));
  if (parameters.empty()) return;
  if (node->op_type == "Gemm") {
    node->attributes.set(float_attribute("activation_alpha", parameters[0]));
    if (parameters.size() > 1) {
      node->attributes.set(float_attribute("activation_beta", parameters[1]));
    }
    return;
  }
  AttributeDef list;
  list.name = "activation_params";
  list.type = AttributeDef::Type::kFloats;
  list.floats = parameters;
  node->attributes.set(std::move(list));
}

Node make_node(std::string name, std::string_view domain, std::string_view type, int version,
               std::vector<ValueId> inputs) {
  Node node;
  node.name = std::move(name);
  node.domain = domain;
  node.op_type = type;
  node.version = version;
  node.inputs = std::move(inputs);
  return node;
}

Node operator_of(const Node& node) {
  Node same = make_node(node.name, node.domain, node.op_type, node.version, node.inputs);
  same.attributes = node.attributes;
  return same;
}

Recipe recipe_of(const Node& node, const std::function<Ref<Initializer>(ValueId)>& constant_of) {
  Recipe recipe;
  recipe.domain = node.domain;
  recipe.op_type = node.op_type;
  recipe.node_name = node.name;
  recipe.version = node.version;
  recipe.attributes = node.attributes;
  recipe.output_count = static_cast<int>(node.outputs.size());
  for (const ValueId input : node.inputs) {
    recipe.inputs.push_back(input == kNone ? Ref<Initializer>() : constant_of(input));
  }
  return recipe;
}

bool has_operator(const Graph& graph, std::string_view type) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return node.op_type == type; });
}

ValueId ConstantValues::of(const Ref<Initializer>& constant) {
  const auto [known, is_new] = values_.try_emplace(constant.get(), kNone);
  if (is_new) {
    const ValueId id = graph_.add_value(constant->name);
    graph_.value(id).type = type_of(constant->dtype, constant->shape);
    graph_.value(id).initializer = constant;
    known->second = id;
  }
  return known->second;
}

ValueId add_float_twin(Graph* graph, ValueId half) {
  TypeInfo type = graph->value(half).type;
  type.dtype = DType::kFloat;
  const ValueId id = graph->add_value(graph->value(half).name + "/float");
  graph->value(id).type = std::move(type);
  return id;
}

Node make_cast(const Graph& graph, int opset, ValueId from, ValueId to, DType type) {
  Node cast = make_node(graph.value(to).name, "", "Cast", opset, {from});
  cast.attributes.set(int_attribute("to", static_cast<int64_t>(type)));
  cast.outputs = {to};
  return cast;
}

void drop_unused_constants(Graph* graph) {
  const std::vector<int> uses = graph->use_counts();
  for (size_t i = 0; i < graph->values.size(); ++i) {
    GraphValue& value = graph->values[i];
    if (uses[i] == 0 && value.is_constant()) value.initializer = nullptr;
  }
}

}  // namespace folio
