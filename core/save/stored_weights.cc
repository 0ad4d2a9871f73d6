#include "core/save/stored_weights.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/save/onnx_writer.h"

namespace folio {
namespace {

class Mover {
 public:
  Mover(ExportedModel* exported, const StoredWeights& stored)
      : exported_(*exported), stored_(stored) {}

  PayloadLayout run() {
    each_graph(&exported_.def.graph, [&](GraphDef* graph) { note_names(*graph); });
    each_graph(&exported_.def.graph, [&](GraphDef* graph) { move(graph); });
    PayloadLayout layout;
    layout.offsets.assign(exported_.payloads.size(), PayloadLayout::kInline);
    for (size_t i = 0; i < stored_.payloads.size(); ++i) {
      const auto& weight = stored_.payloads[i];
      if (!weight) continue;
      layout.offsets[i] = weight->offset;
      if (weight->packed) exported_.payloads[i].bytes = weight->packed->form.bytes;
    }
    exported_.def.metadata.push_back(stored_.metadata);
    if (has_nodes_) {
      exported_.def.opsets.push_back({std::string(kUnpackDomain), kUnpackVersion});
    }
    return layout;
  }

 private:
  void note_names(const GraphDef& graph) {
    for (const ValueDef& input : graph.inputs) names_.insert(input.name);
    for (const InitializerDef& initializer : graph.initializers) names_.insert(initializer.name);
    for (const NodeDef& node : graph.nodes) {
      names_.insert(node.outputs.begin(), node.outputs.end());
      nodes_.insert(node.name);
    }
  }

  static std::string unique(const std::string& wanted, std::set<std::string>* names) {
    std::string name = wanted;
    for (size_t i = 1; !names->insert(name).second; ++i) name = cat(wanted, "_", i);
    return name;
  }

  void move(GraphDef* graph) {
    const std::vector<size_t>& payloads = exported_.initializer_payloads[graph];
    std::vector<NodeDef> made;
    for (size_t i = 0; i < graph->initializers.size(); ++i) {
      const auto& weight = stored_.payloads[payloads[i]];
      if (weight && weight->packed) made.push_back(unpack(*weight->packed, graph, i));
    }
    if (made.empty()) return;
    has_nodes_ = true;
    // Before those that read them.
    std::move(graph->nodes.begin(), graph->nodes.end(), std::back_inserter(made));
    graph->nodes = std::move(made);
  }

  // The initializer becomes the packed bytes, and the node's output has its name.
  NodeDef unpack(PackedWeight weight, GraphDef* graph, size_t index) {
    InitializerDef& from = graph->initializers[index];
    weight.shape = from.tensor.shape();
    ValueDef value{from.name, {}};
    value.type.kind = TypeInfo::Kind::kTensor;
    value.type.dtype = weight.dtype;
    value.type.has_shape = true;
    for (const int64_t dim : weight.shape.dims()) {
      value.type.dims.push_back({DimDef::Kind::kValue, dim, ""});
    }
    const bool is_output =
        std::any_of(graph->outputs.begin(), graph->outputs.end(),
                    [&](const ValueDef& output) { return output.name == value.name; });
    if (!is_output) graph->values.push_back(value);
    from.name = unique(value.name + "/packed", &names_);
    const auto bytes = static_cast<int64_t>(weight.form.bytes);
    from.tensor = Tensor(DType::kUint8, Shape{bytes}, nullptr, nullptr);
    NodeDef node;
    node.name = unique(value.name + "/unpack", &nodes_);
    node.domain = kUnpackDomain;
    node.op_type = kUnpackType;
    node.inputs = {from.name};
    node.outputs = {value.name};
    node.attributes = packed_weight_attributes(weight);
    return node;
  }

  ExportedModel& exported_;
  const StoredWeights& stored_;
  std::set<std::string> names_;
  std::set<std::string> nodes_;
  bool has_nodes_ = false;
};

}  // namespace

void each_graph(GraphDef* graph, const std::function<void(GraphDef*)>& visit) {
  visit(graph);
  for (NodeDef& node : graph->nodes) {
    for (AttributeDef& attribute : node.attributes) {
      for (const auto& inner : attribute.graphs) each_graph(inner.get(), visit);
    }
  }
}

Status write_stored_model(ExportedModel* exported, const StoredWeights& stored,
                          const Evaluator& evaluator, NewFile* file) {
  const PayloadLayout layout = Mover(exported, stored).run();
  OnnxWriter writer(*exported, layout, stored.location);
  writer.lay_out();
  PayloadWriter payloads(evaluator, exported->payloads, nullptr);
  return writer.write(&payloads, file);
}

}  // namespace folio
