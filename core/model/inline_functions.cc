#include "core/model/inline_functions.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/utf8.h"

namespace folio {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;

// What inlining may add to a model. A few bytes of a hostile file can call functions that call
// functions, or hand one long attribute to thousands of nodes.
constexpr size_t kMaxInlinedBytes = size_t{1} << 30;
constexpr size_t kBytesPerAsk = size_t{1} << 20;  // some milliseconds
constexpr std::string_view kBase = "__fn";
constexpr size_t kMaxPrefixName = 64;  // of a function's name, in front of each of its nodes' names

size_t bytes_of(const AttributeDef& attribute) {
  size_t bytes = sizeof(attribute) + attribute.name.size();
  bytes += attribute.floats.size() * sizeof(float) + attribute.ints.size() * sizeof(int64_t);
  for (const std::string& text : attribute.strings) bytes += sizeof(text) + text.size();
  bytes += attribute.tensors.size() * sizeof(Tensor) + attribute.types.size() * sizeof(TypeDef);
  return bytes;
}

size_t bytes_of(const NodeDef& node) {
  size_t bytes = sizeof(node) + node.name.size() + node.domain.size() + node.op_type.size();
  for (const std::string& name : node.inputs) bytes += sizeof(name) + name.size();
  for (const std::string& name : node.outputs) bytes += sizeof(name) + name.size();
  return bytes;
}

class Inliner {
 public:
  Inliner(ModelDef* def, const std::function<bool()>& goes_on) : def_(def), goes_on_(goes_on) {}

  Status run() {
    for (const FunctionDef& function : def_->functions) {
      const Key key{function.domain, function.name, function.overload};
      if (!functions_.try_emplace(key, &function).second) {
        return invalid_graph("function '", function.name, "' is defined twice");
      }
    }
    choose_base();
    return expand_graph(&def_->graph, 0);
  }

 private:
  // One call: how names and attributes of the body become names and values of the caller.
  struct Call {
    std::map<std::string, std::string> names;
    std::string prefix;
    const NodeDef* node = nullptr;
    const FunctionDef* function = nullptr;
  };

  // The model may have names that look like those made here, "__fn0_...": then more underscores
  // stand before the number, as many as none of its names has.
  void choose_base() {
    std::set<size_t> taken;
    note_names(def_->graph, 0, &taken);
    while (taken.count(base_.size()) > 0) base_ += '_';
  }

  static void note_name(const std::string& name, std::set<size_t>* taken) {
    if (name.rfind(kBase, 0) != 0) return;
    taken->insert(std::min(name.find_first_not_of('_', kBase.size()), name.size()));
  }

  // Deeper ones are refused when they are expanded.
  static void note_names(const GraphDef& graph, int depth, std::set<size_t>* taken) {
    if (depth > kMaxSubgraphDepth) return;
    for (const ValueDef& input : graph.inputs) note_name(input.name, taken);
    for (const InitializerDef& each : graph.initializers) note_name(each.name, taken);
    for (const NodeDef& node : graph.nodes) {
      for (const std::string& output : node.outputs) note_name(output, taken);
      for (const AttributeDef& attribute : node.attributes) {
        for (const auto& inner : attribute.graphs) note_names(*inner, depth + 1, taken);
      }
    }
  }

  // Counts what a copy adds before it is made, for a call of `function`.
  Status charge(size_t bytes, const FunctionDef& function) {
    bytes_ += bytes;
    if (bytes_ > kMaxInlinedBytes) {
      return invalid_graph("inlining functions adds more than ", kMaxInlinedBytes,
                           " bytes of nodes and attributes, the last of them for function '",
                           utf8_shortened(function.name, 200), "'");
    }
    if (bytes_ < ask_at_) return Status::ok();
    ask_at_ = bytes_ + kBytesPerAsk;
    if (!goes_on_ || goes_on_()) return Status::ok();
    return error(Code::kModelLoadCancelled, "loading was cancelled");
  }

  // `depth` counts both calls and subgraphs: each costs stack.
  Status expand_graph(GraphDef* graph, int depth) {
    if (depth > kMaxSubgraphDepth) {
      return invalid_graph("function calls and subgraphs are nested deeper than ",
                           kMaxSubgraphDepth);
    }
    std::vector<NodeDef> out;
    for (NodeDef& node : graph->nodes) {
      FOLIO_RETURN_IF_ERROR(expand_node(std::move(node), depth, &out));
    }
    graph->nodes = std::move(out);
    return Status::ok();
  }

  Status expand_node(NodeDef node, int depth, std::vector<NodeDef>* out) {
    const auto it = functions_.find({node.domain, node.op_type, node.overload});
    if (it == functions_.end()) {
      for (AttributeDef& attribute : node.attributes) {
        for (auto& graph : attribute.graphs) {
          FOLIO_RETURN_IF_ERROR(expand_graph(graph.get(), depth + 1));
        }
      }
      out->push_back(std::move(node));
      return Status::ok();
    }
    const FunctionDef& function = *it->second;
    if (depth >= kMaxSubgraphDepth) {
      return invalid_graph("function '", function.name, "' is nested deeper than ",
                           kMaxSubgraphDepth, " calls (or calls itself)");
    }
    FOLIO_RETURN_IF_ERROR(charge(sizeof(Call) + bytes_of(node), function));  // a body may be empty
    FOLIO_TRY(Call call, make_call(node, function));
    for (const NodeDef& body : function.nodes) {
      FOLIO_TRY(NodeDef renamed, rename_node(body, call));
      FOLIO_RETURN_IF_ERROR(expand_node(std::move(renamed), depth + 1, out));
    }
    return forward_inputs(call, out);
  }

  Result<Call> make_call(const NodeDef& node, const FunctionDef& function) {
    if (node.inputs.size() > function.inputs.size() ||
        node.outputs.size() > function.outputs.size()) {
      return invalid_graph("node '", node.name, "' passes ", node.inputs.size(), " inputs and ",
                           node.outputs.size(), " outputs; function '", function.name, "' has ",
                           function.inputs.size(), " and ", function.outputs.size());
    }
    Call call;
    call.node = &node;
    call.function = &function;
    call.prefix = cat(base_, call_count_++, "_", function.name.substr(0, kMaxPrefixName), "_");
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      call.names[function.inputs[i]] = i < node.inputs.size() ? node.inputs[i] : "";
    }
    for (size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
      // An output that is also an input stays that input; forward_inputs copies it out.
      if (!node.outputs[i].empty()) call.names.try_emplace(function.outputs[i], node.outputs[i]);
    }
    // Function bodies may use opset versions of their own; a node carries its version along.
    return call;
  }

  static std::string rename(const std::string& name, Call& call) {
    if (name.empty()) return name;
    const auto [it, added] = call.names.try_emplace(name, call.prefix + name);
    return it->second;
  }

  Result<NodeDef> rename_node(const NodeDef& body, Call& call) {
    FOLIO_RETURN_IF_ERROR(charge(bytes_of(body) + call.prefix.size(), *call.function));
    NodeDef node = body;
    node.name = call.prefix + (body.name.empty() ? body.op_type : body.name);
    if (node.since_version == 0) {
      for (const OpsetImport& import : call.function->opsets) {
        if (import.domain == node.domain) node.since_version = static_cast<int>(import.version);
      }
    }
    for (std::string& input : node.inputs) input = rename(input, call);
    for (std::string& output : node.outputs) output = rename(output, call);
    FOLIO_TRY(node.attributes, bind_attributes(body.attributes, call));
    return node;
  }

  // Replaces attribute references by the caller's values (or the function's defaults); an
  // attribute that the caller does not give and that has no default is left out.
  Result<std::vector<AttributeDef>> bind_attributes(const std::vector<AttributeDef>& attributes,
                                                    Call& call) {
    std::vector<AttributeDef> out;
    for (const AttributeDef& attribute : attributes) {
      const AttributeDef* found = &attribute;
      if (!attribute.ref_attr_name.empty()) {
        found = find(call.node->attributes, attribute.ref_attr_name);
        if (!found) found = find(call.function->attribute_defaults, attribute.ref_attr_name);
        if (!found) continue;
      }
      FOLIO_RETURN_IF_ERROR(charge(bytes_of(*found), *call.function));
      out.push_back(*found);
      out.back().name = attribute.name;
      for (auto& graph : out.back().graphs) {
        // Every user has a copy of its own, since building a graph uses it up. A graph that the
        // caller gave has the caller's names already.
        if (found == &attribute) {
          auto copy = std::make_shared<GraphDef>(*graph);
          FOLIO_RETURN_IF_ERROR(rename_graph(copy.get(), call));
          graph = std::move(copy);
        } else {
          FOLIO_TRY(graph, copy_graph(*graph, *call.function));
        }
      }
    }
    return out;
  }

  Result<std::shared_ptr<GraphDef>> copy_graph(const GraphDef& graph, const FunctionDef& function) {
    auto copy = std::make_shared<GraphDef>(graph);
    for (NodeDef& node : copy->nodes) {
      FOLIO_RETURN_IF_ERROR(charge(bytes_of(node), function));
      for (AttributeDef& attribute : node.attributes) {
        FOLIO_RETURN_IF_ERROR(charge(bytes_of(attribute), function));
        for (auto& inner : attribute.graphs) {
          FOLIO_TRY(inner, copy_graph(*inner, function));
        }
      }
    }
    return copy;
  }

  Status rename_graph(GraphDef* graph, Call& call) {
    for (ValueDef& input : graph->inputs) input.name = rename(input.name, call);
    for (ValueDef& output : graph->outputs) output.name = rename(output.name, call);
    for (ValueDef& value : graph->values) value.name = rename(value.name, call);
    for (InitializerDef& initializer : graph->initializers) {
      initializer.name = rename(initializer.name, call);
    }
    for (NodeDef& node : graph->nodes) {
      FOLIO_TRY(node, rename_node(node, call));
    }
    return Status::ok();
  }

  // A function output that names one of its inputs directly becomes an Identity.
  Status forward_inputs(const Call& call, std::vector<NodeDef>* out) {
    for (size_t i = 0; i < call.node->outputs.size(); ++i) {
      const std::string& wanted = call.node->outputs[i];
      if (wanted.empty()) continue;  // then the function's name for it may be nobody's
      const std::string& given = call.names.at(call.function->outputs[i]);
      if (wanted == given) continue;
      NodeDef identity;
      identity.since_version = identity_version(*call.function);
      identity.name = call.prefix + "output";
      identity.op_type = "Identity";
      identity.inputs = {given};
      identity.outputs = {wanted};
      out->push_back(std::move(identity));
    }
    return Status::ok();
  }

  // The model itself may import only domains of its own.
  static int identity_version(const FunctionDef& function) {
    for (const OpsetImport& import : function.opsets) {
      if (import.domain.empty()) return static_cast<int>(import.version);
    }
    return 16;  // the first that takes values of every kind
  }

  static const AttributeDef* find(const std::vector<AttributeDef>& attributes,
                                  const std::string& name) {
    for (const AttributeDef& attribute : attributes) {
      if (attribute.name == name) return &attribute;
    }
    return nullptr;
  }

  ModelDef* def_;
  const std::function<bool()>& goes_on_;
  std::map<Key, const FunctionDef*> functions_;
  std::string base_{kBase};  // of names that no value of the model has
  size_t bytes_ = 0;         // added so far
  size_t ask_at_ = kBytesPerAsk;
  int64_t call_count_ = 0;
};

}  // namespace

Status inline_functions(ModelDef* def, const std::function<bool()>& goes_on) {
  if (def->functions.empty()) return Status::ok();
  return Inliner(def, goes_on).run();
}

}  // namespace folio
