#include "core/formats/onnx/graph_reader.h"

#include "core/formats/onnx/attribute_reader.h"
#include "core/formats/onnx/onnx_fields.h"
#include "core/formats/onnx/tensor_reader.h"
#include "core/formats/onnx/type_reader.h"

namespace folio {
namespace {

// The default operator set has two spellings.
Status read_domain(WireReader& reader, std::string* out) {
  FOLIO_RETURN_IF_ERROR(reader.read_name("domain", out));
  if (*out == "ai.onnx") out->clear();
  return Status::ok();
}

Status scan_node(LoadContext& context, Bytes message, int depth, NodeDef* out) {
  const FieldCounts counts(message);
  counts.reserve(NodeFields::kInput, &out->inputs);
  counts.reserve(NodeFields::kOutput, &out->outputs);
  counts.reserve(NodeFields::kAttribute, &out->attributes);
  WireReader reader = context.reader(message, "NodeProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case NodeFields::kInput:
        return reader.append_name("input", &out->inputs);
      case NodeFields::kOutput:
        return reader.append_name("output", &out->outputs);
      case NodeFields::kName:
        return reader.read_name("name", &out->name);
      case NodeFields::kOpType:
        return reader.read_name("op_type", &out->op_type);
      case NodeFields::kDomain:
        return read_domain(reader, &out->domain);
      case NodeFields::kOverload:
        return reader.read_name("overload", &out->overload);
      case NodeFields::kAttribute: {
        Bytes attribute;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&attribute));
        return read_attribute(context, attribute, depth, &out->attributes.emplace_back());
      }
      default:
        return reader.skip();
    }
  });
}

Status read_node(LoadContext& context, Bytes message, int depth, NodeDef* out) {
  FOLIO_RETURN_IF_ERROR(context.step(message));
  if (++context.node_count > context.options.max_nodes) {
    return invalid_graph("the model has more than ", context.options.max_nodes, " nodes");
  }
  Status read = scan_node(context, message, depth, out);
  if (read.is_ok() && out->op_type.empty()) read = invalid_graph("has no op_type");
  if (!read.is_ok()) {
    return std::move(read).with_context(
        cat("node ", quoted(out->name), " (", utf8_shortened(out->op_type, 200), ")"));
  }
  return Status::ok();
}

Status read_initializer(LoadContext& context, WireReader& reader, uint32_t field, GraphDef* out) {
  Bytes message;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
  InitializerDef& initializer = out->initializers.emplace_back();
  FOLIO_RETURN_IF_ERROR(field == GraphFields::kInitializer
                            ? read_tensor(context, message, &initializer)
                            : read_sparse_tensor(context, message, &initializer));
  if (!initializer.name.empty()) return Status::ok();
  return invalid_graph("initializer ", out->initializers.size() - 1, " has no name");
}

Status read_value_into(LoadContext& context, WireReader& reader, std::vector<ValueDef>* out) {
  Bytes message;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
  return read_value_info(context, message, &out->emplace_back());
}

Status scan_graph(LoadContext& context, Bytes message, int depth, GraphDef* out) {
  const FieldCounts counts(message);
  counts.reserve(GraphFields::kNode, &out->nodes);
  counts.reserve(GraphFields::kInitializer, &out->initializers);
  counts.reserve(GraphFields::kInput, &out->inputs);
  counts.reserve(GraphFields::kOutput, &out->outputs);
  counts.reserve(GraphFields::kValueInfo, &out->values);
  WireReader reader = context.reader(message, "GraphProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case GraphFields::kName:
        return reader.read_name("name", &out->name);
      case GraphFields::kNode: {
        Bytes node;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&node));
        return read_node(context, node, depth, &out->nodes.emplace_back());
      }
      case GraphFields::kInitializer:
      case GraphFields::kSparseInitializer:
        return read_initializer(context, reader, field, out);
      case GraphFields::kInput:
        return read_value_into(context, reader, &out->inputs);
      case GraphFields::kOutput:
        return read_value_into(context, reader, &out->outputs);
      case GraphFields::kValueInfo:
        return read_value_into(context, reader, &out->values);
      default:
        return reader.skip();
    }
  });
}

Status scan_function(LoadContext& context, Bytes message, FunctionDef* out) {
  WireReader reader = context.reader(message, "FunctionProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case FunctionFields::kName:
        return reader.read_name("name", &out->name);
      case FunctionFields::kDomain:
        return read_domain(reader, &out->domain);
      case FunctionFields::kOverload:
        return reader.read_name("overload", &out->overload);
      case FunctionFields::kInput:
        return reader.append_name("input", &out->inputs);
      case FunctionFields::kOutput:
        return reader.append_name("output", &out->outputs);
      case FunctionFields::kAttribute:
        return reader.append_name("attribute", &out->attributes);
      case FunctionFields::kAttributeProto: {
        Bytes attribute;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&attribute));
        return read_attribute(context, attribute, 0, &out->attribute_defaults.emplace_back());
      }
      case FunctionFields::kNode: {
        Bytes node;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&node));
        return read_node(context, node, 0, &out->nodes.emplace_back());
      }
      case FunctionFields::kOpsetImport: {
        Bytes opset;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&opset));
        return read_opset(context, opset, &out->opsets.emplace_back());
      }
      default:
        return reader.skip();
    }
  });
}

}  // namespace

Status read_graph(LoadContext& context, Bytes message, int depth, GraphDef* out) {
  if (depth > kMaxSubgraphDepth) {
    return invalid_graph("subgraphs nest deeper than ", kMaxSubgraphDepth, " levels");
  }
  Status read = scan_graph(context, message, depth, out);
  if (!read.is_ok()) return std::move(read).with_context("graph " + quoted(out->name));
  return Status::ok();
}

Status read_function(LoadContext& context, Bytes message, FunctionDef* out) {
  Status read = scan_function(context, message, out);
  if (!read.is_ok()) return std::move(read).with_context("function " + quoted(out->name));
  return Status::ok();
}

Status read_opset(LoadContext& context, Bytes message, OpsetImport* out) {
  WireReader reader = context.reader(message, "OperatorSetIdProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case OpsetFields::kDomain:
        return read_domain(reader, &out->domain);
      case OpsetFields::kVersion:
        return reader.read_int(&out->version);
      default:
        return reader.skip();
    }
  });
}

}  // namespace folio
