#include <map>
#include <utility>

#include "core/ops/op_registry.h"
#include "core/passes/passes.h"

namespace folio {
namespace {

using Found = std::map<std::string, std::vector<std::string>>;

void collect(const Graph& graph, Found* found) {
  for (const Node& node : graph.nodes) {
    if (!op_registry().find(node.domain, node.op_type, node.version)) {
      const std::string domain = node.domain.empty() ? "" : node.domain + ".";
      (*found)[cat(domain, node.op_type, " (opset ", node.version, ")")].push_back(node.name);
    }
    for (const auto& subgraph : node.subgraphs) collect(*subgraph, found);
  }
}

// Enough names to find the nodes by; a model with thousands should not give a page of them.
constexpr size_t kMaxNames = 5;

void collect_nodes(const Graph& graph, std::vector<UnsupportedNode>* out) {
  for (const Node& node : graph.nodes) {
    std::string reason;
    if (node.domain.empty() && node.version > kNewestOpset) {
      reason = cat("opset ", node.version, " is newer than ", kNewestOpset);
    } else if (!op_registry().find(node.domain, node.op_type, node.version)) {
      reason = cat("unknown operator at opset ", node.version);
    }
    if (!reason.empty()) {
      out->push_back({node.domain, node.op_type, node.version, node.name, std::move(reason)});
    }
    for (const auto& subgraph : node.subgraphs) collect_nodes(*subgraph, out);
  }
}

// Of a node's input, if it is known.
DType input_dtype(const Graph& graph, const Node& node, size_t i) {
  if (node.inputs[i] == kNone) return DType::kUndefined;
  const TypeInfo& type = graph.value(node.inputs[i]).type;
  return type.is_tensor() ? type.dtype : DType::kUndefined;
}

Status check_float_inputs(const Graph& graph, const Node& node, uint32_t float_inputs) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const DType dtype = input_dtype(graph, node, i);
    if (!has_bit(float_inputs, i) || dtype == DType::kUndefined || dtype == DType::kFloat) continue;
    return invalid_graph(node.label(), ": input ", i, " is ", dtype_name(dtype),
                         ", expected float");
  }
  return Status::ok();
}

// Whether those of a node's inputs whose types are known have the type of the first of them.
Status check_one_type(const Graph& graph, const Node& node, uint32_t one_type) {
  size_t first = node.inputs.size();
  DType expected = DType::kUndefined;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const DType dtype = input_dtype(graph, node, i);
    if (!has_bit(one_type, i) || dtype == DType::kUndefined) continue;
    if (expected == DType::kUndefined) {
      first = i;
      expected = dtype;
    } else if (dtype != expected) {
      return invalid_graph(node.label(), ": input ", i, " is ", dtype_name(dtype), ", expected ",
                           dtype_name(expected), " as input ", first);
    }
  }
  return Status::ok();
}

}  // namespace

Status check_types(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.dead) continue;
    const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
    FOLIO_RETURN_IF_ERROR(check_one_type(graph, node, def->one_type));
    FOLIO_RETURN_IF_ERROR(check_float_inputs(graph, node, def->float_inputs));
    for (const auto& subgraph : node.subgraphs) FOLIO_RETURN_IF_ERROR(check_types(*subgraph));
  }
  return Status::ok();
}

std::vector<UnsupportedNode> unsupported_nodes(const Model& model) {
  std::vector<UnsupportedNode> out;
  collect_nodes(model.graph, &out);
  return out;
}

std::vector<std::string> unsupported_operators(const Model& model) {
  Found found;
  collect(model.graph, &found);
  std::vector<std::string> out;
  for (const auto& [op, names] : found) {
    std::string line = op + ":";
    for (size_t i = 0; i < names.size() && i < kMaxNames; ++i) {
      line += cat(i == 0 ? " node '" : ", node '", names[i], "'");
    }
    if (names.size() > kMaxNames) line += cat(" and ", names.size() - kMaxNames, " more");
    out.push_back(std::move(line));
  }
  return out;
}

Status check_supported(const Model& model) {
  for (const OpsetImport& import : model.opsets) {
    if (import.domain.empty() && import.version > kNewestOpset) {
      return error(Code::kUnsupportedOperator, "the model needs ai.onnx opset ", import.version,
                   ", this build knows up to ", kNewestOpset);
    }
  }
  const std::vector<std::string> lines = unsupported_operators(model);
  if (lines.empty()) return Status::ok();
  std::string message = cat(lines.size(), " unsupported operator", lines.size() > 1 ? "s" : "");
  const char* separator = ": ";
  for (const std::string& line : lines) message += cat(std::exchange(separator, "; "), line);
  return Status(Code::kUnsupportedOperator, std::move(message));
}

}  // namespace folio
