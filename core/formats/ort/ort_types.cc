// Types of values: node_args; see ort_reader.h.
#include <unordered_map>

#include "core/formats/ort/ort_reader.h"

namespace folio {
namespace {

// What a copy of `type` takes; its element is shared.
uint64_t copied_bytes(const TypeDef& type) {
  uint64_t bytes = type.dims.size() * sizeof(DimDef);
  for (const DimDef& dim : type.dims) bytes += dim.param.size();
  return bytes;
}

}  // namespace

Result<DType> dtype_from(ort_schema::TensorDataType number) {
  const auto value = static_cast<int64_t>(number);
  if (value != 0 && !dtype_known(value)) {
    return invalid_graph("element type ", value, " is unknown");
  }
  return static_cast<DType>(value);
}

Status OrtReader::read_value(const ort_schema::ValueInfo& info, GraphDef* out) {
  std::string name;
  FOLIO_RETURN_IF_ERROR(read_name(info.name(), "node_args name", &name));
  if (name.empty() || !info.type()) return Status::ok();  // absent input, or type not known
  ValueDef& value = out->values.emplace_back();
  value.name = std::move(name);
  Status read = read_type(*info.type(), 1, &value.type);
  if (read.is_ok()) return read;
  return std::move(read).with_context("value " + shown_name(value.name));
}

Status OrtReader::read_values(const ort_schema::Graph& graph, int depth, GraphDef* out) {
  const auto read_info = [&](const ort_schema::ValueInfo& info) { return read_value(info, out); };
  FOLIO_RETURN_IF_ERROR(each_entry(graph.node_args(), "node_args entry", read_info));
  std::unordered_map<std::string_view, const TypeDef*> types;
  for (const ValueDef& value : out->values) types.emplace(value.name, &value.type);

  // Inputs of the main graph are checked against their types in every run. In subgraphs, and for
  // outputs, types are inferred where they are missing.
  const auto read_ends = [&](const Strings* names, const char* what, bool must_have_type,
                             std::vector<ValueDef>* ends) {
    return each_entry(names, what, [&](const flatbuffers::String& name) {
      ValueDef& end = ends->emplace_back();
      FOLIO_RETURN_IF_ERROR(read_name(&name, what, &end.name));
      const auto found = types.find(end.name);
      if (found != types.end()) {
        FOLIO_RETURN_IF_ERROR(spend(copied_bytes(*found->second)));
        end.type = *found->second;
      } else if (must_have_type) {
        return invalid_graph(what, " ", shown_name(end.name), " has no type in node_args");
      }
      return Status::ok();
    });
  };
  FOLIO_RETURN_IF_ERROR(read_ends(graph.inputs(), "graph input", depth == 0, &out->inputs));
  return read_ends(graph.outputs(), "graph output", false, &out->outputs);
}

Status OrtReader::read_type(const ort_schema::TypeInfo& type, int depth, TypeDef* out) {
  if (depth > kMaxTypeDepth) {
    return invalid_graph("a type nests deeper than ", kMaxTypeDepth, " levels");
  }
  // The verifier has looked into the union only when it knows the member.
  switch (type.value_type()) {
    case ort_schema::TypeInfoValue::tensor_type:
      if (!type.value()) return invalid_graph("a tensor type is empty");
      return read_tensor_type(*type.value_as_tensor_type(), out);
    case ort_schema::TypeInfoValue::sequence_type:
      if (!type.value()) return invalid_graph("a sequence type is empty");
      out->kind = TypeInfo::Kind::kSequence;
      return read_element_type(type.value_as_sequence_type()->elem_type(), depth, out);
    case ort_schema::TypeInfoValue::map_type: {
      if (!type.value()) return invalid_graph("a map type is empty");
      const ort_schema::MapType& map = *type.value_as_map_type();
      out->kind = TypeInfo::Kind::kMap;
      FOLIO_TRY(out->dtype, dtype_from(map.key_type()));
      return read_element_type(map.value_type(), depth, out);
    }
    case ort_schema::TypeInfoValue::NONE:
      return Status::ok();
  }
  return invalid_graph("a type is of unknown kind ", static_cast<int>(type.value_type()));
}

Status OrtReader::read_element_type(const ort_schema::TypeInfo* type, int depth, TypeDef* out) {
  out->element = std::make_shared<TypeDef>();
  if (!type) return invalid_graph("a sequence or map type has no element type");
  return read_type(*type, depth + 1, out->element.get());
}

Status OrtReader::read_tensor_type(const ort_schema::TensorTypeAndShape& type, TypeDef* out) {
  out->kind = TypeInfo::Kind::kTensor;
  FOLIO_TRY(out->dtype, dtype_from(type.elem_type()));
  if (!type.shape()) return Status::ok();
  out->has_shape = true;
  const auto* dims = type.shape()->dim();
  if (dims && dims->size() > static_cast<uint32_t>(kMaxRank)) {
    return not_implemented("a type has ", dims->size(), " dims, at most ", kMaxRank,
                           " are supported");
  }
  return each_entry(dims, "dim", [&](const ort_schema::Dimension& dim) {
    return read_dim(dim, &out->dims.emplace_back());
  });
}

Status OrtReader::read_dim(const ort_schema::Dimension& dim, DimDef* out) {
  if (!dim.value()) return Status::ok();
  switch (dim.value()->dim_type()) {
    case ort_schema::DimensionValueType::VALUE:
      // Some exporters say "any" with -1.
      if (dim.value()->dim_value() < 0) return Status::ok();
      out->kind = DimDef::Kind::kValue;
      out->value = dim.value()->dim_value();
      return Status::ok();
    case ort_schema::DimensionValueType::PARAM:
      FOLIO_RETURN_IF_ERROR(read_name(dim.value()->dim_param(), "dim_param", &out->param));
      if (!out->param.empty()) out->kind = DimDef::Kind::kParam;
      return Status::ok();
    case ort_schema::DimensionValueType::UNKNOWN:
      return Status::ok();
  }
  return invalid_graph("a dim is of unknown kind ", static_cast<int>(dim.value()->dim_type()));
}

}  // namespace folio
