#include "core/save/onnx_writer.h"

#include "core/formats/onnx/onnx_fields.h"

namespace folio {
namespace {

void add_strings(uint32_t field, const Tensor& tensor, ProtoRope* out) {
  for (const std::string& text : tensor.span<std::string>()) out->add_text(field, text);
}

ProtoRope entry(std::string_view key, std::string_view value) {
  ProtoRope out;
  out.add_text(EntryFields::kKey, key);
  out.add_text(EntryFields::kValue, value);
  return out;
}

uint32_t type_field(TypeInfo::Kind kind) {
  switch (kind) {
    case TypeInfo::Kind::kTensor:
      return TypeFields::kTensor;
    case TypeInfo::Kind::kSequence:
      return TypeFields::kSequence;
    case TypeInfo::Kind::kMap:
      return TypeFields::kMap;
    case TypeInfo::Kind::kSparseTensor:
      return TypeFields::kSparseTensor;
    case TypeInfo::Kind::kOptional:
      return TypeFields::kOptional;
    case TypeInfo::Kind::kUnknown:
      break;
  }
  return 0;
}

ProtoRope shape_of(const std::vector<DimDef>& dims) {
  ProtoRope out;
  for (const DimDef& dim : dims) {
    ProtoRope one;
    if (dim.kind == DimDef::Kind::kValue) one.add_int(DimFields::kDimValue, dim.value);
    if (dim.kind == DimDef::Kind::kParam) one.add_text(DimFields::kDimParam, dim.param);
    out.add_message(ShapeFields::kDim, std::move(one));
  }
  return out;
}

// Something that a reader can use: a tensor of known element type, or something of such.
bool is_known(const TypeDef& type) {
  if (type.kind == TypeInfo::Kind::kUnknown) return false;
  if (type.element) return is_known(*type.element);
  return type.dtype != DType::kUndefined;
}

}  // namespace

OnnxWriter::OnnxWriter(const ExportedModel& exported, const PayloadLayout& external,
                       std::string location)
    : exported_(exported), external_(external), location_(std::move(location)) {}

ProtoRope OnnxWriter::type(const TypeDef& from) const {
  ProtoRope out;
  const uint32_t field = type_field(from.kind);
  if (field == 0) return out;
  ProtoRope member;
  switch (from.kind) {
    case TypeInfo::Kind::kTensor:
    case TypeInfo::Kind::kSparseTensor:
      member.add_int(TensorTypeFields::kElemType, static_cast<int64_t>(from.dtype));
      if (from.has_shape) member.add_message(TensorTypeFields::kShape, shape_of(from.dims));
      break;
    case TypeInfo::Kind::kMap:
      member.add_int(MapTypeFields::kKeyType, static_cast<int64_t>(from.dtype));
      if (from.element) member.add_message(MapTypeFields::kValueType, type(*from.element));
      break;
    default:
      if (from.element) member.add_message(ElementTypeFields::kElemType, type(*from.element));
      break;
  }
  out.add_message(field, std::move(member));
  return out;
}

ProtoRope OnnxWriter::value(const ValueDef& from) const {
  ProtoRope out;
  out.add_text(ValueInfoFields::kName, from.name);
  if (is_known(from.type)) out.add_message(ValueInfoFields::kType, type(from.type));
  return out;
}

ProtoRope OnnxWriter::tensor_head(const Tensor& tensor, const std::string& name) const {
  ProtoRope out;
  for (const int64_t dim : tensor.shape().dims()) out.add_int(TensorFields::kDims, dim);
  out.add_int(TensorFields::kDataType, static_cast<int64_t>(tensor.dtype()));
  out.add_text_if(TensorFields::kName, name);
  return out;
}

ProtoRope OnnxWriter::attribute_tensor(const Tensor& tensor) const {
  ProtoRope out = tensor_head(tensor, "");
  if (tensor.is_string()) {
    add_strings(TensorFields::kStringData, tensor, &out);
  } else {
    out.add_text(TensorFields::kRawData,
                 {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()});
  }
  return out;
}

ProtoRope OnnxWriter::initializer(const InitializerDef& from, size_t index) const {
  ProtoRope out = tensor_head(from.tensor, from.name);
  const Payload& payload = exported_.payloads[index];
  if (payload.is_string) {
    // Strings have no recipe: nothing that folds gives a large tensor of them.
    if (payload.initializer->tensor) {
      add_strings(TensorFields::kStringData, *payload.initializer->tensor, &out);
    }
    return out;
  }
  const uint64_t offset = external_.offsets[index];
  if (offset == PayloadLayout::kInline) {
    out.add_payload(TensorFields::kRawData, index, payload.bytes);
    return out;
  }
  out.add_message(TensorFields::kExternalData, entry("location", location_));
  out.add_message(TensorFields::kExternalData, entry("offset", std::to_string(offset)));
  out.add_message(TensorFields::kExternalData, entry("length", std::to_string(payload.bytes)));
  out.add_int(TensorFields::kDataLocation, TensorFields::kLocationExternal);
  return out;
}

ProtoRope OnnxWriter::attribute(const AttributeDef& from) const {
  using Type = AttributeDef::Type;
  ProtoRope out;
  out.add_text(AttributeFields::kName, from.name);
  // A sparse tensor was made dense when it was read.
  Type type = from.type;
  if (type == Type::kSparseTensor) type = Type::kTensor;
  if (type == Type::kSparseTensors) type = Type::kTensors;
  if (type == Type::kFloat) out.add_float(AttributeFields::kF, first_of(from.floats));
  if (type == Type::kInt) out.add_int(AttributeFields::kI, first_of(from.ints));
  if (type == Type::kString) out.add_text(AttributeFields::kS, first_of(from.strings));
  if (type == Type::kFloats) out.add_packed_floats(AttributeFields::kFloats, from.floats);
  if (type == Type::kInts) out.add_packed_ints(AttributeFields::kInts, from.ints);
  if (type == Type::kStrings) {
    for (const std::string& text : from.strings) out.add_text(AttributeFields::kStrings, text);
  }
  for (const Tensor& tensor : from.tensors) {
    out.add_message(type == Type::kTensor ? AttributeFields::kT : AttributeFields::kTensors,
                    attribute_tensor(tensor));
  }
  for (const auto& each : from.graphs) {
    out.add_message(type == Type::kGraph ? AttributeFields::kG : AttributeFields::kGraphs,
                    graph(*each));
  }
  for (const TypeDef& each : from.types) {
    out.add_message(type == Type::kTypeProto ? AttributeFields::kTp : AttributeFields::kTypeProtos,
                    this->type(each));
  }
  out.add_int(AttributeFields::kType, static_cast<int64_t>(type));
  return out;
}

ProtoRope OnnxWriter::node(const NodeDef& from) const {
  ProtoRope out;
  // An absent input is an empty name.
  for (const std::string& input : from.inputs) out.add_text(NodeFields::kInput, input);
  for (const std::string& output : from.outputs) out.add_text(NodeFields::kOutput, output);
  out.add_text_if(NodeFields::kName, from.name);
  out.add_text(NodeFields::kOpType, from.op_type);
  for (const AttributeDef& each : from.attributes) {
    out.add_message(NodeFields::kAttribute, attribute(each));
  }
  out.add_text_if(NodeFields::kDomain, from.domain);
  return out;
}

ProtoRope OnnxWriter::graph(const GraphDef& from) const {
  ProtoRope out;
  for (const NodeDef& each : from.nodes) out.add_message(GraphFields::kNode, node(each));
  out.add_text(GraphFields::kName, from.name);
  const auto payloads = exported_.initializer_payloads.find(&from);
  for (size_t i = 0; i < from.initializers.size(); ++i) {
    out.add_message(GraphFields::kInitializer,
                    initializer(from.initializers[i], payloads->second[i]));
  }
  if (&from == &exported_.def.graph) {
    out.add_text_if(GraphFields::kDocString, exported_.def.graph_doc_string);
  }
  for (const ValueDef& each : from.inputs) out.add_message(GraphFields::kInput, value(each));
  for (const ValueDef& each : from.outputs) out.add_message(GraphFields::kOutput, value(each));
  for (const ValueDef& each : from.values) {
    if (is_known(each.type)) out.add_message(GraphFields::kValueInfo, value(each));
  }
  return out;
}

void OnnxWriter::lay_out() {
  const ModelDef& from = exported_.def;
  ProtoRope out;
  out.add_int(ModelFields::kIrVersion, from.ir_version);
  out.add_text_if(ModelFields::kProducerName, from.producer_name);
  out.add_text_if(ModelFields::kProducerVersion, from.producer_version);
  out.add_text_if(ModelFields::kDomain, from.domain);
  if (from.model_version != 0) out.add_int(ModelFields::kModelVersion, from.model_version);
  out.add_text_if(ModelFields::kDocString, from.doc_string);
  for (const OpsetImport& import : from.opsets) {
    ProtoRope opset;
    opset.add_text(OpsetFields::kDomain, import.domain);
    opset.add_int(OpsetFields::kVersion, import.version);
    out.add_message(ModelFields::kOpsetImport, std::move(opset));
  }
  for (const auto& [key, text] : from.metadata) {
    out.add_message(ModelFields::kMetadataProps, entry(key, text));
  }
  out.add_message(ModelFields::kGraph, graph(from.graph));
  model_ = std::move(out);
}

Status OnnxWriter::write(PayloadWriter* payloads, NewFile* file) const {
  if (size() > kMaxOnnxBytes) {
    return invalid_argument("the .onnx file would have ", size(), " bytes, at most ", kMaxOnnxBytes,
                            " are possible: keep large initializers in a file beside it");
  }
  for (const ProtoRope::Piece& piece : model_.pieces()) {
    FOLIO_RETURN_IF_ERROR(
        file->write({reinterpret_cast<const uint8_t*>(piece.text.data()), piece.text.size()}));
    if (piece.payload == ProtoRope::kNoPayload) continue;
    FOLIO_RETURN_IF_ERROR(payloads->write(exported_.payloads[piece.payload], file));
  }
  return Status::ok();
}

}  // namespace folio
