#include "core/formats/onnx/attribute_reader.h"

#include <bit>
#include <limits>

#include "core/formats/onnx/graph_reader.h"
#include "core/formats/onnx/onnx_fields.h"
#include "core/formats/onnx/tensor_reader.h"
#include "core/formats/onnx/type_reader.h"

namespace folio {
namespace {

using Type = AttributeDef::Type;

constexpr int64_t kTypeCount = 15;  // AttributeProto.AttributeType, UNDEFINED to TYPE_PROTOS

// What a first walk over the message finds: the declared type picks among the fields with values,
// and may come last. Almost always they have one type, so that they can be read meanwhile.
struct AttributeScan {
  int64_t type = 0;
  uint32_t filled = 0;  // bit per Type that has a field here
};

Status read_tensor_into(LoadContext& context, WireReader& reader, std::vector<Tensor>* out) {
  Bytes message;
  InitializerDef tensor;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
  FOLIO_RETURN_IF_ERROR(read_tensor(context, message, &tensor));
  out->push_back(std::move(tensor.tensor));
  return Status::ok();
}

Status read_sparse_into(LoadContext& context, WireReader& reader, std::vector<Tensor>* out) {
  Bytes message;
  InitializerDef tensor;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
  FOLIO_RETURN_IF_ERROR(read_sparse_tensor(context, message, &tensor));
  out->push_back(std::move(tensor.tensor));
  return Status::ok();
}

Status read_graph_into(LoadContext& context, WireReader& reader, int depth,
                       std::vector<std::shared_ptr<GraphDef>>* out) {
  Bytes message;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
  out->push_back(std::make_shared<GraphDef>());
  return read_graph(context, message, depth + 1, out->back().get());
}

Status read_type_into(LoadContext& context, WireReader& reader, std::vector<TypeDef>* out) {
  Bytes message;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
  return read_type(context, message, &out->emplace_back());
}

// The type whose values `field` carries; kUndefined for fields that carry none.
Type type_of_field(uint32_t field) {
  switch (field) {
    case AttributeFields::kF:
      return Type::kFloat;
    case AttributeFields::kI:
      return Type::kInt;
    case AttributeFields::kS:
      return Type::kString;
    case AttributeFields::kT:
      return Type::kTensor;
    case AttributeFields::kG:
      return Type::kGraph;
    case AttributeFields::kFloats:
      return Type::kFloats;
    case AttributeFields::kInts:
      return Type::kInts;
    case AttributeFields::kStrings:
      return Type::kStrings;
    case AttributeFields::kTensors:
      return Type::kTensors;
    case AttributeFields::kGraphs:
      return Type::kGraphs;
    case AttributeFields::kTp:
      return Type::kTypeProto;
    case AttributeFields::kTypeProtos:
      return Type::kTypeProtos;
    case AttributeFields::kSparseTensor:
      return Type::kSparseTensor;
    case AttributeFields::kSparseTensors:
      return Type::kSparseTensors;
    default:
      return Type::kUndefined;
  }
}

Status pick_type(const AttributeScan& scan, Type* out) {
  if (scan.type < 0 || scan.type >= kTypeCount) {
    return invalid_graph("attribute type ", scan.type, " is unknown");
  }
  *out = static_cast<Type>(scan.type);
  if (*out != Type::kUndefined || scan.filled == 0) return Status::ok();
  if (!std::has_single_bit(scan.filled)) {
    return invalid_graph("no type is declared and values of several types are given");
  }
  *out = static_cast<Type>(std::countr_zero(scan.filled));
  return Status::ok();
}

// Of a field that is not repeated the last one counts; make_place() has made room for it.
Status read_value(LoadContext& context, WireReader& reader, int depth, AttributeDef* out) {
  switch (out->type) {
    case Type::kFloat:
      return reader.read_float(out->floats.data());
    case Type::kInt:
      return reader.read_int(out->ints.data());
    case Type::kString:
      return reader.read_string(out->strings.data());
    case Type::kFloats:
      return reader.append_floats(&out->floats);
    case Type::kInts:
      return reader.append_ints(&out->ints, std::numeric_limits<size_t>::max());
    case Type::kStrings:
      return reader.read_string(&out->strings.emplace_back());
    case Type::kTensor:
    case Type::kTensors:
      return read_tensor_into(context, reader, &out->tensors);
    case Type::kGraph:
    case Type::kGraphs:
      return read_graph_into(context, reader, depth, &out->graphs);
    case Type::kSparseTensor:
    case Type::kSparseTensors:
      return read_sparse_into(context, reader, &out->tensors);
    case Type::kTypeProto:
    case Type::kTypeProtos:
      return read_type_into(context, reader, &out->types);
    case Type::kUndefined:
      break;
  }
  return reader.skip();
}

Status check_one(const char* what, size_t found) {
  if (found == 1) return Status::ok();
  return invalid_graph("is declared as one ", what, ", but has ", found);
}

// Absent, a field that is not repeated has protobuf's default.
void make_place(AttributeDef* out) {
  if (out->type == Type::kFloat) out->floats.resize(1);
  if (out->type == Type::kInt) out->ints.resize(1);
  if (out->type == Type::kString) out->strings.resize(1);
}

// Reads the values of the type that comes first.
Status scan_attribute(LoadContext& context, Bytes message, int depth, AttributeScan* scan,
                      AttributeDef* out) {
  WireReader reader = context.reader(message, "AttributeProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case AttributeFields::kName:
        return reader.read_name("name", &out->name);
      case AttributeFields::kRefAttrName:
        return reader.read_name("ref_attr_name", &out->ref_attr_name);
      case AttributeFields::kType:
        return reader.read_int(&scan->type);
      default: {
        const Type type = type_of_field(field);
        if (type == Type::kUndefined) return reader.skip();
        if (scan->filled == 0) {
          out->type = type;
          make_place(out);
        }
        scan->filled |= 1U << static_cast<unsigned>(type);
        return type == out->type ? read_value(context, reader, depth, out) : reader.skip();
      }
    }
  });
}

// The fields of the type that was found, and no others.
Status read_values(LoadContext& context, Bytes message, int depth, AttributeDef* out) {
  make_place(out);
  WireReader reader = context.reader(message, "AttributeProto");
  return reader.each_field([&](uint32_t field) -> Status {
    const bool is_picked = type_of_field(field) == out->type;
    return is_picked ? read_value(context, reader, depth, out) : reader.skip();
  });
}

Status check_count(const AttributeDef& attribute) {
  if (attribute.type == Type::kTensor) return check_one("tensor", attribute.tensors.size());
  if (attribute.type == Type::kSparseTensor) {
    return check_one("sparse tensor", attribute.tensors.size());
  }
  if (attribute.type == Type::kGraph) return check_one("graph", attribute.graphs.size());
  if (attribute.type == Type::kTypeProto) return check_one("type", attribute.types.size());
  return Status::ok();
}

Status read_any(LoadContext& context, Bytes message, int depth, AttributeDef* out) {
  AttributeScan scan;
  FOLIO_RETURN_IF_ERROR(scan_attribute(context, message, depth, &scan, out));
  Type type = Type::kUndefined;
  FOLIO_RETURN_IF_ERROR(pick_type(scan, &type));
  const bool is_reference = !out->ref_attr_name.empty();  // its values are somewhere else
  if (!is_reference && type == out->type) return check_count(*out);
  AttributeDef picked;
  picked.name = std::move(out->name);
  picked.ref_attr_name = std::move(out->ref_attr_name);
  picked.type = type;
  *out = std::move(picked);
  if (is_reference) return Status::ok();
  FOLIO_RETURN_IF_ERROR(read_values(context, message, depth, out));
  return check_count(*out);
}

}  // namespace

Status read_attribute(LoadContext& context, Bytes message, int depth, AttributeDef* out) {
  Status read = read_any(context, message, depth, out);
  if (!read.is_ok()) return std::move(read).with_context("attribute " + quoted(out->name));
  return Status::ok();
}

}  // namespace folio
