#include "tests/support/wire_tree.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "core/formats/onnx/onnx_fields.h"

namespace folio::testing {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

constexpr int kMaxDepth = 50;

struct Inside {
  MessageKind kind;
  uint32_t tag;
  MessageKind inside;
};

constexpr Inside kInsides[] = {
    {MessageKind::kModel, ModelFields::kGraph, MessageKind::kGraph},
    {MessageKind::kModel, ModelFields::kOpsetImport, MessageKind::kOpset},
    {MessageKind::kModel, ModelFields::kFunctions, MessageKind::kFunction},
    {MessageKind::kGraph, GraphFields::kNode, MessageKind::kNode},
    {MessageKind::kGraph, GraphFields::kInitializer, MessageKind::kTensor},
    {MessageKind::kGraph, GraphFields::kInput, MessageKind::kValueInfo},
    {MessageKind::kGraph, GraphFields::kOutput, MessageKind::kValueInfo},
    {MessageKind::kGraph, GraphFields::kValueInfo, MessageKind::kValueInfo},
    {MessageKind::kGraph, GraphFields::kSparseInitializer, MessageKind::kSparseTensor},
    {MessageKind::kFunction, FunctionFields::kNode, MessageKind::kNode},
    {MessageKind::kFunction, FunctionFields::kOpsetImport, MessageKind::kOpset},
    {MessageKind::kFunction, FunctionFields::kAttributeProto, MessageKind::kAttribute},
    {MessageKind::kNode, NodeFields::kAttribute, MessageKind::kAttribute},
    {MessageKind::kAttribute, AttributeFields::kT, MessageKind::kTensor},
    {MessageKind::kAttribute, AttributeFields::kTensors, MessageKind::kTensor},
    {MessageKind::kAttribute, AttributeFields::kG, MessageKind::kGraph},
    {MessageKind::kAttribute, AttributeFields::kGraphs, MessageKind::kGraph},
    {MessageKind::kAttribute, AttributeFields::kTp, MessageKind::kType},
    {MessageKind::kAttribute, AttributeFields::kTypeProtos, MessageKind::kType},
    {MessageKind::kAttribute, AttributeFields::kSparseTensor, MessageKind::kSparseTensor},
    {MessageKind::kAttribute, AttributeFields::kSparseTensors, MessageKind::kSparseTensor},
    {MessageKind::kSparseTensor, SparseTensorFields::kValues, MessageKind::kTensor},
    {MessageKind::kSparseTensor, SparseTensorFields::kIndices, MessageKind::kTensor},
    {MessageKind::kValueInfo, ValueInfoFields::kType, MessageKind::kType},
    {MessageKind::kType, TypeFields::kTensor, MessageKind::kTensorType},
    {MessageKind::kType, TypeFields::kSequence, MessageKind::kElementType},
    {MessageKind::kType, TypeFields::kMap, MessageKind::kMapType},
    {MessageKind::kType, TypeFields::kSparseTensor, MessageKind::kTensorType},
    {MessageKind::kType, TypeFields::kOptional, MessageKind::kElementType},
    {MessageKind::kElementType, ElementTypeFields::kElemType, MessageKind::kType},
    {MessageKind::kMapType, MapTypeFields::kValueType, MessageKind::kType},
    {MessageKind::kTensorType, TensorTypeFields::kShape, MessageKind::kShape},
    {MessageKind::kShape, ShapeFields::kDim, MessageKind::kDim},
};

MessageKind inside_of(MessageKind kind, uint32_t tag) {
  for (const Inside& row : kInsides) {
    if (row.kind == kind && row.tag == tag) return row.inside;
  }
  return MessageKind::kNone;
}

// The wire type of the numbers of a list that may stand in one field, else unknown.
pbf_wire_type packed_type(MessageKind kind, uint32_t tag) {
  if (kind == MessageKind::kAttribute && tag == AttributeFields::kInts)
    return pbf_wire_type::varint;
  if (kind == MessageKind::kAttribute && tag == AttributeFields::kFloats)
    return pbf_wire_type::fixed32;
  if ((kind == MessageKind::kTensor && tag == TensorFields::kDims) ||
      (kind == MessageKind::kSparseTensor && tag == SparseTensorFields::kDims))
    return pbf_wire_type::varint;
  return pbf_wire_type::unknown;
}

void read_packed(pbf_reader* reader, pbf_wire_type wire, Fields* fields) {
  const uint32_t tag = reader->tag();
  if (wire == pbf_wire_type::varint) {
    for (const uint64_t number : reader->get_packed_uint64())
      fields->push_back(number_field(tag, wire, number));
  } else {
    for (const uint32_t number : reader->get_packed_fixed32())
      fields->push_back(number_field(tag, wire, number));
  }
}

void read_bytes(pbf_reader* reader, MessageKind kind, int depth, Fields* fields) {
  Field field;
  field.tag = reader->tag();
  field.wire = pbf_wire_type::length_delimited;
  const protozero::data_view view = reader->get_view();
  const std::string_view bytes(view.data(), view.size());
  const MessageKind inside = depth < kMaxDepth ? inside_of(kind, field.tag) : MessageKind::kNone;
  if (inside == MessageKind::kNone) {
    field.bytes = bytes;
  } else {
    field.inside = inside;
    field.fields = read_fields(bytes, inside, depth + 1);
  }
  fields->push_back(std::move(field));
}

}  // namespace

Field number_field(uint32_t tag, pbf_wire_type wire, uint64_t number) {
  Field field;
  field.tag = tag;
  field.wire = wire;
  field.number = number;
  return field;
}

Fields read_fields(std::string_view bytes, MessageKind kind, int depth) {
  Fields fields;
  pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    const pbf_wire_type packed = packed_type(kind, reader.tag());
    switch (reader.wire_type()) {
      case pbf_wire_type::varint:
        fields.push_back(number_field(reader.tag(), pbf_wire_type::varint, reader.get_uint64()));
        break;
      case pbf_wire_type::fixed32:
        fields.push_back(number_field(reader.tag(), pbf_wire_type::fixed32, reader.get_fixed32()));
        break;
      case pbf_wire_type::fixed64:
        fields.push_back(number_field(reader.tag(), pbf_wire_type::fixed64, reader.get_fixed64()));
        break;
      case pbf_wire_type::length_delimited:
        if (packed != pbf_wire_type::unknown) {
          read_packed(&reader, packed, &fields);
        } else {
          read_bytes(&reader, kind, depth, &fields);
        }
        break;
      default:
        reader.skip();
    }
  }
  return fields;
}

std::string write_fields(const Fields& fields) {
  std::string bytes;
  pbf_writer writer(bytes);
  for (const Field& field : fields) {
    switch (field.wire) {
      case pbf_wire_type::varint:
        writer.add_uint64(field.tag, field.number);
        break;
      case pbf_wire_type::fixed32:
        writer.add_fixed32(field.tag, static_cast<uint32_t>(field.number));
        break;
      case pbf_wire_type::fixed64:
        writer.add_fixed64(field.tag, field.number);
        break;
      default:
        writer.add_bytes(field.tag, field.inside == MessageKind::kNone
                                        ? field.bytes
                                        : write_fields(field.fields));
    }
  }
  return bytes;
}

}  // namespace folio::testing
