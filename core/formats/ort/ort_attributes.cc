// Attributes of nodes; see ort_reader.h.
#include "core/formats/ort/ort_reader.h"

namespace folio {

Status OrtReader::read_attribute(const ort_schema::Attribute& attribute, int depth,
                                 AttributeDef* out) {
  FOLIO_RETURN_IF_ERROR(read_name(attribute.name(), "attribute name", &out->name));
  if (out->name.empty()) return invalid_graph("an attribute has no name");
  Status read = read_attribute_value(attribute, depth, out);
  if (read.is_ok()) return read;
  return std::move(read).with_context("attribute " + shown_name(out->name));
}

// Scalars that are not written are zero or empty, as are lists; a tensor or graph must be there.
Status OrtReader::read_attribute_value(const ort_schema::Attribute& attribute, int depth,
                                       AttributeDef* out) {
  using Type = ort_schema::AttributeType;
  out->type = static_cast<AttributeDef::Type>(attribute.type());
  switch (attribute.type()) {
    case Type::FLOAT:
      out->floats = {attribute.f()};
      return Status::ok();
    case Type::INT:
      out->ints = {attribute.i()};
      return Status::ok();
    case Type::STRING:
      return read_bytes(attribute.s(), &out->strings.emplace_back());
    case Type::TENSOR:
      return read_attribute_tensor(attribute.t(), out);
    case Type::GRAPH:
      return read_attribute_graph(attribute.g(), depth, out);
    case Type::FLOATS:
      return copy_scalars(attribute.floats(), &out->floats);
    case Type::INTS:
      return copy_scalars(attribute.ints(), &out->ints);
    case Type::STRINGS:
      return each_entry(attribute.strings(), "string", [&](const flatbuffers::String& text) {
        return read_bytes(&text, &out->strings.emplace_back());
      });
    case Type::TENSORS:
      return each_entry(attribute.tensors(), "tensor", [&](const ort_schema::Tensor& tensor) {
        return read_attribute_tensor(&tensor, out);
      });
    case Type::GRAPHS:
      return each_entry(attribute.graphs(), "graph", [&](const ort_schema::Graph& graph) {
        return read_attribute_graph(&graph, depth, out);
      });
    case Type::UNDEFINED:
    case Type::SPARSE_TENSOR:
    case Type::SPARSE_TENSORS:
      break;
  }
  return invalid_graph("type ", static_cast<int>(attribute.type()),
                       " cannot be stored in an ORT-format model");
}

Status OrtReader::read_attribute_tensor(const ort_schema::Tensor* tensor, AttributeDef* out) {
  if (!tensor) return invalid_graph("its tensor is missing");
  InitializerDef read;
  FOLIO_RETURN_IF_ERROR(read_tensor(*tensor, &read));
  out->tensors.push_back(std::move(read.tensor));
  return Status::ok();
}

Status OrtReader::read_attribute_graph(const ort_schema::Graph* graph, int depth,
                                       AttributeDef* out) {
  if (!graph) return invalid_graph("its graph is missing");
  out->graphs.push_back(std::make_shared<GraphDef>());
  return read_graph(*graph, depth + 1, out->graphs.back().get());
}

}  // namespace folio
