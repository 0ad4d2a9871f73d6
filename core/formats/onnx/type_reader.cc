#include "core/formats/onnx/type_reader.h"

#include "core/formats/onnx/onnx_fields.h"

namespace folio {
namespace {

Status read_nested_type(LoadContext& context, Bytes message, int depth, TypeDef* out);

Status read_dtype(WireReader& reader, DType* out) {
  int64_t number = 0;
  FOLIO_RETURN_IF_ERROR(reader.read_int(&number));
  // UNDEFINED is how some exporters leave the types of inner values open.
  if (number != 0 && !dtype_known(number)) {
    return invalid_graph("element type ", number, " is unknown");
  }
  *out = static_cast<DType>(number);
  return Status::ok();
}

Status read_dim(LoadContext& context, Bytes message, DimDef* out) {
  WireReader reader = context.reader(message, "TensorShapeProto.Dimension");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case DimFields::kDimValue:
        *out = DimDef{};
        FOLIO_RETURN_IF_ERROR(reader.read_int(&out->value));
        if (out->value >= 0) out->kind = DimDef::Kind::kValue;
        return Status::ok();
      case DimFields::kDimParam:
        *out = DimDef{};
        FOLIO_RETURN_IF_ERROR(reader.read_name("dim_param", &out->param));
        if (!out->param.empty()) out->kind = DimDef::Kind::kParam;
        return Status::ok();
      default:
        return reader.skip();
    }
  });
}

Status read_shape(LoadContext& context, Bytes message, std::vector<DimDef>* out) {
  out->clear();
  WireReader reader = context.reader(message, "TensorShapeProto");
  return reader.each_field([&](uint32_t field) -> Status {
    if (field != ShapeFields::kDim) return reader.skip();
    if (out->size() == static_cast<size_t>(kMaxRank)) {
      return not_implemented("a type has more than ", kMaxRank, " dims");
    }
    Bytes dim;
    FOLIO_RETURN_IF_ERROR(reader.read_bytes(&dim));
    return read_dim(context, dim, &out->emplace_back());
  });
}

Status read_tensor_type(LoadContext& context, Bytes message, TypeDef* out) {
  WireReader reader = context.reader(message, "TypeProto.Tensor");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case TensorTypeFields::kElemType:
        return read_dtype(reader, &out->dtype);
      case TensorTypeFields::kShape: {
        Bytes shape;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&shape));
        out->has_shape = true;
        return read_shape(context, shape, &out->dims);
      }
      default:
        return reader.skip();
    }
  });
}

// TypeProto.Sequence and TypeProto.Optional.
Status read_element_type(LoadContext& context, Bytes message, int depth, TypeDef* out) {
  WireReader reader = context.reader(message, "TypeProto.Sequence");
  return reader.each_field([&](uint32_t field) -> Status {
    if (field != ElementTypeFields::kElemType) return reader.skip();
    Bytes element;
    FOLIO_RETURN_IF_ERROR(reader.read_bytes(&element));
    return read_nested_type(context, element, depth + 1, out->element.get());
  });
}

Status read_map_type(LoadContext& context, Bytes message, int depth, TypeDef* out) {
  WireReader reader = context.reader(message, "TypeProto.Map");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case MapTypeFields::kKeyType:
        return read_dtype(reader, &out->dtype);
      case MapTypeFields::kValueType: {
        Bytes value;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&value));
        return read_nested_type(context, value, depth + 1, out->element.get());
      }
      default:
        return reader.skip();
    }
  });
}

TypeInfo::Kind kind_of(uint32_t field) {
  switch (field) {
    case TypeFields::kTensor:
      return TypeInfo::Kind::kTensor;
    case TypeFields::kSequence:
      return TypeInfo::Kind::kSequence;
    case TypeFields::kMap:
      return TypeInfo::Kind::kMap;
    case TypeFields::kSparseTensor:
      return TypeInfo::Kind::kSparseTensor;
    case TypeFields::kOptional:
      return TypeInfo::Kind::kOptional;
    default:
      return TypeInfo::Kind::kUnknown;
  }
}

// One member of TypeProto's oneof: it replaces what came before.
Status read_member(LoadContext& context, WireReader& reader, uint32_t field, int depth,
                   TypeDef* out) {
  Bytes member;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&member));
  *out = TypeDef{};
  out->kind = kind_of(field);
  switch (out->kind) {
    case TypeInfo::Kind::kTensor:
    case TypeInfo::Kind::kSparseTensor:
      return read_tensor_type(context, member, out);
    case TypeInfo::Kind::kSequence:
    case TypeInfo::Kind::kOptional:
      out->element = std::make_shared<TypeDef>();
      return read_element_type(context, member, depth, out);
    case TypeInfo::Kind::kMap:
      out->element = std::make_shared<TypeDef>();
      return read_map_type(context, member, depth, out);
    case TypeInfo::Kind::kUnknown:
      break;  // opaque: nothing to know
  }
  return Status::ok();
}

Status read_nested_type(LoadContext& context, Bytes message, int depth, TypeDef* out) {
  if (depth > kMaxTypeDepth) {
    return invalid_graph("a type nests deeper than ", kMaxTypeDepth, " levels");
  }
  WireReader reader = context.reader(message, "TypeProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case TypeFields::kTensor:
      case TypeFields::kSequence:
      case TypeFields::kMap:
      case TypeFields::kOpaque:
      case TypeFields::kSparseTensor:
      case TypeFields::kOptional:
        return read_member(context, reader, field, depth, out);
      default:
        return reader.skip();
    }
  });
}

}  // namespace

Status read_type(LoadContext& context, Bytes message, TypeDef* out) {
  return read_nested_type(context, message, 1, out);
}

Status read_value_info(LoadContext& context, Bytes message, ValueDef* out) {
  WireReader reader = context.reader(message, "ValueInfoProto");
  Status read = reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case ValueInfoFields::kName:
        return reader.read_name("name", &out->name);
      case ValueInfoFields::kType: {
        Bytes type;
        FOLIO_RETURN_IF_ERROR(reader.read_bytes(&type));
        return read_type(context, type, &out->type);
      }
      default:
        return reader.skip();
    }
  });
  if (!read.is_ok()) return std::move(read).with_context("value " + quoted(out->name));
  return Status::ok();
}

}  // namespace folio
