// Slots: types of inputs, outputs and values.
#include "c_api/ort_dropin/types.h"

namespace folio::ort {
namespace {

OrtStatus* read_tensor(const FolioValueInfo* info, OrtTensorTypeAndShapeInfo* out) {
  FolioElementType type = FOLIO_UNDEFINED;
  const int64_t* dims = nullptr;
  size_t count = 0;
  int32_t has_shape = 0;
  ORT_CALL(folio().ValueInfoGetElementType(info, &type));
  ORT_CALL(folio().ValueInfoHasShape(info, &has_shape));
  ORT_CALL(folio().ValueInfoGetDims(info, &dims, &count));
  out->type = to_ort_type(type);
  out->has_shape = has_shape != 0;
  out->dims.assign(dims, dims + count);
  for (size_t i = 0; i < count; ++i) {
    const char* symbol = nullptr;
    ORT_CALL(folio().ValueInfoGetSymbolicDim(info, i, &symbol));
    out->symbols.emplace_back(symbol);
  }
  return nullptr;
}

// What is inside of a sequence, map or optional; the type itself keeps it.
void set_element(OrtTypeInfo* info, int key_type, std::shared_ptr<const OrtTypeInfo> element) {
  if (info->kind == FOLIO_KIND_MAP) {
    info->map.key_type = key_type;
    info->map.value = std::move(element);
  } else if (info->kind == FOLIO_KIND_SEQUENCE) {
    info->sequence.element = std::move(element);
  } else if (info->kind == FOLIO_KIND_OPTIONAL) {
    info->optional.element = std::move(element);
  }
}

// Of the element, for the program: its own copy.
OrtStatus* give_element(const std::shared_ptr<const OrtTypeInfo>& element, OrtTypeInfo** out) {
  ORT_NOT_NULL(out);
  if (!element) return make_status(kFail, "the model does not say what is inside");
  *out = new OrtTypeInfo(*element);
  return nullptr;
}

template <typename T>
OrtStatus* cast(const OrtTypeInfo* info, int kind, T OrtTypeInfo::*member, const T** out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->kind == kind ? &(info->*member) : nullptr;
    return nullptr;
  });
}

// The type of what a sequence or map contains, by looking at its first part.
OrtStatus* type_of_part(const FolioValue* value, size_t index, OrtTypeInfo* out) {
  FolioValue* raw = nullptr;
  ORT_CALL(folio().GetValue(value, index, &raw));
  const Value part(raw);
  return type_of_value(part.get(), out);
}

OrtStatus* element_of_sequence(const FolioValue* value, OrtTypeInfo* out) {
  size_t count = 0;
  ORT_CALL(folio().GetValueCount(value, &count));
  FolioElementType type = FOLIO_UNDEFINED;
  ORT_CALL(folio().GetElementType(value, &type));
  if (type == FOLIO_UNDEFINED && count > 0) return type_of_part(value, 0, out);
  out->kind = type == FOLIO_UNDEFINED ? FOLIO_KIND_UNKNOWN : FOLIO_KIND_TENSOR;
  out->tensor.type = to_ort_type(type);
  out->tensor.has_shape = false;  // tensors of one sequence may differ in shape
  return nullptr;
}

}  // namespace

OrtStatus* type_of_info(const FolioValueInfo* info, OrtTypeInfo* out) {
  FolioValueKind kind = FOLIO_KIND_UNKNOWN;
  ORT_CALL(folio().ValueInfoGetKind(info, &kind));
  out->kind = kind;
  if (kind == FOLIO_KIND_TENSOR || kind == FOLIO_KIND_SPARSE_TENSOR) {
    return read_tensor(info, &out->tensor);
  }
  const FolioValueInfo* element = nullptr;
  FolioElementType key_type = FOLIO_UNDEFINED;
  ORT_CALL(folio().ValueInfoGetElement(info, &element));
  ORT_CALL(folio().ValueInfoGetElementType(info, &key_type));
  if (!element) return nullptr;
  auto type = std::make_shared<OrtTypeInfo>();
  ORT_TRY(type_of_info(element, type.get()));
  set_element(out, to_ort_type(key_type), std::move(type));
  return nullptr;
}

OrtStatus* type_of_tensor(const FolioValue* value, OrtTensorTypeAndShapeInfo* out) {
  FolioElementType type = FOLIO_UNDEFINED;
  const int64_t* dims = nullptr;
  size_t count = 0;
  ORT_CALL(folio().GetTensorDims(value, &dims, &count));
  ORT_CALL(folio().GetElementType(value, &type));
  out->type = to_ort_type(type);
  out->dims.assign(dims, dims + count);
  out->symbols.resize(count);
  return nullptr;
}

OrtStatus* type_of_value(const FolioValue* value, OrtTypeInfo* out) {
  FolioValueKind kind = FOLIO_KIND_UNKNOWN;
  ORT_CALL(folio().GetValueKind(value, &kind));
  out->kind = kind;
  if (kind == FOLIO_KIND_TENSOR) return type_of_tensor(value, &out->tensor);
  if (kind != FOLIO_KIND_SEQUENCE && kind != FOLIO_KIND_MAP) return nullptr;
  auto element = std::make_shared<OrtTypeInfo>();
  FolioElementType key_type = FOLIO_UNDEFINED;
  if (kind == FOLIO_KIND_SEQUENCE) {
    ORT_TRY(element_of_sequence(value, element.get()));
  } else {
    ORT_CALL(folio().GetElementType(value, &key_type));
    ORT_TRY(type_of_part(value, 1, element.get()));
  }
  set_element(out, to_ort_type(key_type), std::move(element));
  return nullptr;
}

namespace slot {

OrtStatus* CastTypeInfoToTensorInfo(const OrtTypeInfo* info,
                                    const OrtTensorTypeAndShapeInfo** out) noexcept {
  return cast(info, FOLIO_KIND_TENSOR, &OrtTypeInfo::tensor, out);
}

OrtStatus* CastTypeInfoToMapTypeInfo(const OrtTypeInfo* info, const OrtMapTypeInfo** out) noexcept {
  return cast(info, FOLIO_KIND_MAP, &OrtTypeInfo::map, out);
}

OrtStatus* CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* info,
                                          const OrtSequenceTypeInfo** out) noexcept {
  return cast(info, FOLIO_KIND_SEQUENCE, &OrtTypeInfo::sequence, out);
}

OrtStatus* CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* info,
                                          const OrtOptionalTypeInfo** out) noexcept {
  return cast(info, FOLIO_KIND_OPTIONAL, &OrtTypeInfo::optional, out);
}

OrtStatus* GetOnnxTypeFromTypeInfo(const OrtTypeInfo* info, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->kind;
    return nullptr;
  });
}

// Folio does not keep the denotations of a model's types.
OrtStatus* GetDenotationFromTypeInfo(const OrtTypeInfo* info, const char** const out,
                                     size_t* out_bytes) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    ORT_NOT_NULL(out_bytes);
    *out = "";
    *out_bytes = 0;
    return nullptr;
  });
}

OrtStatus* GetMapKeyType(const OrtMapTypeInfo* info, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->key_type;
    return nullptr;
  });
}

OrtStatus* GetMapValueType(const OrtMapTypeInfo* info, OrtTypeInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    return give_element(info->value, out);
  });
}

OrtStatus* GetSequenceElementType(const OrtSequenceTypeInfo* info, OrtTypeInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    return give_element(info->element, out);
  });
}

OrtStatus* GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* info,
                                        OrtTypeInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    return give_element(info->element, out);
  });
}

void ReleaseTypeInfo(OrtTypeInfo* info) noexcept { delete info; }
// Parts of an OrtTypeInfo, which no slot gives away.
void ReleaseMapTypeInfo(OrtMapTypeInfo*) noexcept {}
void ReleaseSequenceTypeInfo(OrtSequenceTypeInfo*) noexcept {}

OrtStatus* CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    auto info = std::make_unique<OrtTensorTypeAndShapeInfo>();
    info->has_shape = false;  // until it is given one
    *out = info.release();
    return nullptr;
  });
}

void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* info) noexcept { delete info; }

OrtStatus* SetTensorElementType(OrtTensorTypeAndShapeInfo* info, int type) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    info->type = type;
    return nullptr;
  });
}

OrtStatus* SetDimensions(OrtTensorTypeAndShapeInfo* info, const int64_t* dims,
                         size_t count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    if (count > 0) ORT_NOT_NULL(dims);
    for (size_t i = 0; i < count; ++i) {
      if (dims[i] < -1) return make_status(kInvalidArgument, "a dim is below -1");
    }
    info->dims.assign(dims, dims + count);
    info->symbols.resize(count);
    info->has_shape = true;
    return nullptr;
  });
}

OrtStatus* SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** names,
                                 size_t count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    if (count > 0) ORT_NOT_NULL(names);
    std::vector<std::string> symbols(info->dims.size());
    for (size_t i = 0; i < count && i < symbols.size(); ++i) symbols[i] = names[i] ? names[i] : "";
    info->symbols = std::move(symbols);
    return nullptr;
  });
}

OrtStatus* GetTensorElementType(const OrtTensorTypeAndShapeInfo* info, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->type;
    return nullptr;
  });
}

OrtStatus* GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    *out = info->dims.size();
    return nullptr;
  });
}

OrtStatus* GetDimensions(const OrtTensorTypeAndShapeInfo* info, int64_t* out,
                         size_t count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    if (count > 0) ORT_NOT_NULL(out);
    for (size_t i = 0; i < count && i < info->dims.size(); ++i) out[i] = info->dims[i];
    return nullptr;
  });
}

OrtStatus* GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info, const char** out,
                                 size_t count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    if (count > 0) ORT_NOT_NULL(out);
    for (size_t i = 0; i < count; ++i) {
      out[i] = i < info->symbols.size() ? info->symbols[i].c_str() : "";
    }
    return nullptr;
  });
}

OrtStatus* GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    size_t product = 1;
    bool is_open = false;
    for (const int64_t dim : info->dims) {
      if (dim < 0) {
        is_open = true;
      } else if (__builtin_mul_overflow(product, static_cast<size_t>(dim), &product)) {
        return make_status(kFail, "the product of the dims is too large");
      }
    }
    // -1, as ONNX Runtime has it, where a dim is not known.
    *out = is_open ? static_cast<size_t>(-1) : product;
    return nullptr;
  });
}

bool TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) noexcept {
  return info && info->has_shape;
}

OrtStatus* GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    auto info = std::make_unique<OrtTensorTypeAndShapeInfo>();
    ORT_TRY(type_of_tensor(value->get(), info.get()));
    *out = info.release();
    return nullptr;
  });
}

OrtStatus* GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    auto info = std::make_unique<OrtTypeInfo>();
    ORT_TRY(type_of_value(value->get(), info.get()));
    *out = info.release();
    return nullptr;
  });
}

OrtStatus* GetValueType(const OrtValue* value, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    FolioValueKind kind = FOLIO_KIND_UNKNOWN;
    ORT_CALL(folio().GetValueKind(value->get(), &kind));
    *out = kind;
    return nullptr;
  });
}

}  // namespace slot
}  // namespace folio::ort
