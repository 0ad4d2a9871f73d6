#include "tests/support/ort_writer.h"

#include <algorithm>
#include <set>

#include "core/formats/ort/ort_schema_generated.h"

namespace folio {
namespace {

namespace schema = ort_schema;

template <typename T>
using Offset = flatbuffers::Offset<T>;
template <typename T>
using Offsets = std::vector<Offset<T>>;

class OrtWriter {
 public:
  explicit OrtWriter(const OrtWriteOptions& options) : options_(options) {}

  std::string write(const ModelDef& model) {
    const auto table = write_model(model);
    const auto version = text(options_.ort_version);
    Offsets<schema::OpIdKernelTypeStrArgsEntry> kernel_types;  // none: Folio does not read them
    const auto resolver = schema::CreateKernelTypeStrResolver(
        builder_, builder_.CreateVectorOfSortedTables(&kernel_types));
    builder_.Finish(schema::CreateInferenceSession(builder_, version, table, resolver),
                    schema::InferenceSessionIdentifier());
    return std::string(reinterpret_cast<const char*>(builder_.GetBufferPointer()),
                       builder_.GetSize());
  }

 private:
  // Shared, as ORT does: each distinct string stands in the file once.
  Offset<flatbuffers::String> text(const std::string& value) {
    return builder_.CreateSharedString(value);
  }

  auto texts(const std::vector<std::string>& values) {
    Offsets<flatbuffers::String> offsets;
    for (const std::string& value : values) offsets.push_back(text(value));
    return builder_.CreateVector(offsets);
  }

  Offset<schema::Tensor> write_tensor(const std::string& name, const Tensor& tensor) {
    OrtTensorFields fields;
    fields.name = name;
    fields.dims.assign(tensor.shape().begin(), tensor.shape().end());
    fields.data_type = static_cast<int32_t>(tensor.dtype());
    if (tensor.is_string()) {
      const auto strings = tensor.span<std::string>();
      fields.string_data.assign(strings.begin(), strings.end());
    } else {
      fields.raw_data.assign(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
    }
    if (options_.edit_tensor) options_.edit_tensor(&fields);
    return write_tensor_fields(fields);
  }

  Offset<schema::Tensor> write_tensor_fields(const OrtTensorFields& fields) {
    const auto name = text(fields.name);
    const auto dims = builder_.CreateVector(fields.dims);
    const auto type = static_cast<schema::TensorDataType>(fields.data_type);
    Offset<flatbuffers::Vector<uint8_t>> raw;
    Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> strings;
    if (type == schema::TensorDataType::STRING) {
      strings = texts(fields.string_data);
    } else {
      builder_.ForceVectorAlignment(fields.raw_data.size(), 1, options_.payload_alignment);
      raw = builder_.CreateVector(reinterpret_cast<const uint8_t*>(fields.raw_data.data()),
                                  fields.raw_data.size());
    }
    return schema::CreateTensor(builder_, name, 0, dims, type, raw, strings,
                                fields.external_data_offset);
  }

  Offset<schema::Shape> write_shape(const std::vector<DimDef>& dims) {
    Offsets<schema::Dimension> offsets;
    for (const DimDef& dim : dims) {
      const auto kind = static_cast<schema::DimensionValueType>(dim.kind);  // the same numbers
      const auto param = dim.kind == DimDef::Kind::kParam ? text(dim.param) : 0;
      const auto value = schema::CreateDimensionValue(builder_, kind, dim.value, param);
      offsets.push_back(schema::CreateDimension(builder_, value));
    }
    return schema::CreateShape(builder_, builder_.CreateVector(offsets));
  }

  Offset<schema::TypeInfo> write_type(const TypeDef& type) {
    const auto dtype = static_cast<schema::TensorDataType>(type.dtype);
    auto member = schema::TypeInfoValue::NONE;
    Offset<void> value;
    if (type.kind == TypeInfo::Kind::kTensor) {
      const auto shape = type.has_shape ? write_shape(type.dims) : Offset<schema::Shape>();
      member = schema::TypeInfoValue::tensor_type;
      value = schema::CreateTensorTypeAndShape(builder_, dtype, shape).Union();
    } else if (type.kind == TypeInfo::Kind::kSequence) {
      const auto element = write_type(*type.element);
      member = schema::TypeInfoValue::sequence_type;
      value = schema::CreateSequenceType(builder_, element).Union();
    } else if (type.kind == TypeInfo::Kind::kMap) {
      const auto element = write_type(*type.element);
      member = schema::TypeInfoValue::map_type;
      value = schema::CreateMapType(builder_, dtype, element).Union();
    }
    return schema::CreateTypeInfo(builder_, 0, member, value);
  }

  auto write_values(const GraphDef& graph) {
    Offsets<schema::ValueInfo> offsets;
    std::set<std::string> seen;
    for (const auto* list : {&graph.values, &graph.inputs, &graph.outputs}) {
      for (const ValueDef& value : *list) {
        if (!seen.insert(value.name).second) continue;
        const auto name = text(value.name);
        offsets.push_back(schema::CreateValueInfo(builder_, name, 0, write_type(value.type)));
      }
    }
    return builder_.CreateVector(offsets);
  }

  Offset<schema::Attribute> write_attribute(const AttributeDef& attribute) {
    const auto name = text(attribute.name);
    const auto floats = builder_.CreateVector(attribute.floats);
    const auto ints = builder_.CreateVector(attribute.ints);
    const auto strings = texts(attribute.strings);
    Offsets<schema::Tensor> tensors;
    for (const Tensor& tensor : attribute.tensors) tensors.push_back(write_tensor("", tensor));
    Offsets<schema::Graph> graphs;
    for (const auto& graph : attribute.graphs) graphs.push_back(write_graph(*graph, nullptr));
    using Type = AttributeDef::Type;
    const Type type = attribute.type;
    const auto s = type == Type::kString ? text(attribute.strings[0]) : 0;
    const auto tensor_list = type == Type::kTensors ? builder_.CreateVector(tensors) : 0;
    const auto graph_list = type == Type::kGraphs ? builder_.CreateVector(graphs) : 0;
    schema::AttributeBuilder out(builder_);
    out.add_name(name);
    out.add_type(static_cast<schema::AttributeType>(type));
    if (type == Type::kFloat) out.add_f(attribute.floats[0]);
    if (type == Type::kInt) out.add_i(attribute.ints[0]);
    if (type == Type::kString) out.add_s(s);
    if (type == Type::kTensor && !tensors.empty()) out.add_t(tensors[0]);
    if (type == Type::kGraph && !graphs.empty()) out.add_g(graphs[0]);
    if (type == Type::kFloats) out.add_floats(floats);
    if (type == Type::kInts) out.add_ints(ints);
    if (type == Type::kStrings) out.add_strings(strings);
    if (type == Type::kTensors) out.add_tensors(tensor_list);
    if (type == Type::kGraphs) out.add_graphs(graph_list);
    return out.Finish();
  }

  Offset<schema::Node> write_node(const NodeDef& node, uint32_t index) {
    Offsets<schema::Attribute> attributes;
    for (const AttributeDef& a : node.attributes) attributes.push_back(write_attribute(a));
    const auto name = text(node.name);
    const auto domain = text(node.domain);
    const auto op_type = text(node.op_type);
    const auto inputs = texts(node.inputs);
    const auto outputs = texts(node.outputs);
    const auto attribute_list = builder_.CreateVector(attributes);
    const auto counts = builder_.CreateVector(std::vector<int32_t>(node.inputs.size(), 1));
    const auto implicit = texts({});
    return schema::CreateNode(builder_, name, 0, domain, node.since_version, index, op_type,
                              schema::NodeType::Primitive, 0, inputs, outputs, attribute_list,
                              counts, implicit);
  }

  auto write_sparse(const std::vector<OrtSparseInitializer>& list) {
    Offsets<schema::SparseTensor> offsets;
    for (const OrtSparseInitializer& sparse : list) {
      const auto values = write_tensor(sparse.name, sparse.values);
      const auto indices = write_tensor("", sparse.indices);
      const auto dims = builder_.CreateVector(sparse.dims);
      offsets.push_back(schema::CreateSparseTensor(builder_, values, indices, dims));
    }
    return builder_.CreateVector(offsets);
  }

  Offset<schema::RuntimeOptimizations> write_runtime_optimizations() {
    const auto indices = schema::CreateNodesToOptimizeIndices(
        builder_, builder_.CreateVector(std::vector<uint32_t>{0}), 0, 1);
    const auto action = text("ConvAct");
    const auto produced = texts({"com.microsoft:FusedConv:1"});
    Offsets<schema::RuntimeOptimizationRecord> records = {
        schema::CreateRuntimeOptimizationRecord(builder_, action, indices, produced)};
    const auto optimizer = text("ConvActivationFusion");
    Offsets<schema::RuntimeOptimizationRecordContainerEntry> entries = {
        schema::CreateRuntimeOptimizationRecordContainerEntry(builder_, optimizer,
                                                              builder_.CreateVector(records))};
    return schema::CreateRuntimeOptimizations(builder_,
                                              builder_.CreateVectorOfSortedTables(&entries));
  }

  Offset<schema::Graph> write_graph(const GraphDef& graph,
                                    const std::vector<OrtSparseInitializer>* sparse) {
    const auto names = [](const std::vector<ValueDef>& values) {
      std::vector<std::string> out;
      for (const ValueDef& value : values) out.push_back(value.name);
      return out;
    };
    Offsets<schema::Tensor> initializers;
    for (const InitializerDef& initializer : graph.initializers) {
      initializers.push_back(write_tensor(initializer.name, initializer.tensor));
    }
    Offsets<schema::Node> nodes;
    for (const NodeDef& node : graph.nodes) {
      nodes.push_back(write_node(node, static_cast<uint32_t>(nodes.size())));
    }
    const auto initializer_list = builder_.CreateVector(initializers);
    const auto values = write_values(graph);
    const auto node_list = builder_.CreateVector(nodes);
    const auto inputs = texts(names(graph.inputs));
    const auto outputs = texts(names(graph.outputs));
    const bool is_main = sparse != nullptr;
    const auto sparse_list = is_main && !sparse->empty() ? write_sparse(*sparse) : 0;
    const auto optimizations =
        is_main && options_.with_runtime_optimizations ? write_runtime_optimizations() : 0;
    return schema::CreateGraph(builder_, initializer_list, values, node_list,
                               static_cast<uint32_t>(nodes.size()), 0, inputs, outputs, sparse_list,
                               optimizations);
  }

  Offset<schema::Model> write_model(const ModelDef& model) {
    Offsets<schema::OperatorSetId> opsets;
    for (const OpsetImport& import : model.opsets) {
      const auto domain = text(import.domain);
      opsets.push_back(schema::CreateOperatorSetId(builder_, domain, import.version));
    }
    Offsets<schema::StringStringEntry> metadata;
    for (const auto& [key, value] : model.metadata) {
      const auto key_text = text(key);
      const auto value_text = text(value);
      metadata.push_back(schema::CreateStringStringEntry(builder_, key_text, value_text));
    }
    const auto opset_list = builder_.CreateVector(opsets);
    const auto producer_name = text(model.producer_name);
    const auto producer_version = text(model.producer_version);
    const auto domain = text(model.domain);
    const auto doc_string = text(model.doc_string);
    const auto graph = write_graph(model.graph, &options_.sparse_initializers);
    const auto graph_doc_string = text(model.graph_doc_string);
    const auto metadata_list = builder_.CreateVector(metadata);
    return schema::CreateModel(builder_, model.ir_version, opset_list, producer_name,
                               producer_version, domain, model.model_version, doc_string, graph,
                               graph_doc_string, metadata_list);
  }

  const OrtWriteOptions& options_;
  flatbuffers::FlatBufferBuilder builder_;
};

}  // namespace

std::string write_ort(const ModelDef& model, const OrtWriteOptions& options) {
  return OrtWriter(options).write(model);
}

Tensor ort_float_tensor(const std::vector<float>& values, const Shape& shape) {
  Tensor tensor = allocate_tensor(DType::kFloat, shape).take();
  std::copy(values.begin(), values.end(), tensor.data_mut<float>());
  return tensor;
}

ValueDef ort_float_value(std::string name, const std::vector<int64_t>& dims) {
  ValueDef value;
  value.name = std::move(name);
  value.type.kind = TypeInfo::Kind::kTensor;
  value.type.dtype = DType::kFloat;
  value.type.has_shape = true;
  for (const int64_t dim : dims) value.type.dims.push_back({DimDef::Kind::kValue, dim, ""});
  return value;
}

ModelDef ort_add_model(int64_t w_count) {
  ModelDef model;
  model.ir_version = 8;
  model.opsets = {{"", 14}};
  model.graph.inputs = {ort_float_value("x", {w_count})};
  model.graph.outputs = {ort_float_value("y", {w_count})};
  std::vector<float> values(static_cast<size_t>(w_count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  InitializerDef w;
  w.name = "w";
  w.tensor = ort_float_tensor(values, {w_count});
  model.graph.initializers.push_back(std::move(w));
  NodeDef add;
  add.name = "add";
  add.op_type = "Add";
  add.since_version = 14;
  add.inputs = {"x", "w"};
  add.outputs = {"y"};
  model.graph.nodes.push_back(std::move(add));
  return model;
}

}  // namespace folio
