#include "tools/make_model/onnx_model.h"

#include "tools/make_model/onnx_fields.h"

namespace model_writer {

namespace {

ProtoMessage value_message(std::string_view name) {
  ProtoMessage value;
  value.put_bytes(field::kValueName, name);
  return value;
}

ProtoMessage value_message(std::string_view name, Type type) {
  ProtoMessage value = value_message(name);
  value.put_message(field::kValueType, std::move(type).message());
  return value;
}

ProtoMessage opset_message(std::string_view domain, int64_t version) {
  ProtoMessage opset;
  if (!domain.empty()) opset.put_bytes(field::kOpsetDomain, domain);
  opset.put_int(field::kOpsetVersion, version);
  return opset;
}

void put_nodes(uint32_t field_number, std::deque<NodeWriter> nodes, ProtoMessage& out) {
  for (NodeWriter& node : nodes) out.put_message(field_number, std::move(node).message());
}

}  // namespace

AttributeWriter::AttributeWriter(std::string_view name, AttributeType type) {
  message_.put_bytes(field::kAttributeName, name);
  message_.put_int(field::kAttributeType, static_cast<int64_t>(type));
}

AttributeWriter AttributeWriter::of_float(std::string_view name, float value) {
  AttributeWriter attribute(name, AttributeType::kFloat);
  attribute.message_.put_f32(field::kAttributeFloat, value);
  return attribute;
}

AttributeWriter AttributeWriter::of_int(std::string_view name, int64_t value) {
  AttributeWriter attribute(name, AttributeType::kInt);
  attribute.message_.put_int(field::kAttributeInt, value);
  return attribute;
}

AttributeWriter AttributeWriter::of_string(std::string_view name, std::string_view value) {
  AttributeWriter attribute(name, AttributeType::kString);
  attribute.message_.put_bytes(field::kAttributeString, value);
  return attribute;
}

AttributeWriter AttributeWriter::of_tensor(std::string_view name, TensorWriter value) {
  AttributeWriter attribute(name, AttributeType::kTensor);
  attribute.message_.put_message(field::kAttributeTensor, std::move(value).message());
  return attribute;
}

AttributeWriter AttributeWriter::of_graph(std::string_view name, GraphWriter value) {
  AttributeWriter attribute(name, AttributeType::kGraph);
  attribute.message_.put_message(field::kAttributeGraph, std::move(value).message());
  return attribute;
}

AttributeWriter AttributeWriter::of_floats(std::string_view name,
                                           const std::vector<float>& values) {
  AttributeWriter attribute(name, AttributeType::kFloats);
  // Proto2 without [packed = true]: one field for each element.
  for (const float value : values) attribute.message_.put_f32(field::kAttributeFloats, value);
  return attribute;
}

AttributeWriter AttributeWriter::of_ints(std::string_view name,
                                         const std::vector<int64_t>& values) {
  AttributeWriter attribute(name, AttributeType::kInts);
  for (const int64_t value : values) attribute.message_.put_int(field::kAttributeInts, value);
  return attribute;
}

AttributeWriter AttributeWriter::of_strings(std::string_view name,
                                            const std::vector<std::string>& values) {
  AttributeWriter attribute(name, AttributeType::kStrings);
  for (const std::string& value : values) {
    attribute.message_.put_bytes(field::kAttributeStrings, value);
  }
  return attribute;
}

AttributeWriter AttributeWriter::of_tensors(std::string_view name,
                                            std::vector<TensorWriter> values) {
  AttributeWriter attribute(name, AttributeType::kTensors);
  for (TensorWriter& value : values) {
    attribute.message_.put_message(field::kAttributeTensors, std::move(value).message());
  }
  return attribute;
}

AttributeWriter AttributeWriter::of_graphs(std::string_view name, std::vector<GraphWriter> values) {
  AttributeWriter attribute(name, AttributeType::kGraphs);
  for (GraphWriter& value : values) {
    attribute.message_.put_message(field::kAttributeGraphs, std::move(value).message());
  }
  return attribute;
}

AttributeWriter AttributeWriter::of_sparse(std::string_view name, SparseTensorWriter value) {
  AttributeWriter attribute(name, AttributeType::kSparseTensor);
  attribute.message_.put_message(field::kAttributeSparse, std::move(value).message());
  return attribute;
}

AttributeWriter AttributeWriter::of_sparses(std::string_view name,
                                            std::vector<SparseTensorWriter> values) {
  AttributeWriter attribute(name, AttributeType::kSparseTensors);
  for (SparseTensorWriter& value : values) {
    attribute.message_.put_message(field::kAttributeSparses, std::move(value).message());
  }
  return attribute;
}

AttributeWriter AttributeWriter::of_type(std::string_view name, Type value) {
  AttributeWriter attribute(name, AttributeType::kTypeProto);
  attribute.message_.put_message(field::kAttributeTypeProto, std::move(value).message());
  return attribute;
}

AttributeWriter AttributeWriter::of_types(std::string_view name, std::vector<Type> values) {
  AttributeWriter attribute(name, AttributeType::kTypeProtos);
  for (Type& value : values) {
    attribute.message_.put_message(field::kAttributeTypeProtos, std::move(value).message());
  }
  return attribute;
}

AttributeWriter AttributeWriter::of_reference(std::string_view name, std::string_view reference,
                                              AttributeType type) {
  AttributeWriter attribute(name, type);
  attribute.message_.put_bytes(field::kAttributeRefName, reference);
  return attribute;
}

NodeWriter::NodeWriter(std::string_view op_type, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
  // An empty name is an optional input or output that is left out; it must be written.
  for (const std::string& name : inputs) message_.put_bytes(field::kNodeInput, name);
  for (const std::string& name : outputs) message_.put_bytes(field::kNodeOutput, name);
  message_.put_bytes(field::kNodeOpType, op_type);
}

NodeWriter& NodeWriter::named(std::string_view name) {
  message_.put_bytes(field::kNodeName, name);
  return *this;
}

NodeWriter& NodeWriter::in_domain(std::string_view domain) {
  message_.put_bytes(field::kNodeDomain, domain);
  return *this;
}

NodeWriter& NodeWriter::overload(std::string_view overload) {
  message_.put_bytes(field::kNodeOverload, overload);
  return *this;
}

NodeWriter& NodeWriter::doc(std::string_view text) {
  message_.put_bytes(field::kNodeDoc, text);
  return *this;
}

NodeWriter& NodeWriter::attr(AttributeWriter attribute) {
  message_.put_message(field::kNodeAttribute, std::move(attribute).message());
  return *this;
}

NodeWriter& NodeWriter::attr_float(std::string_view name, float value) {
  return attr(AttributeWriter::of_float(name, value));
}

NodeWriter& NodeWriter::attr_int(std::string_view name, int64_t value) {
  return attr(AttributeWriter::of_int(name, value));
}

NodeWriter& NodeWriter::attr_string(std::string_view name, std::string_view value) {
  return attr(AttributeWriter::of_string(name, value));
}

NodeWriter& NodeWriter::attr_tensor(std::string_view name, TensorWriter value) {
  return attr(AttributeWriter::of_tensor(name, std::move(value)));
}

NodeWriter& NodeWriter::attr_graph(std::string_view name, GraphWriter value) {
  return attr(AttributeWriter::of_graph(name, std::move(value)));
}

NodeWriter& NodeWriter::attr_floats(std::string_view name, const std::vector<float>& values) {
  return attr(AttributeWriter::of_floats(name, values));
}

NodeWriter& NodeWriter::attr_ints(std::string_view name, const std::vector<int64_t>& values) {
  return attr(AttributeWriter::of_ints(name, values));
}

NodeWriter& NodeWriter::attr_strings(std::string_view name,
                                     const std::vector<std::string>& values) {
  return attr(AttributeWriter::of_strings(name, values));
}

NodeWriter& NodeWriter::attr_ref(std::string_view name, std::string_view reference,
                                 AttributeType type) {
  return attr(AttributeWriter::of_reference(name, reference, type));
}

NodeWriter& GraphWriter::node(std::string_view op_type, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs) {
  return nodes_.emplace_back(op_type, inputs, outputs);
}

GraphWriter& GraphWriter::input(std::string_view name, Type type) {
  inputs_.put_message(field::kGraphInput, value_message(name, std::move(type)));
  return *this;
}

GraphWriter& GraphWriter::input_without_type(std::string_view name) {
  inputs_.put_message(field::kGraphInput, value_message(name));
  return *this;
}

GraphWriter& GraphWriter::output(std::string_view name, Type type) {
  outputs_.put_message(field::kGraphOutput, value_message(name, std::move(type)));
  return *this;
}

GraphWriter& GraphWriter::output_without_type(std::string_view name) {
  outputs_.put_message(field::kGraphOutput, value_message(name));
  return *this;
}

GraphWriter& GraphWriter::value_info(std::string_view name, Type type) {
  value_infos_.put_message(field::kGraphValueInfo, value_message(name, std::move(type)));
  return *this;
}

GraphWriter& GraphWriter::initializer(TensorWriter tensor) {
  initializers_.put_message(field::kGraphInitializer, std::move(tensor).message());
  return *this;
}

GraphWriter& GraphWriter::sparse_initializer(SparseTensorWriter tensor) {
  sparse_initializers_.put_message(field::kGraphSparseInitializer, std::move(tensor).message());
  return *this;
}

GraphWriter& GraphWriter::doc(std::string_view text) {
  doc_.put_bytes(field::kGraphDoc, text);
  return *this;
}

ProtoMessage GraphWriter::take() {
  ProtoMessage out;
  put_nodes(field::kGraphNode, std::move(nodes_), out);
  out.put_bytes(field::kGraphName, name_);
  out.append(std::move(initializers_));
  out.append(std::move(doc_));
  out.append(std::move(inputs_));
  out.append(std::move(outputs_));
  out.append(std::move(value_infos_));
  out.append(std::move(sparse_initializers_));
  out.append(std::move(extra_));
  return out;
}

FunctionWriter::FunctionWriter(std::string_view domain, std::string_view name,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs) {
  head_.put_bytes(field::kFunctionName, name);
  for (const std::string& input : inputs) head_.put_bytes(field::kFunctionInput, input);
  for (const std::string& output : outputs) head_.put_bytes(field::kFunctionOutput, output);
  tail_.put_bytes(field::kFunctionDomain, domain);
}

FunctionWriter& FunctionWriter::opset(std::string_view domain, int64_t version) {
  tail_.put_message(field::kFunctionOpsetImport, opset_message(domain, version));
  return *this;
}

FunctionWriter& FunctionWriter::attribute(std::string_view name) {
  head_.put_bytes(field::kFunctionAttribute, name);
  return *this;
}

FunctionWriter& FunctionWriter::attribute_default(AttributeWriter value) {
  tail_.put_message(field::kFunctionAttributeProto, std::move(value).message());
  return *this;
}

FunctionWriter& FunctionWriter::overload(std::string_view overload) {
  tail_.put_bytes(field::kFunctionOverload, overload);
  return *this;
}

FunctionWriter& FunctionWriter::value_info(std::string_view name, Type type) {
  tail_.put_message(field::kFunctionValueInfo, value_message(name, std::move(type)));
  return *this;
}

NodeWriter& FunctionWriter::node(std::string_view op_type, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  return nodes_.emplace_back(op_type, inputs, outputs);
}

ProtoMessage FunctionWriter::take() {
  ProtoMessage out = std::move(head_);
  put_nodes(field::kFunctionNode, std::move(nodes_), out);
  out.append(std::move(tail_));
  return out;
}

ModelWriter& ModelWriter::opset(std::string_view domain, int64_t version) {
  tail_.put_message(field::kModelOpsetImport, opset_message(domain, version));
  return *this;
}

ModelWriter& ModelWriter::producer(std::string_view name, std::string_view version) {
  head_.put_bytes(field::kModelProducerName, name);
  head_.put_bytes(field::kModelProducerVersion, version);
  return *this;
}

ModelWriter& ModelWriter::domain(std::string_view domain) {
  head_.put_bytes(field::kModelDomain, domain);
  return *this;
}

ModelWriter& ModelWriter::model_version(int64_t version) {
  head_.put_int(field::kModelVersion, version);
  return *this;
}

ModelWriter& ModelWriter::doc(std::string_view text) {
  head_.put_bytes(field::kModelDoc, text);
  return *this;
}

ModelWriter& ModelWriter::metadata(std::string_view key, std::string_view value) {
  tail_.put_message(field::kModelMetadata, entry_message(key, value));
  return *this;
}

ModelWriter& ModelWriter::function(FunctionWriter function) {
  tail_.put_message(field::kModelFunctions, std::move(function).message());
  return *this;
}

ProtoMessage ModelWriter::take() {
  ProtoMessage out;
  out.put_int(field::kModelIrVersion, ir_version_);
  out.append(std::move(head_));
  out.put_message(field::kModelGraph, std::move(graph_).message());
  out.append(std::move(tail_));
  return out;
}

}  // namespace model_writer
