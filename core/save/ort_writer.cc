#include "core/save/ort_writer.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/formats/ort/ort_data_file.h"
#include "core/formats/ort/ort_schema_generated.h"
#include "core/save/op_schemas.h"

namespace folio {
namespace {

namespace schema = ort_schema;

template <typename T>
using Offset = flatbuffers::Offset<T>;
template <typename T>
using Offsets = std::vector<Offset<T>>;
template <typename T>
using TableVector = Offset<flatbuffers::Vector<Offset<T>>>;
using Text = Offset<flatbuffers::String>;

// Smaller constants stand among the structure.
constexpr uint64_t kStreamedFrom = 1024;
constexpr const char* kVersionWithResolver = "6";
constexpr const char* kVersionWithout = "4";

// The values that names mean in a graph and those around it.
struct TypeScope {
  const TypeScope* outer = nullptr;
  std::map<std::string, const TypeDef*> types = {};
  std::vector<std::unique_ptr<TypeDef>> own = {};

  const TypeDef* find(const std::string& name) const {
    const auto at = types.find(name);
    if (at != types.end()) return at->second;
    return outer ? outer->find(name) : nullptr;
  }
};

}  // namespace

class OrtFileWriter::Structure {
 public:
  Structure(const ExportedModel& exported, const PayloadLayout& external, std::string binding)
      : exported_(exported), external_(external), binding_(std::move(binding)) {}

  Status build(const PayloadWriter& payloads);
  uint64_t size() const { return layout_.end; }
  Status write(PayloadWriter* payloads, NewFile* file);

 private:
  // The builder itself only asserts its limit. False is remembered: build() then fails.
  bool has_room(size_t bytes) {
    constexpr size_t kSlack = 1 << 20;
    too_large_ = too_large_ || bytes > kMaxOrtBytes - kSlack ||
                 builder_.GetSize() > kMaxOrtBytes - kSlack - bytes;
    return !too_large_;
  }
  Text text(const std::string& value) { return builder_.CreateSharedString(value); }
  Offset<flatbuffers::Vector<Text>> texts(const std::vector<std::string>& values);
  Offset<flatbuffers::Vector<uint8_t>> bytes(const Tensor& tensor);

  Status write_type(const TypeDef& type, Offset<schema::TypeInfo>* out);
  Status write_values(const GraphDef& graph, const TypeScope& scope,
                      TableVector<schema::ValueInfo>* out);
  Offset<schema::Tensor> write_tensor(const Tensor& tensor);
  Status write_initializer(const InitializerDef& from, size_t payload, Offset<schema::Tensor>* out);
  Status write_attribute(const AttributeDef& from, const TypeScope& scope,
                         Offset<schema::Attribute>* out);
  Status write_node(const NodeDef& from, uint32_t index, const TypeScope& scope,
                    Offset<schema::Node>* out);
  std::vector<int32_t> note_schema(const NodeDef& node, int32_t* since);
  [[gnu::cold]] Status write_graph(const GraphDef& from, const TypeScope* outer,
                                   Offset<schema::Graph>* out);
  Status write_model(Offset<schema::Model>* out);
  Offset<schema::KernelTypeStrResolver> write_resolver();
  void place_payloads();

  const ExportedModel& exported_;
  const PayloadLayout& external_;
  const std::string binding_;
  const PayloadWriter* payloads_ = nullptr;
  flatbuffers::FlatBufferBuilder builder_;
  Offset<flatbuffers::Vector<uint8_t>> placeholder_;  // what streamed tensors refer to at first
  std::vector<std::pair<Offset<schema::Tensor>, size_t>> streamed_;
  std::map<std::string, OpSchema> schemas_;  // by op_id
  bool all_schemas_known_ = true;
  bool too_large_ = false;
  PayloadLayout layout_;
};

Offset<flatbuffers::Vector<Text>> OrtFileWriter::Structure::texts(
    const std::vector<std::string>& values) {
  std::vector<Text> offsets;
  for (const std::string& value : values) {
    if (!has_room(value.size())) break;
    offsets.push_back(text(value));
  }
  return builder_.CreateVector(offsets);
}

Offset<flatbuffers::Vector<uint8_t>> OrtFileWriter::Structure::bytes(const Tensor& tensor) {
  if (!has_room(tensor.bytes())) return placeholder_;
  // ForceVectorAlignment does the same, but asserts that nobody wants more than 32.
  builder_.PreAlign(tensor.bytes(), kDataAlignment);
  // A tensor without elements may have no memory, and the builder wants an address.
  static constexpr uint8_t kNothing = 0;
  return builder_.CreateVector(tensor.bytes() > 0 ? tensor.raw() : &kNothing, tensor.bytes());
}

Status OrtFileWriter::Structure::write_type(const TypeDef& type, Offset<schema::TypeInfo>* out) {
  const auto dtype = static_cast<schema::TensorDataType>(type.dtype);
  auto member = schema::TypeInfoValue::NONE;
  Offset<void> value;
  Offset<schema::TypeInfo> element;
  if (type.element) FOLIO_RETURN_IF_ERROR(write_type(*type.element, &element));
  if (type.kind == TypeInfo::Kind::kTensor) {
    Offset<schema::Shape> shape;
    if (type.has_shape) {
      Offsets<schema::Dimension> dims;
      for (const DimDef& dim : type.dims) {
        const auto kind = static_cast<schema::DimensionValueType>(dim.kind);  // the same numbers
        const Text param = dim.kind == DimDef::Kind::kParam ? text(dim.param) : Text();
        dims.push_back(schema::CreateDimension(
            builder_, schema::CreateDimensionValue(builder_, kind, dim.value, param)));
      }
      shape = schema::CreateShape(builder_, builder_.CreateVector(dims));
    }
    member = schema::TypeInfoValue::tensor_type;
    value = schema::CreateTensorTypeAndShape(builder_, dtype, shape).Union();
  } else if (type.kind == TypeInfo::Kind::kSequence) {
    member = schema::TypeInfoValue::sequence_type;
    value = schema::CreateSequenceType(builder_, element).Union();
  } else if (type.kind == TypeInfo::Kind::kMap) {
    member = schema::TypeInfoValue::map_type;
    value = schema::CreateMapType(builder_, dtype, element).Union();
  } else if (type.kind != TypeInfo::Kind::kUnknown) {
    return not_implemented("optional and sparse types cannot be stored in an .ort file");
  }
  *out = schema::CreateTypeInfo(builder_, 0, member, value);
  return Status::ok();
}

// One entry for each name that occurs in the graph; "" stands for absent inputs.
Status OrtFileWriter::Structure::write_values(const GraphDef& graph, const TypeScope& scope,
                                              TableVector<schema::ValueInfo>* out) {
  std::set<std::string> names;
  for (const auto* list : {&graph.inputs, &graph.outputs}) {
    for (const ValueDef& value : *list) names.insert(value.name);
  }
  for (const InitializerDef& initializer : graph.initializers) names.insert(initializer.name);
  for (const NodeDef& node : graph.nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    names.insert(node.outputs.begin(), node.outputs.end());
    const auto implicit = exported_.implicit_inputs.find(&node);
    if (implicit == exported_.implicit_inputs.end()) continue;
    names.insert(implicit->second.begin(), implicit->second.end());
  }
  Offsets<schema::ValueInfo> values;
  for (const std::string& name : names) {
    const TypeDef* type = name.empty() ? nullptr : scope.find(name);
    Offset<schema::TypeInfo> info;
    if (type && type->kind != TypeInfo::Kind::kUnknown) {
      FOLIO_RETURN_IF_ERROR(write_type(*type, &info).with_context(cat("value '", name, "'")));
    }
    const Text name_offset = text(name);
    values.push_back(schema::CreateValueInfo(builder_, name_offset, 0, info));
  }
  *out = builder_.CreateVector(values);
  return Status::ok();
}

// One that an attribute holds.
Offset<schema::Tensor> OrtFileWriter::Structure::write_tensor(const Tensor& tensor) {
  const Text name = text("");
  const auto dims =
      builder_.CreateVector(tensor.shape().dims().data(), tensor.shape().dims().size());
  const auto type = static_cast<schema::TensorDataType>(tensor.dtype());
  Offset<flatbuffers::Vector<uint8_t>> raw;
  Offset<flatbuffers::Vector<Text>> strings;
  if (tensor.is_string()) {
    const auto all = tensor.span<std::string>();
    strings = texts({all.begin(), all.end()});
  } else {
    raw = bytes(tensor);
  }
  return schema::CreateTensor(builder_, name, 0, dims, type, raw, strings);
}

Status OrtFileWriter::Structure::write_initializer(const InitializerDef& from, size_t index,
                                                   Offset<schema::Tensor>* out) {
  const Payload& payload = exported_.payloads[index];
  const Text name = text(from.name);
  const auto dims =
      builder_.CreateVector(from.tensor.shape().dims().data(), from.tensor.shape().dims().size());
  const auto type = static_cast<schema::TensorDataType>(from.tensor.dtype());
  Offset<flatbuffers::Vector<uint8_t>> raw;
  Offset<flatbuffers::Vector<Text>> strings;
  int64_t external = -1;
  const bool is_streamed = layout_.offsets[index] != PayloadLayout::kInline;
  if (external_.offsets[index] != PayloadLayout::kInline) {
    external = static_cast<int64_t>(external_.offsets[index]);
  } else if (is_streamed) {
    raw = placeholder_;
  } else {
    FOLIO_TRY(const Tensor tensor, payloads_->tensor(payload));
    if (tensor.is_string()) {
      const auto all = tensor.span<std::string>();
      strings = texts({all.begin(), all.end()});
    } else {
      raw = bytes(tensor);
    }
  }
  *out = schema::CreateTensor(builder_, name, 0, dims, type, raw, strings, external);
  if (is_streamed) streamed_.emplace_back(*out, index);
  return Status::ok();
}

Status OrtFileWriter::Structure::write_attribute(const AttributeDef& from, const TypeScope& scope,
                                                 Offset<schema::Attribute>* out) {
  using Type = AttributeDef::Type;
  Type type = from.type;
  // Sparse tensors were made dense when they were read.
  if (type == Type::kSparseTensor) type = Type::kTensor;
  if (type == Type::kSparseTensors) type = Type::kTensors;
  if (type == Type::kTypeProto || type == Type::kTypeProtos) {
    return not_implemented("attribute '", from.name,
                           "' is a type, which cannot be stored in an .ort file");
  }
  const Text name = text(from.name);
  const auto floats = builder_.CreateVector(from.floats);
  const auto ints = builder_.CreateVector(from.ints);
  const auto strings = texts(from.strings);
  Offsets<schema::Tensor> tensors;
  for (const Tensor& tensor : from.tensors) tensors.push_back(write_tensor(tensor));
  Offsets<schema::Graph> graphs;
  for (const auto& graph : from.graphs) {
    FOLIO_RETURN_IF_ERROR(write_graph(*graph, &scope, &graphs.emplace_back()));
  }
  const Text s = type == Type::kString ? text(first_of(from.strings)) : Text();
  const auto tensor_list = builder_.CreateVector(tensors);
  const auto graph_list = builder_.CreateVector(graphs);
  schema::AttributeBuilder attribute(builder_);
  attribute.add_name(name);
  attribute.add_type(static_cast<schema::AttributeType>(type));
  if (type == Type::kFloat) attribute.add_f(first_of(from.floats));
  if (type == Type::kInt) attribute.add_i(first_of(from.ints));
  if (type == Type::kString) attribute.add_s(s);
  if (type == Type::kTensor && !tensors.empty()) attribute.add_t(tensors[0]);
  if (type == Type::kGraph && !graphs.empty()) attribute.add_g(graphs[0]);
  if (type == Type::kFloats) attribute.add_floats(floats);
  if (type == Type::kInts) attribute.add_ints(ints);
  if (type == Type::kStrings) attribute.add_strings(strings);
  if (type == Type::kTensors) attribute.add_tensors(tensor_list);
  if (type == Type::kGraphs) attribute.add_graphs(graph_list);
  *out = attribute.Finish();
  return Status::ok();
}

// How many inputs each formal input takes; the version that defined the operator.
std::vector<int32_t> OrtFileWriter::Structure::note_schema(const NodeDef& node, int32_t* since) {
  OpSchema schema;
  *since = node.since_version;
  const size_t given = node.inputs.size();
  if (!find_op_schema(node.domain, node.op_type, node.since_version, &schema)) {
    all_schemas_known_ = false;
    return std::vector<int32_t>(given, 1);
  }
  *since = schema.since;
  const size_t formal = schema.inputs.size();
  std::vector<int32_t> counts;
  for (size_t i = 0; i < formal; ++i) {
    const bool takes_rest = schema.variadic_input && i + 1 == formal;
    const size_t here = i >= given ? 0 : takes_rest ? given - i : 1;
    counts.push_back(static_cast<int32_t>(here));
  }
  schemas_.emplace(cat(node.domain, ":", node.op_type, ":", schema.since), std::move(schema));
  return counts;
}

Status OrtFileWriter::Structure::write_node(const NodeDef& from, uint32_t index,
                                            const TypeScope& scope, Offset<schema::Node>* out) {
  Offsets<schema::Attribute> attributes;
  for (const AttributeDef& attribute : from.attributes) {
    if (attribute.type == AttributeDef::Type::kUndefined) continue;  // it has no value
    FOLIO_RETURN_IF_ERROR(write_attribute(attribute, scope, &attributes.emplace_back())
                              .with_context(cat("node '", from.name, "' (", from.op_type, ")")));
  }
  int32_t since = 0;
  const std::vector<int32_t> counts = note_schema(from, &since);
  const auto implicit = exported_.implicit_inputs.find(&from);
  const auto implicit_names =
      implicit == exported_.implicit_inputs.end() ? std::vector<std::string>() : implicit->second;
  const Text name = text(from.name);
  const Text doc = text("");
  const Text domain = text(from.domain);
  const Text op_type = text(from.op_type);
  const Text provider = text("");
  const auto inputs = texts(from.inputs);
  const auto outputs = texts(from.outputs);
  const auto attribute_list = builder_.CreateVector(attributes);
  const auto count_list = builder_.CreateVector(counts);
  const auto implicit_list = texts(implicit_names);
  *out = schema::CreateNode(builder_, name, doc, domain, since, index, op_type,
                            schema::NodeType::Primitive, provider, inputs, outputs, attribute_list,
                            count_list, implicit_list);
  return Status::ok();
}

Status OrtFileWriter::Structure::write_graph(const GraphDef& from, const TypeScope* outer,
                                             Offset<schema::Graph>* out) {
  TypeScope scope{outer};
  for (const auto* list : {&from.inputs, &from.outputs, &from.values}) {
    for (const ValueDef& value : *list) scope.types.emplace(value.name, &value.type);
  }
  for (const InitializerDef& initializer : from.initializers) {
    scope.own.push_back(std::make_unique<TypeDef>());
    TypeDef& type = *scope.own.back();
    type.kind = TypeInfo::Kind::kTensor;
    type.dtype = initializer.tensor.dtype();
    type.has_shape = true;
    for (const int64_t dim : initializer.tensor.shape().dims()) {
      type.dims.push_back({DimDef::Kind::kValue, dim, ""});
    }
    scope.types.emplace(initializer.name, &type);
  }
  Offsets<schema::Tensor> initializers;
  const auto payloads = exported_.initializer_payloads.find(&from);
  for (size_t i = 0; i < from.initializers.size(); ++i) {
    FOLIO_RETURN_IF_ERROR(
        write_initializer(from.initializers[i], payloads->second[i], &initializers.emplace_back()));
  }
  Offsets<schema::Node> nodes;
  for (const NodeDef& node : from.nodes) {
    const auto index = static_cast<uint32_t>(nodes.size());
    Offset<schema::Node> offset;
    FOLIO_RETURN_IF_ERROR(write_node(node, index, scope, &offset));
    nodes.push_back(offset);
  }
  TableVector<schema::ValueInfo> values;
  FOLIO_RETURN_IF_ERROR(write_values(from, scope, &values));
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  for (const ValueDef& value : from.inputs) inputs.push_back(value.name);
  for (const ValueDef& value : from.outputs) outputs.push_back(value.name);
  const auto initializer_list = builder_.CreateVector(initializers);
  const auto node_list = builder_.CreateVector(nodes);
  const auto input_list = texts(inputs);
  const auto output_list = texts(outputs);
  *out = schema::CreateGraph(builder_, initializer_list, values, node_list,
                             static_cast<uint32_t>(from.nodes.size()), 0, input_list, output_list);
  return Status::ok();
}

Status OrtFileWriter::Structure::write_model(Offset<schema::Model>* out) {
  const ModelDef& from = exported_.def;
  Offset<schema::Graph> graph;
  FOLIO_RETURN_IF_ERROR(write_graph(from.graph, nullptr, &graph));
  Offsets<schema::OperatorSetId> opsets;
  for (const OpsetImport& import : from.opsets) {
    const Text domain = text(import.domain);
    opsets.push_back(schema::CreateOperatorSetId(builder_, domain, import.version));
  }
  Offsets<schema::StringStringEntry> metadata;
  const auto add_metadata = [&](const std::string& key, const std::string& value) {
    const Text key_text = text(key);
    const Text value_text = text(value);
    metadata.push_back(schema::CreateStringStringEntry(builder_, key_text, value_text));
  };
  for (const auto& [key, value] : from.metadata) add_metadata(key, value);
  if (!binding_.empty()) add_metadata(kOrtDataFileKey, binding_);
  const auto opset_list = builder_.CreateVector(opsets);
  const Text producer = text(from.producer_name);
  const Text producer_version = text(from.producer_version);
  const Text domain = text(from.domain);
  const Text doc = text(from.doc_string);
  const Text graph_doc = text(from.graph_doc_string);
  const auto metadata_list = builder_.CreateVector(metadata);
  *out = schema::CreateModel(builder_, from.ir_version, opset_list, producer, producer_version,
                             domain, from.model_version, doc, graph, graph_doc, metadata_list);
  return Status::ok();
}

Offset<schema::KernelTypeStrResolver> OrtFileWriter::Structure::write_resolver() {
  Offsets<schema::OpIdKernelTypeStrArgsEntry> entries;
  for (const auto& [op_id, op] : schemas_) {
    std::map<std::string, Offsets<schema::ArgTypeAndIndex>> args;
    const auto add = [&](schema::ArgType kind, const std::vector<std::string_view>& list) {
      for (size_t i = 0; i < list.size(); ++i) {
        args[std::string(list[i])].push_back(
            schema::CreateArgTypeAndIndex(builder_, kind, static_cast<uint32_t>(i)));
      }
    };
    add(schema::ArgType::INPUT, op.inputs);
    add(schema::ArgType::OUTPUT, op.outputs);
    Offsets<schema::KernelTypeStrArgsEntry> of_op;
    for (const auto& [parameter, places] : args) {
      const Text parameter_text = text(parameter);
      const auto list = builder_.CreateVector(places);
      of_op.push_back(schema::CreateKernelTypeStrArgsEntry(builder_, parameter_text, list));
    }
    const Text id = text(op_id);
    const auto list = builder_.CreateVectorOfSortedTables(&of_op);
    entries.push_back(schema::CreateOpIdKernelTypeStrArgsEntry(builder_, id, list));
  }
  const auto list = builder_.CreateVectorOfSortedTables(&entries);
  return schema::CreateKernelTypeStrResolver(builder_, list);
}

Status OrtFileWriter::Structure::build(const PayloadWriter& payloads) {
  payloads_ = &payloads;
  // Which are streamed is known now, where they stand once the structure is made.
  layout_ = lay_out(exported_.payloads, 0, kStreamedFrom, sizeof(uint32_t));
  for (size_t i = 0; i < layout_.offsets.size(); ++i) {
    if (external_.offsets[i] != PayloadLayout::kInline) layout_.offsets[i] = PayloadLayout::kInline;
  }
  placeholder_ = builder_.CreateVector(std::vector<uint8_t>());
  Offset<schema::Model> model;
  FOLIO_RETURN_IF_ERROR(write_model(&model));
  if (too_large_) {
    return invalid_argument("names, strings and small constants alone take more than the ",
                            kMaxOrtBytes, " bytes that an .ort file may have");
  }
  Offset<schema::KernelTypeStrResolver> resolver;
  if (all_schemas_known_) resolver = write_resolver();
  const Text version = text(all_schemas_known_ ? kVersionWithResolver : kVersionWithout);
  builder_.Finish(schema::CreateInferenceSession(builder_, version, model, resolver),
                  schema::InferenceSessionIdentifier());
  place_payloads();
  if (size() <= kMaxOrtBytes) return Status::ok();
  return invalid_argument("the .ort file would have ", size(), " bytes, at most ", kMaxOrtBytes,
                          " are possible");
}

// The references to streamed payloads are offsets from where they stand: these are the files' own.
void OrtFileWriter::Structure::place_payloads() {
  std::vector<Payload> streamed = exported_.payloads;
  for (size_t i = 0; i < streamed.size(); ++i) {
    // Without bytes nothing is laid out.
    if (layout_.offsets[i] == PayloadLayout::kInline) streamed[i].bytes = 0;
  }
  layout_ = folio::lay_out(streamed, builder_.GetSize(), kStreamedFrom, sizeof(uint32_t));
  uint8_t* const start = builder_.GetBufferPointer();
  for (const auto& [tensor, index] : streamed_) {
    const auto* table =
        reinterpret_cast<const flatbuffers::Table*>(start + builder_.GetSize() - tensor.o);
    const uint8_t* field = table->GetAddressOf(schema::Tensor::VT_RAW_DATA);
    const auto field_at = static_cast<uint64_t>(field - start);
    const uint64_t vector_at = layout_.offsets[index] - sizeof(uint32_t);
    flatbuffers::WriteScalar(start + field_at,
                             static_cast<flatbuffers::uoffset_t>(vector_at - field_at));
  }
}

Status OrtFileWriter::Structure::write(PayloadWriter* payloads, NewFile* file) {
  FOLIO_RETURN_IF_ERROR(file->write({builder_.GetBufferPointer(), builder_.GetSize()}));
  return payloads->write_all(layout_, file);
}

OrtFileWriter::OrtFileWriter(const ExportedModel& exported, const PayloadLayout& external,
                             std::string binding)
    : structure_(std::make_unique<Structure>(exported, external, std::move(binding))) {}
OrtFileWriter::~OrtFileWriter() = default;

Status OrtFileWriter::build(const PayloadWriter& payloads) { return structure_->build(payloads); }
uint64_t OrtFileWriter::size() const { return structure_->size(); }
Status OrtFileWriter::write(PayloadWriter* payloads, NewFile* file) {
  return structure_->write(payloads, file);
}

}  // namespace folio
