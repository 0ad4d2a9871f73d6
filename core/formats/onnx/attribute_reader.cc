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

// Fields as they are found: singular and repeated ones apart, because the declared type, which
// picks among them, may come last.
struct AttributeScan {
  int64_t type = 0;
  uint32_t filled = 0;  // bit per Type that has a field here
  float f = 0.0F;
  int64_t i = 0;
  std::string s;
  AttributeDef one;   // t, g, sparse_tensor, tp
  AttributeDef many;  // the repeated fields
  std::vector<Tensor> sparse_one;
  std::vector<Tensor> sparse_many;
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

Status read_value(LoadContext& context, WireReader& reader, Type type, int depth,
                  AttributeScan* scan) {
  switch (type) {
    case Type::kFloat:
      return reader.read_float(&scan->f);
    case Type::kInt:
      return reader.read_int(&scan->i);
    case Type::kString:
      return reader.read_string(&scan->s);
    case Type::kTensor:
      return read_tensor_into(context, reader, &scan->one.tensors);
    case Type::kGraph:
      return read_graph_into(context, reader, depth, &scan->one.graphs);
    case Type::kFloats:
      return reader.append_floats(&scan->many.floats);
    case Type::kInts:
      return reader.append_ints(&scan->many.ints, std::numeric_limits<size_t>::max());
    case Type::kStrings:
      return reader.read_string(&scan->many.strings.emplace_back());
    case Type::kTensors:
      return read_tensor_into(context, reader, &scan->many.tensors);
    case Type::kGraphs:
      return read_graph_into(context, reader, depth, &scan->many.graphs);
    case Type::kSparseTensor:
      return read_sparse_into(context, reader, &scan->sparse_one);
    case Type::kSparseTensors:
      return read_sparse_into(context, reader, &scan->sparse_many);
    case Type::kTypeProto:
      return read_type_into(context, reader, &scan->one.types);
    case Type::kTypeProtos:
      return read_type_into(context, reader, &scan->many.types);
    case Type::kUndefined:
      break;
  }
  return reader.skip();
}

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
        if (type != Type::kUndefined) scan->filled |= 1U << static_cast<unsigned>(type);
        return read_value(context, reader, type, depth, scan);
      }
    }
  });
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

template <typename T>
Status take_one(const char* what, std::vector<T>&& from, std::vector<T>* to) {
  if (from.size() != 1) {
    return invalid_graph("is declared as one ", what, ", but has ", from.size());
  }
  *to = std::move(from);
  return Status::ok();
}

Status take_values(AttributeScan&& scan, AttributeDef* out) {
  switch (out->type) {
    case Type::kFloat:
      out->floats.push_back(scan.f);
      break;
    case Type::kInt:
      out->ints.push_back(scan.i);
      break;
    case Type::kString:
      out->strings.push_back(std::move(scan.s));
      break;
    case Type::kTensor:
      return take_one("tensor", std::move(scan.one.tensors), &out->tensors);
    case Type::kGraph:
      return take_one("graph", std::move(scan.one.graphs), &out->graphs);
    case Type::kSparseTensor:
      return take_one("sparse tensor", std::move(scan.sparse_one), &out->tensors);
    case Type::kTypeProto:
      return take_one("type", std::move(scan.one.types), &out->types);
    case Type::kFloats:
      out->floats = std::move(scan.many.floats);
      break;
    case Type::kInts:
      out->ints = std::move(scan.many.ints);
      break;
    case Type::kStrings:
      out->strings = std::move(scan.many.strings);
      break;
    case Type::kTensors:
      out->tensors = std::move(scan.many.tensors);
      break;
    case Type::kGraphs:
      out->graphs = std::move(scan.many.graphs);
      break;
    case Type::kSparseTensors:
      out->tensors = std::move(scan.sparse_many);
      break;
    case Type::kTypeProtos:
      out->types = std::move(scan.many.types);
      break;
    case Type::kUndefined:
      break;
  }
  return Status::ok();
}

}  // namespace

Status read_attribute(LoadContext& context, Bytes message, int depth, AttributeDef* out) {
  AttributeScan scan;
  Status read = scan_attribute(context, message, depth, &scan, out);
  if (read.is_ok()) read = pick_type(scan, &out->type);
  if (read.is_ok() && out->ref_attr_name.empty()) read = take_values(std::move(scan), out);
  if (!read.is_ok()) return std::move(read).with_context("attribute " + quoted(out->name));
  return Status::ok();
}

}  // namespace folio
