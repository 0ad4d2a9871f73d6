// Entries: ValueInfo; and how inputs and outputs get the types that users see.
#include <algorithm>

#include "c_api/entries.h"
#include "c_api/handles.h"

namespace folio {
namespace {

FolioValueKind kind_of(TypeInfo::Kind kind) {
  switch (kind) {
    case TypeInfo::Kind::kTensor:
      return FOLIO_KIND_TENSOR;
    case TypeInfo::Kind::kSequence:
      return FOLIO_KIND_SEQUENCE;
    case TypeInfo::Kind::kMap:
      return FOLIO_KIND_MAP;
    case TypeInfo::Kind::kOptional:
      return FOLIO_KIND_OPTIONAL;
    case TypeInfo::Kind::kSparseTensor:
      return FOLIO_KIND_SPARSE_TENSOR;
    case TypeInfo::Kind::kUnknown:
      break;
  }
  return FOLIO_KIND_UNKNOWN;
}

FolioValueInfo make_info(const std::string& name, const TypeInfo& type, const DimTable& table) {
  FolioValueInfo info;
  info.name = name;
  info.kind = kind_of(type.kind);
  info.type = type_of(type.dtype);
  info.has_shape = type.dims.has_value();
  for (const Dim dim : type.dims.value_or(Dims())) {
    info.dims.push_back(dim.is_value() ? dim.value : -1);
    info.symbols.push_back(dim.is_symbol() ? table.name(dim.symbol) : "");
  }
  if (type.element) {
    info.element = std::make_unique<FolioValueInfo>(make_info("", *type.element, table));
  }
  return info;
}

std::vector<FolioValueInfo> make_infos(const std::vector<PortInfo>& ports, const DimTable& table) {
  std::vector<FolioValueInfo> out;
  for (const PortInfo& port : ports) out.push_back(make_info(port.name, port.type, table));
  return out;
}

// Overridden dims become numbers, in elements of sequences too.
void override_dims(FolioValueInfo* info, const FreeDims& free_dims) {
  for (size_t i = 0; i < info->dims.size(); ++i) {
    for (const auto& [name, value] : free_dims) {
      if (info->dims[i] >= 0 || info->symbols[i] != name) continue;
      info->dims[i] = value;
      info->symbols[i].clear();
    }
  }
  if (info->element) override_dims(info->element.get(), free_dims);
}

// What inference found where the model says nothing.
void refine(FolioValueInfo* info, const std::vector<PortInfo>& ports, const DimTable& table) {
  const auto port = std::find_if(ports.begin(), ports.end(),
                                 [&](const PortInfo& p) { return p.name == info->name; });
  if (port == ports.end()) return;
  FolioValueInfo found = make_info(port->name, port->type, table);
  if (info->kind == FOLIO_KIND_UNKNOWN || (!info->has_shape && found.has_shape)) {
    *info = std::move(found);
    return;
  }
  if (found.dims.size() != info->dims.size()) return;
  for (size_t i = 0; i < info->dims.size(); ++i) {
    if (info->dims[i] >= 0 || found.dims[i] < 0) continue;
    info->dims[i] = found.dims[i];
    info->symbols[i].clear();
  }
}

const FolioValueInfo* find_in(const std::vector<FolioValueInfo>& infos, std::string_view name) {
  for (const FolioValueInfo& info : infos) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace

const FolioValueInfo* Ports::find_input(std::string_view name) const {
  const FolioValueInfo* found = find_in(inputs, name);
  return found ? found : find_in(overridable, name);
}

const FolioValueInfo* Ports::find_output(std::string_view name) const {
  return find_in(outputs, name);
}

Ports ports_of(const ModelInfo& info) {
  return {make_infos(info.inputs, info.dims), make_infos(info.outputs, info.dims),
          make_infos(info.overridable, info.dims)};
}

Ports ports_of(const ModelInfo& info, const Program& program, const FreeDims& free_dims) {
  Ports ports = ports_of(info);
  const auto improve = [&](std::vector<FolioValueInfo>* infos, const std::vector<PortInfo>& found) {
    for (FolioValueInfo& port : *infos) {
      override_dims(&port, free_dims);
      refine(&port, found, program.dims);
    }
  };
  improve(&ports.inputs, program.inputs);
  improve(&ports.overridable, program.inputs);
  improve(&ports.outputs, program.outputs);
  return ports;
}

namespace entry {

FolioStatus* ValueInfoGetName(const FolioValueInfo* info, const char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(info);
    FOLIO_NOT_NULL(out);
    *out = info->name.c_str();
    return Status::ok();
  });
}

FolioStatus* ValueInfoGetKind(const FolioValueInfo* info, FolioValueKind* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(info);
    FOLIO_NOT_NULL(out);
    *out = info->kind;
    return Status::ok();
  });
}

FolioStatus* ValueInfoGetElementType(const FolioValueInfo* info, FolioElementType* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(info);
    FOLIO_NOT_NULL(out);
    *out = info->type;
    return Status::ok();
  });
}

FolioStatus* ValueInfoHasShape(const FolioValueInfo* info, int32_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(info);
    FOLIO_NOT_NULL(out);
    *out = info->has_shape ? 1 : 0;
    return Status::ok();
  });
}

FolioStatus* ValueInfoGetDims(const FolioValueInfo* info, const int64_t** out_dims,
                              size_t* out_count) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(info);
    FOLIO_NOT_NULL(out_dims);
    FOLIO_NOT_NULL(out_count);
    *out_dims = info->dims.data();
    *out_count = info->dims.size();
    return Status::ok();
  });
}

FolioStatus* ValueInfoGetSymbolicDim(const FolioValueInfo* info, size_t index, const char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(info);
    FOLIO_NOT_NULL(out);
    FOLIO_RETURN_IF_ERROR(check_index(index, info->symbols.size(), "dims"));
    *out = info->symbols[index].c_str();
    return Status::ok();
  });
}

FolioStatus* ValueInfoGetElement(const FolioValueInfo* info, const FolioValueInfo** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(info);
    FOLIO_NOT_NULL(out);
    *out = info->element.get();
    return Status::ok();
  });
}

}  // namespace entry
}  // namespace folio
