#include "core/save/export_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Every model is written as one whose initializers need not be inputs (ONNX IR 4).
constexpr int64_t kMinIrVersion = 4;
constexpr int64_t kDefaultIrVersion = 8;

// The names visible in a graph: its own and those of the graphs around it.
struct NameScope {
  const NameScope* outer = nullptr;
  std::set<std::string> taken = {};
  std::vector<std::string> of = {};  // by ValueId; "" = not written

  bool is_taken(const std::string& name) const {
    return taken.count(name) != 0 || (outer && outer->is_taken(name));
  }
};

class Exporter {
 public:
  Exporter(const Model& model, VersionsOf versions) : model_(model), versions_(versions) {}

  Result<std::unique_ptr<ExportedModel>> run() {
    static_cast<ModelHeader&>(out_->def) = model_;
    // What Folio noted about the file that was read is not true of the one to be written.
    std::erase_if(out_->def.metadata,
                  [](const auto& entry) { return entry.first.starts_with(kOwnMetadataPrefix); });
    const int64_t ir_version = model_.ir_version > 0 ? model_.ir_version : kDefaultIrVersion;
    out_->def.ir_version = std::max(ir_version, kMinIrVersion);
    FOLIO_RETURN_IF_ERROR(write_graph(model_.graph, nullptr, &out_->def.graph));
    FOLIO_RETURN_IF_ERROR(write_opsets());
    return std::move(out_);
  }

 private:
  // ---- names

  static std::string unique(const NameScope& scope, std::string name) {
    if (name.empty()) name = "value";
    if (!scope.is_taken(name)) return name;
    for (size_t i = 1;; ++i) {
      std::string other = cat(name, "_", i);
      if (!scope.is_taken(other)) return other;
    }
  }

  static void name_value(NameScope* scope, const Graph& graph, ValueId id) {
    std::string& name = scope->of[static_cast<size_t>(id)];
    if (!name.empty()) return;
    const GraphValue& value = graph.value(id);
    if (value.outer != kNone && scope->outer) {
      name = scope->outer->of[static_cast<size_t>(value.outer)];
      return;
    }
    name = unique(*scope, value.name);
    scope->taken.insert(name);
  }

  // A subgraph's inputs keep names that values around it have too, unless it reads such a value:
  // ONNX Runtime knows the inputs of BeamSearch's decoders by their names.
  static void keep_input_names(const Graph& graph, NameScope* scope) {
    std::set<std::string> captured;
    for (const GraphValue& value : graph.values) {
      if (value.outer != kNone) captured.insert(scope->outer->of[static_cast<size_t>(value.outer)]);
    }
    for (const ValueId id : graph.inputs) {
      const std::string& name = graph.value(id).name;
      if (name.empty() || captured.count(name) != 0 || !scope->taken.insert(name).second) continue;
      scope->of[static_cast<size_t>(id)] = name;
    }
  }

  // Those of the model's interface first, so that they keep theirs.
  static void name_values(const Graph& graph, NameScope* scope) {
    scope->of.resize(graph.values.size());
    if (scope->outer) keep_input_names(graph, scope);
    for (const auto* ids : {&graph.inputs, &graph.overridable, &graph.outputs}) {
      for (const ValueId id : *ids) name_value(scope, graph, id);
    }
    for (const Node& node : graph.nodes) {
      for (const ValueId id : node.outputs) {
        if (id != kNone) name_value(scope, graph, id);
      }
    }
    for (const Node& node : graph.nodes) {
      Graph::for_each_read(node, [&](ValueId id) { name_value(scope, graph, id); });
    }
  }

  // ---- types

  DimDef dim_def(Dim dim) const {
    DimDef out;
    if (dim.is_value()) {
      out.kind = DimDef::Kind::kValue;
      out.value = dim.value;
    } else if (dim.is_symbol() && !model_.dims.name(dim.symbol).empty()) {
      out.kind = DimDef::Kind::kParam;
      out.param = model_.dims.name(dim.symbol);
    }
    return out;
  }

  TypeDef type_def(const TypeInfo& type) const {
    TypeDef out;
    out.kind = type.kind;
    out.dtype = type.dtype;
    if (type.element) out.element = std::make_shared<TypeDef>(type_def(*type.element));
    if (!type.dims) return out;
    out.has_shape = true;
    for (const Dim dim : *type.dims) out.dims.push_back(dim_def(dim));
    return out;
  }

  // Of the interface what the file declared; of others what inference knows.
  ValueDef value_def(const GraphValue& value, const std::string& name, bool declared) const {
    const bool use_declared = declared && value.declared.kind != TypeInfo::Kind::kUnknown;
    return {name, type_def(use_declared ? value.declared : value.type)};
  }

  // ---- constants

  size_t payload_of(const Ref<Initializer>& initializer) {
    if (initializer->tensor && initializer->tensor->bytes() > 0 &&
        !initializer->tensor->is_string()) {
      const std::pair key(initializer->tensor->raw(), initializer->tensor->bytes());
      const auto [at, added] = by_place_.try_emplace(key, out_->payloads.size());
      if (added) add_payload(initializer);
      return at->second;
    }
    const auto [at, added] = by_initializer_.try_emplace(initializer.get(), out_->payloads.size());
    if (added) add_payload(initializer);
    return at->second;
  }

  void add_payload(const Ref<Initializer>& initializer) {
    Payload payload;
    payload.initializer = initializer;
    payload.is_string = initializer->dtype == DType::kString;
    const auto count = static_cast<uint64_t>(initializer->shape.count());
    // The shape is one that was loaded or inferred: its size fits.
    if (!payload.is_string) (void)!dtype_bytes(initializer->dtype, count, &payload.bytes);
    out_->payloads.push_back(std::move(payload));
  }

  void write_initializer(const GraphValue& value, const std::string& name, GraphDef* out) {
    InitializerDef def;
    def.name = name;
    const Initializer& from = *value.initializer;
    def.tensor = Tensor(from.dtype, from.shape, nullptr, nullptr);
    out->initializers.push_back(std::move(def));
    out_->initializer_payloads[out].push_back(payload_of(value.initializer));
  }

  // ---- nodes

  Status write_node(const Node& node, const NameScope& scope, NodeDef* out) {
    if (is_private_domain(node.domain)) {
      return error(Code::kFail, node.label(), ": operators of domain '", node.domain,
                   "' are Folio's own and cannot be saved; a pass that is not portable made it");
    }
    out->name = node.name;
    out->domain = node.domain;
    out->op_type = node.op_type;
    out->since_version = version_of(node);
    const auto name_of = [&](ValueId id) {
      return id == kNone ? std::string() : scope.of[static_cast<size_t>(id)];
    };
    for (const ValueId id : node.inputs) out->inputs.push_back(name_of(id));
    for (const ValueId id : node.outputs) out->outputs.push_back(name_of(id));
    out->attributes = node.attributes.all();
    for (size_t i = 0; i < node.subgraphs.size(); ++i) {
      FOLIO_RETURN_IF_ERROR(write_subgraph(node, i, scope, out));
    }
    return note_version(node);
  }

  // ONNX Runtime takes a node for the version that its domain is imported at: so do we where that
  // means the same.
  int version_of(const Node& node) const {
    const int imported = model_.opset_version(node.domain);
    const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
    const bool same = def && imported >= def->since && imported <= def->until;
    return same ? imported : node.version;
  }

  // What its subgraphs take from this graph.
  static std::vector<std::string> implicit_inputs(const Node& node, const NameScope& scope) {
    std::set<std::string> names;
    for (const auto& subgraph : node.subgraphs) {
      for (const GraphValue& inner : subgraph->values) {
        if (inner.outer != kNone) names.insert(scope.of[static_cast<size_t>(inner.outer)]);
      }
    }
    return {names.begin(), names.end()};
  }

  Status write_subgraph(const Node& node, size_t i, const NameScope& scope, NodeDef* out) {
    auto def = std::make_shared<GraphDef>();
    FOLIO_RETURN_IF_ERROR(
        write_graph(*node.subgraphs[i], &scope, def.get()).with_context(node.label()));
    const std::string& name = node.subgraph_names[i];
    // Graphs of a list stand one behind the other under the same name.
    if (!out->attributes.empty() && out->attributes.back().name == name) {
      out->attributes.back().type = AttributeDef::Type::kGraphs;
      out->attributes.back().graphs.push_back(std::move(def));
      return Status::ok();
    }
    AttributeDef attribute;
    attribute.name = name;
    attribute.type = AttributeDef::Type::kGraph;
    attribute.graphs.push_back(std::move(def));
    out->attributes.push_back(std::move(attribute));
    return Status::ok();
  }

  // ---- graphs

  [[gnu::cold]] Status write_graph(const Graph& graph, const NameScope* outer, GraphDef* out) {
    NameScope scope{outer};
    name_values(graph, &scope);
    out->name = graph.name.empty() ? "graph" : graph.name;
    for (const auto* ids : {&graph.inputs, &graph.overridable}) {
      for (const ValueId id : *ids) {
        out->inputs.push_back(value_def(graph.value(id), scope.of[static_cast<size_t>(id)], true));
      }
    }
    for (const ValueId id : graph.outputs) {
      out->outputs.push_back(value_def(graph.value(id), scope.of[static_cast<size_t>(id)], true));
    }
    const std::set<ValueId> interface_of = interface_values(graph);
    for (size_t i = 0; i < graph.values.size(); ++i) {
      const GraphValue& value = graph.values[i];
      if (scope.of[i].empty()) continue;  // nothing reads it
      if (value.outer == kNone && value.initializer) {
        write_initializer(value, scope.of[i], out);
      } else if (interface_of.count(static_cast<ValueId>(i)) == 0) {
        out->values.push_back(value_def(value, scope.of[i], false));
      }
    }
    std::set<std::string> node_names;
    out->nodes.reserve(graph.nodes.size());
    for (const Node& node : graph.nodes) {
      if (node.dead) continue;
      NodeDef& def = out->nodes.emplace_back();
      FOLIO_RETURN_IF_ERROR(write_node(node, scope, &def));
      // ONNX Runtime writes models in which nodes share a name, and then refuses them.
      for (size_t i = 1; !node_names.insert(def.name).second; ++i)
        def.name = cat(node.name, "_", i);
      if (!node.subgraphs.empty()) out_->implicit_inputs[&def] = implicit_inputs(node, scope);
    }
    return Status::ok();
  }

  static std::set<ValueId> interface_values(const Graph& graph) {
    std::set<ValueId> out(graph.inputs.begin(), graph.inputs.end());
    out.insert(graph.overridable.begin(), graph.overridable.end());
    out.insert(graph.outputs.begin(), graph.outputs.end());
    return out;
  }

  // ---- versions

  // The versions of its domain at which a node means what it does here.
  struct Range {
    int since = 1;
    int until = kLatest;
    std::string of;  // the node that left so little
  };

  Status note_version(const Node& node) {
    const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
    Range range{node.version, node.version, node.label()};
    if (def) range = {def->since, def->until, node.label()};
    const auto [at, added] = ranges_.try_emplace(node.domain, range);
    if (added || versions_ == VersionsOf::kNodes) return Status::ok();
    Range& common = at->second;
    if (range.since > common.until || range.until < common.since) {
      return not_implemented(node.label(), " (version ", node.version, " of domain '", node.domain,
                             "') and ", common.of,
                             " come from versions that no one operator set has; save as .ort, "
                             "where each node has its own");
    }
    common.since = std::max(common.since, range.since);
    common.until = std::min(common.until, range.until);
    common.of = node.label();
    return Status::ok();
  }

  Status write_opsets() {
    for (const auto& [domain, range] : ranges_) {
      auto& opsets = out_->def.opsets;
      auto at =
          std::find_if(opsets.begin(), opsets.end(),
                       [&, &name = domain](const OpsetImport& o) { return o.domain == name; });
      if (at == opsets.end()) {
        opsets.push_back({domain, range.since});
        continue;
      }
      if (versions_ == VersionsOf::kNodes) continue;
      at->version = std::clamp<int64_t>(at->version, range.since, range.until);
    }
    return Status::ok();
  }

  const Model& model_;
  const VersionsOf versions_;
  std::unique_ptr<ExportedModel> out_ = std::make_unique<ExportedModel>();
  std::map<std::string, Range> ranges_;
  std::map<std::pair<const uint8_t*, size_t>, size_t> by_place_;
  std::map<const Initializer*, size_t> by_initializer_;
};

}  // namespace

bool is_private_domain(std::string_view domain) {
  return domain == "folio" || domain.starts_with("folio.");
}

Result<std::unique_ptr<ExportedModel>> export_model(const Model& model, VersionsOf versions) {
  return Exporter(model, versions).run();
}

}  // namespace folio
